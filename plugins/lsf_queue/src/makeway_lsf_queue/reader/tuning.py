"""Say which settings of lsb.params and lsb.queues a search may change, and write them into their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from makeway.foreign import Knob, knob
from makeway_lsf_queue.reader.tables import Draft

_PARAMS: Mapping[str, tuple[str, ...]] = {
    "PREEMPT_FOR": ("LEAST_RUN_TIME", "MINI_JOB", "MINI_JOB LEAST_RUN_TIME"),
    "NO_PREEMPT_RUN_TIME": ("30", "60", "240"),
    "NO_PREEMPT_FINISH_TIME": ("10", "30", "60"),
    "NO_PREEMPT_INTERVAL": ("5", "30", "120"),
    "MAX_JOB_PREEMPT": ("1", "2", "5"),
    "MAX_TOTAL_TIME_PREEMPT": ("60", "240"),
    "PREEMPT_DELAY": ("30", "300"),
}
"""Keyword of lsb.params -> values worth a try; times in minutes, save PREEMPT_DELAY."""
_QUEUE: Mapping[str, tuple[str, ...]] = {
    "PREEMPTABLE": ("MAX_JOB_PREEMPT", "NO_PREEMPT_INTERVAL", "MAX_TOTAL_TIME_PREEMPT"),
    "PREEMPTIVE": ("PREEMPT_DELAY",),
}
"""Word of PREEMPTION -> what such a queue may set for itself."""


def knobs(queues: str, draft: Draft) -> Sequence[Knob]:
    """Return what may be changed.

    :param queues: name of the file of queues.
    """
    return [*_of_params(draft.params), *_of_queues(queues, draft.queues)]


def _of_params(params: Mapping[str, str]) -> Iterator[Knob]:
    for key, values in _PARAMS.items():
        now = params.get(key, "")
        yield knob(key, "lsb.params", now, values, written, unset=True, section="Parameters", key=key)


def _of_queues(file: str, queues: Mapping[str, Mapping[str, str]]) -> Iterator[Knob]:
    for name, table in queues.items():
        word = table.get("PREEMPTION", "").upper()
        for key in [key for kind, keys in _QUEUE.items() if kind in word for key in keys]:
            now, about = table.get(key, ""), f"queue {name} {key}"
            values = _PARAMS[key]
            yield knob(about, file, now, values, written, unset=True, section="Queue", key=key, queue=name)


def written(text: str, value: str, section: str, key: str, queue: str = "") -> str:
    """Return a file with a keyword in a section; an empty value takes it out.

    :param queue: QUEUE_NAME of the section; empty: the first one.
    """
    lines = text.split("\n")
    for first, last in _sections(lines, section):
        if queue and _value_in(lines, first, last, "QUEUE_NAME") != queue:
            continue
        at = _line_of(lines, first, last, key)
        if at is None:
            if value:
                lines.insert(last, f"{key} = {value}")
            return "\n".join(lines)
        end = at
        while lines[end].rstrip().endswith("\\"):
            end += 1
        head, _, _ = lines[at].partition("=")
        blank = " " if head.endswith(" ") else ""
        lines[at : end + 1] = [f"{head}={blank}{value}"] if value else []
        return "\n".join(lines)
    if queue or not value:
        return text
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{before}Begin {section}\n{key} = {value}\nEnd {section}\n"


def _sections(lines: Sequence[str], section: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of Begin and of End."""
    first: int | None = None
    for at, line in enumerate(lines):
        words = line.partition("#")[0].lower().split()
        if words[:2] == ["begin", section.lower()]:
            first = at
        elif words[:1] == ["end"] and first is not None:
            yield first, at
            first = None


def _line_of(lines: Sequence[str], first: int, last: int, key: str) -> int | None:
    """Return the line that sets a keyword; None: none does."""
    pattern = re.compile(rf"\s*{re.escape(key)}\s*=", re.IGNORECASE)
    return next((at for at in range(first + 1, last) if pattern.match(lines[at])), None)


def _value_in(lines: Sequence[str], first: int, last: int, key: str) -> str:
    at = _line_of(lines, first, last, key)
    return "" if at is None else lines[at].partition("#")[0].partition("=")[2].strip()

"""Read what people typed during a recording: ``mjobctl``, ``setspri``, ``canceljob`` (moab 2.1, Q10).

Maui anchors a job expression at both ends and acts on the first job that matches, whatever else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

VERBS = {
    "-c": "cancel",
    "-C": "checkpoint",
    "-R": "requeue",
    "-r": "resume",
    "-s": "suspend",
    "-x": "start",
}
KEYS = ("actions", "commands", "manual", "client")
"""Where a recording may keep them."""
_WHEN = ("pass", "at", "iteration", "when")
_WORDS = {"canceljob": "cancel", "runjob": "start"}


def commands_of(
    data: Mapping[str, Any], ids: Sequence[str], interval: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return ``[[action]]`` tables, and what could not be read."""
    found: list[dict[str, Any]] = []
    unread: list[str] = []
    for key in KEYS:
        for each in _entries(data.get(key, [])):
            table = _table(each, ids, interval)
            if table is None:
                unread.append(f"{key}: {str(each)[:40]}")
            else:
                found.append(table)
    return found, unread


def _entries(listed: Any) -> list[Any]:
    """Return the entries of a list, or of a table by pass: ``{"5": "mjobctl -s L"}``."""
    if isinstance(listed, list):
        return listed
    if not isinstance(listed, Mapping) or not all(str(key).isdigit() for key in listed):
        return [listed]
    return [
        {"pass": int(at), "cmd": typed}
        for at, value in listed.items()
        for typed in (value if isinstance(value, list) else [value])
    ]


def _table(each: Any, ids: Sequence[str], interval: float) -> dict[str, Any] | None:
    """Return one command; None: it is not understood."""
    if isinstance(each, list) and each and isinstance(each[0], int):
        each = {"pass": each[0], "cmd": each[1] if len(each) == 2 else each[1:]}
    if not isinstance(each, Mapping):
        return None
    at = next((each[key] for key in _WHEN if key in each), None)
    typed = next((read for text in _texts(each.values()) if (read := _typed(text, ids))), None)
    if not isinstance(at, int) or typed is None:
        return None
    name, job, value = typed
    user = each.get("user")
    table = {"at": at * interval, "command": name, "job": job, "value": value}
    if isinstance(user, str) and user != "root":
        table["user"] = user
    return table


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list) and all(isinstance(word, str) for word in value):
            yield " ".join(value)


def _typed(text: str, ids: Sequence[str]) -> tuple[str, str, str] | None:
    """Read a command line: verb, job, value."""
    words = text.split()
    if len(words) == 3 and words[0] == "mjobctl" and words[1] in VERBS:
        job = first_match(words[2], ids)
        return (VERBS[words[1]], job, "") if job is not None else None
    if len(words) == 3 and words[0] == "setspri" and words[1].isdigit():
        job = first_match(words[2], ids)
        return ("priority", job, words[1]) if job is not None else None
    if len(words) == 2 and words[0] in _WORDS:
        job = first_match(words[1], ids)
        return (_WORDS[words[0]], job, "") if job is not None else None
    return None


def first_match(expression: str, ids: Sequence[str]) -> str | None:
    """Return the first job that an expression names, anchored at both ends."""
    try:
        pattern = re.compile(expression)
    except re.error:
        return expression if expression in ids else None
    return next((job for job in ids if pattern.fullmatch(job)), None)

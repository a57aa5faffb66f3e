"""Understand the PREEMPTION line of a queue (lsf 2.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from makeway.errors import nearest
from makeway_lsf_queue.values import WrongValueError

_PART = re.compile(r"\s*([A-Za-z]+)\s*(?:\[([^\]]*)\])?\s*")
_TARGET = re.compile(r"([^\s+]+)(?:\+(\S*))?")


@attrs.frozen(kw_only=True)
class PreemptionLine:
    """What one queue says about itself."""

    preemptive: bool = False
    targets: Mapping[str, int | None] | None = None
    """Queues it may preempt, with their preference numbers; None: all lower ones."""
    preemptable: bool = False
    by: tuple[str, ...] | None = None
    """Queues that may preempt it; None: all higher ones."""
    notes: tuple[str, ...] = ()
    """What was odd about the line, but not fatal."""

    @property
    def is_marked(self) -> bool:
        """Whether it has either keyword: without one, exclusive jobs take no part (4.4)."""
        return self.preemptive or self.preemptable

    @property
    def has_preferences(self) -> bool:
        """Whether any target has a number: row 6 of the table governs the order (3.2)."""
        return any(number is not None for number in (self.targets or {}).values())


def preemption_line(text: str) -> PreemptionLine:
    """Read ``PREEMPTIVE[a b+2] PREEMPTABLE[c]``, in either order.

    :raises WrongValueError: it cannot be understood; the queue then neither preempts nor is marked preemptable.
    """
    found: dict[str, object] = {}
    notes: list[str] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or not match.group(0):
            raise WrongValueError(f"got {text!r}; allowed: PREEMPTIVE[queue[+n] ...] PREEMPTABLE[queue ...]")
        at = match.end()
        word, inside = match.group(1).upper(), match.group(2)
        if word in found:
            raise WrongValueError(f"{word} is there twice")
        if word in ("NONPREEMPTIVE", "NONPREEMPTABLE"):
            raise WrongValueError(f"{word} is no longer part of the grammar; leave the line out")
        if word not in ("PREEMPTIVE", "PREEMPTABLE"):
            close = nearest(word, ("PREEMPTIVE", "PREEMPTABLE"))
            raise WrongValueError(f"got {match.group(1)!r}; allowed: PREEMPTIVE, PREEMPTABLE{close}")
        found[word] = inside
        if inside is not None and not inside.strip():
            notes.append(f"{word}[] names no queue and counts as {word} without a list")
    if not found:
        raise WrongValueError("is empty")
    return PreemptionLine(
        preemptive="PREEMPTIVE" in found,
        targets=_targets(found.get("PREEMPTIVE"), notes),
        preemptable="PREEMPTABLE" in found,
        by=_by(found.get("PREEMPTABLE"), notes),
        notes=tuple(notes),
    )


def _targets(inside: object, notes: list[str]) -> Mapping[str, int | None] | None:
    if not isinstance(inside, str) or not inside.strip():
        return None
    listed: dict[str, int | None] = {}
    for word in inside.split():
        match = _TARGET.fullmatch(word)
        name, number = match.groups() if match else (word, None)
        preference: int | None = None
        if number is not None:
            if re.fullmatch(r"[0-9]{1,9}", number) and int(number) > 0:
                preference = int(number)
            else:
                notes.append(f"{word!r}: a preference is a positive whole number; {name!r} has none")
        listed.setdefault(name, preference)
    return listed


def _by(inside: object, notes: list[str]) -> tuple[str, ...] | None:
    if not isinstance(inside, str) or not inside.strip():
        return None
    names = []
    for word in inside.split():
        name, plus, _ = word.partition("+")
        if plus:
            notes.append(f"{word!r}: preference numbers have no place in PREEMPTABLE")
        names.append(name)
    return tuple(dict.fromkeys(names))

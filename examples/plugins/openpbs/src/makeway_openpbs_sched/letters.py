"""Understand ``preempt_order``: which letters are tried, by the share of time left (sections 1.5 and 4.1)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import attrs

from makeway.model import Job, PreemptMode, Seconds

MODES = {
    "S": PreemptMode.SUSPEND,
    "C": PreemptMode.CHECKPOINT,
    "R": PreemptMode.REQUEUE,
    "D": PreemptMode.CANCEL,
}
MOST_GROUPS = 20
_HOUR_FORM = re.compile(r"(?:(\d+):)?(?:(\d+):)?(\d+)(?:\.\d+)?")


@attrs.frozen
class Order:
    """All of ``preempt_order``."""

    groups: tuple[str, ...]
    percents: tuple[int, ...]
    """The k-th is where group k+1 begins; one more than that if the last range has no method."""

    @property
    def trailing(self) -> bool:
        """Whether the text ended in a percent, so that the last range has no method."""
        return len(self.percents) == len(self.groups)

    @property
    def dead(self) -> bool:
        """Whether the first percent is 0: the ranges behind it are never used."""
        return self.percents[:1] == (0,)

    def group(self, left: int | None) -> str:
        """Return the letters for so many percent of time left; empty: no method.

        :param left: None: it is not known; the first group is used.
        """
        if left is None or self.dead:
            return self.groups[0]
        for at in range(len(self.percents) + 1):
            highest = self.percents[at - 1] if at else 100
            lowest = self.percents[at] + 1 if at < len(self.percents) else 0
            if lowest <= left <= highest:
                return self.groups[at] if at < len(self.groups) else ""
        return self.groups[0]  # percents need not fall; a job in no range is in the first


def order_of(text: str, *, deletion: bool = True) -> Order:
    """Read ``preempt_order``: groups of letters with percents between them.

    :param deletion: whether the letter D is known to this version.
    :raises ValueError: naming the word that is wrong, and what is allowed.
    """
    words = text.split()
    if not words:
        raise ValueError("got nothing; allowed: letters of S, C, R, D, as 'SCR' or 'SCR 80 SC 50 S'")
    letters = "SCRD" if deletion else "SCR"
    groups, percents = [], []
    for at, word in enumerate(words):
        if at % 2 == 0:
            groups.append(_group(word, letters, text))
        elif word.isdigit() and word.isascii():
            percents.append(int(word))
        else:
            raise ValueError(f"got {word!r} in {text!r}; allowed here: a percent, a whole number")
    if len(groups) > MOST_GROUPS:
        raise ValueError(f"got {len(groups)} groups; allowed: at most {MOST_GROUPS}")
    return Order(tuple(groups), tuple(percents))


def _group(word: str, letters: str, text: str) -> str:
    if word == "D" and "D" not in letters:
        raise ValueError(
            f"got {word!r} in {text!r}: deletion is known from 20.0 on; allowed: {', '.join(letters)}"
        )
    if not 1 <= len(word) <= 4 or set(word) - set(letters) or len(set(word)) < len(word):
        options = ", ".join(letters)
        raise ValueError(
            f"got {word!r} in {text!r}; allowed here: letters of {options}, none twice, no blanks"
        )
    return word


# ------------------------------------------------------------------------------------ time left
def percent_left(job: Job, now: Seconds, *, single: bool, elapsed: bool = False) -> int | None:
    """Return the share of its time that `job` has left, cut to whole percent; None: it has no limit.

    soft_walltime comes before walltime; cput only where there is neither.

    :param single: by single precision arithmetic, as the source has it, which may give one percent less.
    :param elapsed: whether time spent suspended counts as used.
    """
    basis = basis_of(job, elapsed=elapsed)
    if basis is None:
        return None
    requested, used = basis[0], basis[1](now)
    left = _single(requested, used) if single else int((requested - used) * 100 // requested)
    return left if left >= 0 else 1


def basis_of(job: Job, *, elapsed: bool = False) -> tuple[Seconds, Callable[[Seconds], Seconds]] | None:
    """Return the time asked for, and what tells how much of it is used."""
    soft = duration(job.spec.attributes.get("soft_walltime"))
    limit = soft if soft else job.time_limit
    if limit:
        return limit, (lambda now: now - (job.started_at or 0.0)) if elapsed else job.ran_until
    cput = duration(job.spec.attributes.get("cput"))
    if cput:
        return cput, lambda now: job.ran_until(now) * job.spec.cpus
    return None


def duration(value: object) -> Seconds | None:
    """Read seconds, or ``[[HH:]MM:]SS``; None: it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _HOUR_FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    first, second, last = match.groups()
    hours, minutes = (first, second) if second is not None else (None, first)
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + int(last)


def _single(requested: Seconds, used: Seconds) -> int:
    share = _rounded(_rounded(used) / _rounded(requested))
    return int(_rounded(100.0 - _rounded(share * 100.0)))


def _rounded(number: float) -> float:
    """Return what is left of a number in single precision."""
    found: float = struct.unpack("f", struct.pack("f", number))[0]
    return found

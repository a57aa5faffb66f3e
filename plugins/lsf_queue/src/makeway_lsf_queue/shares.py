"""Read FAIRSHARE of a queue, and the factors of the dynamic priority (lsf 9.3)."""

from __future__ import annotations

import re

import attrs

from makeway_lsf_queue.values import WrongValueError

_SHARES = re.compile(r"USER_SHARES\s*\[(.*)\]", re.IGNORECASE | re.DOTALL)
_PAIR = re.compile(r"\s*\[\s*([^\s,\[\]]+)\s*,\s*(\d+)\s*\]\s*,?")
_USUAL = "USER_SHARES[[user, shares] ...], where a user is a name, a group, group@, default or others"


@attrs.frozen(kw_only=True)
class Shares:
    """FAIRSHARE of a queue, understood."""

    assigned: tuple[tuple[str, float], ...]
    """Users, groups, ``group@``, ``default``, ``others``, each with its shares, in the order of the file."""
    cpu_factor: float = 0.7
    """CPU_TIME_FACTOR."""
    run_factor: float = 0.7
    """RUN_TIME_FACTOR."""
    job_factor: float = 3.0
    """RUN_JOB_FACTOR."""
    hist_hours: float = 5.0
    """HIST_HOURS."""
    by_slot: bool = False
    """LSB_NCPU_ENFORCE: whether run time counts once for each slot."""


def assigned(text: str) -> tuple[tuple[str, float], ...]:
    """Understand ``USER_SHARES[[ann, 10] [default, 1]]``.

    :raises WrongValueError: it is something else.
    """
    whole = _SHARES.fullmatch(text.strip())
    found, at = [], 0
    for pair in _PAIR.finditer(whole[1]) if whole else ():
        if pair.start() != at:
            break
        found.append((pair[1], float(pair[2])))
        at = pair.end()
    if whole is None or not found or whole[1][at:].strip():
        raise WrongValueError(f"got {text!r}; allowed: {_USUAL}")
    return tuple(found)

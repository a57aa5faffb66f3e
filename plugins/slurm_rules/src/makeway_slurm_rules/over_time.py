"""Say when a job whose time is over counts as gone in an estimate (slurm-preemption 5.2.6)."""

from __future__ import annotations

from makeway.model import Seconds

_SECOND: Seconds = 1.0


def leaves_at(end: Seconds, now: Seconds, *, in_a_second: bool) -> Seconds:
    """Return when a job leaves as an estimate has it.

    :param end: its deadline; for jobs that are suspended, or whose end has not been noticed, that may be over.
    :param in_a_second: whether such a job leaves a second from now; else it leaves now.
    """
    if end > now:
        return end
    return now + _SECOND if in_a_second else now

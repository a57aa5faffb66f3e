"""Say when a job whose time is over counts as gone in an estimate (slurm-preemption 5.2.6)."""

from __future__ import annotations

from makeway.model import ClusterView, Seconds

_SECOND: Seconds = 1.0


def leaves_at(end: Seconds, view: ClusterView, rule: str) -> Seconds:
    """Return when a job leaves as an estimate has it.

    :param end: its deadline; for jobs that are suspended, or whose end has not been noticed, that may be over.
    :param rule: under which such a job leaves a second from now; without it, now.
    """
    if end > view.now:
        return end
    return view.now + _SECOND if view.rule(rule) else view.now

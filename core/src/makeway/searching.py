"""Take candidates in an order until the job fits, then give back those not needed: for searches of plugins.

Going back from the last one taken, what can stay without the job losing its place stays; so none of the victims
can be left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Attempt, Blocked, Candidates, Choice, Placement, PreemptMode


def in_order(attempt: Attempt, candidates: Candidates, order: Sequence[int] | None = None) -> Choice | None:
    """Return the victims in the order in which they were taken; None if removing all of `order` does not help.

    Candidates whose mode is OFF are never taken, nor those that `Candidates.allowed_after` forbids.

    :param attempt: with no job removed. It is used up; pass ``attempt.fresh()`` to search several times.
    :param order: positions in the candidates, in the order in which they are taken; None: as the policy named them.
    """
    taken: list[int] = []
    placement: Placement | None = None
    for at in range(len(candidates.jobs)) if order is None else order:
        if candidates.modes[at] is PreemptMode.OFF or not _allowed(candidates, [*taken, at]):
            continue
        attempt.remove(candidates.jobs[at], candidates.modes[at])
        taken.append(at)
        found = attempt.probe()
        if isinstance(found, Placement):
            placement = found
            break
    if placement is None:
        return None
    for at in reversed(taken[:-1]):  # without the last one it did not fit
        fewer = [each for each in taken if each != at]
        if not _allowed(candidates, fewer):
            continue
        found = probe_without(attempt, candidates, fewer)
        if isinstance(found, Placement):
            taken, placement = fewer, found
    return Choice(
        placement=placement,
        victims=tuple(taken),
        method="in order until it fits, then without those it does not need",
        considered=len(candidates.jobs),
    )


def probe_without(attempt: Attempt, candidates: Candidates, taken: Sequence[int]) -> Placement | Blocked:
    """Probe with the candidates at these positions removed, and no others."""
    trial = attempt.fresh()
    for at in taken:
        trial.remove(candidates.jobs[at], candidates.modes[at])
    return trial.probe()


def _allowed(candidates: Candidates, taken: Sequence[int]) -> bool:
    """Whether the candidates' condition lets these make way one after the other."""
    allowed = candidates.allowed_after
    jobs = [candidates.jobs[at] for at in taken]
    return allowed is None or all(allowed(job, tuple(jobs[:at])) for at, job in enumerate(jobs))

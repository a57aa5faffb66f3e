"""Take candidates in the order of their policy until the job fits, then give back who is not needed
(``search/in_order``).

This is the search that is used where no plugin in use has one. It keeps to the order in which the preempt policy
named the candidates, cheapest to lose first. Going back from the last one taken, whoever can stay without the job
losing its place stays; so none of the victims can be left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.hookspecs import by_request, hookimpl
from makeway.model import Attempt, Blocked, Candidates, Choice, Placement, PreemptMode


@hookimpl
@by_request(lambda view: lambda job: True)
def makeway_search(attempt: Attempt, candidates: Candidates) -> Choice | None:
    """Take in order, then give back in reverse."""
    return in_order(attempt, candidates)


def in_order(attempt: Attempt, candidates: Candidates) -> Choice | None:
    """Return the victims in the order of the candidates; None if removing all candidates does not help."""
    taken: list[int] = []
    placement: Placement | None = None
    for at in _removable(candidates):
        if not _allowed(candidates, [*taken, at]):
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
    """Probe with the candidates at these positions removed, and nobody else."""
    trial = attempt.fresh()
    for at in taken:
        trial.remove(candidates.jobs[at], candidates.modes[at])
    return trial.probe()


def _allowed(candidates: Candidates, taken: Sequence[int]) -> bool:
    """Whether the candidates' condition lets these make way one after the other."""
    allowed = candidates.allowed_after
    jobs = [candidates.jobs[at] for at in taken]
    return allowed is None or all(allowed(job, tuple(jobs[:at])) for at, job in enumerate(jobs))


def _removable(candidates: Candidates) -> list[int]:
    return [at for at, mode in enumerate(candidates.modes) if mode is not PreemptMode.OFF]

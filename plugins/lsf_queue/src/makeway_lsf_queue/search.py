"""Choose victims: LSF's walk, MINI_JOB and OPTIMAL_MINI_JOB (spec lsf 3.4).

Method of the walk: take candidates in order until the job fits (found by doubling and halving, so that few probes
are needed), then give back, last one first, whoever is not needed. Without MINI_JOB parallel victims of a
parallel preemptor are not given back: LSF may suspend more of them than needed. All or nothing: if all
candidates together do not make room, nobody is touched.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from makeway.model import Attempt, Candidates, Choice, ClusterView, Job, Placement, PreemptMode
from makeway_lsf_queue import jobs, resources
from makeway_lsf_queue.site import Site, site_of

_MOST_SETS = 20_000
"""Most sets that OPTIMAL_MINI_JOB looks at before it is content with a small one."""


def search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | None:
    """Return whom to preempt and where the job then starts; None: it would not help."""
    site = site_of(view)
    prober = _Prober(attempt, candidates, site)
    everybody = list(range(len(candidates.jobs)))
    free = [at for at in everybody if jobs.is_suspended(candidates.jobs[at])]
    costly = everybody[len(free) :]
    taken = _walk(prober, free, costly)
    if taken is None:
        return None
    optimal = "OPTIMAL_MINI_JOB" in site.preempt_for and jobs.is_parallel(attempt.job)
    if optimal:
        taken = _fewest(prober, free, costly, taken, site.settings.exact_search)
        method = "fewest jobs (OPTIMAL_MINI_JOB)"
    else:
        keeps = _keeps_needless(attempt.job, site)
        taken = _give_back(prober, free, taken, candidates.jobs, keeps=keeps)
        method = "in order until it fits" + ("" if keeps else ", then given back who is not needed")
    placement = prober.place([*free, *taken])
    if placement is None:
        return None
    used = [at for at in free if candidates.jobs[at].nodes & placement.allocation.nodes]
    return Choice(
        placement=placement,
        victims=(*used, *taken),
        method=method,
        considered=len(candidates.jobs),
    )


def _keeps_needless(job: Job, site: Site) -> bool:
    """Whether parallel victims stay taken although they turned out needless."""
    return jobs.is_parallel(job) and "MINI_JOB" not in site.preempt_for and site.settings.over_preempt


class _Prober:
    """Asks where the job fits without some of the candidates."""

    def __init__(self, attempt: Attempt, candidates: Candidates, site: Site) -> None:
        self._attempt = attempt
        self._candidates = candidates
        self._frees_memory = resources.memory_is_preemptable(site)

    def place(self, taken: Sequence[int]) -> Placement | None:
        """Return the place of the job once the candidates at the positions `taken` have made way."""
        attempt = self._attempt.fresh()
        for at in taken:
            attempt.remove(self._candidates.jobs[at], self._mode(at))
        found = attempt.probe()
        if not isinstance(found, Placement) or not self._memory_is_there(found, taken):
            return None
        return found

    def _mode(self, at: int) -> PreemptMode:
        """Suspension gives back reserved memory if memory is preemptable (8.2): as if the job were gone."""
        mode = self._candidates.modes[at]
        return PreemptMode.REQUEUE if mode is PreemptMode.SUSPEND and self._frees_memory else mode

    def _memory_is_there(self, found: Placement, taken: Sequence[int]) -> bool:
        """Whether what victims use beyond their reservation leaves enough (8.2)."""
        if not self._frees_memory or found.allocation.memory_mb is None:
            return True
        beyond: dict[int, int] = {}
        for at in taken:
            for index, amount in resources.overused(self._candidates.jobs[at]).items():
                beyond[index] = beyond.get(index, 0) + amount
        wanted = dict(zip(found.allocation.node_indices, found.allocation.memory_mb, strict=True))
        nodes = self._attempt.job.partition.nodes
        return not any(
            wanted.get(index) and nodes >> index & 1 and self._short(index, wanted[index], amount, taken)
            for index, amount in beyond.items()
        )

    def _short(self, index: int, wanted: int, beyond: int, taken: Sequence[int]) -> bool:
        """Whether the host has less than `wanted` left beside what stopped victims use without a reservation.

        Victims' reservations come back; what they use on top of it stays in use.
        """
        freed = 0
        for at in taken:
            allocation = self._candidates.jobs[at].allocation
            if allocation is not None and allocation.memory_mb and index in allocation.node_indices:
                freed += allocation.memory_mb[allocation.node_indices.index(index)]
        return wanted > freed if beyond >= freed else wanted > freed - beyond


def _walk(prober: _Prober, free: list[int], costly: list[int]) -> list[int] | None:
    """Return the shortest prefix of `costly` with which the job fits; None: not even all of it is enough."""
    if prober.place(free) is not None:
        return []
    reached = 1
    while reached < len(costly) and prober.place([*free, *costly[:reached]]) is None:
        reached *= 2
    if reached >= len(costly) and prober.place([*free, *costly]) is None:
        return None
    low, high = reached // 2, min(reached, len(costly))
    while high - low > 1:
        middle = (low + high) // 2
        if prober.place([*free, *costly[:middle]]) is None:
            low = middle
        else:
            high = middle
    return costly[:high]


def _give_back(
    prober: _Prober, free: list[int], taken: list[int], listed: Sequence[Job], *, keeps: bool
) -> list[int]:
    """Return `taken` without those who are not needed, asked last one first."""
    placement = prober.place([*free, *taken])
    if placement is not None and len(taken) > 1:
        near = [at for at in taken if listed[at].nodes & placement.allocation.nodes]
        if len(near) < len(taken) and prober.place([*free, *near]) is not None:
            taken = [at for at in taken if at in near or (keeps and jobs.is_parallel(listed[at]))]
    for at in reversed(taken[:-1] if not keeps else taken):
        if keeps and jobs.is_parallel(listed[at]):
            continue
        fewer = [other for other in taken if other != at]
        if prober.place([*free, *fewer]) is not None:
            taken = fewer
    return taken


def _fewest(
    prober: _Prober, free: list[int], costly: list[int], taken: list[int], exact: int
) -> list[int]:
    """Return as few victims as can be found: exactly up to `exact`, else the largest first."""
    listed = prober._candidates.jobs
    best = _give_back(prober, free, taken, listed, keeps=False)
    largest = sorted(costly, key=lambda at: (-listed[at].spec.cpus, at))
    prefix = _walk(prober, free, largest)
    if prefix is not None:
        other = _give_back(prober, free, prefix, listed, keeps=False)
        if len(other) < len(best):
            best = sorted(other)
    tried = 0
    for size in range(1, min(exact, len(best) - 1) + 1):
        for chosen in itertools.combinations(costly, size):
            tried += 1
            if tried > _MOST_SETS:
                return best
            if prober.place([*free, *chosen]) is not None:
                return list(chosen)
    return best

"""Choose victims: LSF's walk, MINI_JOB and OPTIMAL_MINI_JOB (lsf 3.4).

Method of the walk: take candidates in order until the job fits (found by doubling and halving, so that few probes
are needed), then give back, last one first, what is not needed. Suspended jobs whose slots it may use are looked at
before any other, as they cost nothing: what makes way never takes room away. Without MINI_JOB parallel victims of
a parallel preemptor are not given back on the hosts that it will use: LSF may suspend more of them than needed. All or
nothing: if all candidates together do not make room, none is touched.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import Attempt, Candidates, Choice, ClusterView, Job, JobState, Placement, PreemptMode
from makeway_lsf_queue import jobs, resources
from makeway_lsf_queue.asking import KEY
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.survey import survey_of

_SUSPENDED = JobState.SUSPENDED
_MOST_SETS = 2_000
"""Most sets that OPTIMAL_MINI_JOB looks at before it is content with a small one."""


_ASKED = operator.attrgetter(
    *(
        "user",
        "group",
        "account",
        "qos",
        "min_nodes",
        "max_nodes",
        "tasks",
        "cpus_per_task",
        "tasks_per_node",
    ),
    *("tasks_per_socket", "tasks_per_core", "threads_per_core", "sockets_per_node", "cores_per_socket"),
    *("min_cpus_per_node", "distribution", "spread", "memory_mb_per_node", "memory_mb_per_cpu"),
    *("licenses_any", "exclusive", "oversubscribe", "contiguous", "features", "required_nodes"),
    *("excluded_nodes", "mcs_label", "reservation"),
)
"""What a job asks for, as far as it can be told from another that asks for the same."""


def search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | None:
    """Return what to preempt and where the job then starts; None: it would not help."""
    site = site_of(view)
    survey = survey_of(site, view)
    survey.begin(view.now)
    named = any(candidates is each for each in survey.named.values())
    request = (*_request(attempt.job), *((id(candidates),) if named else map(id, candidates.jobs)))
    if request in survey.futile:
        return None
    prober = _Prober(attempt, candidates, site, view)
    free = list(range(_stopped_first(candidates.jobs)))
    costly = list(range(len(free), len(candidates.jobs)))
    taken: list[int] | None = []
    if prober.place(free) is None:
        taken = _walk(prober, free, costly)
    if taken is None:
        survey.futile.add(request)
        return None
    optimal = "OPTIMAL_MINI_JOB" in site.preempt_for and jobs.is_parallel(attempt.job)
    if optimal:
        taken = _fewest(prober, free, costly, taken, site.settings.exact_search)
        method = "fewest jobs (OPTIMAL_MINI_JOB)"
    else:
        keeps = _keeps_needless(attempt.job, site)
        taken = _give_back(prober, free, taken, keeps=keeps)
        method = "in order until it fits" + ("" if keeps else ", then without those it does not need")
    placement = prober.place([*free, *taken])
    if placement is None:
        return None
    chosen = placement.allocation.nodes
    used = [at for at, job in zip(free, candidates.jobs, strict=False) if job.nodes & chosen]
    return Choice(
        placement=placement,
        victims=(*used, *taken),
        method=method,
        considered=len(candidates.jobs),
    )


def _stopped_first(listed: Sequence[Job]) -> int:
    """Return how many jobs at the head of the candidates the system has suspended already."""
    for at, job in enumerate(listed):
        if job.state is not _SUSPENDED or not jobs.is_suspended(job):
            return at
    return len(listed)


def _without(attempt: Attempt, pairs: Sequence[tuple[Job, PreemptMode]]) -> Placement | None:
    """Return the place of a job once others have made way; None: it has none. The attempt is a fresh one."""
    for job, mode in pairs:
        attempt.remove(job, mode)
    found = attempt.probe()
    return found if isinstance(found, Placement) else None


def _request(job: Job) -> tuple[object, ...]:
    """Return all that room and limits depend on."""
    spec = job.spec
    said = (
        repr(spec.gres),
        repr(spec.gres_total),
        repr(spec.licenses),
        repr(jobs.rusage(job)),
        spec.attributes.get(KEY),
    )
    return (job.partition.name, job.time_limit, spec.attributes.get("application"), *said, *_ASKED(spec))


def _keeps_needless(job: Job, site: Site) -> bool:
    """Whether parallel victims stay taken although they turned out needless."""
    return jobs.is_parallel(job) and "MINI_JOB" not in site.preempt_for and site.settings.over_preempt


class _Prober:
    """Asks where the job fits without some of the candidates."""

    def __init__(self, attempt: Attempt, candidates: Candidates, site: Site, view: ClusterView) -> None:
        self.jobs = candidates.jobs
        self._attempt = attempt
        self._modes = candidates.modes
        self._view = view
        self._frees_memory = resources.memory_is_preemptable(site)
        self._places: dict[tuple[int, ...], Placement | None] = {}
        """What was found, by who had made way."""

    def place(self, taken: Sequence[int]) -> Placement | None:
        """Return the place of the job once the candidates at the positions `taken` have made way."""
        asked = tuple(taken)
        if asked not in self._places:
            self._places[asked] = self._place(asked)
        return self._places[asked]

    def _place(self, taken: Sequence[int]) -> Placement | None:
        jobs = self.jobs
        modes = list(map(self._mode, range(len(jobs)))) if self._frees_memory else self._modes
        pairs = list(zip(map(jobs.__getitem__, taken), map(modes.__getitem__, taken), strict=True))
        found = _without(self._attempt.fresh(), pairs)
        return found if found is not None and self._memory_is_there(found, taken) else None

    def is_kept_out(self) -> bool:
        """Whether limits keep the job out even if all candidates make way; `place` asks them too, and takes longer."""
        modes = map(self._mode, range(len(self.jobs))) if self._frees_memory else self._modes
        return self._view.kept_out(self._attempt.job, tuple(zip(self.jobs, modes, strict=True))) is not None

    def _mode(self, at: int) -> PreemptMode:
        """Suspension gives back reserved memory if memory is preemptable (8.2): as if the job were gone."""
        mode = self._modes[at]
        return PreemptMode.REQUEUE if mode is PreemptMode.SUSPEND and self._frees_memory else mode

    def _memory_is_there(self, found: Placement, taken: Sequence[int]) -> bool:
        """Whether what jobs use beyond their reservation leaves enough (8.2)."""
        memory = found.allocation.memory_mb
        if not self._frees_memory or memory is None:
            return True
        gone = {self.jobs[at].id for at in taken}
        for index, wanted in zip(found.allocation.node_indices, memory, strict=True):
            used = sum(resources.memory_kept(job, index, job.id in gone) for job in self._view.jobs_on(index))
            if used + wanted > self._view.cluster.nodes[index].usable_memory_mb:
                return False
        return True


def _walk(prober: _Prober, free: list[int], costly: list[int]) -> list[int] | None:
    """Return the shortest prefix of `costly` with which the job fits; None: not even all of it is enough.

    Mostly not even all are, so that is asked first.
    """
    if prober.place(free) is not None:
        return []
    if not costly or prober.is_kept_out() or prober.place([*free, *costly]) is None:
        return None
    reached = 1
    while reached < len(costly) and prober.place([*free, *costly[:reached]]) is None:
        reached *= 2
    return _shortest(prober, free, costly, reached // 2, min(reached, len(costly)))


def _shortest(prober: _Prober, free: list[int], costly: list[int], low: int, high: int) -> list[int]:
    """Return the shortest prefix that is enough, halving: one of `low` is not, one of `high` is."""
    while high - low > 1:
        middle = (low + high) // 2
        if prober.place([*free, *costly[:middle]]) is None:
            low = middle
        else:
            high = middle
    return costly[:high]


def _give_back(prober: _Prober, free: list[int], taken: list[int], *, keeps: bool) -> list[int]:
    """Return `taken` without those who are not needed, asked last one first.

    With `keeps`, parallel jobs stay taken all the same if they are on the hosts that the walk has chosen.

    The last one that the walk took is needed, else the walk had ended before it.
    """
    listed = prober.jobs
    placement = prober.place([*free, *taken])
    chosen = placement.allocation.nodes if keeps and placement is not None else 0
    if placement is not None and len(taken) > 1:
        near = [at for at in taken if listed[at].nodes & placement.allocation.nodes]
        if len(near) < len(taken) and prober.place([*free, *near]) is not None:
            taken = [at for at in taken if at in near or _stays(listed[at], chosen)]
    for at in reversed(taken[:-1]):
        if _stays(listed[at], chosen):
            continue
        fewer = [other for other in taken if other != at]
        if prober.place([*free, *fewer]) is not None:
            taken = fewer
    return taken


def _stays(job: Job, chosen: NodeBits) -> bool:
    return bool(job.nodes & chosen) and jobs.is_parallel(job)


def _fewest(prober: _Prober, free: list[int], costly: list[int], taken: list[int], exact: int) -> list[int]:
    """Return as few victims as can be found: exactly up to `exact`, else the largest first."""
    listed = prober.jobs
    best = _give_back(prober, free, taken, keeps=False)
    largest = sorted(costly, key=lambda at: (-listed[at].spec.cpus, at))
    prefix = _walk(prober, free, largest)
    if prefix is not None:
        other = _give_back(prober, free, prefix, keeps=False)
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

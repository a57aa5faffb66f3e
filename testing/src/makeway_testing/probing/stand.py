"""Stand in for the parts of a policy that the plugin on trial is not: whole nodes, lower tiers give way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.hookspecs import hookimpl
from makeway.model import (
    Allocation,
    Attempt,
    Blocked,
    Candidates,
    Choice,
    ClusterView,
    Cover,
    Forecast,
    Job,
    Placement,
    PreemptMode,
    Seconds,
    Selector,
)


class WholeNodes:
    """Finds the first idle nodes; keeps no books."""

    def placed(self, job: Job) -> None:
        """Ignore it: the view knows."""

    def released(self, job: Job) -> None:
        """Ignore it: the view knows."""

    def suspended(self, job: Job) -> None:
        """Ignore it: the view knows."""

    def resumed(self, job: Job) -> None:
        """Ignore it: the view knows."""

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Keep all."""
        return jobs

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> Attempt:
        """Begin with no job gone."""
        return WholeNodeAttempt(job, nodes, view)

    def forecast(
        self, job: Job, nodes: NodeBits, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]]
    ) -> Forecast | None:
        """Let jobs end as their limits say."""
        attempt = WholeNodeAttempt(job, nodes, view)
        at: Seconds = view.now
        for deadline, _, other in ((view.now, 0, None), *view.releases()):
            if other is not None:
                at = max(at, deadline)
                attempt.remove(other, PreemptMode.CANCEL)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=at, nodes=found.allocation.nodes, eligible=found.allocation.nodes)
        return None

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Count nodes."""
        size = job.partition.nodes.bit_count()
        if job.size > size:
            return Blocked(reason="PartitionNodeLimit", wanted=job.size, available=size, never=True)
        return None


class WholeNodeAttempt:
    """One job against the nodes that active jobs hold."""

    def __init__(self, job: Job, nodes: NodeBits, view: ClusterView) -> None:
        self._job = job
        self._nodes = nodes
        self._view = view
        self._gone: set[str] = set()

    @property
    def job(self) -> Job:
        """The pending job."""
        return self._job

    def probe(self) -> Placement | Blocked:
        """Take the first nodes that no job holds."""
        busy = 0
        for other in self._view.active:
            if other.id not in self._gone:
                busy |= other.nodes
        free = self._nodes & ~busy
        if free.bit_count() < self._job.size:
            return Blocked(wanted=self._job.size, available=free.bit_count())
        nodes = bitmap.first_n(free, self._job.size)
        return Placement(allocation=Allocation(nodes=nodes, node_indices=tuple(bitmap.indices(nodes))))

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take `job` away with all that it holds."""
        self._gone.add(job.id)

    def fresh(self) -> Attempt:
        """Return an attempt with nothing removed."""
        return WholeNodeAttempt(self._job, self._nodes, self._view)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Offer no description."""
        return None


class _AskedLast:
    """Stands among those that protect jobs, which are asked after all others."""

    @staticmethod
    @hookimpl
    def makeway_protect() -> Mapping[str, str]:
        """No job."""
        return {}


class PlainSelector(_AskedLast):
    """Plays the part of the selector and of the search."""

    @staticmethod
    @hookimpl
    def makeway_selector() -> Selector:
        """Whole nodes."""
        return WholeNodes()

    @staticmethod
    @hookimpl
    def makeway_search(attempt: Attempt, candidates: Candidates) -> Choice | None:
        """One candidate after another until it fits."""
        for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes, strict=True)):
            attempt.remove(job, mode)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Choice(placement=found, victims=tuple(range(at + 1)))
        return None


class PlainPolicy(_AskedLast):
    """Plays the part of the preempt policy."""

    @staticmethod
    @hookimpl
    def makeway_preempt_candidates(preemptor: Job, active: Sequence[Job], view: ClusterView) -> Candidates:
        """Jobs of lower tiers, the youngest first, in the cluster's mode."""
        tier = preemptor.partition.priority_tier
        jobs = [job for job in active if job.partition.priority_tier < tier]
        jobs.sort(key=lambda job: (-(job.started_at or 0.0), job.index))
        mode = view.preempt_mode.action or PreemptMode.REQUEUE
        return Candidates(jobs=tuple(jobs), modes=(mode,) * len(jobs))


SELECTOR = "stand-in selector"
POLICY = "stand-in policy"
STAND_INS = {SELECTOR: PlainSelector, POLICY: PlainPolicy}
"""By the names under which configurations have them."""

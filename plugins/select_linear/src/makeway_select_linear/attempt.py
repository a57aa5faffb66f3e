"""Place one job against the books (slurm-gang-and-select 4.2.3, 4.2.4)."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from makeway import bitmap, licences
from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.model import (
    NOTHING,
    Allocation,
    Blocked,
    ClusterView,
    Cover,
    Job,
    JobState,
    Placement,
    PreemptMode,
)
from makeway.obstacle import counted
from makeway_select_linear.asked import Asked
from makeway_select_linear.best_fit import best_fit, like_nodes
from makeway_select_linear.counting import Counting
from makeway_select_linear.cover import cover_of
from makeway_select_linear.nodes import LinearNodes
from makeway_select_linear.request import Request, memory_charged
from makeway_select_linear.thought import Thought

_UNLIMITED = 1 << 30
IDLE = "idle nodes"
"""Why a job lies where it does, most of the time."""


class LinearAttempt(Asked):
    """One job against the books. See `makeway.model.Attempt`."""

    __slots__ = ("_thought", "in_one_look", "planning", "removed")

    def __init__(
        self,
        selector: LinearNodes,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        *,
        planning: bool = False,
        request: Request | None = None,
    ) -> None:
        self.selector = selector
        self.job = job
        self.nodes = nodes
        self.view = view
        self.request = selector.among(job, request if request is not None else selector.request(job), nodes)
        self.most = self.request.limit - 1
        self.planning = planning
        self.removed: list[tuple[Job, PreemptMode]] = []
        self.in_one_look = planning and view.rule("linear_forecast_tolerates_one")
        """Whether nodes with so many jobs count as idle ones do, instead of only where idle ones do not suffice."""
        if self.in_one_look:
            self.most = max(self.most, 1)
        self._thought: Thought | None = None

    def fresh(self) -> LinearAttempt:
        """Return an attempt for the same job with nothing removed."""
        return LinearAttempt(
            self.selector, self.job, self.nodes, self.view, planning=self.planning, request=self.request
        )

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if `job` were gone (slurm-preemption 5.1.3 no. 1)."""
        if self._thought is None:
            self._thought = Thought(self)
        self._thought.remove(job, mode)
        self.removed.append((job, mode))

    def only_counts(self) -> bool:
        """Whether nothing but the number of jobs per node decides which nodes are usable."""
        spec = self.job.spec
        return not (self.selector.books.track_memory or spec.gres or spec.features)

    def counting(self) -> Counting:
        """Begin to take jobs away, where only their number counts."""
        selector = self.selector
        static = selector._static(self.job, self.nodes, self.request)
        return Counting(selector.books, static, self.most, len(selector.cpus))

    def usable_without(self) -> NodeBits:
        """Return the nodes that are usable without the jobs removed so far."""
        return self._thought.usable() if self._thought is not None else 0

    def placed_at(self, nodes: NodeBits, why: str) -> Placement:
        """Return the placement on exactly `nodes`."""
        return self._placement(nodes, why)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Describe the problem as "free so many nodes"; None where it is more than that."""
        return cover_of(self, jobs, modes)

    # ------------------------------------------------------------------------------ probe
    def probe(self) -> Placement | Blocked:
        """Place the job as things stand, or as they would be without those removed."""
        spec = self.job.spec
        request = self.request
        if (
            self._thought is None
            and not self.planning
            and self.selector.plain
            and request.limit == 1
            and request.cpus_per_node <= 1
            and not spec.features
            and not request.too_small
        ):
            return self._plain_probe(request)
        if self.selector.books.has_gres or self.job.spec.gres_total or self.job.spec.gres:
            impossible = self.selector.possible(self.job, self.view)
            if impossible is not None:
                return impossible
        choices = self.selector.alternatives(self.job)
        if self._thought is not None and self.view.rule("last_alternative_preempts"):
            choices = choices[-1:]  # only the last alternative may preempt (slurm-preemption 5.0 no. 6)
        for choice in choices:
            taken = self._place(choice, request)
            if taken is not None:
                return self._placement(*taken)
        return self._blocked()

    def _plain_probe(self, request: Request) -> Placement | Blocked:
        """Probe where only free nodes count: the common case, without the detours."""
        selector = self.selector
        free = self.nodes & ~selector.books.running.over[0]
        if self.job.excluded:
            free &= ~self.job.excluded
        if bitmap.has(free, request.min_nodes):
            if request.alike is not None:
                found = like_nodes(free, request.alike, request.max_nodes)
            else:
                found = best_fit(free, request, selector.cpus, selector.uniform)
            if found is not None:
                return self._placement(found, IDLE)
        impossible = selector.possible(self.job, self.view)
        return impossible if impossible is not None else _too_few(request, free.bit_count())

    def _place(self, choice: Alternatives, request: Request) -> tuple[NodeBits, str] | None:
        if self._thought is not None:
            usable = choice.among(self._thought.usable())
            taken = self.selector.best_fit(usable, request, choice)
            return (taken, "nodes of candidates") if taken is not None else None
        nodes = choice.among(self.nodes)
        asked, request = request, self.selector.among(self.job, request, nodes)
        static = self.selector._static(self.job, nodes, request)
        if self.in_one_look:
            usable = self.selector.usable(self.job, request, static, self.most, _UNLIMITED)
            taken = self.selector.best_fit(usable, request, choice)
            return (taken, "nodes that look shareable") if taken is not None else None
        node_sets = self.selector.node_sets if request.shares else self.selector.record_sets
        if len(node_sets) == 1 or self.planning:
            return self._search_levels(static, request, choice)
        reached = request.required  # named nodes belong to every set (recorded: linear_required_weight)
        last = len(node_sets) - 1
        for at, node_set in enumerate(node_sets):
            reached |= node_set
            some = static & reached
            if asked.memory_of_first is not None:  # recorded: linear_memory_of_first_node_weight
                request = self.selector.among(self.job, asked, nodes & reached)
                some = self.selector._static(self.job, nodes & reached, request)
            size = some.bit_count()
            if size < request.min_nodes or (size < request.target and at < last):
                continue
            found = self._search_levels(some, request, choice)
            if found is not None:
                return found
        return None

    def _search_levels(
        self, nodes: NodeBits, request: Request, choice: Alternatives
    ) -> tuple[NodeBits, str] | None:
        """Try idle nodes, then ever more loaded ones (slurm-gang-and-select 4.2.3)."""
        selector = self.selector
        before = -1
        for running in range(request.limit):
            last = running == request.limit - 1
            for tolerated in (0, 4):
                total = _UNLIMITED if last else running + tolerated
                usable = selector.usable(self.job, request, nodes, running, total)
                size = usable.bit_count()
                if size == before or size < request.min_nodes:
                    continue
                before = size
                if running > 0 and (mate := self._job_mate(usable, request)) is not None:
                    return mate
                found = selector.best_fit(usable, request, choice)
                if found is not None:
                    return found, IDLE if running == 0 else "nodes shared with other jobs"
        return None

    def _job_mate(self, usable: NodeBits, request: Request) -> tuple[NodeBits, str] | None:
        """Share exactly the nodes of one running job of the same size (4.2.4)."""
        for other in self.view.active:
            allocation = other.allocation
            if other.state is not JobState.RUNNING or allocation is None:
                continue
            nodes = allocation.nodes
            if (
                len(allocation.node_indices) == request.target
                and not nodes & ~usable
                and other.spec.contiguous is request.contiguous
                and not request.required & ~nodes
                and sum(self.selector.cpus[index] for index in allocation.node_indices) >= request.min_cpus
            ):
                return nodes, f"shares the nodes of {other.id}"
        return None

    def _placement(self, nodes: NodeBits, why: str) -> Placement:
        selector, spec = self.selector, self.job.spec
        if selector.plain and not spec.licenses:
            known = remembered if nodes.bit_length() <= SMALL else whole_nodes
            return known(nodes, self.request.shares, why)
        indices = tuple(bitmap.indices(nodes))
        memory = None
        if selector.books.track_memory:
            listed = selector.cluster.nodes
            memory = tuple(memory_charged(self.request, listed[index]) for index in indices)
        counts = spec.gres if selector.counts_gres(self.job) else NOTHING
        gres = {name: (count,) * len(indices) for name, count in counts.items()} if counts else NOTHING
        return Placement(
            allocation=Allocation(
                nodes=nodes,
                node_indices=indices,
                memory_mb=memory,
                gres=gres,
                licenses=licences.taken_by(self.job, self.view.licenses_free) if spec.licenses else NOTHING,
                shared=self.request.shares,
            ),
            why=why,
        )

    def _blocked(self) -> Blocked:
        if not self.removed:
            impossible = self.selector.possible(self.job, self.view)
            if impossible is not None:
                return impossible
        request = self.request
        static = self.selector._static(self.job, self.nodes, request)
        free = self.selector.usable(self.job, request, static, request.limit - 1, _UNLIMITED)
        return _too_few(request, free.bit_count())


def whole_nodes(nodes: NodeBits, shared: bool, why: str) -> Placement:
    """Return the placement on nodes that count for nothing but themselves."""
    allocation = Allocation(nodes=nodes, node_indices=bitmap.index_tuple(nodes), shared=shared)
    return Placement(allocation=allocation, why=why)


remembered = functools.lru_cache(maxsize=1 << 14)(whole_nodes)
SMALL = 1024
"""Placements on clusters of so many nodes are worth remembering: values, the same for every job."""


def _too_few(request: Request, free: int) -> Blocked:
    return Blocked(
        wanted=request.min_nodes,
        available=free,
        detail=f"{counted(request.min_nodes, 'node')} wanted, {free} usable",
    )

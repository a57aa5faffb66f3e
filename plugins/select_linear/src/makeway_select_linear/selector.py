"""Find whole nodes for a job, now or later (spec slurm-gang-and-select 4.1.4, 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import Alternatives, alternatives
from makeway.model import (
    NOTHING,
    Allocation,
    Blocked,
    Cluster,
    ClusterView,
    Cover,
    Forecast,
    Job,
    JobState,
    Placement,
    PreemptMode,
    Seconds,
    SuspendedBy,
)
from makeway_select_linear.best_fit import best_fit
from makeway_select_linear.books import Books
from makeway_select_linear.counting import Counting
from makeway_select_linear.cover import cover_of
from makeway_select_linear.request import Request, memory_need, over_limit, request_of

_UNLIMITED = 1 << 30


class LinearSelector:
    """The selector of one run. See `makeway.model.Selector`."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        cluster = view.cluster
        self.cluster: Cluster = cluster
        parameters = {word.upper() for word in view.select_parameters}
        self.books = Books(cluster, track_memory="CR_MEMORY" in parameters)
        self.one_task_per_core = "CR_ONE_TASK_PER_CORE" in parameters
        self.all_nodes = bitmap.full(len(cluster.nodes))
        self.node_sets = list(_node_sets(cluster, per_record=False))
        self.record_sets = self.node_sets
        if view.rule("record_node_sets") and view.preempt == "preempt/none":
            self.record_sets = list(_node_sets(cluster, per_record=True))
        self.cpus = [node.cores if self.one_task_per_core else node.cpus for node in cluster.nodes]
        self.uniform = self.cpus[0] if len(set(self.cpus)) == 1 else None
        self.uniform_memory = len({(n.memory_mb, n.usable_memory_mb) for n in cluster.nodes}) == 1
        self._by_cpus = _AtLeast(self.cpus)
        self._requests: dict[str, tuple[object, Request]] = {}
        self._by_shape: dict[tuple[object, ...], Request] = {}
        self._possible: dict[str, Blocked | None] = {}
        self.plain = (
            self.uniform is not None
            and not self.books.track_memory
            and not self.books.has_gres
            and len(self.node_sets) == len(self.record_sets) == 1
        )
        """Whether nodes differ in nothing that this selector looks at."""

    # ----------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Charge a job that started."""
        self._requests.pop(job.id, None)
        self._possible.pop(job.id, None)
        self.books.add(job)

    def released(self, job: Job) -> None:
        """Take back what a job held."""
        self.books.remove(job)

    def suspended(self, job: Job) -> None:
        """Take note of a suspension."""
        self.books.suspend(job)

    def resumed(self, job: Job) -> None:
        """Take note that a job continues."""
        self.books.resume(job)

    # ----------------------------------------------------------------------------- asking
    def request(self, job: Job) -> Request:
        """Return the normalised request of `job` in the partition that it is tried in."""
        known = self._requests.get(job.id)
        if known is not None and known[0] is job.partition:
            return known[1]
        key = _shape(job)
        request = self._by_shape.get(key)
        if request is None:
            if len(self._by_shape) > 100_000:
                self._by_shape.clear()
            request = self._by_shape[key] = request_of(job, self.cluster)
        self._requests[job.id] = (job.partition, request)
        return request

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Drop jobs that need more nodes than could be usable for anybody."""
        books = self.books
        free = (nodes & ~books.running.over[0]).bit_count()
        shared = books.running.over[0] & ~books.exclusive.over[0]
        if shared:
            free += (nodes & shared).bit_count()
        return [job for job in jobs if job.size <= free]

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> LinearAttempt:
        """Begin an attempt."""
        return LinearAttempt(self, job, nodes, view)

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        if job.id not in self._possible:
            self._possible[job.id] = self._check_possible(job, view)
        return self._possible[job.id]

    def _check_possible(self, job: Job, view: ClusterView) -> Blocked | None:
        request = self.request(job)
        nodes = self._static(job, job.partition.nodes & view.up, request)
        for choice in self.alternatives(job):
            if best_fit(nodes & choice.nodes, request, self.cpus, self.uniform) is not None:
                return None
        return Blocked(
            reason="BadConstraints",
            detail=self._why_impossible(job, request, nodes),
            wanted=request.min_nodes,
            available=nodes.bit_count(),
            never=True,
        )

    def _why_impossible(self, job: Job, request: Request, nodes: NodeBits) -> str:
        for index in bitmap.indices(job.partition.nodes)[:1]:
            limit = over_limit(request, job.partition, self.cluster, self.cluster.nodes[index])
            if limit:
                return limit
        return (
            f"{request.min_nodes} nodes and {request.min_cpus} CPUs are asked for; "
            f"{nodes.bit_count()} nodes of the partition could serve"
        )

    def alternatives(self, job: Job) -> Sequence[Alternatives]:
        """Return the sets of nodes with the wanted features, in the order in which they are tried."""
        return alternatives(job.spec.features, self.cluster)

    def _static(self, job: Job, nodes: NodeBits, request: Request) -> NodeBits:
        """Drop nodes that could never serve the job."""
        nodes &= ~job.excluded
        if request.cpus_per_node > 1:
            nodes &= self._by_cpus(request.cpus_per_node)
        if self.books.track_memory:
            nodes &= self._memory_could(job, request, nodes)
        for name, count in job.spec.gres.items():
            nodes &= bitmap.of([n.index for n in self.cluster.nodes if n.gres.get(name, 0) >= count])
        return nodes

    def _memory_could(self, job: Job, request: Request, nodes: NodeBits) -> NodeBits:
        listed = self.cluster.nodes
        if self.uniform_memory:
            fits = memory_need(request, listed[0]) <= listed[0].usable_memory_mb
            ok = fits and not over_limit(request, job.partition, self.cluster, listed[0])
            return nodes if ok else 0
        return bitmap.of(
            [
                index
                for index in bitmap.indices(nodes)
                if memory_need(request, listed[index]) <= listed[index].usable_memory_mb
                and not over_limit(request, job.partition, self.cluster, listed[index])
            ]
        )

    def memory_free(self, request: Request, nodes: NodeBits, used: Mapping[int, int] | None = None) -> NodeBits:
        """Drop nodes without the memory that the request needs.

        :param used: memory in use by node index where it differs from the books.
        """
        listed, books = self.cluster.nodes, self.books
        busy = nodes & books.used_memory
        short = []
        for index in bitmap.indices(busy):
            held = books.memory[index] if used is None else used.get(index, books.memory[index])
            if held + memory_need(request, listed[index]) > listed[index].usable_memory_mb:
                short.append(index)
        return nodes & ~bitmap.of(short)

    def gres_free(self, job: Job, nodes: NodeBits, used: Mapping[str, Mapping[int, int]] = NOTHING) -> NodeBits:
        """Drop nodes without enough of a counted resource."""
        listed, books = self.cluster.nodes, self.books
        for name, count in job.spec.gres.items():
            taken = books.gres.get(name)
            if taken is None:
                continue
            freed: Mapping[int, int] = used.get(name, {})
            nodes &= bitmap.of(
                [
                    index
                    for index in bitmap.indices(nodes)
                    if listed[index].gres.get(name, 0) - taken[index] + freed.get(index, 0) >= count
                ]
            )
        return nodes

    def usable(self, job: Job, request: Request, nodes: NodeBits, running: int, total: int) -> NodeBits:
        """Return the nodes with at most `running` jobs running and `total` jobs in all (4.2.2)."""
        books = self.books
        nodes &= ~books.exclusive.over[0] & ~books.running.above(running)
        if total < _UNLIMITED:
            nodes &= ~books.total.above(total)
        if books.track_memory:
            nodes = self.memory_free(request, nodes)
        if job.spec.gres:
            nodes = self.gres_free(job, nodes)
        return nodes

    # ---------------------------------------------------------------------------- forecast
    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start (4.2.9); ends beyond the limits count as "now"."""
        request = self.request(job)
        usable = self._static(job, nodes, request)
        choice = self.alternatives(job)[-1].nodes if job.spec.features else self.all_nodes
        usable &= choice
        if _plain(request, job, self):
            return self._plain_forecast(job, request, usable, view, removable)
        attempt = LinearAttempt(self, job, nodes, view, planning=True)
        if attempt.only_counts():
            return self._counting_forecast(attempt, usable, view, removable)
        now = view.now
        found = attempt.probe()
        if isinstance(found, Placement):
            return _at(now, found.allocation.nodes, usable)
        if removable:
            for other, mode in removable:
                attempt.remove(other, mode)
            found = attempt.probe()
            if isinstance(found, Placement):
                return _at(now, found.allocation.nodes, usable, preempts=True)
        gone = {id(other) for other, _ in removable}
        for end, _, other in view.releases():
            if id(other) in gone:
                continue
            attempt.remove(other, PreemptMode.CANCEL)
            if attempt.usable_without().bit_count() < request.min_nodes:
                continue
            found = attempt.probe()
            if isinstance(found, Placement):
                return _at(max(end, now), found.allocation.nodes, usable)
        return None

    def _counting_forecast(
        self,
        attempt: LinearAttempt,
        eligible: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """The same where only the number of jobs per node counts."""
        now, request, counting = view.now, attempt.request, attempt.counting()

        def placed() -> NodeBits | None:
            if counting.usable < request.min_nodes:
                return None
            return best_fit(counting.nodes(), request, self.cpus, self.uniform)

        found = attempt.probe()
        if isinstance(found, Placement):
            return _at(now, found.allocation.nodes, eligible)
        for other, _ in removable:
            counting.remove(other)
        if removable and (nodes := placed()) is not None:
            return _at(now, nodes, eligible, preempts=True)
        gone = {id(other) for other, _ in removable}
        for end, _, other in view.releases():
            if id(other) in gone:
                continue
            _, new = counting.remove(other)
            if new and (nodes := placed()) is not None:
                return _at(max(end, now), nodes, eligible)
        return None

    def _plain_forecast(
        self,
        job: Job,
        request: Request,
        usable: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """The same for a job that only wants so many free nodes, of whatever kind."""
        del job
        now = view.now
        busy = self.books.running.over[0] & usable
        wanted = max(request.target, -(-request.min_cpus // (self.uniform or 1)))
        free = usable & ~busy
        have = free.bit_count()
        if have >= wanted:
            return _nodes_at(now, free, 0, wanted, usable, have)
        if removable:
            for other, mode in removable:
                if mode is not PreemptMode.OFF:
                    free |= other.nodes & usable
            have = free.bit_count()
            if have >= wanted:
                return _nodes_at(now, free, 0, wanted, usable, have, preempts=True)
        released = 0
        shadow: Seconds | None = None
        for end, _, other in view.releases():
            if shadow is not None and end > shadow:
                break
            gain = other.nodes & usable & ~free
            if gain:
                free |= gain
                released |= gain
                have += gain.bit_count()
                if shadow is None and have >= wanted:
                    shadow = max(end, now)
        if shadow is None:
            return None
        return _nodes_at(shadow, free, released, wanted, usable, have)


def _shape(job: Job) -> tuple[object, ...]:
    """Return all that the request of `job` depends on."""
    spec = job.spec
    return (
        job.partition.index,
        job.size,
        spec.max_nodes,
        spec.tasks,
        spec.cpus_per_task,
        spec.tasks_per_node,
        spec.min_cpus_per_node,
        spec.memory_mb_per_cpu,
        spec.memory_mb_per_node,
        spec.exclusive,
        spec.oversubscribe,
        spec.contiguous,
        job.required,
    )


def _plain(request: Request, job: Job, selector: LinearSelector) -> bool:
    books = selector.books
    return (
        selector.uniform is not None
        and not request.shares
        and not request.required
        and not request.contiguous
        and not books.track_memory
        and not job.spec.gres
        and request.target == request.min_nodes
        and not books.running.above(1)
    )


def _nodes_at(
    at: Seconds,
    free: NodeBits,
    released: NodeBits,
    wanted: int,
    eligible: NodeBits,
    have: int,
    *,
    preempts: bool = False,
) -> Forecast:
    """Keep nodes that are still busy rather than idle ones, so that idle ones stay usable meanwhile."""
    kept = bitmap.first_n(released, wanted)
    rest = wanted - kept.bit_count()
    if rest > 0:
        kept |= bitmap.first_n(free & ~released, rest)
    return Forecast(at=at, nodes=kept, preempts=preempts, eligible=eligible, spare=have - wanted)


def _at(at: Seconds, nodes: NodeBits, eligible: NodeBits, *, preempts: bool = False) -> Forecast:
    return Forecast(at=at, nodes=nodes, preempts=preempts, eligible=eligible)


class LinearAttempt:
    """One job against the books. See `makeway.model.Attempt`."""

    def __init__(
        self,
        selector: LinearSelector,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        *,
        planning: bool = False,
    ) -> None:
        self.selector = selector
        self.job = job
        self.nodes = nodes
        self.view = view
        self.planning = planning
        self.request = selector.request(job)
        self.removed: list[tuple[Job, PreemptMode]] = []
        self._thought: Thought | None = None

    def fresh(self) -> LinearAttempt:
        """Return an attempt for the same job with nothing removed."""
        return LinearAttempt(self.selector, self.job, self.nodes, self.view, planning=self.planning)

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take `job` away in thought (spec slurm-preemption 5.1.3 no. 1)."""
        if self._thought is None:
            self._thought = Thought(self)
        self._thought.remove(job, mode)
        self.removed.append((job, mode))

    def only_counts(self) -> bool:
        """Whether nothing but the number of jobs per node decides which nodes are usable."""
        spec = self.job.spec
        return not (self.selector.books.track_memory or spec.gres or spec.features or spec.licenses)

    def counting(self) -> Counting:
        """Begin to take jobs away, where only their number counts."""
        selector = self.selector
        static = selector._static(self.job, self.nodes, self.request)
        return Counting(selector.books, static, self.request, len(selector.cpus))

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
        if spec.licenses:
            short = self._licence_short()
            if short is not None:
                return short
        request = self.request
        if (
            self._thought is None
            and self.selector.plain
            and request.limit == 1
            and request.cpus_per_node <= 1
            and not spec.features
        ):
            return self._plain_probe(request)
        if self.selector.books.has_gres or self.job.spec.gres_total or self.job.spec.gres:
            impossible = self.selector.possible(self.job, self.view)
            if impossible is not None:
                return impossible
        for choice in self.selector.alternatives(self.job):
            taken = self._place(choice.nodes, request)
            if taken is not None:
                return self._placement(*taken)
        return self._blocked()

    def _plain_probe(self, request: Request) -> Placement | Blocked:
        """Probe where only free nodes count: the common case, without the detours."""
        selector = self.selector
        free = self.nodes & ~self.job.excluded & ~selector.books.running.over[0]
        size = free.bit_count()
        if size >= request.min_nodes:
            found = best_fit(free, request, selector.cpus, selector.uniform)
            if found is not None:
                return self._placement(found, "idle nodes")
        impossible = selector.possible(self.job, self.view)
        return impossible if impossible is not None else _too_few(request, size)

    def _licence_short(self) -> Blocked | None:
        """A licence shortage always ends the attempt under select/linear (spec slurm-preemption 1.11)."""
        wanted = self.job.spec.licenses
        if not wanted or self.planning:
            return None
        free = self.view.licenses_free
        enough = {name: free.get(name, 0) >= count for name, count in wanted.items()}
        if any(enough.values()) if self.job.spec.licenses_any else all(enough.values()):
            return None
        name = next(name for name, ok in enough.items() if not ok)
        return Blocked(
            reason="Licenses",
            resource="licences",
            wanted=wanted[name],
            available=free.get(name, 0),
            detail=f"{wanted[name]} of licence {name} wanted, {free.get(name, 0)} free",
        )

    def _place(self, choice: NodeBits, request: Request) -> tuple[NodeBits, str] | None:
        if self._thought is not None:
            usable = self._thought.usable() & choice
            taken = best_fit(usable, request, self.selector.cpus, self.selector.uniform)
            return (taken, "nodes of candidates") if taken is not None else None
        static = self.selector._static(self.job, self.nodes & choice, request)
        node_sets = self.selector.node_sets if request.shares else self.selector.record_sets
        if len(node_sets) == 1 or self.planning:
            return self._search_levels(static, request)
        reached = 0
        last = len(node_sets) - 1
        for at, node_set in enumerate(node_sets):
            reached |= node_set
            some = static & reached
            size = some.bit_count()
            if size < request.min_nodes or (size < request.target and at < last):
                continue
            found = self._search_levels(some, request)
            if found is not None:
                return found
        return None

    def _search_levels(self, nodes: NodeBits, request: Request) -> tuple[NodeBits, str] | None:
        """Try idle nodes, then ever more loaded ones (spec slurm-gang-and-select 4.2.3)."""
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
                found = best_fit(usable, request, selector.cpus, selector.uniform)
                if found is not None:
                    return found, "idle nodes" if running == 0 else "nodes shared with other jobs"
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
        indices = tuple(bitmap.indices(nodes))
        selector, spec = self.selector, self.job.spec
        if selector.plain and not spec.licenses:
            return Placement(
                allocation=Allocation(nodes=nodes, node_indices=indices, shared=self.request.shares), why=why
            )
        memory = None
        if selector.books.track_memory:
            listed = selector.cluster.nodes
            memory = tuple(memory_need(self.request, listed[index]) for index in indices)
        gres = {name: (count,) * len(indices) for name, count in spec.gres.items()} if spec.gres else NOTHING
        return Placement(
            allocation=Allocation(
                nodes=nodes,
                node_indices=indices,
                memory_mb=memory,
                gres=gres,
                licenses=_licences_taken(spec.licenses, spec.licenses_any, self.view),
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


def _too_few(request: Request, free: int) -> Blocked:
    return Blocked(
        wanted=request.min_nodes,
        available=free,
        detail=f"{request.min_nodes} nodes wanted, {free} usable",
    )


class Thought:
    """The books with some jobs taken out in thought."""

    def __init__(self, attempt: LinearAttempt) -> None:
        selector = attempt.selector
        self._selector = selector
        self._job = attempt.job
        self._request = attempt.request
        self._frees_memory = attempt.view.rule("linear_suspend_frees_memory")
        self.static = selector._static(attempt.job, attempt.nodes, attempt.request)
        books = selector.books
        self._running = books.running.copy()
        self._exclusive = books.exclusive.copy()
        self._memory: dict[int, int] = {}
        self._gres: dict[str, dict[int, int]] = {}

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take a job out: wholly, or its running count alone (spec slurm-preemption 5.1.3 no. 1)."""
        allocation = job.allocation
        if allocation is None or job.suspended_by is SuspendedBy.ADMIN:
            return  # one suspended by a person cannot be removed (section 10.1 no. 13)
        self._running.remove(allocation.nodes)
        if not allocation.shared:
            self._exclusive.remove(allocation.nodes)
        books = self._selector.books
        if books.track_memory and allocation.memory_mb is not None:
            for index, amount in zip(allocation.node_indices, allocation.memory_mb, strict=True):
                held = self._memory.get(index, books.memory[index])
                if mode.frees_all:
                    self._memory[index] = max(0, held - amount)
                elif self._frees_memory:
                    self._memory[index] = max(0, held - self._selector.cluster.nodes[index].memory_mb)
        if mode.frees_all:
            for name, amounts in allocation.gres.items():
                freed = self._gres.setdefault(name, {})
                for index, amount in zip(allocation.node_indices, amounts, strict=True):
                    freed[index] = freed.get(index, 0) + amount

    def usable(self) -> NodeBits:
        """Return the nodes usable without the jobs taken out."""
        nodes = self.static & ~self._exclusive.over[0] & ~self._running.above(self._request.limit - 1)
        if self._selector.books.track_memory:
            nodes = self._selector.memory_free(self._request, nodes, self._memory)
        if self._job.spec.gres:
            nodes = self._selector.gres_free(self._job, nodes, self._gres)
        return nodes


def _licences_taken(
    wanted: Mapping[str, int], either: bool, view: ClusterView
) -> Mapping[str, int]:
    if not wanted:
        return NOTHING
    if not either:
        return dict(wanted)
    free = view.licenses_free
    name = next((n for n, count in wanted.items() if free.get(n, 0) >= count), next(iter(wanted)))
    return {name: wanted[name]}


def _node_sets(cluster: Cluster, *, per_record: bool) -> Iterator[NodeBits]:
    """Yield the node sets, lowest weight first; equal weights in order of their records (4.1.3)."""
    groups: dict[tuple[int, object], list[int]] = {}
    for node in cluster.nodes:
        kind: object = node.record
        if not per_record:
            kind = (
                node.cpus, node.sockets, node.cores_per_socket, node.threads_per_core, node.memory_mb,
                tuple(sorted(node.features)), tuple(sorted(node.gres.items())),
            )
        groups.setdefault((node.weight, kind), []).append(node.index)
    order = sorted(groups, key=lambda key: (key[0], min(groups[key])))
    for key in order:
        yield bitmap.of(groups[key])


class _AtLeast:
    """The nodes that have at least so many CPUs; remembered per number."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._cpus = cpus
        self._known: dict[int, NodeBits] = {}

    def __call__(self, wanted: int) -> NodeBits:
        known = self._known.get(wanted)
        if known is None:
            known = bitmap.of([index for index, cpus in enumerate(self._cpus) if cpus >= wanted])
            self._known[wanted] = known
        return known

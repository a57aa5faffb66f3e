"""Say which nodes a job may use, and which of them are best (slurm-gang-and-select 4.1.4, 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import Alternatives, alternatives
from makeway.model import (
    NOTHING,
    Allocation,
    Blocked,
    Cluster,
    ClusterView,
    Job,
    ModeFlag,
    Node,
    PreemptBasis,
    Sharing,
)
from makeway.obstacle import Condition, in_all, obstacle, of_features
from makeway_select_linear.best_fit import best_fit, nodes_alike
from makeway_select_linear.books import Books
from makeway_select_linear.ends_ahead import EndsAhead
from makeway_select_linear.request import Request, memory_charged, memory_need, over_limit, request_of

_UNLIMITED = 1 << 30


class LinearNodes:
    """The nodes of one run with their books, and what jobs ask of them."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        cluster = view.cluster
        self.cluster: Cluster = cluster
        parameters = {word.upper() for word in view.select_parameters}
        self.books = self._empty_books(track_memory="CR_MEMORY" in parameters)
        self.released: Callable[[Job], None] = self.books.remove
        """Takes back what a job held."""
        self.one_task_per_core = "CR_ONE_TASK_PER_CORE" in parameters
        self.all_nodes = bitmap.full(len(cluster.nodes))
        self.node_sets = list(_node_sets(cluster, _by_weight))
        self.record_sets = self.node_sets
        always = view.rule("node_sets_of_one_build")
        if always or view.preempt_basis is PreemptBasis.NOTHING:
            kind_of = _by_record if view.rule("record_node_sets") else _by_build
            self.record_sets = list(_node_sets(cluster, kind_of))
        if always:
            self.node_sets = self.record_sets
        self.cpus = [node.cores if self.one_task_per_core else node.cpus for node in cluster.nodes]
        self.ends_ahead = EndsAhead()
        self.uniform = self.cpus[0] if len(set(self.cpus)) == 1 else None
        self.uniform_memory = len({(n.memory_mb, n.usable_memory_mb, n.cpus) for n in cluster.nodes}) == 1
        self._of_first_node = (
            self.books.track_memory and not self.uniform_memory and view.rule("linear_memory_of_first_node")
        )
        """Whether a job that does not say how much memory it needs wants of every node what the first one has."""
        self._by_cpus = _AtLeast(self.cpus)
        self._counts_tasks = self.uniform is None and view.rule("linear_counts_tasks_per_node")
        """Whether tasks per node matter to the choice among nodes; where all have as many CPUs they do not."""
        self.spares_off = (
            ModeFlag.GANG in view.preempt_mode.flags
            and view.preempt_basis is PreemptBasis.PARTITION
            and not view.rule("linear_overlays_off")
        )
        """Whether jobs of lower tiers that are OFF keep their nodes to themselves."""
        self._counts_forced = view.rule("linear_counts_forced_gpus")
        self._requests: dict[str, tuple[object, object, Request]] = {}
        self._by_shape: dict[tuple[object, ...], Request] = {}
        self._possible: dict[Hashable, Blocked | None] = {}
        """Verdicts by all that they depend on; requests are the same object for the same shape."""
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
        self.books.add(job)

    def suspended(self, job: Job) -> None:
        """Take note of a suspension."""
        self.books.suspend(job)

    def resumed(self, job: Job) -> None:
        """Take note that a job continues."""
        self.books.resume(job)

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what depends on when jobs were suspended and resumed: memory, and which were forgotten (4.2.6)."""
        fresh = self._empty_books(track_memory=self.books.track_memory)
        return self.books.save(self.view.active, fresh)

    def _empty_books(self, *, track_memory: bool) -> Books:
        return Books(
            self.cluster,
            track_memory=track_memory,
            forgets_resumed=self.view.rule("linear_forgets_resumed_sharers"),
            overcharges_resumed=self.view.rule("linear_resume_charges_all_memory"),
        )

    def recast(self, job: Job, allocation: Allocation, view: ClusterView) -> Allocation:
        """Add the memory that the request stands for, and whether the job shares its nodes."""
        del view
        request, listed = self.request(job), self.cluster.nodes
        memory = allocation.memory_mb
        if memory is None and self.books.track_memory:
            memory = tuple(memory_charged(request, listed[index]) for index in allocation.node_indices)
        return attrs.evolve(allocation, memory_mb=memory, shared=request.shares)

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Fill the books."""
        del view
        self.books.restore(active, memory)

    # ----------------------------------------------------------------------------- asking
    def counts_gres(self, job: Job) -> bool:
        """Whether a job is charged for the GPUs that it asks for (rule `linear_counts_forced_gpus`)."""
        over = job.partition.oversubscribe
        return not self._counts_forced or (over.sharing is Sharing.FORCE and over.count > 1)

    def request(self, job: Job) -> Request:
        """Return the normalised request of `job` in the partition that it is tried in."""
        known = self._requests.get(job.id)
        if known is not None and known[0] is job.partition and known[1] is job.spec:
            return known[2]
        key = shape_of(job)
        request = self._by_shape.get(key)
        if request is None:
            if len(self._by_shape) > 100_000:
                self._by_shape.clear()
            request = request_of(
                job, self.cluster, memory=self.books.track_memory, counts_tasks=self._counts_tasks
            )
            request = attrs.evolve(request, alike=nodes_alike(request, self.uniform))
            self._by_shape[key] = request
        self._requests[job.id] = (job.partition, job.spec, request)
        return request

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Drop jobs that need more nodes than could be usable for any job."""
        books = self.books
        busy, alone = books.running.over[0], books.exclusive.over[0]
        free = (nodes & ~busy).bit_count()
        if busy != alone and (shared := busy & ~alone):
            free += (nodes & shared).bit_count()
        if len(jobs) == 1:
            return jobs if jobs[0].size <= free else ()
        return [job for job in jobs if job.size <= free]

    def equivalence_key(self, job: Job) -> Hashable:
        """Return the request of `job`, and what else its nodes must have."""
        spec = job.spec
        counted = tuple(spec.gres.items()), tuple(spec.gres_total.items())
        return self.request(job), job.excluded, spec.features, counted

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        spec = job.spec
        key: Hashable = self.request(job)
        if job.excluded or spec.features or spec.gres:
            key = key, job.excluded, spec.features, tuple(spec.gres.items())
        try:
            return self._possible[key]
        except KeyError:
            if len(self._possible) > 100_000:
                self._possible.clear()
            found = self._possible[key] = self._check_possible(job, view)
            return found

    def could_run_on(self, job: Job, nodes: NodeBits) -> bool:
        """Whether `job` could run on `nodes` if they were idle; what memory it would be charged does not count there.

        Recorded: builtin_memory_on_the_rest.
        """
        request = self.request(job)
        return self._fits_idle(job, request, self._serving(job, request, nodes))

    def _serving(self, job: Job, request: Request, nodes: NodeBits) -> NodeBits:
        """Drop nodes that ``sbatch`` would not count with, or on which a limit on memory keeps the job out."""
        nodes = self._named(job, nodes, request)
        return nodes & ~self._over_limit(job, request) if self.books.track_memory else nodes

    def _fits_idle(self, job: Job, request: Request, nodes: NodeBits) -> bool:
        choices = self.alternatives(job)
        return any(self.best_fit(each.among(nodes), request, each) is not None for each in choices)

    def _check_possible(self, job: Job, view: ClusterView) -> Blocked | None:
        request = self.request(job)
        nodes = self._serving(job, request, job.partition.nodes)
        if self._fits_idle(job, request, nodes):
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
        conditions = self._conditions(job, request)
        short = obstacle(request.min_nodes, job.partition, conditions, job.excluded)
        if short:
            return short
        for _, having in conditions:
            nodes &= having
        return in_all(job, nodes, self.cluster.nodes, self.cpus, request.min_cpus, request.max_nodes)

    def _conditions(self, job: Job, request: Request) -> list[Condition]:
        """Return what is asked of each node, in the terms of the request."""
        everything, nodes = self.all_nodes, self.cluster.nodes
        found: list[Condition] = []
        if request.cpus_per_node > 1:
            found.append((f"{request.cpus_per_node} CPUs", self._by_cpus(request.cpus_per_node)))
        if request.too_small:
            per_cpu = job.spec.memory_mb_per_cpu
            what = f"{job.spec.memory_mb_per_node} MB" if per_cpu is None else f"{per_cpu} MB per CPU"
            found.append((f"{what} of memory", everything & ~request.too_small))
        for name, count in job.spec.gres.items():
            having = bitmap.of([node.index for node in nodes if node.gres.get(name, 0) >= count])
            found.append((f"{count} {name}", having))
        return [*found, *of_features(job.spec.features, self.alternatives(job), everything)]

    def alternatives(self, job: Job) -> Sequence[Alternatives]:
        """Return the sets of nodes with the wanted features, in the order in which they are tried."""
        return alternatives(job.spec.features, self.cluster)

    def best_fit(self, nodes: NodeBits, request: Request, choice: Alternatives) -> NodeBits | None:
        """Return the nodes to take out of `nodes` for one feature alternative; None if they do not suffice.

        Where features are counted, each is solved for its count; what comes out is required (4.1.3 no. 3).
        """
        for having, count in choice.counts:
            part = attrs.evolve(
                request,
                min_nodes=count,
                target=count,
                max_nodes=count,
                min_cpus=count * max(request.cpus_per_node, 1),
                required=0,
                alike=None,
            )
            taken = best_fit(nodes & having & ~request.required, part, self.cpus, self.uniform)
            if taken is None:
                return None
            request = attrs.evolve(request, required=request.required | taken, alike=None)
        return best_fit(nodes, request, self.cpus, self.uniform)

    def _static(self, job: Job, nodes: NodeBits, request: Request) -> NodeBits:
        """Drop nodes that could never serve the job."""
        nodes = self._named(job, nodes, request)
        return nodes & self._memory_could(job, request, nodes) if self.books.track_memory else nodes

    def _named(self, job: Job, nodes: NodeBits, request: Request) -> NodeBits:
        """Drop nodes that ``sbatch`` would not count with: memory per CPU counts for one CPU there."""
        nodes &= ~(job.excluded | request.too_small)
        if request.cpus_per_node > 1:
            nodes &= self._by_cpus(request.cpus_per_node)
        for name, count in job.spec.gres.items():
            nodes &= bitmap.of([n.index for n in self.cluster.nodes if n.gres.get(name, 0) >= count])
        return nodes

    def _over_limit(self, job: Job, request: Request) -> NodeBits:
        """Return the nodes on which a limit forbids the memory that the request needs there."""
        listed, partition, cluster = self.cluster.nodes, job.partition, self.cluster
        if self.uniform_memory:
            return self.all_nodes if over_limit(request, partition, cluster, listed[0]) else 0
        return bitmap.of([node.index for node in listed if over_limit(request, partition, cluster, node)])

    def _memory_could(self, job: Job, request: Request, nodes: NodeBits) -> NodeBits:
        listed = self.cluster.nodes
        if self.uniform_memory:
            fits = memory_need(request, listed[0]) <= listed[0].usable_memory_mb
            ok = fits and not over_limit(request, job.partition, self.cluster, listed[0])
            return nodes if ok else 0
        request = self._of_first(request, nodes)
        return bitmap.of(
            [
                index
                for index in bitmap.indices(nodes)
                if memory_need(request, listed[index]) <= listed[index].usable_memory_mb
                and not over_limit(request, job.partition, self.cluster, listed[index])
            ]
        )

    def among(self, job: Job, request: Request, nodes: NodeBits) -> Request:
        """Return the request as it is while `job` is looked for a place on `nodes`.

        One that does not say how much memory it needs is about the memory of the first of them that it may have.
        """
        if not (self._of_first_node and request.wants_all_memory):
            return request
        return self._of_first(request, self._named(job, nodes, request))

    def _of_first(self, request: Request, nodes: NodeBits) -> Request:
        if not (self._of_first_node and request.wants_all_memory and nodes):
            return request
        memory = self.cluster.nodes[bitmap.lowest(nodes)].memory_mb
        if request.memory_of_first == memory:
            return request
        return attrs.evolve(request, memory_of_first=memory)

    def memory_free(
        self, request: Request, nodes: NodeBits, used: Mapping[int, int] | None = None
    ) -> NodeBits:
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

    def gres_free(
        self, job: Job, nodes: NodeBits, used: Mapping[str, Mapping[int, int]] = NOTHING
    ) -> NodeBits:
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
            nodes &= ~books.above(total)
        if books.track_memory:
            nodes = self.memory_free(request, nodes)
        if job.spec.gres:
            nodes = self.gres_free(job, nodes)
        return nodes


def shape_of(job: Job) -> tuple[object, ...]:
    """Return all that the request of `job` depends on."""
    spec = job.spec
    return (
        job.partition.index,
        job.size,
        spec.max_nodes,
        spec.node_cap,
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


def _node_sets(cluster: Cluster, kind_of: Callable[[Node], object]) -> Iterator[NodeBits]:
    """Yield the node sets, lowest weight first; equal weights in order of their records (4.1.3)."""
    groups: dict[tuple[int, object], list[int]] = {}
    for node in cluster.nodes:
        groups.setdefault((node.weight, kind_of(node)), []).append(node.index)
    order = sorted(groups, key=lambda key: (key[0], min(groups[key])))
    for key in order:
        yield bitmap.of(groups[key])


def _by_weight(_: Node) -> object:
    """Tell nodes of one weight not apart: so they are where jobs may share or preempt, whatever their lines say."""
    return None


def _by_record(node: Node) -> object:
    return node.record


def _by_build(node: Node) -> object:
    return (
        node.cpus,
        node.sockets,
        node.cores_per_socket,
        node.threads_per_core,
        node.memory_mb,
        tuple(sorted(node.features)),
        tuple(sorted(node.gres.items())),
    )


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

"""Find cores for a job, now or later (spec slurm-gang-and-select 4.3, slurm-preemption 5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    ModeFlag,
    Placement,
    PreemptMode,
)
from makeway.preemption import PreemptionTable, exempt_time
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.books import Books, Layout
from makeway_select_cons_tres.forecast import forecast
from makeway_select_cons_tres.parameters import Parameters, in_partition, read_parameters
from makeway_select_cons_tres.request import AVAILABLE, MARKS, ONE_ROW, Request, request_of
from makeway_select_cons_tres.steps import (
    CoreTest,
    Extra,
    Mode,
    Short,
    joined,
    least_memory,
    table_key,
)


class ConsSelector:
    """The selector of one run. See `makeway.model.Selector`."""

    def __init__(self, view: ClusterView) -> None:
        cluster = view.cluster
        self.view = view
        self.cluster: Cluster = cluster
        self.parameters: Parameters = read_parameters(view.select_parameters)
        self.mode = _mode(view)
        self.layout = Layout(
            cluster, extra_row=self.mode.qos, track_memory=self.parameters.memory
        )
        self.books = Books(self.layout)
        self.empty = Books(self.layout)
        """Books of the cluster without any job."""
        self.all_nodes = bitmap.full(len(cluster.nodes))
        self._implicit_max_nodes = view.rule("implicit_max_nodes")
        self._requests: dict[str, Request] = {}
        self._static: dict[object, NodeBits] = {}
        self._verdicts: dict[str, tuple[Request, Blocked | None]] = {}
        self._of_partition = {
            partition.name: in_partition(self.parameters, partition)
            for partition in cluster.partitions
        }

    # ----------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Charge a job that started."""
        self._requests.pop(job.id, None)
        self._verdicts.pop(job.id, None)
        self.books.add(job)

    def released(self, job: Job) -> None:
        """Take back what a job held."""
        self.books.remove(job)

    def suspended(self, job: Job) -> None:
        """Take note of a suspension: only a person's frees anything."""
        self.books.suspend(job)

    def resumed(self, job: Job) -> None:
        """Take note that a job continues."""
        self.books.resume(job)

    # ----------------------------------------------------------------------------- asking
    def request(self, job: Job) -> Request:
        """Return the normalised request of `job` in the partition that it is tried in."""
        known = self._requests.get(job.id)
        if known is not None and known.partition is job.partition:
            return known
        request = request_of(
            job,
            self.cluster,
            self._of_partition[job.partition.name],
            implicit_max_nodes=self._implicit_max_nodes,
        )
        self._requests[job.id] = request
        return request

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Drop jobs that idle cores cannot serve, of those that look at nothing else."""
        books = self.books
        books.sync()
        if self.mode.gang:
            return jobs
        known: dict[object, bool] = {}
        kept = []
        for job in jobs:
            request = self.request(job)
            if request.mark == AVAILABLE:
                kept.append(job)
                continue
            wanted = wanted_of(request)
            key = (request.need, wanted, request.min_nodes, request.whole, job.partition.index)
            able = known.get(key)
            if able is None:
                some = nodes & job.partition.nodes & books.table(table_key(request)).at_least(wanted)
                if request.whole:
                    some &= ~books.busy_nodes
                able = known[key] = some.bit_count() >= request.min_nodes
            if able:
                kept.append(job)
        return kept

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> ConsAttempt:
        """Begin an attempt."""
        return ConsAttempt(self, job, nodes, view)

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start (4.3.11)."""
        return forecast(ConsAttempt(self, job, nodes, view, planning=True), removable)

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        request = self.request(job)
        known = self._verdicts.get(job.id)
        if known is not None and known[0] is request:
            return known[1]
        verdict = self._possible(job, request, job.partition.nodes)
        self._verdicts[job.id] = (request, verdict)
        return verdict

    def _possible(self, job: Job, request: Request, nodes: NodeBits) -> Blocked | None:
        for choice in self.alternatives(job):
            if self.test(request, self.empty, nodes, choice).run() is not None:
                return None
        usable = self.able(request, nodes).bit_count()
        detail = request.over_limit or (
            f"{request.min_nodes} nodes and {request.min_cpus} CPUs are asked for; "
            f"{usable} nodes of the partition could serve"
        )
        return Blocked(
            reason="BadConstraints",
            detail=detail,
            wanted=request.min_nodes,
            available=usable,
            never=True,
        )

    # ------------------------------------------------------------------------------ pieces
    def alternatives(self, job: Job) -> Sequence[Alternatives]:
        """Return the sets of nodes with the wanted features, in the order in which they are tried."""
        return alternatives(job.spec.features, self.cluster)

    def test(
        self,
        request: Request,
        books: Books,
        nodes: NodeBits,
        choice: Alternatives,
        *,
        exempt: Sequence[Job] = (),
        extra: Extra | None = None,
    ) -> CoreTest:
        """Prepare a test of `request` against `books`."""
        return CoreTest(
            request,
            books,
            self.empty.table(table_key(request)),
            self.able(request, nodes & choice.nodes if not choice.counts else nodes),
            self.mode,
            exempt=exempt,
            extra=extra,
            counts=choice.counts,
        )

    def able(self, request: Request, nodes: NodeBits) -> NodeBits:
        """Drop nodes that could not serve the request if they were idle."""
        if request.over_limit:
            return 0
        key = (
            request.need,
            request.cpus_per_node,
            request.memory_per_cpu,
            request.memory_per_node,
            request.whole,
            tuple(sorted(request.gres.items())),
        )
        found = self._static.get(key)
        if found is None:
            found = self._static[key] = self._able(request)
        return nodes & found & ~request.excluded

    def _able(self, request: Request) -> NodeBits:
        nodes = self.empty.table(table_key(request)).at_least(max(request.cpus_per_node, 1))
        wanted = least_memory(request)
        each = request.memory_per_cpu if request.whole else None
        able = []
        for index in bitmap.indices(nodes):
            node = self.cluster.nodes[index]
            if self.parameters.memory and max(wanted, (each or 0) * node.cpus) > self.layout.memory[index]:
                continue
            if any(node.gres.get(name, 0) < count for name, count in request.gres.items()):
                continue
            able.append(index)
        return bitmap.of(able)

    def exempt_jobs(self, view: ClusterView) -> Sequence[Job]:
        """Return running jobs that PreemptExemptTime keeps from being overlaid (spec slurm-preemption 1.6)."""
        least = view.settings(PreemptionTable).exempt_time
        if not least or least < 0 or not self.mode.gang or not self.mode.partition_prio:
            return ()
        if not view.rule("exempt_time_guards_overlay"):
            return ()
        return [
            job
            for job in view.active
            if job.state is JobState.RUNNING
            and view.now < (job.started_at or 0.0) + exempt_time(job, view, least)
            and view.mode_of(job) is PreemptMode.SUSPEND
        ]


class ConsAttempt:
    """One job against the books. See `makeway.model.Attempt`."""

    def __init__(
        self,
        selector: ConsSelector,
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
        """Whether it is only about when the job could start; licences are not looked at then."""
        self.request = selector.request(job)
        self.books = selector.books
        self.licences: Mapping[str, int] = NOTHING
        """Licences given back by jobs removed."""
        self.short = Short()
        """What was missing in the last try."""
        self._removed = False
        self._exempt: Sequence[Job] | None = None

    # ---------------------------------------------------------------------------- protocol
    def fresh(self) -> ConsAttempt:
        """Return an attempt for the same job with nothing removed."""
        twin = ConsAttempt(self.selector, self.job, self.nodes, self.view, planning=self.planning)
        twin._exempt = self._exempt
        return twin

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take a job and its other components away in thought: all that they hold, or the cores alone."""
        if mode.frees_all:
            self.remove_all((job,))
        elif mode is not PreemptMode.OFF:
            self._begin_to_remove()
            for part in self.view.components(job):
                if part.allocation is not None:
                    self.books.take_out(part, wholly=False)

    def remove_all(self, jobs: Sequence[Job]) -> None:
        """Take jobs away in thought, with all that they hold."""
        self._begin_to_remove()
        if self.view.heterogeneous:
            jobs = [part for job in jobs for part in self.view.components(job) if part.nodes]
        self.books.take_out_all(jobs)
        if self.job.spec.licenses:
            given = dict(self.licences)
            for job in jobs:
                for name, count in _licences_of(job).items():
                    given[name] = given.get(name, 0) + count
            self.licences = given

    def _begin_to_remove(self) -> None:
        if not self._removed:
            self.books = self.books.copy()
            self._removed = True

    def probe(self) -> Placement | Blocked:
        """Place the job as things stand, or as they would be without those removed."""
        short = self.licence_short()
        if short is not None:
            return short
        for number, choice in enumerate(self.selector.alternatives(self.job)):
            found = self.try_on(choice)
            if found is not None:
                return self.placement(found, number)
        return self._blocked()

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Describe the problem as "free so many nodes": for whole, like nodes without further wishes."""
        request, selector, books = self.request, self.selector, self.selector.books
        job = self.job
        if (
            not request.whole
            or request.mark != ONE_ROW
            or selector.mode.gang
            or len(selector.layout.shapes) > 1
            or len({node.cpus for node in self.view.cluster.nodes}) > 1
            or request.contiguous
            or request.required
            or request.gres
            or request.gres_total
            or job.spec.features
            or job.spec.licenses
        ):
            return None
        books.sync()
        able = selector.able(request, self.nodes)
        used = books.busy_nodes | books.marked_nodes | books.charged_nodes
        holders: dict[int, list[int]] = {}
        for at, (other, mode) in enumerate(zip(jobs, modes, strict=True)):
            if mode.frees_all and other.allocation is not None and other.spec.het_id is None:
                for index in other.allocation.node_indices:
                    holders.setdefault(index, []).append(at)
        each = self.view.cluster.nodes[0].cpus if self.view.cluster.nodes else 1
        return Cover(
            wanted=max(request.min_nodes, -(-request.min_cpus // each)),
            free=(able & ~used).bit_count(),
            blockers={
                index: tuple(at)
                for index, at in sorted(holders.items())
                if able & used & (1 << index) and len(self.view.jobs_on(index)) == len(at)
            },
        )

    # ------------------------------------------------------------------------------ pieces
    def try_on(
        self,
        choice: Alternatives,
        *,
        within: NodeBits | None = None,
        extra: Extra | None = None,
    ) -> Found | None:
        """Place the job on the nodes of one feature alternative.

        :param within: nodes to keep to; None: all of the attempt's.
        """
        nodes = self.nodes if within is None else self.nodes & within
        if self._exempt is None:
            self._exempt = self.selector.exempt_jobs(self.view)
        test = self.selector.test(
            self.request, self.books, nodes, choice, exempt=self._exempt, extra=extra
        )
        found = test.run()
        if test.short is not None:
            self.short = test.short
        return found

    def licence_short(self) -> Blocked | None:
        """Say which licence is short (spec slurm-preemption 1.11)."""
        wanted = self.job.spec.licenses
        if not wanted or self.planning:
            return None
        missing = self.missing_licences()
        if not missing:
            return None
        name = missing[0]
        free = self._free_licences(name)
        return Blocked(
            reason="Licenses",
            resource="licences",
            wanted=wanted[name],
            available=free,
            detail=f"{wanted[name]} of licence {name} wanted, {free} free",
        )

    def missing_licences(self) -> list[str]:
        """Return the licences of which too few are free; where one of several is enough, all or none."""
        wanted = self.job.spec.licenses
        missing = [name for name, count in wanted.items() if self._free_licences(name) < count]
        if self.job.spec.licenses_any and len(missing) < len(wanted):
            return []
        return missing

    def _free_licences(self, name: str) -> int:
        return self.view.licenses_free.get(name, 0) + self.licences.get(name, 0)

    def _licences_taken(self) -> Mapping[str, int]:
        wanted = self.job.spec.licenses
        if not wanted or not self.job.spec.licenses_any:
            return dict(wanted) if wanted else NOTHING
        enough = (name for name, count in wanted.items() if self._free_licences(name) >= count)
        name = next(enough, next(iter(wanted)))
        return {name: wanted[name]}

    def placement(self, found: Found, alternative: int) -> Placement:
        """Return what was found in the contract's words."""
        request, busy = self.request, self.selector.books.busy
        full = self.selector.layout.full
        cores = found.cores
        overlays = any(
            busy[index] & (full[index] if cores is None else cores[at])
            for at, index in enumerate(found.indices)
        )
        return Placement(
            allocation=Allocation(
                nodes=found.nodes,
                node_indices=found.indices,
                cpus=found.cpus,
                cores=cores,
                memory_mb=found.memory,
                gres=found.gres,
                licenses=self._licences_taken(),
                shared=request.shares,
                marks=MARKS[request.mark, request.sharing],
            ),
            overlays=overlays,
            why=found.why,
            alternative=alternative,
        )

    def _blocked(self) -> Blocked:
        if not self._removed:
            impossible = self.selector.possible(self.job, self.view)
            if impossible is not None:
                return impossible
        return Blocked(
            reason="Resources",
            resource=self.short.resource,
            wanted=self.request.min_nodes,
            available=self.short.available,
            detail=f"{self.request.min_nodes} nodes wanted, {self.short.available} usable",
        )


def _licences_of(job: Job) -> Mapping[str, int]:
    return job.allocation.licenses if job.allocation is not None else NOTHING


def wanted_of(request: Request) -> int:
    """Return the CPUs that every node must offer."""
    wanted = max(request.cpus_per_node, 1)
    return max(wanted, request.min_cpus) if request.max_nodes == 1 else wanted


def _mode(view: ClusterView) -> Mode:
    return Mode(
        gang=ModeFlag.GANG in view.preempt_mode.flags,
        partition_prio=view.preempt == "preempt/partition_prio",
        qos=view.preempt == "preempt/qos",
        first_fit=view.rule("one_node_first_fit"),
        trims=view.rule("trim_cores_by_index"),
        only_sharing_jobs_block=view.rule("only_sharing_jobs_block"),
        exclusive_stops=view.rule("exclusive_stops_after_step_one"),
        off_keeps_rows=view.rule("off_partition_keeps_rows"),
    )


__all__ = ["ConsAttempt", "ConsSelector", "joined"]

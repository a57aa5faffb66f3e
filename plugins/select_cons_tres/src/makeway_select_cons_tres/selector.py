"""Find cores for a job, now or later (spec slurm-gang-and-select 4.3, slurm-preemption 5.2)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.features import Alternatives, alternatives
from makeway.model import (
    NOTHING,
    Allocation,
    Blocked,
    Candidates,
    Cluster,
    ClusterView,
    Cover,
    Forecast,
    Job,
    JobSpec,
    JobState,
    ModeFlag,
    Partition,
    Placement,
    PreemptBasis,
    PreemptMode,
)
from makeway.obstacle import counted
from makeway.preemption import PreemptionTable
from makeway_select_cons_tres import adoption
from makeway_select_cons_tres.assign import Found, memory_of
from makeway_select_cons_tres.books import Books, Layout
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.forecast import forecast
from makeway_select_cons_tres.kinds import Kind, kind_of, signature_of, why_impossible
from makeway_select_cons_tres.one_node import cpus_on_one_node, first_that_fits
from makeway_select_cons_tres.parameters import Parameters, in_partition, read_parameters
from makeway_select_cons_tres.request import AVAILABLE, MARKS, ONE_ROW, RESERVED, Request, request_of
from makeway_select_cons_tres.staying import Staying
from makeway_select_cons_tres.steps import IDLE, CoreTest, Extra, Mode, Short
from makeway_select_cons_tres.table import TableKey
from makeway_slurm.preemption import exempt_time

_MOST_REMEMBERED = 100_000
_MOST_KINDS_OF_PREEMPTORS = 32
_KILLS = frozenset((PreemptMode.REQUEUE, PreemptMode.CANCEL))


class ConsSelector:
    """The selector of one run. See `makeway.model.Selector`."""

    def __init__(self, view: ClusterView) -> None:
        cluster = view.cluster
        self._view = view
        self.cluster: Cluster = cluster
        self.parameters: Parameters = read_parameters(view.select_parameters)
        self.mode = _mode(view)
        self.layout = Layout(
            cluster,
            extra_row=self.mode.qos,
            track_memory=self.parameters.memory,
            marks_stay=view.rule("overflow_keeps_marks"),
        )
        self.books = Books(self.layout)
        self.fitting = Fitting(self.books)
        self.empty = Books(self.layout)
        """Books of the cluster without any job."""
        self._implicit_max_nodes = view.rule("implicit_max_nodes")
        self._whole_tasks = view.rule("cpus_in_whole_tasks")
        self._kinds: dict[Hashable, Kind] = {}
        self._kind_of: dict[str, tuple[JobSpec, Partition, Kind]] = {}
        """Kinds of jobs that were asked about, and what of and where, by job id."""
        self._keys: dict[TableKey, TableKey] = {}
        self._of_partition = {
            partition.name: in_partition(self.parameters, partition) for partition in cluster.partitions
        }
        self._guards_overlay = self.mode.gang and self.mode.partition_prio
        self._screened: dict[Kind, bool] = {}
        self._screened_at = (-1, 0)
        """Version of the books, and nodes, that `_screened` is about."""
        self._staying: dict[Hashable, Staying] = {}
        """Who stays when a kind of preemptors displaces all whom it may."""
        self._failed: dict[tuple[Kind, NodeBits], Short] = {}
        self._failed_at = -1
        """Version of the books that `_failed` is about."""

    # ----------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Charge a job that started."""
        self._kind_of.pop(job.id, None)
        self.books.add(job)

    def released(self, job: Job) -> None:
        """Take back what a job held."""
        self.books.remove(job)
        for staying in self._staying.values():
            staying.released(job)

    def suspended(self, job: Job) -> None:
        """Take note of a suspension: only a person's frees anything."""
        self.books.suspend(job)

    def resumed(self, job: Job) -> None:
        """Take note that a job continues."""
        self.books.resume(job)

    # ----------------------------------------------------------------------------- adoption
    def hand_over(self) -> dict[str, Any]:
        """Return who is in which row, and what else follows from the order of events."""
        return adoption.to_plain(self.books, self._view.active)

    def recast(self, job: Job, allocation: Allocation, view: ClusterView) -> Allocation:
        """Add the mark, the number of CPUs and the memory that the request stands for."""
        del view
        request = self.request(job)
        cpus = allocation.cpus or self._cpus_of(allocation)
        memory = allocation.memory_mb
        if memory is None and self.layout.track_memory:
            memory = memory_of(request, allocation.node_indices, cpus, self.books)
        mark = MARKS[request.mark, request.sharing]
        return attrs.evolve(allocation, cpus=cpus, memory_mb=memory, shared=request.shares, marks=mark)

    def _cpus_of(self, allocation: Allocation) -> tuple[int, ...]:
        nodes = self.cluster.nodes
        if allocation.cores is None:
            return tuple(nodes[index].cpus for index in allocation.node_indices)
        return tuple(
            min(nodes[index].cpus, cores.bit_count() * self.layout.shape(index).threads)
            for index, cores in zip(allocation.node_indices, allocation.cores, strict=True)
        )

    def take_over(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Fill the books."""
        del view
        adoption.fill(self.books, active, memory)

    # ----------------------------------------------------------------------------- asking
    def kind(self, job: Job) -> Kind:
        """Return the kind of `job` in the partition that it is tried in."""
        known = self._kind_of.get(job.id)
        if known is not None and known[0] is job.spec and known[1] is job.partition:
            return known[2]
        signature = signature_of(job)
        kind = self._kinds.get(signature)
        if kind is None:
            kind = self._kinds[signature] = self._new_kind(job)
        if len(self._kind_of) >= _MOST_REMEMBERED:
            self._kind_of.clear()
        self._kind_of[job.id] = (job.spec, job.partition, kind)
        return kind

    def _new_kind(self, job: Job) -> Kind:
        parameters = self._of_partition[job.partition.name]
        request = request_of(
            job,
            self.cluster,
            parameters,
            implicit_max_nodes=self._implicit_max_nodes,
            whole_tasks=self._whole_tasks,
            trims=self.mode.trims,
        )
        key = _table_key(request)
        idle = self.empty.table(self._keys.setdefault(key, key))
        choices = alternatives(job.spec.features, self.cluster)
        kind = kind_of(request, self.layout, idle, choices, trims=self.mode.trims)
        kind.cpus_on_one_node = cpus_on_one_node(request, choices, self.layout, self.mode)
        return kind

    def request(self, job: Job) -> Request:
        """Return the normalised request of `job` in the partition that it is tried in."""
        return self.kind(job).request

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Drop jobs that idle cores cannot serve, of those that look at nothing else."""
        if self.mode.gang:
            return jobs
        books = self.books
        books.sync()
        if self._screened_at != (books.version, nodes):
            self._screened_at = (books.version, nodes)
            self._screened.clear()
        screened, kinds = self._screened, self._kind_of
        kept = []
        for job in jobs:
            known = kinds.get(job.id)
            if known is not None and known[0] is job.spec and known[1] is job.partition:
                kind = known[2]
            else:
                kind = self.kind(job)
            able = screened.get(kind)
            if able is None:
                able = screened[kind] = self._might_start(kind, nodes)
            if able:
                kept.append(job)
        return kept

    def screen_without(
        self,
        jobs: Sequence[Job],
        nodes: NodeBits,
        candidates: Candidates,
        kind: Hashable,
        view: ClusterView,
    ) -> Sequence[Job]:
        """Drop jobs that cores cannot serve which are idle once all candidates are gone, of those as above."""
        if (
            self.mode.gang
            or self.layout.several_rows
            or self.books.any_overlaid
            or view.heterogeneous
            or not _KILLS.issuperset(candidates.modes)
        ):
            return jobs
        staying = self._staying.get(kind)
        if staying is None:
            if len(self._staying) >= _MOST_KINDS_OF_PREEMPTORS:
                self._staying.clear()
            staying = self._staying[kind] = Staying(self.layout)
        staying.follow(view.active, set(map(id, candidates.jobs)))
        fitting = staying.fitting
        return [job for job in jobs if self._has_room(self.kind(job), nodes, fitting)]

    def _might_start(self, kind: Kind, nodes: NodeBits) -> bool:
        return self._has_room(kind, nodes, self.fitting)

    def _has_room(self, kind: Kind, nodes: NodeBits, fitting: Fitting) -> bool:
        request = kind.request
        if request.mark == AVAILABLE or (request.mark == RESERVED and not self.mode.exclusive_stops):
            return True  # it looks at cores in use as well
        return (nodes & fitting.nodes(kind)).bit_count() >= request.min_nodes

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
        return forecast(ConsAttempt(self, job, nodes, view), removable)

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        kind = self.kind(job)
        if kind.verdict is None or kind.verdict[0] != view.up:
            kind.verdict = (view.up, self._possible(job, kind, job.partition.nodes & view.up))
        return kind.verdict[1]

    def _possible(self, job: Job, kind: Kind, nodes: NodeBits) -> Blocked | None:
        for choice in kind.choices:
            if CoreTest(kind, self.empty, nodes, self.mode, choice).run() is not None:
                return None
        return Blocked(
            reason="BadConstraints",
            detail=kind.request.over_limit or why_impossible(job, kind, self.layout, nodes),
            wanted=kind.request.min_nodes,
            available=(nodes & kind.able).bit_count(),
            never=True,
        )

    # ----------------------------------------------------------------------------- memories
    def failure(self, kind: Kind, nodes: NodeBits) -> Short | None:
        """Return what was missing when a job of this kind found no place on `nodes` as things stand."""
        books = self.books
        books.sync()
        if self._failed_at != books.version:
            self._failed_at = books.version
            self._failed.clear()
        return self._failed.get((kind, nodes))

    def remember_failure(self, kind: Kind, nodes: NodeBits, short: Short) -> None:
        """Remember it until the books change; `failure` has been asked before."""
        if len(self._failed) >= _MOST_REMEMBERED:
            self._failed.clear()
        self._failed[kind, nodes] = short

    def guarded_jobs(self, preemptor: Job, view: ClusterView) -> Sequence[Job]:
        """Return running jobs that `preemptor` may not be laid over: those of a veto, and exempt ones."""
        if not self._guards_overlay:
            return ()
        tier = preemptor.partition.priority_tier
        lower = [
            job for job in view.active if job.state is JobState.RUNNING and job.partition.priority_tier < tier
        ]
        vetoed = view.protected(preemptor, lower)
        exempt = self._exempt_jobs(view)
        if not vetoed:
            return exempt
        return [*exempt, *(job for job in lower if job.id in vetoed and job not in exempt)]

    def _exempt_jobs(self, view: ClusterView) -> Sequence[Job]:
        """Return running jobs that PreemptExemptTime keeps from being overlaid (slurm-preemption 1.6)."""
        least = view.settings(PreemptionTable).exempt_time
        if not least or least < 0 or not view.rule("exempt_time_guards_overlay"):
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
    ) -> None:
        self.selector = selector
        self.job = job
        self.nodes = nodes
        self.view = view
        self.kind = selector.kind(job)
        self.books = selector.books
        self.short = Short()
        """What was missing in the last try."""
        self._removed = False
        self._exempt: Sequence[Job] | None = None

    # ---------------------------------------------------------------------------- protocol
    def fresh(self) -> ConsAttempt:
        """Return an attempt for the same job with nothing removed."""
        twin = ConsAttempt(self.selector, self.job, self.nodes, self.view)
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
        """Take jobs and their other components away in thought, with all that they hold."""
        if self.view.heterogeneous:
            jobs = [part for job in jobs for part in self.view.components(job) if part.nodes]
        self.remove_these(jobs)

    def remove_these(self, jobs: Sequence[Job]) -> None:
        """Take jobs away in thought, with all that they hold; other components stay."""
        self._begin_to_remove()
        self.books.take_out_all(jobs)

    def _begin_to_remove(self) -> None:
        if not self._removed:
            self.books = self.books.copy()
            self._removed = True

    def probe(self) -> Placement | Blocked:
        """Place the job as things stand, or as they would be without those removed."""
        plain = not self._removed and not self.exempt
        if plain:
            known = self.selector.failure(self.kind, self.nodes)
            if known is not None:
                self.short = known
                return self._blocked()
        for number, choice in enumerate(self.kind.choices):
            found = self.try_on(choice)
            if found is not None:
                return self.placement(found, number)
        if plain:
            self.selector.remember_failure(self.kind, self.nodes, self.short)
        return self._blocked()

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Describe the problem as "free so many nodes": for whole, like nodes without further wishes."""
        kind, books, view = self.kind, self.selector.books, self.view
        if not self._is_about_nodes():
            return None
        books.sync()
        able = kind.able & self.nodes
        used = books.busy_nodes | books.marked_nodes | books.charged_nodes
        holders: dict[int, list[int]] = {}
        for at, (other, mode) in enumerate(zip(jobs, modes, strict=True)):
            if mode.frees_all and other.allocation is not None and other.spec.het_id is None:
                for index in other.allocation.node_indices:
                    holders.setdefault(index, []).append(at)
        each = view.cluster.nodes[0].cpus if view.cluster.nodes else 1
        return Cover(
            wanted=max(kind.request.min_nodes, -(-kind.request.min_cpus // each)),
            free=(able & ~used).bit_count(),
            blockers={
                index: tuple(at)
                for index, at in sorted(holders.items())
                if able & used & (1 << index) and len(view.jobs_on(index)) == len(at)
            },
        )

    def _is_about_nodes(self) -> bool:
        """Whether the job wants so many whole nodes, and any will do."""
        request, spec, selector = self.kind.request, self.job.spec, self.selector
        return (
            request.whole
            and request.mark == ONE_ROW
            and not selector.mode.gang
            and selector.layout.alike
            and not (request.contiguous or request.required)
            and not (request.gres or request.gres_total or spec.features or spec.licenses)
        )

    # ------------------------------------------------------------------------------ pieces
    @property
    def exempt(self) -> Sequence[Job]:
        """Running jobs whose cores must not be overlaid."""
        if self._exempt is None:
            self._exempt = self.selector.guarded_jobs(self.job, self.view)
        return self._exempt

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
        if not self.kind.request.shares and not self.selector.mode.preempts:
            # Fully idle nodes (4.1.4): those on which nobody runs, whoever may be stopped there.
            self.books.sync()
            nodes &= ~(self.books.busy_nodes & self._running())
        if self.kind.cpus_on_one_node is not None and not self._removed:
            return self._on_one_node(choice.among(nodes))
        test = CoreTest(
            self.kind, self.books, nodes, self.selector.mode, choice, exempt=self.exempt, extra=extra
        )
        found = test.run()
        if test.short is not None:
            self.short = test.short
        return found

    def _on_one_node(self, nodes: NodeBits) -> Found | None:
        """Place a job of one node as things stand."""
        books = self.books
        books.sync()
        nodes &= self.selector.fitting.nodes(self.kind) & ~books.reserved_nodes
        if nodes:
            return first_that_fits(self.kind, nodes, books)
        self.short = Short(1)
        return None

    def _running(self) -> NodeBits:
        """Return the nodes on which a job runs."""
        found: NodeBits = 0
        for job in self.view.active:
            if job.state is JobState.RUNNING:
                found |= job.nodes
        return found

    def placement(self, found: Found, alternative: int) -> Placement:
        """Return what was found in the contract's words."""
        request = self.kind.request
        return Placement(
            allocation=Allocation(
                nodes=found.nodes,
                node_indices=found.indices,
                cpus=found.cpus,
                cores=found.cores,
                memory_mb=found.memory,
                gres=found.gres,
                licenses=licences.taken_by(self.job, self.view.licenses_free)
                if self.job.spec.licenses
                else NOTHING,
                shared=request.shares,
                marks=MARKS[request.mark, request.sharing],
            ),
            overlays=found.why != IDLE and self._overlays(found),
            why=found.why,
            alternative=alternative,
        )

    def _overlays(self, found: Found) -> bool:
        """Whether any of the cores is in use by somebody who is still there."""
        busy, full, cores = self.books.busy, self.selector.layout.full, found.cores
        return any(
            busy[index] & (full[index] if cores is None else cores[at])
            for at, index in enumerate(found.indices)
        )

    def _blocked(self) -> Blocked:
        if not self._removed:
            impossible = self.selector.possible(self.job, self.view)
            if impossible is not None:
                return impossible
        wanted, short = self.kind.request.min_nodes, self.short
        return Blocked(
            reason="Resources",
            resource=short.resource,
            wanted=wanted,
            available=short.available,
            detail=f"{counted(wanted, 'node')} wanted, {short.available} usable",
        )


def _table_key(request: Request) -> TableKey:
    """Return which table of usable CPUs the request looks at."""
    if request.max_cpus_per_node is None:
        return TableKey(request.need)
    return TableKey(request.need, request.partition.index, request.max_cpus_per_node)


def _mode(view: ClusterView) -> Mode:
    return Mode(
        gang=ModeFlag.GANG in view.preempt_mode.flags,
        preempts=view.preempt_basis is not PreemptBasis.NOTHING,
        partition_prio=view.preempt_basis is PreemptBasis.PARTITION,
        qos=view.preempt_basis is PreemptBasis.QOS,
        first_fit=view.rule("one_node_first_fit"),
        trims=view.rule("trim_cores_by_index"),
        only_sharing_jobs_block=view.rule("only_sharing_jobs_block"),
        exclusive_stops=view.rule("exclusive_stops_after_step_one"),
        off_keeps_rows=view.rule("off_partition_keeps_rows"),
        denial_lasts=view.rule("denied_nodes_stay_denied"),
    )

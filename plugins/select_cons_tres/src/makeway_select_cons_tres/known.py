"""Know what attempts are made against: the books, the kinds of jobs, what no job may be laid over."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from makeway.bitmap import NodeBits
from makeway.features import alternatives
from makeway.model import (
    Blocked,
    Cluster,
    ClusterView,
    Job,
    JobSpec,
    JobState,
    ModeFlag,
    Partition,
    PreemptBasis,
    PreemptMode,
    Seconds,
)
from makeway.preemption import PreemptionTable
from makeway_select_cons_tres.books import Books, Leaving
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.idle import IdleCores
from makeway_select_cons_tres.kinds import Kind, kind_of, signature_of, why_impossible
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.one_node import cpus_on_one_node, wish_of
from makeway_select_cons_tres.parameters import Parameters, in_partition, read_parameters
from makeway_select_cons_tres.request import AVAILABLE, RESERVED, Request, request_of
from makeway_select_cons_tres.steps import CoreTest, Mode, Shortage, barred
from makeway_select_cons_tres.table import TableKey
from makeway_slurm_rules.preemption import exempt_until

if TYPE_CHECKING:
    from makeway_select_cons_tres.timeline import Enough, Moments, Timeline

_MOST_REMEMBERED = 100_000
_MOST_BOOKS = 8
"""Books without some jobs are kept for so many sets of these."""


class Known:
    """The books of one run, the kinds of its jobs, and what was found out about them."""

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
            beside_parts=view.rule("whole_gpus_beside_parts"),
        )
        self.books = Books(self.layout)
        self.fitting = Fitting(self.books)
        self.idle = IdleCores(self.books, self.fitting)
        self.empty = Books(self.layout)
        """Books of the cluster without any job."""
        self._implicit_max_nodes = view.rule("implicit_max_nodes")
        self._whole_tasks = view.rule("cpus_in_whole_tasks")
        self._whole_tasks_by_memory = view.rule("memory_per_cpu_counts_whole_tasks")
        self._thins = view.rule("gpus_thin_cores")
        self._thins_in_all = view.rule("gpus_in_all_thin_cores")
        self._by_socket = view.rule("gpus_for_used_sockets")
        self._kinds: dict[Hashable, Kind] = {}
        self.kind_of: dict[str, tuple[JobSpec, Partition, Kind]] = {}
        """Kinds of jobs that were asked about, and what of and where, by job id."""
        self._keys: dict[TableKey, TableKey] = {}
        self._of_partition = {
            partition.name: in_partition(self.parameters, partition) for partition in cluster.partitions
        }
        self.guards_overlay = self.mode.gang and self.mode.partition_prio
        self._failed: dict[tuple[Kind, NodeBits], Shortage] = {}
        self._timelines: dict[int, tuple[Timeline, Sequence[tuple[Job, PreemptMode]]]] = {}
        """By identity of what is removed, which is kept so that no other has it."""
        self._moments: Moments | None = None
        """What nodes have at moments ahead; None: not asked for yet."""
        self._enough: dict[tuple[Kind, int], Enough] = {}
        """By the identity of their timeline."""
        self._timelines_at: tuple[int, int] | None = None
        self._releases: Sequence[tuple[Seconds, int, Job]] = ()
        """The books that they are about, and when jobs leave them."""
        self._without: dict[tuple[Leaving, ...], Books] = {}
        """The books without some jobs."""
        self._without_at = -1
        """Version of the books that `_without` is about."""
        self._below: dict[int, Sequence[Job]] = {}
        """Running jobs of lower tiers, by the tier."""
        self._below_at = -1
        """Version of the cluster that `_below` is about."""
        self._failed_at = -1
        """Version of the books that `_failed` is about."""

    # ------------------------------------------------------------------------------- kinds
    def kind(self, job: Job) -> Kind:
        """Return the kind of `job` in the partition that it is tried in."""
        known = self.kind_of.get(job.id)
        if known is not None and known[0] is job.spec and known[1] is job.partition:
            return known[2]
        signature = signature_of(job)
        kind = self._kinds.get(signature)
        if kind is None:
            kind = self._kinds[signature] = self._new_kind(job)
        if len(self.kind_of) >= _MOST_REMEMBERED:
            self.kind_of.clear()
        self.kind_of[job.id] = (job.spec, job.partition, kind)
        return kind

    def _new_kind(self, job: Job) -> Kind:
        parameters = self._of_partition[job.partition.name]
        request = request_of(
            job,
            self.cluster,
            parameters,
            implicit_max_nodes=self._implicit_max_nodes,
            whole_tasks=self._whole_tasks,
            whole_tasks_by_memory=self._whole_tasks_by_memory,
            trims=self.mode.trims,
            thins=self._thins,
            thins_in_all=self._thins_in_all,
            by_socket=self._by_socket,
        )
        key = _table_key(request)
        idle = self.empty.table(self._keys.setdefault(key, key))
        choices = alternatives(job.spec.features, self.cluster)
        kind = kind_of(request, self.layout, idle, choices, trims=self.mode.trims)
        kind.cpus_on_one_node = cpus_on_one_node(request, choices, self.layout, self.mode)
        kind.looks_at_used = request.mark == AVAILABLE or (
            request.mark == RESERVED and not self.mode.exclusive_stops
        )
        if not (self.mode.gang or kind.looks_at_used):
            kind.screen_wish = wish_of(kind, self.layout)
        return kind

    def request(self, job: Job) -> Request:
        """Return the normalised request of `job` in the partition that it is tried in."""
        return self.kind(job).request

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
    def timeline(self, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]]) -> Timeline:
        """Return what nodes have left as jobs end, as things stand or once some are removed for a preemptor.

        :param removable: the same list is known again.
        """
        books = self.books
        books.sync()
        moment, releases = (view.version, books.version), view.releases()
        if self._timelines_at != moment or self._releases is not releases:
            self._timelines_at, self._releases = moment, releases
            self._timelines.clear()
            self._enough.clear()
        found = self._timelines.get(id(removable) if removable else 0)
        if found is None:
            # Its numpy takes as long as a small replay.
            from makeway_select_cons_tres.timeline import Moments, Timeline

            gone = gone_with(removable, view)
            if gone:
                books = self.without(leaving(gone))
            if self._moments is None:
                self._moments = Moments(self.layout)
            elif self.books.depends_on_order:
                self._moments.forget()
            timeline = Timeline(books, view, gone, self._moments)
            found = self._timelines[id(removable) if removable else 0] = timeline, removable
        return found[0]

    def without(self, others: Sequence[Leaving]) -> Books:
        """Return the books as they would be without some jobs; not to be changed, as others get the same."""
        books = self.books
        books.sync()
        if self._without_at != books.version:
            self._without_at = books.version
            self._without.clear()
        asked = tuple(others)
        found = self._without.get(asked)
        if found is None:
            if len(self._without) >= _MOST_BOOKS:
                del self._without[next(iter(self._without))]
            found = self._without[asked] = books.copy()
            found.take_out_each(others)
        return found

    def enough(self, kind: Kind, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]]) -> Enough:
        """Return what says when one job of a kind may fit as jobs end.

        :param removable: as for `timeline`.
        """
        timeline = self.timeline(view, removable)
        found = self._enough.get((kind, id(timeline)))
        if found is None:
            from makeway_select_cons_tres.timeline import Enough

            bars = barred(kind.request, self.books, self.mode)
            found = self._enough[kind, id(timeline)] = Enough(timeline, kind, bars)
        return found

    def failure(self, kind: Kind, nodes: NodeBits) -> Shortage | None:
        """Return what was missing when a job of this kind found no place on `nodes` as things stand."""
        books = self.books
        books.sync()
        if self._failed_at != books.version:
            self._failed_at = books.version
            self._failed.clear()
        return self._failed.get((kind, nodes))

    def remember_failure(self, kind: Kind, nodes: NodeBits, short: Shortage) -> None:
        """Remember it until the books change; `failure` has been asked before."""
        if len(self._failed) >= _MOST_REMEMBERED:
            self._failed.clear()
        self._failed[kind, nodes] = short

    def guarded_jobs(self, preemptor: Job, view: ClusterView) -> Sequence[Job]:
        """Return running jobs that `preemptor` may not be laid over: those of a veto, and exempt ones."""
        if not self.guards_overlay:
            return ()
        lower = self._running_below(preemptor.partition.priority_tier, view)
        vetoed = view.protected(preemptor, lower)
        exempt = self._exempt_jobs(view)
        if not vetoed:
            return exempt
        return [*exempt, *(job for job in lower if job.id in vetoed and job not in exempt)]

    def _running_below(self, tier: int, view: ClusterView) -> Sequence[Job]:
        """Return the running jobs of partitions of a lower tier; looked for once while no job starts, stops or ends."""
        if self._below_at != view.version:
            self._below_at = view.version
            self._below.clear()
        found = self._below.get(tier)
        if found is None:
            running = [job for job in view.active if job.state is JobState.RUNNING]
            found = self._below[tier] = [job for job in running if job.partition.priority_tier < tier]
        return found

    def _exempt_jobs(self, view: ClusterView) -> Sequence[Job]:
        """Return running jobs that PreemptExemptTime keeps from being overlaid (slurm-preemption 1.6)."""
        least = view.settings(PreemptionTable).exempt_time
        if not least or least < 0 or not view.rule("exempt_time_guards_overlay"):
            return ()
        return [
            job
            for job in view.active
            if job.state is JobState.RUNNING
            and view.now < exempt_until(job, view, least)
            and view.mode_of(job) is PreemptMode.SUSPEND
        ]


def gone_with(
    removable: Sequence[tuple[Job, PreemptMode]], view: ClusterView
) -> list[tuple[Job, PreemptMode]]:
    """Return the jobs that leave with those removed: all components of each, and how."""
    return [(part, mode) for job, mode in removable for part in view.components(job)]


def leaving(gone: Sequence[tuple[Job, PreemptMode]]) -> list[Leaving]:
    """Return which of these give anything back, and whether each gives back all that it holds."""
    return [
        (job, mode.frees_all)
        for job, mode in gone
        if job.allocation is not None and mode is not PreemptMode.OFF
    ]


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
        plans_beside_sharers=view.rule("forecast_beside_sharers"),
        only_sharing_jobs_block=view.rule("only_sharing_jobs_block"),
        sharers_block_beside_rows=view.rule("sharers_block_beside_rows"),
        exclusive_stops=view.rule("exclusive_stops_after_step_one"),
        off_keeps_rows=view.rule("off_partition_keeps_rows"),
        denial_lasts=view.rule("denied_nodes_stay_denied"),
    )

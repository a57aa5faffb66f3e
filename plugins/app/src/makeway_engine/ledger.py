"""Keep the books: jobs, nodes and licences; the only module that changes a `Job`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol, TypeVar, cast

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.errors import RunnerError
from makeway.model import (
    Allocation,
    Blocked,
    Book,
    Cluster,
    ClusterView,
    Exclusive,
    Job,
    JobDraft,
    JobState,
    ModeSetting,
    Partition,
    PreemptBasis,
    PreemptMode,
    Protection,
    Seconds,
    SuspendedBy,
    Usage,
    read_only,
)
from makeway.tally import Tally
from makeway_engine.active import ActiveJobs
from makeway_engine.components import Components
from makeway_engine.deadlines import Deadlines
from makeway_engine.entries import Listeners
from makeway_engine.kept_books import KeptBooks
from makeway_engine.leaving import Leaving
from makeway_engine.usage import By

S = TypeVar("S")
B = TypeVar("B", bound=Book)

put_field = object.__setattr__
"""Change one field of a `Job`, quickly; for the engine alone."""
_NO_JOBS: tuple[Job, ...] = ()
QUIET = frozenset(("Resources", "None", ""))
"""Reasons that are no news for schedulers."""
SETTLED = ("Priority", "Licenses")
"""Reasons that jobs keep behind others from the start of a run on."""
# Members of an Enum are bound once where they are asked for again and again: Python 3.11 looks them up by a detour.
_RUNNING = JobState.RUNNING
_USER = Exclusive.USER
_by_index = attrgetter("index")


def put(job: Job, **changes: Any) -> None:
    """Change fields of a `Job`; for the engine alone."""
    for name, value in changes.items():
        put_field(job, name, value)


def enter(job: Job, partition: Partition) -> None:
    """Let one of the partitions of a job be the one where it is tried; without a time limit it has that one's."""
    put_field(job, "partition", partition)
    put_field(job, "time_limit", job.time_limit_in(partition))


class Rulings(Protocol):
    """What policies say of single jobs as the books stand; `makeway_engine.rulings` asks them."""

    def modes(self, jobs: Sequence[Job], ledger: Ledger) -> Sequence[PreemptMode]:
        """Return how each of `jobs` would make way."""

    def protected(self, preemptor: Job, jobs: Sequence[Job], ledger: Ledger) -> Mapping[str, Protection]:
        """Return which of `jobs` may not be displaced for `preemptor`."""

    def kept_out(
        self, job: Job, ledger: Ledger, without: Sequence[tuple[Job, PreemptMode]] = ()
    ) -> Blocked | None:
        """Return the limit that keeps `job` out once these have made way; None: none does."""

    def kept_out_in(self, view: ClusterView, job: Job) -> Blocked | None:
        """Return the same of the cluster as a view shows it."""


class Ledger:
    """The cluster as of now. Implements `makeway.model.ClusterView`; changes go through the verbs below."""

    def __init__(
        self,
        cluster: Cluster,
        preempt_mode: ModeSetting,
        rules: Mapping[str, bool],
        settings: Mapping[type[Any], Any],
        rulings: Rulings,
        select_parameters: Sequence[str] = (),
        preempt: str = "preempt/none",
        preempt_basis: PreemptBasis = PreemptBasis.NOTHING,
        on_reason: Callable[[Job, Seconds], None] | None = None,
        gone: list[str] | None = None,
        listeners: Listeners | None = None,
    ) -> None:
        """Open the books of a run.

        :param on_reason: told of each change of the reason for which a job waits; None: nothing is told.
        :param gone: gets the ids of jobs that end; None: they are not kept.
        :param listeners: told of each job that waits for another reason; None: nothing is told.
        """
        self.cluster = cluster
        self.preempt_mode = preempt_mode
        self.now: Seconds = 0.0
        self.jobs: dict[str, Job] = {}
        self.waiting: dict[str, Job] = {}
        """All pending jobs by id, eligible or not; `makeway_engine.queue` keeps them."""
        self.pending_now: tuple[Job, ...] | None = None
        """The same in job-table order, to hand out; None: a job came or went."""
        self.all_nodes = bitmap.full(len(cluster.nodes))
        self.up: NodeBits = bitmap.of([node.index for node in cluster.nodes if node.up])
        self._at_first = self.up
        self.version = 0
        """Grows whenever nodes, cores or licences were taken or given back."""
        self.reasons = 0
        """Grows whenever a job waits for something else, other than resources or nothing."""
        self.quieted: set[str] | None = None
        """Ids of jobs that wait for resources now, and waited for something else at the last look; None: nothing
        asks, and none are kept."""
        self.freed = 0
        """Grows whenever something was given back."""
        self._rules = rules
        self._settings = settings
        self._rulings = rulings
        self._on_reason = on_reason
        self._listeners = (listeners or Listeners()).of_reasons
        self.jobs_active = ActiveJobs(cluster)
        self._active = self.jobs_active.by_id
        self.held_tally = Tally()
        self.exclusive_tally = Tally()
        self._leaving = Leaving()
        self.completing: NodeBits = 0
        """Nodes that a job is still leaving."""
        self._license_holders: dict[str, dict[str, int]] = {}
        """Licence -> id of an active job -> how many it holds."""
        self._told: tuple[Seconds, int] = (-1.0, 0)
        self.searches = 0
        """How many searches for victims were begun in this pass."""
        self._components = Components()
        self.anyone_exclusive = 0
        """How many active jobs keep their nodes from other users."""
        self._deadlines = Deadlines()
        self.by_end = self._deadlines.by_end
        """Running jobs with a deadline, soonest first."""
        self._counts_suspended = self.rule("forecast_counts_suspended")
        self.gone = gone
        """Ids of jobs that have ended since they were last looked at; None: they are not kept."""
        self.select_parameters = select_parameters
        self.preempt = preempt
        self.preempt_basis = preempt_basis
        self.settled_reasons: set[str] = set(SETTLED)
        """Reasons that stay as they are behind a job that waits (recorded: builtin_licence_reason_kept)."""
        self.gives_whole_nodes = False
        """Whether every job gets all CPUs of its nodes; the selector says so once it is built."""
        self.kept_books = KeptBooks(cluster, cast(ClusterView, self))

    # ------------------------------------------------------------------------ ClusterView
    @property
    def active(self) -> Sequence[Job]:
        """All running and suspended jobs, in job-table order."""
        return self.jobs_active.in_order

    @property
    def pending(self) -> Sequence[Job]:
        """All pending jobs, in job-table order."""
        if self.pending_now is None:
            self.pending_now = tuple(sorted(self.waiting.values(), key=_by_index))
        return self.pending_now

    @property
    def present(self) -> Sequence[Job]:
        """All jobs that have not left, those whose nodes are being cleaned too, in job-table order."""
        return tuple(self.jobs.values())

    @property
    def idle(self) -> NodeBits:
        """Nodes in service that no job holds and none is leaving."""
        return self.up & ~self.held_tally.any & ~self.completing

    @property
    def heterogeneous(self) -> bool:
        """Whether there is any heterogeneous job."""
        return bool(self._components.parts)

    @property
    def held(self) -> NodeBits:
        """Nodes that an active job holds."""
        return self.held_tally.any

    @property
    def exclusive(self) -> NodeBits:
        """Nodes of running jobs that do not share."""
        return self.exclusive_tally.any

    @property
    def licenses_free(self) -> Mapping[str, int]:
        """Licences that no job holds."""
        holders = self._license_holders
        return {
            name: total - (sum(holders[name].values()) if name in holders else 0)
            for name, total in self.cluster.licenses.items()
        }

    @property
    def license_holders(self) -> Mapping[str, Mapping[str, int]]:
        """Licence -> active jobs that hold some of it -> how many."""
        holders: Mapping[str, Mapping[str, int]] = read_only(self._license_holders)
        return holders

    @property
    def told_now(self) -> int:
        """How many jobs were told to make way at this instant."""
        at, count = self._told
        return count if at == self.now else 0

    def told(self, count: int) -> None:
        """Take note that so many jobs are told to make way."""
        self._told = (self.now, self.told_now + count)

    @property
    def made_way(self) -> Sequence[Job]:
        """No jobs: this is what is."""
        return _NO_JOBS

    def rule(self, name: str) -> bool:
        """Return whether a rule is in force; those of vendors that are not in use are not."""
        return self._rules.get(name, False)

    def mode_of(self, job: Job) -> PreemptMode:
        """Return how `job` would make way."""
        return self._rulings.modes((job,), self)[0]

    def protected(self, preemptor: Job, jobs: Sequence[Job]) -> Mapping[str, Protection]:
        """Return which of `jobs` vetoes keep from `preemptor`."""
        return self._rulings.protected(preemptor, jobs, self) if jobs else {}

    def kept_out(self, job: Job, without: Sequence[tuple[Job, PreemptMode]] = ()) -> Blocked | None:
        """Return the limit that keeps a pending job out once these have made way; None: none does."""
        return self._rulings.kept_out(job, self, without)

    def would_be_kept_out(self, job: Job, *, time_limit: Seconds) -> Blocked | None:
        """Return the limit that would keep a pending job out if it had another time limit; None: none would."""
        asked = copy.copy(job)
        put(asked, spec=attrs.evolve(job.spec, time_limit=time_limit), time_limit=time_limit)
        return self.kept_out(asked)

    def kept_out_in(self, view: ClusterView, job: Job) -> Blocked | None:
        """Return the limit that keeps a pending job out of the cluster as a view shows it; None: none does."""
        return self._rulings.kept_out_in(view, job)

    def releases(self) -> Sequence[tuple[Seconds, int, Job]]:
        """Return the jobs that forecasts let end as (deadline, index, job), soonest first."""
        return self._deadlines.releases(suspended=self._counts_suspended)

    def jobs_on(self, node: int) -> Sequence[Job]:
        """Return the active jobs on a node, in order of start."""
        return self.jobs_active.on(node)

    def job(self, job_id: str) -> Job | None:
        """Return a live job by id, or None."""
        return self.jobs.get(job_id)

    def components_of(self, het_id: str) -> Sequence[Job]:
        """Return what is left of a heterogeneous job; empty: nothing is, or there is none of this id."""
        return self._components.of_id(het_id)

    def components(self, job: Job) -> Sequence[Job]:
        """Return all components of a heterogeneous job, leader first; an ordinary job alone."""
        return self._components.of(job)

    def settings(self, cls: type[S]) -> S:
        """Return the settings of the plugin whose settings class is `cls`."""
        found = self._settings.get(cls)
        if found is None:
            found = cls()
        assert isinstance(found, cls)
        return found

    @property
    def active_count(self) -> int:
        """How many jobs are running or suspended."""
        return len(self._active)

    def is_active(self, job: Job) -> bool:
        """Whether `job` holds its nodes at this instant."""
        return self._active.get(job.id) is job

    def active_job(self, job_id: str) -> Job | None:
        """Return a running or suspended job by id, or None."""
        return self._active.get(job_id)

    def usage(self, by: By, *, running: bool = False) -> Mapping[Any, Usage]:
        """Return what active jobs hold, by user and so on."""
        return self.kept_books.usage(by, self._active.values(), running=running)

    def book(self, kind: Callable[[ClusterView], B]) -> B:
        """Return the book of a kind that is kept for this run."""
        return self.kept_books.book(kind, self.jobs.values(), self._active.values())

    # ------------------------------------------------------------------------------ verbs
    def enter(self, draft: JobDraft) -> Job:
        """Add a new job to the job table, and return it; from now on nothing else can set its fields."""
        if draft.id in self.jobs:
            raise RunnerError(f"job {draft.id} was submitted twice")
        draft.__class__ = Job
        job = cast(Job, draft)
        self.jobs[job.id] = job
        if job.spec.het_id is not None:
            self._components.add(job)
        if self.kept_books.kept:
            self.kept_books.came(job)
        return job

    def revive(self, job: Job) -> None:
        """Take a job in again that had ended, where it was in the job table."""
        jobs = self.jobs
        there = sorted((*jobs.values(), job), key=_by_index)
        jobs.clear()
        jobs.update((each.id, each) for each in there)
        if job.spec.het_id is not None:
            self._components.add(job)
        if self.kept_books.kept:
            self.kept_books.came(job)

    def forget(self, job: Job) -> None:
        """Drop a job that has ended."""
        del self.jobs[job.id]
        if self.kept_books.kept:
            self.kept_books.gone(job)
        if self.gone is not None:
            self.gone.append(job.id)
        if job.spec.het_id is not None:
            self._components.remove(job)

    def wait_for(self, job: Job, reason: str) -> None:
        """Let `reason` be what a pending job waits for."""
        if job.reason != reason:
            if reason not in QUIET:
                self.reasons += 1
            elif self.quieted is not None and job.reason not in QUIET:
                self.quieted.add(job.id)
            put_field(job, "reason", reason)
            for listener in self._listeners:
                listener.waits(job)
            if self._on_reason is not None:
                self._on_reason(job, self.now)

    def note_reason(self, job: Job, reason: str) -> None:
        """Let `reason` be what a pending job waits for, without news of it."""
        put_field(job, "reason", reason)
        for listener in self._listeners:
            listener.waits(job)

    def start(self, job: Job, allocation: Allocation) -> None:
        """Give `allocation` to a pending job; it runs from now on."""
        now = self.now
        put_field(job, "allocation", allocation)
        put_field(job, "state", _RUNNING)
        put_field(job, "reason", "None")
        put_field(job, "starts", job.starts + 1)
        put_field(job, "started_at", now)
        put_field(job, "resumed_at", now)
        if job.restarts or job.preemptions:
            put(job, ran=0.0, stopped=0.0, preemptions_before=job.preemptions)
        if job.time_limit is not None:
            self._deadlines.set(job, now + job.time_limit)
        self._hold(job, allocation)
        self.version += 1

    def _hold(self, job: Job, allocation: Allocation) -> None:
        """Book an active job and what it holds."""
        self.jobs_active.add(job)
        nodes = allocation.nodes
        self.held_tally.add(nodes)
        if not allocation.shared and job.state is _RUNNING:
            self.exclusive_tally.add(nodes)
        if self.kept_books.kept:
            self.kept_books.started(job)
        if allocation.licenses:
            for name, count in allocation.licenses.items():
                self._license_holders.setdefault(name, {})[job.id] = count
        if job.partition.exclusive_user or job.spec.exclusive is _USER:
            self.anyone_exclusive += 1

    def began_late(self, job: Job, at: Seconds) -> None:
        """Take note that a job really started at `at`, which is later than was thought."""
        began = job.started_at
        if began is not None and job.state is _RUNNING and job.resumed_at == began:
            put_field(job, "resumed_at", at)
            if job.end_at is not None and job.preempt_at is None:
                self.move_deadline(job, job.end_at + at - began)
        put_field(job, "started_at", at)

    def suspend(self, job: Job, by: SuspendedBy) -> None:
        """Stop a running job; it keeps its allocation."""
        put(
            job,
            ran=job.ran_until(self.now),
            state=JobState.SUSPENDED,
            suspended_at=self.now,
            suspended_by=by,
            resumed_at=None,
        )
        self.kept_books.stopped(job)
        self._deadlines.stopped(job)
        if job.allocation is not None and not job.allocation.shared:
            self.exclusive_tally.remove(job.allocation.nodes)
        self.version += 1
        self.freed += 1

    def resume(self, job: Job, keep_deadline: Seconds | None = None) -> None:
        """Continue a suspended job; its limit counts running time only, unless a deadline is kept."""
        stopped = self.now - job.suspended_at if job.suspended_at is not None else 0.0
        put(
            job,
            state=_RUNNING,
            stopped=job.stopped + stopped,
            resumed_at=self.now,
            suspended_at=None,
            suspended_by=None,
        )
        self.kept_books.resumed(job)
        self._deadlines.clear(job)
        if keep_deadline is not None:
            self._deadlines.set(job, keep_deadline)
        elif job.time_limit is not None:
            self._deadlines.set(job, self.now + max(0.0, job.time_limit - job.ran))
        if job.allocation is not None and not job.allocation.shared:
            self.exclusive_tally.add(job.allocation.nodes)
        self.version += 1

    def rearrange(self, job: Job, allocation: Allocation) -> None:
        """Let an active job hold other cores of its nodes."""
        put_field(job, "allocation", allocation)
        self.kept_books.altered(job)

    def moved(self, job: Job) -> None:
        """Take note that a pending job may be in other partitions."""
        self.kept_books.altered(job)

    def tell_to_leave(self, job: Job) -> None:
        """Take note that an active job is told to make way now."""
        put_field(job, "preempt_at", self.now)
        self.kept_books.altered(job)

    def release(self, job: Job, *, at_once: bool = False) -> None:
        """Take the allocation of an active job back.

        :param at_once: its nodes are free now; otherwise they count as completing until `cleaned`.
        """
        allocation = job.allocation
        if allocation is None:
            raise RunnerError(f"job {job.id} ended but holds no nodes")
        if job.end_at is not None:
            self._deadlines.clear(job)
        if self.kept_books.kept:
            self.kept_books.left(job)
        self.jobs_active.remove(job)
        nodes = allocation.nodes
        self.held_tally.remove(nodes)
        if not allocation.shared and job.state is _RUNNING:
            self.exclusive_tally.remove(nodes)
        if at_once and allocation.licenses:
            self._give_licences_back(job, allocation)
        if job.partition.exclusive_user or job.spec.exclusive is _USER:
            self.anyone_exclusive -= 1
        if not at_once:
            self._leaving.add(job, allocation)
            self.completing = self._leaving.nodes
        self.version += 1
        self.freed += 1

    def _give_licences_back(self, job: Job, allocation: Allocation) -> None:
        for name in allocation.licenses:
            del self._license_holders[name][job.id]

    def leaving(self, nodes: NodeBits) -> list[str]:
        """Return the ids of the jobs that have ended and are still leaving some of `nodes`."""
        return self._leaving.on(nodes)

    def cleaned_partly(self, job: Job, nodes: NodeBits) -> None:
        """Take note that `job` has left some of its nodes before the others."""
        self._leaving.cleaned_partly(job, nodes)
        self.completing = self._leaving.nodes
        self.freed += 1

    def never_cleaned(self, job: Job) -> None:
        """Let the nodes of a job count as if it was leaving them for good, though it ends."""
        self._leaving.stuck(job.id, job.nodes)
        self.completing = self._leaving.nodes

    def cleaned(self, job: Job) -> None:
        """Take note that `job` has left its nodes; its licences come back now (recorded: licence_until_clean)."""
        self._leaving.cleaned(job)
        self.completing = self._leaving.nodes
        if job.allocation is not None and job.allocation.licenses:
            self._give_licences_back(job, job.allocation)
            self.version += 1
        put_field(job, "allocation", None)
        self.freed += 1

    def move_deadline(self, job: Job, at: Seconds) -> None:
        """Let the deadline of an active job be `at`."""
        self._deadlines.set(job, at)

    def reopened(self) -> None:
        """Take note that nodes which were closed to some jobs are open to them again."""
        self.version += 1
        self.freed += 1

    def obstruct(self, job: Job, why: str) -> None:
        """Take note of why an active job cannot be checkpointed; empty: it can be."""
        if job.obstacle != why:
            put(job, obstacle=why)
            self.version += 1

    def set_down(self, nodes: NodeBits) -> None:
        """Take nodes out of service."""
        self.up &= ~nodes
        self.version += 1

    def set_up(self, nodes: NodeBits) -> None:
        """Put nodes back into service."""
        self.up |= nodes & self.all_nodes
        self._leaving.back_in_service(nodes)
        self.completing = self._leaving.nodes
        self.version += 1
        self.freed += 1

    @property
    def missing(self) -> NodeBits:
        """Nodes that were in service when the run began, and are not now."""
        return self._at_first & ~self.up

    def limit(self, job: Job, limit: Seconds) -> None:
        """Give a live job another time limit; the deadline of a grace time stays."""
        put(job, time_limit=limit, spec=attrs.evolve(job.spec, time_limit=limit))
        if job.state is _RUNNING and job.preempt_at is None:
            self._deadlines.set(job, self.now + max(0.0, limit - job.ran_until(self.now)))

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what a look at the jobs does not tell, for `restore`."""
        return {
            "version": self.version,
            "freed": self.freed,
            "told": list(self._told),
            "searches": self.searches,
            "started": list(self._active),
            "stuck": self._leaving.save(),
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with the counts that another ledger handed over."""
        self.version = memory["version"]
        self.freed = memory["freed"]
        at, count = memory["told"]
        self._told = (at, count)
        self.searches = memory["searches"]
        if self.rule("killed_at_resume_keeps_nodes"):
            self._leaving.restore(memory.get("stuck", {}))
        self.completing = self._leaving.nodes

    def left_early(self, job: Job) -> NodeBits:
        """Return the nodes that a job which is leaving has left already."""
        return self._leaving.left_early(job)

    def adopt_active(self, job: Job, allocation: Allocation) -> None:
        """Book a job that is running or suspended already; its fields are set."""
        self._hold(job, allocation)
        self._deadlines.note(job)

    def adopt_leaving(self, job: Job, allocation: Allocation, left: NodeBits) -> None:
        """Book a job that is leaving its nodes, and has left some of them."""
        self._leaving.add(job, allocation, left)
        self.completing = self._leaving.nodes
        for name, count in allocation.licenses.items():
            self._license_holders.setdefault(name, {})[job.id] = count

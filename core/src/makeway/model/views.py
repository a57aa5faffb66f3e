"""Define what plugins look at: the cluster as of now, and one attempt to place a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from makeway.bitmap import NodeBits
from makeway.model.answers import Blocked, Placement, Protection
from makeway.model.cluster import Cluster, ModeSetting
from makeway.model.jobs import Job, Usage
from makeway.model.values import PreemptBasis, PreemptMode, Seconds

S = TypeVar("S")
B = TypeVar("B", bound="Book")


class Book(Protocol):
    """Counts what jobs hold or have used, at a cost that does not grow with the number of jobs (`ClusterView.book`).

    In `left`, ``job.preempt_at`` tells a preemption from an end: it is None if the job ends by itself, by its time
    limit or by a person. A suspension is no leaving; a `Witness` hears of it. Where another engine goes on, books
    are made anew: what the jobs do not show has to be saved (`makeway.model.Limits`).
    """

    def started(self, job: Job, view: ClusterView) -> None:
        """Count a job that has been given its nodes; one that ran before the book was made has an earlier start."""

    def left(self, job: Job, view: ClusterView) -> None:
        """Count it no longer: it has ended, or has to make way; it still stands as it did."""


class Roll(Book, Protocol):
    """A book that is told as well of jobs that come and go, whether they ever start."""

    def came(self, job: Job, view: ClusterView) -> None:
        """Count a job that was submitted; it may be refused in the same instant."""

    def gone(self, job: Job, view: ClusterView) -> None:
        """Count it no longer: it has ended, or was refused."""


class Witness(Book, Protocol):
    """A book that is told as well of jobs that change; each stands as it does from then on."""

    def stopped(self, job: Job, view: ClusterView) -> None:
        """Count a running job as suspended."""

    def resumed(self, job: Job, view: ClusterView) -> None:
        """Count a suspended job as running."""

    def altered(self, job: Job, view: ClusterView) -> None:
        """Look at a job again.

        It holds other cores of its nodes, has been told to make way, or was put into other partitions while it waits.
        """


class ClusterView(Protocol):
    """The cluster as of now; read-only, valid during the call."""

    @property
    def cluster(self) -> Cluster:
        """What does not change."""

    @property
    def now(self) -> Seconds:
        """The only clock there is."""

    @property
    def active(self) -> Sequence[Job]:
        """All running and suspended jobs, in job-table order."""

    @property
    def pending(self) -> Sequence[Job]:
        """All pending jobs, in job-table order."""

    @property
    def present(self) -> Sequence[Job]:
        """All jobs that have not left, those whose nodes are being cleaned too, in job-table order."""

    @property
    def up(self) -> NodeBits:
        """Nodes in service."""

    @property
    def idle(self) -> NodeBits:
        """Nodes in service that no job holds and none is leaving."""

    @property
    def completing(self) -> NodeBits:
        """Nodes that a job is still leaving."""

    @property
    def preempt_mode(self) -> ModeSetting:
        """The cluster-wide mode."""

    @property
    def heterogeneous(self) -> bool:
        """Whether there is any heterogeneous job."""

    @property
    def preempt(self) -> str:
        """Name of the preempt plugin in force (``preempt/none``, ``preempt/qos``, ...); for messages only.

        The same plugin may be registered under another name: ask `preempt_basis` for what it does.
        """

    @property
    def preempt_basis(self) -> PreemptBasis:
        """What decides which jobs may displace which, as the preempt plugin in force says of itself."""

    @property
    def select_parameters(self) -> Sequence[str]:
        """Parameters of the selection (CR_Memory, CR_Core, ...)."""

    @property
    def gives_whole_nodes(self) -> bool:
        """Whether every job gets all CPUs of its nodes, whatever it asks for, as the selector in force says."""

    @property
    def licenses_free(self) -> Mapping[str, int]:
        """Licences that no job holds."""

    @property
    def license_holders(self) -> Mapping[str, Mapping[str, int]]:
        """Licence -> active jobs that hold some of it -> how many."""

    def usage(self, by: str | tuple[str, ...], *, running: bool = False) -> Mapping[Any, Usage]:
        """Return what active jobs hold, by user and so on: kept up to date by the engine, so that asking costs little.

        :param by: ``user``, ``account``, ``group``, ``partition`` or ``qos``; several: the keys are tuples.
        :param running: whether suspended jobs are left out.
        :returns: name -> usage; None stands for jobs that have none (no account, no QOS). A name that is not there
            has an empty usage: ``view.usage("user")["ann"].cpus`` is 0 for a user without an active job.
        :raises ValueError: `by` is none of these.
        """

    def book(self, kind: Callable[[ClusterView], B]) -> B:
        """Return a book that is kept for this run, and told of each job that starts or leaves.

        Any number of plugins may read the same book. The first call makes it and tells it of the jobs that are active
        then, in the order in which they started. From then on it is told of every job that comes or goes.

        :param kind: makes the book of a view; there is one for each kind.
        """

    @property
    def told_now(self) -> int:
        """How many jobs were told to make way at this instant."""

    @property
    def searches(self) -> int:
        """How many searches for victims were begun in this pass, for policies that allow only so many."""

    @property
    def version(self) -> int:
        """Grows whenever a job started, stopped, went on or left its nodes; for what is worth remembering."""

    @property
    def made_way(self) -> Sequence[Job]:
        """Jobs that this view shows as suspended or gone although they are not yet; empty: it shows what is."""

    def rule(self, name: str) -> bool:
        """Return whether the rule `name` is in force: one of `makeway.switches`, or of a vendor in use."""

    def mode_of(self, job: Job) -> PreemptMode:
        """Return how `job` would make way, as the preempt plugin says."""

    def protected(self, preemptor: Job, jobs: Sequence[Job]) -> Mapping[str, Protection]:
        """Return which of `jobs` vetoes (`makeway_protect`) keep from `preemptor`, by id.

        For selectors that lay a job over others without asking for candidates.
        """

    def kept_out(self, job: Job, without: Sequence[tuple[Job, PreemptMode]] = ()) -> Blocked | None:
        """Return the limit (`Limits.admit`) that keeps a pending job out once these have made way; None: none does.

        For searches that choose victims for a limit's sake as well as for room; see `Blocked.frees`.
        """

    def jobs_on(self, node: int) -> Sequence[Job]:
        """Return the active jobs on the node of index `node`, in order of start."""

    def job(self, job_id: str) -> Job | None:
        """Return a pending or active job by id, or None."""

    def components(self, job: Job) -> Sequence[Job]:
        """Return all components of a heterogeneous job, leader first; an ordinary job alone."""

    def releases(self) -> Sequence[tuple[Seconds, int, Job]]:
        """Return the jobs that forecasts let end as (deadline, index, job), soonest first.

        These are running ones with a deadline; under rule ``forecast_counts_suspended`` suspended ones, too. It is the
        very same sequence until a deadline changes.
        """

    def settings(self, cls: type[S]) -> S:
        """Return the settings of the plugin whose settings class is `cls`."""


class Attempt(Protocol):
    """One pending job against the cluster, while a search simulates removing jobs."""

    @property
    def job(self) -> Job:
        """The pending job."""

    def probe(self) -> Placement | Blocked:
        """Place the job as if the removed jobs were gone; say what is short if it cannot be."""

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Simulate removing `job`: all that it holds, or for SUSPEND only what suspension frees."""

    def fresh(self) -> Attempt:
        """Return an attempt for the same job with nothing removed."""

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Describe the problem as "free so many nodes" if it is just that; None if it is not."""


@attrs.frozen(kw_only=True, eq=False)
class Cover:
    """A placement problem that is only about freeing enough nodes.

    The job fits as soon as `wanted` nodes of `free` and of the keys of `blockers` are free, where a
    node is freed once all its blockers are removed.
    """

    wanted: int
    """How many nodes it needs."""
    free: int
    """How many usable nodes no job has to leave."""
    blockers: Mapping[int, tuple[int, ...]]
    """Node index -> positions of the candidates that have to leave it; nodes that cannot be freed are left out."""

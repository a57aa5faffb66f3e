"""Define the values that the engine and its plugins speak of: cluster, jobs, placements, plans.

All values are frozen. `Job` is a read-only face as well: its fields change while a run goes on, but
only the engine changes them (`makeway.engine.ledger`); a plugin that tries gets an error.
Memory is in MB, time in seconds since the start of the replay, sets of nodes are bitmaps
(`makeway.bitmap`) in index order.
"""

from __future__ import annotations

import copyreg
import enum
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import attrs

from makeway.bitmap import CoreBits, NodeBits

Seconds = float
"""Seconds since the start of the replay (instants) or a length of time."""

S = TypeVar("S")
B = TypeVar("B", bound="Book")

NOTHING: Mapping[str, Any] = MappingProxyType({})


def _read_only(content: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(content) if content else NOTHING


def _reduced(mapping: MappingProxyType[str, Any]) -> tuple[Any, ...]:
    return _read_only, (dict(mapping),)


# Python cannot pickle read-only views by itself; jobs and configurations go to other processes (sweeps).
copyreg.pickle(MappingProxyType, _reduced)

PREEMPTIONS_KEPT = 100
"""How many instants `Job.preempted_at` holds at the most."""


# ------------------------------------------------------------------------------- closed sets
class PreemptMode(enum.Enum):
    """How a victim makes way."""

    OFF = "off"
    """It does not: nothing is done to the job."""
    SUSPEND = "suspend"
    """It stops and keeps its memory; it resumes on the same nodes."""
    CHECKPOINT = "checkpoint"
    """Its state is saved, it leaves its nodes, and starts again from the last checkpoint."""
    REQUEUE = "requeue"
    """It is terminated and waits again; the work is lost."""
    CANCEL = "cancel"
    """It is terminated for good; the work is lost."""

    @property
    def frees_all(self) -> bool:
        """Whether the victim gives back everything that it holds (memory and licences too)."""
        return self in (PreemptMode.CHECKPOINT, PreemptMode.REQUEUE, PreemptMode.CANCEL)


class ModeFlag(enum.Enum):
    """Modifiers that stand beside a mode (Slurm)."""

    GANG = "gang"
    """The gang arbiter suspends and resumes."""
    WITHIN = "within"
    """Jobs of one QOS may displace each other, by priority."""
    PRIORITY = "priority"
    """The preemptor's own priority counts as well."""


class JobState(enum.Enum):
    """Where a job stands."""

    PENDING = "PENDING"
    """It waits."""
    RUNNING = "RUNNING"
    """It runs."""
    SUSPENDED = "SUSPENDED"
    """It is stopped, and holds its nodes and memory."""
    COMPLETING = "COMPLETING"
    """It has ended, and its nodes are not clean yet."""
    COMPLETED = "COMPLETED"
    """It ended by itself."""
    FAILED = "FAILED"
    """It ended with an error, or can never run."""
    CANCELLED = "CANCELLED"
    """A person ended it."""
    PREEMPTED = "PREEMPTED"
    """It was ended for another job."""
    TIMEOUT = "TIMEOUT"
    """It reached its time limit."""
    NODE_FAIL = "NODE_FAIL"
    """A node of it failed."""

    @property
    def ended(self) -> bool:
        """Whether the job will never run again."""
        return self not in _LIVE_STATES

    @property
    def active(self) -> bool:
        """Whether the job holds nodes and may be a victim: running or suspended."""
        return self is _RUNNING or self is JobState.SUSPENDED


_RUNNING = JobState.RUNNING
_LIVE_STATES = frozenset({JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})


class SuspendedBy(enum.Enum):
    """Who stopped a suspended job."""

    POLICY = "policy"
    """The gang arbiter or a preemption: it is resumed by the same arbiter."""
    ADMIN = "admin"
    """A person: only a person resumes it."""


class Sharing(enum.Enum):
    """Whether jobs of a partition share nodes or cores (Slurm OverSubscribe)."""

    NO = "NO"
    """Each resource has one job."""
    EXCLUSIVE = "EXCLUSIVE"
    """Each node has one job."""
    YES = "YES"
    """Jobs share if they ask to."""
    FORCE = "FORCE"
    """Jobs share whether they ask to or not."""


class Exclusive(enum.Enum):
    """With whom a job refuses to share its nodes."""

    NODE = "node"
    """With nobody: whole nodes."""
    USER = "user"
    """With jobs of other users."""
    MCS = "mcs"
    """With jobs of another security label."""


class PreemptBasis(enum.Enum):
    """What decides which jobs may displace others, as far as selectors have to know it.

    A preempt plugin says so with `makeway.hookspecs.based_on`. Selectors that model a scheduler ask the view for
    it, and never for the plugin's name.
    """

    NOTHING = "nothing"
    """Nobody displaces anybody: preemption is off."""
    PARTITION = "partition"
    """The tiers of partitions: the job of a higher tier may be laid over one of a lower tier."""
    QOS = "qos"
    """The rules of the jobs' QOS, whatever their partitions."""
    OTHER = "other"
    """Something else, or the plugin does not say."""


# ---------------------------------------------------------------------------------- the cluster
@attrs.frozen(kw_only=True)
class ModeSetting:
    """A mode as configured: an action, or none, and modifiers."""

    action: PreemptMode | None = None
    """None: only modifiers were given."""
    flags: frozenset[ModeFlag] = frozenset()
    """Modifiers beside the action; empty: none."""

    def words(self) -> tuple[str, ...]:
        """Return the spelling used in the config, action first."""
        head = (self.action.value,) if self.action else ()
        return head + tuple(flag.value for flag in ModeFlag if flag in self.flags)


@attrs.frozen(kw_only=True)
class OverSubscribe:
    """How many jobs may share a resource of a partition."""

    sharing: Sharing = Sharing.NO
    """Whether jobs share at all."""
    count: int = 1
    """Jobs per resource under YES and FORCE; 1 otherwise."""

    def __str__(self) -> str:
        shared = self.sharing in (Sharing.YES, Sharing.FORCE)
        return f"{self.sharing.value}:{self.count}" if shared else self.sharing.value


@attrs.frozen(kw_only=True)
class Node:
    """One machine."""

    name: str
    """Host name."""
    index: int
    """Place in index order: names sorted naturally."""
    cpus: int = 1
    """CPUs that jobs may have: cores, or hardware threads where these are counted."""
    sockets: int = 1
    """Number of sockets."""
    cores_per_socket: int = 1
    """Cores of one socket."""
    threads_per_core: int = 1
    """Hardware threads of one core."""
    memory_mb: int = 1
    """Memory of the machine."""
    mem_spec_limit_mb: int = 0
    """Memory kept for the system, never given to jobs."""
    weight: int = 1
    """Lower is used first."""
    features: frozenset[str] = frozenset()
    """Words that jobs may ask for (`JobSpec.features`)."""
    gres: Mapping[str, int] = attrs.field(factory=dict)
    """Counted resources such as ``gpu``; typed ones also as ``gpu:a100``."""
    up: bool = True
    """Whether it is in service when the run begins; `ClusterView.up` says what holds now."""
    record: int = 0
    """Which configuration record (NodeName line, ``[[node]]`` table) described it."""
    load: float = 0.0
    """Host load, for policies that take from the least loaded host."""
    attributes: Mapping[str, Any] = NOTHING
    """Whatever a foreign configuration said beyond the model."""

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self.sockets * self.cores_per_socket

    @property
    def usable_memory_mb(self) -> int:
        """Memory that jobs may have."""
        return max(0, self.memory_mb - self.mem_spec_limit_mb)


@attrs.frozen(kw_only=True)
class Partition:
    """Nodes with common limits and a preemption rule (LSF queue, Moab class)."""

    name: str
    """Name, as jobs give it."""
    index: int = 0
    """Place in the configuration."""
    nodes: NodeBits = 0
    """Its nodes, in service or not."""
    priority_tier: int = 1
    """Rank; higher may preempt lower, and is tried first."""
    priority_job_factor: int = 1
    """What the partition adds to priorities under ``multifactor``."""
    oversubscribe: OverSubscribe = OverSubscribe()
    """How many jobs may share a resource here."""
    exclusive_user: bool = False
    """Nodes are owned by one user while a job of this partition runs there."""
    preempt_mode: ModeSetting | None = None
    """None: the cluster-wide mode applies."""
    grace_time: Seconds = 0.0
    """A victim's time from notice to action."""
    qos: str | None = None
    """QOS of the partition; None: it has none."""
    default: bool = False
    """Whether jobs that name no partition come here."""
    max_time: Seconds | None = None
    """Longest time limit; None: unlimited."""
    default_time: Seconds | None = None
    """Limit of jobs that ask for none; None: `max_time`."""
    min_nodes: int = 0
    """Fewest nodes per job."""
    max_nodes: int | None = None
    """Most nodes per job; None: unlimited."""
    def_mem_per_cpu: int | None = None
    """What a job that asks for no memory gets per CPU; None: as the cluster says."""
    def_mem_per_node: int | None = None
    """The same per node; None: as the cluster says."""
    max_mem_per_cpu: int | None = None
    """Most memory per CPU; None: as the cluster says."""
    max_mem_per_node: int | None = None
    """Most memory per node; None: as the cluster says."""
    max_cpus_per_node: int | None = None
    """Most CPUs of a node that jobs of the partition use together; None: all."""
    select_parameters: tuple[str, ...] = ()
    """Overrides of the selector's parameters (CR_Core ...); empty: the cluster's."""
    lln: bool = False
    """Least loaded node first."""
    up: bool = True
    """Whether jobs may start there; else they wait."""
    accepts: bool = True
    """Whether it takes new jobs, as all jobs of a replay are; else they are refused."""
    attributes: Mapping[str, Any] = NOTHING
    """Settings that only a plugin knows (an LSF queue's PREEMPTION line, ...)."""


@attrs.frozen(kw_only=True)
class Qos:
    """A service class that may carry preempt rules."""

    name: str
    """Name, as jobs give it."""
    index: int = 0
    """Place in the configuration."""
    priority: int = 0
    """Rank among QOS; higher is better."""
    preempt: frozenset[str] = frozenset()
    """Names of the QOS whose jobs it may preempt; not transitive."""
    preempt_mode: ModeSetting | None = None
    """None: the cluster-wide mode applies."""
    grace_time: Seconds = 0.0
    """A victim's time from notice to action."""
    exempt_time: Seconds | None = None
    """None: not set here; 0 counts as set."""
    flags: frozenset[str] = frozenset()
    """OverPartQOS, NoReserve, ... as sacctmgr spells them."""
    attributes: Mapping[str, Any] = NOTHING
    """Settings that only a plugin knows."""


@attrs.frozen(kw_only=True)
class Cluster:
    """What does not change during a run: nodes in index order, partitions, QOS, licences."""

    name: str = "cluster"
    """Name of the cluster."""
    nodes: tuple[Node, ...] = ()
    """All nodes, in index order."""
    partitions: tuple[Partition, ...] = ()
    """All partitions, as configured."""
    qos: tuple[Qos, ...] = ()
    """All QOS, as configured."""
    licenses: Mapping[str, int] = attrs.field(factory=dict)
    """Licence -> how many there are."""
    def_mem_per_cpu: int | None = None
    """What a job that asks for no memory gets per CPU; None: nothing."""
    def_mem_per_node: int | None = None
    """The same per node; None: nothing."""
    max_mem_per_cpu: int | None = None
    """Most memory per CPU; None: any."""
    max_mem_per_node: int | None = None
    """Most memory per node; None: any."""
    attributes: Mapping[str, Any] = NOTHING
    """Settings that only a plugin knows, by file or plugin."""

    _partition_of: dict[str, Partition] = attrs.field(
        init=False,
        repr=False,
        eq=False,
        default=attrs.Factory(lambda self: {p.name: p for p in self.partitions}, takes_self=True),
    )
    _qos_of: dict[str, Qos] = attrs.field(
        init=False,
        repr=False,
        eq=False,
        default=attrs.Factory(lambda self: {q.name: q for q in self.qos}, takes_self=True),
    )
    _node_of: dict[str, Node] = attrs.field(
        init=False,
        repr=False,
        eq=False,
        default=attrs.Factory(lambda self: {n.name: n for n in self.nodes}, takes_self=True),
    )

    def partition(self, name: str) -> Partition | None:
        """Return the partition called `name`, or None."""
        return self._partition_of.get(name)

    def qos_named(self, name: str | None) -> Qos | None:
        """Return the QOS called `name`, or None."""
        return self._qos_of.get(name) if name is not None else None

    def node(self, name: str) -> Node | None:
        """Return the node called `name`, or None."""
        return self._node_of.get(name)

    @property
    def default_partition(self) -> Partition | None:
        """The partition of jobs that name none: the one marked default, else a single one."""
        for partition in self.partitions:
            if partition.default:
                return partition
        return self.partitions[0] if len(self.partitions) == 1 else None


# --------------------------------------------------------------------------------------- jobs
@attrs.frozen(kw_only=True)
class UserSignal:
    """A signal that a job asked for ahead of its end (``--signal=[R][B]:USR1@300``)."""

    name: str
    """Name without SIG: ``USR1``."""
    lead: Seconds = 60.0
    """How long before the end it is sent."""
    batch_only: bool = False
    """B: the batch shell alone gets it."""
    borrows_reservation: bool = False
    """R: the job may run on idle nodes of a reservation and be preempted there."""


@attrs.frozen(kw_only=True)
class JobSpec:
    """What was submitted: one job, or one component of a heterogeneous job."""

    id: str
    """Id, unique in the run; components of a heterogeneous job have ids of their own (``7+1``)."""
    name: str = ""
    """Name of the job; empty: none was given."""
    user: str = "user"
    """Who submitted it."""
    group: str | None = None
    """The user's group; None: not known."""
    account: str | None = None
    """The account that is charged; None: none was given."""
    partitions: tuple[str, ...] = ()
    """Partitions to try, any of them; empty: the default one."""
    qos: str | None = None
    """Name of the QOS asked for; None: none."""
    submit_at: Seconds = 0.0
    """When it was submitted."""
    begin_at: Seconds | None = None
    """Not before this instant; None: at once."""
    run_time: Seconds | None = None
    """Work in seconds of undisturbed running, known to simulations only; None: runs until told to end."""
    time_limit: Seconds | None = None
    """Requested limit; None: the partition's."""
    min_nodes: int = 1
    """Fewest nodes asked for."""
    max_nodes: int | None = None
    """Most nodes the user accepts, and the number aimed at; None: none was given."""
    tasks: int | None = None
    """Tasks over all nodes; None: not said."""
    cpus_per_task: int = 1
    """CPUs of each task."""
    tasks_per_node: int | None = None
    """Tasks on each node; None: not said."""
    tasks_per_socket: int | None = None
    """Most tasks on a socket; None: any."""
    tasks_per_core: int | None = None
    """Most tasks on a core; None: any."""
    threads_per_core: int | None = None
    """Hardware threads used of each core; None: not said."""
    sockets_per_node: int | None = None
    """Fewest sockets that a node must have; None: any."""
    cores_per_socket: int | None = None
    """Fewest cores that a socket must have; None: any."""
    min_cpus_per_node: int = 1
    """Fewest CPUs that each node must offer."""
    distribution: str | None = None
    """``-m``: how tasks are laid over nodes and sockets; None: the default."""
    spread: bool = False
    """Whether it asked for as many nodes as possible."""
    memory_mb_per_node: int | None = None
    """None: none asked; 0: all memory of each node."""
    memory_mb_per_cpu: int | None = None
    """Memory asked for per CPU; None: none."""
    gres: Mapping[str, int] = NOTHING
    """Counted resources per node."""
    gres_total: Mapping[str, int] = NOTHING
    """Counted resources over the whole job (``--gpus``)."""
    licenses: Mapping[str, int] = NOTHING
    """Licence -> how many it wants."""
    licenses_any: bool = False
    """True: one of `licenses` is enough (``a:1|b:1``)."""
    exclusive: Exclusive | None = None
    """With whom it refuses to share its nodes; None: with nobody in particular."""
    oversubscribe: bool = False
    """The user offered to share."""
    contiguous: bool = False
    """Whether its nodes have to be neighbours."""
    features: str = ""
    """Expression of required features: ``a&b``, ``a|b``, ``[a|b]``, ``a*2&b``."""
    required_nodes: tuple[str, ...] = ()
    """Names of nodes that must be among its nodes."""
    excluded_nodes: tuple[str, ...] = ()
    """Names of nodes that must not."""
    priority: int | None = None
    """Given priority; None: by order of submission; 0: held."""
    nice: int = 0
    """What is taken off its priority."""
    requeue: bool | None = None
    """Whether it may be requeued; None: the cluster's default."""
    batch: bool = True
    """False: interactive (salloc, srun); never requeued."""
    signal: UserSignal | None = None
    """The signal that it wants ahead of its end; None: none."""
    mcs_label: str | None = None
    """Security label that it was submitted with; None: none."""
    reservation: str | None = None
    """Reservation that it was submitted to; None: none."""
    depends_on: tuple[str, ...] = ()
    """Job ids that must have ended."""
    het_id: str | None = None
    """Id shared by the components of a heterogeneous job; None: an ordinary job."""
    het_offset: int = 0
    """Which component of a heterogeneous job it is; the leader is 0."""
    array_id: str | None = None
    """Id of the array that it is a task of; None: it is no task."""
    array_task: int = 0
    """Its index in the array."""
    array_limit: int | None = None
    """How many tasks of its array may be at work at a time; None: as many as fit."""
    steps: bool = False
    """Works in job steps: only these receive the SIGTERM of a grace time."""
    on_term: str = "default"
    """What its processes do on SIGTERM: ``default`` (die), ``exit`` (end well), ``ignore``."""
    command: tuple[str, ...] = ()
    """What to run, for runners that run something."""
    flags: frozenset[str] = frozenset()
    """Flags of a foreign scheduler (Moab RESTARTABLE, PREEMPTEE, ...)."""
    attributes: Mapping[str, Any] = NOTHING
    """Whatever else the workload said."""
    wall_submit: float | None = None
    """Submission as Unix time; None: the workload does not say."""
    source: str = ""
    """Place in the workload (``file:line``), for messages."""

    @property
    def cpus(self) -> int:
        """Fewest CPUs that the request amounts to (spec slurm-gang-and-select 4.1.1)."""
        if self.tasks is not None:
            return max(self.tasks * self.cpus_per_task, self.min_nodes)
        if self.tasks_per_node is not None:
            return self.min_nodes * self.tasks_per_node * self.cpus_per_task
        return max(self.min_nodes * self.cpus_per_task, 1)

    @property
    def cpus_per_node(self) -> int:
        """CPUs that every node must offer (pn_min_cpus)."""
        per_task = self.cpus_per_task * (self.tasks_per_node or 1)
        return max(self.min_cpus_per_node, per_task)


@attrs.frozen(kw_only=True, eq=False)
class Allocation:
    """What a job holds: nodes, and what of each."""

    nodes: NodeBits
    """The nodes, as a bitmap."""
    node_indices: tuple[int, ...]
    """The same nodes as indices, ascending; the tuples below run parallel to it."""
    cpus: tuple[int, ...] | None = None
    """CPUs charged on each node; None: all of them."""
    cores: tuple[CoreBits, ...] | None = None
    """Cores held on each node; None: whole nodes."""
    memory_mb: tuple[int, ...] | None = None
    """Memory charged on each node; None: memory is not tracked."""
    gres: Mapping[str, tuple[int, ...]] = NOTHING
    """Counted resource -> how many on each node."""
    licenses: Mapping[str, int] = NOTHING
    """Licence -> how many it holds."""
    shared: bool = False
    """Whether the selector counts the job as one that shares its nodes."""
    marks: frozenset[str] = frozenset()
    """What a plugin wants to remember about the placement (BACKFILL, ...)."""

    @property
    def whole_nodes(self) -> bool:
        """Whether every core of every node is held."""
        return self.cores is None


@attrs.define(kw_only=True, eq=False)
class JobDraft:
    """A job that the engine is still making; as long as its fields can be set, that takes a quarter of the time."""

    spec: JobSpec
    """What was submitted."""
    id: str
    """Id, as submitted."""
    index: int
    """Place in the job table (order of submission); the last part of every order."""
    user: str
    """Who submitted it."""
    account: str | None
    """The account that is charged; None: none was given."""
    partitions: tuple[Partition, ...]
    """All that it was submitted to, as configured."""
    partition: Partition
    """Where it runs, or is being tried."""
    qos: Qos | None
    """Its service class; None: it has none."""
    submit_at: Seconds
    """Last submission; a requeue renews it."""
    eligible_at: Seconds
    """Earliest start."""
    time_limit: Seconds | None
    """Limit in force; None: unlimited."""
    priority: int
    """Higher first; 0: held."""
    requeueable: bool
    """Whether it may be requeued."""
    size: int
    """Fewest nodes asked for."""
    eligible_since: Seconds | None = None
    """Since when nothing of its own keeps it from starting; None: a hold, a begin time or another job does."""
    state: JobState = JobState.PENDING
    """Where it stands."""
    reason: str = "None"
    """Why it waits, in the field's words (Priority, Resources, BeginTime, ...)."""
    started_at: Seconds | None = None
    """Start of this incarnation; None: it has not started since it was last (re)queued."""
    resumed_at: Seconds | None = None
    """Last start or resume; None: it does not run."""
    ran: Seconds = 0.0
    """Running time of this incarnation up to `resumed_at`."""
    end_at: Seconds | None = None
    """When its time limit strikes if it keeps running; None: never."""
    suspended_at: Seconds | None = None
    """When it was stopped; None: it is not suspended."""
    suspended_by: SuspendedBy | None = None
    """Who stopped it; None: it is not suspended."""
    allocation: Allocation | None = None
    """What it holds; None: nothing."""
    starts: int = 0
    """How often it was started, starts that failed included: the number of its incarnation."""
    restarts: int = 0
    """How often it was requeued."""
    preemptions: int = 0
    """How often it had to make way."""
    preemptions_before: int = 0
    """How often of these in earlier incarnations."""
    preempted_at: tuple[Seconds, ...] = ()
    """When it had to make way, earlier incarnations included; at most the last `PREEMPTIONS_KEPT` instants."""
    stopped: Seconds = 0.0
    """Time that it spent suspended, up to the suspension that it is in."""
    resume_after: Seconds | None = None
    """When its hold-down ends (`Plan.hold_down`); None: it never had one."""
    preempt_at: Seconds | None = None
    """When it was told to make way; None: nobody told it in this incarnation."""
    asked_at: Seconds | None = None
    """When it last had others killed or requeued as a preemptor; None: never in this incarnation."""
    asked_nodes: NodeBits = 0
    """Where it wanted to start then; empty: it never asked in this incarnation."""
    checkpointed: Seconds = 0.0
    """Work of this incarnation that a checkpoint saved, in seconds of running."""
    begun_with: Seconds = 0.0
    """Work that this incarnation took over from checkpoints of earlier ones."""
    marked_saved: bool = False
    """Whether it was told to save its state and leave, so that it will go on from `checkpointed`."""
    lost: Seconds = 0.0
    """Running time that requeues and cancels threw away so far."""
    mcs_label: str | None = None
    """Security label in force; None: none."""
    required: NodeBits = 0
    """Nodes that must be among its nodes."""
    excluded: NodeBits = 0
    """Nodes that must not."""
    marks: frozenset[str] = frozenset()
    """What policies remember about it (`makeway_marks`); a requeue takes all away."""


@attrs.frozen(kw_only=True, eq=False)
class Job(JobDraft):
    """A job as it stands now; read-only for everybody but the engine.

    Equal only to itself. `index` is the place in the job table (order of submission).
    """

    def ran_until(self, now: Seconds) -> Seconds:
        """Return the running time of this incarnation as of `now`."""
        if self.state is _RUNNING and self.resumed_at is not None:
            return self.ran + now - self.resumed_at
        return self.ran

    @property
    def nodes(self) -> NodeBits:
        """Nodes that it holds; empty while pending."""
        return self.allocation.nodes if self.allocation is not None else 0

    @property
    def held(self) -> bool:
        """Whether a person or a rule keeps it from starting."""
        return self.priority == 0

    def __str__(self) -> str:
        return self.id


class Book(Protocol):
    """Counts what jobs hold or have used, at a cost that does not grow with the number of jobs (`ClusterView.book`)."""

    def started(self, job: Job, view: ClusterView) -> None:
        """Count a job that has been given its nodes; one that ran before the book was made has an earlier start."""

    def left(self, job: Job, view: ClusterView) -> None:
        """Count it no longer: it has ended, or has to make way; it still stands as it did."""


@attrs.frozen(kw_only=True)
class Usage:
    """What some jobs hold together."""

    jobs: int = 0
    """How many jobs."""
    cpus: int = 0
    """CPUs charged; all those of a node where whole nodes are held."""
    nodes: int = 0
    """Nodes, counted once for each job that holds them."""
    memory_mb: int = 0
    """Memory charged; 0 where memory is not tracked."""
    gres: Mapping[str, int] = NOTHING
    """Counted resources by name; those that nobody holds are left out."""
    licenses: Mapping[str, int] = NOTHING
    """Licences by name; those that nobody holds are left out."""


# ---------------------------------------------------------------------------- answers of plugins
@attrs.frozen(kw_only=True, eq=False)
class Placement:
    """A place where a job could start now."""

    allocation: Allocation
    """What it would hold."""
    overlays: bool = False
    """Whether it lies on cores of active jobs, which the gang arbiter will stop."""
    why: str = ""
    """How it was found (``idle nodes``, ``shares the nodes of 9``); one phrase for people."""
    alternative: int = 0
    """Which of the job's feature alternatives it serves, in the order written."""


@attrs.frozen(kw_only=True)
class Blocked:
    """Why a job cannot start now, and what stands in its way."""

    reason: str = "Resources"
    """Pending reason in the field's words."""
    resource: str = "nodes"
    """What is short: nodes, cpus, memory, gres, licences."""
    wanted: float = 0
    """How much of `resource` it needs; 0: not said."""
    available: float = 0
    """How much of it there is for this job."""
    detail: str = ""
    """A sentence for people."""
    never: bool = False
    """True: it could not run on the empty cluster either."""
    ask_again_at: Seconds | None = None
    """When a limit may let the job through without any event; None: not known."""
    liftable: bool = False
    """A limit only: True if it may be lifted by having active jobs make way, so that preempting is worth trying."""
    frees: Mapping[str, float] = attrs.field(default=NOTHING, eq=False)
    """A limit only: id of each active job whose leaving would help -> how much of `wanted` it gives back.

    0: nothing of that, but of something else that is short as well; infinite: perhaps enough by itself. Empty: it
    is not known who would help, and whoever searches has to try.
    """


@attrs.frozen(kw_only=True)
class Forecast:
    """When a job could start if jobs end as their limits say."""

    at: Seconds
    """When it could start."""
    nodes: NodeBits
    """Nodes it would take, or that must be kept for it."""
    preempts: bool = False
    """Whether that counts on removing candidates now."""
    eligible: NodeBits = 0
    """Nodes among which it may choose at that instant."""
    spare: int | None = None
    """How many of `eligible` may be in use then without delaying it; None: exactly `nodes` must be kept."""


@attrs.frozen(kw_only=True, eq=False)
class Candidates:
    """Whom a pending job may displace, cheapest to lose first."""

    jobs: tuple[Job, ...] = ()
    """The candidates, cheapest to lose first; some of ``active``, none twice."""
    modes: tuple[PreemptMode, ...] = ()
    """How each would make way; parallel to `jobs`."""
    protected: Mapping[str, str] = NOTHING
    """Job id -> why it may not be displaced, for `explain`; need not be complete."""
    note: str = ""
    """Why there are none, or what governed the order; for `explain`."""
    ask_again_at: Seconds | None = None
    """When the answer may differ without any event (an exemption ends); None: not known."""
    reasons: tuple[str, ...] = ()
    """Why each may be displaced, parallel to `jobs`, for records and `explain`; empty: nothing is said."""
    allowed_after: Callable[[Job, Sequence[Job]], bool] | None = None
    """Whether one of `jobs` may be displaced once others have been; None: each may, whoever else is.

    Called with the candidate and the jobs taken before it, in the order in which they were taken, as often as a
    search needs it; pure. So "as long as its owner is over quota" can be said. Any search keeps to it: a victim for
    which it says no is taken out of the candidates, and victims are sought again.
    """
    reason: str = ""
    """Pending reason, in the policy's own words, if the job has to wait; empty: the one found before."""
    vacated: frozenset[str] = frozenset()
    """Ids of those of `jobs` that have made way already: what they hold may be used, and nothing is done to them."""
    not_for: Mapping[str, str] = NOTHING
    """What is short (`Blocked.resource` of a limit) -> why nobody is displaced for its sake."""
    rounds: int = 1
    """How many searches may be made in one go where victims turn out not to be able to make way (`Plan.fails`).

    1: if one of them fails, all are left alone and the preemptor waits. More: those who can make way do, those
    who cannot are left out, and others are sought in their place.
    """
    while_waiting: bool = False
    """Whether further victims may be told although some that the preemptor has had told are still leaving."""

    def only(self, positions: Sequence[int]) -> Candidates:
        """Return the same with the jobs at these positions alone, in that order."""
        return attrs.evolve(
            self,
            jobs=tuple(self.jobs[at] for at in positions),
            modes=tuple(self.modes[at] for at in positions),
            reasons=tuple(self.reasons[at] for at in positions) if self.reasons else (),
        )


@attrs.frozen(kw_only=True)
class Protection:
    """Why a job may not be displaced, and for how long."""

    reason: str
    """In words that people can read."""
    until: Seconds | None = None
    """When it ends without any event, so that whoever waits is tried again then; None: not known."""


@attrs.frozen(kw_only=True, eq=False)
class Choice:
    """What a search found: a placement, and who has to make way for it."""

    placement: Placement
    """Where the job starts once its victims have gone."""
    victims: tuple[int, ...] = ()
    """Positions in the candidates, in the order in which they are to be told."""
    method: str = ""
    """How the search went about it; one phrase for people."""
    considered: int = 0
    """How many candidates it looked at."""
    modes: tuple[PreemptMode, ...] = ()
    """How each victim makes way, parallel to `victims`; empty: as the candidates say."""
    reasons: tuple[str, ...] = ()
    """Why each victim was chosen, parallel to `victims`; empty: as the candidates say (`Candidates.reasons`)."""


@attrs.frozen(kw_only=True)
class Signal:
    """A signal to a job's processes."""

    name: str
    """TERM, CONT, TSTP, USR1, ..."""
    steps_only: bool = True
    """True: the batch shell is not addressed."""


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """The steps by which one victim makes way."""

    job: Job
    """The victim."""
    mode: PreemptMode
    """What is done in the end."""
    notice: tuple[Signal, ...] = ()
    """Sent at once, when the grace time starts; nothing is sent without a grace time."""
    farewell: tuple[Signal, ...] = ()
    """Sent right before the mode is carried out."""
    grace_time: Seconds = 0.0
    """From notice to action; 0: at once."""
    hold_down: Seconds = 0.0
    """Least time before a suspended victim may resume."""
    stop_signal: str = ""
    """SUSPEND only: the signal that stops it (TSTP, STOP, ...); empty: whatever the world uses."""
    why: str = ""
    """The rule that chose the mode; for `explain`."""
    reason: str = ""
    """Why the job was chosen: filled in from `Choice.reasons` or `Candidates.reasons` unless the plugin does."""
    fails: bool = False
    """True: what was asked cannot be done; the victim stays, and the record says so. See `Candidates.rounds`."""

    @property
    def because(self) -> str:
        """Why the job was chosen, and which rule chose the mode, in one phrase; empty: nobody said."""
        return "; ".join(part for part in (self.reason, self.why) if part)


@attrs.frozen(kw_only=True)
class Check:
    """One step of a policy's check list for a job that waits (``makeway explain``)."""

    code: str
    """Short and lasting, so that people can look it up: ``K03``."""
    verdict: str
    """pass, fail or warning."""
    question: str
    """What was looked at, as a question."""
    found: str
    """What was found, and what would help."""
    setting: str = ""
    """Path in the config that decided it; empty: none did."""


class GangVerb(enum.Enum):
    """What a gang arbiter orders."""

    SUSPEND = "suspend"
    """Stop a job; it keeps what it holds."""
    RESUME = "resume"
    """Let a stopped job go on."""
    PREEMPT = "preempt"
    """Checkpoint, requeue or kill, as the order's mode says."""
    MOVE_ON = "move on"
    """Requeue a suspended job, which counts as no preemption: it waited long enough to try elsewhere."""
    END = "end"
    """Kill a job, which counts as no preemption: its time is over, and nobody takes its place."""


@attrs.frozen(kw_only=True, eq=False)
class GangOrder:
    """One order of the gang arbiter."""

    verb: GangVerb
    """What is to be done."""
    job: Job
    """The job that it is done to."""
    mode: PreemptMode = PreemptMode.SUSPEND
    """PREEMPT only: how the job makes way."""
    because_of: Job | None = None
    """The job that takes its place; None: nobody in particular."""
    why: str = ""
    """For `explain` and records; empty: nothing is said."""
    allocation: Allocation | None = None
    """RESUME only: what it holds from now on, as much as before on the same nodes; None: what it holds."""
    trades: tuple[tuple[Job, Allocation], ...] = ()
    """Suspended jobs that change places with it, and what each holds from now on."""


@attrs.frozen(kw_only=True)
class Stay:
    """One reason for which a suspended job is not resumed now; for `explain` and the summary."""

    why: str
    """In words that people can read, the same for as long as it is the same reason: the limit, the hold-down, ..."""
    holders: tuple[str, ...] = ()
    """Ids of the jobs that hold what it needs."""
    until: Seconds | None = None
    """When it ends without any event; None: not known."""
    setting: str = ""
    """Path in the config that decided it; empty: none did."""


@attrs.frozen(kw_only=True)
class Listing:
    """A table of what a status command prints."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Cells, as many as there are headings."""
    notes: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict)
    """Number of a row -> lines below it."""
    title: str = ""
    """A line above the table."""
    footer: str = ""
    """Lines below it."""
    right: frozenset[str] = frozenset()
    """Headings of columns that stand to the right."""
    gap: int = 2
    """Blanks between columns."""


@attrs.frozen(kw_only=True)
class StatusCommand:
    """The command with which a scheduler's users look at its queue."""

    name: str
    """``bjobs``; it is asked for by ``--bjobs-at``."""
    options: str = ""
    """Options with which it prints the same, for the heading."""
    show: Callable[[ClusterView, Seconds], Sequence[Listing]]
    """Returns what it prints at an instant, at or after the view's own, before anything happens then; pure."""


@attrs.frozen(kw_only=True)
class Vocabulary:
    """The words of another scheduler, for what is shown to people."""

    states: Mapping[str, str] = NOTHING
    """State -> word; ``SUSPENDED by a person`` stands beside ``SUSPENDED``, ``PENDING and held`` beside ``PENDING``."""
    reasons: Mapping[str, str] = NOTHING
    """Pending reason -> what is shown in its place."""
    suspensions: Mapping[str, str] = NOTHING
    """State of a suspended job (``SUSPENDED``, ``SUSPENDED by a person``) -> why; left out: not shown.

    The name of a mark (`makeway_marks`) stands for suspended jobs that bear it, and comes before their state.
    """
    nouns: Mapping[str, str] = NOTHING
    """Thing (partition, node, ``status command``, ST) -> word."""
    status: StatusCommand | None = None
    """The scheduler's own status command; None: a plain table, with these words in it."""

    def state(self, state: JobState, by: SuspendedBy | None = None, *, held: bool = False) -> str:
        """Return the word for a state.

        :param by: who suspended the job.
        :param held: whether a pending job is held.
        """
        plain = self.states.get(state.value, state.value)
        return self.states.get(_state_key(state, by, held=held), plain)

    def suspension(
        self, state: JobState, by: SuspendedBy | None = None, marks: frozenset[str] = frozenset()
    ) -> str:
        """Return why a job is suspended; empty: it is not, or there is no word for it.

        :param marks: what policies remember about the job.
        """
        if state is JobState.SUSPENDED and by is not SuspendedBy.ADMIN:
            for mark in sorted(marks & self.suspensions.keys()):
                return self.suspensions[mark]
        return self.suspensions.get(_state_key(state, by), "")

    def reason(self, reason: str) -> str:
        """Return what is shown for a pending reason."""
        return self.reasons.get(reason, reason)

    def noun(self, noun: str) -> str:
        """Return the word for a thing."""
        return self.nouns.get(noun, noun)

    def phrase(self, text: str) -> str:
        """Return a sentence about things with their words in it; names that contain one (``node-1``) stay."""
        for noun, word in self.nouns.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(noun)}(s?)(?![\w-]|\.\w)", rf"{word}\1", text)
        return text


def _partition_name(job: Job) -> str:
    return job.partition.name


@attrs.frozen
class Grouping:
    """By what a policy tells preemptors and victims apart, for tables."""

    noun: str = "partition"
    """What is written over the names: ``QOS``, ``account``."""
    of: Callable[[Job], str] = _partition_name
    """Name of the group that a job belongs to."""


def _state_key(state: JobState, by: SuspendedBy | None, *, held: bool = False) -> str:
    """Return the key under which a vocabulary may have a word of its own."""
    if state is JobState.SUSPENDED and by is SuspendedBy.ADMIN:
        return "SUSPENDED by a person"
    return "PENDING and held" if state is JobState.PENDING and held else state.value


# ------------------------------------------------------------------------------------ the view
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
        """What decides who may displace whom, as the preempt plugin in force says of itself."""

    @property
    def select_parameters(self) -> Sequence[str]:
        """Parameters of the selection (CR_Memory, CR_Core, ...)."""

    @property
    def licenses_free(self) -> Mapping[str, int]:
        """Licences that nobody holds."""

    @property
    def license_holders(self) -> Mapping[str, Mapping[str, int]]:
        """Licence -> active jobs that hold some of it -> how many."""

    def usage(self, by: str | tuple[str, ...], *, running: bool = False) -> Mapping[Any, Usage]:
        """Return what active jobs hold, by whom: kept up to date by the engine, so that asking costs little.

        :param by: ``user``, ``account``, ``group``, ``partition`` or ``qos``; several: the keys are tuples.
        :param running: whether suspended jobs are left out.
        :returns: name -> usage; None stands for jobs that have none (no account, no QOS). A name that is not there
            has an empty usage: ``view.usage("user")["ann"].cpus`` is 0 for a user without an active job.
        :raises ValueError: `by` is none of these.
        """

    def book(self, kind: Callable[[ClusterView], B]) -> B:
        """Return a book that is kept for this run, and told of each job that starts or leaves.

        Any number of plugins may read the same book: it is made at the first call, told of the jobs that are active
        then, in the order in which they started, and from then on of every other one as it comes and goes.

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
        """Return whom of `jobs` vetoes (`makeway_protect`) keep from `preemptor`, by id.

        For selectors that lay a job over others without asking for candidates.
        """

    def kept_out(self, job: Job, without: Sequence[tuple[Job, PreemptMode]] = ()) -> Blocked | None:
        """Return the limit (`makeway_admit`) that keeps a pending job out once these have made way; None: none does.

        For searches that choose victims for a limit's sake as well as for room; see `Blocked.frees`.
        """

    def jobs_on(self, node: int) -> Sequence[Job]:
        """Return the active jobs on the node of index `node`, in order of start."""

    def job(self, job_id: str) -> Job | None:
        """Return a pending or active job by id, or None."""

    def components(self, job: Job) -> Sequence[Job]:
        """Return all components of a heterogeneous job, leader first; an ordinary job alone."""

    def releases(self) -> Sequence[tuple[Seconds, int, Job]]:
        """Return the running jobs that have a deadline as (deadline, index, job), soonest first."""

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
    """How many usable nodes nobody has to leave."""
    blockers: Mapping[int, tuple[int, ...]]
    """Node index -> positions of the candidates that have to leave it; nodes that cannot be freed are left out."""


class Selector(Protocol):
    """Finds nodes and cores; built once per run, keeps books from what it is told.

    The engine calls the five notices below exactly when a job starts, ends, or is stopped or
    continued; a selector that derives all from the view may ignore them. Two attributes say what else differs:
    ``suspension_frees_memory = True``: suspended jobs give back their memory, as some schedulers let them;
    ``shares_whole_nodes = True``: where jobs share, it counts the jobs of a node, whatever their partitions.
    """

    def placed(self, job: Job) -> None:
        """Take note that `job` now holds `job.allocation`."""

    def released(self, job: Job) -> None:
        """Take note that `job` gives back `job.allocation` (called while it is still set)."""

    def suspended(self, job: Job) -> None:
        """Take note that `job` was stopped; `job.suspended_by` says by whom."""

    def resumed(self, job: Job) -> None:
        """Take note that `job` continues (called while `job.suspended_by` is still set)."""

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Return those of `jobs`, order kept, that might start now on `nodes` without preemption.

        Only a filter to save work: a job that is kept is still attempted.
        """

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> Attempt:
        """Begin an attempt to place `job` on `nodes`, the nodes that it may use at this instant."""

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start on `nodes`; None: not for as long as can be seen.

        First as things stand, then with all of `removable` gone, then as jobs reach their `end_at`.
        """

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run even on the empty cluster with all nodes in service; None: it could."""


class ForesightedSelector(Selector, Protocol):
    """A selector that sees at a glance for whom a search for victims would be in vain; for those that search too."""

    def screen_without(
        self,
        jobs: Sequence[Job],
        nodes: NodeBits,
        candidates: Candidates,
        kind: Hashable,
        view: ClusterView,
    ) -> Sequence[Job]:
        """Return those of `jobs`, order kept, that might start now on `nodes` if all candidates were gone.

        Only a filter to save work, as `screen` is.

        :param jobs: pending jobs, all of which have these candidates.
        :param kind: the same for the same kind of preemptors, for what is worth remembering.
        """


class Gang(Protocol):
    """Decides who is active on shared resources; built once per run, keeps its own rows.

    Each call returns orders in the sequence in which they are to be carried out.
    """

    @property
    def next_tick(self) -> Seconds | None:
        """When it wants to be called next; None: not by the clock."""

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """A job started, or was resumed by a person."""

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """A job left its nodes for good, was requeued, or was suspended by a person."""

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """A person held or released an active job, or suspended one that the arbiter itself had stopped."""

    def tick(self, view: ClusterView) -> Iterable[GangOrder]:
        """`next_tick` has come. Each order is carried out before the next is asked for."""

    def before_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        """A scheduling pass is about to begin. Each order is carried out before the next is asked for."""

    def after_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        """A scheduling pass is over: what pending jobs could use, they have. May be left out.

        Each order is carried out before the next is asked for, so that an iterator sees what it changed.
        """


class TellingGang(Gang, Protocol):
    """A gang that says why suspended jobs stay suspended; for others, who runs on a job's cores is told."""

    def stays(self, job: Job, view: ClusterView) -> Iterable[Stay]:
        """Say why a suspended job is not resumed now, each reason by itself; nothing is decided by it.

        Asked about one job at a time: about one that people want to know of, and about those that are still
        suspended when nothing happens any more.
        """


class QueuedGang(Gang, Protocol):
    """A gang whose suspended jobs wait in the queue beside pending ones, each with a turn of its own.

    For schedulers to which a suspended job is a job that waits to run: who goes on, and who starts, is then
    one order. `makeway_queue_order` is given the waiting jobs of both kinds.
    """

    def waiting(self, view: ClusterView) -> Sequence[Job]:
        """Return the suspended jobs that want a turn in the pass that begins."""

    def turn(self, job: Job, view: ClusterView) -> Iterable[GangOrder]:
        """The turn of `job` has come: order it to resume, or others to make way for it, or nothing.

        Each order is carried out before the next is asked for. Once somebody made way for a job, suspended or
        pending, the pass goes through the queue again from its head (scheduler `greedy` only).
        """


class AdoptingSelector(Selector, Protocol):
    """A selector whose books say more than the jobs that run; for those that shall go on exactly as they would have.

    A selector without these methods is told of the starts in order, and then of the suspensions.
    """

    def hand_over(self) -> Mapping[str, Any]:
        """Return what the jobs do not tell, in values that JSON has; empty: nothing. Changes nothing."""

    def recast(self, job: Job, allocation: Allocation, view: ClusterView) -> Allocation:
        """Return what a job holds in this selector's terms: another one placed it, or a person wrote it down.

        Called before `take_over`, for each active job that was not placed by a selector of the same plugin.
        """

    def take_over(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Fill the books of a new selector.

        :param active: running and suspended jobs, in the order in which they started.
        :param memory: what a selector of the same plugin handed over under the same configuration, perhaps some seconds
            before; None: there is none, and the jobs have to do.
        """


class AdoptingGang(Gang, Protocol):
    """An arbiter that remembers more than the jobs show: whose turn is next, who waits for whom.

    An arbiter without these methods is told of the starts in order, those that run before those that are suspended.
    """

    def hand_over(self) -> Mapping[str, Any]:
        """Return what the jobs do not tell, in values that JSON has; empty: nothing. Changes nothing."""

    def take_over(
        self,
        active: Sequence[Job],
        leaving: Sequence[Job],
        memory: Mapping[str, Any] | None,
        view: ClusterView,
    ) -> Iterable[GangOrder]:
        """Fill the rows of a new arbiter.

        :param active: running and suspended jobs, in the order in which they started.
        :param leaving: jobs that have ended or been killed and still hold their nodes: `ended` is called once they
            have left.
        :param memory: what an arbiter of the same plugin handed over, perhaps some seconds before and under other
            settings; None: there is none, and the jobs have to do.
        :returns: what has to be done right now so that jobs are as the arbiter wants them; mostly nothing.
        """

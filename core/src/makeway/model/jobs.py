"""Define jobs: what was asked for, what they hold, and what has become of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs

from makeway.bitmap import CoreBits, NodeBits
from makeway.model.cluster import Partition, Qos
from makeway.model.values import (
    Exclusive,
    JobState,
    PreemptMode,
    Seconds,
    SuspendedBy,
    mapping,
)

_RUNNING = JobState.RUNNING


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


@attrs.define(kw_only=True, eq=False)
class SpecDraft:
    """What a reader is still making: while fields can be set, making it takes a quarter of the time."""

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
    node_cap: int | None = None
    """Most nodes that limits of its account and QOS leave it, not aimed at; None, or fewer than it needs: any."""
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
    gres: Mapping[str, int] = mapping()
    """Counted resources per node."""
    gres_total: Mapping[str, int] = mapping()
    """Counted resources over the whole job (``--gpus``)."""
    gres_per_task: Mapping[str, int] = mapping()
    """Counted resources for each task, where `gres_total` is their sum: they lie on the task's node."""
    gres_per_socket: Mapping[str, int] = mapping()
    """Counted resources for each socket of its cores, where `gres` has those of the sockets asked for."""
    licenses: Mapping[str, int] = mapping()
    """Licence -> how many it wants."""
    licenses_any: bool = False
    """True: one of `licenses` is enough (``a:1|b:1``)."""
    exclusive: Exclusive | None = None
    """Which jobs it refuses to share its nodes with; None: none in particular."""
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
    withdrawn_at: Seconds | None = None
    """When it was cancelled before it started, as its log says: it waits until then and never starts; None: not."""
    depends_on: tuple[str, ...] = ()
    """Ids of jobs that must have ended, or conditions such as ``afterok:7`` (`makeway.dependencies`)."""
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
    on_signal: Mapping[str, str] = mapping()
    """Signal other than TERM, KILL, STOP (``USR1``) -> what its processes do: ``die``, ``exit`` (end well), ``ignore``.

    TSTP, TTIN and TTOU stop them until CONT, whatever else is not named is ignored. For simulations; KILL always ends a
    job, and STOP always stops one, which keeps its CPUs and counts as running.
    """
    on_term: str = "default"
    """What its processes do on SIGTERM: ``default`` (die), ``exit`` (end well), ``ignore``."""
    command: tuple[str, ...] = ()
    """What to run, for runners that run something."""
    flags: frozenset[str] = frozenset()
    """Flags of a foreign scheduler (Moab RESTARTABLE, PREEMPTEE, ...)."""
    attributes: Mapping[str, Any] = mapping()
    """Whatever else the workload said."""
    wall_submit: float | None = None
    """Submission as Unix time; None: the workload does not say."""
    source: str = ""
    """Place in the workload (``file:line``), for messages."""


@attrs.frozen(kw_only=True)
class JobSpec(SpecDraft):
    """What was submitted: one job, or one component of a heterogeneous job."""

    @property
    def cpus(self) -> int:
        """Fewest CPUs that the request amounts to (slurm-gang-and-select 4.1.1)."""
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


def submitted(draft: SpecDraft) -> JobSpec:
    """Make a draft what was submitted: the same object, and from now on read-only."""
    draft.__class__ = JobSpec
    spec: Any = draft
    return cast("JobSpec", spec)


@attrs.define(eq=False)
class AllocationDraft:
    """What a selector is still making: while fields can be set, making it takes a quarter of the time."""

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
    gres: Mapping[str, tuple[int, ...]] = mapping()
    """Counted resource -> how many on each node."""
    devices: Mapping[str, tuple[int, ...]] = mapping()
    """Counted resource -> which GPUs of each node, as bitmaps; empty: the selector does not tell them apart."""
    licenses: Mapping[str, int] = mapping()
    """Licence -> how many it holds."""
    shared: bool = False
    """Whether the selector counts the job as one that shares its nodes."""
    marks: frozenset[str] = frozenset()
    """What a plugin wants to remember about the placement (BACKFILL, ...)."""


@attrs.frozen(kw_only=True, eq=False)
class Allocation(AllocationDraft):
    """What a job holds: nodes, and what of each."""

    @property
    def whole_nodes(self) -> bool:
        """Whether every core of every node is held."""
        return self.cores is None


def allotted(draft: AllocationDraft) -> Allocation:
    """Make a draft what a job may hold: the same object, and from now on read-only."""
    draft.__class__ = Allocation
    made: Any = draft
    return cast("Allocation", made)


@attrs.define(eq=False)
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
    limit_at_start: Seconds | None = None
    """The time limit that the scheduler gave it for the instant of its start; None: that in force."""
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
    """When it was told to make way; None: it was not told in this incarnation."""
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
    obstacle: str = ""
    """Why it cannot be checkpointed as it stands, in words that people can read; empty: nothing is known of that."""
    lost: Seconds = 0.0
    """Running time that requeues and cancels threw away so far."""
    mcs_label: str | None = None
    """Security label in force; None: none."""
    required: NodeBits = 0
    """Nodes that must be among its nodes."""
    excluded: NodeBits = 0
    """Nodes that must not."""
    kept: bool = False
    """Whether an operator holds it or has stopped it, which its owner may not undo."""
    marks: frozenset[str] = frozenset()
    """What policies remember about it (`Limits.marks`); a requeue takes all away."""


@attrs.frozen(kw_only=True, eq=False)
class Job(JobDraft):
    """A job as it stands now; read-only for all but the engine.

    Equal only to itself. `index` is the place in the job table (order of submission).
    """

    def ran_until(self, now: Seconds) -> Seconds:
        """Return the running time of this incarnation as of `now`."""
        if self.state is _RUNNING and self.resumed_at is not None:
            return self.ran + now - self.resumed_at
        return self.ran

    def way(self, mode: PreemptMode) -> PreemptMode:
        """Return how it makes way where `mode` is asked for: what cannot be checkpointed is requeued or cancelled."""
        if mode is PreemptMode.CHECKPOINT and self.obstacle:
            return PreemptMode.REQUEUE if self.requeueable else PreemptMode.CANCEL
        return mode

    def cost(self, mode: PreemptMode, now: Seconds) -> Seconds:
        """Return the seconds of work that it loses if it makes way in `mode`.

        A requeue or cancel loses what it did since its start or its last checkpoint; a suspension loses nothing, and a
        checkpoint nothing where it can be made.
        """
        if self.way(mode) in (PreemptMode.REQUEUE, PreemptMode.CANCEL):
            earlier = 0.0 if self.marked_saved else self.begun_with
            return max(0.0, self.ran_until(now) - self.checkpointed) + earlier
        return 0.0

    def time_limit_in(self, partition: Partition) -> Seconds | None:
        """Return its time limit in one of its partitions; None: there is none.

        One that asks for none may run as long as each of several partitions allows, unless the first one has a default:
        that holds in all of them (slurm-priority-and-limits 7).
        """
        first = self.partitions[0]
        if self.spec.time_limit is not None or len(self.partitions) == 1 or first.default_time is not None:
            return self.time_limit
        return partition.max_time

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
    gres: Mapping[str, int] = mapping()
    """Counted resources by name; those that no job holds are left out."""
    licenses: Mapping[str, int] = mapping()
    """Licences by name; those that no job holds are left out."""

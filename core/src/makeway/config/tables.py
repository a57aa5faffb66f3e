"""Mirror the TOML file table by table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from makeway import vendors
from makeway.model.values import Duration
from makeway.preemption import PreemptionTable

SCHEDULERS = ("builtin", "easy", "greedy", "backfill")
PRIORITIES = ("basic", "multifactor")
PRIORITY_WEIGHTS = ("partition", "qos")

SELECT_WORDS = (
    "CR_CPU",
    "CR_CPU_Memory",
    "CR_Core",
    "CR_Core_Memory",
    "CR_Socket",
    "CR_Socket_Memory",
    "CR_Memory",
    "CR_ONE_TASK_PER_CORE",
    "CR_CORE_DEFAULT_DIST_BLOCK",
    "CR_LLN",
    "CR_Pack_Nodes",
    "LL_SHARED_GRES",
    "MULTIPLE_SHARING_GRES_PJ",
    "ENFORCE_BINDING_GRES",
    "ONE_TASK_PER_SHARING_GRES",
    "OTHER_CONS_RES",
    "OTHER_CONS_TRES",
)
"""What SelectTypeParameters may contain."""


@attrs.frozen(kw_only=True)
class ClusterTable:
    """``[cluster]``."""

    name: str = "cluster"
    licenses: Mapping[str, int] = attrs.field(factory=dict)
    def_mem_per_cpu: int | None = None
    def_mem_per_node: int | None = None
    max_mem_per_cpu: int | None = None
    max_mem_per_node: int | None = None
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class NodeTable:
    """``[[node]]``: one record, one or many nodes."""

    name: str
    """A host list: ``n[1-16],m1``."""
    cpus: int | None = None
    """None: sockets x cores x threads."""
    sockets: int = 1
    cores_per_socket: int | None = None
    """None: what `cpus` leaves for each socket."""
    threads_per_core: int = 1
    memory_mb: int = 1
    mem_spec_limit_mb: int = 0
    weight: int = 1
    features: tuple[str, ...] = ()
    gres: Mapping[str, int] = attrs.field(factory=dict)
    up: bool = True
    load: float = 0.0
    off: bool = False
    boot_time: Duration = 0.0
    off_after: Duration | None = None
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class StayOnTable:
    """``[[stay_on]]``: of some nodes a few stay on though they have no job, despite their `off_after`."""

    nodes: str
    """A host list, or ALL."""
    count: int
    """How many of those that are on and in service and have no job, the first ones."""


USE_SOURCES = ("terminal", "logind", "input", "gpu")
"""What may say that a person uses a node."""
LEAST_QUIET = 10.0
"""Seconds: terminals tell when they had input to eight seconds."""


@attrs.frozen(kw_only=True)
class PartitionTable:
    """``[[partition]]``."""

    name: str
    nodes: str = "ALL"
    """A host list, or ALL."""
    priority_tier: int = 1
    priority_job_factor: int = 1
    oversubscribe: str = "NO"
    """NO, EXCLUSIVE, YES[:n] or FORCE[:n]."""
    exclusive_user: bool = False
    preempt_mode: tuple[str, ...] | None = None
    grace_time: Duration = 0.0
    qos: str | None = None
    default: bool = False
    max_time: Duration | None = None
    default_time: Duration | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    def_mem_per_cpu: int | None = None
    def_mem_per_node: int | None = None
    max_mem_per_cpu: int | None = None
    max_mem_per_node: int | None = None
    max_cpus_per_node: int | None = None
    select_parameters: tuple[str, ...] = ()
    lln: bool = False
    up: bool = True
    """Whether jobs may start there; else they wait."""
    accepts: bool = True
    """Whether it takes new jobs; else they are refused."""
    vacate_on_use: tuple[str, ...] = ()
    """What counts as use of a node by a person, at which its jobs make way; empty: nothing does."""
    quiet: Duration = 600.0
    """Seconds after the last use until its jobs come back."""
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class QosTable:
    """``[[qos]]``."""

    name: str
    priority: int = 0
    preempt: tuple[str, ...] = ()
    preempt_mode: tuple[str, ...] | None = None
    grace_time: Duration = 0.0
    exempt_time: Duration | None = None
    flags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class McsTable:
    """``[policy.mcs]``: security labels (slurm-preemption 1.10)."""

    label: str = "none"
    """Where a job's label comes from: none, user, group, account, or label (as submitted)."""
    enforced: bool = False
    select: str = "ondemandselect"
    """noselect, ondemandselect or select."""


@attrs.frozen(kw_only=True)
class PolicyTable:
    """``[policy]``."""

    select: str = "select/linear"
    select_parameters: tuple[str, ...] = ()
    """CR_Memory, CR_Core, ... as in SelectTypeParameters."""
    preempt: str = "preempt/none"
    preempt_mode: tuple[str, ...] = ("off",)
    priority: str | None = None
    """What gives jobs their priority; None: their order of submission, as priority/basic."""
    gang: str | None = None
    """None: ``gang/timeslice`` if the modes contain gang, else none."""
    search: str | None = None
    """None: the selector's own."""
    protect: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    """Any further plugins: queue order, limits; asked before the others."""
    decision_time_limit: Duration = 0.0
    """Most seconds that a plugin may take to answer once; 0: no limit."""
    preemption: PreemptionTable = attrs.field(factory=PreemptionTable)
    mcs: McsTable = McsTable()
    settings: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Scheduler:
    """``[scheduler]``, as far as the core knows it."""

    type: str = "easy"
    clockwork: str | Mapping[str, Any] = "ideal"
    """A preset by name, or a table of single values with an optional ``preset``."""
    rules: Mapping[str, bool] = attrs.field(factory=dict)
    enforce_time_limits: bool = True
    enforce_part_limits: bool = True
    """Whether a job beyond the limits of its one partition is refused (EnforcePartLimits); False: it waits for good."""
    kill_invalid_depend: bool = False
    """Whether a job is cancelled whose dependency can never be met (DependencyParameters); False: it waits for good."""
    requeue: bool = True
    """Whether jobs that do not say may be requeued (JobRequeue)."""
    max_requeues: int | None = None
    """Most automatic requeues before a job is held; None: no limit."""
    priority: str = "basic"
    """Priority of jobs that are not given one: basic (order of submission) or multifactor (by weights)."""
    priority_weights: Mapping[str, int] = attrs.field(factory=dict)
    """Weights of multifactor: ``qos`` and ``partition``; without any, all jobs have priority 1."""
    over_time_limit: Duration = 0.0
    """Seconds that a job may exceed its limit."""
    young_victim_age: Duration = 1.0
    """Victims that lose their work within so many seconds of their start are counted, with a warning; 0: none."""


if TYPE_CHECKING:

    @attrs.frozen(kw_only=True)
    class SchedulerTable(_Scheduler):
        """``[scheduler]``; each installed vendor with releases adds the key ``<vendor>_release``."""

        def __getattr__(self, name: str) -> Any: ...
else:
    SchedulerTable = attrs.make_class(
        "SchedulerTable",
        {
            vendor.release_key: attrs.field(default=None, type=str | None)
            for vendor in vendors.usable()
            if vendor.releases is not None
        },
        bases=(_Scheduler,),
        frozen=True,
        kw_only=True,
        slots=True,
    )


@attrs.frozen(kw_only=True)
class MappingRule:
    """``[[workload.map]]``: jobs that match all that is given go to `partition` and `qos`."""

    user: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    account: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    """Names in the trace; shell patterns are understood; empty: any."""
    min_nodes: int | None = None
    max_nodes: int | None = None
    """Only jobs of at least, at most so many nodes; None: any."""
    to_partition: str | None = None
    """None: unchanged."""
    to_qos: str | None = None
    """None: unchanged."""


@attrs.frozen(kw_only=True)
class WorkloadTable:
    """``[workload]``: how a trace's users, queues and QOS become partitions and QOS."""

    map: tuple[MappingRule, ...] = ()
    """The first rule that matches a job counts."""
    partition: str | None = None
    """For jobs that no rule gave one and whose own is unknown here; None: the default partition."""
    unknown_partition: str = "reject"
    """What happens to a job whose partition does not exist here: reject (counted, listed) or default."""
    cpus_per_node: int | None = None
    """Processors of a trace that make up one node; None: as the cluster has."""
    default_qos: Mapping[str, str] = attrs.field(factory=dict)
    """QOS of jobs that name none, by user, user/account or user/account/partition; the longest counts."""
    warm: bool = False
    """Whether a replay of a log begins with the jobs that ran when it begins; else with an empty machine."""
    over_memory_kill: bool = False
    """Whether a job is cancelled that had more memory than it asked for, by what the log says of both."""
    over_memory_at: float = 1.0
    """When that comes, as a share of its run time on record: no log says when a job had most."""


@attrs.frozen(kw_only=True)
class FailureTable:
    """``[world.failures]``: what follows when a world could not do what was decided; docs/worlds.md has the rules."""

    start_wait: Duration = 10.0
    """Seconds that a job whose start failed waits before it is tried again."""
    start_hold_after: int = 3
    """Failed starts in a row after which the job is held; 0: never."""
    node_set_aside: Duration = 300.0
    """Seconds for which a node that refused a start gets no jobs; 0: it is not set aside."""
    suspend_wait: Duration = 60.0
    """Seconds for which no job is displaced by suspension after that failed."""
    resume_again: Duration = 5.0
    """Seconds until a job that could not be continued is continued again."""
    kill_again: Duration = 30.0
    """Seconds until a job that could not be killed is killed again."""
    kill_force_after: int = 2
    """Failed kills after which SIGKILL is used at once; 0: never."""
    restop_noticed: bool = True
    """Whether a job that somebody else continued is stopped again while others run on its cores."""
    policy_errors: int = 3
    """Errors of a policy in a row after which it displaces nothing until the configuration is reloaded; 0: never."""


_DAY = 86400.0


@attrs.frozen(kw_only=True)
class OutageTable:
    """``[[outage]]``: nodes that are out of service for a while during a replay."""

    nodes: str
    """A host list, or ALL."""
    state: str = "down"
    """down: jobs on them end or wait again; drain: they take no new ones; use: a person uses them, so that jobs of
    partitions with `vacate_on_use` make way."""
    at: Duration | str = 0.0
    """Seconds since the start, or a date, which UTC is read into that has no zone."""
    until: Duration | str | None = None
    """When they are back; with `every` when the last one is drawn. None: never, with `every` a year after `at`."""
    lasts: Duration | None = None
    """For how long, in place of `until`."""
    every: Duration | None = None
    """Mean time until a node is lost, drawn for each by itself again and again; None: all are lost once, at `at`."""
    notice: Duration = 0.0
    """For so long before they are lost the nodes take no new jobs."""
    seed: int = 0


@attrs.frozen(kw_only=True)
class JournalTable:
    """``[world.journal]``: what a journal keeps for how long."""

    keep_steps_for: Duration = attrs.field(default=30 * _DAY, validator=attrs.validators.ge(0))
    """Seconds for which steps are kept whole: events, actions, lines of the record."""
    keep_steps: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most steps kept whole; 0: any number."""
    keep_jobs_for: Duration = attrs.field(default=365 * _DAY, validator=attrs.validators.ge(0))
    """Seconds after its end for which a job is kept: its request, its times, how it ended."""
    keep_jobs: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most jobs kept that have ended; 0: any number."""
    compact_every: Duration = attrs.field(default=3600.0, validator=attrs.validators.ge(0))
    """Seconds between two times that older entries are dropped; 0: never."""


@attrs.frozen(kw_only=True)
class WorldTable:
    """``[world]``: where jobs run."""

    name: str = "world/simulated"
    """Name of a plugin: ``world/local``, ``world/slurm``, ..."""
    state: str | None = None
    """State directory; None: the command's own default."""
    survey: Duration = 60.0
    """Seconds between two looks at what is really there; 0: only at the start and after a sleep."""
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """The world's own settings."""
    failures: FailureTable = FailureTable()
    journal: JournalTable = JournalTable()

    @property
    def real(self) -> bool:
        """Whether jobs are really run there."""
        return self.name not in ("world/simulated", "simulated")


@attrs.frozen(kw_only=True)
class Config:
    """A whole configuration file."""

    cluster: ClusterTable = ClusterTable()
    node: tuple[NodeTable, ...] = ()
    partition: tuple[PartitionTable, ...] = ()
    qos: tuple[QosTable, ...] = ()
    policy: PolicyTable = PolicyTable()
    scheduler: SchedulerTable = attrs.field(factory=SchedulerTable)
    workload: WorkloadTable = WorkloadTable()
    world: WorldTable = WorldTable()
    job: tuple[Mapping[str, Any], ...] = ()
    """Jobs in the file itself, for small scenarios; same keys as in a native workload."""
    action: tuple[Mapping[str, Any], ...] = ()
    """Commands of people during the run: at, command, job."""
    outage: tuple[OutageTable, ...] = ()
    stay_on: tuple[StayOnTable, ...] = ()

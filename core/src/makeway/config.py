"""Hold a configuration as it is written, and build the cluster that it describes.

The classes here mirror the TOML file table by table; `makeway.settings` structures them strictly. Readers of
foreign files produce the same classes, so that ``makeway import`` is a matter of writing them out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import attrs
import tomli_w

from makeway import bitmap, vendors
from makeway.clockwork import Clockwork
from makeway.errors import ConfigError, Problem, nearest, reason_of, unknown
from makeway.hostlist import expand_hostlist, natural_key
from makeway.model import (
    Cluster,
    ModeFlag,
    ModeSetting,
    Node,
    OverSubscribe,
    Partition,
    PreemptMode,
    Qos,
    Seconds,
    Sharing,
)
from makeway.preemption import PreemptionTable
from makeway.settings import structure, unstructure

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
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


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
    grace_time: float = 0.0
    qos: str | None = None
    default: bool = False
    max_time: float | None = None
    default_time: float | None = None
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
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class QosTable:
    """``[[qos]]``."""

    name: str
    priority: int = 0
    preempt: tuple[str, ...] = ()
    preempt_mode: tuple[str, ...] | None = None
    grace_time: float = 0.0
    exempt_time: float | None = None
    flags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class McsTable:
    """``[policy.mcs]``: security labels (spec slurm-preemption 1.10)."""

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
    """Any further plugins: queue order, admission, observers; asked before the others."""
    decision_time_limit: float = 0.0
    """Most seconds that a plugin may take to answer once; 0: no limit."""
    preemption: PreemptionTable = attrs.field(factory=PreemptionTable)
    mcs: McsTable = McsTable()
    settings: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ClockworkTable:
    """``[scheduler.clockwork]``: a preset and single values."""

    preset: str = "ideal"
    values: Mapping[str, float] = attrs.field(factory=dict)


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
    requeue: bool = True
    """Whether jobs that do not say may be requeued (JobRequeue)."""
    max_requeues: int | None = None
    """Most automatic requeues before a job is held; None: no limit."""
    priority: str = "basic"
    """Priority of jobs that are not given one: basic (order of submission) or multifactor (by weights)."""
    priority_weights: Mapping[str, int] = attrs.field(factory=dict)
    """Weights of multifactor: ``qos`` and ``partition``; without any, all jobs have priority 1."""
    over_time_limit: float = 0.0
    """Seconds that a job may exceed its limit."""
    young_victim_age: float = 1.0
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


@attrs.frozen(kw_only=True)
class FailureTable:
    """``[world.failures]``: what follows when a world could not do what was decided; docs/worlds.md has the rules."""

    start_wait: float = 10.0
    """Seconds that a job whose start failed waits before it is tried again."""
    start_hold_after: int = 3
    """Failed starts in a row after which the job is held; 0: never."""
    node_set_aside: float = 300.0
    """Seconds for which a node that refused a start gets no jobs; 0: it is not set aside."""
    suspend_wait: float = 60.0
    """Seconds for which nobody displaces a job by suspension after that failed."""
    resume_again: float = 5.0
    """Seconds until a job that could not be continued is continued again."""
    kill_again: float = 30.0
    """Seconds until a job that could not be killed is killed again."""
    kill_force_after: int = 2
    """Failed kills after which SIGKILL is used at once; 0: never."""
    restop_noticed: bool = True
    """Whether a job that somebody else continued is stopped again while others run on its cores."""
    policy_errors: int = 3
    """Errors of a policy in a row after which it displaces nobody until the configuration is reloaded; 0: never."""


_DAY = 86400.0


@attrs.frozen(kw_only=True)
class JournalTable:
    """``[world.journal]``: what a journal keeps for how long."""

    keep_steps_for: float = attrs.field(default=30 * _DAY, validator=attrs.validators.ge(0))
    """Seconds for which steps are kept whole: events, actions, lines of the record."""
    keep_steps: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most steps kept whole; 0: any number."""
    keep_jobs_for: float = attrs.field(default=365 * _DAY, validator=attrs.validators.ge(0))
    """Seconds after its end for which a job is kept: its request, its times, how it ended."""
    keep_jobs: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most jobs kept that have ended; 0: any number."""
    compact_every: float = attrs.field(default=3600.0, validator=attrs.validators.ge(0))
    """Seconds between two times that older entries are dropped; 0: never."""


@attrs.frozen(kw_only=True)
class WorldTable:
    """``[world]``: where jobs run."""

    name: str = "world/simulated"
    """Name of a plugin: ``world/local``, ``world/slurm``, ..."""
    state: str | None = None
    """State directory; None: the command's own default."""
    survey: float = 60.0
    """Seconds between two looks at what is really there; 0: only at the start and after a sleep."""
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """The world's own settings."""
    failures: FailureTable = FailureTable()
    journal: JournalTable = JournalTable()


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


# -------------------------------------------------------------------------------- text and back
def parse_toml(text: str, source: str) -> Config:
    """Read the native configuration.

    :raises ConfigError: with every problem found.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(source, [Problem("", f"not valid TOML: {reason_of(error)}")]) from None
    config = structure(data, Config, source)
    validate(config, source)
    return config


def dump_toml(config: Config) -> str:
    """Write `config` so that reading it back gives an equal one."""
    return tomli_w.dumps(without_none(unstructure(config)))


def without_none(value: Any) -> Any:
    """Leave out None, which TOML cannot say and which is every such field's default."""
    if isinstance(value, Mapping):
        return {str(k): without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [without_none(item) for item in value]
    return value


# ------------------------------------------------------------------------------------ checking
def validate(config: Config, source: str) -> None:
    """Check what single values cannot show: names that point nowhere, doubles, odd machines.

    :raises ConfigError: with every problem found, in file order.
    """
    problems: list[Problem] = []
    _check_least("cluster", config.cluster, _MEMORY, problems)
    _check_counts("cluster.licenses", config.cluster.licenses, problems)
    nodes = _check_nodes(config, problems)
    _check_partitions(config, nodes, problems)
    _check_qos(config, problems)
    _check_scheduler(config.scheduler, problems)
    _check_policy(config.policy, problems)
    if problems:
        raise ConfigError(source, problems)


_MEMORY = ("def_mem_per_cpu", "def_mem_per_node", "max_mem_per_cpu", "max_mem_per_node")
_PARTITION_NUMBERS = (
    *("priority_job_factor", "grace_time", "max_time", "default_time"),
    *("min_nodes", "max_nodes", "max_cpus_per_node"),
)


def _check_least(where: str, table: Any, keys: Iterable[str], problems: list[Problem]) -> None:
    """Check that numbers of a table are not negative; None is none."""
    _check_counts(where, {key: getattr(table, key) for key in keys}, problems)


def _check_counts(where: str, numbers: Mapping[str, float | None], problems: list[Problem]) -> None:
    for key, value in numbers.items():
        if value is not None and value < 0:
            problems.append(Problem(f"{where}.{key}", f"got {value}; allowed: 0 or more"))


def _check_nodes(config: Config, problems: list[Problem]) -> set[str]:
    seen: set[str] = set()
    for at, table in enumerate(config.node):
        where = f"node[{at}]"
        try:
            names = expand_hostlist(table.name)
        except ValueError as error:
            problems.append(Problem(f"{where}.name", str(error)))
            continue
        doubles = [name for name in names if name in seen]
        if doubles or len(set(names)) < len(names):
            problems.append(Problem(f"{where}.name", f"node {(doubles or names)[0]!r} is there twice"))
        seen.update(names)
        for key in ("cpus", "sockets", "cores_per_socket", "threads_per_core"):
            value = getattr(table, key)
            if value is not None and not 1 <= value <= 1_000_000:
                problems.append(Problem(f"{where}.{key}", f"got {value}; allowed: 1 to 1000000"))
        _check_least(where, table, ("memory_mb", "mem_spec_limit_mb", "weight", "load"), problems)
        _check_counts(f"{where}.gres", table.gres, problems)
    if not config.node:
        problems.append(Problem("node", "the cluster has no nodes; add a [[node]] table"))
    return seen


def _check_partitions(config: Config, nodes: set[str], problems: list[Problem]) -> None:
    seen: set[str] = set()
    defaults: list[str] = []
    for at, table in enumerate(config.partition):
        where = f"partition[{at}]"
        if not table.name.strip() or not table.name.isprintable():
            problems.append(Problem(f"{where}.name", f"got {table.name!r}; allowed: printable characters"))
        if table.name in seen:
            problems.append(Problem(f"{where}.name", f"partition {table.name!r} is there twice"))
        seen.add(table.name)
        if table.default:
            defaults.append(table.name)
        _check_node_names(f"{where}.nodes", table.nodes, nodes, problems)
        _try(problems, f"{where}.oversubscribe", parse_oversubscribe, table.oversubscribe)
        _try(problems, f"{where}.select_parameters", parse_select_parameters, table.select_parameters)
        if table.preempt_mode is not None:
            _try(problems, f"{where}.preempt_mode", parse_mode, table.preempt_mode)
        if not 0 <= table.priority_tier <= 65533:
            problems.append(
                Problem(f"{where}.priority_tier", f"got {table.priority_tier}; allowed: 0 to 65533")
            )
        _check_least(where, table, (*_PARTITION_NUMBERS, *_MEMORY), problems)
        if table.qos is not None and table.qos not in {qos.name for qos in config.qos}:
            problems.append(
                Problem(f"{where}.qos", unknown("QOS", table.qos, (qos.name for qos in config.qos)))
            )
    if len(defaults) > 1:
        problems.append(Problem("partition", f"more than one default: {', '.join(defaults)}"))
    if not config.partition:
        problems.append(Problem("partition", "there are no partitions; add a [[partition]] table"))


def _check_node_names(where: str, text: str, nodes: set[str], problems: list[Problem]) -> None:
    if text.upper() == "ALL" or not text:
        return
    try:
        names = expand_hostlist(text)
    except ValueError as error:
        problems.append(Problem(where, str(error)))
        return
    for name in names:
        if name not in nodes:
            problems.append(Problem(where, f"no node named {name!r}{nearest(name, nodes)}"))
            return


def _check_qos(config: Config, problems: list[Problem]) -> None:
    names = [qos.name for qos in config.qos]
    for at, table in enumerate(config.qos):
        where = f"qos[{at}]"
        if names.index(table.name) != at:
            problems.append(Problem(f"{where}.name", f"QOS {table.name!r} is there twice"))
        for other in table.preempt:
            if other not in names:
                problems.append(Problem(f"{where}.preempt", unknown("QOS", other, names)))
        if table.preempt_mode is not None:
            _try(problems, f"{where}.preempt_mode", parse_mode, table.preempt_mode)
        _check_least(where, table, ("grace_time", "exempt_time"), problems)
    for at, table in enumerate(config.qos):
        if _reaches(table.name, table.name, {qos.name: qos.preempt for qos in config.qos}):
            problems.append(
                Problem(f"qos[{at}].preempt", f"preemption loop: {table.name!r} may preempt itself")
            )


def _reaches(start: str, goal: str, edges: Mapping[str, Sequence[str]]) -> bool:
    todo, seen = list(edges.get(start, ())), set()
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            todo.extend(edges.get(name, ()))
    return False


def _check_scheduler(table: SchedulerTable, problems: list[Problem]) -> None:
    if table.type not in SCHEDULERS:
        close = nearest(table.type, SCHEDULERS)
        problems.append(
            Problem("scheduler.type", f"got {table.type!r}; allowed: {', '.join(SCHEDULERS)}{close}")
        )
    for vendor in vendors.vendors():
        release = vendor.release_of(table)
        if release is not None:
            _try(problems, f"scheduler.{vendor.release_key}", vendor.stated, release)
    if table.priority not in PRIORITIES:
        close = nearest(table.priority, PRIORITIES)
        problems.append(
            Problem("scheduler.priority", f"got {table.priority!r}; allowed: {', '.join(PRIORITIES)}{close}")
        )
    for name, weight in table.priority_weights.items():
        where = f"scheduler.priority_weights.{name}"
        if name not in PRIORITY_WEIGHTS:
            problems.append(Problem(where, unknown("weight", name, PRIORITY_WEIGHTS)))
        elif weight < 0:
            problems.append(Problem(where, f"got {weight}; allowed: 0 or more"))
    _check_least("scheduler", table, ("max_requeues", "over_time_limit", "young_victim_age"), problems)
    known = vendors.rule_names()
    for name in table.rules:
        if name not in known:
            problems.append(Problem(f"scheduler.rules.{name}", unknown("rule", name, known)))
    try:
        build_clockwork(table.clockwork)
    except ConfigError as error:
        problems.extend(error.problems)


def _check_policy(table: PolicyTable, problems: list[Problem]) -> None:
    _try(problems, "policy.preempt_mode", parse_mode, table.preempt_mode)
    _try(problems, "policy.select_parameters", parse_select_parameters, table.select_parameters)
    if not 0 <= table.decision_time_limit <= 86400:
        text = f"got {table.decision_time_limit}; allowed: 0 (no limit) to 86400"
        problems.append(Problem("policy.decision_time_limit", text))
    _check_least("policy.preemption", table.preemption, ("exempt_time", "min_exempt_priority"), problems)
    sources = ("none", "user", "group", "account", "label")
    if table.mcs.label not in sources:
        problems.append(
            Problem("policy.mcs.label", f"got {table.mcs.label!r}; allowed: {', '.join(sources)}")
        )
    selects = ("noselect", "ondemandselect", "select")
    if table.mcs.select not in selects:
        problems.append(
            Problem("policy.mcs.select", f"got {table.mcs.select!r}; allowed: {', '.join(selects)}")
        )


def _try(problems: list[Problem], where: str, parse: Any, value: Any) -> None:
    try:
        parse(value)
    except ValueError as error:
        problems.append(Problem(where, str(error)))


# ------------------------------------------------------------------------------------- building
def parse_mode(words: Sequence[str]) -> ModeSetting:
    """Read a mode: at most one action, any modifiers (spec slurm-preemption 6.1).

    :raises ValueError: on an unknown word, two actions, or gang with within or priority.
    """
    actions = {mode.value: mode for mode in PreemptMode}
    flags = {flag.value: flag for flag in ModeFlag}
    action: PreemptMode | None = None
    found: set[ModeFlag] = set()
    for word in words:
        if word in actions:
            if action is not None:
                raise ValueError(f"two actions: {action.value!r} and {word!r}; allowed: one")
            action = actions[word]
        elif word in flags:
            found.add(flags[word])
        else:
            options = [*actions, *flags]
            raise ValueError(f"got {word!r}; allowed: {', '.join(options)}{nearest(word, options)}")
    for other in (ModeFlag.WITHIN, ModeFlag.PRIORITY):
        if ModeFlag.GANG in found and other in found:
            raise ValueError(f"gang and {other.value} exclude each other")
    return ModeSetting(action=action, flags=frozenset(found))


def parse_select_parameters(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of SelectTypeParameters in the manual's spelling, each once; case does not count.

    :raises ValueError: on an unknown word.
    """
    known = {word.lower(): word for word in SELECT_WORDS}
    for word in words:
        if word.lower() not in known:
            close = nearest(word, SELECT_WORDS)
            raise ValueError(f"got {word!r}; allowed: {', '.join(SELECT_WORDS)}{close}")
    return tuple(dict.fromkeys(known[word.lower()] for word in words))


def parse_oversubscribe(text: str) -> OverSubscribe:
    """Read NO, EXCLUSIVE, YES[:n], FORCE[:n]; a bare YES or FORCE means 4 (spec slurm-preemption 6.3).

    :raises ValueError: on anything else.
    """
    word, _, number = text.partition(":")
    try:
        sharing = Sharing(word.upper())
        count = int(number) if number else None
    except ValueError:
        raise ValueError(f"got {text!r}; allowed: NO, EXCLUSIVE, YES[:n], FORCE[:n]") from None
    if sharing in (Sharing.NO, Sharing.EXCLUSIVE):
        if count is not None:
            raise ValueError(f"got {text!r}; only YES and FORCE take a number")
        return OverSubscribe(sharing=sharing, count=1)
    if count is None:
        return OverSubscribe(sharing=sharing, count=4)
    if not 1 <= count <= 32767:
        raise ValueError(f"got {text!r}; allowed: 1 to 32767 jobs")
    if sharing is Sharing.YES and count == 1:
        return OverSubscribe()
    return OverSubscribe(sharing=sharing, count=count)


def build_clockwork(value: str | Mapping[str, Any]) -> Clockwork:
    """Return the clockwork of a preset name or of a table.

    :raises ConfigError: on an unknown preset or key, or a value out of range.
    """
    table = {"preset": value} if isinstance(value, str) else dict(value)
    preset = table.pop("preset", "ideal")
    presets = vendors.clockworks()
    if preset not in presets:
        options = ", ".join(presets)
        close = nearest(str(preset), presets)
        problem = Problem("scheduler.clockwork", f"got {preset!r}; allowed: {options}{close}")
        raise ConfigError("config", [problem])
    base = attrs.asdict(presets[preset])
    return structure({**base, **table}, Clockwork, "config", "scheduler.clockwork")


def build_cluster(config: Config) -> Cluster:
    """Build the cluster, nodes in index order; `config` has been validated."""
    nodes = _build_nodes(config.node)
    index_of = {node.name: node.index for node in nodes}
    partitions = tuple(_build_partition(at, table, index_of) for at, table in enumerate(config.partition))
    table = config.cluster
    return Cluster(
        name=table.name,
        nodes=nodes,
        partitions=partitions,
        qos=tuple(_build_qos(at, qos) for at, qos in enumerate(config.qos)),
        licenses=dict(table.licenses),
        def_mem_per_cpu=table.def_mem_per_cpu,
        def_mem_per_node=table.def_mem_per_node,
        max_mem_per_cpu=table.max_mem_per_cpu,
        max_mem_per_node=table.max_mem_per_node,
        attributes=dict(table.attributes),
    )


def _build_nodes(tables: Sequence[NodeTable]) -> tuple[Node, ...]:
    described = [
        (name, record, table) for record, table in enumerate(tables) for name in expand_hostlist(table.name)
    ]
    described.sort(key=lambda item: natural_key(item[0]))
    return tuple(
        _build_node(index, name, record, table) for index, (name, record, table) in enumerate(described)
    )


def _build_node(index: int, name: str, record: int, table: NodeTable) -> Node:
    threads, sockets = table.threads_per_core, table.sockets
    cores = table.cores_per_socket or max(1, (table.cpus or 1) // (sockets * threads))
    return Node(
        name=name,
        index=index,
        cpus=table.cpus or sockets * cores * threads,
        sockets=sockets,
        cores_per_socket=cores,
        threads_per_core=threads,
        memory_mb=table.memory_mb,
        mem_spec_limit_mb=table.mem_spec_limit_mb,
        weight=table.weight,
        features=frozenset(table.features),
        gres=dict(table.gres),
        up=table.up,
        record=record,
        load=table.load,
        attributes=dict(table.attributes),
    )


def _build_partition(at: int, table: PartitionTable, index_of: Mapping[str, int]) -> Partition:
    if table.nodes.upper() == "ALL":
        nodes = bitmap.full(len(index_of))
    else:
        nodes = bitmap.of([index_of[name] for name in expand_hostlist(table.nodes)])
    values = attrs.asdict(table, recurse=False)
    values |= {
        "index": at,
        "nodes": nodes,
        "oversubscribe": parse_oversubscribe(table.oversubscribe),
        "preempt_mode": None if table.preempt_mode is None else parse_mode(table.preempt_mode),
    }
    return Partition(**values)


def _build_qos(at: int, table: QosTable) -> Qos:
    values = attrs.asdict(table, recurse=False)
    values |= {
        "index": at,
        "preempt": frozenset(table.preempt),
        "flags": frozenset(table.flags),
        "preempt_mode": None if table.preempt_mode is None else parse_mode(table.preempt_mode),
    }
    return Qos(**values)


def short_name(path: str) -> str:
    """Return the last part of a path, for messages."""
    return PurePath(path).name or path


__all__ = ["Config", "Seconds", "build_clockwork", "build_cluster", "dump_toml", "parse_mode", "parse_toml"]

"""Check what single values do not show: references, ranges, circles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from makeway import vendors
from makeway.config.building import build_clockwork
from makeway.config.tables import (
    LEAST_QUIET,
    PRIORITIES,
    PRIORITY_WEIGHTS,
    SCHEDULERS,
    USE_SOURCES,
    Config,
    PolicyTable,
    SchedulerTable,
)
from makeway.config.words import parse_mode, parse_oversubscribe, parse_select_parameters
from makeway.devices import GPU
from makeway.errors import ConfigError, Problem, nearest, unknown
from makeway.hostlist import expand_hostlist


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
    for at, table in enumerate(config.stay_on):
        _check_node_names(f"stay_on[{at}].nodes", table.nodes, nodes, problems)
        _check_least(f"stay_on[{at}]", table, ("count",), problems)
    _check_scheduler(config.scheduler, problems)
    _check_policy(config.policy, problems)
    if not 0 <= config.workload.over_memory_at <= 1:
        text = f"got {config.workload.over_memory_at:g}; allowed: 0 to 1"
        problems.append(Problem("workload.over_memory_at", text))
    if config.world.real:
        _check_defects(config.scheduler, config.world.name, problems)
    if problems:
        raise ConfigError(source, problems)


_MEMORY = ("def_mem_per_cpu", "def_mem_per_node", "max_mem_per_cpu", "max_mem_per_node")
_MOST_GPUS = 1024
"""GPUs of a node: they are told apart, and every decision looks at each of them."""
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


def _check_gpus(where: str, counts: Mapping[str, int], problems: list[Problem]) -> None:
    for key, count in counts.items():
        if key.partition(":")[0] == GPU and count > _MOST_GPUS:
            problems.append(Problem(f"{where}.{key}", f"got {count}; allowed: 0 to {_MOST_GPUS} on a node"))


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
        _check_gpus(f"{where}.gres", table.gres, problems)
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
        for word in table.vacate_on_use:
            if word not in USE_SOURCES:
                text = f"got {word!r}; allowed: {', '.join(USE_SOURCES)}{nearest(word, USE_SOURCES)}"
                problems.append(Problem(f"{where}.vacate_on_use", text))
        if not table.quiet >= LEAST_QUIET:
            problems.append(
                Problem(f"{where}.quiet", f"got {table.quiet:g}; allowed: {LEAST_QUIET:g} or more")
            )
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


def _check_defects(table: SchedulerTable, world: str, problems: list[Problem]) -> None:
    """Refuse a fault of a scheduler where jobs are real."""
    defects = vendors.defects()
    problems += [
        Problem(
            f"scheduler.rules.{name}", f"got true, but this is a defect, never on in {world}; allowed: false"
        )
        for name, on in table.rules.items()
        if on and name in defects
    ]


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

"""Translate a trace's users, queues and QOS into the partitions and QOS of this configuration.

The first rule of ``[[workload.map]]`` that matches a job counts. Then a job whose partition does
not exist here goes to ``[workload] partition`` if that is set, is rejected, or goes to the default
partition. A job without a QOS gets the one of ``[workload.default_qos]``. A rule as people type it
is ``user=3,7:high``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import attrs

from makeway.config import Config, MappingRule, NodeTable, WorkloadTable
from makeway.errors import ConfigError, Problem, nearest, unknown
from makeway.model import JobSpec
from makeway.readers.api import Workload
from makeway.readers.lines import shown

UNKNOWN_PARTITION = ("reject", "default")
_KEYS = ("user", "group", "account", "queue", "qos")
_LIMITS = ("min_nodes", "max_nodes")
_MOST_NOTES = 20


# ------------------------------------------------------------------------------ rules as typed
def parse_map_flag(text: str) -> MappingRule:
    """Read ``KEY=NAME[,NAME...][,KEY=...]:TARGET``; all conditions have to hold.

    TARGET is a partition, or ``partition=NAME``, ``qos=NAME`` or both, separated by a comma.
    Names may be shell patterns; keys may be plural.

    :raises ValueError: says what is allowed.
    """
    conditions, colon, target = text.rpartition(":")
    if not (conditions and colon and target.strip()):
        allowed = "KEY=NAME[,NAME...]:TARGET, such as 'user=3,7:high'"
        raise ValueError(f"got {shown(text)}; allowed: {allowed}")
    names: dict[str, list[str]] = {}
    limits: dict[str, Any] = {}
    for key, words in _conditions(conditions):
        if key in _LIMITS:
            limits[key] = _limit(key, words)
        else:
            names.setdefault(key, []).extend(words)
    found: dict[str, Any] = {key: tuple(words) for key, words in names.items()}
    return MappingRule(**found, **limits, **_target(target))


def _conditions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each key with its names: a word with ``=`` begins the next one."""
    key, words = "", list[str]()
    for word in text.split(","):
        name, equals, value = word.strip().rpartition("=")
        if equals:
            if key:
                yield key, words
            key, words = _condition_key(name.strip()), []
        elif not key:
            raise ValueError(f"got {shown(text)}; begin with one of {', '.join(_KEYS)} and '='")
        if not value.strip():
            raise ValueError(f"got {shown(text)}; a name is missing after {key}=")
        words.append(value.strip())
    yield key, words


def _condition_key(word: str) -> str:
    options = (*_KEYS, *_LIMITS)
    key = word.lower().replace("-", "_")
    for option in options:
        if key in (option, option + "s"):
            return option
    allowed = ", ".join(options)
    raise ValueError(f"got {shown(word)}; allowed: {allowed}{nearest(key, options)}")


def _limit(key: str, words: list[str]) -> int:
    if len(words) == 1 and words[0].isascii() and words[0].isdigit() and len(words[0]) <= 9:
        return int(words[0])
    raise ValueError(f"{key}: got {shown(','.join(words))}; allowed: one whole number")


def _target(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in text.split(","):
        key, equals, name = word.strip().rpartition("=")
        key = key.strip() if equals else "partition"
        if key not in ("partition", "qos") or not name.strip() or f"to_{key}" in found:
            allowed = "PARTITION, partition=NAME, qos=NAME, or one of each with a comma"
            raise ValueError(f"target {shown(text)}; allowed: {allowed}")
        found[f"to_{key}"] = name.strip()
    return found


# --------------------------------------------------------------------------------- application
def apply_mapping(workload: Workload, config: Config) -> Workload:
    """Send the jobs of `workload` where `config` says; what cannot go anywhere is rejected.

    :raises ConfigError: a rule names a partition or QOS that does not exist.
    """
    check_mapping(config)
    workload.jobs = _mapped(workload, workload.jobs, _Mapper(config))
    return workload


def check_mapping(config: Config) -> None:
    """Check that all targets exist.

    :raises ConfigError: with every problem found.
    """
    table = config.workload
    partitions = [partition.name for partition in config.partition]
    qos = [one.name for one in config.qos]
    problems: list[Problem] = []
    for at, rule in enumerate(table.map):
        where = f"workload.map[{at}]"
        if rule.to_partition is None and rule.to_qos is None:
            problems.append(Problem(where, "sends its jobs nowhere; add to_partition or to_qos"))
        if rule.to_partition is not None and rule.to_partition not in partitions:
            message = unknown("partition", rule.to_partition, partitions)
            if rule.to_partition in qos:
                message += f"; it is a QOS: use to_qos, or --map ...:qos={rule.to_partition}"
            problems.append(Problem(f"{where}.to_partition", message))
        if rule.to_qos is not None and rule.to_qos not in qos:
            problems.append(Problem(f"{where}.to_qos", unknown("QOS", rule.to_qos, qos)))
    problems.extend(_table_problems(table, partitions))
    for who, name in table.default_qos.items():
        if name not in qos:
            problems.append(Problem(f"workload.default_qos.{who}", unknown("QOS", name, qos)))
    if problems:
        raise ConfigError("config", problems)


def _table_problems(table: WorkloadTable, partitions: list[str]) -> Iterator[Problem]:
    if table.partition is not None and table.partition not in partitions:
        yield Problem("workload.partition", unknown("partition", table.partition, partitions))
    if table.unknown_partition not in UNKNOWN_PARTITION:
        given, allowed = table.unknown_partition, ", ".join(UNKNOWN_PARTITION)
        close = nearest(given, UNKNOWN_PARTITION)
        yield Problem("workload.unknown_partition", f"got {given!r}; allowed: {allowed}{close}")
    if table.cpus_per_node is not None and not 1 <= table.cpus_per_node <= 1_000_000:
        yield Problem("workload.cpus_per_node", f"got {table.cpus_per_node}; allowed: 1 to 1000000")


@attrs.frozen
class _Traits:
    """What rules look at."""

    user: str
    group: str | None
    account: str | None
    queue: tuple[str, ...]
    qos: str | None
    nodes: int


def _traits(spec: JobSpec) -> _Traits:
    """Describe `spec`; the trace's own queue counts even where it is no partition here."""
    queue = spec.attributes.get("queue")
    queues = (queue,) if isinstance(queue, str) else spec.partitions
    return _Traits(spec.user, spec.group, spec.account, queues, spec.qos, spec.min_nodes)


class _Mapper:
    """The rules of one configuration, made ready to be asked often."""

    def __init__(self, config: Config) -> None:
        self.table = config.workload
        self.partitions = {partition.name for partition in config.partition}
        self.qos = {qos.name for qos in config.qos}
        self.default_partition = _default_partition(config)
        self.rule = functools.lru_cache(maxsize=1 << 16)(self._find)

    def _find(self, traits: _Traits) -> MappingRule | None:
        return next((rule for rule in self.table.map if _matches(rule, traits)), None)

    def partitions_of(self, spec: JobSpec, rule: MappingRule | None) -> tuple[str, ...] | None:
        """Return where the job goes; empty: the default partition; None: nowhere."""
        if rule is not None and rule.to_partition is not None:
            return (rule.to_partition,)
        known = (
            tuple([name for name in spec.partitions if name in self.partitions]) if spec.partitions else ()
        )
        if known:
            return known
        if self.table.partition is not None:
            return (self.table.partition,)
        if spec.partitions and self.table.unknown_partition == "reject":
            return None
        return ()

    def default_qos(self, spec: JobSpec, partitions: tuple[str, ...]) -> str | None:
        """Return the QOS of a job that names none; None: it goes without."""
        known = self.table.default_qos
        if not known:
            return None
        if spec.account is not None:
            account = f"{spec.user}/{spec.account}"
            (partition,) = partitions if len(partitions) == 1 else (self.default_partition,)
            if len(partitions) < 2 and f"{account}/{partition}" in known:
                return known[f"{account}/{partition}"]
            if account in known:
                return known[account]
        return known.get(spec.user)


def _default_partition(config: Config) -> str | None:
    """Return the partition of jobs that name none."""
    marked = [table.name for table in config.partition if table.default]
    if not marked and len(config.partition) == 1:
        return config.partition[0].name
    return marked[0] if marked else None


def _matches(rule: MappingRule, traits: _Traits) -> bool:
    return (
        _any_like(rule.user, (traits.user,))
        and _any_like(rule.group, (traits.group,))
        and _any_like(rule.account, (traits.account,))
        and _any_like(rule.queue, traits.queue)
        and _any_like(rule.qos, (traits.qos,))
        and (rule.min_nodes is None or traits.nodes >= rule.min_nodes)
        and (rule.max_nodes is None or traits.nodes <= rule.max_nodes)
    )


def _any_like(patterns: tuple[str, ...], names: Iterable[str | None]) -> bool:
    """Return whether a name fits a pattern; no patterns: always; no name: only ``*`` fits."""
    if not patterns:
        return True
    given = [name or "" for name in names] or [""]
    return any(fnmatchcase(name, pattern) for name in given for pattern in patterns)


def _mapped(workload: Workload, jobs: Iterator[JobSpec], mapper: _Mapper) -> Iterator[JobSpec]:
    noted: set[str] = set()
    for spec in jobs:
        rule = mapper.rule(_traits(spec)) if mapper.table.map else None
        partitions = mapper.partitions_of(spec, rule)
        if partitions is None:
            workload.reject(line_of(spec), _nowhere(spec, mapper.partitions), spec.id)
            continue
        qos = rule.to_qos if rule is not None and rule.to_qos is not None else spec.qos
        if qos is None and mapper.table.default_qos:
            qos = mapper.default_qos(spec, partitions)
        if qos is not None and qos not in mapper.qos:
            _note_qos(workload, noted, spec.id, qos)
            qos = None
        if partitions == spec.partitions and qos == spec.qos:
            yield spec
        else:
            yield _moved(spec, partitions, qos)


def _moved(spec: JobSpec, partitions: tuple[str, ...], qos: str | None) -> JobSpec:
    """Return `spec` with its new place; the trace's words stay in `attributes`."""
    said = dict(spec.attributes)
    if spec.partitions and spec.partitions != partitions:
        said.setdefault("queue", ",".join(spec.partitions))
    if spec.qos is not None and spec.qos != qos:
        said.setdefault("qos", spec.qos)
    return attrs.evolve(spec, partitions=partitions, qos=qos, attributes=said)


def _nowhere(spec: JobSpec, partitions: Iterable[str]) -> str:
    what = unknown("partition", ",".join(spec.partitions)[:60], partitions)
    return f'{what}; map it, or set [workload] unknown_partition = "default"'


def _note_qos(workload: Workload, noted: set[str], job: str, qos: str) -> None:
    if qos not in noted and len(noted) < _MOST_NOTES:
        noted.add(qos)
        text = f"QOS {shown(qos)} does not exist here; its jobs run without (first: job {job})"
        workload.notes.append(text)


def line_of(spec: JobSpec) -> int:
    """Return the line that a job was read from; 0: unknown."""
    _, _, digits = spec.source.rpartition(":")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


# -------------------------------------------------------------------------------- machine shape
@attrs.frozen(kw_only=True)
class Machine:
    """What a reader has to know of the nodes here to turn a trace's processors into nodes."""

    node_cpus: int
    """CPUs of the largest node."""
    cpus_per_node: int
    """Processors of the trace that make up one node."""
    memory_stated: bool
    """Whether any node says how much memory it has."""
    features: frozenset[str]
    """All that any node offers."""
    partitions: frozenset[str]
    """Names of all partitions."""

    @property
    def one_cpu_nodes(self) -> bool:
        """Whether a node is the smallest thing to be had."""
        return self.node_cpus == 1

    def nodes_for(self, processors: int) -> int:
        """Return the fewest nodes with so many processors."""
        return math.ceil(processors / self.cpus_per_node)


def machine_of(config: Config) -> Machine:
    """Describe the machine of `config`."""
    largest = max((_node_cpus(table) for table in config.node), default=1)
    return Machine(
        node_cpus=largest,
        cpus_per_node=max(1, config.workload.cpus_per_node or largest),
        memory_stated=any(table.memory_mb > 1 for table in config.node),
        features=frozenset(feature for table in config.node for feature in table.features),
        partitions=frozenset(table.name for table in config.partition),
    )


def _node_cpus(table: NodeTable) -> int:
    cores = table.cores_per_socket or 1
    return max(1, table.cpus or table.sockets * cores * table.threads_per_core)

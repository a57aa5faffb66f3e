"""Turn the cluster of a scenario, and its slurm.conf, into a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from makeway.config import Config, NodeTable, QosTable, SchedulerTable
from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist
from makeway_slurm.readers.conf import config_from_entries
from makeway_slurm.readers.conf_parts import Record, Setting
from makeway_slurm.readers.grammar import parse_conf
from makeway_slurm.readers.values import parse_gres, parse_preempt_mode, parse_time
from makeway_slurm.recordings.clocks import harness_clockwork
from makeway_slurm.recordings.entries import (
    DEFAULT_QOS,
    ClusterEntry,
    NodeEntry,
    QosEntry,
    ScenarioFile,
    noted,
)
from makeway_slurm.recordings.recording import Recording
from makeway_slurm.recordings.reserving import with_reservations
from makeway_slurm_rules.rules import version
from makeway_slurm_rules.vendor import of_release

_DEFAULTS = {
    "SchedulerType": "sched/backfill",
    "SelectType": "select/cons_tres",
    "PriorityType": "priority/basic",
    "TaskPlugin": "task/none",
    "KillWait": "1",
    "MessageTimeout": "2",
}
_SCHEDULER_PARAMETERS = {
    "batch_sched_delay": "0",
    "sched_interval": "1",
    "sched_min_interval": "1",
    "bf_interval": "1",
    "bf_resolution": "1",
    "bf_continue": "",
}
_GONE = {
    "taskplugin": "task/none",
    "preempttype": "preempt/none",
    "switchtype": "switch/none",
    "jobacctgathertype": "jobacct_gather/none",
    "mcsplugin": "mcs/none",
}
"""Values that meant "nothing" and are spelled by leaving the line out since 23.11."""


def config_of(file: ScenarioFile, recording: Recording | None, source: str) -> tuple[Config, tuple[str, ...]]:
    """Return the config of the cluster, and the warnings of the slurm.conf reader."""
    cluster = file.cluster
    release = recording.release if recording else None
    problems: list[Problem] = []
    nodes = _nodes(cluster, problems)
    qos = _qos(cluster, problems)
    if problems:
        raise ConfigError(source, problems)
    entries = _slurm_conf(cluster.slurm_conf, release, source)
    imported = config_from_entries(entries, nodes, source, release, qos=qos, licenses=cluster.licenses)
    config = imported.config
    scheduler = scheduler_as_played(config, harness_clockwork(recording, config), release)
    config = attrs.evolve(config, scheduler=scheduler)
    actions = recording.actions if recording is not None else [attrs.asdict(each) for each in file.action]
    second = recording.phases.second if recording is not None and recording.phases is not None else 0.0
    return with_reservations(config, actions, [each.args for each in file.job], second), imported.warnings


def scheduler_as_played(config: Config, clocks: Mapping[str, Any], release: str | None) -> SchedulerTable:
    """Return the scheduler of a slurm.conf as it ran: the clocks of the recording, EnforcePartLimits, the release."""
    own = config.scheduler.clockwork
    return attrs.evolve(
        config.scheduler,
        clockwork={**(own if isinstance(own, Mapping) else {}), **clocks},
        enforce_part_limits=config.cluster.attributes.get("enforce_part_limits", "NO") != "NO",
        **of_release(release),
    )


def _nodes(cluster: ClusterEntry, problems: list[Problem]) -> tuple[NodeTable, ...]:
    """Return one table for each NodeName line that the runner wrote."""
    tables: list[NodeTable] = []
    for at, entry in enumerate(cluster.nodes):
        where = f"cluster.nodes[{at}]"
        names = noted(problems, f"{where}.name", lambda entry=entry: expand_hostlist(entry.name))
        gres = noted(problems, f"{where}.gres", lambda entry=entry: parse_gres(entry.gres)) or {}
        lines = [entry.name] if cluster.one_node_line else names or ()
        tables += [_node(entry, name, gres) for name in lines]
    return tuple(tables)


def _node(entry: NodeEntry, name: str, gres: Mapping[str, int]) -> NodeTable:
    threads = entry.sockets * entry.threads_per_core
    return NodeTable(
        name=name,
        cpus=entry.cpus or threads * (entry.cores_per_socket or 1),
        sockets=entry.sockets,
        cores_per_socket=entry.cores_per_socket or max(1, (entry.cpus or 1) // threads),
        threads_per_core=entry.threads_per_core,
        memory_mb=entry.real_memory,
        weight=entry.weight,
        features=entry.features,
        gres=gres,
    )


def _qos(cluster: ClusterEntry, problems: list[Problem]) -> tuple[QosTable, ...]:
    """Return the QOS; ``normal`` is always among them once there is accounting."""
    if not cluster.accounting:
        return ()
    tables = [_one_qos(at, entry, problems) for at, entry in enumerate(cluster.qos)]
    if all(entry.name != DEFAULT_QOS for entry in cluster.qos):
        tables.append(QosTable(name=DEFAULT_QOS))
    return tuple(tables)


def _one_qos(at: int, entry: QosEntry, problems: list[Problem]) -> QosTable:
    where = f"cluster.qos[{at}]"
    mode: tuple[str, ...] | None = None
    exempt: int | None = None
    if entry.preempt_mode is not None:
        text = entry.preempt_mode
        mode = noted(problems, f"{where}.preempt_mode", lambda: _mode_words(text))
    if entry.preempt_exempt_time is not None:
        duration = entry.preempt_exempt_time
        exempt = noted(problems, f"{where}.preempt_exempt_time", lambda: parse_time(duration))
    return QosTable(
        name=entry.name,
        priority=entry.priority,
        preempt=entry.preempt,
        preempt_mode=mode,
        grace_time=entry.grace_time,
        exempt_time=None if exempt is None else float(exempt),
        flags=entry.flags,
    )


def _mode_words(text: str) -> tuple[str, ...] | None:
    """Return a preempt mode as the config spells it; None: the QOS names no mode (CLUSTER)."""
    if text.lower() == "cluster":
        return None
    action, flags = parse_preempt_mode(text)
    return ((action,) if action else ()) + tuple(sorted(flags))


def _slurm_conf(text: str, release: str | None, source: str) -> list[Setting | Record]:
    """Return the entries of slurm.conf as the runner writes it around the scenario's lines."""
    new = release is not None and version(release) >= (23, 11)
    entries = [
        entry
        for entry in parse_conf(text, f"{source}:slurm_conf").entries
        if not (new and isinstance(entry, Setting) and _is_gone(entry.key, entry.value))
    ]
    given = {entry.canonical for entry in entries if isinstance(entry, Setting)}
    added = [
        f"{key}={value}"
        for key, value in _DEFAULTS.items()
        if key.lower() not in given and not (new and _is_gone(key, value))
    ]
    head = parse_conf("\n".join([*added, _scheduler_parameters(entries)]), "oracle")
    rest = [e for e in entries if not _sets(e, "schedulerparameters")]
    return [*head.entries, *rest]


def _is_gone(key: str, value: str) -> bool:
    return _GONE.get(key.lower()) == value.strip().lower()


def _sets(entry: Setting | Record, key: str) -> bool:
    return isinstance(entry, Setting) and entry.canonical == key


def _scheduler_parameters(entries: Iterable[Setting | Record]) -> str:
    """Merge the scenario's SchedulerParameters into the runner's."""
    merged = dict(_SCHEDULER_PARAMETERS)
    for entry in entries:
        if isinstance(entry, Setting) and entry.canonical == "schedulerparameters":
            for word in entry.value.split(","):
                name, _, value = word.strip().partition("=")
                merged[name] = value
    words = [f"{name}={value}" if value else name for name, value in merged.items()]
    return f"SchedulerParameters={','.join(words)}"

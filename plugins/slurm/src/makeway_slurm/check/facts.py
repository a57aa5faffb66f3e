"""Say once what the rules of `makeway_slurm.check` ask of a configuration."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import attrs

from makeway.config import Config, build_cluster, parse_mode
from makeway.errors import Finding as Finding
from makeway.errors import Level as Level
from makeway.errors import place_of as place_of
from makeway.model import (
    Cluster,
    ModeFlag,
    ModeSetting,
    Partition,
    PreemptMode,
    Qos,
    Seconds,
    Sharing,
)
from makeway_slurm_rules import rules
from makeway_slurm_rules.vendor import release_of

TIMESLICE: Seconds = 30.0
"""SchedulerTimeSlice by default, and in place of one that is too short."""
MIN_TIMESLICE: Seconds = 5.0
"""The shortest SchedulerTimeSlice."""

GANG_SETTINGS = "gang/timeslice"
KILL = (PreemptMode.REQUEUE, PreemptMode.CANCEL)
"""Modes that end the victim's run."""

Pairs = tuple[tuple[Partition, Partition], ...]
Grouped = list[tuple[Partition, list[Partition]]]

_KINDS = {"preempt/none": "none", "preempt/partition_prio": "partition_prio", "preempt/qos": "qos"}
_PARTITION_SELECT = ("cr_core", "cr_core_memory", "cr_socket", "cr_socket_memory")
_SHOWN_NAMES = 5


@attrs.frozen(kw_only=True)
class Facts:
    """A valid configuration, seen as Slurm sees it."""

    config: Config
    cluster: Cluster
    mode: ModeSetting
    """PreemptMode of the cluster."""
    kind: str
    """none, partition_prio, qos; empty: a plugin that Slurm has not."""
    gang: bool
    select: str
    """linear, cons_tres; empty: a plugin that Slurm has not."""
    unit: str | None
    """What cons_tres hands out: cpu, core, socket. None: nothing is said."""
    memory: bool
    """Memory is a consumable."""
    rule: Mapping[str, bool]
    """`makeway_slurm_rules.rules` in force."""
    below: Pairs
    """(lower, higher) for all partitions that share nodes and differ in tier."""
    beside: Pairs
    """All partitions that share nodes and a tier."""

    @classmethod
    def of(cls, config: Config) -> Facts:
        """Look at a configuration that has been validated."""
        policy = config.policy
        mode = parse_mode(policy.preempt_mode)
        select = policy.select.removeprefix("select/")
        words = _parameters(config)
        cluster = build_cluster(config)
        below, beside = _overlaps(cluster.partitions)
        return cls(
            config=config,
            cluster=cluster,
            mode=mode,
            kind=_KINDS.get(policy.preempt, ""),
            gang=ModeFlag.GANG in mode.flags,
            select=select if select in ("linear", "cons_tres") else "",
            unit=_unit(words),
            memory=any(word.endswith("memory") for word in words),
            rule=rules.in_force(release_of(config.scheduler), config.scheduler.rules),
            below=below,
            beside=beside,
        )

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, in order."""
        return self.cluster.partitions

    @property
    def preempts(self) -> bool:
        """Whether one of Slurm's preempt plugins is on."""
        return self.kind in ("partition_prio", "qos")

    @property
    def overlays(self) -> bool:
        """Whether a job may be laid over lower tiers, and gang does the rest (5.2.4)."""
        return self.gang and self.kind == "partition_prio" and self.select == "cons_tres"

    def before(self, release: str) -> bool:
        """Say whether the stated release is older than `release`; an unknown one never is."""
        stated = release_of(self.config.scheduler)
        return stated is not None and rules.version(stated) < rules.version(release)

    def action(self, partition: Partition) -> PreemptMode:
        """Return how victims of a partition make way under partition_prio (3.1)."""
        return action_of(partition.preempt_mode or self.mode)

    def qos_action(self, qos: Qos) -> PreemptMode:
        """Return how victims of a QOS make way under preempt/qos (3.1)."""
        own = qos.preempt_mode
        unset = own is None or (own.action in (None, PreemptMode.OFF) and not own.flags)
        return action_of(self.mode if own is None or unset else own)

    def actions(self) -> frozenset[PreemptMode]:
        """Return all ways in which a job may have to make way."""
        if self.kind == "partition_prio":
            return frozenset(self.action(low) for low, _ in self.below)
        if self.kind == "qos":
            return frozenset(self.qos_action(qos) for qos in self.cluster.qos)
        return frozenset()


def _overlaps(partitions: Sequence[Partition]) -> tuple[Pairs, Pairs]:
    """Return the partitions that share nodes: (lower, higher), and those of one tier."""
    below: list[tuple[Partition, Partition]] = []
    beside: list[tuple[Partition, Partition]] = []
    for one, other in itertools.combinations(partitions, 2):
        if not one.nodes & other.nodes:
            continue
        if one.priority_tier == other.priority_tier:
            beside.append((one, other))
        else:
            below.append((one, other) if one.priority_tier < other.priority_tier else (other, one))
    return tuple(below), tuple(beside)


def by_second(pairs: Iterable[tuple[Partition, Partition]]) -> Grouped:
    """Return each second partition of some pairs with all its first ones, in order."""
    found: dict[int, tuple[Partition, list[Partition]]] = {}
    for first, second in pairs:
        found.setdefault(second.index, (second, []))[1].append(first)
    return list(found.values())


def action_of(mode: ModeSetting) -> PreemptMode:
    """Return the action of a mode; only flags amount to OFF (3.1)."""
    return mode.action or PreemptMode.OFF


def path_of(partition: Partition, key: str = "") -> str:
    """Return the path of a partition, or of one of its keys."""
    return f"partition[{partition.index}]" + (f".{key}" if key else "")


def qos_path(qos: Qos, key: str = "") -> str:
    """Return the path of a QOS, or of one of its keys."""
    return f"qos[{qos.index}]" + (f".{key}" if key else "")


def row_kind(partition: Partition) -> str:
    """Return a column of the table in 5.2.4: NO, YES, FORCE:1, FORCE:n or EXCLUSIVE."""
    over = partition.oversubscribe
    if over.sharing is Sharing.FORCE:
        return "FORCE:1" if over.count == 1 else "FORCE:n"
    return str(over.sharing.value)


def names(found: Sequence[Partition | Qos]) -> str:
    """Name the first few of many."""
    quoted = [repr(each.name) for each in found[:_SHOWN_NAMES]]
    more = len(found) - _SHOWN_NAMES
    return ", ".join(quoted) + (f" and {more} more" if more > 0 else "")


def of_partition(word: str) -> bool:
    """Whether a partition may have this word among its SelectTypeParameters."""
    return word.lower() in _PARTITION_SELECT


def partition_select_is_ignored(cluster: Sequence[str], partition: Sequence[str]) -> str | None:
    """Say why a partition's SelectTypeParameters are ignored; None: they are not.

    slurm-gang-and-select 0.3 no. 7.
    """
    if not all(map(of_partition, partition)):
        return "a partition takes CR_Core, CR_Core_Memory, CR_Socket or CR_Socket_Memory only"
    if not any(word.lower() in _PARTITION_SELECT for word in cluster):
        return "the cluster's own SelectTypeParameters are neither CR_Core nor CR_Socket"
    return None


def _parameters(config: Config) -> list[str]:
    """Return the select parameters in lower case, with Slurm's default for cons_tres."""
    policy = config.policy
    words = [word.lower() for word in policy.select_parameters]
    if not words and policy.select == "select/cons_tres":
        return ["cr_core_memory"]
    return words


def _unit(words: Sequence[str]) -> str | None:
    """Return what the parameters say is handed out."""
    for unit in ("cpu", "core", "socket"):
        if f"cr_{unit}" in words or f"cr_{unit}_memory" in words:
            return unit
    return None

"""Define the cluster: nodes, partitions, QOS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from makeway.bitmap import NodeBits
from makeway.model.values import ModeFlag, PreemptMode, Seconds, Sharing, mapping


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
    gres: Mapping[str, int] = mapping()
    """Counted resources such as ``gpu``; typed ones also as ``gpu:a100``."""
    up: bool = True
    """Whether it is in service when the run begins; `ClusterView.up` says what holds now."""
    record: int = 0
    """Which configuration record (NodeName line, ``[[node]]`` table) described it."""
    load: float = 0.0
    """Host load, for policies that take from the least loaded host."""
    attributes: Mapping[str, Any] = mapping()
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
    vacate_on_use: tuple[str, ...] = ()
    """What counts as use of a node by a person, at which its jobs make way; empty: nothing does."""
    quiet: Seconds = 600.0
    """From the last use until its jobs come back."""
    attributes: Mapping[str, Any] = mapping()
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
    attributes: Mapping[str, Any] = mapping()
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
    licenses: Mapping[str, int] = mapping()
    """Licence -> how many there are."""
    def_mem_per_cpu: int | None = None
    """What a job that asks for no memory gets per CPU; None: nothing."""
    def_mem_per_node: int | None = None
    """The same per node; None: nothing."""
    max_mem_per_cpu: int | None = None
    """Most memory per CPU; None: any."""
    max_mem_per_node: int | None = None
    """Most memory per node; None: any."""
    attributes: Mapping[str, Any] = mapping()
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

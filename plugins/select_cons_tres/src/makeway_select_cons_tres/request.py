"""Say what a job asks for, of each node and in all, and which jobs it shares with.

slurm-gang-and-select 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from makeway.bitmap import NodeBits
from makeway.model import NOTHING, Cluster, Exclusive, Job, OverSubscribe, Partition, Sharing
from makeway.obstacle import least_of, node_bounds
from makeway_select_cons_tres.parameters import Parameters, Unit
from makeway_slurm_rules.memory import MemoryRequest, memory_request, too_small

AVAILABLE, ONE_ROW, RESERVED = 0, 1, 64000
"""A job's mark on its nodes: others may share, only its own row may, none may (section 4.3.1)."""

MARKS: Mapping[tuple[int, bool], frozenset[str]] = {
    (mark, sharing): frozenset(word for word, on in ((name, True), ("sharing", sharing)) if on)
    for mark, name in ((AVAILABLE, "available"), (ONE_ROW, "one_row"), (RESERVED, "reserved"))
    for sharing in (False, True)
}
"""How a placement remembers the mark, and whether the job counts as sharing."""
MARK_OF: Mapping[frozenset[str], tuple[int, bool]] = {words: key for key, words in MARKS.items()}


@attrs.frozen(kw_only=True, cache_hash=True)
class NodeNeed:
    """What the choice of CPUs on one node depends on; alike for many jobs, so that answers can be kept."""

    unit: Unit
    cpus_per_task: int = 1
    whole_tasks: bool = True
    """Whether CPUs that are too few for another task count for nothing."""
    tasks_per_core: int | None = None
    tasks_per_socket: int | None = None
    threads_per_core: int | None = None
    sockets: int = 1
    """Sockets with a free core that a node must have."""
    cores_per_socket: int = 1
    """Free cores that make a socket count."""


@attrs.frozen(kw_only=True)
class Request:
    """A job's request in the partition where it is tried, with limits folded in."""

    partition: Partition
    need: NodeNeed
    min_nodes: int
    target: int
    """Nodes aimed at: the most that the user accepts, if he said so."""
    max_nodes: int | None
    min_cpus: int
    tasks: int | None
    """None: none given; the count follows from the CPUs."""
    cpus_per_node: int
    """CPUs that a node must offer."""
    tasks_per_node: int | None
    trims: bool
    """Whether a node counts with no more CPUs than `tasks_per_node` can use."""
    thins: bool
    """Whether a node beside counted resources counts with no more CPUs than all tasks of the job can use."""
    cpus_for_memory: int
    """What of `cpus_per_node` a limit of memory per CPU asks for, beyond the tasks; 0: nothing."""
    whole: bool
    """Wants whole nodes."""
    shares: bool
    """Whether other jobs may be on its nodes at all (section 4.1.2)."""
    mark: int
    sharing: bool
    """Counts as "sharing" where others look at what is on a node (slurm-preemption 5.2.1)."""
    memory_per_cpu: int | None
    memory_per_node: int | None
    """0: all memory of each node; both None: memory is not handed out."""
    block: bool
    """Cores are taken socket by socket."""
    least_loaded: bool
    spread: bool
    contiguous: bool
    required: NodeBits
    excluded: NodeBits
    gres: Mapping[str, int]
    gres_total: Mapping[str, int]
    gres_per_task: Mapping[str, int]
    gres_per_socket: Mapping[str, int]
    """For each socket of its cores; empty where only the sockets asked for count."""
    max_cpus_per_node: int | None
    """Most CPUs on a node for all jobs of the partition."""
    over_limit: str = ""
    """Which memory limit forbids it; empty: none."""
    too_small: NodeBits = 0
    """Nodes with less memory than it asks for, counted or not."""

    @property
    def wants_gres(self) -> bool:
        """Whether it asks for counted resources."""
        return bool(self.gres or self.gres_total)

    def tasks_beside_gres(self, served: int | None) -> int | None:
        """Return the most tasks of a job with counted resources that a node can have; None: any number.

        :param served: tasks that the node's GPUs serve; None: any number.
        """
        limits = [served, self.tasks_per_node]
        if self.tasks is not None and self.tasks == self.min_nodes:
            limits.append(1)
        if self.tasks is not None and (self.max_nodes == 1 or self.thins):
            limits.append(self.tasks)
        return min((each for each in limits if each is not None), default=None)

    @property
    def most_on_node(self) -> int | None:
        """Most CPUs wanted on one node; None: as many as there are."""
        if self.whole or self.tasks_per_node is None or not self.trims:
            return None
        return max(self.tasks_per_node * self.need.cpus_per_task, self.cpus_per_node)


def request_of(
    job: Job,
    cluster: Cluster,
    parameters: Parameters,
    *,
    implicit_max_nodes: bool,
    whole_tasks: bool,
    whole_tasks_by_memory: bool,
    trims: bool,
    thins: bool,
    thins_in_all: bool,
    by_socket: bool = True,
) -> Request:
    """Normalise the request of `job` (sections 4.1.1, 4.1.2 and 4.1.5).

    :param implicit_max_nodes: a task count without a node count limits the nodes to that count.
    :param trims: a node counts with no more CPUs than its tasks can use.
    :param thins: a node beside counted resources counts with no more CPUs than all tasks can use.
    :param thins_in_all: it does for GPUs that are asked for in all.
    :param by_socket: GPUs for sockets are given for each socket of its cores, too (recorded: cons_gpus_per_socket).
    :param whole_tasks: CPUs of a node that are too few for another task count for nothing.
    :param whole_tasks_by_memory: they do not where memory is handed out per CPU (recorded: cons_whole_tasks_by_memory).
    """
    spec, partition = job.spec, job.partition
    memory = (
        memory_request(spec, partition, cluster) if parameters.memory else MemoryRequest(spec.cpus_per_task)
    )
    least, allowed = node_bounds(job, partition)
    min_nodes = max(job.size, least, job.required.bit_count())
    if spec.tasks is not None and spec.tasks_per_node is not None:
        min_nodes = max(min_nodes, math.ceil(spec.tasks / spec.tasks_per_node))
    limits = [allowed, spec.max_nodes]
    if implicit_max_nodes and spec.max_nodes is None and spec.tasks is not None:
        limits.append(max(spec.tasks, min_nodes))
    max_nodes = least_of(limits, job, min_nodes)
    per_task = memory.cpus_per_task
    one_per_core = parameters.one_task_per_core and spec.tasks_per_core is None
    whole = wants_whole_nodes(job)
    cpus = spec.cpus if per_task == spec.cpus_per_task else attrs.evolve(spec, cpus_per_task=per_task).cpus
    return Request(
        partition=partition,
        need=NodeNeed(
            unit=parameters.unit,
            cpus_per_task=per_task,
            whole_tasks=whole_tasks
            or per_task == 1
            or (whole_tasks_by_memory and memory.per_cpu is not None),
            tasks_per_core=1 if one_per_core else spec.tasks_per_core,
            tasks_per_socket=spec.tasks_per_socket,
            threads_per_core=spec.threads_per_core,
            sockets=spec.sockets_per_node or 1,
            cores_per_socket=spec.cores_per_socket or 1,
        ),
        min_nodes=min_nodes,
        target=max(min_nodes, spec.max_nodes) if spec.max_nodes else min_nodes,
        max_nodes=max_nodes,
        min_cpus=max(cpus, min_nodes),
        tasks=spec.tasks,
        cpus_per_node=max(
            spec.min_cpus_per_node, per_task * (spec.tasks_per_node or 1), memory.cpus_per_node
        ),
        tasks_per_node=spec.tasks_per_node,
        trims=trims,
        thins=thins or (thins_in_all and bool(spec.gres_total)),
        cpus_for_memory=memory.cpus_per_node if memory.cpus_per_node > spec.cpus_per_node else 0,
        whole=whole,
        shares=shares_nodes(job),
        mark=mark_of(job),
        sharing=spec.oversubscribe or partition.oversubscribe.sharing is Sharing.FORCE,
        memory_per_cpu=memory.per_cpu,
        memory_per_node=memory.per_node,
        block=_block(spec.distribution, default=parameters.block),
        least_loaded=parameters.least_loaded,
        spread=spec.spread,
        contiguous=spec.contiguous,
        required=job.required,
        excluded=job.excluded,
        gres=spec.gres or NOTHING,
        gres_total=spec.gres_total or NOTHING,
        gres_per_task=spec.gres_per_task or NOTHING,
        gres_per_socket=spec.gres_per_socket if by_socket else NOTHING,
        max_cpus_per_node=partition.max_cpus_per_node,
        over_limit=memory.over_limit,
        too_small=too_small(spec, partition, cluster),
    )


# ------------------------------------------------------------------------------------- sharing
def shares_nodes(job: Job) -> bool:
    """Whether others may be on the job's nodes (the cons_tres column of section 4.1.2)."""
    over = job.partition.oversubscribe
    if over.sharing is Sharing.EXCLUSIVE:
        return False
    if over.sharing is Sharing.FORCE and over.count > 1:
        return True
    return job.spec.exclusive is not Exclusive.NODE


def wants_whole_nodes(job: Job) -> bool:
    """Whether the job gets whole nodes: FORCE takes the wish to be alone away, not the whole nodes."""
    return job.spec.exclusive is Exclusive.NODE or job.partition.oversubscribe.sharing is Sharing.EXCLUSIVE


def mark_of(job: Job) -> int:
    """Return the mark that the job leaves on its nodes for as long as it is there (section 4.3.1)."""
    over = job.partition.oversubscribe
    if over.sharing is Sharing.EXCLUSIVE:
        return RESERVED
    if over.sharing is Sharing.FORCE:
        return AVAILABLE
    if over.sharing is Sharing.YES and over.count > 1 and job.spec.oversubscribe:
        return AVAILABLE
    return ONE_ROW


def rows_of(over: OverSubscribe) -> int:
    """Return how many rows a partition has (section 4.3.1), the extra one of preempt/qos not counted."""
    return max(1, over.count) if over.sharing in (Sharing.YES, Sharing.FORCE) else 1


def _block(distribution: str | None, *, default: bool) -> bool:
    """Whether the distribution within a node, behind the colon of ``-m``, is block."""
    parts = (distribution or "").replace(",", ":").split(":")
    if len(parts) < 2 or parts[1] in ("*", ""):
        return default
    return parts[1] == "block"

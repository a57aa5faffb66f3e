"""Say what a job asks of each node, and whether it shares nodes (slurm-gang-and-select 4.1)."""

from __future__ import annotations

import math

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Cluster, Job, Node, Partition, Sharing
from makeway.obstacle import least_of, node_bounds
from makeway_slurm_rules.memory import MemoryRequest, memory_request, too_small


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """A job's request, with the partition's limits folded in."""

    min_nodes: int
    target: int
    """Nodes aimed at: the most that the user accepts, if he said so."""
    max_nodes: int | None
    min_cpus: int
    cpus_per_node: int
    """CPUs that a node must offer."""
    limit: int
    """Jobs that may run on one of its nodes at a time, itself included."""
    shares: bool
    memory_per_cpu: int | None
    memory_per_node: int | None
    required: NodeBits
    contiguous: bool
    memory_of_first: int | None = None
    """Memory of the first node in question, which it wants of every node; None: it wants what it says, or all."""
    too_small: NodeBits = 0
    """Nodes with less memory than it asks for, counted or not."""
    counted_cpus: int | None = None
    """CPUs for which each node counts, whatever it has; None: for all that it has."""
    alike: int | None = None
    """How many nodes it takes where all nodes are alike and any would do; None: not known, or it matters which."""

    @property
    def wants_all_memory(self) -> bool:
        """Whether it did not say how much memory it needs, and so gets all that a node has."""
        return self.memory_per_cpu is None and not self.memory_per_node


def request_of(job: Job, cluster: Cluster, *, memory: bool, counts_tasks: bool = False) -> Request:
    """Normalise the request of `job` in its partition.

    :param memory: whether memory is counted at all.
    :param counts_tasks: whether a node counts with no more CPUs than the tasks that may run there can use.
    """
    spec = job.spec
    partition = job.partition
    shares = shares_nodes(job)
    least, allowed = node_bounds(job, partition)
    min_nodes = max(job.size, least, job.required.bit_count())
    if spec.tasks is not None and spec.tasks_per_node is not None:
        min_nodes = max(min_nodes, math.ceil(spec.tasks / spec.tasks_per_node))
    most = least_of((spec.max_nodes, allowed), job, min_nodes)
    asked = memory_request(spec, partition, cluster) if memory else MemoryRequest(spec.cpus_per_task)
    if asked.cpus_per_task != spec.cpus_per_task:
        spec = attrs.evolve(spec, cpus_per_task=asked.cpus_per_task)
    per_node = max(spec.cpus_per_node, asked.cpus_per_node)
    return Request(
        min_nodes=min_nodes,
        target=max(min_nodes, spec.max_nodes or min_nodes) if spec.max_nodes else min_nodes,
        max_nodes=most,
        min_cpus=spec.cpus,
        cpus_per_node=per_node,
        counted_cpus=per_node if counts_tasks and spec.tasks_per_node is not None else None,
        limit=partition.oversubscribe.count if shares else 1,
        shares=shares,
        memory_per_cpu=asked.per_cpu,
        memory_per_node=asked.per_node,
        required=job.required,
        contiguous=spec.contiguous,
        too_small=too_small(spec, partition, cluster),
    )


def shares_nodes(job: Job) -> bool:
    """Whether the job shares its nodes (the linear column of section 4.1.2).

    FORCE:n with n above 1 shares whatever the user said; YES and FORCE:1 only if he offered to.
    """
    over = job.partition.oversubscribe
    if over.sharing is Sharing.EXCLUSIVE:
        return False
    if over.sharing is Sharing.FORCE and over.count > 1:
        return True
    if job.spec.exclusive is not None and job.spec.exclusive.value == "node":
        return False
    return job.spec.oversubscribe and over.sharing in (Sharing.YES, Sharing.FORCE)


def over_limit(request: Request, partition: Partition, cluster: Cluster, node: Node) -> str:
    """Say which memory limit forbids the request on `node`; empty: none (section 4.1.5)."""
    need = memory_charged(request, node)
    cap = partition.max_mem_per_node or cluster.max_mem_per_node
    if cap and need > cap:
        return f"{need} MB per node; MaxMemPerNode is {cap} MB"
    return ""


def memory_need(request: Request, node: Node) -> int:
    """Return the memory that has to be free on `node`.

    A job that says nothing wants what the first node in question has, on larger ones too, though it is charged for
    all that a node has (recorded: linear_memory_of_first_node_larger).
    """
    return memory_charged(request, node) if request.memory_of_first is None else request.memory_of_first


def memory_charged(request: Request, node: Node) -> int:
    """Return the memory charged on `node`: for all its CPUs, as given, or all that it has."""
    if request.memory_per_cpu is not None:
        return request.memory_per_cpu * node.cpus
    return request.memory_per_node or node.memory_mb

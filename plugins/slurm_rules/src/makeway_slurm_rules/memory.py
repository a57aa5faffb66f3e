"""Work out the memory that a job asks for, defaults and limits applied (slurm-gang-and-select 4.1.5)."""

from __future__ import annotations

import math

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Cluster, JobSpec, Partition


@attrs.frozen
class MemoryRequest:
    """Memory asked for, in MB, and the CPUs that a limit per CPU turns it into."""

    cpus_per_task: int
    """As asked, or more: memory above MaxMemPerCPU is paid for with CPUs."""
    per_cpu: int | None = None
    per_node: int | None = None
    """0: all memory of each node."""
    cpus_per_node: int = 1
    """CPUs that each node must have for memory per node above MaxMemPerCPU."""
    over_limit: str = ""
    """Why it can never run; empty: it can."""


def memory_request(spec: JobSpec, partition: Partition, cluster: Cluster) -> MemoryRequest:
    """Return what is asked, else the first default, else all memory of each node; under the limits."""
    per_cpu, per_node = _asked(spec, partition, cluster)
    tasks = spec.cpus_per_task
    limit_cpu, limit_node = _limits(partition, cluster)
    if per_cpu is not None:
        if limit_cpu and per_cpu > limit_cpu:
            factor = math.ceil(per_cpu / limit_cpu)
            return MemoryRequest(tasks * factor, per_cpu=math.ceil(per_cpu / factor))
        if limit_node and per_cpu * max(1, spec.cpus_per_node) > limit_node:
            wanted = per_cpu * spec.cpus_per_node
            return MemoryRequest(tasks, per_cpu=per_cpu, over_limit=_over(wanted, limit_node))
        return MemoryRequest(tasks, per_cpu=per_cpu)
    wanted = per_node or 0
    if limit_cpu and wanted > limit_cpu:
        return MemoryRequest(tasks, per_node=wanted, cpus_per_node=math.ceil(wanted / limit_cpu))
    over = _over(wanted, limit_node) if limit_node and wanted > limit_node else ""
    return MemoryRequest(tasks, per_node=wanted, over_limit=over)


def too_small(spec: JobSpec, partition: Partition, cluster: Cluster) -> NodeBits:
    """Return the nodes whose whole memory is less than the job asks for: they do not serve it, counted or not.

    Memory per CPU counts for one CPU here (recorded: never_linear_memory). A node of 1 MB has not said what it has.
    """
    per_cpu, per_node = _asked(spec, partition, cluster)
    least = per_cpu or per_node or 0
    if least <= 1:
        return 0
    return bitmap.of([node.index for node in cluster.nodes if 1 < node.memory_mb < least])


def _over(wanted: int, limit: int) -> str:
    return f"{wanted} MB per node; MaxMemPerNode is {limit} MB"


def _asked(spec: JobSpec, partition: Partition, cluster: Cluster) -> tuple[int | None, int | None]:
    if spec.memory_mb_per_cpu is not None:
        return spec.memory_mb_per_cpu, None
    if spec.memory_mb_per_node is not None:
        return None, spec.memory_mb_per_node
    for source in (partition, cluster):
        if source.def_mem_per_node:
            return None, source.def_mem_per_node
        if source.def_mem_per_cpu:
            return source.def_mem_per_cpu, None
    return None, 0


def _limits(partition: Partition, cluster: Cluster) -> tuple[int | None, int | None]:
    for source in (partition, cluster):
        if source.max_mem_per_node:
            return None, source.max_mem_per_node
        if source.max_mem_per_cpu:
            return source.max_mem_per_cpu, None
    return None, None

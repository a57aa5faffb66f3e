"""Compute a job's priority from weighted factors, as priority/multifactor does with what is modelled.

Factors lie between 0 and 1: a QOS' priority and a partition's PriorityJobFactor, each over the largest there is.
Age, fair share, job size and TRES are not modelled; with no weight at all every job has priority 1 (
slurm-gang-and-select 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from makeway.config import SchedulerTable
from makeway.model import Cluster, Job


class Multifactor:
    """The priority of a job under one cluster's weights."""

    def __init__(self, cluster: Cluster, weights: Mapping[str, int]) -> None:
        self._qos_weight = weights.get("qos", 0)
        self._partition_weight = weights.get("partition", 0)
        self._most_qos = max((qos.priority for qos in cluster.qos), default=0)
        self._most_partition = max((part.priority_job_factor for part in cluster.partitions), default=0)

    def __call__(self, job: Job) -> int:
        """Return the priority, at least 1."""
        total = 0.0
        if job.qos is not None and self._most_qos:
            total += self._qos_weight * job.qos.priority / self._most_qos
        if self._most_partition:
            total += self._partition_weight * job.partition.priority_job_factor / self._most_partition
        return max(1, int(total))


def priorities_of(cluster: Cluster, scheduler: SchedulerTable) -> Callable[[Job], int] | None:
    """Return what computes the priority of a job; None: jobs come in the order of their submission."""
    return Multifactor(cluster, scheduler.priority_weights) if scheduler.priority == "multifactor" else None

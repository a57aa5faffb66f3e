"""Say what a partition allows one job: nodes, and time."""

from __future__ import annotations

from typing import NamedTuple

from makeway.model import Job, Partition, Seconds
from makeway.obstacle import node_bounds

NODES = "PartitionNodeLimit"
TIME = "PartitionTimeLimit"
BOUNDS = frozenset((NODES, TIME))
"""Reasons of jobs that may never run in a partition."""
CONFIG = "PartitionConfig"
"""The reason of a job that asks for more CPUs than a partition has, or that a partition bars in its configuration."""


class Bounds(NamedTuple):
    """What a partition allows one job."""

    least: int
    most: int
    """Nodes."""
    time: Seconds | None
    """Longest time limit; None: any."""


def bounds_of(job: Job, partition: Partition) -> Bounds:
    """Return what a partition allows a job; flags of the job's QOS lift single bounds."""
    flags: frozenset[str] = job.qos.flags if job.qos is not None else frozenset()
    least, allowed = node_bounds(job, partition)
    there = partition.nodes.bit_count()
    return Bounds(
        least=least,
        most=there if allowed is None else min(there, allowed),
        time=None if "PartitionTimeLimit" in flags else partition.max_time,
    )


def beyond(job: Job, partition: Partition) -> str:
    """Return which bound of a partition keeps a job from ever running there, as the reason to wait; empty: none."""
    bounds = bounds_of(job, partition)
    if not bounds.least <= job.size <= bounds.most:
        return NODES
    if bounds.time is not None and (job.time_limit_in(partition) or 0.0) > bounds.time:
        return TIME
    return ""

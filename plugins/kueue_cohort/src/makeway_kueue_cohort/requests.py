"""Say which queue a job waits in, what it asks for, and how urgent it is."""

from __future__ import annotations

from collections.abc import Mapping

from makeway.model import Cluster, Job, JobSpec
from makeway_kueue_cohort.settings import Settings, thousandths

_MB = 1024 * 1024
TIER = "workload_priority"
"""Attribute of a partition: the priority of its jobs, where tiers stood for it in another scheduler's words."""


def queue_of(job: Job, settings: Settings) -> str:
    """Return the name of the ClusterQueue that a job names, the first of several; empty: it names none."""
    by = settings.queue_by
    if by == "partition":
        name: str | None = job.partitions[0].name
    elif by == "qos":
        name = job.spec.qos
    else:
        name = getattr(job.spec, by)
    return settings.local_queues.get(name, name) if name is not None else ""


def priority_of(job: Job) -> int:
    """Return the priority given with the job, or that of its QOS, which stands for a WorkloadPriorityClass.

    A priority of 0 is given in ``attributes``, as `JobSpec.priority` 0 holds a job.
    """
    if job.spec.attributes.get("priority") == 0:
        return 0
    if job.spec.priority is not None:
        return job.spec.priority
    of_queue = job.partition.attributes.get(TIER)
    if of_queue is not None:
        return int(of_queue)
    return job.qos.priority if job.qos is not None else 0


def covered(settings: Settings) -> frozenset[str]:
    """Return the resources of which any queue states a quota; nothing else is counted."""
    return frozenset(quota.resource for queue in settings.queue for quota in queue.quotas)


def asked(spec: JobSpec, counted: frozenset[str], settings: Settings, cluster: Cluster) -> dict[str, int]:
    """Return what a job asks for of the resources that are counted, in thousandths, pods left out."""
    found: dict[str, int] = {}
    if "cpu" in counted:
        found["cpu"] = 1000 * spec.cpus
    if "memory" in counted:
        found["memory"] = 1000 * _MB * _memory_mb(spec, cluster)
    for name, amount in pieces(spec).items():
        resource = settings.resources.get(name) or _like(name, counted)
        found[resource] = found.get(resource, 0) + thousandths(amount)
    return found


def pods_of(spec: JobSpec) -> int:
    """Return the number of pods: a task each, or else a node each."""
    return spec.tasks if spec.tasks is not None else max(1, spec.min_nodes)


def _memory_mb(spec: JobSpec, cluster: Cluster) -> int:
    if spec.memory_mb_per_cpu is not None:
        return spec.memory_mb_per_cpu * spec.cpus
    if spec.memory_mb_per_node is not None:
        return spec.memory_mb_per_node * max(1, spec.min_nodes)
    return (cluster.def_mem_per_cpu or 0) * spec.cpus


def pieces(spec: JobSpec) -> Mapping[str, float]:
    """Return counted resources over the whole job, by kind: ``gpu:a100`` counts as ``gpu``."""
    found: dict[str, float] = {}
    for name, count in spec.gres.items():
        kind = name.partition(":")[0]
        found[kind] = found.get(kind, 0) + count * max(1, spec.min_nodes)
    for name, count in spec.gres_total.items():
        kind = name.partition(":")[0]
        found[kind] = found.get(kind, 0) + count
    return found


def _like(name: str, counted: frozenset[str]) -> str:
    """Return the resource of quotas that ends in `name`: ``gpu`` is ``nvidia.com/gpu``."""
    return next((each for each in sorted(counted) if each.rpartition("/")[2] == name), name)

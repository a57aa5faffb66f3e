"""Say what a job asks for, of each node and in all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from makeway.bitmap import NodeBits
from makeway.devices import PARTS
from makeway.features import alternatives
from makeway.model import Cluster, Exclusive, Job, Sharing
from makeway.obstacle import least_of, node_bounds


@attrs.frozen(kw_only=True)
class Wish:
    """A job's request in the partition where it is tried."""

    tasks: int
    cpus_per_task: int
    tasks_per_node: int | None
    min_nodes: int
    max_nodes: int | None
    cpus_on_node: int
    """Fewest CPUs of each node."""
    memory_on_node: int
    """In MB."""
    all_memory: bool
    """It wants all memory of its nodes."""
    memory_per_cpu: int
    """In MB."""
    on_node: Mapping[str, int]
    """Counted resources of each node."""
    in_all: Mapping[str, int]
    """Counted resources over all nodes, wherever its tasks are."""
    per_task: Mapping[str, int]
    whole: bool
    """It wants whole nodes."""
    required: NodeBits
    excluded: NodeBits
    need: tuple[int, ...] = attrs.field(init=False)
    """Tasks, then what is wanted in all."""
    key: Hashable = attrs.field(init=False)
    """All that decides what a node can give."""

    @need.default
    def _need(self) -> tuple[int, ...]:
        return (self.tasks, *self.in_all.values())

    @key.default
    def _key(self) -> Hashable:
        on_node, in_all, per_task = (
            tuple(each.items()) for each in (self.on_node, self.in_all, self.per_task)
        )
        of_node = (self.cpus_on_node, self.memory_on_node, self.all_memory, self.memory_per_cpu, self.whole)
        return self.tasks, self.cpus_per_task, self.tasks_per_node, of_node, on_node, in_all, per_task


def wish_of(job: Job) -> Wish:
    """Return what `job` asks for.

    A job that does not say how many tasks it has gets a task's CPUs on each node at least.
    """
    spec = job.spec
    least, allowed = node_bounds(job, job.partition)
    min_nodes = max(job.size, least, job.required.bit_count())
    if spec.tasks is not None and spec.tasks_per_node is not None:
        min_nodes = max(min_nodes, -(-spec.tasks // spec.tasks_per_node))
    most = least_of((allowed, spec.max_nodes, spec.tasks), job, min_nodes)
    exclusive = job.partition.oversubscribe.sharing is Sharing.EXCLUSIVE
    typed = {name.partition(":")[0] for name in spec.gres_total if ":" in name}
    total = {name: count for name, count in spec.gres_total.items() if name not in typed}
    return Wish(
        tasks=max(-(-spec.cpus // spec.cpus_per_task), min_nodes if spec.tasks is None else 1),
        cpus_per_task=spec.cpus_per_task,
        tasks_per_node=spec.tasks_per_node,
        min_nodes=min_nodes,
        max_nodes=max(min_nodes, most) if most is not None else None,
        cpus_on_node=spec.cpus_per_node,
        memory_on_node=spec.memory_mb_per_node or 0,
        all_memory=spec.memory_mb_per_node == 0,
        memory_per_cpu=spec.memory_mb_per_cpu or 0,
        on_node=spec.gres,
        in_all={name: count for name, count in total.items() if name not in spec.gres_per_task},
        per_task=spec.gres_per_task,
        whole=spec.exclusive is Exclusive.NODE or exclusive,
        required=job.required,
        excluded=job.excluded,
    )


def unknown_request(job: Job, cluster: Cluster, name: str) -> str:
    """Say what `job` asks for that the packer `name` does not know; empty: nothing."""
    spec = job.spec
    parts = [each for each in (*spec.gres_total, *spec.gres_per_task) if each in PARTS]
    if parts:
        return f"{name} gives parts of GPUs ({parts[0]}) on each node only, not in all or for each task"
    if spec.contiguous:
        return f"nodes that follow one another are not modelled by {name}"
    if any(choice.counts for choice in alternatives(spec.features, cluster)):
        return f"counted features are not modelled by {name}"
    return ""

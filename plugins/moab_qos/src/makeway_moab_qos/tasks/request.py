"""Say what a job asks of a node."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Exclusive, Job


@attrs.frozen(kw_only=True)
class Request:
    """A job's request."""

    tasks: int
    per_task: int
    """Processors of a task."""
    nodes: int
    """Fewest nodes wanted."""
    max_nodes: int | None
    most_per_node: int | None
    """Most tasks on one node; None: as many as fit."""
    memory_per_task: int
    memory_per_node: int
    whole: bool
    """Wants nodes for itself."""
    required: NodeBits
    wants_memory: bool = attrs.field(init=False)
    """Whether memory was asked for at all."""

    @wants_memory.default
    def _any_memory(self) -> bool:
        return bool(self.memory_per_task or self.memory_per_node)

    @property
    def processors(self) -> int:
        """Processors in all."""
        return self.tasks * self.per_task

    def memory(self, tasks: int) -> int:
        """Return the memory charged on a node with so many tasks."""
        return self.memory_per_node + tasks * self.memory_per_task


def request_of(job: Job, *, alone: bool, one_task: bool = False) -> Request:
    """Read the request of `job`.

    :param alone: whether jobs have nodes for themselves (SINGLEJOB, SINGLETASK).
    :param one_task: whether a node takes one task and no more (SINGLETASK).
    """
    spec = job.spec
    per_task = max(1, spec.cpus_per_task)
    tasks = max(1, -(-spec.cpus // per_task))
    most = 1 if one_task else spec.tasks_per_node
    nodes = max(1, job.size, job.required.bit_count())
    if nodes > 1:
        spread = -(-tasks // nodes)
        most = spread if most is None else min(most, spread)
    return Request(
        tasks=tasks,
        per_task=per_task,
        nodes=nodes,
        max_nodes=spec.max_nodes,
        most_per_node=most,
        memory_per_task=(spec.memory_mb_per_cpu or 0) * per_task,
        memory_per_node=spec.memory_mb_per_node or 0,
        whole=alone or spec.exclusive is Exclusive.NODE,
        required=job.required,
    )


def within(room: Sequence[tuple[int, int]], tasks: int, most: int) -> list[tuple[int, int]]:
    """Choose at most `most` nodes that take `tasks` together, the first ones of `room` where that is possible.

    :param room: nodes in the order of preference, each with the tasks that fit on it.
    :returns: nodes with the tasks on each; the widest ones, which take fewer than `tasks`, if it is impossible.
    """
    widest = sorted((fits for _, fits in room), reverse=True)
    if sum(widest[:most]) < tasks:
        return sorted(room, key=lambda each: -each[1])[:most]
    chosen: list[tuple[int, int]] = []
    rest = list(room)
    while tasks > 0:
        for at, (index, fits) in enumerate(rest):
            others = sorted((each for place, (_, each) in enumerate(rest) if place != at), reverse=True)
            use = min(fits, tasks)
            if tasks - use <= sum(others[: most - len(chosen) - 1]):
                chosen.append((index, use))
                tasks -= use
                del rest[at]
                break
    return chosen

"""Try to place one job as if some jobs were gone."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import (
    NOTHING,
    Allocation,
    Blocked,
    ClusterView,
    Cover,
    Job,
    JobState,
    Placement,
    PreemptMode,
)
from makeway_moab_qos.tasks.books import cores_of
from makeway_moab_qos.tasks.nodes import TaskNodes
from makeway_moab_qos.tasks.promises import Kept, Promises
from makeway_moab_qos.tasks.request import within
from makeway_moab_qos.tasks.suspended import kept_when_suspended

_Taken = list[tuple[int, int]]
"""Node index and tasks on it."""


class TaskAttempt:
    """One job against the books. See `makeway.model.Attempt`."""

    def __init__(
        self,
        selector: TaskNodes,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        promises: Promises | None = None,
    ) -> None:
        """Begin an attempt.

        :param promises: what is kept for jobs that stand before `job`; None: nothing is.
        """
        self.job = job
        self._selector = selector
        self._nodes = nodes
        self._view = view
        self._request = selector.request(job)
        self._made = promises
        self._keeps_clear = True
        """Whether what is kept for others is out of reach."""
        self._cores: dict[int, CoreBits] = {}
        """Node -> cores that those taken out would give back."""
        self._memory: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        """Node -> running jobs taken out."""
        self._licenses: dict[str, int] = {}
        self._removed: set[str] = set()
        self._static = selector.static(job, nodes)

    @functools.cached_property
    def _kept_for_others(self) -> Kept | None:
        return None if self._made is None else self._made.before(self.job, self._view)

    @property
    def _promises(self) -> Kept | None:
        """What is left beside the promises that bind this job; None: none does."""
        return self._kept_for_others if self._keeps_clear else None

    def fresh(self) -> TaskAttempt:
        """Return an attempt for the same job with nothing removed."""
        return TaskAttempt(self._selector, self.job, self._nodes, self._view, self._made)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Return None: processors are counted, not nodes."""
        del jobs, modes
        return None

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take `job` out: all that it holds, or for SUSPEND its cores alone."""
        held = job.allocation
        if held is None or job.id in self._removed or mode is PreemptMode.OFF:
            return
        self._removed.add(job.id)
        books = self._selector.books
        running = job.state is JobState.RUNNING
        kept = kept_when_suspended(job, self._selector.settings)
        if mode.frees_all:
            frees_cores, frees_memory = running or kept.cores, running or kept.memory
        else:
            frees_cores, frees_memory = running and not kept.cores, running and not kept.memory
        for at, index in enumerate(held.node_indices):
            if frees_cores:
                bits = cores_of(held, at, books.cores[index])
                self._cores[index] = self._cores.get(index, 0) | bits
                self._gone[index] = self._gone.get(index, 0) + 1
            if frees_memory and held.memory_mb is not None:
                self._memory[index] = self._memory.get(index, 0) + held.memory_mb[at]
        if mode.frees_all:
            for name, count in held.licenses.items():
                self._licenses[name] = self._licenses.get(name, 0) + count

    # ------------------------------------------------------------------------------ probe
    def probe(self) -> Placement | Blocked:
        """Place the job as things stand, or as they would be without those removed."""
        short = self._licence_short()
        if short is not None:
            return short
        request = self._request
        taken, tasks = self._take()
        if tasks < request.tasks or not self._enough_nodes(taken):
            blocked = self._blocked(taken, tasks)
            return self._until_any(blocked) if self._in_a_set() else blocked
        return Placement(allocation=self._allocation(taken), why=self._why())

    def _until_any(self, blocked: Blocked) -> Blocked:
        """Say that one set of nodes is to have room, and when any nodes will do."""
        until = self._selector.set_until(self.job)
        policy = self._selector.settings.node_set_policy
        return attrs.evolve(
            blocked,
            detail=f"{blocked.detail} in one set of nodes (NODESETPOLICY {policy})",
            ask_again_at=until if until < math.inf else None,
        )

    def _why(self) -> str:
        return "nodes of candidates" if self._removed else "idle processors"

    def _take(self) -> tuple[_Taken, int]:
        """Fill one set of nodes after the other until all tasks sit in one; any nodes, where sets are optional."""
        if not self._selector.sets:
            return self._fill()
        nodes = self._static
        most: tuple[_Taken, int] = [], 0
        try:
            for each in self._selector.sets_in_turn():
                self._static = nodes & each
                found = self._fill()
                if found[1] >= self._request.tasks and self._enough_nodes(found[0]):
                    return found
                most = max(most, found, key=lambda pair: pair[1])
        finally:
            self._static = nodes
        return most if self._in_a_set() else self._fill()

    def _in_a_set(self) -> bool:
        """Whether the job may start in a set of nodes only."""
        return bool(self._selector.sets) and self._view.now < self._selector.set_until(self.job)

    def _fill(self) -> tuple[_Taken, int]:
        """Fill nodes in order until all tasks sit."""
        request = self._request
        room = self._room()
        if room is not None and room < request.tasks:
            return [], room
        left = request.tasks
        taken: _Taken = []
        for index in self._in_order():
            fits = self.capacity(index)
            if request.most_per_node is not None:
                fits = min(fits, request.most_per_node)
            if fits <= 0:
                if request.required >> index & 1:
                    return taken, request.tasks - left
                continue
            to_come = min(request.nodes, request.tasks) - len(taken) - 1
            use = min(fits, left - max(to_come, 0))
            taken.append((index, use))
            left -= use
            if left == 0 and not self._required_left(taken):
                break
            if request.max_nodes is not None and len(taken) >= request.max_nodes:
                break
        if left and request.max_nodes is not None and not request.required:
            taken = self._on_few(request.max_nodes)
            left = request.tasks - sum(use for _, use in taken)
        return taken, request.tasks - left

    def _on_few(self, most: int) -> _Taken:
        """Fill not the first nodes in order, but those on so few of which all tasks sit, if there are any."""
        per_node = self._request.most_per_node
        room = []
        for index in self._in_order():
            fits = self.capacity(index)
            fits = fits if per_node is None else min(fits, per_node)
            if fits > 0:
                room.append((index, fits))
        return within(room, self._request.tasks, most)

    def _room(self) -> int | None:
        """Return how many tasks there is room for, without looking at each node; None: it takes a look."""
        request, selector = self._request, self._selector
        if (
            self._cores
            or request.required
            or request.whole
            or request.wants_memory
            or not selector.counts_alone
            or selector.booked
        ):
            return None
        books, per_task, most = selector.books, request.per_task, request.most_per_node
        found = books.room(self._static, per_task, most)
        having = (self._static & books.with_cores(per_task)).bit_count()
        if found >= request.tasks and self._promises is not None:
            for index in self._promises.nodes:
                free = books.free(index) if self._static >> index & 1 else 0
                if free >= per_task:
                    fits, fewer = free // per_task, min(free, self._promises.left(index, ())) // per_task
                    found -= min(fits, most) - min(fewer, most) if most is not None else fits - fewer
                    having -= not fewer
        limited = request.max_nodes is not None and having > request.max_nodes
        return None if limited else found

    def _required_left(self, taken: _Taken) -> bool:
        required = self._request.required
        return bool(required) and bool(required & ~bitmap.of([index for index, _ in taken]))

    def _enough_nodes(self, taken: _Taken) -> bool:
        return len(taken) >= min(self._request.nodes, self._request.tasks) and not self._required_left(taken)

    def _in_order(self) -> Iterator[int]:
        """Yield the nodes that could take a task, required ones first, then by the allocation policy."""
        selector, request = self._selector, self._request
        usable = self._static
        if not self._cores:
            usable &= selector.books.with_cores(selector.cores_of_task(request))
        if request.required:
            yield from bitmap.indices(usable & request.required)
            usable &= ~request.required
        yield from selector.ordered(usable)

    def capacity(self, index: int) -> int:
        """Return how many tasks fit on a node."""
        books, request = self._selector.books, self._request
        free = books.free(index) + (books.busy[index] & self._cores.get(index, 0)).bit_count()
        if self._promises is not None:
            free = min(free, self._promises.left(index, self._removed if index in self._gone else ()))
        if self._selector.booked:
            free -= self._selector.booked_cores(index, self._view)
        threads = books.threads[index]
        if request.whole:
            if books.jobs[index] - self._gone.get(index, 0) > 0 or free < books.cores[index]:
                return 0
            free = books.cores[index]
        elif not self._selector.shares(index, self.job, self._view, self._removed):
            return 0
        fits = free * threads // request.per_task
        if request.wants_memory and fits > 0:
            room = books.capacity[index] - books.memory[index] + self._memory.get(index, 0)
            room -= request.memory_per_node
            if room < 0:
                return 0
            if request.memory_per_task:
                fits = min(fits, room // request.memory_per_task)
        return fits

    def _blocked(self, taken: _Taken, tasks: int) -> Blocked:
        request = self._request
        if not self._removed:
            impossible = self._selector.possible(self.job, self._view)
            if impossible is not None:
                return impossible
        if self._only_memory():
            return Blocked(
                resource="memory",
                wanted=request.tasks,
                available=tasks,
                detail=f"{request.tasks} tasks wanted, memory for {tasks}",
            )
        plain = (
            request.per_task == 1
            and not (request.wants_memory or request.whole)
            and (request.nodes == 1 or not request.required)
        )
        return Blocked(
            resource="processors" if plain and not self._removed else "tasks",
            wanted=request.tasks,
            available=tasks,
            detail=f"{request.tasks} tasks of {request.per_task} processors wanted, room for {tasks}{self._kept()}",
        )

    def _kept(self) -> str:
        """Say whose reservations are all that is in the way; empty: they are not."""
        if self._removed:
            return ""
        self._keeps_clear = False
        try:
            has_room = self._take()[1] >= self._request.tasks
        finally:
            self._keeps_clear = True
        kept = self._promises if has_room else None
        return "" if kept is None else f"; the rest is reserved for {', '.join(kept.jobs)}"

    def _only_memory(self) -> bool:
        """Whether there would be room if memory did not count."""
        request, books = self._request, self._selector.books
        if not request.wants_memory:
            return False
        given_back = sum(
            (books.busy[index] & cores).bit_count()
            for index, cores in self._cores.items()
            if self._static >> index & 1
        )
        # An upper bound: what lies on one node might not make a whole task.
        most = (books.room(self._static, 1, None) + given_back) * self._selector.most_threads
        if most < request.processors:
            return False
        free = sum(
            (books.free(index) + (books.busy[index] & self._cores.get(index, 0)).bit_count())
            * books.threads[index]
            // request.per_task
            for index in bitmap.indices(self._static)
        )
        return free >= request.tasks

    def _licence_short(self) -> Blocked | None:
        wanted = self.job.spec.licenses
        if not wanted:
            return None
        free = self._view.licenses_free
        for name, count in wanted.items():
            have = free.get(name, 0) + self._licenses.get(name, 0)
            if have < count:
                detail = f"{count} of licence {name} wanted, {have} free"
                return Blocked(
                    reason="Licenses", resource="licences", wanted=count, available=have, detail=detail
                )
        return None

    # -------------------------------------------------------------------------- placement
    def _allocation(self, taken: _Taken) -> Allocation:
        selector, request, books = self._selector, self._request, self._selector.books
        taken = sorted(taken)
        indices = tuple(index for index, _ in taken)
        cores, cpus, memory = [], [], []
        for index, tasks in taken:
            threads = books.threads[index]
            if request.whole:
                bits = bitmap.full(books.cores[index])
                count = books.cores[index] * threads
            else:
                count = tasks * request.per_task
                bits = self._pick(index, -(-count // threads))
            cores.append(bits)
            cpus.append(count)
            memory.append(request.memory(tasks))
        return Allocation(
            nodes=bitmap.of(list(indices)),
            node_indices=indices,
            cpus=tuple(cpus),
            cores=tuple(cores),
            memory_mb=tuple(memory) if request.wants_memory else None,
            licenses=dict(self.job.spec.licenses) if self.job.spec.licenses else NOTHING,
            shared=not (request.whole or selector.alone),
        )

    def _pick(self, index: int, count: int) -> CoreBits:
        """Return free cores of a node, those of suspended jobs last."""
        books = self._selector.books
        free = bitmap.full(books.cores[index]) & ~(books.busy[index] & ~self._cores.get(index, 0))
        first = bitmap.first_n(free & ~books.parked[index], count)
        return first | bitmap.first_n(free & books.parked[index], count - first.bit_count())

"""Describe a blocked attempt as "free so many nodes" where it is just that (`makeway.model.Cover`).

It is, if any so many usable nodes will do, whichever they are, and if for each node it is settled
what has to leave it. What has to leave is asked of the node's books as a probe would: the candidates
without whose going the node stays unusable even if all others go. If the node is usable once these
are gone, there is no other way to free it; if not, one may choose among the others, and the
problem is no mere count of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Allocation, Cover, Job, PreemptMode, SuspendedBy
from makeway_select_linear.asked import Asked
from makeway_select_linear.nodes import LinearNodes
from makeway_select_linear.request import Request, memory_need

_ANY_NUMBER = 1 << 30
_Holders = Mapping[int, tuple[int, ...]]


def cover_of(attempt: Asked, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
    """Return the cover of `attempt`; None where shapes matter, or what leaves a node is open."""
    selector, request = attempt.selector, attempt.request
    if selector.books.forgotten:
        return None
    choices = selector.alternatives(attempt.job)
    if request.contiguous or request.required or len(choices) > 1 or choices[0].counts:
        return None
    nodes = selector._static(attempt.job, attempt.nodes & choices[0].nodes, request)
    wanted = _nodes_wanted(selector, request, nodes)
    if wanted is None:
        return None
    free = selector.usable(attempt.job, request, nodes, request.limit - 1, _ANY_NUMBER)
    holders = _holders(nodes & ~free, jobs, modes)
    blockers = _Desk(attempt, jobs, modes).which_must_leave(holders)
    if blockers is None:
        return None
    return Cover(wanted=wanted, free=free.bit_count(), blockers=blockers)


def _nodes_wanted(selector: LinearNodes, request: Request, nodes: NodeBits) -> int | None:
    """Return how many of `nodes` are enough, whichever they are; None if it depends on which."""
    smallest = largest = request.counted_cpus or selector.uniform
    if smallest is None or largest is None:
        sizes = [selector.cpus[index] for index in bitmap.indices(nodes)]
        smallest, largest = min(sizes, default=1), max(sizes, default=1)
    wanted = max(request.min_nodes, -(-request.min_cpus // smallest))
    if smallest < largest and wanted > request.min_nodes:
        return None
    return wanted if request.max_nodes is None or wanted <= request.max_nodes else None


def _holders(busy: NodeBits, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> _Holders:
    """Return the candidates on each node of `busy`; what was suspended by a person cannot go."""
    inside = set(bitmap.indices(busy))
    holders: dict[int, tuple[int, ...]] = {}
    for at, (job, mode) in enumerate(zip(jobs, modes, strict=True)):
        if job.allocation is None or mode is PreemptMode.OFF or job.suspended_by is SuspendedBy.ADMIN:
            continue
        alone = (at,)
        for index in job.allocation.node_indices:
            if index in inside:
                others = holders.get(index)
                holders[index] = alone if others is None else others + alone
    return holders


class _Desk:
    """The books of single nodes, for one attempt."""

    def __init__(self, attempt: Asked, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> None:
        selector = attempt.selector
        self._jobs, self._modes = jobs, modes
        self._books = selector.books
        self._nodes = selector.cluster.nodes
        self._request = attempt.request
        self._gres = attempt.job.spec.gres
        self._counts_only = not self._books.track_memory and not self._gres
        self._suspend_frees_memory = attempt.view.rule("linear_suspend_frees_memory")

    @cached_property
    def _counts(self) -> tuple[list[int], list[int]]:
        return self._books.counts()

    def which_must_leave(self, holders: _Holders) -> dict[int, tuple[int, ...]] | None:
        """Return node -> what has to leave it; None if that is open. Nodes that stay held are left
        out."""
        found: dict[int, tuple[int, ...]] = {}
        hopeless, held_alone = self._by_one()
        for node, here in holders.items():
            if len(here) == 1 and self._counts_only:
                if node not in hopeless and not (node in held_alone and self._allocation(here[0]).shared):
                    found[node] = here
                continue
            needed = self._needed(node, here)
            if needed is None:
                return None
            if needed:
                found[node] = needed
        return found

    def _by_one(self) -> tuple[set[int], set[int]]:
        """Return the nodes that no single going frees, and those that a job holds alone; by
        counts."""
        books = self._books
        stay = books.running.above(self._request.limit) | books.exclusive.above(1)
        sharers = any(job.allocation is not None and job.allocation.shared for job in self._jobs)
        return set(bitmap.indices(stay)), set(bitmap.indices(books.exclusive.over[0] if sharers else 0))

    def _needed(self, node: int, here: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return whose going frees `node`; empty if nothing does, None if one may choose."""
        if not self._usable(node, here):
            return ()
        if len(here) == 1:
            return here
        needed = tuple(at for at in here if not self._usable(node, [o for o in here if o != at]))
        return needed if len(needed) == len(here) or self._usable(node, needed) else None

    def _usable(self, node: int, gone: Sequence[int]) -> bool:
        """Whether the job could use `node` if those of `gone`, which are all on it, had left."""
        running, exclusive = self._counts
        if running[node] - len(gone) >= self._request.limit:
            return False
        if exclusive[node] > sum(not self._allocation(at).shared for at in gone):
            return False
        return self._counts_only or (self._memory_fits(node, gone) and self._gres_fits(node, gone))

    def _memory_fits(self, node: int, gone: Iterable[int]) -> bool:
        if not self._books.track_memory:
            return True
        here = self._nodes[node]
        held = self._books.memory[node] - sum(self._memory_freed(at, node) for at in gone)
        return max(0, held) + memory_need(self._request, here) <= here.usable_memory_mb

    def _memory_freed(self, at: int, node: int) -> int:
        allocation = self._allocation(at)
        if allocation.memory_mb is None:
            return 0
        if self._modes[at].frees_all:
            return allocation.memory_mb[allocation.node_indices.index(node)]
        return self._nodes[node].memory_mb if self._suspend_frees_memory else 0

    def _gres_fits(self, node: int, gone: Sequence[int]) -> bool:
        for name, count in self._gres.items():
            taken = self._books.gres.get(name)
            if taken is not None:
                freed = sum(self._gres_freed(at, node, name) for at in gone)
                if self._nodes[node].gres.get(name, 0) - taken[node] + freed < count:
                    return False
        return True

    def _gres_freed(self, at: int, node: int, name: str) -> int:
        allocation = self._allocation(at)
        amounts = allocation.gres.get(name)
        if amounts is None or not self._modes[at].frees_all:
            return 0
        return amounts[allocation.node_indices.index(node)]

    def _allocation(self, at: int) -> Allocation:
        allocation = self._jobs[at].allocation
        assert allocation is not None
        return allocation

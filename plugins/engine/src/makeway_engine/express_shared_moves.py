"""Start and end plain jobs that share nodes with few calls, while nobody is leaving one.

`Placer`, `Moves`, `Ledger`, `Queue` and `Deadlines` say what a start and an end come to.
"""

from __future__ import annotations

from typing import cast

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Blocked, Job, Placement, PromptSelector
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.parts import Parts

_HOOK = "makeway_selector"
_MOST = 1 << 14
"""So many placements are remembered."""


class SharedMoves(ExpressMoves):
    """Starts and ends of plain jobs in one run, where several may lie on a node."""

    shares = True

    def __init__(self, parts: Parts) -> None:
        self._begin(parts)
        self._place_now = cast(PromptSelector, parts.selector).place_now
        self._checked: dict[int, Placement] = {}
        """Placements that were looked at, by identity."""

    def look_around(self) -> bool:
        """Say that nothing in the books of nodes stands in the way of the short way."""
        return True

    # ----------------------------------------------------------------------------- start
    def look(self, job: Job, nodes: NodeBits) -> Placement | Blocked:
        """Return where a job starts on some of these nodes of its partition, or why it does not.

        :raises PolicyError: the selector answers what it may not answer.
        """
        ledger, placer = self._ledger, self._placer
        nodes &= ledger.up & ~self._exclusive.any
        if ledger.completing:
            nodes &= ~ledger.completing
        try:
            found = self._place_now(job, nodes, ledger)
        except Exception as error:
            raise placer.policies.blame(_HOOK, job, error) from error
        if type(found) is not Placement:
            return found if isinstance(found, Blocked) else placer.prober.checked(job, found)
        allocation = found.allocation
        if type(allocation) is not Allocation:
            return placer.prober.checked(job, found)
        held = allocation.nodes
        inside = held & nodes == held
        known = self._checked.get(id(found)) is found or _is_on_one_node(allocation)
        if not (inside and known) or len(allocation.node_indices) < job.size:
            placer.prober.check(job, found, _HOOK)
            if len(self._checked) >= _MOST:
                self._checked.clear()
            self._checked[id(found)] = found
        if held & self._held.any and not (inside and allocation.shared):
            placer.action.check_overlap(job, allocation, _HOOK)
        return found

    def start_waiting(self, job: Job, found: Placement) -> None:
        """Start a plain job that stands in the queue."""
        self._queue.remove(job)
        self.start(job, found, self._ledger.now)

    def _occupy(self, allocation: Allocation) -> None:
        self._held.add(allocation.nodes)
        if not allocation.shared:
            self._exclusive.add(allocation.nodes)

    def _vacate(self, allocation: Allocation) -> None:
        self._held.remove(allocation.nodes)
        if not allocation.shared:
            self._exclusive.remove(allocation.nodes)


def _is_on_one_node(allocation: Allocation) -> bool:
    """Whether an allocation is sound by itself, and of one node; False: it takes more to say."""
    cpus, cores, memory = allocation.cpus, allocation.cores, allocation.memory_mb
    return (
        len(allocation.node_indices) == 1
        and allocation.nodes == 1 << allocation.node_indices[0]
        and (cpus is None or len(cpus) == 1)
        and (cores is None or len(cores) == 1)
        and (memory is None or len(memory) == 1)
    )


__all__ = ["SharedMoves"]

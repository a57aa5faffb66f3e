"""Watch the memory of the machine where it cannot be limited, and act before the kernel does (local-world 4)."""

from __future__ import annotations

from makeway_local_world.processes.case import Case
from makeway_local_world.processes.holding import Holding
from makeway_local_world.processes.machine import memory_available
from makeway_local_world.processes.verbs import Verbs

EVERY = 1.0
"""Seconds between two looks while jobs are there."""
_PATIENCE = 5
"""Looks after a job was sent back in which no other is: its memory takes time to come back."""


class MemoryWatch:
    """Ends jobs that have more memory than they were given, where the kernel does not.

    Sends the youngest job of the lowest tier back to the queue once free memory falls below a floor.
    """

    def __init__(self, hand: Holding, verbs: Verbs) -> None:
        self._hand, self._verbs = hand, verbs
        self._looking = False
        self._patience = 0

    def begin(self) -> None:
        """Look from now on, as long as jobs are there."""
        settings = self._hand.site.settings
        if not self._looking and (settings.memory_floor or settings.memory_factor):
            self._looking = True
            self._hand.later(EVERY, self._look)

    def _look(self) -> None:
        self._looking = False
        if not self._hand.cases:
            return
        self.begin()
        self._end_those_over()
        if self._patience:
            self._patience -= 1
            return
        free, floor = memory_available(), self._hand.site.settings.memory_floor
        if free < floor:
            self._make_room(free)

    def _end_those_over(self) -> None:
        """End each job that has more than it was given; what processes share is looked at only where it matters."""
        factor = self._hand.site.settings.memory_factor
        for case in list(self._hand.cases.values()):
            limit = int(case.memory_mb * factor)
            watched = limit and case.state == "running" and not (case.killed or case.gives_way)
            if watched and case.resident_mb() > limit and (held := case.own_memory_mb()) > limit:
                self._verbs.out_of_memory(case, f"it had {held} MB; allowed: {limit} MB")

    def _make_room(self, free: int) -> None:
        case = victim_of([case for case in self._hand.cases.values() if self._may_go(case)])
        if case is not None:
            self._patience = _PATIENCE
            self._verbs.send_back(
                case, f"memory ran short: {free} MB were free; it had {case.resident_mb()} MB"
            )

    def _may_go(self, case: Case) -> bool:
        idle = self._hand.orders.under_way(case.key[0]) is None
        return (
            case.requeueable and idle and not case.killed and not case.gives_way and case.state != "starting"
        )


def victim_of(cases: list[Case]) -> Case | None:
    """Return the youngest of those in the lowest tier; None: there is none."""
    return min(cases, key=lambda case: (case.tier, -case.monotonic, case.key), default=None)

"""Keep actions in their order: those about one job one after another, and behind those that they rest on."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from makeway.worlds.events import Action

_KEPT = 100_000
"""Serials that are remembered, so that what is asked for again is not done again."""


class Orders:
    """Actions that are waiting or under way."""

    def __init__(self, begin: Callable[[Action], None], refuse: Callable[[Action, str], None]) -> None:
        """Begin with none.

        :param begin: performs an action, and calls `settle` once its outcome is known, then or later.
        :param refuse: hears of an action that will not be performed, since one failed that it rests on.
        """
        self._begin = begin
        self._refuse = refuse
        self._queues: dict[str, deque[Action]] = {}
        self._busy: set[str] = set()
        self._open: dict[int, Action] = {}
        self._known: OrderedDict[int, None] = OrderedDict()
        self._failed: OrderedDict[int, None] = OrderedDict()
        self._waiting: dict[int, list[str]] = {}
        self._unnumbered = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, action: Action) -> None:
        """Take an action in, and begin it if nothing stands before it; one that is known changes nothing."""
        if action.serial <= 0:
            self._unnumbered -= 1
            action = action._replace(serial=self._unnumbered)
        if action.serial in self._known:
            return
        _remember(self._known, action.serial)
        self._open[action.serial] = action
        self._queues.setdefault(action.job.id, deque()).append(action)
        self._advance(action.job.id)

    def settle(self, serial: int, *, ok: bool) -> None:
        """An action was performed, or has failed; go on with those that waited for it."""
        action = self._open.pop(serial, None)
        if action is None:
            return
        if not ok:
            _remember(self._failed, serial)
        job_id = action.job.id
        queue = self._queues[job_id]
        queue.remove(action)
        self._busy.discard(job_id)
        if not queue:
            del self._queues[job_id]
        for waiting in dict.fromkeys([*self._waiting.pop(serial, ()), job_id]):
            self._advance(waiting)

    def under_way(self, job_id: str) -> Action | None:
        """Return the action about a job that has been begun and is not settled; None: there is none."""
        return self._queues[job_id][0] if job_id in self._busy else None

    def _advance(self, job_id: str) -> None:
        queue = self._queues.get(job_id)
        if not queue or job_id in self._busy:
            return
        action = queue[0]
        if any(serial in self._failed for serial in action.after):
            self._busy.add(job_id)
            self._refuse(action, "it rests on an action that failed")
            self.settle(action.serial, ok=False)
            return
        for serial in action.after:
            if serial in self._open:
                self._waiting.setdefault(serial, []).append(job_id)
                return
        self._busy.add(job_id)
        self._begin(action)


def _remember(kept: OrderedDict[int, None], serial: int) -> None:
    kept[serial] = None
    while len(kept) > _KEPT:
        kept.popitem(last=False)

"""Know for whom there is room by what nodes have gained since a glance saw room for nobody.

A selector that names those who have room by now (`makeway.model.NamingSelector`) spares a glance at all who wait: only
newcomers are glanced at, who began to wait for room since the last look. `InVain` says what that is worth where nothing
was gained, and `Greedy` what a pass comes to without either; `tests/test_gains.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import cast

from makeway.model import Job, NamingSelector, Selector
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue
from makeway_engine.schedulers.futile import NO_ROOM
from makeway_engine.schedulers.in_vain import InVain


class Gains(InVain):
    """Who waits in one run, as `InVain` has it, and who of them has room by now."""

    def __init__(self, queue: Queue, selector: Selector, ledger: Ledger) -> None:
        super().__init__(queue, selector, ledger)
        self._with_room = cast(NamingSelector, selector).with_room
        self._newcomers: dict[Hashable, None] = {}
        """What a glance looks at in those who began to wait for room since the last look."""
        self._glanced_at: Collection[Hashable] = ()
        """The same of those who were newcomers in this pass."""

    def nobody(self, *, arrivals: bool) -> bool:
        """Take note that a glance has just seen room for nobody; say whether it is of use."""
        known = self._complete
        found = super().nobody(arrivals=arrivals)
        if found and not known:  # whoever was tried since that glance was not listened to
            self._newcomers = dict.fromkeys(self._keys)
        return found

    def take_newcomers(self) -> Collection[Hashable]:
        """Return what a glance looks at in the newcomers; whoever asks looks at them now."""
        newcomers = self._newcomers
        self._glanced_at = newcomers
        if newcomers:
            self._newcomers = {}
        return newcomers

    def among_all(self) -> Sequence[Hashable] | None:
        """Return what a glance looks at in those for whom there is room by now; None: a glance has to tell.

        Of newcomers it says nothing.
        """
        ledger = self._ledger
        if self._since is None or ledger.completing or ledger.up != self._up:
            return None
        found = self._with_room(self._since, tuple(self._keys), self._up)
        if found is None:
            self._since = None
        elif not found:
            self._since = self._selector.moment()
        return found

    def still(self, keys: Sequence[Hashable]) -> Sequence[Hashable] | None:
        """Return those of `keys` for whose jobs there still is room, as there was in this pass; None: as above."""
        if self._since is None or self._glanced_at or self._ledger.completing:
            return None
        return self._with_room(self._since, keys, self._up)

    # ------------------------------------------------------------------------ listening to the queue
    def came(self, entry: Entry) -> None:
        """An entry was added."""
        super().came(entry)
        self._begins_to_wait(entry[1])

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before."""
        self._begins_to_wait(job)

    def _begins_to_wait(self, job: Job) -> None:
        if job.reason == NO_ROOM:
            key = self._key_of.get(job.index)
            if key is not None:
                self._newcomers[key] = None


__all__ = ["Gains"]

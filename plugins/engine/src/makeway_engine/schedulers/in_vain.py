"""Remember that a glance saw room for nobody in the queue, until a node gets what one of them wants.

Whenever something is given back all who wait are looked at again, mostly in vain. A selector that says what its nodes
have gained (`makeway.model.GainingSelector`) is asked about these alone. `Easy` says what a pass comes to without this,
and `tests/test_settled.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from makeway.bitmap import NodeBits
from makeway.model import GainingSelector, Job, Selector
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue


class InVain:
    """Who waits in one run, by what a glance looks at, and since when it has seen room for none of them."""

    def __init__(self, queue: Queue, selector: Selector, ledger: Ledger) -> None:
        self._queue = queue
        self._ledger = ledger
        self._selector = cast(GainingSelector, selector)
        self._keys: dict[Hashable, int] = {}
        """Those of all who wait, with how many they are."""
        self._key_of: dict[int, Hashable] = {}
        """The same by place in the job table."""
        self._complete = False
        self._since: Hashable | None = None
        """The moment from which on there has been no room for any of them; None: there may be some."""
        self._up: NodeBits = 0
        """Nodes in service then."""
        self._news = False
        """Whether somebody has come since, at whom nobody has looked yet."""
        self._listens = False
        """Whether this was ever said of anybody: until then nobody need tell of anything."""

    def holds(self) -> bool:
        """Whether there is still room for nobody in the queue."""
        ledger = self._ledger
        if self._since is None or self._news or ledger.completing or ledger.up != self._up:
            return False
        now = self._selector.moment()
        if self._selector.gained(self._since, tuple(self._keys), self._up):
            self._since = None
            return False
        self._since = now
        return True

    def nobody(self, *, arrivals: bool) -> bool:
        """Take note that a glance has just seen room for nobody; say whether it is of use.

        :param arrivals: it was cast at those alone who came since this was last said.
        """
        ledger = self._ledger
        if ledger.completing or (arrivals and (self._since is None or ledger.up != self._up)):
            return False
        self._news = False
        if arrivals:
            return True
        if not self._listens:
            self._queue.listeners.join(self)
            self._listens = True
        if not self._complete and not self._count():
            self._since = None
            return False
        self._since, self._up = self._selector.moment(), ledger.up
        return True

    def forget(self) -> None:
        """Take note that there may be room for somebody."""
        self._since = None

    def _count(self) -> bool:
        """Learn who waits; say whether that can be told of all of them."""
        entries = self._queue.entries
        self._keys.clear()
        self._key_of.clear()
        if any(_is_odd(job) for _, job, _ in entries):
            return False
        self._complete = True
        for entry in entries:
            self._add(entry[1])
        return True

    def _add(self, job: Job) -> None:
        key = self._key_of[job.index] = self._selector.screen_key(job)
        self._keys[key] = self._keys.get(key, 0) + 1

    # ------------------------------------------------------------------------ listening to the queue
    def came(self, entry: Entry) -> None:
        """An entry was added."""
        self._news = True
        if self._complete:
            if _is_odd(entry[1]):
                self.reordered()
            else:
                self._add(entry[1])

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""
        key = self._key_of.pop(job.index, None) if self._complete else None
        if key is not None:
            count = self._keys[key] = self._keys[key] - 1
            if not count:
                del self._keys[key]

    def reordered(self) -> None:
        """All entries may stand elsewhere, or want something else."""
        self._complete, self._since = False, None


def _is_odd(job: Job) -> bool:
    """Whether a job may ask for something else from one look to the next, or is looked at otherwise."""
    return len(job.partitions) > 1 or job.spec.het_id is not None


__all__ = ["InVain"]

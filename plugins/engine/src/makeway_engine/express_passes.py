"""Make passes of EASY over a short queue of plain jobs, without an attempt for each look.

`Easy` says what a pass comes to. Its reservation counts here too, so that each pass may go either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from makeway.model import CountingSelector, Forecast, Job, JobState, Partition, Placement, Seconds
from makeway_engine.entries import Entry
from makeway_engine.express_gate import Gate
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.placing import Outcome, Question
from makeway_engine.schedulers.easy import Easy, Reserved

_PENDING = JobState.PENDING
_NO_ROOM = "Resources"
_BUSY = Outcome.BUSY


class ExpressPasses:
    """Passes of EASY over the queue of one run, while all who wait are plain and few."""

    def __init__(
        self,
        easy: Easy,
        moves: ExpressMoves,
        wanted_by: Callable[[Job], int | None],
        gate: Gate | None = None,
    ) -> None:
        """Be ready for the first pass.

        :param wanted_by: says how many nodes a job wants that waits; None: it is not plain.
        :param gate: says whom limits keep out; None: nobody.
        """
        self._gate = gate
        self._easy = easy
        self._moves = moves
        self._wanted_by = wanted_by
        attempts = easy.attempts
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._queue = attempts.queue
        self._placer = attempts.placer
        self._transitions = attempts.placer.transitions
        self._shapes = easy.shapes
        self._counts_ahead = cast(CountingSelector, easy.selector).counts_ahead
        self.stale = True
        """Whether others may stand in the queue than those who are known."""
        self.wanted: dict[int, int | None] = {}
        """How many nodes each of those who wait wants, by place in the job table."""
        self.odd: Job | None = None
        """One that is not plain; None: none is known to wait."""

    def run(self, now: Seconds) -> bool:
        """Make a pass; False: it has to go the plain way, and nothing was done yet."""
        queue = self._queue
        entries = queue.entries
        shapes = self._shapes
        if shapes is not None and (not shapes.stale or len(entries) >= shapes.many):
            return False
        if (self.stale or self.odd is not None or len(self.wanted) != len(entries)) and not self._look_anew(
            entries
        ):
            return False
        ledger, easy, attempts, moves = self._ledger, self._easy, self._attempts, self._moves
        ledger.searches = 0
        self._transitions.left_nodes = False
        again, attempts.again = attempts.again, False
        arrivals = queue.take_arrivals() if queue.arrivals else ()
        reserved = easy.reserved
        gate = self._gate
        if (
            reserved is not None
            and not again
            and reserved.freed == ledger.freed
            and reserved.holds(ledger)
            and (gate is None or easy.is_admitted(reserved))
        ):
            reserved.doubtful = False
            if not arrivals:
                return True
            _, first, place = reserved.entry
            if queue.key_of(first, place) < min(arrivals)[0]:
                self._follow(arrivals, reserved, now)
                return True
        easy.reserved = None
        at = 0
        while at < len(entries):
            head = entries[at]
            _, job, partition = head
            if gate is not None and (stopped := gate.stops(job, partition, now)) is not None:
                if stopped is not _BUSY:
                    if at < len(entries) and entries[at] is head:
                        at += 1  # the queue itself has lost the entry of a job that left it
                    continue
                found = None
            elif job.reason == _NO_ROOM and job.size > moves.idle.bit_count():
                found = None
            else:
                found = self._try(head, job, partition, now)
            if found is None:
                reserved = easy.reserved = Reserved(head, ledger)
                if len(entries) > at + 1:
                    self._follow(entries[at + 1 :], reserved, now)
                break
        if gate is not None:
            self._transitions.changed = False
        return True

    def _try(self, entry: Entry, job: Job, partition: Partition, now: Seconds) -> Placement | None:
        """Start a job that waits, or let it wait on; return where it started."""
        wanted = self.wanted[job.index]
        assert wanted is not None
        found = self._moves.find(job, partition, wanted)
        if found is not None:
            del self.wanted[job.index]
            self._moves.start(job, found, now, entry)
        elif self._placer.telling.notes:
            self._placer.try_start(Question(job, partition, self._ledger.all_nodes))
        else:
            self._ledger.wait_for(job, _NO_ROOM)
        return found

    def _follow(self, entries: Sequence[Entry], reserved: Reserved, now: Seconds) -> None:
        """Start those of `entries` that do not delay the reserved job."""
        moves = self._moves
        size = moves.idle.bit_count()
        fitting = [entry for entry in entries if entry[1].size <= size]
        if not fitting:
            return
        if not reserved.settled:
            self._settle(reserved, now)
        forecast = reserved.forecast
        eligible, at, spare = 0, now, 0
        if forecast is not None:
            if reserved.spare is None:
                self._easy.backfill(fitting, reserved)
                return
            eligible, at, spare = forecast.eligible, max(forecast.at, now), reserved.spare
        gate = self._gate
        for entry in fitting:
            _, job, partition = entry
            nodes = job.size
            if nodes > size:
                continue
            long = False
            if forecast is not None:
                limit = job.time_limit
                long = limit is None or now + limit > at
                if long and nodes > spare and not partition.nodes & ~eligible:
                    continue
            if gate is not None and gate.stops(job, partition, now) is not None:
                continue
            found = self._try(entry, job, partition, now)
            if found is not None:
                reserved.passed_by(self._ledger)
                size = moves.idle.bit_count()
                if long:
                    reserved.spare = spare = spare - (found.allocation.nodes & eligible).bit_count()

    def _settle(self, reserved: Reserved, now: Seconds) -> None:
        """Look ahead, now that somebody might be in the way: count the nodes that come free, end by end."""
        _, job, partition = reserved.entry
        wanted, ledger = self.wanted[job.index], self._ledger
        if wanted is None or not self._counts_ahead:
            self._easy.settle(reserved)
            return
        eligible = partition.nodes & ledger.up
        have, at = (eligible & self._moves.idle).bit_count(), now
        ends = iter(ledger.by_end)
        if have < wanted:
            everywhere = eligible == ledger.all_nodes
            for end, _, other in ends:
                held = other.allocation
                assert held is not None
                have += len(held.node_indices) if everywhere else (held.nodes & eligible).bit_count()
                if have >= wanted:
                    at = end  # a step in which it has passed goes the plain way
                    break
            else:
                reserved.settle(None)
                return
            for end, _, other in ends:
                if end > at:
                    break
                have += (other.allocation.nodes & eligible).bit_count()  # type: ignore[union-attr]
        reserved.settle(Forecast(at=at, nodes=0, eligible=eligible, spare=have - wanted))

    def arrive(self, job: Job, partition: Partition, wanted: int, now: Seconds) -> bool:
        """Let a job that comes behind others start at once, or wait behind them; False: make a pass for it.

        Nothing has changed since the last pass but that it came, so nobody else is tried.
        """
        easy, ledger, queue, shapes = self._easy, self._ledger, self._queue, self._shapes
        reserved = easy.reserved
        if (
            reserved is None
            or self.stale
            or self.odd is not None
            or self._attempts.again
            or queue.arrivals
            or self._placer.telling.notes
            or (self._gate is not None and reserved.doubtful)
            or (shapes is not None and (not shapes.stale or len(queue.entries) + 1 >= shapes.many))
            or not reserved.holds(ledger)
        ):
            return False
        key = queue.key_of(job, partition)
        if key < reserved.entry[0]:
            return False
        if self._gate is not None and self._gate.let_in_until(job) <= now:
            return False  # a limit may be its reason from now on
        nodes, moves = job.size, self._moves
        tried = False
        if nodes <= moves.idle.bit_count():
            if not reserved.settled:
                self._settle(reserved, now)
            forecast, spare = reserved.forecast, reserved.spare
            long = False
            if forecast is not None:
                if spare is None:
                    return False
                limit = job.time_limit
                long = limit is None or now + limit > max(forecast.at, now)
                tried = not long or nodes <= spare or bool(partition.nodes & ~forecast.eligible)
            else:
                tried = True
            found = moves.find(job, partition, wanted) if tried else None
            if found is not None:
                ledger.reasons += 1  # it waited for others, if not for long
                moves.start(job, found, now)
                reserved.passed_by(ledger)
                if long and spare is not None and forecast is not None:
                    reserved.spare = spare - (found.allocation.nodes & forecast.eligible).bit_count()
                ledger.searches = 0
                self._transitions.left_nodes = False
                return True
        ledger.searches = 0
        self._transitions.left_nodes = False
        reserved.doubtful = False
        moves.wait(job, (key, job, partition))
        self.wanted[job.index] = wanted
        if tried:
            ledger.wait_for(job, _NO_ROOM)
        return True

    def _look_anew(self, entries: Sequence[Entry]) -> bool:
        """Learn what those who wait want; say whether all of them are plain."""
        odd = self.odd
        if odd is not None and odd.state is _PENDING and odd.priority and odd.eligible_since is not None:
            return False
        self.odd = None
        known = self.wanted
        self.wanted = wanted = {}
        for _, job, _ in entries:
            index = job.index
            wanted[index] = known[index] if index in known else self._wanted_by(job)
            if wanted[index] is None:
                self.odd = job
        self.stale = self.odd is not None
        return not self.stale


__all__ = ["ExpressPasses"]

"""Take plain jobs the short way where priorities are worked out at leisure, and limits surely keep nobody out.

`Express` does so without priorities and limits. Here `Patience` says whether a pass is due, and what has to be known
for it. Where a limit is near, or all has to be done at its time, steps go the plain way.
`test_leisure.py` of makeway-slurm holds one way to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

from makeway.model import Job, Partition, Placement, Seconds
from makeway.worlds.events import Action, Event, Submitted
from makeway_engine.endings import Endings
from makeway_engine.entries import Entry
from makeway_engine.express import Express, comes_plainly, counts_nodes, is_simple
from makeway_engine.express_contest import ContestPasses
from makeway_engine.express_gate import LetIn
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.express_passes import ExpressPasses
from makeway_engine.ledger import put_field
from makeway_engine.parts import Parts
from makeway_engine.patience import Patience
from makeway_engine.rhythm import Rhythm
from makeway_engine.schedulers.contest import Contest
from makeway_engine.schedulers.easy import Easy, Reserved

_TINY = 1e-6


class LeisurelyExpress(Express):
    """The short way of one run in which priorities are worked out at leisure."""

    def __init__(
        self,
        parts: Parts,
        endings: Endings,
        rhythm: Rhythm,
        handle: Callable[[Event], None],
        patience: Patience,
        let_in_until: LetIn,
    ) -> None:
        """Be ready for the first step.

        :param let_in_until: says up to when limits surely let a job in.
        """
        super().__init__(parts, endings, rhythm, handle)
        self._patience = patience
        self._let_in_until = let_in_until
        self._limited = patience.is_odd
        self._policies = parts.policies
        self._own_passes: LeisurelyPasses | None = None
        if self._passes is not None:
            self._passes = self._own_passes = LeisurelyPasses(
                parts.schedulers.easy, self._moves, self._wanted_by, let_in_until
            )
        self._contest_passes: ContestPasses | None = None
        contest = patience.contest
        if contest is not None and self._passed is not None:
            self._contest_passes = ContestPasses(
                contest,
                parts.ledger,
                parts.transitions,
                self._moves,
                self._wanted_by,
                let_in_until,
                self._passed,
            )
            patience.can_go_by = self._can_go_by
        patience.make_pass = self._make_pass
        patience.room_for = self._room_for
        self._enforces = parts.config.scheduler.enforce_time_limits

    # -------------------------------------------------------------------------- stepping
    def step(self, now: Seconds, events: Sequence[Event]) -> list[Action] | None:
        """Make a step later than the last one; None: it has to go the plain way, and nothing was done yet."""
        by_end, endings, patience = self._by_end, self._endings, self._patience
        look = endings.look_at
        if (
            (by_end and by_end[0][0] <= now)
            or (look is not None and look <= now + _TINY)
            or not patience.takes(now, events)
            or not (self.calm or self._look_around())
        ):
            self.calm = False
            return None
        transitions, ledger = self._transitions, self._ledger
        ledger.now = now
        transitions.actions = []
        last = len(events) - 1
        for at, event in enumerate(events):
            if type(event) is Submitted:
                if not self.calm:
                    self._submit_plainly(event)
                elif not self._submit(event, now, last=at == last):
                    transitions.changed = True
            elif self.calm and self._moves.finish(event, now):  # type: ignore[arg-type]
                transitions.changed = True
            else:
                self._finish_plainly(event)  # type: ignore[arg-type]
        if not self.calm:
            patience.note(events)
        patience.run(now, events)
        if endings.looks and (transitions.actions or not self.calm or endings.calm_until <= now):
            endings.look_ahead(now)
            self._rhythm.look_at = endings.look_at
        if ledger.gone:
            self._reports.ended(ledger.gone)
        return transitions.actions

    def wake(self, now: Seconds) -> Seconds | None:
        """Return when something is due while all is calm, if nothing happens; None: look closer."""
        by_end, look, patience = self._by_end, self._endings.look_at, self._patience
        found = math.inf
        if self._enforces and by_end:
            found = by_end[0][0]
        if look is not None and look < found:
            found = look
        if self._queue.entries:
            if patience.wake < found:
                found = patience.wake
            due = self._priorities.next_at
            if due is not None and due < found:
                found = due
        return found if found > now else None

    def _room_for(self, entries: Sequence[Entry]) -> object:
        """Say for whom there may be room."""
        if not self.calm:
            return self._patience.screened(entries)
        idle = self._moves.idle.bit_count()
        for entry in entries:  # noqa: SIM110  # a generator takes twice as long
            if entry[1].size <= idle:
                return True
        return False

    def _can_go_by(self, contest: Contest) -> bool:
        """Whether passes go by a contest: only those of a strict order do so the plain way."""
        return self.calm or contest.strict

    def _make_pass(self, now: Seconds) -> None:
        """Make a pass if one is due."""
        by_contest = self._contest_passes
        if self.calm and by_contest is not None and by_contest.contest.is_on:
            if by_contest.run(now):
                self._transitions.changed = False
                return
            if not by_contest.contest.strict:
                by_contest.contest.is_sure = False
                return
        passes, transitions = self._own_passes, self._transitions
        if self.calm and not transitions.changed:
            return
        if self.calm and passes is not None and self._patience.let_in() > now and passes.run(now):
            transitions.changed = False
            if passes.went_plainly:
                self.calm = passes.went_plainly = False
            return
        self.calm = False
        self._rhythm.run(now)

    # ------------------------------------------------------------------------------ come
    def _submit(self, event: Submitted, now: Seconds, *, last: bool = True) -> bool:
        """Take a job in, and let it start or wait; False: a pass has still to be made."""
        spec, ledger, doors = event.spec, self._ledger, self._doors
        named = spec.partitions, spec.qos
        door = doors[named] if named in doors else self._find_door(spec)
        if door is None or spec.id in ledger.jobs or not comes_plainly(spec):
            self._submit_plainly(event)
            return False
        submission, partition = self._submission, door.partition
        draft = self._draft(spec, door.partitions, door.qos, door.limit, now)
        limit, size = draft.time_limit, draft.size
        least, most, longest = door.bounds or door.find_bounds(draft)
        if (
            not least <= size <= most
            or (longest is not None and limit is not None and limit > longest)
            or self._patience.is_odd(draft)
        ):
            self._submit_plainly(event)
            return False
        wanted = self._wants(draft)
        if wanted is None and not self._is_possible(draft):
            self._submit_plainly(event)
            return False
        submission.last_index += 1
        draft.__class__ = Job
        job: Job = draft
        ledger.jobs[job.id] = job
        moves, passes, queue = self._moves, self._passes, self._queue
        if moves.books.kept:
            moves.books.came(job)
        put_field(job, "priority", self._priorities.first(job))
        moves.record.entered(job, now)
        if submission.taken is not None and not submission.taken(job):
            queue.add(job, now)
            self.calm = False
            problem = self._policies.refusals((job,), ledger).get(job.id, "")
            if problem:
                submission.reject(job, problem)
            return False
        if (
            last
            and wanted is not None
            and not queue.entries
            and self._passed is not None
            and self._let_in_until(job) > now
        ):
            found = moves.find(job, partition, wanted)
            if found is not None:
                moves.start(job, found, now)
                ledger.searches = 0
                self._transitions.left_nodes = False
                self._passed()
                return True
        if (
            last
            and wanted is not None
            and queue.entries
            and self._own_passes is not None
            and not self._transitions.changed
            and self._own_passes.start_beside(job, partition, wanted, now, self._patience.lets_pass)
        ):
            self._patience.look_on()
            return True
        queue.add(job, now)
        if passes is not None:
            passes.wanted[job.index] = wanted
            if wanted is None:
                passes.odd = job
        return False


class _Unsure(Exception):  # noqa: N818
    """A limit may keep a job out whose turn has come."""


class LeisurelyPasses(ExpressPasses):
    """Passes over jobs of whom it is known that limits let them in; each start may change that."""

    def __init__(
        self,
        easy: Easy,
        moves: ExpressMoves,
        wanted_by: Callable[[Job], int | None],
        let_in_until: LetIn,
    ) -> None:
        """Be ready for the first pass, at the beginning of which all are let in who wait."""
        super().__init__(easy, moves, wanted_by)
        self._let_in_until = let_in_until
        self.went_plainly = False
        """Whether the plain way was gone behind the reserved job in the last pass."""

    def run(self, now: Seconds) -> bool:
        """Make a pass; False: it has to go the plain way, from where it stands by now."""
        try:
            return super().run(now)
        except _Unsure:
            return False

    def start_beside(
        self, job: Job, partition: Partition, wanted: int, now: Seconds, stands: Callable[[Seconds], bool]
    ) -> bool:
        """Start a job that has just come and is in nobody's way; False: it has to wait for a pass.

        A pass would start it behind the job for which room is kept, and before it as well. Either way the same room is
        kept then. So it need not be known which of the two comes first, as long as all others come behind them. Nobody
        else starts: there is less room for them than in the last pass.

        :param stands: puts all others who wait in order, if that is done soon; False: it is not, or a limit is near.
        """
        easy, moves, queue, shapes = self._easy, self._moves, self._queue, self._shapes
        entries, idle = queue.entries, moves.idle.bit_count()
        if (
            wanted > idle
            or self._placer.telling.notes
            or (shapes is not None and (not shapes.stale or len(entries) + 1 >= shapes.many))
            or (
                (self.stale or self.odd is not None or len(self.wanted) != len(entries))
                and not self._look_anew(entries)
            )
        ):
            return False
        reserved, limit = easy.reserved, job.time_limit
        holds = reserved is not None and not self._attempts.again and reserved.holds(self._ledger)
        for entry in queue.arrivals if holds else entries:
            if entry[1].size <= idle:
                return False  # the last pass was not about it
        if not stands(now) or (holds and easy.leader is not entries[0][1]):
            return False
        if not holds:
            easy.keep_room_for(entries[0])
        reserved = cast(Reserved, easy.reserved)
        if not reserved.settled:
            self._settle(reserved, now)
        forecast, spare = reserved.forecast, reserved.spare
        outlasts = forecast is not None and (limit is None or now + limit > forecast.at)
        if forecast is not None and (
            spare is None or (outlasts and (wanted > spare or partition.nodes & ~forecast.eligible))
        ):
            return False
        found = moves.find(job, partition, wanted) if self._let_in_until(job) > now else None
        if found is None:
            return False
        self._ledger.reasons += 1  # it waited for others, if not for long
        moves.start(job, found, now)
        reserved.passed_by(self._ledger)
        if outlasts and spare is not None:
            reserved.spare = spare - len(found.allocation.node_indices)
        queue.arrivals.clear()
        self._ledger.searches = 0
        self._transitions.left_nodes = False
        return True

    def _try(self, entry: Entry, job: Job, partition: Partition, now: Seconds) -> Placement | None:
        if self._let_in_until(job) <= now:
            raise _Unsure
        return super()._try(entry, job, partition, now)

    def _follow(self, entries: Sequence[Entry], reserved: Reserved, now: Seconds) -> None:
        try:
            super()._follow(entries, reserved, now)
        except _Unsure:
            left = [entry for entry in entries if entry[1].id in self._queue.waiting]
            self._easy.backfill(left, reserved)
            self.went_plainly = True


def leisurely_express_of(
    parts: Parts,
    endings: Endings,
    rhythm: Rhythm,
    handle: Callable[[Event], None],
    patience: Patience,
) -> LeisurelyExpress | None:
    """Return the short way for a run; None: with these plugins and this configuration there is none."""
    let_in_until = parts.placer.rulings.let_in_until
    if (
        let_in_until is None
        or parts.deeds is not None
        or parts.placer.preemption
        or (parts.policies.implements("makeway_accept") and parts.submission.taken is None)
        or parts.policies.implements("makeway_queue_order")
        or not counts_nodes(parts)
        or not is_simple(parts, rhythm)
    ):
        return None
    return LeisurelyExpress(parts, endings, rhythm, handle, patience, let_in_until)


__all__ = ["LeisurelyExpress", "leisurely_express_of"]

"""Leave out passes that can start nobody, and put priorities off until an order decides something.

For replays that nobody watches: neither what jobs wait for nor their priorities are asked for meanwhile. What starts,
and when, is the same as with every pass and every priority at its time; `test_leisure.py` of makeway-slurm holds
one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from makeway.clockwork import Clockwork
from makeway.model import Job, Seconds, Sharing
from makeway.worlds.events import Action, Cleaned, Event, Finished, NodesDrained, NodesUp, Submitted
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.placing import Placer
from makeway_engine.priorities import Priorities
from makeway_engine.queue import Queue
from makeway_engine.rhythm import Rhythm
from makeway_engine.schedulers.contest import Contest
from makeway_engine.schedulers.easy import Easy
from makeway_engine.transitions import Transitions

_HARMLESS = (Cleaned, NodesDrained, NodesUp)
_SHARED = (Sharing.YES, Sharing.FORCE)


class Patience:
    """Decides after the events of a step whether a pass is made, and which priorities have to be there for it.

    While it is at ease, all who wait are surely let in, and a pass through all of the queue starts the same jobs as
    one behind the reservation in force: it need not be known whether anybody has changed places. Otherwise all is done
    as without it, and `catch_up` brings about what passes that were left out would have left behind.
    """

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        transitions: Transitions,
        placer: Placer,
        priorities: Priorities,
        rhythm: Rhythm,
        easy: Easy | None,
        contest: Contest | None,
        *,
        in_time: bool,
    ) -> None:
        """Be there for one run.

        :param easy: makes the passes; None: another scheduler does.
        :param contest: names the jobs of a pass, so that not all need a priority; None: nobody does.
        :param in_time: whether no job outlives its time limit, so that time alone lets nobody start beside the first.
        """
        self._easy = easy
        self.contest = contest
        self._depth = ledger.settings(Clockwork).default_queue_depth
        self._leads = easy if in_time else None
        self._ledger = ledger
        self._active = ledger.jobs_active.by_id
        self._queue = queue
        self._transitions = transitions
        self._making_way = transitions.making_way
        self._priorities = priorities
        self._rhythm = rhythm
        self.make_pass: Callable[[Seconds], None] = rhythm.run
        """Makes a pass if one is due."""
        self._selector = placer.selector
        self.can_go_by: Callable[[Contest], bool] = _is_strict
        """Says whether `make_pass` goes by a contest."""
        self.room_for: Callable[[Sequence[Entry]], object] = self.screened
        """Says for whom there may be room."""
        self._let_in_until = placer.rulings.let_in_until
        """Says until when limits surely keep nobody out who waits; None: nobody can tell."""
        self._others = placer.rulings.others
        self._odd = {job.id: job for job in ledger.jobs.values() if self.is_odd(job)}
        """Jobs about whom it says nothing."""
        if (
            not placer.prober.plain
            or placer.preemption
            or any(each.oversubscribe.sharing in _SHARED for each in ledger.cluster.partitions)
        ):
            self._let_in_until = None  # more than a glance of the selector decides whether anybody can start
        self._at_ease_until: Seconds = -math.inf
        """Up to when nobody who waits is kept out, and so on."""
        self._is_full = False
        """Whether nobody had room who waited when `_freed` and `_seen` were as they are."""
        self._freed = -1
        self._seen = 0
        """How many have arrived of whom that is known."""
        self._puts_off = False
        """Whether recalculations, or passes, were put off while at ease."""
        self.wake: Seconds = math.inf
        """When to look again though nothing happens: a limit may keep somebody out from then on."""

    # ------------------------------------------------------------------------ before events
    def takes(self, now: Seconds, events: Sequence[Event]) -> bool:
        """Whether priorities that were put off may wait on: it does not matter who changed places meanwhile.

        It does where several jobs arrive at once under EASY: behind a reservation they are tried as they come, else as
        they stand in the queue.
        """
        arrived, usual = 0, True
        for event in events:
            if type(event) is Submitted:
                arrived += 1
                if event.spec.priority is not None:
                    self._priorities.be_exact()  # it stands among the others by what it was given
            elif type(event) is not Finished:
                usual = False
                if type(event) not in _HARMLESS:
                    self._let_in_until = None  # jobs may ask for something else, or wait again
        if not usual:
            self._priorities.be_exact()
            return False
        if not self._active:
            return not self._queue.entries
        later = self._queue.later
        one_by_one = arrived < 2 or self._easy is None
        if not one_by_one:
            self._priorities.be_exact()  # they are put in order if the priority of anybody else changes now
        return now < self._at_ease_until and one_by_one and not (later and later[0][0] <= now)

    def catch_up(self) -> None:
        """Work out what was put off up to now, and let all be as after the passes that were left out."""
        priorities, entries = self._priorities, self._queue.entries
        moved, at_ease = priorities.settle(), self._puts_off
        priorities.steady_until = None
        self._be_as_ever()
        self._is_full = False
        if not at_ease:
            if moved:
                self._rhythm.look_again()
        elif entries and self._easy is not None:
            # The last pass, at an event or at a recalculation, found nobody to start but kept room for the first one.
            self._queue.arrivals.clear()
            self._easy.keep_room_for(entries[0])

    def _be_as_ever(self) -> None:
        self._at_ease_until, self._puts_off, self.wake = -math.inf, False, math.inf

    def _put_off(self, until: Seconds) -> None:
        """Leave out what starts nobody, up to an instant."""
        self._at_ease_until, self._puts_off, self.wake = until, True, until

    # ------------------------------------------------------------------------- after events
    def note(self, events: Sequence[Event]) -> None:
        """See who came."""
        if self._let_in_until is not None:
            for event in events:
                if type(event) is Submitted:
                    job = self._ledger.jobs.get(event.spec.id)
                    if job is not None and self.is_odd(job):
                        self._odd[job.id] = job

    def run(self, now: Seconds, events: Sequence[Event]) -> None:
        """Make the pass that is due, if it may start anybody."""
        queue, transitions, priorities = self._queue, self._transitions, self._priorities
        entries = queue.entries
        due = priorities.due(now)
        if due and not self._active:  # what nobody adds to is recalculated at once, however long it was
            if priorities.settle():
                self._rhythm.look_again()
            due = False
        if not entries:
            priorities.forget_owed()
            self._is_full = False
            self._be_as_ever()
            if self._let_in_until is not None:
                self._at_ease_until = math.inf
            if self._making_way.retries:
                self._rhythm.run(now)
            else:
                transitions.changed = False
            return
        if not (transitions.changed or due or self._making_way.retries):
            return
        if self.contest is not None and self._goes_by(self.contest, now):
            return
        if self._rests(now):
            transitions.changed = False
            priorities.steady_until = math.inf
            return
        self._puts_off, self.wake = False, math.inf
        renewed = False
        if len(entries) > 1:
            renewed = due
            roughly = self._let_in_until is not None
            if (due or priorities.unsettled) and priorities.settle(roughly=roughly, due=due):
                self._rhythm.look_again()
        else:
            priorities.leave_line()
        self.make_pass(now)
        self._look_ahead(renewed and not events, transitions.actions)

    def _goes_by(self, contest: Contest, now: Seconds) -> bool:
        """Make the pass that is due with few priorities; False: go on as ever, from where all stands by now."""
        transitions, entries = self._transitions, self._queue.entries
        until = self.let_in()
        if until <= now or len(entries) > self._depth or not (self.can_go_by(contest) and contest.ready()):
            return False
        self._priorities.forget_owed()
        self._priorities.leave_line()  # whoever comes now has no place in it
        if self.room_for(contest.contenders()):
            contest.is_on = transitions.changed = True
            try:
                self.make_pass(now)
            finally:
                contest.is_on = False
            until = self.let_in()
            if until <= now or not (contest.is_sure and contest.ready()):
                transitions.changed = True
                return False
        else:
            transitions.changed = False
        self._is_full = False
        self._priorities.steady_until = contest.stands_until()
        self._put_off(until)
        return True

    def lets_pass(self, now: Seconds) -> bool:
        """Put those who wait in order, if they stand as they did; False: they may not, or a limit is near."""
        if self.let_in() <= now:
            return False
        if len(self._queue.entries) > 1:
            return self._priorities.stands()
        self._priorities.leave_line()
        return True

    def look_on(self) -> None:
        """Look ahead again: somebody has started who was in nobody's way."""
        self._puts_off, self.wake = False, math.inf
        self._look_ahead(False, ())

    def is_odd(self, job: Job) -> bool:
        """Whether more than a glance and the limits known decides about a job."""
        if job.spec.het_id is not None or len(job.partitions) > 1 or job.spec.oversubscribe:
            return True
        for about in self._others:  # noqa: SIM110  # a generator takes twice as long
            if about(job):
                return True
        return False

    def _look_ahead(self, renewed: bool, actions: Sequence[Action]) -> None:
        """Find out whether time alone may change who starts."""
        entries, priorities, easy = self._queue.entries, self._priorities, self._leads
        self._is_full = False
        self._at_ease_until = until = self.let_in()
        at_ease = until > self._ledger.now
        if len(entries) < 2 and self._active:
            priorities.steady_until = math.inf
        elif not self.room_for(entries):
            self._is_full = True
            self._freed, self._seen = self._ledger.freed, len(self._queue.arrivals)
            priorities.steady_until = math.inf
        elif easy is not None and at_ease and easy.leader is entries[0][1]:
            priorities.look_at_first([job for _, job, _ in entries])
        elif renewed and not actions:
            priorities.look_ahead([job for _, job, _ in entries])
            return
        else:
            priorities.steady_until = None
        if at_ease and priorities.steady_until is not None:
            self._put_off(until)

    def _rests(self, now: Seconds) -> bool:
        """Whether nobody who waits could start now, in whatever order, with what is known for sure."""
        ledger = self._ledger
        entries, arrivals = self._queue.entries, self._queue.arrivals
        new = arrivals[self._seen :] if self._is_full and self._freed == ledger.freed else entries
        if self._let_in_until is None or (new and self.room_for(new)):
            return False
        until = self.let_in()
        if until <= now:
            return False
        self._at_ease_until, self._puts_off, self.wake = until, True, until
        self._is_full, self._freed, self._seen = True, ledger.freed, len(arrivals)
        return True

    def screened(self, entries: Sequence[Entry]) -> Sequence[Job]:
        """Return for whom a glance of the selector leaves it open that there is room."""
        found: Sequence[Job] = self._selector.screen([entry[1] for entry in entries], self._ledger.up)
        return found

    def let_in(self) -> Seconds:
        """Return up to when nobody who waits is kept out, and it does not matter how old a forecast is."""
        ledger = self._ledger
        if self._let_in_until is None or self._making_way.retries or ledger.up != ledger.all_nodes:
            return -math.inf
        if self._odd:
            waiting = self._queue.waiting
            self._odd = {job_id: job for job_id, job in self._odd.items() if waiting.get(job_id) is job}
            if self._odd:
                return -math.inf
        if self._easy is not None and not self._easy.can_be_renewed:
            return -math.inf
        return self._let_in_until(None)


def _is_strict(contest: Contest) -> bool:
    return contest.strict


__all__ = ["Patience"]

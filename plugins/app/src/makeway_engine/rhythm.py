"""Make passes when they are due: whenever something happens, or in the periods of a real cluster's schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from makeway.clockwork import Clockwork
from makeway.config import SchedulerTable
from makeway.model import JobState, Seconds
from makeway.partition_bounds import CONFIG
from makeway.registry import Policies
from makeway_engine.grid import Grid
from makeway_engine.ledger import QUIET, Ledger, put
from makeway_engine.placing import Placer
from makeway_engine.queue import Queue
from makeway_engine.schedulers import Schedulers
from makeway_engine.transitions import Transitions

_TINY = 1e-6


class Rhythm:
    """When the passes of one run are due, and what belongs to one."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        transitions: Transitions,
        placer: Placer,
        schedulers: Schedulers,
        policies: Policies,
        scheduler: SchedulerTable,
        clockwork: Clockwork,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """Be there for one run.

        :param watch: is called at the start of each pass, and at its end; None: nothing is called.
        """
        self._watch = watch
        self._ledger = ledger
        self._queue = queue
        self._transitions = transitions
        self._making_way = transitions.making_way
        self._placer = placer
        self._schedulers = schedulers
        self._alone = schedulers.alone
        self._policies = policies
        self._clockwork = clockwork
        self._has_gang = transitions.gang is not None
        self._marks = policies.limits_say("marks")
        self._unmarked = policies.marked_until() if self._marks else None
        self._unmarked_until: Seconds = -1.0
        """Up to then no job gets other marks."""
        self._backfill = schedulers.backfill
        self._over_time_limit = scheduler.over_time_limit
        self.periodic = clockwork.sched_interval > 0
        """Whether passes are made at regular intervals."""
        self._passing = Grid(clockwork.sched_phase, clockwork.sched_interval)
        self._backfilling = Grid(clockwork.bf_phase, clockwork.bf_interval)
        self._sweeping = Grid(clockwork.limit_phase, clockwork.limit_sweep)
        self.sweeps = bool(self._sweeping.interval)
        """Whether deadlines are looked at at regular intervals."""
        self.on_grids = self.periodic or bool(self._sweeping.interval)
        """Whether anything happens at regular intervals."""
        self._pass_point: Seconds | None = None
        """The point of each grid that is reached in this step; None: none is."""
        self._backfill_point: Seconds | None = None
        self._sweep_point: Seconds | None = None
        self._last_backfill: Seconds | None = None
        self._grid_pass_at: Seconds | None = None
        self._backfill_wanted = False
        self._submit_pass_at: Seconds | None = None
        self._soon = False
        self._looks_first = ledger.rule("begin_time_wakes_no_backfill")
        """Whether the main scheduler has to look at jobs that become eligible by the clock before backfill does."""
        self._matured = False
        """Whether such jobs came in this step."""
        self._resources_are_no_news = self._looks_first and ledger.rule("resources_wake_no_backfill")
        self._reasons_are_news = ledger.rule("reasons_are_news")
        if self.periodic and self._reasons_are_news:
            ledger.quieted = set()
        self._soon_by_clock = False
        """Whether the next look is due for such jobs alone."""
        self._came: list[str] = []
        """Their ids, until that look."""
        self.look_at: Seconds | None = None
        """When plugins are to be asked which running jobs have to end; None: they are not."""

    # ------------------------------------------------------------------------------ grids
    def note_points(self, now: Seconds) -> None:
        """Note which points of the grids are reached, by what the engine asked for after the last step."""
        last = self._ledger.now
        waiting = bool(self._queue.waiting)
        if self.periodic:
            self._pass_point = self._passing.reached(self._pass_wake(last) if waiting else None, now)
            if self._backfilling.interval:
                asked = self._backfill_wake(last) if waiting else None
                self._backfill_point = self._backfilling.reached(asked, now)
        if self._sweeping.interval:
            by_end = self._ledger.by_end
            wanted = [by_end[0][0]] if by_end else []
            if self.look_at is not None:
                wanted.append(self.look_at)
            asked = self._sweeping.first_from(min(wanted), last) if wanted else None
            self._sweep_point = self._sweeping.reached(asked, now)

    def deadlines_by(self, now: Seconds) -> Seconds | None:
        """Return up to when deadlines are looked at in a step at `now`; None: not in this step.

        What is due since a sweep is due at the next one.
        """
        return self._sweep_point if self._sweeping.interval else now

    # ----------------------------------------------------------------------------- passes
    def run(self, now: Seconds) -> None:
        """Make the passes that are due."""
        transitions = self._transitions
        news = transitions.changed
        if self._matured:
            transitions.changed = True
        if self.periodic:
            by_clock, self._matured = self._matured and not news, False
            self._periodic_passes(now, news=news, by_clock=by_clock)
            return
        self._matured = False
        if self._making_way.retries and self._making_way.due(now):
            self._schedulers.attempts.again = transitions.changed = True
        if transitions.changed and (self._queue.entries or self._has_gang):
            self._pass(self._clockwork.default_queue_depth, backfill=True)
        else:
            transitions.changed = False

    def _periodic_passes(self, now: Seconds, *, news: bool, by_clock: bool) -> None:
        """Make those that are due.

        :param news: something changed that backfill makes a pass for, if nothing else does.
        :param by_clock: nothing changed but that jobs became eligible by the clock.
        """
        clockwork = self._clockwork
        transitions = self._transitions
        point = self._pass_point
        on_grid = point is not None and self._grid_pass_at != now  # one look per interval
        due = self._making_way.due(point) if on_grid and point is not None else False
        if transitions.changed and not self._soon:
            self._soon = True
            self._soon_by_clock = by_clock and self._resources_are_no_news
        elif transitions.changed and not by_clock:
            self._soon_by_clock = False
        if due:
            self._soon = self._schedulers.attempts.again = True
            self._soon_by_clock = False
        triggered = False
        if transitions.left_nodes:
            triggered = True
        if self._submit_pass_at is not None and now >= self._submit_pass_at - _TINY:
            triggered = True
        if (on_grid and self._soon) or triggered:
            depth = len(self._queue.entries) if on_grid else clockwork.default_queue_depth
            by_clock = self._soon_by_clock and not triggered
            state = self._state()
            self._pass(max(depth, 1), backfill=False)
            if self._ledger.quieted:
                self._ledger.quieted.clear()
            if on_grid:
                # Those that wait may stand in another order since a job started: that counts at the next look.
                self._soon = self._schedulers.attempts.moves_by_starts and self._ledger.version != state[0]
                self._soon_by_clock = False
                self._grid_pass_at = now
            self._submit_pass_at = None
            if not by_clock or self._state() != state or self._waits_otherwise():
                self._backfill_wanted = True
            self._came.clear()
        elif transitions.changed and clockwork.pass_on_submit and self._submit_pass_at is None:
            self._submit_pass_at = now + clockwork.submit_delay
            if clockwork.submit_delay == 0:
                self._pass(clockwork.default_queue_depth, backfill=False)
                self._submit_pass_at = None
                news = True
            self._backfill_wanted |= news
        elif news:
            self._backfill_wanted = True
        transitions.changed = False
        transitions.left_nodes = False
        if self._backfill is not None and (self._backfill_wanted or self._time_is_news()):
            interval = clockwork.bf_interval
            if not interval or (self._last_backfill != now and self._backfill_point is not None):
                self._last_backfill = now
                before = self._ledger.version, self._ledger.reasons
                if self._watch is not None:
                    self._watch()
                self._queue.looked_at(now)
                self._backfill.run()
                if self._watch is not None:
                    self._watch()
                # Its own starts are news for its next plan.
                self._backfill_wanted = self._ledger.version != before[0] or self._bars_are_news()
                self._after_pass()
                if (self._ledger.version, self._ledger.reasons) != before:
                    # They are news for the next look as well: others may have come to a limit. So are reasons: of
                    # several partitions the main scheduler may name another one's.
                    self._soon = True
                    self._soon_by_clock = False

    def _time_is_news(self) -> bool:
        """Whether backfill is the first to see that asking again may help, since it makes one pass after the other."""
        point = self._backfill_point
        return point is not None and self._making_way.has_come(point) and self._goes_on()

    def _goes_on(self) -> bool:
        """Whether backfill makes one pass after the other: each look finds a job that does not wait for resources.

        Slurm writes such a reason anew in each look, which counts as news even if it stays the same. One that has
        not been looked at yet has none (recorded: backfill_reasons_are_news, backfill_begin_time_behind_another).
        Where backfill failed to start a job since the last look, the next one says again what it waited for
        (recorded: backfill_reason_set_again).
        """
        if not self._reasons_are_news:
            return False
        new = {job.id for _, job, _ in self._queue.arrivals}
        again = self._ledger.quieted or ()
        return any(
            (job.reason not in QUIET or job.id in again)
            and job.id not in new
            and job.state is JobState.PENDING
            for _, job, _ in self._queue.entries
        )

    def _bars_are_news(self) -> bool:
        """Whether a job in several partitions is barred from one of them as if by a bound: each pass writes that anew.

        Recorded: part_any_bars.
        """
        return self._reasons_are_news and any(
            job.reason == CONFIG and job.state is JobState.PENDING for job in self._queue.in_several.values()
        )

    def _waits_otherwise(self) -> bool:
        """Whether a job that became eligible by the clock waits for something else than resources."""
        jobs = map(self._ledger.jobs.get, self._came)
        return any(job and job.state is JobState.PENDING and job.reason not in QUIET for job in jobs)

    def _state(self) -> tuple[int, int, int]:
        """Return what differs after a look that is news for backfill.

        That a job waits for resources is none; any other reason is (recorded: backfill_begin_time_resources and
        backfill_begin_time_pair).
        """
        return self._ledger.version, self._ledger.reasons, len(self._transitions.actions)

    def _pass(self, depth: int, *, backfill: bool) -> None:
        transitions = self._transitions
        transitions.changed = False
        transitions.left_nodes = False
        self._ledger.searches = 0
        if self._has_gang:
            transitions.before_pass()
        if self._watch is not None:
            self._watch()
        if self._marks and self._unmarked_until <= self._ledger.now:
            self._mark()
        if self._placer.kept.claims:
            self._placer.serve()
        if self._queue.throttle:
            self._queue.throttle.looked_at()
            self._queue.looked_at(self._ledger.now)
        if self._alone is not None:
            self._alone()
        else:
            self._schedulers.run(depth, backfill=backfill)
        if self._watch is not None:
            self._watch()
        if self._marks and self._unmarked_until <= self._ledger.now:
            self._mark()
        if self._has_gang:
            transitions.after_pass()
        if self.periodic:
            self._after_pass()
        else:
            transitions.changed = False

    def _mark(self) -> None:
        """Let policies remember what they want about jobs."""
        if self._unmarked is not None:
            self._unmarked_until = self._unmarked()
            if self._unmarked_until > self._ledger.now:
                return
        for job_id, marks in self._policies.marks(self._ledger).items():
            put(self._ledger.jobs[job_id], marks=marks)

    def _after_pass(self) -> None:
        # What the pass itself changed (a start, a kill) is news only for gang and later passes.
        if self.periodic and (self._transitions.changed or self._schedulers.strict.passed_over):
            self._soon = True
            self._soon_by_clock = False
        self._transitions.changed = False

    # ---------------------------------------------------------------------------- waking
    def came_by_clock(self) -> None:
        """Take note that jobs became eligible by the clock in this step.

        Backfill sees them by itself only as long as it makes one pass after the other: while it keeps idle nodes for
        others, or each look is news (recorded: backfill_begin_time, backfill_begin_time_idle_kept and
        backfill_begin_time_out_of_reach).
        """
        if self._looks_first and not getattr(self._backfill, "keeps_idle", True) and not self._goes_on():
            self._matured = True
            if self._resources_are_no_news:
                self._came.extend(job.id for _, job, _ in self._queue.arrivals)
        else:
            self._transitions.changed = True

    def wake_up(self) -> None:
        """Let a pass be made in the next step."""
        self._transitions.changed = True
        self._soon = self._backfill_wanted = True
        self._soon_by_clock = False

    def look_again(self) -> None:
        """Let a pass be made since the order may be another one: at the next point of the grid, or in this step."""
        self._schedulers.attempts.again = True
        self._soon = self._backfill_wanted = True
        self._soon_by_clock = False
        if not self.periodic:
            self._transitions.changed = True

    def deadline_wake(self, first: Seconds, now: Seconds) -> Seconds | None:
        """Return when limits have to be looked at, the first deadline being at `first`; None: never."""
        if first > now and not self.sweeps:
            return first
        if self.sweeps:
            return self._sweeping.first_from(first, now)
        over = self._over_time_limit
        return next((at + over for at, _, _ in self._ledger.by_end if at + over > now), None)

    def look_wake(self, at: Seconds, now: Seconds) -> Seconds:
        """Return when plugins are asked what to end that want to be asked at `at`."""
        return self._sweeping.first_from(at, now) if self._sweeping.interval else at

    def next_pass(self, now: Seconds) -> Seconds | None:
        """Return when a pass will be due if nothing happens until then; None: not at all."""
        if not self.periodic:
            return self._making_way.next_retry(now) if self._making_way.retries else None
        wakes = (self._pass_wake(now), self._submit_pass_at, self._backfill_wake(now))
        return min((wake for wake in wakes if wake is not None), default=None)

    def _pass_wake(self, now: Seconds) -> Seconds | None:
        """Return the point of the grid at which the next full pass is wanted; None: none is."""
        wakes = []
        if self._soon:
            wakes.append(self._passing.after(now))
        retry = self._next_retry(now)
        if retry is not None:
            wakes.append(self._passing.first_from(retry, now))
        return min(wakes, default=None)

    def _backfill_wake(self, now: Seconds) -> Seconds | None:
        """Return the point of the grid at which backfill makes its next pass; None: at none."""
        if self._backfill is None or not self._backfilling.interval:
            return None
        if self._backfill_wanted:
            return self._backfilling.after(now)
        retry = self._next_retry(now)
        return self._backfilling.first_from(retry, now) if retry is not None and self._goes_on() else None

    def _next_retry(self, now: Seconds) -> Seconds | None:
        """Return from when on asking again may help; one that has passed stands until the next full pass."""
        making_way = self._making_way
        return making_way.next_retry(now, passed=bool(self._queue.waiting)) if making_way.retries else None

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return when passes are due, for `restore`."""
        return {
            "last_backfill": self._last_backfill,
            "grid_pass_at": self._grid_pass_at,
            "bf_dirty": self._backfill_wanted,
            "submit_pass_at": self._submit_pass_at,
            "soon": self._soon,
            "soon_by_clock": self._soon_by_clock,
            "came": list(self._came),
            "quieted": sorted(self._ledger.quieted or ()),
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self._last_backfill = memory["last_backfill"]
        self._grid_pass_at = memory["grid_pass_at"]
        self._backfill_wanted = memory["bf_dirty"]
        self._submit_pass_at = memory["submit_pass_at"]
        self._soon = memory["soon"]
        self._soon_by_clock = memory.get("soon_by_clock", False)
        self._came = list(memory.get("came", ()))
        if self._ledger.quieted is not None:
            self._ledger.quieted = set(memory.get("quieted", ()))

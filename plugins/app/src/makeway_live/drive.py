"""Join an engine and a world whose clock runs: the live loop.

One turn waits for what happens, lets the engine decide, writes the step down, and performs it::

    live = Live(engine, world, state.clock, journal=journal)
    live.feed(Submitted(spec))          # from any thread
    while not stopped:
        live.turn()

What goes wrong in a turn never ends the loop: a policy that raises is blamed in the record and its job waits; a step
that cannot be written down is not performed, and is tried again; an event that is no news is counted.
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from makeway import collector
from makeway.config import Config, WorldTable, build_cluster
from makeway.errors import JournalError
from makeway.model import JobState, Seconds
from makeway.record import Line, Recorder
from makeway.registry import Policies, build_world
from makeway.worlds.api import Journal, Moment, State, Step, World
from makeway.worlds.clock import Clock, uptime
from makeway.worlds.events import Command, Event
from makeway.worlds.watch import time_limit
from makeway_engine.engine import Engine
from makeway_live.agenda import Agenda
from makeway_live.differences import differences
from makeway_live.reload import reload

LONGEST_WAIT: Seconds = 60.0
"""A world is never asked to wait longer, so that a sleep or a change of the clock is noticed within a minute."""
RETRY: Seconds = 1.0
"""Until a step that could not be written down is written again."""
JUMP: Seconds = 2.0
"""By how much the wall clock may drift against the run's clock in one turn before that is written down."""
_log = logging.getLogger("makeway")


class Live:
    """Lets an engine and a world talk as time goes on."""

    def __init__(
        self,
        engine: Engine,
        world: World,
        clock: Clock,
        *,
        journal: Journal | None = None,
        agenda: Agenda | None = None,
        table: WorldTable | None = None,
        zero: float | None = None,
    ) -> None:
        """Join `engine` and `world`, which share `clock`.

        :param journal: None: nothing is written down, so a crash loses all.
        :param agenda: jobs and commands that are due at known instants.
        :param table: ``[world]``; None: the engine's configuration.
        :param zero: Unix time of the run's instant 0 as it was last written down; None: as the clock has it.
        """
        self.engine = engine
        self.world = world
        self.clock = clock
        self.journal = journal
        self.agenda = agenda or Agenda()
        self.steps = 0
        self.unwritten: Step | None = None
        """A step that could not be written down yet; nothing goes on until it is."""
        self.why_unwritten = ""
        self._table = table or engine.config.world
        self._limit = engine.config.policy.decision_time_limit
        self._inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._lines: list[Line] = []
        self._survey_at: Seconds | None = clock.now()
        self._wall = clock.wall() - clock.now() if zero is None else zero
        self._slept = clock.slept()
        engine.recorder.tee(self._lines.append)
        engine.forgive()
        collector.freeze()  # what has been built so far is walked through no more; the collector stays on

    @classmethod
    def of(
        cls,
        config: Config,
        state: State,
        *,
        journal: Journal | None = None,
        plugins: Mapping[str, Any] | None = None,
        sink: Callable[[Line], None] | None = None,
    ) -> Live:
        """Build all that a daemon needs out of its configuration: policies, record, engine, world, loop.

        :param plugins: policies and worlds by name that need no installation.
        :param sink: gets every line of the record; the journal gets them with their steps anyway.
        :raises PluginError, ConfigError: something that `config` names cannot be had, or its settings are wrong.
        """
        policies = Policies(config, plugins)
        cluster = build_cluster(config)
        engine = Engine(config, Recorder(cluster, sink or _unheard, keep=False), policies)
        world = build_world(config, cluster, attrs.evolve(state, clockwork=engine.clockwork), plugins)
        return cls(engine, world, state.clock, journal=journal)

    # ------------------------------------------------------------------------------- people
    def feed(self, *events: Event) -> None:
        """Hand over submissions and people's commands; called from any thread."""
        for event in events:
            self._inbox.put(event)
        wake = getattr(self.world, "wake", None)
        if wake is not None:
            wake()
        self.clock.wake()

    # ------------------------------------------------------------------------------- turning
    def run(self, stop: Callable[[], bool]) -> None:
        """Turn until `stop` says so."""
        while not stop():
            self.turn()

    def turn(self, longest: Seconds = LONGEST_WAIT) -> int:
        """Wait at most `longest` for what happens next, and let the engine decide; return how many events came."""
        if self.unwritten is not None:
            if not self._write(self.unwritten):
                self.clock.wait(self.clock.now() + min(RETRY, longest))
            return 0
        now, events = self._wait(longest)
        events += self._handed_over()
        events += self.agenda.due(now)
        events += self._watch_clock(now)
        if events or self._due(now):
            self.step(now, events)
        if self._survey_at is not None and now >= self._survey_at and self.unwritten is None:
            found = self._survey()  # only now, for the books must know what the world has told
            if found:
                self.step(now, found)
            return len(events) + len(found)
        return len(events)

    def step(self, now: Seconds, events: Sequence[Event]) -> None:
        """Let the engine decide about `events`, write the step down, and perform it."""
        now = max(now, self.engine.ledger.now)  # a world's clock may lag behind what it said before
        try:
            with time_limit(self._limit):
                actions = self.engine.step(now, events)
        except BaseException:
            self._survey_at = now  # what the world told in this step may be lost: a survey shows it again
            raise
        lines, self._lines[:] = tuple(self._lines), ()
        self.steps += 1
        self._write(
            Step(
                now=now, wall=self.clock.wall(), events=events, actions=actions, lines=lines, uptime=uptime()
            )
        )

    def _write(self, step: Step) -> bool:
        """Write a step down and perform it; say whether that could be done."""
        try:
            if self.journal is not None:
                self.journal.write(step)
        except JournalError as error:
            if str(error) != self.why_unwritten:
                _log.error("nothing is started or stopped until this is mended: %s", error)
            self.unwritten, self.why_unwritten = step, str(error)
            return False
        self.unwritten, self.why_unwritten = None, ""
        if step.actions:
            self.world.perform(step.actions, step.now)
        return True

    # ------------------------------------------------------------------------------- reload
    def reload(
        self, config: Config, plugins: Mapping[str, Any] | None = None, source: str = "reload"
    ) -> None:
        """Go on under another configuration; to be called between turns, from the loop's own thread.

        A new engine adopts what this one has; only then this one goes. Preemption that errors had switched off is on
        again.

        :raises ConfigError, PluginError, PolicyError: it cannot take over; the run goes on as before.
        :raises JournalError: a step is still to be written down; the run goes on as before.
        """
        if self.unwritten is not None:
            raise JournalError(f"not while a step waits to be written down: {self.why_unwritten}")
        # The world stays the one that is there, whatever the file says, and so do the rules for it.
        config = attrs.evolve(config, world=attrs.evolve(config.world, name=self.engine.config.world.name))
        with time_limit(config.policy.decision_time_limit):
            engine, actions = reload(self.engine, config, plugins, source)
        engine.forgive()
        self.engine, self._table = engine, config.world
        self._limit = config.policy.decision_time_limit
        now = max(self.clock.now(), engine.ledger.now)
        engine.recorder.note("reload", "", now, source=source)
        lines, self._lines[:] = tuple(self._lines), ()
        follow = getattr(self.journal, "follow", None)
        if follow is not None:
            with contextlib.suppress(JournalError):  # the step that follows says so, and is tried again
                follow(engine)
        self._write(
            Step(now=now, wall=self.clock.wall(), events=(), actions=actions, lines=lines, uptime=uptime())
        )

    # ------------------------------------------------------------------------------- waiting
    def _wait(self, longest: Seconds) -> tuple[Seconds, list[Event]]:
        """Wait until something happens or is due."""
        now = self.clock.now()
        until = now
        if self._inbox.empty():
            wakes = (self.engine.next_wake, self.agenda.next_at, self._survey_at)
            until = min([now + longest, *(at for at in wakes if at is not None)])
        moment: Moment | None = self.world.wait(until)
        if moment is None:  # it knows that nothing will happen by itself; time goes on all the same
            self.clock.wait(until)
            return max(now, self.clock.now()), []
        return max(moment[0], now), list(moment[1])

    def _due(self, now: Seconds) -> bool:
        wake = self.engine.next_wake
        return wake is not None and wake <= now

    def _handed_over(self) -> list[Event]:
        events = []
        while True:
            try:
                events.append(self._inbox.get_nowait())
            except queue.Empty:
                return events

    # ------------------------------------------------------------------------------- looking
    def _survey(self) -> list[Event]:
        every = self._table.survey
        found = self.world.survey()
        self._survey_at = max(found.at, self.clock.now()) + every if every else None
        return differences(self.engine, found)

    def _watch_clock(self, now: Seconds) -> list[Event]:
        """Write down sleeps and jumps of the wall clock; look at what is there after a sleep.

        Return what follows for jobs that wait for a certain time of day: it comes earlier or later on the run's clock.
        """
        slept, wall = self.clock.slept(), self.clock.wall() - now
        asleep, jumped = slept - self._slept, wall - self._wall
        if asleep > JUMP:
            self.engine.recorder.note("clock", "", now, slept=round(asleep, 3))
            self._survey_at = now
        if abs(jumped - asleep) > JUMP:
            self.engine.recorder.note("clock", "", now, wall_jumped=round(jumped - asleep, 3))
        if asleep <= JUMP and abs(jumped) <= JUMP:
            return []
        self._slept, self._wall = slept, wall
        return [
            Command("change", job.id, None, f"begin={math.ceil(job.spec.begin_at - jumped)}")
            for job in sorted(self.engine.ledger.jobs.values(), key=lambda job: job.index)
            if job.state is JobState.PENDING and job.spec.begin_at is not None and job.eligible_at > now
        ]

    # ------------------------------------------------------------------------------- ending
    @property
    def over(self) -> bool:
        """Whether nothing will happen any more unless something is fed: no job is active or planned.

        Jobs that wait count while nodes are missing that may come back.
        """
        engine, reports = self.engine, self.engine.reports
        missing = reports.down | reports.drained | reports.aside
        return (
            not engine.ledger.active_count
            and not (missing and engine.ledger.jobs)
            and not engine.ledger.completing
            and engine.next_wake is None
            and self.agenda.next_at is None
            and self._inbox.empty()
            and self.unwritten is None
        )

    def close(self) -> None:
        """End the run; jobs go on unless the world's settings say otherwise."""
        close = getattr(self.world, "close", None)
        if close is not None:
            close()


def _unheard(line: Line) -> None:
    """Hear lines whose step goes into the journal."""

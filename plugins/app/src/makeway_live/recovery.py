"""Begin where a journal says that a run stood: after a crash, a restart, or for the first time.

Nothing that was decided is decided again. The jobs' rows give a new engine; the world is asked what is really there;
actions of unknown outcome are performed again where the world shows that they did not happen. Whatever else
differs the live loop turns into events when it looks around for the first time (`makeway_live.differences`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config, build_cluster
from makeway.model import JobState, Seconds
from makeway.record import Line, Recorder
from makeway.registry import Policies, build_world
from makeway.worlds.api import State, Step, Survey, World
from makeway.worlds.clock import LiveClock, uptime
from makeway.worlds.events import Action, Checkpoint, Kill, Resume, Start, Suspend
from makeway_engine.engine import Engine
from makeway_live.drive import Live
from makeway_live.journal import Journal
from makeway_live.journal_file import reading

_THERE = (JobState.RUNNING, JobState.SUSPENDED)


@attrs.frozen(kw_only=True, eq=False)
class Recovered:
    """An engine that stands where the journal's run stood."""

    engine: Engine
    actions: tuple[Action, ...]
    """What the arbiter ordered when it saw the jobs; mostly nothing. To be performed as any others."""
    at: Seconds
    """The instant of the last step; 0 for a new journal."""
    jobs: int
    """How many jobs it found."""


def recover(
    config: Config,
    journal: Journal,
    recorder: Recorder | None = None,
    plugins: Mapping[str, Any] | None = None,
) -> Recovered:
    """Build an engine that goes on where `journal` stands, and let the journal follow it.

    :param config: may differ from the one that the run had so far: jobs are adopted all the same.
    :param recorder: None: a new one that keeps what is live.
    :param plugins: policies by name that need no installation.
    :raises JournalError: the journal cannot be read or written.
    :raises ConfigError: its jobs do not fit the configuration; the journal is as it was.
    """
    told = recorder or Recorder(build_cluster(config), keep=False)
    engine = Engine(config, told, Policies(config, plugins))
    state = journal.state()
    with reading(journal.path):
        actions = engine.adopt(state, str(journal.path)) if state is not None else []
    journal.follow(engine)
    return Recovered(
        engine=engine, actions=tuple(actions), at=engine.ledger.now, jobs=len(engine.ledger.jobs)
    )


def perform_again(engine: Engine, world: World) -> Sequence[Action]:
    """Perform what was intended and did not happen, as far as the world shows; return what was performed.

    To be called once, before the first turn. Starts are safe in any case: a world performs each incarnation once.
    Signals are not sent again: whether they arrived is not to be seen.
    """
    if engine.deeds is None:
        return ()
    open_actions = engine.deeds.unsettled()
    if not open_actions:
        return ()
    survey = world.survey()
    again = [action for action in open_actions if _did_not_happen(action, survey)]
    if again:
        world.perform(again, engine.ledger.now)
    return again


def _did_not_happen(action: Action, survey: Survey) -> bool:
    """Whether the world shows that an action was not performed."""
    job = action.job
    seen = survey.jobs.get(job.id)
    if seen is not None and seen.incarnation and seen.incarnation != action.incarnation:
        seen = None
    if isinstance(action, Start):
        return seen is None and (survey.complete or (job.id, action.incarnation) in survey.never_started)
    if seen is None:
        return False
    if isinstance(action, Kill | Checkpoint):
        return seen.state in _THERE
    if isinstance(action, Suspend):
        return seen.state is JobState.RUNNING
    return isinstance(action, Resume) and seen.state is JobState.SUSPENDED


def live_of(
    config: Config,
    directory: Path,
    *,
    plugins: Mapping[str, Any] | None = None,
    sink: Callable[[Line], None] | None = None,
    name: str = "journal.db",
) -> Live:
    """Build a daemon's loop over the journal of a state directory: new, or where the last one ended.

    :param directory: it exists; the journal in it is made if there is none.
    :param sink: gets every line of the record; the journal has them anyway.
    :raises JournalError, ConfigError, PluginError: see `recover`.
    """
    journal = Journal(directory / name, config.world.journal)
    try:
        clock = LiveClock()
        clock.start = journal.clock_at(clock.wall(), uptime())
        recorder = Recorder(build_cluster(config), sink, keep=False)
        found = recover(config, journal, recorder, plugins)
        state = State(directory=directory, clock=clock, clockwork=found.engine.clockwork)
        world = build_world(config, found.engine.ledger.cluster, state, plugins)
    except BaseException:
        journal.close()
        raise
    live = Live(found.engine, world, clock, journal=journal, zero=journal.zero())
    perform_again(found.engine, world)
    if found.actions:
        journal.write(
            Step(now=found.at, wall=clock.wall(), events=(), actions=found.actions, lines=(), uptime=uptime())
        )
        world.perform(found.actions, found.at)
    return live

"""Replay a workload in the world that ``[world]`` names, as fast as its clock runs."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from makeway.model import JobSpec, Seconds
from makeway.registry import build_world
from makeway.worlds.api import State
from makeway.worlds.clock import Clock, LiveClock
from makeway.worlds.events import Event
from makeway_engine.engine import Engine
from makeway_live.agenda import Agenda
from makeway_live.drive import Live

_SHORT: Seconds = 1.0
"""Longest wait, so that an interruption is noticed."""


def run(
    engine: Engine,
    jobs: Iterable[JobSpec],
    commands: Sequence[tuple[Seconds, Event]] = (),
    *,
    clock: Clock | None = None,
    plugins: Mapping[str, Any] | None = None,
    until: Seconds | None = None,
    after_step: Callable[[Engine], None] | None = None,
    snapshots: Mapping[Seconds, Callable[[Engine], None]] | None = None,
) -> Seconds:
    """Run `jobs`, and `commands` with their instants, until nothing is left to do; return the last instant.

    :param clock: None: the computer's.
    :param plugins: worlds by name that need no installation.
    :param until: stop at this instant; None: when nothing happens any more.
    :param after_step: called after every step.
    :param snapshots: called at the instants named.
    :raises PluginError, ConfigError: the world cannot be had, or its settings are wrong.
    """
    config, clock = engine.config, clock or LiveClock()
    with contextlib.ExitStack() as stack:
        directory = config.world.state or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="makeway-", ignore_cleanup_errors=True)
        )
        Path(directory).mkdir(parents=True, exist_ok=True)
        state = State(directory=Path(directory), clock=clock, clockwork=engine.clockwork)
        world = build_world(config, engine.recorder.cluster, state, plugins)
        live = Live(engine, world, clock, agenda=Agenda(jobs, commands))
        stack.callback(live.close)
        marks = sorted(snapshots or ())
        while not live.over and (until is None or clock.now() < until):
            steps = live.steps
            live.turn(_SHORT if until is None else min(_SHORT, until - clock.now()))
            if after_step is not None and live.steps > steps:
                after_step(engine)
            while snapshots and marks and marks[0] <= clock.now():
                snapshots[marks.pop(0)](engine)
        return max(engine.ledger.now, clock.now() if until is not None else 0.0)

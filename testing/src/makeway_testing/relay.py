"""Hand a run over from engine to engine, and hold every engine to what the first one would have done.

A relay is the proof of adoption. After every step `Relay` replaces its engine by a new one, which adopts the old
one's state by way of JSON. It keeps some of the new ones beside it to see that they go on alike.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from makeway.config import Config
from makeway.errors import InvariantError
from makeway.model import Cluster, Job, Seconds
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.state import read_state, write_state
from makeway.worlds.events import Action, Event
from makeway_app.replay import Options, drive
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.strategies import Scenario


class Relay:
    """An engine that is another one after every step; to be driven like one (`makeway_app.replay.drive`)."""

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        plugins: Mapping[str, Any] | None = None,
        *,
        follow: Callable[[int], bool] = lambda step: not step % 7,
    ) -> None:
        """Begin a run.

        :param follow: says after which steps the engine that takes over is kept beside, to the end of the run.
        """
        self.config = config
        self._cluster = cluster
        self._policies = Policies(config, plugins)
        self._follow = follow
        self.lines: list[Line] = []
        self.recorder = Recorder(cluster, self.lines.append)
        self._first = self._engine(self.recorder)
        self._chain = self._engine(Recorder(cluster))
        self._beside: list[_Follower] = []
        self._steps = 0

    def _engine(self, recorder: Recorder) -> Engine:
        return Engine(self.config, recorder, self._policies.anew())

    # ------------------------------------------------------------------- as `drive` wants it
    @property
    def clockwork(self) -> Any:
        """The delays of the run."""
        return self._first.clockwork

    @property
    def policies(self) -> Policies:
        """The plugins of the first engine."""
        return self._first.policies

    @property
    def ledger(self) -> Any:
        """The books of the first engine."""
        return self._first.ledger

    @property
    def next_wake(self) -> Seconds | None:
        """When the engines want to be called."""
        wake, now = self._first.next_wake, self._first.ledger.now
        for engine in (self._chain, *(follower.engine for follower in self._beside)):
            self._compare(now, "an engine that took over wants to be called", wake, engine.next_wake)
        return wake

    def step(self, now: Seconds, events: Sequence[Event]) -> list[Action]:
        """Let all engines make a step, and compare them.

        :raises InvariantError: one decided otherwise, or would hand over something else.
        """
        seen = len(self.lines)
        actions = self._first.step(now, events)
        wanted = _told(actions)
        lines = _shown(self.lines[seen:])
        self._compare(
            now, "the engine that has just taken over", wanted, _told(self._chain.step(now, events))
        )
        for follower in self._beside:
            before = len(follower.lines)
            found = _told(follower.engine.step(now, events))
            name = f"the engine that took over after step {follower.since}"
            self._compare(now, name, wanted, found)
            self._compare(now, name, lines, _shown(follower.lines[before:]))
        self._steps += 1
        self._save(now)
        return actions

    def _save(self, now: Seconds) -> None:
        text = write_state(self._first.save())
        found = write_state(self._chain.save())
        self._compare(
            now, "the engine that had just taken over hands over", json.loads(text), json.loads(found)
        )
        self._chain = self._adopted(text, self._chain.recorder)
        if self._follow(self._steps):
            lines: list[Line] = []
            follower = _Follower(
                self._adopted(text, Recorder(self._cluster, lines.append)), lines, self._steps
            )
            self._beside.append(follower)

    def _adopted(self, text: str, recorder: Recorder) -> Engine:
        engine = self._engine(recorder)
        orders = engine.adopt(read_state(text, "the state"))
        if orders:
            raise InvariantError(f"an arbiter that takes over orders {_told(orders)}")
        again = write_state(engine.save())
        self._compare(engine.ledger.now, "state after adoption", json.loads(text), json.loads(again))
        return engine

    def _compare(self, now: Seconds, who: str, wanted: Any, found: Any) -> None:
        if wanted != found:
            shown = "\n".join(f"  {line}" for line in itertools.islice(_differences(wanted, found), 5))
            hint = (
                ""
                if "memory" not in shown
                else "\n  memory is what save returns: after restore it has to be the same"
            )
            raise InvariantError(f"at {now:g} s, step {self._steps}, {who}:\n{shown}{hint}")


def _differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield where two values differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in dict.fromkeys((*wanted, *found)):
            yield from _differences(wanted.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for at, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _differences(one, other, f"{path}[{at}]")
    elif wanted != found:
        yield f"{path}: wanted {wanted}, found {found}"


def relay(scenario: Scenario, plugins: Mapping[str, Any] | None = None) -> None:
    """Play `scenario`, handed over after each of its steps.

    :param plugins: plugins by name that need no installation.
    :raises InvariantError: an engine that took over did something else than the one before it.
    """
    settings = scenario.settings
    config = settings if isinstance(settings, Config) else builders.config(scenario.machine, settings)
    cluster = builders.build_cluster(config)
    engine = Relay(config, cluster, plugins)
    world = SimulatedWorld(scenario.specs, engine.clockwork, builders.commands(scenario.commands, cluster))
    drive(cast(Engine, engine), world, Options(until=scenario.until))


@attrs.frozen
class _Follower:
    """An engine that took over once and goes on beside the first one."""

    engine: Engine
    lines: list[Line]
    since: int


def _shown(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return what was done; why a job waits a record says once, so that a new one says it again."""
    return [line.as_dict() for line in lines if line.kind not in ("decision", "reason")]


def _told(actions: Sequence[Action]) -> list[Any]:
    """Return actions as values that can be compared."""
    return [
        (type(action).__name__, *(_plain(value) for value in action), _plain_allocation(action.job))
        for action in actions
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Job):
        return value.id
    return attrs.asdict(value) if attrs.has(type(value)) else value


def _plain_allocation(job: Job) -> Any:
    return attrs.asdict(job.allocation) if job.allocation is not None else None

"""Hold runs of which no record is kept to those that are recorded: what is spared there changes no decision.

The scheduler is ``greedy``, unless the scenario brings a configuration: it looks at marks that no other looks at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import attrs

from makeway.config import Config, build_cluster
from makeway.errors import MakewayError
from makeway.record import Line
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.patience import Patience
from makeway_testing.strategies import Scenario

_State = tuple[object, ...]
_States = list[tuple[float, dict[str, _State]]]


def difference(scenario: Scenario, plugins: Mapping[str, Any]) -> str:
    """Say how a run comes out otherwise where it is recorded or its jobs are traced; empty: it does not."""
    alone = _states(scenario, plugins, Options(keep=False))
    recorded = _states(scenario, plugins, Options(sink=_unheard))
    traced = _states(scenario, plugins, Options(traced=lambda job: True))
    return _between(recorded, alone, "it is recorded") or _between(traced, alone, "its jobs are traced")


def _between(told: _States, alone: _States, where: str) -> str:
    for (now, one), (_, other) in zip(told, alone, strict=False):
        for name in {**one, **other}:
            if one.get(name) != other.get(name):
                shown = f"{_words(one.get(name))} where {where}, {_words(other.get(name))} where not"
                return f"at {now:g} s job {name} is {shown}"
    return "" if len(told) == len(alone) else f"{len(told)} steps where {where}, {len(alone)} where not"


def _unheard(line: Line) -> None:
    """Let a line go."""


def _words(state: _State | None) -> str:
    return "gone" if state is None else " ".join(map(str, state))


def _states(scenario: Scenario, plugins: Mapping[str, Any], heard: Options) -> _States:
    found: _States = []
    patience = Patience()

    def look(engine: Engine) -> None:
        patience(engine)
        jobs = engine.ledger.jobs.values()
        states: dict[str, _State] = {
            job.id: (job.state.value, job.reason, f"on nodes {job.nodes:b}") for job in jobs
        }
        found.append((engine.ledger.now, states))

    given = scenario.settings
    if isinstance(given, Config):
        config = given
    else:
        config = builders.config(scenario.machine, {**given, "scheduler": "greedy"})
    events = builders.commands(scenario.commands, build_cluster(config))
    options = attrs.evolve(heard, until=scenario.until, after_step=look, plugins=plugins)
    with contextlib.suppress(MakewayError):  # what raises, or never ends, is another rule's business
        replay(config, scenario.specs, events, options)
    return found

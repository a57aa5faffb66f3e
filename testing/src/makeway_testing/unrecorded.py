"""Hold runs of which nobody keeps a record to those that are recorded: what is spared there changes no decision.

The scheduler is ``greedy``, unless the scenario brings a configuration: it looks at marks that no other looks at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from makeway.config import Config, build_cluster
from makeway.errors import MakewayError
from makeway.record import Line
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.patience import Patience
from makeway_testing.strategies import Scenario

_State = tuple[object, ...]


def difference(scenario: Scenario, plugins: Mapping[str, Any]) -> str:
    """Say how a run comes out otherwise where it is recorded; empty: it does not."""
    told = _states(scenario, plugins, lambda line: None)
    alone = _states(scenario, plugins, None)
    for (now, one), (_, other) in zip(told, alone, strict=False):
        for name in {**one, **other}:
            if one.get(name) != other.get(name):
                shown = f"{_words(one.get(name))} where it is recorded, {_words(other.get(name))} where not"
                return f"at {now:g} s job {name} is {shown}"
    return (
        "" if len(told) == len(alone) else f"{len(told)} steps where it is recorded, {len(alone)} where not"
    )


def _words(state: _State | None) -> str:
    return "gone" if state is None else " ".join(map(str, state))


def _states(
    scenario: Scenario, plugins: Mapping[str, Any], sink: Callable[[Line], None] | None
) -> list[tuple[float, dict[str, _State]]]:
    found: list[tuple[float, dict[str, _State]]] = []
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
    options = Options(
        until=scenario.until, sink=sink, after_step=look, plugins=plugins, keep=sink is not None
    )
    with contextlib.suppress(MakewayError):  # what raises, or never ends, is another rule's business
        replay(config, scenario.specs, events, options)
    return found


__all__ = ["difference"]

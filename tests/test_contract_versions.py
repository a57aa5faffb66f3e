"""The contract keeps its promises: arguments may be added at any time, and are optional."""

from __future__ import annotations

from typing import Any

import pytest

import makeway
from makeway import hookspecs
from makeway.errors import PluginError
from makeway.hookspecs import hookimpl
from makeway.registry import Policies
from makeway_app.replay import Options, replay
from makeway_testing import builders, cluster


def test_the_contract_has_the_version_of_the_core() -> None:
    """First two numbers, so that a requirement on makeway is one on the contract."""
    assert makeway.__version__.startswith(f"{hookspecs.CONTRACT_VERSION}.")


def test_plugins_take_those_that_they_name() -> None:
    """In any order, and a default gives way to what the contract has."""
    seen: list[tuple[Any, ...]] = []

    class Plugin:
        @staticmethod
        @hookimpl
        def makeway_preempt_candidates(now: float = -1.0, view: Any = None) -> None:
            seen.append((now, view is not None))

    config = builders.config(cluster(1), {"preempt": "x/new", "preempt_mode": "requeue"})
    replay(config, builders.jobs("job run_time\na 5\nb 5"), (), Options(plugins={"x/new": Plugin}))
    assert seen[0] == (0.0, True)


def test_an_argument_of_a_newer_contract_keeps_its_default() -> None:
    """So one plugin serves both; a misspelt argument is no newer one."""
    seen: list[Any] = []

    class Newer:
        @staticmethod
        @hookimpl
        def makeway_preempt_candidates(preemptor: Any, budgets: Any = "none yet") -> None:
            seen.append(budgets)

    class Misspelt:
        @staticmethod
        @hookimpl
        def makeway_preempt_candidates(preemptor: Any, veiw: Any = None) -> None:
            """Never called."""

    config = builders.config(cluster(1), {"preempt": "x/new", "preempt_mode": "requeue"})
    replay(config, builders.jobs("job run_time\na 5\nb 5"), (), Options(plugins={"x/new": Newer}))
    assert set(seen) == {"none yet"}
    with pytest.raises(PluginError, match=r"unknown argument 'veiw'.*did you mean 'view'"):
        Policies(config, {"x/new": Misspelt})

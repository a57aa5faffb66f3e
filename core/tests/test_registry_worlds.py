"""One world is found by its name, and built from cluster, settings and state."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config, WorldTable, build_cluster
from makeway.errors import ConfigError, PluginError
from makeway.hookspecs import hookimpl
from makeway.registry import build_world, full_name, world_settings
from makeway.worlds.api import State, Survey
from makeway.worlds.clock import FakeClock
from makeway_testing import builders


@attrs.frozen
class Settings:
    """One key."""

    poll: float = 1.0


class Still:
    """A world in which nothing happens."""

    def __init__(self, cluster: Any, settings: Any, state: State) -> None:
        self.given = cluster, settings, state

    def perform(self, actions: Any, now: float) -> None:
        """Do nothing."""

    def wait(self, until: float | None) -> None:
        """Say that nothing will ever happen."""

    def survey(self) -> Survey:
        """See nothing."""
        return Survey(at=0.0)


def plugin(world: Any, settings: Any = Settings) -> types.ModuleType:
    """Return a plugin that offers `world`."""
    module = types.ModuleType("still")

    @hookimpl
    def makeway_world() -> Any:
        return world

    @hookimpl
    def makeway_settings() -> Any:
        return settings

    module.makeway_world, module.makeway_settings = makeway_world, makeway_settings  # type: ignore[attr-defined]
    return module


def config(**keys: Any) -> Config:
    """Return a configuration with a ``[world]`` table."""
    return attrs.evolve(builders.config(), world=WorldTable(name="still", **keys))


def built(offered: Any, tmp_path: Path, settings: Any = Settings, **keys: Any) -> Any:
    """Build the world of a plugin."""
    chosen = config(**keys)
    state = State(directory=tmp_path, clock=FakeClock())
    return build_world(chosen, build_cluster(chosen), state, {"world/still": plugin(offered, settings)})


def test_a_world_gets_cluster_settings_and_state(tmp_path: Path) -> None:
    """The settings are of the plugin's class, with the values of ``[world.settings]``."""
    world = built(Still, tmp_path)
    cluster, settings, state = world.given
    assert [node.name for node in cluster.nodes] == ["n1"]
    assert settings == Settings(poll=1.0)
    assert state.directory == tmp_path


def test_a_short_name_is_enough() -> None:
    """``local`` stands for ``world/local``."""
    assert full_name("local") == full_name("world/local") == "world/local"


def test_unknown_settings_are_named() -> None:
    """A mistyped key is an error with its path and the nearest one."""
    chosen = config(settings={"pol": 2.0})
    with pytest.raises(ConfigError, match=r"world\.settings\.pol: unknown key; did you mean 'poll'\?"):
        world_settings(chosen, {"world/still": plugin(Still)})


def test_settings_of_a_world_without_any_are_refused() -> None:
    """A table that nothing reads is an error."""
    chosen = config(settings={"poll": 2.0})
    with pytest.raises(ConfigError, match=r"world\.settings\.poll: plugin 'world/still' has no settings"):
        world_settings(chosen, {"world/still": plugin(Still, None)})


def test_an_unknown_world_names_the_installed() -> None:
    """So does a mistyped name."""
    chosen = attrs.evolve(config(), world=WorldTable(name="nowhere"))
    with pytest.raises(PluginError, match=r"no plugin named 'world/nowhere'; .*; installed: "):
        world_settings(chosen)


@pytest.mark.parametrize(
    ("offered", "told"),
    [
        pytest.param(lambda cluster, settings, state: object(), "has no method 'perform'", id="no methods"),
        pytest.param(lambda cluster: None, "cannot be built: TypeError", id="other arguments"),
        pytest.param(7, "returned 7; allowed: a class or function", id="no factory"),
    ],
)
def test_what_is_no_world_is_refused(offered: Any, told: str, tmp_path: Path) -> None:
    """The error names the plugin and what is wrong."""
    with pytest.raises(PluginError, match=told):
        built(offered, tmp_path)

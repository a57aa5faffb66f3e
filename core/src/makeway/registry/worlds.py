"""Find the one world that a configuration names, and build it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.config import Config
from makeway.errors import ConfigError, OutOfTime, PluginError, Problem
from makeway.model import Cluster
from makeway.registry.finding import Installed, load_all, place_of
from makeway.registry.fitting import manager_of, who_is
from makeway.registry.tables import settings_class
from makeway.settings import structure

PREFIX = "world/"
_METHODS = ("perform", "wait", "survey")


def full_name(name: str) -> str:
    """Return the name of a world as its entry point has it: ``local`` stands for ``world/local``."""
    return name if "/" in name else PREFIX + name


def build_world(config: Config, cluster: Cluster, state: Any, extra: Mapping[str, Any] | None = None) -> Any:
    """Build the world that ``[world]`` names.

    :param state: a `makeway.worlds.api.State`.
    :param extra: plugins by name that need no installation.
    :returns: a `makeway.worlds.api.World`.
    :raises PluginError: there is no such plugin, it offers no world, or it fails.
    :raises ConfigError: ``[world.settings]`` does not fit it, or the world refuses its settings.
    """
    name, plugin, item = _found(full_name(config.world.name), extra or {})
    who = who_is(name, item)
    factory = _factory(name, plugin, item)
    settings = _settings(config, who, plugin)
    try:
        world = factory(cluster, settings, state)
    except (ConfigError, PluginError):
        raise
    except (Exception, OutOfTime) as error:
        raise PluginError(f"{who}: its world cannot be built: {_shown(error)}") from error
    for method in _METHODS:
        if not callable(getattr(world, method, None)):
            raise PluginError(f"{who}: its world, a {type(world).__name__}, has no method {method!r}")
    return world


def world_settings(config: Config, extra: Mapping[str, Any] | None = None) -> Any:
    """Return the settings in force of the world that ``[world]`` names; None: it has none.

    :raises PluginError: there is no such plugin.
    :raises ConfigError: ``[world.settings]`` does not fit it.
    """
    name, plugin, item = _found(full_name(config.world.name), extra or {})
    return _settings(config, who_is(name, item), plugin)


def _found(name: str, extra: Mapping[str, Any]) -> tuple[str, Any, Installed | None]:
    return (name, extra[name], None) if name in extra else load_all([name])[0]


def _factory(name: str, plugin: Any, item: Installed | None) -> Any:
    who = who_is(name, item)
    manager = manager_of([(name, plugin, item)])
    try:
        answers = manager.hook.makeway_world()
    except (Exception, OutOfTime) as error:
        raise PluginError(f"{who}, hook makeway_world: raised {_shown(error)}") from error
    if not answers:
        raise PluginError(f"{who} is no world: it does not implement makeway_world, or has none to offer")
    if not callable(answers[0]):
        text = f"returned {answers[0]!r:.80}; allowed: a class or function"
        raise PluginError(f"{who}, hook makeway_world: {text}")
    return answers[0]


def _settings(config: Config, who: str, plugin: Any) -> Any:
    cls = settings_class(who, plugin)
    table = config.world.settings
    if cls is not None:
        return structure(table, cls, "config", "world.settings")
    if table:
        text = f"{who} has no settings"
        raise ConfigError("config", [Problem(f"world.settings.{key}", text) for key in table])
    return None


def _shown(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    return f"{text}{place_of(error)}"

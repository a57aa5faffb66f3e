"""Structure the settings of plugins, each by its own class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.config import Config
from makeway.errors import ConfigError, OutOfTime, PluginError, Problem, nearest
from makeway.registry.finding import Installed, installed, place_of
from makeway.registry.fitting import who_is
from makeway.settings import structure


def structured(
    config: Config, plugins: Sequence[tuple[str, Any, Installed | None]]
) -> Mapping[type[Any], Any]:
    """Return the settings in force by their class: those of the plugins, and the core's own.

    :raises PluginError: a plugin's class cannot be used.
    :raises ConfigError: with all problems of the tables.
    """
    problems: list[Problem] = []
    tables = config.policy.settings
    found: dict[type[Any], Any] = {
        type(config.policy.preemption): config.policy.preemption,
        type(config.policy.mcs): config.policy.mcs,
        type(config.policy): config.policy,
        type(config.scheduler): config.scheduler,
        type(config.workload): config.workload,
    }
    for name, plugin, item in plugins:
        cls = settings_class(who_is(name, item), plugin)
        table = tables.get(name, {})
        path = f'policy.settings."{name}"'
        if cls is None:
            problems += [Problem(f"{path}.{key}", f"plugin {name!r} has no settings") for key in table]
            continue
        try:
            found[cls] = structure(table, cls, "config", path)
        except ConfigError as error:
            problems += error.problems
    problems += _unowned(tables, [name for name, _, _ in plugins])
    if problems:
        raise ConfigError("config", problems)
    return found


def settings_class(who: str, plugin: Any) -> type[Any] | None:
    """Return the class of a plugin's settings; None: it has none.

    :raises PluginError: it cannot be used.
    """
    maker = getattr(plugin, "makeway_settings", None)
    try:
        cls = maker() if maker is not None else None
    except (Exception, OutOfTime) as error:
        text = f"raised {type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
        raise PluginError(f"{who}, hook makeway_settings: {text}{place_of(error)}") from error
    if cls is None:
        return None
    if not isinstance(cls, type) or not attrs.has(cls):
        raise PluginError(f"{who}, hook makeway_settings: the settings class is no attrs class: {cls!r:.80}")
    needed = [f.name for f in attrs.fields(cls) if f.init and f.default is attrs.NOTHING]
    if needed:
        text = f"settings without a default: {', '.join(needed)}; each must have one"
        raise PluginError(f"{who}, hook makeway_settings: {text}")
    untyped = [f.name for f in attrs.fields(cls) if f.init and f.type is None]
    if untyped:
        text = f"settings without a type: {', '.join(untyped)}; each must have one, as in {untyped[0]}: int = ..."
        raise PluginError(f"{who}, hook makeway_settings: {text}")
    return cls


def _unowned(tables: Mapping[str, Any], names: Sequence[str]) -> list[Problem]:
    # What is installed but not in use may have settings, so that policies can be compared by one key.
    known = {*names, *(item.name for item in installed())} if set(tables) - set(names) else set(names)
    return [
        Problem(
            f'policy.settings."{name}"',
            f"no plugin of that name is in use; in use: {', '.join(names)}{nearest(name, names)}",
        )
        for name in tables
        if name not in known
    ]

"""Say which plugins a configuration names, and as which scheduler each decides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

from makeway import vendors
from makeway.config import Config
from makeway.errors import PluginError, Problem
from makeway.registry.finding import installed, tool

KINDS = ("select", "preempt", "priority", "gang", "search", "protect", "plugins")
"""Keys of ``[policy]`` that name plugins."""

OFFERS = {
    "select": "makeway_selector",
    "preempt": "makeway_preempt_candidates",
    "priority": "makeway_priority",
    "gang": "makeway_gang",
    "search": "makeway_search",
    "protect": "makeway_protect",
}
"""Key of ``[policy]`` -> the hook that whatever it names has to implement."""
_NO_POLICY = {"makeway_world", "makeway_settings"}

_OF_ITS_OWN = ("makeway_check", "makeway_preempt_candidates")
"""Hooks of a policy that is another scheduler's, although it does not say of which."""


def names_in(config: Config) -> list[str]:
    """Return the plugins that `config` names, in the order in which they are asked."""
    policy = config.policy
    wanted = [*policy.plugins, policy.priority, policy.search, policy.preempt, gang_of(config), policy.select]
    wanted += policy.protect
    return list(dict.fromkeys(name for name in wanted if name is not None))


def gang_of(config: Config) -> str | None:
    """Return the gang plugin in force: the one named, else the built-in one if a mode asks for gang."""
    if config.policy.gang is not None:
        return config.policy.gang
    return "gang/timeslice" if "gang" in config.policy.preempt_mode else None


def misplaced(config: Config, hooks_of: Callable[[str], Collection[str]]) -> list[Problem]:
    """Return which keys name plugins of another kind, and where these belong.

    :param hooks_of: the hooks that a plugin implements.
    """
    policy = config.policy
    named: list[tuple[str, str]] = [("select", policy.select), ("preempt", policy.preempt)]
    named += [
        (key, name) for key in ("priority", "gang", "search") if (name := getattr(policy, key)) is not None
    ]
    named += [("protect", name) for name in policy.protect]
    found = []
    for key, name in named:
        hooks = hooks_of(name)
        if OFFERS[key] not in hooks:
            found.append(
                Problem(f"policy.{key}", f"{name!r} does not implement {OFFERS[key]}; {_belongs(hooks)}")
            )
    for name in policy.plugins:
        hooks = hooks_of(name)
        if "makeway_world" in hooks and _NO_POLICY.issuperset(hooks):
            found.append(Problem("policy.plugins", f"{name!r} decides nothing; {_belongs(hooks)}"))
    return found


def _belongs(hooks: Collection[str]) -> str:
    """Say which keys may name a plugin with these hooks."""
    keys = [f"policy.{key}" for key, hook in OFFERS.items() if hook in hooks]
    keys += ["world.name"] if "makeway_world" in hooks else []
    return f"it belongs in {', '.join(keys) or 'policy.plugins'}"


def vendor_of(name: str, plugin: Any) -> str:
    """Return as which scheduler a plugin decides; empty: it fits in with any.

    One that names candidates and checks the configuration by itself decides by rules of its own.

    :raises PluginError: its attribute is no name.
    """
    said = getattr(plugin, vendors.ATTRIBUTE, None)
    if said is None:
        return name if all(hasattr(plugin, hook) for hook in _OF_ITS_OWN) else ""
    if not isinstance(said, str) or not said:
        raise PluginError(f"plugin {name!r}: its {vendors.ATTRIBUTE} is {said!r:.80}; allowed: a name")
    return said


def scheduler_of(kind: str) -> Any:
    """Return the class of the scheduler that plans behind the main one; None: `kind` of scheduler has none.

    :raises PluginError: the distribution that brings it is not installed.
    """
    return _backfill() if kind == "backfill" else None


@functools.cache
def _backfill() -> Any:
    return tool("backfill", 'scheduler.type = "backfill"').Backfill


def missing_to_play(config: Config) -> str:
    """Say which plugins are missing to play; empty: none."""
    try:
        scheduler_of(config.scheduler.type)
    except PluginError as error:
        return f"cannot play: {error}"
    present = {item.name for item in installed()}
    absent = [name for name in names_in(config) if name not in present]
    names = ", ".join(map(repr, absent))
    return f"cannot play: no plugin named {names}" if names else ""

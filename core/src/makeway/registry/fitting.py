"""Say whether plugins fit the contract: names of hooks, their arguments, and markers."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pluggy

from makeway import hookspecs
from makeway.entry_points import one_look
from makeway.errors import OutOfTime, PluginError, nearest
from makeway.foreign import Dialect
from makeway.registry import finding
from makeway.registry.finding import GROUP, Installed, load, place_of

PREFIX = "makeway_"


def who_is(name: str, item: Installed | None) -> str:
    """Name a plugin, with its distribution if it has one."""
    return str(item) if item is not None else f"plugin {name!r}"


@functools.cache
def specified() -> dict[str, tuple[str, ...]]:
    """Return each hook with its arguments."""
    return {
        name: tuple(inspect.signature(spec).parameters)
        for name, spec in vars(hookspecs).items()
        if name.startswith(PREFIX)
    }


def manager_of(plugins: Sequence[tuple[str, Any, Installed | None]]) -> pluggy.PluginManager:
    """Return a manager that knows `plugins`, the last one asked first.

    :raises PluginError: one does not fit the contract.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    for name, plugin, item in plugins:
        who = who_is(name, item)
        finding.check_declaration(who, plugin)
        problems = misfits(manager, plugin)
        if problems:
            more = f"{len(problems)} problems: " if len(problems) > 1 else ""
            raise PluginError(f"{who} does not fit the contract: {more}{'; '.join(problems)}")
        try:
            manager.register(plugin, name=name)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise PluginError(f"{who} does not fit the contract: {error}") from None
    return manager


def misfits(manager: pluggy.PluginManager, plugin: Any) -> list[str]:
    """List what does not fit the contract, one phrase each."""
    hooks = specified()
    found: list[str] = []
    implemented = 0
    for name in dir(plugin):
        options: Mapping[str, Any] | None = manager.parse_hookimpl_opts(plugin, name)
        if options is None and not name.startswith(PREFIX):
            continue
        function = getattr(plugin, name)
        if isinstance(function, types.ModuleType):
            continue  # a package of that name, imported
        hook = (options or {}).get("specname") or name
        if hook not in hooks:
            close = nearest(hook, hooks) or nearest(PREFIX + hook, hooks)
            found.append(f"unknown hook {hook!r}{close}")
            continue
        implemented += 1
        if options is None:
            found.append(f"hook {hook}: it is not marked with @hookimpl, so it would never be called")
        elif options["wrapper"] or options["hookwrapper"]:
            found.append(f"hook {hook}: wrappers of other plugins' answers are not part of the contract")
        else:
            found += [f"hook {hook}: {text}" for text in _wrong_arguments(function, hook, hooks[hook])]
    if not implemented and not found:
        found.append(
            f"it implements no hook; hooks are functions named {PREFIX}... and marked with @hookimpl"
        )
    return found


def _wrong_arguments(function: Any, hook: str, allowed: Sequence[str]) -> list[str]:
    """List arguments that the hook does not have.

    One with a default may be unknown: it is for a newer contract, and keeps its default here.
    """
    shown = ", ".join(allowed) or "none"
    found = []
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["it is no function"]
    for parameter in parameters:
        name = parameter.name
        if name == "self":
            return [
                "it is a method that no object is there for; let the entry point name a module or an object"
            ]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            found.append(f"it takes {parameter}; allowed: arguments by name, out of {shown}")
        elif name not in allowed:
            close = nearest(name, allowed)
            if close or parameter.default is parameter.empty:
                found.append(f"unknown argument {name!r}; allowed: {shown}{close}")
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            found.append(f"argument {name!r} is keyword-only; leave out the '*'")
    return found


@attrs.frozen(kw_only=True)
class Described:
    """An installed plugin, looked at from close by."""

    installed: Installed
    hooks: tuple[str, ...] = ()
    """Hooks that it implements, by alphabet."""
    problem: str = ""
    """Why it cannot be used; empty: it can."""


def described() -> list[Described]:
    """Import every installed plugin and say what it implements, or why it cannot be used."""
    return [describe(item) for item in finding.installed()]


def describe(item: Installed) -> Described:
    """Import one plugin and say what it implements, or why it cannot be used."""
    try:
        return Described(installed=item, hooks=fits(item.name, load(item.name), item))
    except PluginError as error:
        return Described(installed=item, problem=str(error))


def fits(name: str, plugin: Any, item: Installed | None) -> tuple[str, ...]:
    """Return the hooks that a plugin implements, by alphabet.

    :raises PluginError: it does not fit the contract.
    """
    manager = manager_of([(name, plugin, item)])
    callers = manager.get_hookcallers(manager.get_plugin(name)) or []
    return tuple(sorted(caller.name for caller in callers))


@one_look()
def offered(part: str, of: str | None = None) -> tuple[list[Any], list[PluginError]]:
    """Return what all installed readers have of one part, each thing once, and what failed.

    They are the plugins ``reader/...``, and for recordings ``recordings/...``; no other is imported.

    :param part: configs, workloads, accounting or recordings.
    :param of: the one distribution to ask; None: all.
    """
    found: list[Any] = []
    failed: list[PluginError] = []
    kind = "recordings/" if part == "recordings" else "reader/"
    readers = [item for item in finding.installed() if item.name.startswith(kind)]
    asked = [item for item in readers if of is None or item.distribution == of]
    for name in dict.fromkeys(item.name for item in asked):
        try:
            plugin = load(name)
            more = [each for dialect in dialects(name, plugin) for each in _part(dialect, part)]
        except PluginError as error:
            failed.append(error)
            continue
        found += [each for each in more if each not in found]
    return found, failed


def _part(dialect: Dialect, part: str) -> Sequence[Any]:
    value = getattr(dialect, part)
    return value if isinstance(value, Sequence) else [value] if value is not None else []


def dialects(name: str, plugin: Any) -> list[Dialect]:
    """Return what one plugin hands over: a dialect or none.

    :raises PluginError: it does not fit the contract, fails, or hands over something else.
    """
    return list(_dialects(name, _Itself(plugin), finding.offers(name)))


@attrs.frozen
class _Itself:
    """A plugin as a key; it may be an object that cannot be hashed."""

    plugin: Any = attrs.field(eq=id)


@functools.cache
def _dialects(name: str, of: _Itself, item: Installed | None) -> list[Dialect]:
    """Ask once: each command looks for readers of several kinds."""
    manager = manager_of([(name, of.plugin, item)])
    who = f"{who_is(name, item)}, hook makeway_dialect"
    try:
        found = manager.hook.makeway_dialect()
    except (Exception, OutOfTime) as error:
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
        raise PluginError(f"{who}: raised {text}{place_of(error)}") from error
    wrong = [each for each in found if not isinstance(each, Dialect)]
    if wrong:
        raise PluginError(f"{who}: returned {wrong[0]!r:.80}; allowed: a Dialect")
    return list(found)

"""Find installed plugins by their entry points, and import them by name."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

import attrs

from makeway.catalogue import bringer, missing
from makeway.entry_points import points
from makeway.errors import OutOfTime, PluginError, nearest
from makeway.hookspecs import CONTRACT_VERSION
from makeway.registry.versions import fits, wanted_by

GROUP = "makeway"
TOOLS = "makeway.tools"
DECLARATION = "__makeway_contract__"
"""Attribute of a plugin that says for which versions of the contract it is written, as ``>=0.1,<0.3``."""
OWN = frozenset({"makeway", "makeway_app", "makeway_engine"})
"""Packages that are makeway itself; all others that decide are plugins."""
_NOT_A_PLUGIN = sys.stdlib_module_names | {"attr", "attrs", "None"}
"""Where an error may come up that a plugin's own line has brought about."""


@attrs.frozen(kw_only=True)
class Installed:
    """One name that an installed distribution offers."""

    name: str
    target: str
    """Module that implements it."""
    distribution: str
    version: str
    wants: str = ""
    """Versions of makeway that the distribution requires; empty: any."""

    def __str__(self) -> str:
        return f"plugin {self.name!r} of {self.distribution} {self.version}"


def installed() -> list[Installed]:
    """Return what is installed, by name; nothing is imported."""
    return sorted(set(map(_described, points(GROUP))), key=_place)


def _place(item: Installed) -> tuple[str, str, str]:
    return item.name, item.distribution, item.version


def _described(point: metadata.EntryPoint) -> Installed:
    name, version, requires = _distribution(point.dist) if point.dist else ("?", "?", ())
    return Installed(
        name=point.name, target=point.value, distribution=name, version=version, wants=wanted_by(requires)
    )


@functools.lru_cache(maxsize=256)
def _distribution(dist: metadata.Distribution) -> tuple[str, str, tuple[str, ...]]:
    """Return name, version and requirements; each property of `dist` would read and parse its file again.

    Kept for one look at the installed distributions: the next one makes other objects.
    """
    said = dist.metadata
    return said["Name"], said["Version"], tuple(said.get_all("Requires-Dist") or dist.requires or ())


@functools.cache
def running_version() -> str:
    """Return the version of the core that runs."""
    try:
        return metadata.version("makeway-core")
    except metadata.PackageNotFoundError:
        return CONTRACT_VERSION


def how_to_get(name: str) -> str:
    """Say how a plugin that is not installed can be had.

    Names of other packages are not guessed: anyone may register them.
    """
    ours = bringer("plugins", name)
    if ours is not None:
        return f"'pip install {ours}' brings it"
    return (
        "its own documentation says which package brings it, and its name must stand among the entry points of "
        f"the group {GROUP!r}; a file of your own is named by --plugin {name}=FILE"
    )


def pip_name(name: str) -> str:
    """Return the name that this project's rule gives to a new package with the plugin `name`."""
    return "makeway-" + name.replace("/", "-").replace("_", "-")


def tool(name: str, option: str) -> Any:
    """Return a module that another distribution adds to the command line (entry points ``makeway.tools``).

    :param option: what asks for it, for the message if it is not there.
    :raises PluginError: no distribution brings it, or it cannot be imported.
    """
    for point in points(TOOLS, name=name):
        try:
            return point.load()
        except ImportError as error:
            raise PluginError(f"{point.value}, which {option} needs, cannot be imported: {error}") from error
    raise PluginError(missing(option))


def offers(name: str) -> Installed | None:
    """Return what offers the plugin `name`; None: nothing does.

    :raises PluginError: more than one does.
    """
    found = _offer(name, points(GROUP))
    return found[1] if found else None


def _offer(name: str, listed: Iterable[metadata.EntryPoint]) -> tuple[metadata.EntryPoint, Installed] | None:
    offered = {_described(point): point for point in listed if point.name == name}
    if len(offered) > 1:
        both = ", ".join(f"{item.distribution} {item.version}" for item in sorted(offered, key=_place))
        raise PluginError(f"two distributions offer a plugin named {name!r}: {both}; uninstall one")
    return next(((point, item) for item, point in offered.items()), None)


def load(name: str) -> Any:
    """Import the plugin called `name`.

    :raises PluginError: if it is unknown, offered twice, written for another version of the contract, or
        cannot be imported.
    """
    return load_all([name])[0][1]


def load_all(names: Sequence[str]) -> list[tuple[str, Any, Installed]]:
    """Import plugins; return each name with the plugin and what offers it.

    :raises PluginError: as `load`, for the first that cannot be had.
    """
    found = list(points(GROUP))
    return [(name, *_load(name, found)) for name in names]


def _nearest(name: str, names: Sequence[str]) -> str:
    """Name the plugin that was meant; one that lacks only its kind, or has another one, is nearer than any other."""
    same = [each for each in names if each.rpartition("/")[2] == name.rpartition("/")[2]]
    return nearest(name, same) or nearest(name, names)


def _load(name: str, listed: Sequence[metadata.EntryPoint]) -> tuple[Any, Installed]:
    found = _offer(name, listed)
    if found is None:
        names = sorted({point.name for point in listed})
        raise PluginError(
            f"no plugin named {name!r}{_nearest(name, names)}; {how_to_get(name)}; "
            f"installed: {', '.join(names) or 'none'}"
        )
    point, item = found
    _check_version(str(item), item.wants, running_version(), "requires makeway")
    try:
        plugin = point.load()
    except OutOfTime as error:
        raise PluginError(f"{item} cannot be imported: {error}{place_of(error)}") from error
    except (Exception, SystemExit) as error:  # a module that ends the program is no plugin either
        shown = f"{type(error).__name__}: {error}"
        raise PluginError(f"{item} cannot be imported: {shown}{place_of(error)}") from error
    check_declaration(str(item), plugin)
    return plugin, item


def check_declaration(who: str, plugin: Any) -> None:
    """Hold what a plugin itself says about the contract against this one.

    :raises PluginError: it is written for another version.
    """
    declared = getattr(plugin, DECLARATION, "")
    if not isinstance(declared, str):
        raise PluginError(f"{who}: its {DECLARATION} is {declared!r:.80}; allowed: versions, as '>=0.1,<0.2'")
    _check_version(who, declared, CONTRACT_VERSION, "is written for contract")


def _check_version(who: str, wanted: str, running: str, says: str) -> None:
    if not wanted:
        return
    try:
        good = fits(running, wanted)
    except ValueError:
        raise PluginError(f"{who} {says} {wanted!r}; allowed: versions, as '>=0.1,<0.2'") from None
    if not good:
        raise PluginError(
            f"{who} {says} {wanted}, but this is makeway {running_version()} with contract "
            f"{CONTRACT_VERSION}; install a version of the plugin for it, or the makeway that it wants"
        )


def place_of(error: BaseException) -> str:
    """Return `` (policy.py, line 7, in candidates)`` for where something was raised; empty: in no plugin."""
    trace, found = error.__traceback__, None
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        if not is_core(name) and name.partition(".")[0] not in _NOT_A_PLUGIN:
            found = trace
        trace = trace.tb_next
    if found is None:
        return ""
    code = found.tb_frame.f_code
    file = "/".join(code.co_filename.replace("\\", "/").split("/")[-2:])
    within = "" if code.co_name.startswith("<") else f", in {code.co_name}"
    return f" ({file}, line {found.tb_lineno}{within})"


def is_core(module: str) -> bool:
    """Whether a module is makeway itself, not a plugin that it brings."""
    return module.partition(".")[0] in OWN and not module.startswith("makeway.builtin.")

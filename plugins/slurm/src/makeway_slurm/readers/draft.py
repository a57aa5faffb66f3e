"""Collect what the parts of the slurm.conf reader find: problems, warnings and places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import attrs

from makeway.config import short_name
from makeway.errors import Problem, nearest
from makeway.foreign import LeftOut
from makeway_slurm.readers.conf_parts import Record, Setting, SlurmConf, shown
from makeway_slurm.readers.defaults import is_default, is_switched_off
from makeway_slurm.readers.topologies import Topology
from makeway_slurm.readers.values import OptionValues
from makeway_slurm_rules.rules import version

T = TypeVar("T")

Places = dict[str, dict[str, None]]
"""Parameter -> its places, in order, each once."""

_SHOWN_PLACES = 3


@attrs.define(eq=False)
class Draft:
    """One slurm.conf on its way to a `Config`; nothing raises, all is noted."""

    conf: SlurmConf
    release: str | None = None
    """None: the file may be of any release; the newest one's defaults count."""
    problems: list[Problem] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    places: dict[str, str] = attrs.field(factory=dict)
    """Path in the config -> ``file:line Key``."""
    bad: set[str] = attrs.field(factory=set)
    """Paths whose value could not be read, so that nothing is concluded from their default."""
    unmodelled: Places = attrs.field(factory=dict)
    """They may change a replay."""
    harmless: Places = attrs.field(factory=dict)
    """They cannot."""
    refused: list[str] = attrs.field(factory=list)
    """What the release does not start with, though a replay can do with it."""
    topologies: tuple[Topology, ...] = ()
    """Those of a topology.yaml beside the file; empty: there is none."""
    told: set[str] = attrs.field(factory=set)
    """Parameters, in lower case, that a sentence of its own is about."""
    parameters: dict[str, Setting] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.parameters = self.conf.parameters()

    def since(self, release: str) -> bool:
        """Say whether the file's release is `release` or newer; an unknown one is the newest."""
        return self.release is None or version(self.release) >= version(release)

    @property
    def multifactor(self) -> bool:
        """Whether priority/multifactor is in force, which it is by default since 23.11."""
        kind = self.get("PriorityType")
        return self.since("23.11") if kind is None else kind.value.lower() == "priority/multifactor"

    def get(self, key: str) -> Setting | None:
        """Return a simple parameter, or None."""
        return self.parameters.get(key.lower())

    def read(self, setting: Setting | None, parse: Callable[[str], T], default: T, path: str = "") -> T:
        """Translate one value; `default` if it is not given or wrong.

        :param path: where it goes in the config, so that later complaints find the line.
        """
        if setting is None:
            return default
        if path:
            self.places[path] = setting.where
        try:
            return parse(setting.value)
        except ValueError as error:
            self.problems.append(setting.problem(str(error)))
            self.bad.add(path)
            return default

    def read_plugin(
        self, setting: Setting | None, allowed: tuple[str, ...], default: str, path: str = ""
    ) -> str:
        """Translate the name of a plugin; slurmctld finds it in lower case only."""
        name = self.read(setting, one_of(allowed, "Slurm has no such plugin to load"), default, path)
        if setting is not None and name != setting.value and name in allowed and path not in self.bad:
            self.refuser(setting)(f"got {shown(setting.value)}; taken as {name}")
        return name

    def warn(self, at: Setting | Record, message: str) -> None:
        """Note a sentence about one place of the file."""
        self.warnings.append(f"{at.where}: {message}")

    def refuse(self, at: Setting | Record, message: str) -> None:
        """Note what Slurm would not start with, where it is clear what is meant."""
        self.refused.append(f"{at.where}: {message}")

    def refuser(self, at: Setting) -> Callable[[str], None]:
        """Return what a value parser calls about a value that slurmctld does not take."""
        return lambda message: self.refuse(at, f"{message}; slurmctld does not start with it")

    def reporter(self, at: Setting) -> Callable[[str], None]:
        """Return what a value parser calls about a value that is not taken as written."""
        return lambda message: self.warn(at, message)

    def leave_out(self, key: str, at: Setting | Record, relevant: bool = True) -> None:
        """Note a parameter that is known to Slurm but has no place in the config; not if it is at its default."""
        if isinstance(at, Setting):
            if at.canonical in self.told or is_default(at):
                return
            relevant = relevant and not is_switched_off(at.canonical, self.get, multifactor=self.multifactor)
        into = self.unmodelled if relevant else self.harmless
        into.setdefault(key, {})[f"{short_name(at.file)}:{at.line}"] = None

    def in_file_order(self) -> list[Problem]:
        """Return the problems in reading order, each once."""
        order = {where: at for at, where in enumerate(_all_places(self.conf))}
        unique = dict.fromkeys(self.problems)
        return sorted(unique, key=lambda problem: order.get(problem.where, len(order)))


# ------------------------------------------------------------------------------------ parsers
def one_of(allowed: tuple[str, ...], reason: str = "") -> Callable[[str], str]:
    """Return a parser of one of some words in any case."""

    def parse(text: str) -> str:
        word = text.lower()
        if word in allowed:
            return word
        why = f"; {reason}" if reason else ""
        raise ValueError(f"got {shown(text)}{why}; allowed: {', '.join(allowed)}{nearest(word, allowed)}")

    return parse


Parsed = tuple[OptionValues, list[str]]


def reporting(
    parse: Callable[[str, Callable[[str], object]], Parsed], draft: Draft, setting: Setting
) -> Callable[[str], Parsed]:
    """Bind a parser of options to what notes its reports."""
    return lambda text: parse(text, draft.reporter(setting))


# ------------------------------------------------------------------------------------- places
def _all_places(conf: SlurmConf) -> Iterable[str]:
    """Yield all places in reading order."""
    for entry in conf.entries:
        yield entry.where
        if isinstance(entry, Record):
            yield from (setting.where for setting in entry.settings)


def left_out(found: Places) -> tuple[LeftOut, ...]:
    """Return parameters by alphabet, each with its places."""
    keys = sorted(found, key=lambda key: (key.lower(), key))
    return tuple(LeftOut(name=key, places=tuple(found[key])) for key in keys)


def in_one_line(found: Places) -> str:
    """Name parameters by alphabet, each with its first places."""
    return ", ".join(f"{each.name} ({_few(each.places)})" for each in left_out(found))


def _few(places: Sequence[str]) -> str:
    """Return up to three places, naming a file once for neighbours."""
    shown: list[str] = []
    file = ""
    for place in places[:_SHOWN_PLACES]:
        name, _, line = place.rpartition(":")
        shown.append(line if name == file else place)
        file = name
    more = len(places) - _SHOWN_PLACES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

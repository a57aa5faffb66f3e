"""Read power saving: after how long which nodes are switched off, and how long they take to boot.

slurm.conf(5): a node in several partitions that say something takes the longest of their times; one in none of these
takes the cluster's. Nodes of SuspendExcNodes and SuspendExcParts stay on, or, of a list with ``:COUNT``, so many that
have no job.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator

import attrs

from makeway.config import NodeTable, StayOnTable
from makeway.errors import nearest
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway_slurm.readers.conf_parts import shown
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.values import parse_seconds

_BOOT = 60.0
"""ResumeTimeout where nothing says it."""
Resolve = Callable[[str], str]
"""Returns a host list of nodes, or ALL, for the Nodes of a partition."""


@attrs.define(eq=False)
class Power:
    """What becomes of idle nodes."""

    idle: float = math.inf
    """Seconds until one is switched off."""
    boot: float = _BOOT
    idle_of: dict[str, float] = attrs.field(factory=dict)
    """Of nodes whose partitions say so."""
    boot_of: dict[str, float] = attrs.field(factory=dict)
    always_on: frozenset[str] = frozenset()
    stay_on: tuple[StayOnTable, ...] = ()
    in_use: bool = False

    def split(self, table: NodeTable, *, cloud: bool) -> Iterator[NodeTable]:
        """Yield nodes with what power saving does to them, those that are treated alike together.

        :param cloud: whether they are off at the beginning.
        """
        if not self.in_use:
            yield table
            return
        alike: dict[tuple[float, float] | None, list[str]] = {}
        for name in expand_hostlist(table.name):
            alike.setdefault(None if name in self.always_on else self._of(name), []).append(name)
        for times, names in alike.items():
            part = table if len(alike) == 1 else attrs.evolve(table, name=fold_hostlist(names))
            if times is not None and (cloud or times[0] < math.inf):
                idle = None if times[0] == math.inf else times[0]
                part = attrs.evolve(part, off=cloud, off_after=idle, boot_time=times[1])
            yield part

    def _of(self, name: str) -> tuple[float, float]:
        return self.idle_of.get(name, self.idle), self.boot_of.get(name, self.boot)


def read_power(draft: Draft, resolve: Resolve, names: Iterable[str]) -> Power:
    """Translate power saving, which needs both programs, and a time of the cluster or of a partition.

    :param names: all nodes.
    """
    power = Power(
        idle=draft.read(draft.get("SuspendTime"), _parse_suspend_time, math.inf),
        boot=float(draft.read(draft.get("ResumeTimeout"), parse_seconds, _BOOT)),
    )
    members = dict(_members(draft, resolve, names))
    power.idle_of = _longest(draft, members, "SuspendTime", _parse_suspend_time)
    power.boot_of = _longest(draft, members, "ResumeTimeout", parse_seconds)
    programs = [draft.get(key) for key in ("SuspendProgram", "ResumeProgram")]
    if min((power.idle, *power.idle_of.values())) == math.inf or not all(
        each is not None and each.value for each in programs
    ):
        return Power()
    power.in_use = True
    power.always_on = frozenset(_exceptions(draft, members))
    some = draft.get("SuspendExcNodes")
    none: tuple[StayOnTable, ...] = ()
    power.stay_on = draft.read(some, _parse_few, none)
    if some is not None:
        draft.places.update({f"stay_on[{at}]": some.where for at in range(len(power.stay_on))})
    said = ", ".join(f"{each:g}" for each in sorted({power.boot, *power.boot_of.values()}))
    draft.warnings.append(
        f"a node that is switched off takes ResumeTimeout={said} to boot, the longest that Slurm waits for it; "
        "--set node.*.boot_time=SECONDS says what it really takes"
    )
    return power


def _members(draft: Draft, resolve: Resolve, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each partition with its nodes; a wrong list is told where partitions are read."""
    every = list(names)
    for record in draft.conf.records("PartitionName"):
        listed = record.get("Nodes")
        try:
            found = "" if listed is None else resolve(listed.value)
        except ValueError:
            continue
        yield record.name, every if found == "ALL" else expand_hostlist(found) if found else []


def _longest(
    draft: Draft, members: dict[str, list[str]], key: str, parse: Callable[[str], float]
) -> dict[str, float]:
    """Return the longest time that partitions give for each node; others are left out."""
    found: dict[str, float] = {}
    for record in draft.conf.records("PartitionName"):
        setting = record.get(key)
        value = None if setting is None else draft.read(setting, parse, None)
        if value is not None:
            found.update({name: max(found.get(name, 0.0), value) for name in members.get(record.name, ())})
    return found


def _exceptions(draft: Draft, members: dict[str, list[str]]) -> Iterator[str]:
    """Yield the nodes that stay on."""
    none: list[str] = []
    yield from draft.read(draft.get("SuspendExcNodes"), _parse_exceptions, none)
    setting = draft.get("SuspendExcParts")
    if setting is None:
        return
    for name in filter(None, (each.strip() for each in setting.value.split(","))):
        if name not in members:
            draft.warn(
                setting, f"no partition named {shown(name)}; it is passed over{nearest(name, members)}"
            )
        yield from members.get(name, ())


def _parse_suspend_time(text: str) -> float:
    """Return after how many idle seconds nodes are switched off; infinite: never."""
    return math.inf if text.lower() in ("infinite", "-1") else float(parse_seconds(text))


_LIST = r"(?:[^,\[\]]|\[[^\]]*\])+"
"""A list without a comma but in brackets."""


def _parse_exceptions(text: str) -> list[str]:
    """Return the nodes that stay on whatever happens."""
    return [name for each in re.findall(_LIST, text) if ":" not in each for name in expand_hostlist(each)]


def _parse_few(text: str) -> tuple[StayOnTable, ...]:
    """Return the lists of which so many stay on: ``n[1-9]:4``."""
    parts = [each.strip().partition(":") for each in re.findall(_LIST, text)]
    for names, colon, count in parts:
        if colon and not (names and count.isascii() and count.isdigit()):
            raise ValueError(f"got {names}{colon}{count}; allowed: nodes, a colon, how many stay on")
    return tuple(StayOnTable(nodes=names, count=int(count)) for names, colon, count in parts if colon)

"""Know the schedulers whose behaviour a run can take on: their rules, releases, clocks and words.

A distribution that knows a scheduler offers a `Vendor` under an entry point of the group ``makeway.vendors``, named
like the vendor; several may each say a part of what is known of one. A plugin that decides as this scheduler does says
so by an attribute, ``__makeway_vendor__ = "name"``. The vendor of the first plugin in use that has one *leads* the
run: its checks apply and its words are shown. Rules of vendors that are in use without leading apply too, save those
that they keep for themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, Protocol

import attrs

from makeway.clockwork import PRESETS, Clockwork
from makeway.entry_points import points
from makeway.errors import Finding, MakewayError, PluginError
from makeway.model import NOTHING, StatusCommand, Vocabulary
from makeway.switches import SWITCHES

GROUP = "makeway.vendors"
ATTRIBUTE = "__makeway_vendor__"
"""Attribute of a plugin that names the scheduler as which it decides."""


class Scheduler(Protocol):
    """What is looked at of ``[scheduler]``; `makeway.config.SchedulerTable` has it, and each vendor's release."""

    @property
    def rules(self) -> Mapping[str, bool]:
        """``[scheduler.rules]``."""


@attrs.frozen(kw_only=True)
class Vendor:
    """What is known of one scheduler's behaviour; all of it is data or pure functions."""

    name: str
    """As in ``__makeway_vendor__``, and in the key ``scheduler.<name>_release``."""
    title: str
    """As people write it."""
    rules: Mapping[str, str] = NOTHING
    """Rule -> a sentence about what happens while it is in force; names of `makeway.switches.SWITCHES` among them."""
    in_force: Callable[[Any], Mapping[str, bool]] | None = None
    """Given the `makeway.config.SchedulerTable`, says which of the rules hold by the release that it states; None: the
    vendor has none."""
    defects: frozenset[str] = frozenset()
    """Rules that are faults of this scheduler; never on where jobs are real."""
    changes: Mapping[str, str] = NOTHING
    """Rule that came or went with a release -> that release; those of earlier releases stand first."""
    own: frozenset[str] = frozenset()
    """Rules that hold only where this vendor leads."""
    releases: tuple[str, str] | None = None
    """Oldest and newest release that is known; None: the vendor's releases are all alike."""
    stated: Callable[[str], str] = str
    """Returns a release as people state it; raises ValueError for what is none."""
    clockworks: Mapping[str, Clockwork] = NOTHING
    """Presets of ``scheduler.clockwork``."""
    vocabulary: Vocabulary | None = None
    """Words for what is shown to people, where no plugin in use has its own; None: makeway's."""
    tables: tuple[StatusCommand, ...] = ()
    """Further commands with which its users look at a cluster, beside the one of its `vocabulary`."""
    check: Callable[[Any], Iterable[Finding]] | None = None
    """Finds what the scheduler would refuse, ignore or do unexpectedly in a valid `makeway.config.Config`; None:
    nothing."""
    sections: Mapping[str, str] = NOTHING
    """Last word of a path in the configuration -> rule that says why a single value is wrong."""
    spellings: Mapping[str, str] = NOTHING
    """Things of a `Vocabulary` as its plugins name them -> as makeway does."""

    formats: tuple[str, ...] = ()
    """Formats of workloads that its distribution reads, for the help."""
    accounting: str = ""
    """What writes the files of ``--accounting``, for the help; empty: it knows none."""

    def release_of(self, scheduler: Scheduler) -> str | None:
        """Return the release that a configuration states; None: none."""
        return getattr(scheduler, self.release_key, None)

    @property
    def release_key(self) -> str:
        """The key of ``[scheduler]`` that states the release."""
        return f"{self.name}_release"


@functools.cache
def vendors() -> tuple[Vendor, ...]:
    """Return the vendors that are installed, by name.

    :raises PluginError: one cannot be imported, or is none, or two distributions say different things of it.
    """
    found: dict[str, Vendor] = {}
    for point in sorted(set(points(GROUP)), key=lambda point: (point.name, point.value)):
        part = _loaded(point)
        found[part.name] = _joined(found[part.name], part) if part.name in found else part
    return tuple(found.values())


def _joined(one: Vendor, other: Vendor) -> Vendor:
    """Return one vendor with all that two distributions say of it."""
    said = {}
    for field in attrs.fields(Vendor):
        value = getattr(other, field.name)
        if value != field.default:
            said[field.name] = value
            if getattr(one, field.name) not in (field.default, value):
                raise PluginError(
                    f"vendor {one.name!r}: two distributions state its {field.name}; allowed: one"
                )
    return attrs.evolve(one, **said)


def _loaded(point: metadata.EntryPoint) -> Vendor:
    who = f"vendor {point.name!r} of {point.dist.name if point.dist else '?'}"
    try:
        found: Any = point.load()
    except MakewayError:
        raise
    except Exception as error:
        raise PluginError(f"{who} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, Vendor) or found.name != point.name:
        raise PluginError(f"{who}: {point.value} is {found!r:.80}; allowed: a Vendor of that name")
    return found


def usable() -> tuple[Vendor, ...]:
    """Return the vendors that are installed; none if one of them is broken, which `vendors` tells."""
    try:
        return vendors()
    except PluginError:
        return ()


def named(name: str | None) -> Vendor | None:
    """Return the vendor called `name`; None: it is not installed, or says nothing of itself."""
    return next((vendor for vendor in vendors() if vendor.name == name), None)


def of_releases() -> Vendor | None:
    """Return the vendor that ``--release`` is about: the first whose releases differ; None: none is installed."""
    return next((vendor for vendor in vendors() if vendor.releases is not None), None)


def of_accounting() -> Vendor | None:
    """Return the vendor whose files ``--accounting`` takes: the first that has some; None: none is installed."""
    return next((vendor for vendor in vendors() if vendor.accounting), None)


def rule_names() -> list[str]:
    """Return all rules that ``[scheduler.rules]`` may set."""
    return list(dict.fromkeys([*(rule for vendor in vendors() for rule in vendor.rules), *SWITCHES]))


def defects() -> frozenset[str]:
    """Return all rules that are faults of some scheduler: a model of it has them, a world of real jobs never."""
    own = frozenset(name for name, switch in SWITCHES.items() if switch.defect)
    return own.union(*(vendor.defects for vendor in vendors()))


def without_defects(rules: Mapping[str, bool]) -> dict[str, bool]:
    """Return `rules` with all defects off: for a look ahead of a world whose jobs are real."""
    return {**rules, **dict.fromkeys(defects(), False)}


def rules_in_force(
    scheduler: Scheduler, in_use: Sequence[str] = (), *, real: bool = False
) -> dict[str, bool]:
    """Return rule -> whether it holds in a run.

    :param in_use: vendors of the plugins in use; the first one leads.
    :param real: whether jobs are really run; then no defect holds, whatever the configuration says.
    """
    found = {name: switch.default for name, switch in SWITCHES.items()}
    for vendor in vendors():
        known = vendor.name in in_use or vendor.release_of(scheduler) is not None
        if vendor.in_force is None or not known:
            continue
        leads = not in_use or in_use[0] == vendor.name
        found |= {
            rule: holds and (leads or rule not in vendor.own)
            for rule, holds in vendor.in_force(scheduler).items()
        }
    found |= scheduler.rules
    return without_defects(found) if real else found


def clockworks() -> Mapping[str, Clockwork]:
    """Return all presets of ``scheduler.clockwork``, the core's first."""
    return {**PRESETS, **{name: each for vendor in vendors() for name, each in vendor.clockworks.items()}}


def spellings(name: str) -> list[str]:
    """Return what vendors call something that makeway calls `name`."""
    return [theirs for vendor in usable() for theirs, ours in vendor.spellings.items() if ours == name]


def spelled(name: str) -> str:
    """Return makeway's own name of what a vendor may call `name`."""
    return next((vendor.spellings[name] for vendor in vendors() if name in vendor.spellings), name)

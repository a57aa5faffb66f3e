"""Find what Slurm would refuse, ignore or do unexpectedly in a configuration.

``error`` means that Slurm does not start with it, ``warning`` that something is ignored or that it
does what few people expect, ``note`` that it is worth knowing. A configuration that is wrong by
itself (unknown QOS, bad host list) gives just these errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from makeway.config import Config, validate
from makeway.errors import ConfigError
from makeway.model import NOTHING
from makeway_slurm.check.facts import (
    MIN_TIMESLICE,
    TIMESLICE,
    Facts,
    Finding,
    Level,
    of_partition,
    partition_select_is_ignored,
    place_of,
)
from makeway_slurm.check.memory import MEMORY
from makeway_slurm.check.modes import MODES
from makeway_slurm.check.options import OPTIONS
from makeway_slurm.check.sharing import SHARING
from makeway_slurm_rules.vendor import SECTIONS

FAMILIES: tuple[Callable[[Facts], Iterable[Finding]], ...] = (*MODES, *OPTIONS, *SHARING, *MEMORY)
"""All families of rules, in the order in which they report."""


def check(
    config: Config, imported_notes: Iterable[str] = (), places: Mapping[str, str] = NOTHING
) -> tuple[Finding, ...]:
    """Return all findings: notes of the import, then errors of values, else of combinations.

    :param imported_notes: `Loaded.warnings` of a foreign file.
    :param places: `Loaded.places`, so that findings name its lines.
    """
    notes = (Finding(level="warning", where="", message=note) for note in imported_notes)
    wrong = tuple(wrong_values(config))
    found = wrong or tuple(combinations(config))
    return (*notes, *(finding.at(places) for finding in found))


def wrong_values(config: Config) -> Iterator[Finding]:
    """Yield what `validate` objects to."""
    try:
        validate(config, "config")
    except ConfigError as error:
        for problem in error.problems:
            section = SECTIONS.get(problem.where.rpartition(".")[2], "")
            yield Finding.of(problem, section=section)


def combinations(config: Config) -> Iterator[Finding]:
    """Yield what is wrong or odd about a configuration that `validate` has passed."""
    facts = Facts.of(config)
    for family in FAMILIES:
        yield from family(facts)


__all__ = [
    "MIN_TIMESLICE",
    "TIMESLICE",
    "Facts",
    "Finding",
    "Level",
    "check",
    "combinations",
    "of_partition",
    "partition_select_is_ignored",
    "place_of",
    "wrong_values",
]

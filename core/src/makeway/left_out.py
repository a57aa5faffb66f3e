"""Hold what a reader has to say of a configuration: what it left out, and what it took otherwise."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway.model import NOTHING


@attrs.frozen(kw_only=True)
class LeftOut:
    """A parameter that a foreign file sets and that is not modelled."""

    name: str
    """As the scheduler's manual spells it; of a record with its kind: ``PartitionName AllowGroups``."""
    places: tuple[str, ...] = ()
    """``file:line`` of each, in order."""


@attrs.frozen(kw_only=True)
class Said:
    """What a reader of a configuration has to say."""

    warnings: tuple[str, ...] = ()
    """One line each."""
    refused: tuple[str, ...] = ()
    """What the scheduler would not start with, though a replay can do with it; an error for ``check --strict``."""
    matters: tuple[str, ...] = ()
    """What decides at this site and is not modelled, a sentence each; said beside the results too."""
    unmodelled: tuple[LeftOut, ...] = ()
    """Parameters that may matter."""
    idle: tuple[LeftOut, ...] = ()
    """Parameters without influence on a replay; shown on request."""
    places: Mapping[str, str] = NOTHING
    """Path in the config -> ``file:line`` that says so."""

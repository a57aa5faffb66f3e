"""Name what a foreign file sets and makeway does not model."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class LeftOut:
    """A parameter that a foreign file sets and that is not modelled."""

    name: str
    """As the scheduler's manual spells it; of a record with its kind: ``PartitionName AllowGroups``."""
    places: tuple[str, ...] = ()
    """``file:line`` of each, in order."""

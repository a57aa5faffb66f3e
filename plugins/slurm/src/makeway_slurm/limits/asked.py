"""Keep what a job asks for beside the limits that hold for it (slurm-priority-and-limits 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs

from makeway_slurm.accounts.usage import Entry
from makeway_slurm.limits.counts import Count, Key, Seat
from makeway_slurm.limits.kinds import Kind, Rule


class Listed(NamedTuple):
    """A limit, for jobs of one seat."""

    rule: Rule
    key: Key
    """Of the count that it is about."""
    alone: bool
    """Whether it is about the job alone: one that passes once passes for good."""
    if_any: bool
    """Whether it holds up no job that wants nothing of what it counts."""
    uses_up: bool
    """Whether it is about what is used up, which time alone brings about."""
    holds: Count
    """What active jobs hold together."""
    entry: Entry | None
    """What was used, and may still be; None: nothing has been used. Of users and accounts in a QOS: of the QOS."""
    kind: Kind
    name: str
    most: int
    """The three as the rule has them."""


@attrs.frozen(eq=False)
class Asked:
    """What a job asks for."""

    counts: Mapping[str, int]
    minutes: int | None
    """Its time limit; None: unlimited."""
    booked: int | None
    """The same times UsageFactor, where the QOS says UsageFactorSafe."""
    factor: float
    open: tuple[tuple[Listed, int], ...]
    """Limits that it does not pass for good, in their order, each with how much it wants of what is limited."""
    quiet: tuple[tuple[Listed, int], ...]
    """Those of them that matter as long as nothing can be used up."""
    seat: Seat


Remembered = dict[str, tuple[tuple[object, ...], Asked]]
"""By job that waits: what it asks for, with what that was found by."""

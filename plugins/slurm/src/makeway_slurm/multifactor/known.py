"""What was found out of a job that waits (slurm-priority-and-limits 1.1)."""

from __future__ import annotations

import attrs

from makeway_slurm.accounts.tree import Association
from makeway_slurm.multifactor.factors import Fixed


@attrs.define(eq=False)
class Known:
    """What was found out of a waiting job."""

    qos: str
    association: Association | None
    fixed: dict[str, Fixed]
    """By partition."""
    alone: Fixed | None = None
    """Those of its only partition; None: it has several."""
    age: float = 0.0
    """Weighted, as of the last computation."""
    fairshare: float = 0.0
    values: dict[str, int] = attrs.field(factory=dict)
    """Priority by partition, as of the last computation."""


def alike(one: Known | None, other: Known | None) -> bool:
    """Whether nothing but their age tells two jobs apart."""
    return (
        one is not None
        and other is not None
        and one.fairshare == other.fairshare
        and (one.alone is other.alone or one.alone == other.alone)
    )


__all__ = ["Known", "alike"]

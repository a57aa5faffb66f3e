"""Give jobs the priority that Slurm's ``priority/multifactor`` gives them (slurm-priority-and-limits 1 to 5).

Age, association, fair share, size, partition, QOS, TRES, site factor and nice, each weighted. Priorities of waiting
jobs are worked out when they come or change, and every `Settings.calc_period` seconds.
"""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.model import ClusterView
from makeway.priorities import Prioritizer
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.multifactor.prioritizer import Multifactor


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the class that holds the settings."""
    return Settings


@hookimpl
def makeway_priority(view: ClusterView) -> Prioritizer:
    """Build what computes priorities."""
    return Multifactor(view)


__all__ = ["Multifactor", "Settings"]

"""Give jobs the priority that Slurm's ``priority/multifactor`` gives them (slurm-priority-and-limits 1 to 5).

Age, association, fair share, size, partition, QOS, TRES, site factor and nice, each weighted. Priorities of waiting
jobs are worked out when they come or change, and every `Settings.calc_period` seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.config import Config
from makeway.errors import Finding
from makeway.hookspecs import hookimpl
from makeway.model import Check, Cluster, ClusterView, Job
from makeway.priorities import Prioritizer
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.multifactor.prioritizer import Multifactor
from makeway_slurm.multifactor.telling import checks, findings


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the class that holds the settings."""
    return Settings


@hookimpl
def makeway_priority(view: ClusterView) -> Prioritizer:
    """Build what computes priorities."""
    return Multifactor(view)


@hookimpl
def makeway_explain(job: Job, view: ClusterView) -> list[Check]:
    """Say what makes up the priority of a job that waits, and what stands in front of it."""
    return checks(job, view)


@hookimpl
def makeway_check(config: Config, cluster: Cluster, settings: Mapping[type[Any], Any]) -> list[Finding]:
    """Find what is odd about priorities."""
    return list(findings(config, cluster, settings[Settings]))


__all__ = ["Multifactor", "Settings"]

"""Place jobs below as few switches as possible, as Slurm's ``topology/tree`` does (slurm-priority-and-limits 10).

Nodes are sought below the lowest switch that has enough; among those of one level the tightest fits best. Only if
no switch has enough, nodes come from several leaf switches, those with most free nodes first. A job with
``--switches=n[@t]`` waits up to ``t`` for a place below so many leaf switches. Selectors are asked for one set of nodes
after the other, so that this works beside each of them.
"""

from __future__ import annotations

import attrs

from makeway.bitmap import NodeBits
from makeway.config import Config
from makeway.errors import ConfigError, Finding
from makeway.hookspecs import hookimpl
from makeway.model import Cluster, ClusterView, Job, Limits, NodeSets
from makeway_slurm.topology.sets import TopologyBook
from makeway_slurm.topology.switches import trees_of


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."topology/tree"]``."""

    max_switch_wait: float = attrs.field(default=300.0, validator=attrs.validators.ge(0))
    """max_switch_wait of SchedulerParameters: seconds for which ``--switches`` may delay a job at most."""
    optional: bool = False
    """TopoOptional of TopologyParam: switches count only for jobs with ``--switches``."""


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the class that holds the settings."""
    return Settings


@hookimpl
def makeway_check(config: Config, cluster: Cluster) -> list[Finding]:
    """Say what is wrong with the switches."""
    del config
    try:
        trees_of(cluster)
    except ConfigError as error:
        return list(map(Finding.of, error.problems))
    return []


class Switches(Limits):
    """Places jobs below as few switches as it takes."""

    def node_sets(self, job: Job, nodes: NodeBits, view: ClusterView) -> NodeSets | None:
        """Name the nodes below each switch, the best one first."""
        settings = view.settings(Settings)
        return view.book(TopologyBook).sets(
            job, nodes, view, most_wait=settings.max_switch_wait, optional=settings.optional
        )


@hookimpl
def makeway_limits() -> Limits:
    """Seek nodes below one switch."""
    return Switches()


__all__ = ["Settings"]

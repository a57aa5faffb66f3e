"""Say which of Slurm's jobs are makeway's to decide over, and as what the engine gets them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.hostlist import expand_hostlist
from makeway.model import Cluster, JobSpec
from makeway.state import Standing
from makeway_slurm_world.driving.components import is_leader
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.reading.jobs import LiveJob, standing


class Door:
    """Lets jobs in."""

    def __init__(self, cluster: Cluster, notebook: Notebook) -> None:
        self._notebook = notebook
        self._mine = frozenset(node.name for node in cluster.nodes)
        self._partitions = frozenset(partition.name for partition in cluster.partitions)
        self._threads = {node.name: node.threads_per_core for node in cluster.nodes}

    def suits(self, request: JobSpec) -> bool:
        """Whether a job could run on makeway's nodes alone."""
        if not request.partitions:
            return False
        return set(request.required_nodes) <= self._mine and request.min_nodes <= len(self._mine)

    def request(self, job: LiveJob) -> JobSpec:
        """Return what a job asks for, without what makeway changed of it.

        A leader of a heterogeneous job gets the fewest nodes that it asks for: scontrol cannot say how many.
        """
        spec = job.spec
        asked = self._notebook.pages.requests.get(job.id)
        required, excluded = spec.required_nodes, spec.excluded_nodes
        if asked is not None:
            required = tuple(expand_hostlist(asked.required))
            excluded = excluded if asked.excluded is None else tuple(expand_hostlist(asked.excluded))
        return attrs.evolve(
            spec,
            partitions=tuple(name for name in spec.partitions if name in self._partitions),
            required_nodes=required,
            excluded_nodes=tuple(name for name in excluded if name in self._mine),
            max_nodes=spec.min_nodes if is_leader(job) and spec.max_nodes is not None else spec.max_nodes,
            reservation=None,
            priority=0 if job.waits_for_slurm else (spec.priority or None),
            depends_on=(),
            begin_at=None if job.waits_for_slurm else spec.begin_at,
        )

    def holds(self, parts: Sequence[LiveJob]) -> bool:
        """Whether a job is somewhere, and all of it on makeway's nodes."""
        return all(part.nodes and set(part.nodes) <= self._mine for part in parts)

    def standing(self, job: LiveJob) -> Standing:
        """Return a job that runs or is suspended already, as the engine adopts it."""
        threads = self._threads
        found = standing(job, cores=True, memory=True, threads=lambda name: threads.get(name, 1))
        spec = attrs.evolve(job.spec, partitions=(job.partition,), reservation=None, depends_on=())
        return attrs.evolve(found, spec=spec)

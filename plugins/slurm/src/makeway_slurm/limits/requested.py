"""Count the TRES that a job asks for by its words, before nodes are chosen (slurm-priority-and-limits 1.3)."""

from __future__ import annotations

from makeway.model import ClusterView, Job
from makeway_slurm.accounts.tres import requested, totals


class Requested:
    """What jobs of one run ask for."""

    def __init__(self, view: ClusterView) -> None:
        self._cluster = view.cluster
        self._totals: dict[int, dict[str, int]] = {}
        """By partition: all that is there."""

    def by(self, job: Job) -> dict[str, int]:
        """Return what a job asks for where it is tried; of whole nodes it is not known how many CPUs they have."""
        at = job.partition.index
        there = self._totals.get(at)
        if there is None:
            there = self._totals[at] = totals(job.partition, self._cluster)
        return requested(job, job.partition, self._cluster, there)

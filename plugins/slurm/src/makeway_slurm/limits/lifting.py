"""Let preempting lift a limit, which Slurm never does (11.2): `lift_by_preempting`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from makeway.model import Blocked, ClusterView
from makeway_slurm.limits.counts import CountBook, Key
from makeway_slurm.limits.kinds import Rule


class Lifting:
    """Which jobs hold what limits count, where they may be displaced for its sake."""

    def __init__(self, counts: CountBook, *, allowed: bool) -> None:
        self._counts = counts
        self.allowed = allowed

    def gone(self, key: Key, view: ClusterView) -> Iterator[Mapping[str, int]]:
        """Yield what those hold of a count that would have ended: a suspended job counts as before (6.2)."""
        if not self.allowed or not view.made_way:
            return
        there = {job.id for job in view.active}
        for job in view.made_way:
            counts = self._counts.held_at(key, job.id) if job.id not in there else None
            if counts is not None:
                yield counts

    def lifted(self, blocked: Blocked, rule: Rule, key: Key) -> Blocked:
        """Say which jobs hold what is short."""
        if not self.allowed:
            return blocked
        frees = {
            job_id: float(counts.get(rule.name, 0) if rule.name else 1)
            for job_id, counts in self._counts.holders(key)
        }
        return attrs.evolve(blocked, liftable=True, frees=frees)

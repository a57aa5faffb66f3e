"""Keep what victims leave for the job that they leave for (``[scheduler.clockwork] keep_freed``).

From the moment at which a preemptor has others killed or requeued, the nodes that it is going to take are closed to
all other jobs. Once the last of its victims has gone, it is tried before all others; started or not, its nodes are
then open to all again. Without this, the first job in the queue takes them, often the victim itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Job, JobState, Partition, Seconds


@attrs.frozen(eq=False)
class _Claim:
    job: Job | None
    """None: a job that had ended when this engine took over."""
    partition: str
    """Name of where it is going to start."""
    nodes: NodeBits
    victims: tuple[tuple[Job, Seconds | None], ...]
    """Each with the start of the run that it was told to end."""


class Kept:
    """Which nodes are kept for which job, in one run."""

    def __init__(self, still_there: Callable[[Job], bool]) -> None:
        """Begin with nothing.

        :param still_there: whether a job holds its nodes, or has not quite left them.
        """
        self._still_there = still_there
        self.claims: dict[str, _Claim] = {}
        """By id of the preemptor, in the order in which they asked."""

    def keep(self, job: Job, nodes: NodeBits, victims: Sequence[Job]) -> None:
        """Keep `nodes` for `job`, in the partition that it is tried in, until its victims have gone."""
        told = tuple((victim, victim.started_at) for victim in victims)
        before = self.claims.get(job.id)
        earlier = before.victims if before is not None else ()
        self.claims[job.id] = _Claim(job, job.partition.name, nodes, (*earlier, *told))

    def from_others(self, job: Job) -> NodeBits:
        """Return the nodes that are kept for other jobs than `job`."""
        kept = 0
        for claim in self.claims.values():
            if claim.job is not job:
                kept |= claim.nodes
        return kept

    def whose(self, nodes: NodeBits) -> list[str]:
        """Return the ids of the jobs for which some of `nodes` are kept."""
        return [job_id for job_id, claim in self.claims.items() if claim.nodes & nodes]

    def take_due(self) -> list[tuple[Job, Partition]]:
        """Return the jobs whose turn it is, with the partition; their nodes are no longer kept.

        Jobs that no longer wait for their nodes (they started elsewhere, were cancelled, are held) lose them.
        """
        due = []
        for job_id, claim in list(self.claims.items()):
            job = claim.job
            waits = job is not None and job.state is JobState.PENDING and not job.held
            if waits and any(self._there(victim, started) for victim, started in claim.victims):
                continue
            del self.claims[job_id]
            if job is not None and waits:
                due.append((job, next(each for each in job.partitions if each.name == claim.partition)))
        return due

    def _there(self, victim: Job, started: Seconds | None) -> bool:
        return victim.started_at == started and self._still_there(victim)

    # --------------------------------------------------------------------------- adoption
    def save(self) -> list[list[Any]]:
        """Return what is kept for which job, for `restore`; victims that have gone are left out."""
        return [
            [
                job_id,
                claim.partition,
                hex(claim.nodes),
                [[victim.id, started] for victim, started in claim.victims if self._there(victim, started)],
            ]
            for job_id, claim in self.claims.items()
        ]

    def restore(self, memory: Sequence[Sequence[Any]], jobs: Mapping[str, Job]) -> None:
        """Keep the same for the same jobs; also for those that have ended, until their turn, as ever."""
        for job_id, name, nodes, told in memory:
            victims = tuple((jobs[victim], started) for victim, started in told if victim in jobs)
            self.claims[job_id] = _Claim(jobs.get(job_id), name, int(nodes, 16), victims)

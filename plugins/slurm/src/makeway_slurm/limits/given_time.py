"""Give a job without a time limit the one that limits give it (slurm-priority-and-limits 6.3 no. 5)."""

from __future__ import annotations

import attrs

from makeway.model import Job, Seconds
from makeway_slurm.limits.counts import CountBook
from makeway_slurm.limits.deny import Strictness
from makeway_slurm.limits.kinds import OF_MINUTES, OF_WALL
from makeway_slurm.limits.requested import Requested
from makeway_slurm.limits.rulebook import RuleBook


class GivenTime:
    """Time limits that limits give."""

    def __init__(
        self, strictness: Strictness, rules: RuleBook, counts: CountBook, requested: Requested
    ) -> None:
        self._strictness = strictness
        self._rules = rules
        self._counts = counts
        self._requested = requested

    def of(self, job: Job) -> Seconds | None:
        """Return the time limit that limits give a job without one; None: none does.

        A DefaultTime of its first partition goes before. Of several partitions the least counts that one of them brings
        about (recorded: limit_time_of_partitions). MaxWall and GrpWall always give one, those of the first QOS or
        association that has any (recorded: limit_time_of_which). Those on minutes of a TRES do so where DenyOnLimit
        would refuse the job: the least of limit / count. MaxTime bounds none of them.
        """
        if job.partitions[0].default_time is not None:
            return None
        if len(job.partitions) == 1:
            return self._in_its_partition(job)
        given = [self._in_its_partition(attrs.evolve(job, partition=each)) for each in job.partitions]
        return min((each for each in given if each is not None), default=None)

    def _in_its_partition(self, job: Job) -> Seconds | None:
        places = self._counts.seat(job).places
        denies = self._strictness.denies(places, named=job.spec.qos is not None)
        counts = self._requested.by(job) if denies else {}
        rules = self._rules.of(places)
        listed = (*rules.before, *rules.after)
        of_wall = [rule for rule in listed if rule.kind in OF_WALL]
        found = [rule.most for rule in of_wall if rule.whose == of_wall[0].whose]
        found += [
            rule.most // counts[rule.name]
            for rule in listed
            if rule.kind in OF_MINUTES and counts.get(rule.name)
        ]
        return min(found) * 60.0 if found else None

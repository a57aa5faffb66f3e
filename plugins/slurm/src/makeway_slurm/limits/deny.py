"""Refuse a job that breaks a limit on its own: DenyOnLimit (slurm-priority-and-limits 6.3 no. 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from makeway.model import Job, Qos
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits.alone import breaks
from makeway_slurm.limits.asked import Asked
from makeway_slurm.limits.counts import CountBook, Places
from makeway_slurm.limits.requested import Requested
from makeway_slurm.limits.rulebook import RuleBook


class Strictness:
    """Which QOS of one cluster refuse jobs that break a limit on their own."""

    def __init__(self, qos: Mapping[str, Qos]) -> None:
        self._qos = qos

    def denies(self, places: Places, *, named: bool) -> bool:
        """Whether jobs that break a limit on their own are refused there; without any QOS they are.

        :param named: whether they name a QOS: one that is not described may be lenient, too.
        """
        flags = [self._qos[name].flags for name in places.qos if name in self._qos]
        return any("DenyOnLimit" in each for each in flags) if flags else not named


class TooLarge:
    """Jobs that break a limit on their own."""

    def __init__(
        self,
        strictness: Strictness,
        rules: RuleBook,
        counts: CountBook,
        asked_by: Callable[[Job], Asked],
        requested: Requested,
        whole_nodes: WholeNodes,
        *,
        has_partition_qos: bool,
    ) -> None:
        self._strictness = strictness
        self._rules = rules
        self._counts = counts
        self._asked_by = asked_by
        self._requested = requested
        self._whole_nodes = whole_nodes
        self._has_partition_qos = has_partition_qos

    def why(self, job: Job) -> str:
        """Return which limit a job breaks on its own, in any of its partitions (recorded: limit_deny_in_second)."""
        found = self._there(job)
        if not found and len(job.partitions) > 1 and self._has_partition_qos:
            others = (attrs.evolve(job, partition=each) for each in job.partitions[1:])
            found = next((why for each in others if (why := self._there(each))), "")
        return found

    def _there(self, job: Job) -> str:
        """Return the same of the partition where it is tried, if its QOS denies such jobs.

        A DefaultTime of its first partition counts as its time limit (recorded: limit_deny_default_time).
        """
        places = self._counts.seat(job).places
        if not self._strictness.denies(places, named=job.spec.qos is not None):
            return ""
        asked = self._asked_by(job)
        whole = self._whole_nodes.taken_by(job, job.partition)
        counts = self._requested.by(job) if whole else asked.counts
        rules = self._rules.of(places)
        broken = (rule for rule in (*rules.before, *rules.after) if breaks(rule, job, asked, counts))
        return next((rule.reason for rule in broken), "")

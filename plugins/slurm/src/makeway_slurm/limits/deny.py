"""Refuse a job that breaks a limit on its own: DenyOnLimit (slurm-priority-and-limits 6.3 no. 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from makeway.model import Job, Qos
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits.asked import Asked
from makeway_slurm.limits.counts import CountBook, Places
from makeway_slurm.limits.kinds import AS_MAXIMUM, OF_MINUTES, OF_WALL, Kind
from makeway_slurm.limits.requested import Requested
from makeway_slurm.limits.rulebook import RuleBook
from makeway_slurm.limits.tres_minutes import minutes_of


class Strictness:
    """Which QOS of one cluster refuse jobs that break a limit on their own."""

    def __init__(self, qos: Mapping[str, Qos]) -> None:
        self._qos = qos

    def denies(self, places: Places, *, named: bool) -> bool:
        """Whether jobs that break a limit on their own are refused there; without any QOS they are.

        :param named: whether they name a QOS: one that nobody describes may be lenient, too.
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
        """Return the same of the partition where it is tried, if its QOS denies such jobs."""
        places = self._counts.seat(job).places
        if not self._strictness.denies(places, named=job.spec.qos is not None):
            return ""
        asked = self._asked_by(job)
        whole = self._whole_nodes.taken_by(job, job.partition)
        counts = self._requested.by(job) if whole else asked.counts
        rules = self._rules.of(places)
        for rule in (*rules.before, *rules.after):
            wanted = counts.get(rule.name, 0)
            if rule.kind in OF_MINUTES:
                over = minutes_of(asked, wanted) > rule.most
            elif rule.kind is Kind.NODE_TRES:
                over = wanted // max(1, counts[NODE]) > rule.most
            elif rule.kind in AS_MAXIMUM:
                over = wanted > rule.most
            elif rule.kind is Kind.LEAST_TRES:
                over = wanted < rule.most
            elif rule.kind in OF_WALL:
                over = job.spec.time_limit is not None and (asked.minutes or 0) > rule.most
            else:
                over = False
            if over:
                return rule.reason
        return ""


__all__ = ["Strictness", "TooLarge"]

"""Find out once what a pending job asks for, and which limits it does not pass for good (6.2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import attrs

from makeway.model import ClusterView, Job, Seconds
from makeway_slurm.accounts.tres import BILLING, CPU, NODE, billable
from makeway_slurm.accounts.usage import usage_factor
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits.alone import passes_for_good
from makeway_slurm.limits.asked import Asked, Remembered
from makeway_slurm.limits.counts import CountBook
from makeway_slurm.limits.kinds import Kind
from makeway_slurm.limits.listing import Listing
from makeway_slurm.limits.node_cap import most_nodes
from makeway_slurm.limits.requested import Requested
from makeway_slurm.limits.settings import Settings
from makeway_slurm.limits.stages import in_order

_MANY = 100_000
_TRES = Kind.TRES


class Requests:
    """What the pending jobs of one run ask for."""

    def __init__(
        self,
        view: ClusterView,
        counts: CountBook,
        listing: Listing,
        requested: Requested,
        whole_nodes: WholeNodes,
        limit_given: Callable[[Job], Seconds | None],
        remembered: Remembered,
    ) -> None:
        """Be there for one run.

        :param limit_given: says which time limit limits give a job without one.
        :param remembered: where what is known of jobs that wait is kept.
        """
        self._safe = view.settings(Settings).safe
        self._unlimited = view.rule("no_time_limit_exceeds_minutes")
        self._counts = counts
        self._listing = listing
        self._requested = requested
        self._whole_nodes = whole_nodes
        self._limit_given = limit_given
        self._remembered = remembered
        self._alike: dict[Hashable, Asked] = {}
        """By all that tells two requests apart."""

    def known(self, job: Job) -> Asked:
        """Return what a pending job asks for, as long as it stays as it is from the last time."""
        before = self._remembered.get(job.id)
        if before is not None:
            (spec, partition, qos, limit), asked = before
            if spec is job.spec and partition is job.partition and qos is job.qos and limit is job.time_limit:
                return asked
        mark = (job.spec, job.partition, job.qos, job.time_limit)
        asked = self.anew(job)
        self._remembered[job.id] = mark, asked
        return asked

    def anew(self, job: Job) -> Asked:
        """Return what a pending job asks for where it is tried."""
        counts = self._requested.by(job)
        if self._whole_nodes.taken_by(job, job.partition):
            counts = {**counts, CPU: self._whole_nodes.cpus(job, job.partition)}
            counts[BILLING] = int(billable(counts, job.partition))
        limit = job.time_limit
        if self._unlimited and job.spec.time_limit is None and job.partitions[0].default_time is None:
            limit = self._limit_given(job) or None
        minutes = None if limit is None else int(limit // 60)
        factor = usage_factor(job.qos)
        of_use = job.qos is not None and "UsageFactorSafe" in job.qos.flags
        booked = minutes if minutes is None or not of_use else int(minutes * factor)
        seat = self._counts.seat(job)
        most = most_nodes(job)
        key = seat, tuple(counts.items()), minutes, booked, factor, job.spec.time_limit is None, most
        known = self._alike.get(key)
        if known is None:
            if len(self._alike) > _MANY:
                self._alike.clear()
            asked = Asked(counts, minutes, booked, factor, (), (), seat)
            known = self._alike[key] = self._with_limits(job, asked)
        return known

    def _with_limits(self, job: Job, asked: Asked) -> Asked:
        """Return the same with the limits that it, and all like it, does not pass for good."""
        counts = asked.counts
        listed = self._listing.of(asked.seat, job.user)
        still = in_order(
            tuple(
                [(each, counts.get(each.name, 0)) for each in listed if not passes_for_good(each, job, asked)]
            )
        )
        most = most_nodes(job)
        if most > job.size:
            still = tuple(
                [
                    (each, most if each.kind is _TRES and each.name == NODE else wanted)
                    for each, wanted in still
                ]
            )
        quiet = still
        if not self._safe:
            quiet = tuple([pair for pair in still if not pair[0].uses_up])
        return attrs.evolve(asked, open=still, quiet=quiet if len(quiet) < len(still) else still)

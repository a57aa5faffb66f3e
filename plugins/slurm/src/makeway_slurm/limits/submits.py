"""Refuse a job that would be one too many: GrpSubmitJobs, MaxSubmitJobs (slurm-priority-and-limits 6.3 no. 2)."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Job
from makeway_slurm.limits.counts import Count, CountBook, Seat
from makeway_slurm.limits.elsewhere import Elsewhere
from makeway_slurm.limits.kinds import Rule
from makeway_slurm.limits.rulebook import RuleBook

_MANY = 100_000


class Submits:
    """How many jobs are present, beside how many may be."""

    def __init__(self, rules: RuleBook, counts: CountBook, elsewhere: Elsewhere) -> None:
        self._rules = rules
        self._counts = counts
        self._elsewhere = elsewhere
        self._doors: dict[Seat, list[tuple[Rule, Count]]] = {}
        """What limits the number of jobs of a seat, with its count."""

    def too_many(self, job: Job) -> str:
        """Return which number of jobs it would exceed; of an array all tasks count.

        Of several partitions, none may have a QOS that is exceeded (as recorded: limit_submit_in_partitions).
        """
        more = int(job.spec.attributes.get("array_size", 1)) - 1
        own = self._counts.seat(job)
        for seat in (own, *self._elsewhere.seats(job)):
            for rule, count in self._of(seat, job.user):
                if count.present + more > rule.most:
                    return rule.reason
        return ""

    def spare(self, seat: Seat, user: str) -> int:
        """Return how many more jobs of one seat may come."""
        return min([rule.most - count.present for rule, count in self._of(seat, user)], default=_MANY)

    def _of(self, seat: Seat, user: str) -> Sequence[tuple[Rule, Count]]:
        self._counts.brought_up()
        found = self._doors.get(seat)
        if found is None:
            places = seat.places
            found = self._doors[seat] = [
                (rule, self._counts.of(rule.count_key(user, places.account)))
                for rule in self._rules.of(places).door
            ]
        return found

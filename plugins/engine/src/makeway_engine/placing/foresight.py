"""See that a job would find no room whomever it displaced, without a search; and know that for as long as it is so.

Who may not be displaced stays. Where those who stay leave no room, nobody is displaced. While they are there nothing
changes that, and nobody need be asked for candidates (`makeway.hookspecs.Steady`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from makeway.hookspecs import Steady
from makeway.model import Candidates, Job, Selector
from makeway_engine.ledger import Ledger
from makeway_engine.placing.order import Order
from makeway_engine.rulings import Rulings


class Foresight:
    """What the selector of one run foresees."""

    def __init__(
        self, ledger: Ledger, selector: Selector, order: Order, rulings: Rulings, *, watched: bool
    ) -> None:
        """Be there for one run.

        :param watched: whether somebody wants to know what each attempt came to: then each is made.
        """
        self._ledger = ledger
        self._limited = rulings.limited
        self._kind_of = order.kind_of if order.selector_decides and not watched else None
        self._screen_without = getattr(selector, "screen_without", None)
        self._still_without = getattr(selector, "still_without", None)

    def knows(self, job: Job) -> bool:
        """Whether it is known that `job`, which finds no room, finds none whomever it displaced."""
        if (
            self._still_without is None
            or self._kind_of is None
            or self._limited(job)
            or job.spec.het_id is not None
            or job.required
        ):
            return False
        return self.still(job, (self._kind_of(job), job.partition.index))

    def still(self, job: Job, place: tuple[Hashable, int]) -> bool:
        """Whether the same is known of a job of such a kind, in such a partition."""
        kind, ledger, still = place[0], self._ledger, self._still_without
        if still is None or not isinstance(kind, Steady):
            return False
        return bool(still(job, ledger.up & ~ledger.completing, kind.spares, place, ledger))

    def sees_none(self, job: Job, candidates: Candidates) -> bool:
        """Whether `job` would find no room though all candidates were gone."""
        if self._kind_of is None or self._limited(job) or job.spec.het_id is not None or job.required:
            return False
        kind = self._kind_of(job)
        if kind is None or (isinstance(kind, Steady) and self._still_without is not None):
            return False  # `knows` has said what there is to say
        return not self.helped((job,), candidates, (kind, job.partition.index))

    def helped(
        self, jobs: Sequence[Job], candidates: Candidates, place: tuple[Hashable, int]
    ) -> Sequence[Job]:
        """Return those of `jobs` who might start if all candidates were gone."""
        if not candidates.jobs:
            return ()
        if self._screen_without is None:
            return jobs
        ledger = self._ledger
        found: Sequence[Job] = self._screen_without(
            jobs, ledger.up & ~ledger.completing, candidates, place, ledger
        )
        return found


__all__ = ["Foresight"]

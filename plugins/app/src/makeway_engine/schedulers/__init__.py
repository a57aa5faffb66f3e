"""Which jobs are tried, and in which order: `strict`, `easy`, and `greedy`.

`backfill` has a package of its own, `makeway_backfill`; it follows `strict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from makeway.clockwork import Clockwork
from makeway.config import SchedulerTable
from makeway.model import Job
from makeway.registry import Policies, scheduler_of
from makeway_engine.ledger import Ledger
from makeway_engine.placing import Placer
from makeway_engine.queue import Queue
from makeway_engine.rulings import Ahead
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.easy import Easy
from makeway_engine.schedulers.greedy import Greedy
from makeway_engine.schedulers.het import HetStarter
from makeway_engine.schedulers.lanes import Lanes
from makeway_engine.schedulers.one_by_one import OneByOne
from makeway_engine.schedulers.requests import Requests
from makeway_engine.schedulers.settled import Settled
from makeway_engine.schedulers.shapes import Shapes
from makeway_engine.schedulers.strict import Strict, walks_raw


class Follower(Protocol):
    """What plans behind the main scheduler; another distribution brings it."""

    def run(self) -> None:
        """Make one pass."""

    def save(self) -> dict[str, Any]:
        """Return what is remembered from one pass to the next, in values that JSON has."""

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another one stood."""


class Schedulers:
    """The schedulers of one run, of which ``[scheduler] type`` says which makes its passes."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        placer: Placer,
        policies: Policies,
        scheduler: SchedulerTable,
        clockwork: Clockwork,
        *,
        ahead: Ahead,
    ) -> None:
        """Be ready for the first pass.

        :param ahead: those that were tried before in a pass and have to wait; the greedy scheduler keeps it.
        """
        in_order_of_submission = placer.transitions.priorities.prioritizer is None
        raw = in_order_of_submission and walks_raw(ledger, scheduler)
        self.attempts = Attempts(ledger, queue, placer, policies, HetStarter(ledger, placer), raw=raw)
        kept_by_lane = scheduler.type in ("builtin", "backfill")
        lanes = Lanes(queue) if kept_by_lane else None
        greedy = scheduler.type == "greedy"
        requests = self._by_request = self._requests() if greedy else None
        self.strict = Strict(self.attempts, lanes, Settled(self.attempts) if kept_by_lane else None)
        turns = self._turns() if greedy else None
        self.greedy = Greedy(self.attempts, ahead, requests, turns)
        equivalence_key = (
            getattr(placer.selector, "equivalence_key", None) if scheduler.type == "easy" else None
        )
        self.easy = Easy(self.attempts, None if equivalence_key is None else Shapes(queue, equivalence_key))
        follower = scheduler_of(scheduler.type)
        self.backfill: Follower | None = None if follower is None else follower(self.attempts, clockwork)
        """None: the type is another."""
        self._het = scheduler.type == "builtin"
        self.alone = {"easy": self.easy.run, "greedy": self.greedy.run}.get(scheduler.type)
        """Makes whole passes by itself; None: `strict` does, and backfill behind it."""

    def _turns(self) -> OneByOne | None:
        """Return what asks a policy for one job after the other; None: no policy names them, or passes look at all."""
        attempts = self.attempts
        if attempts.raw or attempts.turns or attempts.placer.telling.traces or not attempts.custom_order:
            return None
        found = attempts.policies.turns()
        return None if found is None else OneByOne(attempts.queue, attempts.policies, *found)

    def _glance_decides(self) -> bool:
        """Whether the selector alone keeps those waiting that no limit is about."""
        placer = self.attempts.placer
        return placer.order.selector_decides and not placer.preemption

    def _requests(self) -> Requests | None:
        """Return the index of those that ask for the same, where that is all that decides about them.

        Where attempts are recorded or traced, each of them has to be made.
        """
        attempts = self.attempts
        placer = attempts.placer
        if (
            placer.telling.notes
            or attempts.turns
            or getattr(placer.selector, "equivalence_key", None) is None
        ):
            return None
        limits_all = any(
            each.says("admit") and each.limits.concerns is None for each in attempts.policies.all_limits
        )
        if self._glance_decides() and not limits_all:
            return None  # a glance costs less than a try
        alike = attempts.policies.by_request(attempts.ledger)
        if alike is None:
            return None
        if not placer.preemption:
            return Requests(attempts.queue, alike, placer.beyond, _unknown)
        return Requests(attempts.queue, alike, placer.beyond, attempts.policies.in_vain())

    def run(self, depth: int, *, backfill: bool) -> None:
        """Make a pass.

        :param depth: number of entries that the main scheduler looks at.
        :param backfill: whether backfill follows the main scheduler at once.
        """
        if self.alone is not None:
            self.alone()
            return
        self.strict.run(depth, het=self._het)
        if backfill and self.backfill is not None:
            self.backfill.run()

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what passes remember from one to the next, for `restore`; easy and backfill say it themselves."""
        return {**self.attempts.save(), **self.greedy.save(), **self.strict.save()}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine's passes stood."""
        for part in (self.attempts, self.greedy, self.strict):
            part.restore(memory)


def _unknown(job: Job) -> str | None:
    """Say that nothing is known beforehand of what a try would come to."""


__all__ = ["Schedulers"]

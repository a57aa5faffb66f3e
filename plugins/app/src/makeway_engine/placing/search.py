"""The third question: which of the candidates make enough room?"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Attempt, Blocked, Candidates, Choice, Job, Placement, Selector
from makeway.registry import Policies
from makeway_engine.ledger import Ledger
from makeway_engine.placing.limited import LimitedAttempt
from makeway_engine.placing.order import Order
from makeway_engine.placing.probe import Prober
from makeway_engine.placing.question import Room
from makeway_engine.rulings import Rulings


class Search:
    """Asks for victims, with limits and closed nodes taking part."""

    def __init__(
        self,
        ledger: Ledger,
        selector: Selector,
        policies: Policies,
        rulings: Rulings,
        order: Order,
        prober: Prober,
    ) -> None:
        self._ledger = ledger
        self._selector = selector
        self._policies = policies
        self._rulings = rulings
        self._order = order
        self._prober = prober
        self._closes = policies.closes

    def choose(
        self, job: Job, allowed: NodeBits, candidates: Candidates
    ) -> tuple[Choice | Blocked | None, bool]:
        """Return what the searches say, and whether limits have yet to judge it.

        A victim that may not be displaced once those before it have been is left out, and the search goes on.
        """
        nodes = self._prober.nodes_with(job, allowed, candidates.jobs)
        positions: Sequence[int] = range(len(candidates.jobs))
        left = candidates
        while True:
            choice, unjudged = self._policies.search(
                job, lambda own: self._attempt(job, nodes, own=own), left, self._ledger
            )
            if not isinstance(choice, Choice) or left.allowed_after is None:
                return choice, unjudged
            wrong = self._policies.not_allowed(job, left, choice)
            if wrong is None:
                return attrs.evolve(choice, victims=tuple(positions[at] for at in choice.victims)), unjudged
            positions = [at for at in positions if at != positions[wrong]]
            left = candidates.only(positions)

    def _attempt(self, job: Job, nodes: NodeBits, *, own: bool) -> Attempt:
        """Begin an attempt for a search.

        :param own: whether it is the selector's own search, whose choice limits judge; else they take part in it.
        """
        rulings = self._rulings
        limited = rulings.limited(job)
        if (limited or self._closes) and not own:
            closing = rulings.before if self._closes else None
            return LimitedAttempt(
                self._selector, self._policies, self._ledger, job, nodes, closing, limits=limited
            )
        if self._closes:
            nodes &= ~self._policies.closed_nodes(job, rulings.before, self._ledger)
        return self._selector.attempt(job, nodes, self._ledger)

    def room(self, job: Job, choice: Choice, candidates: Candidates) -> Room:
        """Return what a search found, once its placement has been looked at."""
        self._prober.check(job, choice.placement, "makeway_search")
        listed = choice.victims
        return Room(
            choice.placement.allocation.nodes,
            [candidates.jobs[at] for at in listed],
            choice.modes or [candidates.modes[at] for at in listed],
            choice.reasons or [candidates.reasons[at] for at in listed if candidates.reasons],
        )

    def find_room(self, job: Job, allowed: NodeBits) -> tuple[Allocation, Room] | None:
        """Say where a component of a job could start, and what would have to make way for it.

        :returns: None if preempting does not help.
        """
        candidates = self._order.candidates(job)
        if not candidates.jobs or self._order.not_for(job, candidates):
            return None
        choice, _ = self.choose(job, allowed, candidates)
        if not isinstance(choice, Choice):
            return None
        return choice.placement.allocation, self.room(job, choice, candidates)

    def would_help(self, job: Job, allowed: NodeBits, candidates: Candidates) -> bool:
        """Whether the job would fit with all candidates gone, whatever the search said; worked out for people."""
        nodes = self._prober.nodes_with(job, allowed, candidates.jobs)
        attempt = self._attempt(job, nodes, own=False)
        for candidate, mode in self._policies.together(job, candidates):
            attempt.remove(candidate, mode)
        return isinstance(self._prober.look(attempt), Placement)

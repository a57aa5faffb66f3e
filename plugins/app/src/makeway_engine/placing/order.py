"""The second question: what may a job displace, and in which order?"""

from __future__ import annotations

from collections.abc import Collection, Hashable

import attrs

from makeway.model import Candidates, Job, Seconds
from makeway.registry import Policies
from makeway_engine.ledger import Ledger
from makeway_engine.rulings import Rulings


class Order:
    """Asks the preempt plugin for candidates, and takes those out that others protect."""

    def __init__(self, ledger: Ledger, policies: Policies, rulings: Rulings) -> None:
        self._ledger = ledger
        self._policies = policies
        self._rulings = rulings
        self.kind_of = policies.preemptor_kind(ledger)
        """Tells jobs apart that may displace different others; None: each is asked about by itself."""
        self._without: dict[tuple[Hashable, int], bool] = {}
        """Whether jobs of a kind in a partition have no candidates, at `_asked_at`."""
        self._asked_at: tuple[int, Seconds] = (-1, -1.0)
        keeps_back = policies.closes or policies.implements("makeway_protect")
        self.selector_decides = policies.selector_searches and not keeps_back
        """Whether all that decides about a job are its limits, the selector, and what it may displace."""

    def names_none(self, job: Job) -> bool:
        """Whether `job` is known to have no candidates as things stand; asked once for all of its kind."""
        kind = self.kind_of(job) if self.selector_decides and self.kind_of is not None else None
        if kind is None:
            return False
        at = self._ledger.version, self._ledger.now
        if self._asked_at != at:
            self._asked_at = at
            self._without.clear()
        place = kind, job.partition.index
        found = self._without.get(place)
        if found is None:
            candidates = self.candidates(job)
            found = not (candidates.jobs or candidates.reason or candidates.ask_again_at is not None)
            self._without[place] = found
        return found

    def candidates(self, job: Job) -> Candidates:
        """Return what `job` may displace, the protected ones taken out."""
        ledger = self._ledger
        found = self._policies.candidates(job, ledger.active, ledger)
        if not self._rulings.any_protected or not found.jobs:
            return found
        vetoes = ledger.protected(job, found.jobs)
        if not vetoes:
            return found
        kept = [at for at, candidate in enumerate(found.jobs) if candidate.id not in vetoes]
        # In the candidates' order: plugins are asked one after the other, and their order means nothing.
        why = {each.id: vetoes[each.id].reason for each in found.jobs if each.id in vetoes}
        ends = [each.until for each in vetoes.values() if each.until is not None]
        if found.ask_again_at is not None:
            ends.append(found.ask_again_at)
        return attrs.evolve(
            found.only(kept),
            protected={**found.protected, **why},
            ask_again_at=min(ends, default=None),
        )

    def others(self, job: Job, unable: Collection[str]) -> Candidates:
        """Return what `job` may displace beside those that have just been unable to make way."""
        candidates = self.candidates(job)
        kept = [at for at, each in enumerate(candidates.jobs) if each.id not in unable]
        why = dict.fromkeys(sorted(unable), "it could not make way a moment ago")
        return attrs.evolve(candidates.only(kept), protected={**candidates.protected, **why})

    def not_for(self, job: Job, candidates: Candidates) -> str:
        """Return why no job is displaced for what `job` lacks; empty: there is no such reason."""
        limit = self._ledger.kept_out(job) if candidates.not_for else None
        return "" if limit is None else candidates.not_for.get(limit.resource, "")

"""See at a glance what might start now, on the nodes that no job is leaving and on those that a job may have sooner.

Some selectors give a job the nodes that it requires while another is still being cleaned from them
(`makeway.model.Selector`), so their glances count those in.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import Job, Selector
from makeway_engine.ledger import Ledger


class Glance:
    """Glances of the selector of one run."""

    def __init__(self, ledger: Ledger, selector: Selector) -> None:
        self._ledger = ledger
        self._screen = selector.screen
        self._takes_completing = getattr(selector, "takes_completing_required", False)

    def among(self, jobs: Sequence[Job], beside: NodeBits = 0) -> Sequence[Job]:
        """Return those of `jobs`, order kept, that are worth an attempt.

        :param beside: nodes that they may not have.
        """
        ledger = self._ledger
        completing = ledger.completing
        usable = ledger.up & ~beside if beside else ledger.up
        if not completing:
            return self._screen(jobs, usable)
        sooner = usable & completing if self._takes_completing else 0
        usable &= ~completing
        kept = self._screen(jobs, usable)
        if not sooner or len(kept) == len(jobs) or not any(job.required & sooner for job in jobs):
            return kept
        able = set(map(id, kept))
        return [
            job
            for job in jobs
            if id(job) in able
            or (job.required & sooner and self._screen((job,), usable | (job.required & sooner)))
        ]

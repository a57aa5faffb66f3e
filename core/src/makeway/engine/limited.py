"""Let limits take part in the search for victims: an attempt that asks `makeway_admit` and `makeway_closed_nodes`.

Victims are chosen so that the limits let the preemptor through as well as room is found; whoever searches
sees one more reason for being blocked, and probes as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import attrs

from makeway.bitmap import NodeBits
from makeway.engine.ledger import Ledger
from makeway.model import (
    NOTHING,
    Attempt,
    Blocked,
    ClusterView,
    Cover,
    Job,
    JobState,
    Placement,
    PreemptMode,
)

if TYPE_CHECKING:
    from makeway.engine.placing import Placer

LIMIT = "limit"
"""What is short when a limit says no: `Blocked.resource` of an answer of `makeway_admit`."""


class LimitedAttempt:
    """A selector's attempt behind the limits. See `makeway.model.Attempt`."""

    def __init__(
        self,
        placer: Placer,
        job: Job,
        nodes: NodeBits,
        before: Sequence[Job] | None,
        *,
        limits: bool,
    ) -> None:
        self.job = job
        self._placer = placer
        self._nodes = nodes
        self._before = before
        self._limits = limits
        self._removed: list[tuple[Job, PreemptMode]] = []
        self._closed: NodeBits = 0
        self._inner = self._begin()

    def _begin(self) -> Attempt:
        placer = self._placer
        inner = placer.selector.attempt(self.job, self._nodes & ~self._closed, placer.ledger)
        for job, mode in self._removed:
            inner.remove(job, mode)
        return inner

    def probe(self) -> Placement | Blocked:
        """Ask the limits, then the selector."""
        placer, job = self._placer, self.job
        view = cast(ClusterView, Without(placer.ledger, self._removed))  # the rest is delegated
        if self._limits:
            limit = placer.policies.admit((job,), view).get(job.id)
            if limit is not None:
                return attrs.evolve(limit, resource=LIMIT)
        if self._before is not None:
            closed = placer.policies.closed_nodes(job, self._before, view)
            if closed != self._closed:
                self._closed = closed
                self._inner = self._begin()
        return self._inner.probe()

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take `job` away in thought."""
        self._removed.append((job, mode))
        self._inner.remove(job, mode)

    def fresh(self) -> LimitedAttempt:
        """Return an attempt for the same job with nothing removed."""
        return LimitedAttempt(self._placer, self.job, self._nodes, self._before, limits=self._limits)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Return None: it is more than freeing nodes."""
        del jobs, modes
        return None


class Without:
    """The cluster as it would be if some active jobs had made way."""

    def __init__(self, ledger: Ledger, removed: Sequence[tuple[Job, PreemptMode]]) -> None:
        self._ledger = ledger
        kills = {id(job) for job, mode in removed if mode is not PreemptMode.SUSPEND}
        stops = {id(job) for job, _ in removed} - kills
        self.made_way = tuple(job for job, _ in removed)
        self.active = ledger.active
        self.licenses_free = ledger.licenses_free
        if not removed:
            return
        self.active = tuple(
            attrs.evolve(job, state=JobState.SUSPENDED) if id(job) in stops else job
            for job in ledger.active
            if id(job) not in kills
        )
        free = dict(self.licenses_free)
        for job in self.made_way:
            held = job.allocation.licenses if job.allocation and id(job) in kills else NOTHING
            for name, count in held.items():
                free[name] = free.get(name, 0) + count
        self.licenses_free = free

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)

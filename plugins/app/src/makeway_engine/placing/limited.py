"""Let limits take part in the search for victims: an attempt that asks limits.

Victims are chosen so that the limits let the preemptor through as well as room is found; the search
sees one more reason for being blocked, and probes as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs

from makeway.bitmap import NodeBits
from makeway.model import (
    Attempt,
    Blocked,
    ClusterView,
    Cover,
    Job,
    Placement,
    PreemptMode,
    Selector,
)
from makeway.registry import Policies
from makeway_engine.ledger import Ledger
from makeway_engine.view_without import ViewWithout

LIMIT = "limit"
"""What is short when a limit says no: `Blocked.resource` of an answer of `Limits.admit`."""


class LimitedAttempt:
    """A selector's attempt behind the limits. See `makeway.model.Attempt`."""

    def __init__(
        self,
        selector: Selector,
        policies: Policies,
        ledger: Ledger,
        job: Job,
        nodes: NodeBits,
        before: Sequence[Job] | None,
        *,
        limits: bool,
    ) -> None:
        self.job = job
        self._selector = selector
        self._policies = policies
        self._ledger = ledger
        self._nodes = nodes
        self._before = before
        self._limits = limits
        self._removed: list[tuple[Job, PreemptMode]] = []
        self._seen: ClusterView | None = None
        """The cluster without those; None: not looked at yet."""
        self._closed: NodeBits = 0
        self._inner: Attempt | None = None
        """None until the limits let the job through: until then no job is taken off the books."""

    def _begin(self) -> Attempt:
        inner = self._selector.attempt(self.job, self._nodes & ~self._closed, self._ledger)
        for job, mode in self._removed:
            inner.remove(job, mode)
        return inner

    def _view(self) -> ClusterView:
        """Return the cluster as it would be without those removed."""
        if self._seen is None:
            without = ViewWithout(self._ledger, self._removed.copy()) if self._removed else self._ledger
            self._seen = cast(ClusterView, without)  # the rest is delegated
        return self._seen

    def probe(self) -> Placement | Blocked:
        """Ask the limits, then the selector."""
        job = self.job
        if self._limits:
            limit = self._ledger.kept_out_in(self._view(), job)
            if limit is not None and not limit.allows_fewest:
                return attrs.evolve(limit, resource=LIMIT)
        if self._before is not None:
            closed = self._policies.closed_nodes(job, self._before, self._view())
            if closed != self._closed:
                self._closed = closed
                self._inner = None
        if self._inner is None:
            self._inner = self._begin()
        return self._inner.probe()

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if `job` were gone."""
        self._removed.append((job, mode))
        self._seen = None
        if self._inner is not None:
            self._inner.remove(job, mode)

    def fresh(self) -> LimitedAttempt:
        """Return an attempt for the same job with nothing removed."""
        return LimitedAttempt(
            self._selector,
            self._policies,
            self._ledger,
            self.job,
            self._nodes,
            self._before,
            limits=self._limits,
        )

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Return None: it is more than freeing nodes."""
        del jobs, modes
        return None

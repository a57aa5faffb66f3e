"""Let limits take part in the search for victims: an attempt that asks `makeway_admit` and `makeway_closed_nodes`.

Victims are chosen so that the limits let the preemptor through as well as room is found; whoever searches
sees one more reason for being blocked, and probes as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import attrs

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.engine.ledger import Ledger
from makeway.engine.usage import By, Sums, change
from makeway.model import (
    Attempt,
    Blocked,
    ClusterView,
    Cover,
    Job,
    JobState,
    Placement,
    PreemptMode,
    Usage,
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
        if self._limits:
            limit = placer.kept_out(job, self._removed)
            if limit is not None:
                return attrs.evolve(limit, resource=LIMIT)
        if self._before is not None:
            view = cast(ClusterView, Without(placer.ledger, self._removed))  # the rest is delegated
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
        if ledger.heterogeneous:
            removed = [(part, mode) for job, mode in removed for part in ledger.components(job)]
        self._removed = removed
        kills = {id(job) for job, mode in removed if mode is not PreemptMode.SUSPEND}
        stops = {id(job) for job, _ in removed} - kills
        self.made_way = tuple(job for job, _ in removed)
        self.active = ledger.active
        if not removed:
            return
        self.active = tuple(
            attrs.evolve(job, state=JobState.SUSPENDED) if id(job) in stops else job
            for job in ledger.active
            if id(job) not in kills
        )

    @property
    def licenses_free(self) -> Mapping[str, int]:
        """Licences that nobody would hold; suspended jobs keep theirs."""
        free = dict(self._ledger.licenses_free)
        for job, mode in self._removed:
            if mode is not PreemptMode.SUSPEND:
                for name, count in licences.held(job).items():
                    free[name] = free.get(name, 0) + count
        return free

    @property
    def license_holders(self) -> Mapping[str, Mapping[str, int]]:
        """Licence -> active jobs that would hold some of it -> how many."""
        gone = {job.id for job, mode in self._removed if mode is not PreemptMode.SUSPEND}
        return {
            name: {holder: count for holder, count in held.items() if holder not in gone}
            for name, held in self._ledger.license_holders.items()
        }

    def usage(self, by: By, *, running: bool = False) -> Mapping[Any, Usage]:
        """Return what active jobs would hold, by whom."""
        sums = Sums(self._ledger.usage(by, running=running))
        for job, mode in self._removed:
            counted = job.state is JobState.RUNNING if running else mode is not PreemptMode.SUSPEND
            if counted and self._ledger.is_active(job):
                change(sums, by, job, self._ledger.cluster, -1)
        return MappingProxyType(sums)

    def kept_out(self, job: Job, without: Sequence[tuple[Job, PreemptMode]] = ()) -> Blocked | None:
        """Return the limit that would keep a pending job out once these have made way as well."""
        return self._ledger.kept_out(job, (*self._removed, *without))

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)

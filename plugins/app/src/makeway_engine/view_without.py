"""Look at the cluster as it would be if some active jobs had made way."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from makeway import licences
from makeway.model import Blocked, Job, JobState, PreemptMode, Usage
from makeway_engine.ledger import Ledger
from makeway_engine.usage import By, Sums, change


class ViewWithout:
    """The cluster as it would be if some active jobs had made way."""

    def __init__(self, ledger: Ledger, removed: Sequence[tuple[Job, PreemptMode]]) -> None:
        self._ledger = ledger
        if ledger.heterogeneous:
            removed = [(part, mode) for job, mode in removed for part in ledger.components(job)]
        self._removed = removed
        self.made_way = tuple([job for job, _ in removed])
        self.cluster, self.version, self.now = ledger.cluster, ledger.version, ledger.now
        self.book, self.settings = ledger.book, ledger.settings

    @functools.cached_property
    def active(self) -> Sequence[Job]:
        """The jobs that would still be there, in job-table order; those that make way by suspension as suspended."""
        if not self._removed:
            return self._ledger.active
        kills = {id(job) for job, mode in self._removed if mode is not PreemptMode.SUSPEND}
        stops = {id(job) for job, _ in self._removed} - kills
        return tuple(
            attrs.evolve(job, state=JobState.SUSPENDED) if id(job) in stops else job
            for job in self._ledger.active
            if id(job) not in kills
        )

    @property
    def licenses_free(self) -> Mapping[str, int]:
        """Licences that no job would hold; suspended jobs keep theirs."""
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
        """Return what active jobs would hold, by user and so on."""
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

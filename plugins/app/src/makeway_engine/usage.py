"""Sum what active jobs hold, by user, account, group, partition or QOS, from the first question on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from makeway.errors import unknown
from makeway.model import Cluster, Job, JobState, Usage
from makeway.usage import used_by

_OF: Mapping[str, Callable[[Job], str | None]] = {
    "user": lambda job: job.user,
    "account": lambda job: job.account,
    "group": lambda job: job.spec.group,
    "partition": lambda job: job.partition.name,
    "qos": lambda job: job.qos.name if job.qos is not None else None,
}
_NONE = Usage()
By = str | tuple[str, ...]


class Sums(dict[Any, Usage]):
    """Key -> usage; empty for a key that is not there."""

    def __missing__(self, key: object) -> Usage:
        return _NONE


class UsageBooks:
    """The sums that were asked for, kept up to date."""

    def __init__(self, cluster: Cluster, active: Iterable[Job]) -> None:
        self._cluster = cluster
        self._active = active
        """All active jobs, as they are whenever it is gone through."""
        self._sums: dict[tuple[By, bool], Sums] = {}

    def of(self, by: By, *, running: bool) -> Mapping[Any, Usage]:
        """Return what is held, by user and so on. See `makeway.model.ClusterView.usage`."""
        sums = self._sums.get((by, running))
        if sums is None:
            key_of(by)
            sums = self._sums[by, running] = Sums()
            for job in self._active:
                if not running or job.state is JobState.RUNNING:
                    change(sums, by, job, self._cluster, 1)
        return MappingProxyType(sums)

    def started(self, job: Job) -> None:
        """Count a job that has been given its nodes."""
        for (by, _), sums in self._sums.items():
            change(sums, by, job, self._cluster, 1)

    def left(self, job: Job) -> None:
        """Count a job no longer, which still stands as it did."""
        for (by, running), sums in self._sums.items():
            if not running or job.state is JobState.RUNNING:
                change(sums, by, job, self._cluster, -1)

    def stopped(self, job: Job, times: int = -1) -> None:
        """Count a job no longer among those that run."""
        for (by, running), sums in self._sums.items():
            if running:
                change(sums, by, job, self._cluster, times)

    def resumed(self, job: Job) -> None:
        """Count a job among those that run again."""
        self.stopped(job, 1)


def key_of(by: By) -> Callable[[Job], Any]:
    """Return the function that says whose a job is.

    :raises ValueError: there is no such kind.
    """
    kinds = (by,) if isinstance(by, str) else by
    for kind in kinds:
        if kind not in _OF:
            raise ValueError(unknown("kind of usage", str(kind), _OF))
    if isinstance(by, str):
        return _OF[by]
    functions = [_OF[kind] for kind in kinds]
    return lambda job: tuple(function(job) for function in functions)


def change(sums: Sums, by: By, job: Job, cluster: Cluster, times: int) -> None:
    """Add what a job holds to the sum that it belongs to, so many times."""
    key = key_of(by)(job)
    changed = _plus(sums[key], used_by(job, cluster), times)
    if changed.jobs:
        sums[key] = changed
    else:
        sums.pop(key, None)


def _plus(one: Usage, other: Usage, times: int) -> Usage:
    return Usage(
        jobs=one.jobs + times * other.jobs,
        cpus=one.cpus + times * other.cpus,
        nodes=one.nodes + times * other.nodes,
        memory_mb=one.memory_mb + times * other.memory_mb,
        gres=_joined(one.gres, other.gres, times),
        licenses=_joined(one.licenses, other.licenses, times),
    )


def _joined(one: Mapping[str, int], other: Mapping[str, int], times: int) -> Mapping[str, int]:
    if not other:
        return one
    found = {name: one.get(name, 0) + times * other.get(name, 0) for name in {**one, **other}}
    return {name: count for name, count in found.items() if count}

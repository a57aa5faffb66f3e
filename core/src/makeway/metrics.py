"""Add up the figures of a run as jobs end."""

from __future__ import annotations

import itertools
from array import array
from typing import Any

import attrs

from makeway.model import Seconds

SLOWDOWN_BOUND: Seconds = 10.0
"""Bound of the bounded slowdown."""


_MANY = 10_000
"""From so many on, numbers are not sorted to find the one in the middle."""


def tidy(value: Seconds) -> float:
    """Round to the microsecond, so that sums of floats print alike everywhere."""
    return round(value, 6)


def median(values: array[float]) -> float:
    """Return the median; many numbers are not turned into a list, which would take four times the memory."""
    middle = (len(values) - 1) // 2
    low = _nth(values, middle)
    return low if len(values) % 2 else (low + _nth(values, middle + 1)) / 2


def _nth(values: array[float], place: int) -> float:
    """Return what would stand at `place` if they were sorted (Hoare's selection)."""
    while len(values) > _MANY:
        pivot = sorted(values[:: len(values) // 999])[499]
        less = array("d", (value for value in values if value < pivot))
        if place < len(less):
            values = less
            continue
        place -= len(less) + values.count(pivot)
        if place < 0:
            return pivot
        values = array("d", (value for value in values if value > pivot))
    return sorted(values)[place]


@attrs.define
class Metrics:
    """Figures of a run, added up as jobs end."""

    jobs: int = 0
    wait_total: Seconds = 0.0
    slowdowns: float = 0.0
    """Of jobs that ran and ended."""
    ran: int = 0
    """How many these are."""
    ended: int = 0
    """How many ended, whether they ever ran or not."""
    preemptions: int = 0
    jobs_preempted: int = 0
    core_seconds_lost: float = 0.0
    """Work that was thrown away, and all of the jobs that preemption ended: a user must submit them again."""
    core_seconds_to_submit_again: float = 0.0
    """The part of it that is of jobs that preemption ended."""
    ended_by_preemption: int = 0
    lost_by_job: dict[str, tuple[str, float]] = attrs.field(factory=dict)
    """Job -> its user, and the core-seconds it lost."""
    core_seconds_asked: float = 0.0
    """What jobs that have ended needed: their CPUs for their run time, or for their limit where that is shorter."""
    core_seconds_done: float = 0.0
    """The part of it that is of jobs that completed."""
    core_seconds_open: float = 0.0
    """What jobs need that have not ended."""
    core_seconds_used: float = 0.0
    first_submit: Seconds | None = None
    last_end: Seconds = 0.0
    checkpoints: int = 0
    core_seconds_checkpointing: float = 0.0
    """Core-seconds for which nodes were held to write checkpoints."""
    core_seconds_restarting: float = 0.0
    """Core-seconds of running that went into reading checkpoints; part of those lost."""
    core_seconds_saved: float = 0.0
    """Core-seconds of work that checkpoints saved from being lost."""
    node_failures: int = 0
    """Times that a job lost its nodes."""
    ended_by_node_failure: int = 0
    young_victims: int = 0
    """How many preemptions ended a run that had just begun (`SchedulerTable.young_victim_age`)."""
    rows_unusable: int = 0
    unfinished: int = 0
    waits_in: dict[str, array[float]] = attrs.field(factory=dict)
    """The same waits by the partition of the first start."""
    wait_of: dict[str, Seconds] | None = None
    """The same waits by job; None: they were not asked for."""
    submitted_of: dict[str, Seconds] = attrs.field(factory=dict)
    """When the jobs of `wait_of` were submitted."""
    preemptions_of: dict[str, int] = attrs.field(factory=dict)
    """How often those of them had to make way that had to at all."""
    losses: list[tuple[str, Seconds, int]] | None = None
    """Each time that work was thrown away: the job, its seconds of running, its CPUs; None: they were not asked for."""
    pairs: dict[tuple[str, str, str], int] = attrs.field(factory=dict)
    """Preemptions by the group of the preemptor (empty: none in particular), that of the victim, and mode."""

    def as_dict(self, cores: int) -> dict[str, Any]:
        """Return the summary's metrics; waits in seconds from submission to first start."""
        waits = [each for each in self.waits_in.values() if each]
        every = array("d", itertools.chain.from_iterable(waits))
        began = self.first_submit or 0.0
        makespan = max(0.0, self.last_end - began)
        capacity = cores * makespan
        asked = self.core_seconds_asked + self.core_seconds_open
        return {
            "jobs": self.jobs,
            "mean_wait": tidy(self.wait_total / len(every)) if every else 0.0,
            "median_wait": tidy(median(every)) if every else 0.0,
            "max_wait": tidy(max(every)) if every else 0.0,
            "mean_bounded_slowdown": tidy(self.slowdowns / self.ran) if self.ran else 0.0,
            "utilisation": tidy(self.core_seconds_used / capacity) if capacity else 0.0,
            "makespan": tidy(makespan),
            "preemptions": self.preemptions,
            "jobs_preempted": self.jobs_preempted,
            "core_seconds_lost": tidy(self.core_seconds_lost),
            "rows_unusable": self.rows_unusable,
            "jobs_unfinished": self.unfinished,
            "jobs_ended_by_preemption": self.ended_by_preemption,
            "core_seconds_to_submit_again": tidy(self.core_seconds_to_submit_again),
            "goodput": tidy(self.core_seconds_done / asked) if asked else 0.0,
            **({"young_victims": self.young_victims} if self.young_victims else {}),
            **self._node_figures(),
            **self._checkpoint_figures(),
        }

    def _node_figures(self) -> dict[str, Any]:
        """Return what nodes that failed did; nothing where none did under a job."""
        if not self.node_failures:
            return {}
        return {
            "node_failures": self.node_failures,
            "jobs_ended_by_node_failure": self.ended_by_node_failure,
        }

    def _checkpoint_figures(self) -> dict[str, Any]:
        """Return what checkpoints cost; nothing where there were none."""
        if not self.checkpoints:
            return {}
        return {
            "checkpoints": self.checkpoints,
            "core_seconds_checkpointing": tidy(self.core_seconds_checkpointing),
            "core_seconds_restarting": tidy(self.core_seconds_restarting),
            "core_seconds_saved": tidy(self.core_seconds_saved),
        }

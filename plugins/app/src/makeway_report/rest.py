"""Add up jobs that are not drawn one by one: cores in use and jobs waiting, in equal steps of time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from makeway_report.places import Places

STEPS = 4000


class Rest:
    """Sums over time of jobs that are left out."""

    def __init__(self, end: float) -> None:
        self.jobs = 0
        self.core_seconds = 0.0
        self._step = max(end, 1.0) / STEPS
        self._cores = array("d", bytes(8 * (STEPS + 2)))
        self._waiting = array("d", bytes(8 * (STEPS + 2)))

    def add(self, job: Mapping[str, Any], places: Places) -> None:
        """Take a job."""
        self.jobs += 1
        for each in job["intervals"]:
            if each["state"] == "PENDING":
                self._box(self._waiting, each["start"], each["end"], 1)
            elif each["state"] == "RUNNING":
                cores = places.cores(each)
                self.core_seconds += cores * (each["end"] - each["start"])
                self._box(self._cores, each["start"], each["end"], cores)

    def _box(self, into: array[float], start: float, end: float, height: float) -> None:
        """Add `height` from `start` to `end`, by its share of the first and the last step."""
        for instant, sign in ((start, height), (end, -height)):
            place = instant / self._step
            at = min(int(place), STEPS)
            share = place - at
            into[at] += sign * (1 - share)
            into[at + 1] += sign * share

    def as_json(self) -> dict[str, Any]:
        """Return the means per step."""
        return {
            "jobs": self.jobs,
            "core_seconds": round(self.core_seconds),
            "step": self._step,
            "cores": [round(value, 2) for value in accumulate(self._cores[:STEPS])],
            "waiting": [round(value, 2) for value in accumulate(self._waiting[:STEPS])],
        }

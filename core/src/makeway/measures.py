"""Say what is told to code that adds up further figures of a run, which `makeway_report` does for clusters with GPUs.

A distribution offers a module as the tool ``measures`` (entry points ``makeway.tools``), with a function
``measures_of(cluster, *, always)`` that returns `Measures`, or None if they would say nothing about this cluster.
"""

from __future__ import annotations

from typing import Any

from makeway.model import Allocation, Job, JobState, PreemptMode, Seconds


class Measures:
    """What a recorder tells as it happens; this one adds up nothing."""

    def entered(self, job: Job, now: Seconds) -> None:
        """A job was submitted, or was there before."""

    def moved(self, job: Job, before: JobState, state: JobState, since: Seconds, now: Seconds) -> None:
        """A job is in another state; it was in the one before since `since`."""

    def holds(self, job: Job, allocation: Allocation, now: Seconds) -> None:
        """A job holds an allocation from now on."""

    def amended(self, job: Job, allocation: Allocation | None, seconds: Seconds) -> None:
        """A job ran so many seconds more than was thought, or fewer."""

    def lost(self, job: Job, allocation: Allocation | None, seconds: Seconds) -> None:
        """So many seconds of a job's running on this allocation were thrown away; below 0: they were not, after all."""

    def preempted(self, mode: PreemptMode) -> None:
        """A job was told to make way."""

    def ended(self, job: Job, *, started: bool, needed: Seconds, now: Seconds) -> None:
        """A job is over; one that a person has run again was over at its first end.

        :param started: whether it ever ran.
        :param needed: for how many seconds it had to run (`makeway.history.needed`).
        """

    def rejected(self, job: Job, now: Seconds) -> None:
        """A job can never run here."""

    def as_dict(self, begin: Seconds, end: Seconds) -> dict[str, Any]:
        """Return the measures by name; times in seconds.

        :param begin: first submission.
        :param end: last end of a job.
        """
        return {}

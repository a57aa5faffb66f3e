"""Keep nodes for those who have a reservation, as Slurm does (slurm-priority-and-limits 9).

A job without the reservation may not use its nodes if its time limit reaches into it. One that asked for it gets its
nodes only, from its start on, and is ended at its end. What is reserved stands in ``cluster.attributes.reservations``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from makeway.config import Config
from makeway.errors import ConfigError, Finding
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, Cluster, ClusterView, Job, Limits, Overdue, Window
from makeway_slurm.reservations.book import ReservationBook
from makeway_slurm.reservations.settings import Settings
from makeway_slurm.reservations.tables import ATTRIBUTE, UNMODELLED, Reservation, reservations_of


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the class that holds the settings."""
    return Settings


@hookimpl
def makeway_check(config: Config, cluster: Cluster) -> list[Finding]:
    """Say what is wrong with the tables."""
    del config
    try:
        return [finding for each in reservations_of(cluster) for finding in _left_out(each)]
    except ConfigError as error:
        return list(map(Finding.of, error.problems))


def _left_out(reservation: Reservation) -> Iterator[Finding]:
    """Name what a reservation asks for that is not modelled."""
    where = f"cluster.attributes.{ATTRIBUTE}"
    for flag in sorted(reservation.flags & frozenset(UNMODELLED)):
        yield Finding(level="warning", where=where, message=f"{reservation.name}: {flag} is not modelled")
    if reservation.start_delay:
        text = (
            "MaxStartDelay is not modelled; jobs with --signal=R: stay clear of the reservation as others do"
        )
        yield Finding(level="warning", where=where, message=f"{reservation.name}: {text}")


class Reserved(Limits):
    """Keeps reserved nodes for the jobs that asked for them."""

    def __init__(self, view: ClusterView) -> None:
        """Know the reservations."""
        self._view = view

    @functools.cached_property
    def _book(self) -> ReservationBook:
        return self._view.book(ReservationBook)

    def validate(self, job: Job, view: ClusterView) -> str:
        """Refuse a job that asks for a reservation of others, or for more nodes than it has."""
        return self._book.refused(job, view) if job.spec.reservation else ""

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Let a job wait until its reservation begins; one whose reservation has gone waits for good."""
        return self._book.waits(job, view) if job.spec.reservation else None

    def reservations(self, job: Job, view: ClusterView) -> Sequence[Window]:
        """Name the times for which reservations keep nodes from a job."""
        return self._book.windows(job, view)

    def expired(self, view: ClusterView) -> Overdue | None:
        """End the jobs whose reservation is over (no. 5)."""
        return self._book.overdue(view)


@hookimpl
def makeway_limits(view: ClusterView) -> Limits:
    """Keep to the reservations of the site."""
    return Reserved(view)


__all__ = ["Settings"]

"""Keep nodes for those who have a reservation, as Slurm does (slurm-priority-and-limits 9).

A job without the reservation may not use its nodes if its time limit reaches into it. One that asked for it gets its
nodes only, from its start on, and is ended at its end. What is reserved stands in ``cluster.attributes.reservations``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from makeway.config import Config
from makeway.errors import ConfigError, Finding
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, Cluster, ClusterView, Job, Overdue, Window
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


@hookimpl
def makeway_accept(jobs: Sequence[Job], view: ClusterView) -> Mapping[str, str]:
    """Refuse jobs that ask for a reservation of others, or for more nodes than it has."""
    book = view.book(ReservationBook)
    reasons = {job.id: book.refused(job, view) for job in jobs if job.spec.reservation}
    return {job_id: why for job_id, why in reasons.items() if why}


@hookimpl
def makeway_admit(jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Blocked]:
    """Let jobs wait until their reservation begins; whose reservation has gone waits for good."""
    book = view.book(ReservationBook)
    found = {job.id: book.waits(job, view) for job in jobs if job.spec.reservation}
    return {job_id: blocked for job_id, blocked in found.items() if blocked is not None}


@hookimpl
def makeway_windows(job: Job, view: ClusterView) -> Sequence[Window] | None:
    """Name the times for which reservations keep nodes from a job."""
    return view.book(ReservationBook).windows(job, view)


@hookimpl
def makeway_overdue(view: ClusterView) -> Overdue | None:
    """End the jobs whose reservation is over (no. 5)."""
    return view.book(ReservationBook).overdue(view)


__all__ = ["Settings"]

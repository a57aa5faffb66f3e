"""Show the queue as ``bjobs`` does: started jobs, then pending ones in the order of dispatch (lsf 10)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from makeway.model import ClusterView, Job, JobState, Listing, Seconds, StatusCommand
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import held_on
from makeway_lsf_queue.vocabulary import WORDS

_HEADINGS = ("JOBID", "USER", "STAT", "QUEUE", "FROM_HOST", "EXEC_HOST", "JOB_NAME", "SUBMIT_TIME")


def show(view: ClusterView, now: Seconds) -> list[Listing]:
    """Return the table; below a job that does not run, why."""
    del now  # bjobs shows no running times
    site = site_of(view)
    jobs = [*_started(site, view), *_pending(site, view)]
    rows = tuple(_row(job, view) for job in jobs)
    notes = {at: (why,) for at, job in enumerate(jobs) if (why := _why(job))}
    return [Listing(headings=_HEADINGS, rows=rows, notes=notes)]


def _started(site: Site, view: ClusterView) -> Sequence[Job]:
    return sorted(
        view.active, key=lambda job: (-site.queue_of(job).priority, job.started_at or 0.0, job.index)
    )


def _pending(site: Site, view: ClusterView) -> Sequence[Job]:
    return sorted(view.pending, key=lambda job: (-site.queue_of(job).priority, job.submit_at, job.index))


def _row(job: Job, view: ClusterView) -> tuple[str, ...]:
    state = WORDS.state(job.state, job.suspended_by, held=job.held)
    queue = job.partition.name if job.allocation else " ".join(part.name for part in job.partitions)
    return (job.id, job.user, state, queue, "-", _hosts(job, view), job.spec.name, _submitted(job))


def _hosts(job: Job, view: ClusterView) -> str:
    """Return ``2*h1:h2``: slots on each host, one left out."""
    held, nodes = job.allocation, view.cluster.nodes
    if held is None:
        return "-"
    slots = [(held_on(job, index, nodes[index].cpus), nodes[index].name) for index in held.node_indices]
    return ":".join(f"{count}*{name}" if count > 1 else name for count, name in slots)


def _submitted(job: Job) -> str:
    wall = job.spec.wall_submit
    if wall is None:
        return f"{job.spec.submit_at:g} s"
    return f"{datetime.datetime.fromtimestamp(wall, tz=datetime.UTC):%b %d %H:%M}"


def _why(job: Job) -> str:
    """Return the pending or suspending reason; empty: it runs."""
    if job.state is JobState.PENDING:
        return WORDS.reason(job.reason)
    return WORDS.suspension(job.state, job.suspended_by, job.marks)


BJOBS = StatusCommand(name="bjobs", options="-u all -w -ps", show=show)

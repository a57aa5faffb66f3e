"""Treat the components of a heterogeneous job as one, as Slurm does (docs/drive-slurm.md has what was tried).

A start takes a call for each component and one for all. First each component is bound to its nodes, which the lease
keeps from starting; then one call gives the lease to all of them, and Slurm starts all or none. So wherever makeway
dies between two calls, nothing starts elsewhere: a component that had the lease alone would start with others outside.
The leader cannot be sent to nodes, so it is kept from all others; outside the lease, too, for the lease is FLEX.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.model import JobState
from makeway_slurm_world.driving import orders
from makeway_slurm_world.driving.notebook import Request
from makeway_slurm_world.reading.jobs import LiveJob
from makeway_slurm_world.talking.words import Order


def parts_of(job: LiveJob, jobs: Mapping[str, LiveJob]) -> tuple[LiveJob, ...]:
    """Return all components of a job that have not ended, the leader first; an ordinary job alone.

    :param jobs: all jobs, by id.
    """
    het_id = job.spec.het_id
    if het_id is None:
        return (job,)
    found = [each for each in jobs.values() if each.spec.het_id == het_id]
    return tuple(sorted(found, key=lambda each: each.spec.het_offset))


def is_whole(parts: Sequence[LiveJob]) -> bool:
    """Whether all components wait that were submitted together; an ordinary job that waits is whole."""
    first = parts[0]
    if any(part.state is not JobState.PENDING for part in parts):
        return False
    if first.spec.het_id is None:
        return True
    return len(expand_hostlist(f"x[{first.fields.get('HetJobIdSet', first.number)}]")) == len(parts)


def is_leader(job: LiveJob) -> bool:
    """Whether a job is the component that Slurm's commands for all of them name."""
    return job.spec.het_id is not None and job.spec.het_offset == 0


def start_together(
    parts: Sequence[LiveJob], places: Mapping[str, Sequence[str]], lease: str, everything: Collection[str]
) -> Iterator[Order]:
    """Yield the calls that start a heterogeneous job; the last one starts it, those before start nothing.

    :param places: id of each component -> the nodes that it gets.
    :param everything: all nodes of the cluster.
    """
    for part in parts:
        nodes = places[part.id]
        if is_leader(part):
            yield orders.keep_from(part.id, fold_hostlist(sorted(set(everything) - set(nodes))))
        else:
            yield orders.bind(str(part.number), fold_hostlist(nodes), f"{len(nodes)}-{len(nodes)}")
    yield orders.start_bound(parts[0].id, lease)


def take_back_together(parts: Sequence[LiveJob], requests: Mapping[str, Request]) -> Iterator[Order]:
    """Yield the calls that undo a start that was not made: first no job has the lease, then all are as they were."""
    yield orders.leave_lease(orders.whole(parts[0].id))
    for part in parts:
        if part.id in requests:
            yield restore(part, requests[part.id])


def restore(job: LiveJob, request: Request) -> Order:
    """Give a job that waits its own request back."""
    if is_leader(job):
        return orders.keep_from(job.id, request.excluded or "")
    name = job.id if job.spec.het_id is None else str(job.number)
    return orders.bind(name, request.required, request.count)

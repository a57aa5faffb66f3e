"""Say why a suspended job stays suspended: what its arbiter answers, or else what holds what it needs."""

from __future__ import annotations

from collections.abc import Sequence

from makeway import bitmap
from makeway.bitmap import CoreBits
from makeway.model import Allocation, Gang, Job, JobState, Stay, SuspendedBy
from makeway.registry import Policies, guarded
from makeway_engine.ledger import Ledger


def reasons_of(job: Job, gang: Gang | None, policies: Policies, ledger: Ledger) -> list[Stay]:
    """Return all reasons for which `job` is not resumed now; none if it is not suspended, or nothing is known.

    :raises PolicyError: the arbiter answers with something else than reasons.
    """
    if job.state is not JobState.SUSPENDED:
        return []
    by_people = job.suspended_by is SuspendedBy.ADMIN
    found = [Stay(why="a person suspended it, and it was not resumed")] if by_people else []
    ask = getattr(gang, "stays", None)
    if ask is None:
        return found or _held_by_others(job, ledger)
    answer: Sequence[object] = guarded(policies, "makeway_gang", job, lambda: list(ask(job, ledger)))
    for each in answer:
        if not isinstance(each, Stay):
            raise policies.fault("makeway_gang", job, f"its stays() returned {each!r:.80}; allowed: Stay")
        found.append(each)
    return found


def _held_by_others(job: Job, ledger: Ledger) -> list[Stay]:
    """Return what runs on the job's cores, for arbiters that do not say."""
    held = job.allocation
    if held is None:
        return []
    holders: dict[str, None] = {}
    for index in held.node_indices:
        for other in ledger.jobs_on(index):
            theirs = other.allocation
            running = other.state is JobState.RUNNING and theirs is not None
            if running and theirs is not None and _cores(held, index) & _cores(theirs, index):
                holders[other.id] = None
    return [Stay(why="others run on its resources", holders=tuple(holders))] if holders else []


def _cores(held: Allocation, index: int) -> CoreBits:
    """Return the cores that an allocation holds on a node; all, where whole nodes are given out."""
    return held.cores[held.node_indices.index(index)] if held.cores is not None else bitmap.full(1 << 16)

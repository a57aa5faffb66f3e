"""Count shared resources, and give back what suspension gives back (lsf 8).

A job reserves a resource with ``attributes.rusage``. A suspended job gives back static resources that are
releasable, and keeps dynamic ones; what only preemption could free stands in the way as a limit does.
"""

from __future__ import annotations

from makeway.model import Blocked, Job
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.jobs import rusage
from makeway_lsf_queue.limits import MEMORY
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import memory_on


def blocked(site: Site, counted: Counted, job: Job) -> Blocked | None:
    """Return the first shared resource that is short for `job`; None: none is."""
    for name, wanted in rusage(job).items():
        table = site.settings.resources.get(name)
        if table is None:
            continue
        used = sum(
            rusage(other).get(name, 0.0)
            for other, suspended in counted.jobs
            if other.id != job.id and (not suspended or table.dynamic or not table.release)
        )
        if used + wanted > table.total:
            may = name in site.resources
            return Blocked(
                reason="PEND_JOB_NO_RESOURCE",
                resource="limit",
                wanted=wanted,
                available=max(0.0, table.total - used),
                detail=f"resource {name}: {wanted:g} wanted, {max(0.0, table.total - used):g} of {table.total} free"
                + ("" if may else "; it is not in PREEMPTABLE_RESOURCES"),
                liftable=may,
            )
    return None


def memory_is_preemptable(site: Site) -> bool:
    """Whether a suspended job gives back the memory that it reserved (8.2)."""
    return MEMORY in site.resources


def memory_kept(job: Job, index: int, stopped: bool) -> int:
    """Return the memory of a host that a job on it keeps from others: what it reserved or uses, whichever is more.

    :param stopped: it is suspended for the job in question: what it reserved comes back, no more (8.2).
    """
    reserved = memory_on(job, index)
    used = job.spec.attributes.get("memory_used_mb")
    kept = max(reserved, int(used)) if isinstance(used, int | float) else reserved
    return kept - reserved if stopped else kept

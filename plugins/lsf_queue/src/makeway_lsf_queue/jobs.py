"""Ask of a job what LSF asks: slots, run time, duration, kind (lsf 0.3, 4.3, 4.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.errors import unknown
from makeway.model import Exclusive, Job, JobState, Node, Seconds, SuspendedBy
from makeway_lsf_queue.asking import KEY, wrong_span
from makeway_lsf_queue.groups import Groups
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.values import WrongValueError

_NODE, _SUSPENDED, _BY_POLICY = Exclusive.NODE, JobState.SUSPENDED, SuspendedBy.POLICY


def slots(job: Job, nodes: tuple[Node, ...]) -> int:
    """Return how many slots a job holds, or asks for."""
    if job.allocation is None:
        return job.spec.cpus
    return sum(count for _, count in slots_on(job, nodes))


def slots_on(job: Job, nodes: tuple[Node, ...]) -> Iterator[tuple[int, int]]:
    """Yield node index and slots held there, for each node of an active job."""
    allocation = job.allocation
    if allocation is None:
        return
    if allocation.cpus is not None:
        yield from zip(allocation.node_indices, allocation.cpus, strict=True)
    else:
        yield from ((index, nodes[index].cpus) for index in allocation.node_indices)


_NUMBERS = ("estimated_run_time", "mig", "memory_used_mb")


def refused(job: Job, site: Site) -> str:
    """Return why bsub would not take a job, or what is wrong with its attributes; empty: nothing."""
    users = site.queue_of(job).users
    if users and site.settings.queue_users == "refuse" and not Groups.of(site).lists(users, job.user):
        return f"user {job.user} may not use queue {job.partition.name}: USERS is {users}"
    said = job.spec.attributes
    if "RES_REQ" in job.partition.attributes or KEY in said:
        try:
            wrong = wrong_span(job.spec, site.asked_of(job))
        except WrongValueError as error:
            return f"attributes.{KEY}: {error}"
        if wrong:
            return f"got {wrong}"
    if not said:
        return ""
    for key in _NUMBERS:
        if key in said and not _is_number(said[key]):
            return f"attributes.{key}: got {said[key]!r}; allowed: a number of 0 or more"
    given = said.get("rusage", {})
    if not isinstance(given, Mapping) or not all(map(_is_number, given.values())):
        return f"attributes.rusage: got {given!r}; allowed: a table of resources and amounts, {{ lic = 1 }}"
    name = str(said.get("application", ""))
    if name and site.applications and name not in site.applications:
        return unknown("application profile", name, site.applications)
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def hosts_of(job: Job) -> NodeBits:
    """Return the hosts that a pending job may go to (HOSTS of its queue, -m)."""
    return (job.required or job.partition.nodes) & ~job.excluded


def places_of(job: Job) -> NodeBits:
    """Return the hosts that a job is on, or may go to."""
    if job.allocation is not None:
        return job.nodes
    return hosts_of(job)


def is_parallel(job: Job) -> bool:
    """Whether it has more than one task."""
    return job.spec.cpus > 1


def is_exclusive(job: Job) -> bool:
    """Whether it was submitted with -x."""
    return job.spec.exclusive is _NODE


def is_suspended(job: Job) -> bool:
    """Whether it is SSUSP: by the system, not by a person."""
    return job.state is _SUSPENDED and job.suspended_by is _BY_POLICY


def by_brun(job: Job) -> bool:
    """Whether it was started with brun."""
    return "brun" in job.spec.flags


def service_class(job: Job) -> str:
    """Return the service class it is attached to; empty: none."""
    return str(job.spec.attributes.get("service_class") or "")


def gpus(job: Job) -> int:
    """Return how many GPUs it asked for, per host or in all."""
    if not (job.spec.gres or job.spec.gres_total):
        return 0
    asked = [job.spec.gres.get(name, 0) for name in job.spec.gres if name.partition(":")[0] == "gpu"]
    total = [n for name, n in job.spec.gres_total.items() if name.partition(":")[0] == "gpu"]
    return sum(asked) + sum(total)


def shares_gpus(job: Job) -> bool:
    """Whether it lets others on its GPUs (``gpu_mode``, ``gpu_j_exclusive``), so that preempting frees none (8.3)."""
    shared = job.spec.attributes.get("gpu_mode") == "shared"
    return shared and not job.spec.attributes.get("gpu_j_exclusive")


def rusage(job: Job) -> Mapping[str, float]:
    """Return what it reserved: resource -> amount."""
    given: Any = job.spec.attributes.get("rusage")
    return given if isinstance(given, Mapping) else {}


def duration(job: Job, site: Site) -> Seconds | None:
    """Return D: the estimated run time, else the run limit (4.3); None: neither is known."""
    given = job.spec.attributes.get("estimated_run_time")
    estimate = float(given) if isinstance(given, int | float) else site.application_of(job).run_time
    first, second = estimate, run_limit(job, site)
    if site.settings.duration == "run_limit":
        first, second = second, first
    return first if first is not None else second


def run_limit(job: Job, site: Site) -> Seconds | None:
    """Return the run limit: its own, its application's, its queue's (4.3); None: there is none."""
    limit = site.application_of(job).run_limit
    if job.spec.time_limit is not None or limit is None:
        return job.time_limit
    return limit if job.time_limit is None else min(limit, job.time_limit)


def run_time(job: Job, site: Site, now: Seconds) -> Seconds:
    """Return the run time that protections and LEAST_RUN_TIME look at (4.3)."""
    if site.settings.run_time == "since_start" and job.started_at is not None:
        return now - job.started_at
    return job.ran_until(now)


def unbroken_run(job: Job, now: Seconds) -> Seconds:
    """Return the run time since the last start or resume."""
    return now - job.resumed_at if job.resumed_at is not None else 0.0


def times_preempted(job: Job, site: Site) -> int:
    """Return the count that MAX_JOB_PREEMPT looks at: a requeue resets it, or does not (4.1)."""
    reset = site.level_of(job).reset
    return job.preemptions - (job.preemptions_before if reset in (None, True) else 0)


def time_preempted(job: Job, now: Seconds) -> Seconds:
    """Return the time that it spent suspended in all."""
    current = now - job.suspended_at if job.suspended_at is not None else 0.0
    return job.stopped + current


def may_migrate(job: Job, site: Site) -> Seconds | None:
    """Return how long it stays suspended before it migrates (6.1); None: it does not.

    The job's own time comes before its application's, that before its queue's; a smaller one of a host wins.
    """
    queue, application = site.queue_of(job), site.application_of(job)
    given = job.spec.attributes.get("mig")
    own = 60.0 * given if isinstance(given, int | float) else None
    mig = next((time for time in (own, application.mig, queue.mig) if time is not None), None)
    hosts = (site.cluster.nodes[index].attributes.get("MIG") for index in bitmap.indices(job.nodes))
    mig = min(
        (time for time in (mig, *(60.0 * int(text) for text in hosts if text)) if time is not None),
        default=None,
    )
    if mig is None or not (rerunnable(job, site) or checkpointable(job, site)):
        return None
    return mig


def rerunnable(job: Job, site: Site) -> bool:
    """Whether it is started again if its host fails, or it migrates."""
    if job.spec.requeue is not None:
        return job.spec.requeue
    own = site.application_of(job).rerunnable
    return own if own is not None else site.queue_of(job).rerunnable


def checkpointable(job: Job, site: Site) -> bool:
    """Whether its work is saved when it migrates."""
    own = site.application_of(job).checkpointable
    return own if own is not None else site.queue_of(job).checkpointable

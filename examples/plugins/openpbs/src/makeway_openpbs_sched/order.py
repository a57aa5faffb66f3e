"""Order the queue: waiting and suspended jobs together (sections 3.2 and 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from makeway.model import ClusterView, Job, Seconds
from makeway_openpbs_sched.site import QRUN, Site, is_preempted, preempted_at, usage_of


def in_order(jobs: Sequence[Job], view: ClusterView, now: Seconds, site: Site) -> list[Job]:
    """Sort by value, then preempted before others, earliest preempted first, then as they come.

    With by_queue the express and the preempted jobs at the head keep their places, and the others go queue by
    queue, the higher Priority first; with round_robin queues of one Priority take turns, without such a head.
    """
    usage = usage_of(site, view)
    on = (
        bool(jobs) and site.is_on(jobs[0], now)[0]
    )  # while preemption is off no job has a value (section 1.2)

    def place(job: Job) -> tuple[bool, bool, int, bool, Seconds]:
        preempted = is_preempted(job)
        return (
            QRUN not in job.spec.flags,
            job.spec.reservation is None,
            -site.value(job, usage, now) if on else 0,
            not preempted,
            preempted_at(job) if preempted else 0.0,
        )

    ordered = sorted(jobs, key=place)
    settings = site.settings
    if settings.round_robin:
        return _round_robin(ordered, site)
    if not settings.by_queue:
        return ordered
    head = list(takewhile(lambda job: _goes_first(job, site), ordered))
    rest = sorted(
        ordered[len(head) :], key=lambda job: (-site.priorities[job.partition.name], job.partition.index)
    )
    return [*head, *rest]


def _goes_first(job: Job, site: Site) -> bool:
    return job.partition.name in site.express or is_preempted(job) or QRUN in job.spec.flags


def _round_robin(ordered: Sequence[Job], site: Site) -> list[Job]:
    queues: dict[str, list[Job]] = {}
    for job in ordered:
        queues.setdefault(job.partition.name, []).append(job)
    turns = [
        (-site.priorities[name], turn, jobs[0].partition.index, job)
        for name, jobs in queues.items()
        for turn, job in enumerate(jobs)
    ]
    return [job for _, _, _, job in sorted(turns, key=lambda each: each[:3])]

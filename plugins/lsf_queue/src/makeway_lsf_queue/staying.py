"""Say why a suspended job is not resumed: window, preemptor, limit, resource, or who has its slots (lsf 6.3)."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from makeway.model import ClusterView, Job, JobState, Seconds, Stay, SuspendedBy
from makeway_lsf_queue import judging, opening, resources
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.judging import Verdict
from makeway_lsf_queue.limits import Counts, limits_of
from makeway_lsf_queue.settings import NAME
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import Used, could_resume
from makeway_lsf_queue.victims import mode_of

_OPTION = f'policy.settings."{NAME}"'


def stays(site: Site, job: Job, view: ClusterView, preemptor: str | None) -> Iterator[Stay]:
    """Yield each reason for which `job` is not resumed now.

    :param preemptor: for which job it waits, with ``resume = "preemptor"``; None: for none.
    """
    if job.suspended_by is SuspendedBy.ADMIN:
        return  # USUSP: until bresume
    yield from _window(site, job, view.now)
    if preemptor is not None:
        why = "it waits for the end of its preemptor"
        yield Stay(why=why, holders=(preemptor,), setting=f"{_OPTION}.resume")
    if limits_of(site) or site.settings.resources:
        counted = Counted.of(site, view, functools.partial(mode_of, site=site))
        for verdict in judging.standing_in_the_way(site, counted, job):
            yield _limited(counted, verdict, job)
        short = resources.blocked(site, counted, job)
        if short is not None:
            yield Stay(why=short.detail)
    used = Used(view)
    if not could_resume(job, used):
        running = (
            other for other in view.active if other.state is JobState.RUNNING and other.nodes & job.nodes
        )
        yield Stay(why="others use the slots of its hosts", holders=tuple(other.id for other in running))


def _window(site: Site, job: Job, now: Seconds) -> Iterator[Stay]:
    if opening.may_not_run(site, job, now):
        queue = site.queue_of(job)
        why = f"{opening.SUSPENDED}: the run window of queue {queue.name} is closed"
        opens = opening.next_edge(site, (job,), now)
        yield Stay(why=why, until=opens, setting=f"partition[{queue.index}].attributes.RUN_WINDOW")


def _limited(counted: Counted, verdict: Verdict, job: Job) -> Stay:
    limit = verdict.limit
    why = f"{limit.reason}: {verdict}"
    if limit.counts is Counts.JOBS and verdict.use.suspended:
        why += "; jobs_limit_on_resume = 'running' would leave these out"
    holders = tuple(other.id for other in counted.sharing(limit, job))
    return Stay(why=why, holders=holders, setting=verdict.setting)

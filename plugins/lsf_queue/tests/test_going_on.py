"""Hold what is kept about suspended jobs that cannot go on to looking at all active jobs anew (lsf 5.3, 6.3)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import ClusterView, Job, JobSpec, JobState, PreemptMode
from makeway_app.replay import Options, replay
from makeway_lsf_queue import judging
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.protection import Guard
from makeway_lsf_queue.resume import Arbiter
from makeway_lsf_queue.slots import Used, could_resume
from makeway_lsf_queue.survey import Survey
from makeway_lsf_queue.victims import mode_of

QUEUES = {
    "urgent": (60, {"PREEMPTION": "PREEMPTIVE[normal idle]"}),
    "normal": (30, {"PREEMPTION": "PREEMPTIVE[idle] PREEMPTABLE"}),
    "idle": (10, {"PREEMPTION": "PREEMPTABLE", "NO_PREEMPT_RUN_TIME": "1"}),
}


def _config(*, limited: bool = False) -> Config:
    """Return a site, with a limit on running slots or none."""
    own = {"users": {"default": {"MAX_JOBS": "6"}}} if limited else {}
    return Config(
        node=tuple(NodeTable(name=f"h{at}", cpus=4) for at in range(3)),
        partition=tuple(
            PartitionTable(name=name, priority_tier=tier, attributes=attributes)
            for name, (tier, attributes) in QUEUES.items()
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={"lsf/queue": own},
        ),
        scheduler=SchedulerTable(type="greedy"),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    return [
        JobSpec(
            id=str(at + 1),
            partitions=(chance.choice(tuple(QUEUES)),),
            submit_at=float(10 * at),
            run_time=float(chance.randint(5, 300)),
            tasks=chance.choice((1, 1, 2, 5)),
        )
        for at in range(80)
    ]


def _seen(job: Job, view: ClusterView) -> str:
    """Return what a look at all active jobs says: it has its slots, may have them by stopping others, or is stuck."""
    site = site_of(view)
    if could_resume(job, Used(view)):
        return "free"
    guard = Guard(site, job, view, view.now)
    below = [
        other
        for other in view.active
        if other.state is JobState.RUNNING
        and other.nodes & job.nodes
        and site.may_preempt(job.partition.name, other.partition.name)
        and mode_of(other, site) is PreemptMode.SUSPEND
        and not guard.reason(other)
    ]
    return "stops" if below and could_resume(job, Used(view), below) else "stuck"


def _breaks_limit(job: Job, view: ClusterView) -> bool:
    """Return what a look at all limits says, each counted one by one."""
    site = site_of(view)
    counted = Counted.of(site, view, functools.partial(mode_of, site=site))
    return bool(list(judging.standing_in_the_way(site, counted, job)))


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_who_cannot_go_on_is_who_finds_no_slots(
    seed: int, limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that a suspended job is looked at, whatever was remembered of it."""
    needed, awake, said = Arbiter._needed, Arbiter._awake, Counter[str]()

    def noted(self: Arbiter, job: Job, view: ClusterView, survey: Survey) -> list[Job] | None:
        found = needed(self, job, view, survey)
        word = "stuck" if found is None else "stops" if found else "free"
        assert word == _seen(job, view)
        said[word] += 1
        return found

    def remembered(self: Arbiter, listed: Sequence[Job], view: ClusterView, survey: Survey) -> Sequence[Job]:
        found = awake(self, listed, view, survey)
        for job in listed:
            if job not in found:
                breaks = _breaks_limit(job, view)
                assert breaks or _seen(job, view) == "stuck"
                said["limited" if breaks else "remembered"] += 1
        return found

    monkeypatch.setattr(Arbiter, "_needed", noted)
    monkeypatch.setattr(Arbiter, "_awake", remembered)
    replay(_config(limited=limited), _jobs(seed), (), Options(keep=False))
    assert said["free"] > 3
    assert said["limited" if limited else "remembered"] > 20

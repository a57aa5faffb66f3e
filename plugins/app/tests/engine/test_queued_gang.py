"""Suspended jobs that wait in the queue, and victims that cannot make way, with plugins made of one function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Candidates,
    Choice,
    ClusterView,
    GangOrder,
    GangVerb,
    Job,
    JobState,
    Placement,
    Plan,
    PreemptMode,
    Protection,
)
from makeway_testing import one_node, replay_table, tiers, timeline

TIERS = {
    "partitions": tiers(low=1, mid=2, hi=3),
    "scheduler": "greedy",
    "select": "select/cons_tres",
    "select_parameters": "CR_Core",
}


class InTurn:
    """Lets every suspended job wait in the queue, and resumes it once its cores are free."""

    next_tick = None

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    ended = held = started

    def tick(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    before_pass = after_pass = tick

    def waiting(self, view: ClusterView) -> Sequence[Job]:
        """All of them."""
        return [job for job in view.active if job.state is JobState.SUSPENDED]

    def turn(self, job: Job, view: ClusterView) -> Iterator[GangOrder]:
        """Resume it if nothing runs there."""
        if not any(o.state is JobState.RUNNING and o.nodes & job.nodes for o in view.active):
            yield GangOrder(verb=GangVerb.RESUME, job=job)


@hookimpl
def makeway_gang(view: ClusterView) -> InTurn:
    """Build it."""
    return InTurn()


@hookimpl
def makeway_preempt_candidates(preemptor: Job, active: Sequence[Job]) -> Candidates:
    """Lower tiers, by suspension; those that are suspended already hold their cores until another job takes them."""
    tier = preemptor.partition.priority_tier
    lower = tuple(j for j in active if j.partition.priority_tier < tier)
    return Candidates(jobs=lower, modes=(PreemptMode.SUSPEND,) * len(lower))


@hookimpl
def makeway_search(attempt: Attempt, candidates: Candidates) -> Choice | None:
    """Take them in order until it fits."""
    for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes, strict=True)):
        attempt.remove(job, mode)
        found = attempt.probe()
        if isinstance(found, Placement):
            return Choice(placement=found, victims=tuple(range(at + 1)))
    return None


QUEUED = SimpleNamespace(
    makeway_gang=makeway_gang,
    makeway_preempt_candidates=makeway_preempt_candidates,
    makeway_search=makeway_search,
)


def replay(jobs: str, plugin: Any = QUEUED, scheduler: str = "greedy", **more: Any) -> Any:
    """Replay on a node of 4 CPUs under the plugin."""
    config = TIERS | {"preempt": "preempt/test", "scheduler": scheduler}
    return replay_table(
        jobs, cluster=one_node(cpus=4), config=config, plugins={"preempt/test": plugin}, **more
    )


@pytest.mark.parametrize("scheduler", ["greedy", "easy", "builtin", "backfill"])
def test_a_suspended_job_waits_in_the_order_of_the_queue(scheduler: str) -> None:
    """Behind the pending job of a higher tier, before the pending one of its own tier that came later."""
    run = replay(
        """
        job   partition  submit  cpus  run_time
        low   low             0     4        60
        high  hi             10     4        20
        more  mid            15     4        10
        late  low            16     4        10
    """,
        scheduler=scheduler,
    )
    assert run.timeline == timeline("""
         0  low   start
        10  low   suspend  for high
        10  high  start
        30  high  complete
        30  more  start
        40  more  complete
        40  low   resume
        90  low   complete
        90  late  start
       100  late  complete
    """)


def test_when_it_had_to_make_way_is_known() -> None:
    """One instant for each preemption."""
    run = replay("""
        job  partition  submit  cpus  run_time
        low  low             0     4        60
        a    hi             10     4        20
        b    hi             50     4        20
    """)
    assert run.history("low").job.preempted_at == (10.0, 50.0)


def _stubborn(*names: str, rounds: int) -> Any:
    """Return a policy under which the jobs called `names` cannot make way."""

    @hookimpl
    def makeway_preempt_candidates(preemptor: Job, active: Sequence[Job]) -> Candidates:
        lower = tuple(j for j in active if j.partition.priority_tier < preemptor.partition.priority_tier)
        return Candidates(jobs=lower, modes=(PreemptMode.REQUEUE,) * len(lower), rounds=rounds)

    @hookimpl
    def makeway_preempt_action(victims: Sequence[Job], modes: Sequence[PreemptMode]) -> list[Plan]:
        return [
            Plan(job=job, mode=mode, why="asked to", fails=job.id in names)
            for job, mode in zip(victims, modes, strict=True)
        ]

    return SimpleNamespace(
        makeway_preempt_candidates=makeway_preempt_candidates,
        makeway_preempt_action=makeway_preempt_action,
        makeway_search=makeway_search,
    )


FOUR = """
    job  partition  submit  cpus  run_time
    a    low             0     1       100
    b    low             0     1       100
    c    low             0     1       100
    d    low             0     1       100
    x    hi             10     1        10
"""


def test_another_victim_is_sought_where_one_cannot_make_way() -> None:
    """b goes in the place of a."""
    run = replay(FOUR, _stubborn("a", rounds=5))
    assert run.victims == ("b",)
    assert run.starts("x") == (10.0,)
    failed = [line for line in run.lines if line.kind == "not_preempted"]
    assert [line.job for line in failed] == ["a"]


def test_rounds_are_limited() -> None:
    """Two searches find a and b unable; c is not asked, and x waits until a job ends."""
    run = replay(FOUR, _stubborn("a", "b", rounds=2))
    assert run.victims == ()
    assert run.starts("x") == (100.0,)


def test_one_round_spares_every_job() -> None:
    """The default: one failure, and no job makes way."""
    run = replay(FOUR, _stubborn("a", rounds=1))
    assert run.victims == ()
    assert run.starts("x") == (100.0,)


@pytest.mark.parametrize(("until", "start"), [(25.0, 25.0), (None, 60.0)], ids=["until 25 s", "not known"])
def test_a_veto_that_ends_by_itself(until: float | None, start: float) -> None:
    """What waits is tried again at the end that the veto names; else when something happens."""

    @hookimpl
    def makeway_protect(candidates: Sequence[Job], now: float) -> dict[str, Protection]:
        return {job.id: Protection(reason="busy", until=until) for job in candidates if now < 25}

    run = replay_table(
        """
        job  partition  submit  cpus  run_time
        a    low             0     4        60
        b    hi             10     4        20
        """,
        cluster=one_node(cpus=4),
        config=TIERS | {"preempt": "preempt/test", "protect": "protect/test"},
        plugins={"preempt/test": QUEUED, "protect/test": SimpleNamespace(makeway_protect=makeway_protect)},
    )
    assert run.starts("b") == (start,)


def test_an_arbiter_may_have_a_job_checkpointed() -> None:
    """One that may not be requeued from nothing keeps its work all the same, and is not killed."""

    class Saves(InTurn):
        def tick(self, view: ClusterView) -> Sequence[GangOrder]:
            """Checkpoint what runs, once, at 10 s."""
            running = [job for job in view.active if view.now == 10.0 and not job.preempted_at]
            return [GangOrder(verb=GangVerb.PREEMPT, job=job, mode=PreemptMode.CHECKPOINT) for job in running]

        before_pass = tick

    @hookimpl
    def makeway_gang(view: ClusterView) -> Saves:
        return Saves()

    plugin = SimpleNamespace(makeway_gang=makeway_gang, makeway_preempt_candidates=makeway_preempt_candidates)
    run = replay(
        """
        job  partition  submit  cpus  run_time  requeue
        a    low             0     4        60  false
        b    hi             10     1         5  -
        """,
        plugin,
    )
    assert run.timeline[-1] == "65 a complete"  # 10 s saved, 5 s behind b, 50 s more
    assert run.engine.metrics()["core_seconds_lost"] == 0.0

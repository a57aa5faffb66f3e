"""What parts of the engine make of what another one handed over, or of nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, build_cluster
from makeway.model import Allocation, Job, JobSpec, JobState, SuspendedBy
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Command, Submitted
from makeway_engine.deeds import Deeds
from makeway_engine.engine import Engine
from makeway_engine.ledger import put
from makeway_engine.queue import key_of, key_reserved_first
from makeway_engine.throttle import Throttle
from makeway_engine.why_suspended import reasons_of


def engine(*specs: JobSpec) -> Engine:
    """Return one node with 4 CPUs, to which these jobs were submitted."""
    config = Config(
        node=(NodeTable(name="n1", cpus=4),), partition=(PartitionTable(name="main", default=True),)
    )
    run = Engine(config, Recorder(build_cluster(config)), Policies(config))
    run.step(0.0, [Submitted(spec) for spec in specs])
    return run


def task(number: int) -> JobSpec:
    """Return a task of an array of which one may run at a time."""
    return JobSpec(id=f"7_{number}", array_id="7", array_limit=1, array_task=number, time_limit=60.0)


def test_without_memory_the_tasks_that_run_have_their_turn() -> None:
    """One runs and one waits: the one that waits is not let in (slurm-priority-and-limits 8 no. 2)."""
    run = engine(task(1), task(2))
    jobs = run.ledger.jobs
    assert [job.state for job in jobs.values()] == [JobState.RUNNING, JobState.PENDING]
    throttle = Throttle()
    throttle.restore(jobs, None)
    assert throttle.save() == {"7": ["7_1"]}
    assert not throttle.lets_in(jobs["7_2"])


def test_a_task_that_is_killed_gives_up_its_turn_at_once() -> None:
    """The next one starts on another node while the nodes of that one are left (recording array_next_while_cleaned)."""
    config = Config(
        node=(NodeTable(name="n[1-2]", cpus=1),), partition=(PartitionTable(name="main", default=True),)
    )
    run = Engine(config, Recorder(build_cluster(config)), Policies(config))
    run.step(0.0, [Submitted(task(1)), Submitted(task(2))])
    first, second = run.ledger.jobs.values()
    run.step(5.0, [Command("cancel", "7_1")])
    assert (first.state, second.state) == (JobState.COMPLETING, JobState.RUNNING)
    throttle = Throttle()
    throttle.restore(run.ledger.jobs, None)
    assert throttle.save() == {"7": ["7_2"]}


def test_tasks_that_backfill_left_unseen_are_eligible_from_the_next_look_on() -> None:
    """They did not age while others were at work (recording array_limit_age); once seen, they did."""
    for seen in (False, True):
        run = engine(task(1), task(2), task(3))
        first, second, third = run.ledger.jobs.values()
        throttle = Throttle()
        assert throttle.lets_in(first)
        if not seen:
            put(first, state=JobState.RUNNING)
        else:
            put(first, state=JobState.PENDING)
        for each in (first, second, third):
            throttle.came(each)
            throttle.lets_in(each)
        throttle.looked_at()
        put(first, state=JobState.RUNNING, started_at=0.0)
        assert list(throttle.held_up_by(first)) == ([] if seen else [second, third])


def test_with_memory_a_job_that_had_its_turn_has_it() -> None:
    """A task that waits had been let in before: it keeps its turn."""
    run = engine(task(1), task(2))
    throttle = Throttle()
    throttle.restore({"7_2": run.ledger.jobs["7_2"]}, {"7": ["7_2"]})
    assert throttle.lets_in(run.ledger.jobs["7_2"])


def test_actions_that_may_still_fail_are_handed_over() -> None:
    """The start of a job is open until its outcome is known; that of a job that has gone is dropped."""
    run = engine(JobSpec(id="a", time_limit=60.0))
    assert run.deeds is not None
    cluster, before = run.ledger.cluster, run.deeds
    assert before.open_serials()
    memory = before.save(cluster)
    after, empty = Deeds(), Deeds()
    after.restore(memory, run.ledger.jobs, cluster)
    assert after.open_serials() == before.open_serials()
    empty.restore(memory, {}, cluster)
    assert empty.open_serials() == set()
    assert empty.next_serial == before.next_serial


def _job(name: str, state: JobState, cores: int | None) -> Job:
    shown = Allocation(nodes=bitmap.single(0), node_indices=(0,), cores=None if cores is None else (cores,))
    return cast(Job, SimpleNamespace(id=name, state=state, allocation=shown, suspended_by=SuspendedBy.POLICY))


def test_who_holds_the_cores_of_a_stopped_job() -> None:
    """An arbiter that does not say why: those that run on the same cores, and no others."""
    mine = _job("mine", JobState.SUSPENDED, 0b0011)
    there = [
        _job("over", JobState.RUNNING, 0b0010),
        _job("beside", JobState.RUNNING, 0b1100),
        _job("stopped", JobState.SUSPENDED, 0b0011),
        _job("whole", JobState.RUNNING, None),
    ]
    ledger: Any = SimpleNamespace(jobs_on=lambda index: there)
    (stay,) = reasons_of(mine, None, cast(Any, None), ledger)
    assert (stay.why, stay.holders) == ("others run on its resources", ("over", "whole"))


def test_a_rank_is_found_again_in_the_place_of_a_job() -> None:
    """With reservations first, and without (slurm-priority-and-limits 9 no. 8): what takes over goes by it."""
    run = engine(JobSpec(id="plain", time_limit=60.0), JobSpec(id="asks", time_limit=60.0, reservation="r"))
    plain, asks = run.ledger.jobs["plain"], run.ledger.jobs["asks"]
    for make in (key_of, key_reserved_first):
        run.queue.key_of = make
        found = {
            job.id: [run.queue._rank_in(make(job, job.partition, rank)) for rank in (0, 1, 7)]
            for job in (plain, asks)
        }
        assert found == {"plain": [0, 1, 7], "asks": [0, 1, 7]}
    assert key_reserved_first(asks, asks.partition, 1) < key_reserved_first(plain, plain.partition, 1)
    assert key_reserved_first(plain, plain.partition, 0) < key_reserved_first(asks, asks.partition, 1)

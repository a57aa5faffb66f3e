"""What random clusters and workloads found, as small as it could be made; none may come back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from makeway.hookspecs import hookimpl
from makeway.model import ClusterView, Job, JobSpec, JobState, QueueOrder
from makeway_engine import engine
from makeway_testing import cluster, one_node, replay_table, tiers, timeline

REQUEUE: dict[str, Any] = {"preempt": "preempt/partition_prio", "preempt_mode": "requeue"}


def test_a_tick_in_the_instant_of_a_kill() -> None:
    """The arbiter hears of an end once the nodes are clean; what it orders before is void."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      1        25          20
        b         0      1        10           -
        """,
        config={
            "preempt_mode": "gang",
            "timeslice": 10,
            "partitions": {"batch": {"oversubscribe": "FORCE:2"}},
            "clockwork": {"first_tick": 10.0},
        },
    )
    assert {job: run.state(job) for job in "ab"} == {
        "a": JobState.TIMEOUT,
        "b": JobState.COMPLETED,
    }


def test_core_seconds_of_a_victim_that_ends_by_itself() -> None:
    """Its allocation was gone when they were added up."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        low   low             0      1        10
        high  hi              5      1         1
        """,
        cluster=one_node(cpus=1),
        config=REQUEUE
        | {"partitions": {"low": {"grace_time": 10.0}, "hi": {"priority_tier": 2}}}
        | {"scheduler": "builtin"},
    )
    assert run.starts("low") == (0.0, 11.0)
    assert run.run.recorder.metrics.core_seconds_used == 21.0


def test_easy_keeps_the_nodes_that_a_preemptor_waits_for() -> None:
    """Others took them while its victims left, had to make way in turn, and so for ever."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        j1   c               3      1       100
        j8   a,b            54      1        40
        j10  a              85      2         0
        j11  a,c            86      1        10
        """,
        cluster=cluster(2),
        config=REQUEUE | {"partitions": tiers(a=3, b=1, c=2)},
    )
    assert run.timeline[2:] == timeline("""
         94  j8   complete
         94  j1   requeue   for j10
         94  j1   start
         94  j10  start
         94  j10  complete
         94  j11  start
        104  j11  complete
        194  j1   complete
    """)


def het(*parts: tuple[str, ...], submit_at: float, run_time: float) -> list[JobSpec]:
    """Return the components of a heterogeneous job, each with its partitions."""
    return [
        JobSpec(
            id=f"h+{at}",
            partitions=names,
            submit_at=submit_at,
            run_time=run_time,
            het_id="h",
            het_offset=at,
        )
        for at, names in enumerate(parts)
    ]


@pytest.mark.parametrize(
    ("asked", "nodes"), [({"licenses": {"a": 1}}, 4), ({}, 1)], ids=["a licence is short", "nodes are short"]
)
def test_what_a_het_job_waits_for(asked: dict[str, Any], nodes: int) -> None:
    """Backfill knows no other word than Resources for what a component lacks (recorded: het_licences)."""
    held = JobSpec(id="held", partitions=("low",), run_time=50.0, time_limit=60.0, licenses={"a": 1})
    first, second = het(("low",), ("low",), submit_at=5.0, run_time=5.0)
    tables = {"partitions": tiers(low=1), "scheduler": "backfill", "licenses": {"a": 1}}
    listed = [held, first, attrs.evolve(second, **asked)]
    run = replay_table(listed, cluster=cluster(nodes + 1 if not asked else nodes), config=tables, until=30.0)
    assert run.starts("h+0") == run.starts("h+1") == ()
    assert run.reason("h+1") == "Resources"


def low(id: str, submit_at: float, run_time: float) -> JobSpec:
    """Return a job of one node in the partition low."""
    return JobSpec(id=id, partitions=("low",), submit_at=submit_at, run_time=run_time)


def test_a_het_job_that_never_fits_displaces_no_job() -> None:
    """Two components and one node: the first one had a victim every three minutes, for ever."""
    specs = [low("a", 0.0, 40.0), *het(("hi",), ("hi",), submit_at=5.0, run_time=5.0)]
    for scheduler in ("easy", "backfill"):
        run = replay_table(specs, config=REQUEUE | {"partitions": tiers(low=1, hi=2), "scheduler": scheduler})
        assert run.victims == ()
        assert run.reason("h+0") == "Resources"  # recorded: backfill_het_never_fits


def test_a_het_job_that_never_fits_holds_up_no_job() -> None:
    """EASY reserved a node for it."""
    specs = [*het(("low",), ("low",), submit_at=0.0, run_time=5.0), low("a", 1.0, 40.0)]
    run = replay_table(specs, config={"partitions": tiers(low=1), "scheduler": "easy"})
    assert run.starts("a") == (1.0,)


def test_easy_keeps_the_nodes_that_a_het_preemptor_waits_for() -> None:
    """As for ordinary jobs: all its nodes, not those of one component."""
    specs = [
        low("a", 0.0, 40.0),
        low("b", 5.0, 100.0),
        *het(("hi",), ("hi",), submit_at=5.0, run_time=5.0),
    ]
    run = replay_table(specs, cluster=cluster(2), config=REQUEUE | {"partitions": tiers(low=1, hi=2)})
    assert run.starts("h+0") == run.starts("h+1") == (5.0,)
    assert run.starts("a")[-1] == run.starts("b")[-1] == 10.0


@pytest.mark.parametrize("parts", [1, 2])
def test_backfill_keeps_nodes_for_a_het_job_that_waits(parts: int) -> None:
    """slurm-preemption 5.3 no. 8: components are planned separately, each with whole nodes of its own.

    A job that would be over too late does not slip in front, whether the job it waits behind has parts or not; one
    that is over in time does. Without that a stream of long small jobs kept the heterogeneous job out for ever.
    """
    mine = het(*[("p",)] * 2, submit_at=1.0, run_time=10.0)
    if parts == 1:
        mine = [JobSpec(id="h+0", partitions=("p",), min_nodes=2, submit_at=1.0, run_time=10.0)]
    mine = [attrs.evolve(spec, time_limit=600.0) for spec in mine]
    specs = [
        JobSpec(id="busy", partitions=("p",), submit_at=0.0, run_time=120.0, time_limit=120.0),
        *mine,
        JobSpec(id="long", partitions=("p",), submit_at=2.0, run_time=1000.0, time_limit=1000.0),
        JobSpec(id="short", partitions=("p",), submit_at=3.0, run_time=50.0, time_limit=60.0),
    ]
    for together in (True, False):
        rules = {"rules": {"het_planned_together": together}}
        config = {"partitions": {"p": {}}, "scheduler": "backfill"} | rules
        run = replay_table(specs, cluster=cluster(2), config=config)
        # The first component could start at once, and the other node is kept idle for it (het_first_could_start).
        assert run.starts("short") == ((3.0,) if parts == 1 else (130.0,))
        assert run.starts("h+0") == (120.0,)
        assert run.starts("long")[0] >= 130.0


@pytest.mark.parametrize(("in_turn", "start"), [(True, 9.0), (False, 3.0)])
def test_backfill_takes_back_components_that_started(in_turn: bool, start: float) -> None:
    """slurm-preemption 5.3 no. 8: of three components two fit, and the third has to wait for its victim.

    The two are taken back for the requeue delay of six seconds (recorded: backfill_het_taken_back). Without the rule
    all wait for the victim together, and it leaves at once. Only the victim is restarted.
    """
    specs = [
        JobSpec(id="victim", partitions=("low",), submit_at=0.0, run_time=40.0),
        *het(*[("hi",)] * 3, submit_at=3.0, run_time=3.0),
    ]
    config = REQUEUE | {
        "partitions": tiers(low=1, hi=2),
        "scheduler": "backfill",
        "rules": {"het_starts_in_turn": in_turn},
        "clockwork": {"requeue_delay": 6.0},
    }
    run = replay_table(specs, cluster=cluster(3), config=config)
    assert [run.starts(f"h+{part}") for part in range(3)] == [(start,)] * 3
    assert run.starts("victim") == (0.0, start + 3.0 if in_turn else 9.0)


@pytest.mark.parametrize("scheduler", ["easy", "backfill", "greedy"])
def test_components_that_suspend_others_start_at_once(scheduler: str) -> None:
    """Nothing has to be waited for where victims are only stopped (recorded: backfill_het_suspends)."""
    specs = [
        *(JobSpec(id=name, partitions=("low",), submit_at=0.0, run_time=40.0) for name in ("v", "w")),
        *het(*[("hi",)] * 2, submit_at=3.0, run_time=5.0),
    ]
    config = {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "suspend,gang",
        "partitions": tiers(low=1, hi=2),
        "scheduler": scheduler,
    }
    run = replay_table(specs, cluster=cluster(2), config=config)
    assert run.starts("h+0") == run.starts("h+1") == (3.0,)


@pytest.mark.parametrize("scheduler", ["easy", "backfill", "greedy", "builtin"])
@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        pytest.param(
            {},
            {"min_nodes": 9},
            "component h+1: PartitionNodeLimit: needs 9 nodes; partition p gives at most 2",
            id="the second",
        ),
        pytest.param(
            {"min_nodes": 9},
            {},
            "component h+0: PartitionNodeLimit: needs 9 nodes; partition p gives at most 2",
            id="the first",
        ),
        pytest.param(
            {}, {"cpus_per_task": 9}, "component h+1: needs 1 node with 9 CPUs; ", id="too large nodes"
        ),
        pytest.param(
            {}, {"licenses": {"x": 1}}, "component h+1: 1 of licence x wanted, of which the", id="licences"
        ),
    ],
)
def test_a_het_job_is_refused_as_a_whole(
    one: dict[str, Any], other: dict[str, Any], reason: str, scheduler: str
) -> None:
    """The component that could run started alone, or waited for ever."""
    specs = het(("p",), ("p",), submit_at=0.0, run_time=10.0)
    specs = [attrs.evolve(specs[0], **one), attrs.evolve(specs[1], **other)]
    config = {"partitions": tiers(p=1, low=1), "scheduler": scheduler}
    run = replay_table([*specs, low("a", 1.0, 5.0)], cluster=cluster(2), config=config)
    refused = {job: why for job, _, why in run.run.recorder.unrunnable}
    assert sorted(refused) == ["h+0", "h+1"]
    assert run.starts("h+0") == run.starts("h+1") == ()
    assert run.starts("a") == (1.0,)
    if scheduler != "builtin":
        assert all(why.startswith(reason) for why in refused.values())


def test_a_het_job_waits_for_a_partition_that_is_down() -> None:
    """Its other component does not start alone, nor are nodes kept for it."""
    specs = [
        *het(("up",), ("down",), submit_at=0.0, run_time=10.0),
        JobSpec(id="a", partitions=("up",), submit_at=1.0, run_time=10.0),
    ]
    for scheduler in ("easy", "backfill", "greedy"):
        config = {"partitions": {"up": {}, "down": {"up": False}}, "scheduler": scheduler}
        run = replay_table(specs, cluster=cluster(2), config=config)
        assert (run.starts("h+0"), run.starts("h+1")) == ((), ())
        assert run.reason("h+1") == "PartitionDown"
        assert run.starts("a")


def test_a_het_job_of_several_partitions_runs_in_the_one_tried() -> None:
    """It was tried with the rank of one partition and started in another, where others displaced it."""
    specs = [
        *het(("low", "hi"), submit_at=0.0, run_time=50.0),
        JobSpec(id="m", partitions=("mid",), submit_at=10.0, run_time=10.0),
    ]
    run = replay_table(specs, config=REQUEUE | {"partitions": tiers(low=1, mid=2, hi=3)})
    assert run.timeline == timeline("""
         0  h+0  start
        50  h+0  complete
        50  m    start
        60  m    complete
    """)


def test_one_look_of_the_main_scheduler_per_interval() -> None:
    """S27 with epilogs of no length: what the look itself changed is for the next one."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1        30
        b         0      1        30
        """,
        config={
            "scheduler": "builtin",
            "clockwork": {
                "sched_interval": 10.0,
                "pass_on_submit": False,
                "pass_on_completion": False,
                "pass_on_own_end": False,
            },
        },
    )
    assert (run.starts("a"), run.starts("b")) == ((0.0,), (30.0,))


def test_a_job_that_gang_requeues_as_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE:2 lets it start beside a job of a higher tier, in whose shadow it has to go at once."""
    monkeypatch.setattr(engine, "_MOST_STEPS_AT_ONE_INSTANT", 100)
    partitions = {
        "hi": {"oversubscribe": "FORCE:2", "priority_tier": 2},
        "low": {"oversubscribe": "FORCE:2", "preempt_mode": "requeue"},
    }
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        high  hi              0      1        40
        low   low             5      1        50
        """,
        config=REQUEUE | {"preempt_mode": "suspend,gang", "partitions": partitions},
    )
    assert run.state("low") is JobState.COMPLETED


def test_the_kit_needs_no_hypothesis() -> None:
    """Only the strategies do."""
    script = "import sys; sys.modules['hypothesis'] = None; import makeway_testing"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_job_of_two_partitions_that_is_stopped_as_it_starts() -> None:
    """The pass went on to its second entry, and asked an arbiter without turns for one (found by a contract)."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        j9   a              35      2        10
        j10  b,a            40      1        10
        """,
        cluster=cluster(2, cpus=1),
        config={
            "preempt_mode": "suspend,gang",
            "partitions": {"a": {"oversubscribe": "FORCE:3"}, "b": {}},
            "scheduler": "builtin",
        },
    )
    assert {run.state(job) for job in ("j9", "j10")} == {JobState.COMPLETED}


def test_an_order_that_a_start_changes_counts_at_the_next_look() -> None:
    """Users without a running job come first: once a1 runs, b goes before a2, which had held it up."""

    class IdleUsersFirst(QueueOrder):
        @hookimpl
        def makeway_queue(self) -> QueueOrder:
            return self

        def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
            busy = {job.spec.user for job in view.active}
            return sorted(pending, key=lambda job: job.spec.user in busy)

    run = replay_table(
        """
        job  user  submit  nodes  run_time
        a1   a          0      1        60
        a2   a          0      2        10
        b    b          0      1        10
        """,
        cluster=cluster(2, cpus=1),
        config={
            "scheduler": "builtin",
            "plugins": "test/idle_users_first",
            "clockwork": {
                "sched_interval": 10.0,
                "pass_on_submit": False,
                "pass_on_completion": False,
                "pass_on_own_end": False,
            },
        },
        plugins={"test/idle_users_first": IdleUsersFirst()},
    )
    assert [run.starts(job) for job in ("a1", "b", "a2")] == [(0.0,), (10.0,), (60.0,)]

"""What runs when under gang scheduling: the worked timelines of slurm-gang-and-select 3.4, and numbered scenarios."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import JobSpec, JobState
from makeway.worlds.events import Command, Event
from makeway_app.replay import Options, Run, replay
from makeway_explain.story import Witness

FIVE = Config(
    node=(NodeTable(name="n[12-16]", cpus=2),),
    partition=(PartitionTable(name="active", default=True, oversubscribe="FORCE"),),
    policy=PolicyTable(preempt_mode=("gang",), settings={"gang/timeslice": {"timeslice": 30.0}}),
    scheduler=SchedulerTable(type="builtin"),
)
"""The gang page's cluster: five nodes, select/linear, OverSubscribe=FORCE."""


def job(job_id: str, at: float, nodes: int, **more: Any) -> JobSpec:
    """Return a job of whole nodes that runs long."""
    values: dict[str, Any] = {"run_time": 100_000.0, "time_limit": None}
    return JobSpec(id=job_id, submit_at=at, min_nodes=nodes, max_nodes=nodes, **(values | more))


def play(
    config: Config,
    jobs: list[JobSpec],
    until: float,
    *,
    first_tick: float,
    commands: tuple[tuple[float, Event], ...] = (),
    witness: Witness | None = None,
) -> Run:
    """Replay with the timeslicer's first wake-up at `first_tick`."""
    clocked = attrs.evolve(
        config, scheduler=attrs.evolve(config.scheduler, clockwork={"first_tick": first_tick})
    )
    watch = None if witness is None else witness.stepped
    return replay(clocked, jobs, commands, Options(until=until, after_step=watch))


def running(run: Run, job_id: str) -> list[tuple[float, float]]:
    """Return when the job ran, as (from, to)."""
    history = run.recorder.histories[job_id]
    spans = [(start, end) for state, start, end, _, _ in history.intervals if state is JobState.RUNNING]
    if history.state is JobState.RUNNING and history.since < run.ended_at:
        spans.append((history.since, run.ended_at))
    return spans


def test_example_1_two_full_jobs() -> None:
    """3.4 example 1: ticks at 11, 41, 71; the first tick only promotes, then they alternate."""
    run = play(FIVE, [job("3", 0, 5), job("4", 7, 5)], 101, first_tick=11)
    assert running(run, "3") == [(0, 41), (71, 101)]
    assert running(run, "4") == [(41, 71)]


def test_example_2_the_middle_job_never_stops() -> None:
    """3.4 example 2: 9 on n12-14, 10 on n15-16, 11 on 9's nodes; ticks at 11, 41, 71."""
    run = play(FIVE, [job("9", 0, 3), job("10", 3, 2), job("11", 9, 3)], 101, first_tick=11)
    assert running(run, "9") == [(0, 41), (71, 101)]
    assert running(run, "10") == [(3, 101)]
    assert running(run, "11") == [(41, 71)]


def test_example_3_local_backfilling() -> None:
    """3.4 example 3: 14 starts at once although 13 waits; groups {12,14} and {13} alternate."""
    run = play(FIVE, [job("12", 0, 3), job("13", 2, 5), job("14", 8, 2)], 100, first_tick=20)
    assert running(run, "12") == [(0, 50), (80, 100)]
    assert running(run, "13") == [(50, 80)]
    assert running(run, "14") == [(8, 50), (80, 100)]


def test_preemption_page_example_1() -> None:
    """3.4: 485 to 487 are suspended exactly while 490 runs, no tick involved."""
    config = attrs.evolve(
        FIVE,
        partition=(
            PartitionTable(name="active", default=True, oversubscribe="FORCE:1"),
            PartitionTable(name="hipri", priority_tier=2, oversubscribe="FORCE:1"),
        ),
        policy=attrs.evolve(FIVE.policy, preempt="preempt/partition_prio", preempt_mode=("suspend", "gang")),
    )
    low = [job(name, at, 1) for name, at in (("485", 0), ("486", 0), ("487", 1), ("488", 1), ("489", 2))]
    run = play(config, [*low, job("490", 27, 3, partitions=("hipri",), run_time=30.0)], 90, first_tick=30)
    assert running(run, "490") == [(27, 57)]
    assert run.recorder.node_list(run.recorder.histories["490"].intervals[0][3].nodes) == "n[12-14]"  # type: ignore[union-attr]
    for name, at in (("485", 0), ("486", 0), ("487", 1)):
        assert running(run, name) == [(at, 27), (57, 90)]
    for name, at in (("488", 1), ("489", 2)):
        assert running(run, name) == [(at, 90)]


def stays(config: Config, jobs: list[JobSpec], until: float, first_tick: float, wanted: str) -> list[Any]:
    """Return why a job stayed suspended: from, to, the words, and the holders."""
    witness = Witness(wanted)
    run = play(config, jobs, until, first_tick=first_tick, witness=witness)
    witness.over(run.ended_at)
    return [(each.start, each.end, each.stay.why, each.stay.holders) for each in witness.stays[wanted]]


def test_whose_turn_it_is_is_told() -> None:
    """3.4 example 1: 4 waits for 3's turn to end at 41, and 3 for 4's at 71."""
    jobs = [job("3", 0, 5), job("4", 7, 5)]
    assert stays(FIVE, jobs, 101, 11, "4") == [
        (7, 41, "it is the turn of others", ("3",)),
        (71, 101, "it is the turn of others", ("3",)),
    ]
    assert stays(FIVE, jobs, 100, 11, "3") == [(41, 71, "it is the turn of others", ("4",))]


def test_whose_shadow_a_job_lies_in_is_told() -> None:
    """The example of the gang page: 490 lies over 485 from 27 to 57."""
    config = attrs.evolve(
        FIVE,
        partition=(
            PartitionTable(name="active", default=True, oversubscribe="FORCE:1"),
            PartitionTable(name="hipri", priority_tier=2, oversubscribe="FORCE:1"),
        ),
        policy=attrs.evolve(FIVE.policy, preempt="preempt/partition_prio", preempt_mode=("suspend", "gang")),
    )
    low = [job(name, at, 1) for name, at in (("485", 0), ("486", 0), ("487", 1), ("488", 1), ("489", 2))]
    jobs = [*low, job("490", 27, 3, partitions=("hipri",), run_time=30.0)]
    assert stays(config, jobs, 90, 30, "485") == [
        (27, 57, "its resources go to jobs of a higher tier", ("490",))
    ]


def test_g05_three_groups_in_turn() -> None:
    """G05: FORCE:4, slice 5: {J1,J3}, {J2}, {J4,J5}, each one of three slices."""
    config = attrs.evolve(
        FIVE,
        partition=(PartitionTable(name="active", default=True, oversubscribe="FORCE:4"),),
        policy=PolicyTable(preempt_mode=("gang",), settings={"gang/timeslice": {"timeslice": 5.0}}),
    )
    sizes = {"J1": 3, "J2": 5, "J3": 2, "J4": 4, "J5": 1}
    jobs = [job(name, at * 0.1, size) for at, (name, size) in enumerate(sizes.items())]
    run = play(config, jobs, 40, first_tick=5)
    groups = []
    for at in (12.5, 17.5, 22.5, 27.5, 32.5, 37.5):
        groups.append({n for n in sizes if any(a <= at < b for a, b in running(run, n))})
    assert groups == [{"J2"}, {"J4", "J5"}, {"J1", "J3"}] * 2


@pytest.mark.parametrize(
    ("mine", "other"),
    [pytest.param(7.0, 41.0, id="before a tick: G01"), pytest.param(12.0, 71.0, id="after: G02")],
)
def test_wait_of_a_newcomer(mine: float, other: float) -> None:
    """More than one and at most two slices, depending on where in the slice it comes (3.3)."""
    run = play(FIVE, [job("A", 0, 5), job("B", mine, 5)], 120, first_tick=11)
    assert running(run, "B")[0][0] == other


def test_g06_a_filler_survives_the_next_tick() -> None:
    """G06: B becomes R when A ends and is rotated out one slice after the next tick; then {C,D} and {B}."""
    config = attrs.evolve(
        FIVE,
        node=(NodeTable(name="n[1-4]", cpus=2),),
        policy=PolicyTable(preempt_mode=("gang",), settings={"gang/timeslice": {"timeslice": 10.0}}),
    )
    jobs = [job("A", 0, 4, run_time=15.0), job("B", 1, 4), job("C", 2, 2), job("D", 3, 1)]
    run = play(config, jobs, 60, first_tick=10)
    assert running(run, "B")[0] == (15, 30)
    assert running(run, "C")[0] == (30, 40)
    assert running(run, "D")[0] == (30, 40)
    assert running(run, "B")[1] == (40, 50)


def test_g07_to_g09_hold_and_release() -> None:
    """A held job never runs again, a held running one stops at the next tick, release brings both back."""
    config = attrs.evolve(FIVE, node=(NodeTable(name="n1"),))
    config = attrs.evolve(
        config, policy=PolicyTable(preempt_mode=("gang",), settings={"gang/timeslice": {"timeslice": 10.0}})
    )
    commands = (
        (5.0, Command("hold", "B")),
        (45.0, Command("hold", "A")),
        (65.0, Command("release", "A")),
        (65.0, Command("release", "B")),
    )
    run = play(config, [job("A", 0, 1), job("B", 1, 1)], 100, first_tick=10, commands=commands)
    assert running(run, "A") == [(0, 50), (80, 90)]
    assert running(run, "B") == [(70, 80), (90, 100)]


@pytest.mark.parametrize(
    ("stale", "together"),
    [
        pytest.param(True, True, id="as Slurm has it"),
        pytest.param(False, False, id="corrected"),
    ],
)
def test_g13_stale_shadow_counts(stale: bool, together: bool) -> None:
    """G13: L runs on under the new shadow of Y, unless the rule is switched off (3.5)."""
    config = Config(
        node=(NodeTable(name="n[1-2]"),),
        partition=(
            PartitionTable(name="lo", default=True, oversubscribe="FORCE:1"),
            PartitionTable(name="hi", priority_tier=5, oversubscribe="FORCE:2"),
        ),
        policy=PolicyTable(
            preempt="preempt/partition_prio",
            preempt_mode=("suspend", "gang"),
            settings={"gang/timeslice": {"timeslice": 10.0}},
        ),
        scheduler=SchedulerTable(type="builtin", rules={"stale_shadows": stale}),
    )
    jobs = [
        job("L", 0, 1, required_nodes=("n2",)),
        job("X", 1, 1, partitions=("hi",), required_nodes=("n1",)),
        job("Y", 2, 2, partitions=("hi",)),
    ]
    run = play(config, jobs, 29, first_tick=10)
    at = 25.0
    both = all(any(a <= at < b for a, b in running(run, name)) for name in ("L", "Y"))
    assert both is together


def test_short_slices_become_thirty_seconds() -> None:
    """G11: SchedulerTimeSlice below 5 is taken as 30."""
    policy = PolicyTable(preempt_mode=("gang",), settings={"gang/timeslice": {"timeslice": 3.0}})
    run = play(attrs.evolve(FIVE, policy=policy), [job("A", 0, 5), job("B", 1, 5)], 120, first_tick=11)
    assert running(run, "B") == [(41, 71), (101, 120)]


def test_limits_count_running_time_only() -> None:
    """G12: two jobs with a limit of 60 s on one node each get 60 s of running."""
    config = attrs.evolve(
        FIVE,
        node=(NodeTable(name="n1"),),
        policy=PolicyTable(preempt_mode=("gang",), settings={"gang/timeslice": {"timeslice": 5.0}}),
    )
    run = play(config, [job("A", 0, 1, time_limit=60.0), job("B", 1, 1, time_limit=60.0)], 200, first_tick=5)
    for name in ("A", "B"):
        assert run.recorder.histories[name].final_state is JobState.TIMEOUT
        assert sum(end - start for start, end in running(run, name)) == pytest.approx(60.0)
    assert run.recorder.histories["B"].ended_at == pytest.approx(120.0, abs=1.0)

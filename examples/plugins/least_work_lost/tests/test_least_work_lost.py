"""The rules of preempt/least_work_lost: which may, in which order, the loop guard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from makeway.errors import ConfigError
from makeway.hookspecs import hookimpl
from makeway.model import Attempt, Candidates, Choice, JobSpec, Placement
from makeway_testing import cluster, replay_table, tiers, timeline

NAME = "preempt/least_work_lost"
TIERS: dict[str, Any] = {
    "preempt": NAME,
    "preempt_mode": "requeue",
    "partitions": tiers(low=1, high=2),
}


@hookimpl
def makeway_search(attempt: Attempt, candidates: Candidates) -> Choice | None:
    """Take candidates in the order of the policy until the job fits."""
    for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes, strict=True)):
        attempt.remove(job, mode)
        found = attempt.probe()
        if isinstance(found, Placement):
            return Choice(placement=found, victims=tuple(range(at + 1)))
    return None


IN_ORDER = SimpleNamespace(makeway_search=makeway_search)


def config(**settings: Any) -> dict[str, Any]:
    """Return a configuration with two tiers and the plugin's own settings."""
    return {**TIERS, "settings": {NAME: settings}}


# ----------------------------------------------------------------------------------------- order
def test_core_seconds_count_not_run_time() -> None:
    """At 100 s: a has run 60 s on 1 node of 4 CPUs (240), b 40 s on 2 nodes (320). a loses less."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        a     low            40      1      1000
        b     low            60      2      1000
        rush  high          100      1        10
        """,
        cluster=cluster(3),
        config=config(),
        until=105,
    )
    assert run.victims == ("a",)


@pytest.mark.parametrize(
    ("submits", "victim"),
    [((0, 50), "b"), ((50, 0), "a"), ((50, 50), "b")],
    ids=["the later start", "whatever its place", "ties: the later submission"],
)
def test_on_equal_nodes_the_latest_start_loses_least(submits: tuple[int, int], victim: str) -> None:
    """Whole nodes of equal size: work is run time."""
    run = replay_table(
        f"""
        job   partition  submit         nodes  run_time
        a     low        {submits[0]}   1      1000
        b     low        {submits[1]}   1      1000
        rush  high       100            1      10
        """,
        cluster=cluster(2),
        config=config(),
        until=105,
    )
    assert run.victims == (victim,)


def test_what_the_record_counts_as_lost_is_what_the_plan_said() -> None:
    """The engine's own books: 20 s on 4 CPUs."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        a     low             0      1       500
        b     low            80      1       500
        rush  high          100      1        10
        """,
        cluster=cluster(2),
        config=config(),
    )
    (entry,) = run.run.recorder.preemptions
    assert entry.why.endswith("; 80 core-seconds lost")
    assert run.engine.metrics()["core_seconds_lost"] == 80.0


@pytest.mark.parametrize(
    ("interval", "victim", "lost"),
    [(0, "b", 0.0), (30, "a", 4 * 10.0), (50, "b", 0.0)],
    ids=[
        "saved as they leave: none lose, the later start",
        "every 30 s: 100 % 30 = 10 against 20",
        "every 50 s",
    ],
)
def test_a_checkpoint_saves_what_came_before(interval: int, victim: str, lost: float) -> None:
    """At 100 s a has run 100 s and b 50 s; each loses what it did since its last checkpoint."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        a     low             0      1       500
        b     low            50      1       500
        rush  high          100      1        10
        """,
        cluster=cluster(2),
        config=config()
        | {"preempt_mode": "checkpoint", "clockwork": {"checkpoint_interval": float(interval)}},
        until=105,
    )
    assert run.victims == (victim,)
    assert run.engine.metrics()["core_seconds_lost"] == lost


def test_work_taken_over_from_a_checkpoint_is_at_stake_too() -> None:
    """a began its second run with 100 s of saved work; requeued without a checkpoint, it would lose them."""
    run = replay_table(
        """
        job    partition  submit  nodes  run_time
        a      low             0      1       500
        first  high          100      2        10
        b      low           105      1       500
        rush   high          150      1        10
        """,
        cluster=cluster(2),
        config={
            **config(),
            "partitions": {
                "low": {"priority_tier": 1, "preempt_mode": "requeue"},
                "high": {"priority_tier": 2},
            },
        },
        commands="60 checkpoint a",
        until=155,
    )
    # a: saved 60 s at 60, runs again from 60 to 100, is requeued with nothing left of it; both start at 110.
    assert run.victims == ("a", "b")
    assert run.engine.metrics()["core_seconds_lost"] == 4 * (60 + 40) + 4 * 40


@pytest.mark.parametrize(("suspension", "victim"), [("counts", "b"), ("free", "a")])
def test_suspension(suspension: str, victim: str) -> None:
    """a would be suspended, b requeued; b has less to lose unless a suspended job loses nothing."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        a     slow            0      1       500
        b     low            50      1       500
        rush  high          100      1        10
        """,
        cluster=cluster(2),
        config={
            **config(suspension=suspension),
            "gang": "gang/timeslice",
            "search": "search/in_order",
            "preempt_mode": "suspend,gang",
            "partitions": {
                "slow": {"priority_tier": 1, "preempt_mode": "suspend"},
                "low": {"priority_tier": 1, "preempt_mode": "requeue"},
                "high": {"priority_tier": 2},
            },
        },
        plugins={"search/in_order": IN_ORDER},
        until=105,
    )
    assert run.victims == (victim,)


def test_all_components_of_a_heterogeneous_job_count() -> None:
    """At 100 s: a has run 40 s on two nodes (320 core-seconds), b 60 s on one (240)."""
    run = replay_table(
        [
            *(_component(offset) for offset in range(2)),
            JobSpec(id="b", partitions=("low",), submit_at=40.0, run_time=1000.0),
            JobSpec(id="rush", partitions=("high",), submit_at=100.0, run_time=10.0),
        ],
        cluster=cluster(3),
        config=config(),
        until=105,
    )
    assert run.victims == ("b",)


def _component(offset: int) -> JobSpec:
    return JobSpec(
        id=f"a+{offset}",
        partitions=("low",),
        submit_at=60.0,
        run_time=1000.0,
        het_id="a",
        het_offset=offset,
    )


# --------------------------------------------------------------------------------------- which may
@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("tier", {"tier", "both"}),
        ("qos", {"qos", "both"}),
        ("tier_or_qos", {"tier", "qos", "both"}),
        ("tier_and_qos", {"both"}),
    ],
)
@pytest.mark.parametrize(
    ("kind", "partition", "qos"),
    [
        ("neither", "high", "normal"),
        ("tier", "low", "normal"),
        ("qos", "high", "scrap"),
        ("both", "low", "scrap"),
    ],
)
def test_who_may_be_displaced(by: str, expected: set[str], kind: str, partition: str, qos: str) -> None:
    """A job of a lower tier, of a listed QOS, of both, of neither."""
    run = replay_table(
        f"""
        job   partition    qos     submit  nodes  run_time
        a     {partition}  {qos}        0      1       100
        rush  high         urgent      10      1        10
        """,
        cluster=cluster(1),
        config={**config(by=by), "qos": {"normal": {}, "scrap": {}, "urgent": {"preempt": "scrap"}}},
        until=20,
    )
    assert run.victims == (("a",) if kind in expected else ())


# ------------------------------------------------------------------------------------ loop guard
LOOP = """
    job    partition  submit  nodes  run_time
    a      low             0      1      1000
    rush1  high          100      1        10
    rush2  high          200      1        10
    rush3  high          300      1        10
"""


def test_the_guard_protects_after_so_many_preemptions() -> None:
    """Twice in 1000 s: at 300 the third preemptor waits until the first preemption, at 100, is that old."""
    run = replay_table(LOOP, cluster=cluster(1), config=config(guard_count=2, guard_window=1000))
    assert run.only("rush3") == timeline("""
        1100 rush3 start
        1110 rush3 complete
    """)
    assert run.victims == ("a", "a", "a")


def test_without_the_guard_it_goes_on_for_ever() -> None:
    """0: no guard."""
    run = replay_table(LOOP, cluster=cluster(1), config=config(guard_count=0))
    assert run.starts("rush3") == (300.0,)


@pytest.mark.parametrize(("window", "start"), [(200.0, 300.0), (200.5, 300.5)])
def test_the_window_is_open_at_its_far_end(window: float, start: float) -> None:
    """A preemption exactly `guard_window` seconds ago counts no more."""
    run = replay_table(LOOP, cluster=cluster(1), config=config(guard_count=2, guard_window=window))
    assert run.starts("rush3") == (start,)


def test_another_job_goes_in_place_of_a_guarded_one() -> None:
    """b has more to lose, but a has had to make way once already."""
    run = replay_table(
        """
        job    partition  submit  nodes  run_time
        b      low             0      1      1000
        a      low            50      1      1000
        rush1  high          100      1        10
        rush2  high          120      1        10
        """,
        cluster=cluster(2),
        config=config(guard_count=1),
        until=125,
    )
    assert run.victims == ("a", "b")


# --------------------------------------------------------------------------------------- settings
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"by": "teir"},
            "by: got 'teir'; allowed: tier, qos, tier_or_qos, tier_and_qos; did you mean 'tier'?",
        ),
        ({"guard_count": -1}, "guard_count: got -1; allowed: 0 or more"),
        ({"guard_count": 101}, "guard_count: got 101; allowed: 100 or less"),
        ({"guard_window": 0}, "guard_window: got 0; allowed: more than 0"),
        ({"guard_window": "1 day"}, "guard_window: got '1 day'; allowed: a number"),
        ({"guard_cuont": 1}, "guard_cuont: unknown key; did you mean 'guard_count'?"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    """With the path and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        replay_table(LOOP, cluster=cluster(1), config=config(**settings))
    assert f'policy.settings."{NAME}"' in str(caught.value)
    assert said in str(caught.value)

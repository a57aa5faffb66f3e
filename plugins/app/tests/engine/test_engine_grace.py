"""Grace time: notice, signals, and what awaits the victim (slurm-preemption 4.3, S21 to S25)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobState
from makeway_app.replay import Options, replay
from makeway_testing import cluster, config, jobs, replay_table, timeline


def graceful(seconds: float, mode: str = "cancel", **more: Any) -> dict[str, Any]:
    """Return two tiers with a grace time on the lower one."""
    return {
        "preempt": "preempt/partition_prio",
        "preempt_mode": mode,
        "partitions": {"low": {"grace_time": seconds}, "hi": {"priority_tier": 2}},
        "scheduler": "builtin",
        **more,
    }


IGNORES = """
    job   partition  submit  nodes  run_time  time_limit  on_term
    low   low             0      1      3000        3600  ignore
    high  hi            100      1        20        3600  -
"""


def test_the_victim_runs_on_until_its_grace_is_over() -> None:
    """S21: notice at T0 = 100, killed at T0 + 120."""
    run = replay_table(IGNORES, config=graceful(120.0))
    assert run.timeline == timeline("""
          0  low   start
        100  low   notice     for high
        220  low   preempted
        220  high  start
        240  high  complete
    """)
    assert run.signals == ("100 low CONT", "100 low TERM")


def test_its_end_time_shows_the_grace_time() -> None:
    """S21: EndTime T0 + 120, still RUNNING, the preemptor PENDING (Resources)."""
    run = replay_table(IGNORES, config=graceful(120.0), until=150.0)
    low = run.history("low").job
    assert (low.state, low.end_at, low.preempt_at) == (JobState.RUNNING, 220.0, 100.0)
    assert run.reason("high") == "Resources"


def test_the_sweep_finds_the_end_of_grace_up_to_thirty_seconds_late() -> None:
    """S21: killed between T0 + 120 and T0 + 150."""
    config = graceful(120.0, clockwork={"limit_sweep": 30.0, "limit_phase": 7.0})
    assert replay_table(IGNORES, config=config).starts("high") == (247.0,)


def test_grace_is_irrevocable() -> None:
    """S22: the preemptor is cancelled, the victim goes nevertheless."""
    run = replay_table(IGNORES, config=graceful(120.0), commands="110 cancel high")
    assert run.only("low") == timeline("""
          0  low  start
        100  low  notice  for high
        220  low  preempted
    """)


@pytest.mark.parametrize(
    ("release", "ends"),
    [
        pytest.param("22.05.8", "complete", id="22.05: a normal end"),
        pytest.param("24.05", "requeue", id="24.05: preempted, so requeued"),
    ],
)
def test_ending_by_itself_within_the_grace_time(release: str, ends: str) -> None:
    """S23: REQUEUE, exit code 0 at T0 + 20."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit  on_term
        low   low             0      1       120        3600  ignore
        high  hi            100      1        20        3600  -
        """,
        config=graceful(300.0, "requeue", slurm_release=release),
    )
    assert run.only("low")[:3] == timeline(f"""
          0  low  start
        100  low  notice  for high
        120  low  {ends}
    """)


@pytest.mark.parametrize(
    ("run_time", "state"),
    [
        pytest.param(60.4, JobState.COMPLETED, id="at 61.1 s, in the second of the deadline"),
        pytest.param(60.8, JobState.TIMEOUT, id="at 61.5 s, in the next one"),
    ],
)
def test_an_end_in_the_second_of_the_deadline_is_in_time(run_time: float, state: JobState) -> None:
    """Seconds begin at .3; the limit ends at 60.7 s, and limits are looked at after 59 and 89 s."""
    clocks = {"counts_seconds": True, "second_phase": 0.3, "limit_sweep": 30.0, "limit_phase": 29.0}
    run = replay_table(
        f"""
        job   partition  submit  nodes  run_time    time_limit
        low   low           0.7      1  {run_time}          60
        """,
        config=graceful(0.0, clockwork=clocks),
    )
    assert run.state("low") is state


@pytest.mark.parametrize(
    ("release", "state"),
    [
        pytest.param("22.05.8", JobState.FAILED, id="22.05: its own end"),
        pytest.param("24.05", JobState.PREEMPTED, id="24.05: preempted"),
    ],
)
def test_failing_within_the_grace_time_of_a_cancel(release: str, state: JobState) -> None:
    """S23: CANCEL, exit code 7."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit  on_term  attributes
        low   low             0      1       120        3600  ignore   {ends_as="FAILED"}
        high  hi            100      1        20        3600  -        -
        """,
        config=graceful(300.0, slurm_release=release),
    )
    assert run.state("low") is state


def test_its_own_limit_within_the_grace_time_makes_it_preempted() -> None:
    """S24: EndTime unchanged; PREEMPTED, not TIMEOUT."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit  on_term
        low   low             0      1      3000         220  ignore
        high  hi            100      1        20        3600  -
        """,
        config=graceful(600.0),
    )
    assert run.only("low") == timeline("""
          0  low  start
        100  low  notice  for high
        220  low  preempted
    """)


SIGNALLED = """
    job   partition  submit  nodes  run_time  time_limit  signal
    low   low             0      1      3000        3600  USR1@300
    high  hi            100      1        20        3600  -
"""


@pytest.mark.parametrize(
    ("grace", "user_signal", "signals"),
    [
        pytest.param(120.0, True, ("100 low CONT", "100 low USR1"), id="in place of TERM"),
        pytest.param(120.0, False, ("100 low CONT", "100 low TERM"), id="option off: TERM"),
        pytest.param(0.0, True, ("100 low CONT", "100 low USR1"), id="no grace: before the kill"),
        pytest.param(0.0, False, (), id="no grace, option off: the kill alone"),
    ],
)
def test_user_signal(grace: float, user_signal: bool, signals: tuple[str, ...]) -> None:
    """S25."""
    config = graceful(grace, send_user_signal=user_signal)
    assert replay_table(SIGNALLED, config=config).signals == signals


def test_a_victim_that_dies_of_the_notice_frees_its_nodes_early() -> None:
    """4.3: SIGTERM reaches the steps; a job that works in steps dies of it."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  steps
        low   low             0      1      3000  true
        high  hi            100      1        20  -
        """,
        config=graceful(120.0),
    )
    assert run.starts("high") == (100.0,)
    assert run.state("low") is JobState.PREEMPTED


def test_the_batch_shell_does_not_hear_the_notice() -> None:
    """4.3: the batch shell itself is not addressed by the first SIGTERM."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  steps
        low   low             0      1      3000  false
        high  hi            100      1        20  -
        """,
        config=graceful(120.0),
    )
    assert run.starts("high") == (220.0,)


def test_grace_time_is_not_for_suspension() -> None:
    """4.3: GraceTime is never applied to SUSPEND with GANG."""
    run = replay_table(IGNORES, config=graceful(120.0, "suspend,gang"))
    assert run.starts("high") == (100.0,)
    assert run.signals == ()


def test_a_rider_of_grace_is_requeued_once() -> None:
    """4.3 quirk, not imitated unless asked for: the next run ends as any other."""
    jobs = """
        job   partition  submit  nodes  run_time  time_limit  on_term
        low   low             0      1       400        3600  ignore
        high  hi            100      1        20        3600  -
    """
    run = replay_table(jobs, config=graceful(120.0, "requeue"))
    assert run.only("low") == timeline("""
          0  low  start
        100  low  notice   for high
        220  low  requeue
        240  low  start
        640  low  complete
    """)
    quirk = graceful(120.0, "requeue", rules={"grace_mark_survives_requeue": True})
    assert replay_table(jobs, config=quirk).starts("low") == (0.0, 240.0, 640.0)


def test_a_preemptor_says_for_which_jobs_it_waits() -> None:
    """`low` was told at 100; at 101, when `other` comes, `high` could take `low2`, but tells no job until 130."""
    table = jobs("""
        job    partition  submit  nodes  run_time  time_limit  on_term
        low    low             0      1      3000        3600  ignore
        low2   low             0      1      3000        3600  ignore
        high   hi            100      1        20        3600  -
        other  hi            101      1         5        3600  -
    """)
    options = Options(until=110.0, traced=lambda job: job.id == "high")
    run = replay(config(cluster(2), graceful(30.0, "requeue")), table, (), options)
    said = [(each.at, each.outcome, each.victims) for each in run.recorder.decisions]
    assert said == [(100.0, "preempts", (("low", "requeue"),)), (101.0, "waits", ())]
    assert run.recorder.decisions[1].detail.endswith("it waits for those that it has had told to leave: low")


@pytest.mark.parametrize("on_term", ["exit", "default", "ignore"])
def test_no_signal_reaches_a_job_in_the_instant_of_its_start(on_term: str) -> None:
    """Recorded (told_at_its_start): its processes are not there yet, so it runs on until the grace time is over."""
    run = replay_table(
        f"""
        job   submit  nodes  run_time  qos   on_term  steps
        low        0      1        60  low   {on_term}  true
        high       0      1         5  high  -        -
        """,
        config={
            "preempt": "preempt/qos",
            "preempt_mode": "cancel",
            "qos": {"low": {"grace_time": 20.0}, "high": {"preempt": ["low"]}},
            "scheduler": "builtin",
            "rules": {"builtin_raw_order": True},
        },
    )
    assert run.only("low") == timeline("""
         0  low  start
         0  low  notice  for high
        20  low  preempted
    """)


@pytest.mark.parametrize(("start", "clean"), [(0, 0.0), (1, 31.0)])
def test_nothing_ignores_a_kill_in_the_instant_of_the_start(start: int, clean: float) -> None:
    """A node waits 30 s for processes that ignore SIGTERM, if they are there yet."""
    run = replay_table(
        f"""
        job   submit  nodes  run_time  qos   on_term
        low        0      1        60  low   ignore
        high  {start:6}      1         5  high  -
        """,
        config={
            "preempt": "preempt/qos",
            "preempt_mode": "cancel",
            "qos": {"low": {}, "high": {"preempt": ["low"]}},
            "scheduler": "builtin",
            "rules": {"builtin_raw_order": True},
            "clockwork": {"kill_wait": 30.0},
        },
    )
    assert run.starts("high") == (clean,)

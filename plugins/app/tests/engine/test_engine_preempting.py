"""Which job makes way for which, whole nodes, tiers: numbered scenarios of preemption."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobState
from makeway_testing import cluster, one_node, replay_table, tiers, timeline

TIERS: dict[str, Any] = {
    "preempt": "preempt/partition_prio",
    "preempt_mode": "cancel",
    "partitions": tiers(low=1, hi=2),
    "scheduler": "builtin",
}
ONE_EACH = """
    job   partition  submit  nodes  run_time  time_limit
    low   low             0      1      3000        3600
    high  hi             10      1        20        3600
"""


def low_partition(**keys: Any) -> dict[str, Any]:
    """Return the tiers with something set on the lower partition."""
    return {"partitions": {"low": {"priority_tier": 1, **keys}, "hi": {"priority_tier": 2}}}


# ------------------------------------------------------------------------------- which may preempt
def test_cancel_frees_the_node_after_the_cleanup() -> None:
    """S01: never two at a time; the preemptor waits for the epilog."""
    run = replay_table(ONE_EACH, config=TIERS | {"clockwork": {"completing_time": 2.0}})
    assert run.timeline == timeline("""
         0  low   start
        10  low   leave     for high
        12  low   preempted
        12  high  start
        32  high  leave
        34  high  complete
    """)


def test_preemptor_waits_with_reason_resources() -> None:
    """S01: first PENDING (Resources)."""
    config = TIERS | {"clockwork": {"completing_time": 2.0}}
    assert replay_table(ONE_EACH, config=config, until=11.0).reason("high") == "Resources"


def test_equal_tiers_do_not_preempt_whatever_the_priority() -> None:
    """S02."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  priority
        low   low             0      1       100       100
        high  hi             10      1        20    900000
        """,
        config=TIERS | {"partitions": tiers(low=1, hi=1)},
    )
    assert run.victims == ()
    assert run.starts("high") == (100.0,)


def test_off_protects_the_partition_of_the_victim() -> None:
    """S05 (a)."""
    run = replay_table(ONE_EACH, config=TIERS | low_partition(preempt_mode="off"))
    assert run.victims == ()
    assert run.starts("high") == (3000.0,)


def test_off_on_the_partition_of_the_preemptor_protects_no_job() -> None:
    """S05 (b)."""
    partitions = {"low": {}, "hi": {"priority_tier": 2, "preempt_mode": "off"}}
    run = replay_table(ONE_EACH, config=TIERS | {"partitions": partitions})
    assert run.victims == ("low",)


@pytest.mark.parametrize(
    ("priority", "victims"),
    [
        pytest.param(100, ("low",), id="equal priority preempts"),
        pytest.param(101, ("low",), id="higher priority preempts"),
        pytest.param(99, (), id="lower priority waits"),
    ],
)
def test_priority_flag_compares_job_priorities(priority: int, victims: tuple[str, ...]) -> None:
    """S19: with PRIORITY the preemptor's priority must not be lower."""
    jobs = f"""
        job   partition  submit  nodes  run_time  priority
        low   low             0      1       100       100
        high  hi             10      1        20  {priority}
    """
    run = replay_table(jobs, config=TIERS | {"preempt_mode": "cancel,priority"})
    assert run.victims == victims


@pytest.mark.parametrize(
    ("priority", "victims"),
    [
        pytest.param(999, ("low",), id="below: may go"),
        pytest.param(1000, ("low",), id="equal: may go"),
        pytest.param(1001, (), id="above: safe"),
    ],
)
def test_min_exempt_priority_protects_those_above(priority: int, victims: tuple[str, ...]) -> None:
    """S15."""
    jobs = f"""
        job   partition  submit  nodes  run_time  priority
        low   low             0      1       100  {priority}
        high  hi             10      1        20  5
    """
    assert replay_table(jobs, config=TIERS | {"min_exempt_priority": 1000}).victims == victims


# ----------------------------------------------------------------------------------- exempt time
def test_exempt_time_ends_to_the_second() -> None:
    """S13: PreemptExemptTime=5 (minutes): untouched until 300 s after its start, no longer."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit
        low   low             0      1      3000        3600
        high  hi             60      1        20        3600
        """,
        config=TIERS | {"exempt_time": 300.0},
    )
    assert run.timeline == timeline("""
          0  low   start
        300  low   preempted  for high
        300  high  start
        320  high  complete
    """)


@pytest.mark.parametrize(
    ("partition_qos", "job_qos", "start"),
    [
        pytest.param({"exempt_time": 600.0}, {"exempt_time": 0.0}, 600.0, id="the partition's"),
        pytest.param(
            {"exempt_time": 600.0},
            {"exempt_time": 0.0, "flags": "OverPartQOS"},
            60.0,
            id="OverPartQOS: the job's",
        ),
        pytest.param({}, {"exempt_time": 0.0}, 60.0, id="the partition's unset: the job's zero"),
        pytest.param({}, {}, 1200.0, id="both unset: the cluster's"),
    ],
)
def test_first_exempt_time_set_counts(
    partition_qos: dict[str, Any], job_qos: dict[str, Any], start: float
) -> None:
    """S14."""
    run = replay_table(
        """
        job   partition  qos  submit  nodes  run_time  time_limit
        low   low        jq        0      1      3000        3600
        high  hi         -        60      1        20        3600
        """,
        config=TIERS
        | low_partition(qos="pq")
        | {"qos": {"pq": partition_qos, "jq": job_qos}, "exempt_time": 1200.0},
    )
    assert run.starts("high") == (start,)


# --------------------------------------------------------------------------- which victims, where
def test_only_the_job_on_a_requested_node_goes() -> None:
    """S06: although the other one comes first among the candidates."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        j1    low             0      1       100  n1
        j2    low             0      1       100  n2
        high  hi             10      1        20  n2
        """,
        cluster=cluster(2),
        config=TIERS,
    )
    assert run.victims == ("j2",)
    assert run.nodes("high") == "n2"


def test_the_job_that_decides_goes_alone() -> None:
    """S07: of 2, 4 and 8 nodes only the eight."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        a     low             0      2       100  n[1-2]
        b     low             0      4       100  n[3-6]
        c     low             0      8       100  n[7-14]
        high  hi             10      8        20  -
        """,
        cluster=cluster(14),
        config=TIERS,
    )
    assert run.victims == ("c",)
    assert run.nodes("high") == "n[7-14]"


def test_lower_tier_goes_before_the_smaller_job() -> None:
    """S09."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        a     low             0      2       100  n[1-2]
        b     mid             0      1       100  n3
        high  hi             10      1        20  -
        """,
        cluster=cluster(3),
        config=TIERS | {"partitions": tiers(low=1, mid=2, hi=3)},
    )
    assert run.victims == ("a",)


@pytest.mark.parametrize(
    ("youngest_first", "victim"),
    [pytest.param(False, "j1", id="oldest"), pytest.param(True, "j2", id="youngest_first")],
)
def test_ties_go_by_the_job_table(youngest_first: bool, victim: str) -> None:
    """S10."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        j1    low             0      1       100
        j2    low             5      1       100
        high  hi             10      1        20
        """,
        cluster=cluster(2),
        config=TIERS | {"youngest_first": youngest_first},
    )
    assert run.victims == (victim,)


def test_linear_counts_usable_nodes_not_chosen_ones() -> None:
    """S11, linear: a and c go, and strict_order is not consulted."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        a     low             0      1       100  n4
        b     low             0      1       100  n1
        c     low             0      2       100  n[2-3]
        high  hi             10      3        20  -
        """,
        cluster=cluster(4),
        config=TIERS | {"strict_order": True},
    )
    assert sorted(run.victims) == ["a", "c"]
    assert run.nodes("high") == "n[2-4]"


def test_idle_heavy_nodes_beat_preempting_on_light_ones() -> None:
    """S47."""
    from makeway_testing import node

    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        low   low             0      1       100  n1
        high  hi             10      1        20  -
        """,
        cluster=cluster([node("n1", weight=1), node("n2", weight=1000)]),
        config=TIERS,
    )
    assert run.victims == ()
    assert run.nodes("high") == "n2"


# ------------------------------------------------------------------------------- the kill window
WINDOW = {"kill_wait": 30.0, "message_timeout": 10.0}


def test_no_second_victim_within_the_kill_window() -> None:
    """S26: its node is lost, but the next victim falls KillWait + MessageTimeout later."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit  required_nodes  on_term
        j1    low             0      1      3000        3600  n1              ignore
        j2    low             0      1      3000        3600  n2              default
        high  hi             10      1        20        3600  -               default
        """,
        cluster=cluster(2),
        config=TIERS | {"clockwork": WINDOW},
        commands="15 drain n1",
    )
    assert run.timeline == timeline("""
         0  j1    start
         0  j2    start
        10  j1    leave     for high
        40  j1    preempted
        50  j2    preempted for high
        50  high  start
        70  high  complete
    """)


CYCLES = {"sched_interval": 60.0, "pass_on_submit": False, "pass_on_completion": False}
"""Main passes at 0, 60, 120, ... and at no other time."""
TWO_PREEMPTORS = """
    job   partition  submit  nodes  run_time  required_nodes
    j1    low             0      1      3000  n1
    j2    low             0      1      3000  n2
    p1    hi             10      1       500  {}
    p2    hi             10      1       500  -
"""


def test_one_killing_preemptor_per_partition_and_pass() -> None:
    """S27: the partition is closed for the pass."""
    run = replay_table(TWO_PREEMPTORS.format("-"), cluster=cluster(2), config=TIERS | {"clockwork": CYCLES})
    assert run.only("j1", "j2", "p1", "p2")[:6] == timeline("""
          0  j1  start
          0  j2  start
         60  j1  preempted  for p1
        120  j2  preempted  for p2
        120  p1  start
        180  p2  start
    """)


def test_tasks_of_an_array_displace_one_job_per_main_pass_and_all_at_once_with_backfill() -> None:
    """S52, the tasks as single jobs: the main scheduler takes a victim a pass, backfill both in one."""
    main = replay_table(TWO_PREEMPTORS.format("-"), cluster=cluster(2), config=TIERS | {"clockwork": CYCLES})
    clocks = CYCLES | {"sched_interval": 100000.0, "bf_interval": 30.0}
    config = TIERS | {"clockwork": clocks, "scheduler": "backfill"}
    both = replay_table(TWO_PREEMPTORS.format("-"), cluster=cluster(2), config=config)
    assert [entry.at for entry in main.run.recorder.preemptions] == [60.0, 120.0]
    assert [entry.at for entry in both.run.recorder.preemptions] == [30.0, 30.0]


def test_the_job_of_a_closed_partition_waits_for_priority() -> None:
    """S27: it was not tried."""
    run = replay_table(
        TWO_PREEMPTORS.format("-"),
        cluster=cluster(2),
        config=TIERS | {"clockwork": CYCLES},
        until=61.0,
    )
    assert (run.reason("p1"), run.reason("p2")) == ("Resources", "Priority")


def test_required_nodes_do_not_close_the_partition() -> None:
    """S28: both victims fall in one pass."""
    run = replay_table(TWO_PREEMPTORS.format("n1"), cluster=cluster(2), config=TIERS | {"clockwork": CYCLES})
    assert [(entry.at, entry.victim) for entry in run.run.recorder.preemptions] == [
        (60.0, "j1"),
        (60.0, "j2"),
    ]


def test_a_preemptor_of_two_partitions_has_one_victim() -> None:
    """S51: the other one is untouched within the kill window."""
    partitions = {
        "low": {},
        "hi1": {"nodes": "n1", "priority_tier": 2},
        "hi2": {"nodes": "n2", "priority_tier": 2},
    }
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        j1    low             0      1       100  n1
        j2    low             0      1       100  n2
        high  hi1,hi2        10      1        20  -
        """,
        cluster=cluster(2),
        config=TIERS | {"partitions": partitions, "clockwork": WINDOW},
    )
    assert len(run.victims) == 1


# --------------------------------------------------------------------------------------- requeue
REQUEUE = TIERS | {"preempt_mode": "requeue"}


def test_requeued_job_waits_for_its_begin_time() -> None:
    """S03: 121 s from its cleanup, although the node is idle long before."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit
        low   low             0      1       100        3600
        high  hi             10      1       500        3600
        """,
        config=REQUEUE | {"clockwork": {"completing_time": 2.0, "requeue_delay": 121.0}},
        commands="22 cancel high",
    )
    assert run.timeline == timeline("""
          0  low   start
         10  low   leave   for high
         12  low   requeue
         12  high  start
         22  high  leave
         24  high  cancel
        133  low   start
        233  low   leave
        235  low   complete
    """)
    assert run.history("low").job.restarts == 1
    assert run.history("low").job.submit_at == 12.0


def test_requeued_job_gives_begin_time_as_its_reason() -> None:
    """S03."""
    config = REQUEUE | {"clockwork": "slurm"}
    run = replay_table(ONE_EACH, config=config, until=100.0)
    assert run.state("low") is JobState.PENDING
    assert run.reason("low") == "BeginTime"


@pytest.mark.parametrize(
    "column",
    [
        pytest.param("requeue", id="--no-requeue"),
        pytest.param("batch", id="an interactive allocation"),
    ],
)
def test_not_requeueable_means_killed(column: str) -> None:
    """S04."""
    jobs = f"""
        job   partition  submit  nodes  run_time  {column}
        low   low             0      1       100  false
        high  hi             10      1        20  -
    """
    run = replay_table(jobs, config=REQUEUE)
    assert run.state("low") is JobState.PREEMPTED
    assert run.starts("low") == (0.0,)


def test_the_cluster_may_forbid_requeueing() -> None:
    """slurm-preemption 6.6: REQUEUE with JobRequeue=0 kills; a job's own wish counts more."""
    run = replay_table(ONE_EACH, config=REQUEUE | {"requeue": False})
    assert run.state("low") is JobState.PREEMPTED


def test_more_requeues_than_allowed_hold_the_job() -> None:
    """slurm-preemption 4.3: beyond MaxBatchRequeue it is held with reason JobHoldMaxRequeue."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        low   low             0      1       100
        h1    hi             10      1        20
        h2    hi             50      1        20
        """,
        config=REQUEUE | {"max_requeues": 1},
    )
    assert run.only("low") == timeline("""
         0  low  start
        10  low  requeue  for h1
        30  low  start
        50  low  requeue  for h2
    """)
    assert run.reason("low") == "JobHoldMaxRequeue"


def test_suspend_without_gang_kills() -> None:
    """S56, linear."""
    run = replay_table(ONE_EACH, config=TIERS | low_partition(preempt_mode="suspend"))
    assert run.state("low") is JobState.PREEMPTED


def test_work_thrown_away_is_counted() -> None:
    """The plan's rule 6: core-seconds of the first run, four CPUs for ten seconds."""
    run = replay_table(ONE_EACH, cluster=one_node(cpus=4), config=REQUEUE)
    assert run.run.recorder.metrics.core_seconds_lost == 40.0
    assert run.history("low").worked == 3000.0

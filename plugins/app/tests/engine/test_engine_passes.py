"""Which job is tried when: strict order, EASY, Slurm's backfill (slurm-gang-and-select 5)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_testing import cluster, node, replay_table, tiers, timeline
from makeway_testing.builders import build_cluster, config

BUILTIN = {"scheduler": "builtin"}
EASY = {"scheduler": "easy"}
BACKFILL = {"scheduler": "backfill"}
RESERVED = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"


# ----------------------------------------------------------------------------------- the main pass
OVERLAP: dict[str, Any] = {"a": {}, "b": {"nodes": "n[3-4]"}}
Q01 = """
    job   partition  submit  nodes  run_time
    a2    a               0      2       500
    a3    a               1      3       100
    a1    a               2      1       100
    b1    b               3      1       100
"""


def test_a_failed_partition_withdraws_its_nodes() -> None:
    """Q01: n3-4 stay idle."""
    run = replay_table(Q01, cluster=cluster(4), config=BUILTIN | {"partitions": OVERLAP}, until=10.0)
    assert [run.state(job) for job in ("a3", "a1", "b1")] == [JobState.PENDING] * 3
    assert run.reason("a3") == "Resources"
    assert run.reason("a1") == "Priority"
    assert run.reason("b1") == RESERVED


def test_cancelling_the_first_lets_the_others_go() -> None:
    """Q03."""
    run = replay_table(
        Q01,
        cluster=cluster(4),
        config=BUILTIN | {"partitions": OVERLAP},
        commands="10 cancel a3",
    )
    assert (run.starts("a1"), run.nodes("a1")) == ((10.0,), "n3")
    assert (run.starts("b1"), run.nodes("b1")) == ((10.0,), "n4")


def test_a_higher_tier_is_tried_first() -> None:
    """Q02: c fails first and withdraws n1-2."""
    partitions = OVERLAP | {"c": {"nodes": "n[1-2]", "priority_tier": 5}}
    run = replay_table(
        Q01 + "    c1    c               4      1       100\n",
        cluster=cluster(4),
        config=BUILTIN | {"partitions": partitions},
        until=10.0,
    )
    assert run.reason("c1") == "Resources"
    assert run.reason("a3") == RESERVED


def test_a_required_node_is_withdrawn_alone() -> None:
    """Q04."""
    run = replay_table(
        """
        job   submit  nodes  run_time  required_nodes
        busy       0      1       500  n1
        w1         1      1       100  n1
        x          2      1       100  -
        w2         3      2       100  n1
        y          4      1       100  -
        """,
        cluster=cluster(4),
        config=BUILTIN,
        until=10.0,
    )
    assert (run.reason("w1"), run.reason("w2")) == ("Resources", "ReqNodeNotAvail")
    assert (run.nodes("x"), run.nodes("y")) == ("n2", "n3")


STATES: dict[str, dict[str, Any]] = {
    "UP": {},
    "DOWN": {"up": False},
    "DRAIN": {"accepts": False},
    "INACTIVE": {"up": False, "accepts": False},
}


@pytest.mark.parametrize("scheduler", [BUILTIN, EASY, BACKFILL, {"scheduler": "greedy"}], ids=str)
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("UP", (JobState.COMPLETED, "")),
        ("DOWN", (JobState.PENDING, "PartitionDown")),
        ("DRAIN", (JobState.FAILED, "partition a is drained: it takes no new jobs")),
        ("INACTIVE", (JobState.FAILED, "partition a is inactive: it takes no new jobs")),
    ],
)
def test_the_states_of_a_partition(
    scheduler: dict[str, Any], state: str, expected: tuple[JobState, str]
) -> None:
    """slurm.conf(5): UP takes and starts jobs, DOWN takes them, DRAIN starts those it has, INACTIVE neither.

    A job that also names a partition in service runs there, and others are not held up.
    """
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        one   a               0      2       100
        two   a,b             1      2       100
        """,
        cluster=cluster(4),
        config=scheduler | {"partitions": {"a": STATES[state] | {"priority_tier": 2}, "b": {}}},
        until=500.0,
    )
    refused = {job: reason for job, _, reason in run.run.recorder.unrunnable}
    found = refused["one"] if "one" in refused else run.reason("one") if state == "DOWN" else ""
    assert (run.state("one"), found) == expected
    assert (run.state("two"), run.starts("two")) == (JobState.COMPLETED, (1.0,))


def test_no_job_is_started_by_hand_where_none_may_start() -> None:
    """The person is told why."""
    run = replay_table(
        """
        job    partition  submit  nodes  run_time
        one    a               0      1       100
        """,
        cluster=cluster(2),
        config=BACKFILL | {"partitions": {"a": {"up": False}, "b": {}}},
        commands="5 start one",
        until=500.0,
    )
    assert [reason for _, _, reason in run.run.recorder.refusals] == ["partition a is down"]
    assert run.starts("one") == ()


def test_each_partition_of_a_job_has_its_turn() -> None:
    """Q05: the higher tier first; too small, the other one."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        one  a,b             0      1       100
        two  a,b             1      2       100
        """,
        cluster=cluster(4),
        config=BUILTIN
        | {"partitions": {"a": {"nodes": "n[1-2]"}, "b": {"nodes": "n[3-4]", "priority_tier": 5}}},
        until=10.0,
    )
    assert (run.nodes("one"), run.nodes("two")) == ("n3", "n[1-2]")


def test_tier_then_nice_then_submission() -> None:
    """Q06."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  nice
        busy  lo              0      1       100     0
        a     lo              1      1        10     0
        b     hi              2      1        10     0
        c     lo              3      1        10  -100
        """,
        config=BUILTIN | {"partitions": tiers(lo=1, hi=5)},
    )
    assert [run.starts(job) for job in "bca"] == [(100.0,), (110.0,), (120.0,)]


@pytest.mark.parametrize(
    ("release", "order"),
    [pytest.param("22.05.8", "abc", id="22.05: raw"), pytest.param("26.11", "cab", id="sorted")],
)
def test_raw_order_of_the_old_builtin_scheduler(release: str, order: str) -> None:
    """Q07."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  nice
        busy  p               0      1       100     0
        a     p               1      1        10     0
        b     q               2      1        10     0
        c     p               3      1        10  -100
        """,
        config=BUILTIN | {"partitions": tiers(p=1, q=1), "slurm_release": release},
    )
    assert [run.starts(job) for job in order] == [(100.0,), (110.0,), (120.0,)]


def test_tier_beats_priority() -> None:
    """S49."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  priority
        low   lo              0      1       100    100000
        high  hi              0      1       100         1
        """,
        config=BUILTIN | {"partitions": tiers(lo=1, hi=2)},
    )
    assert (run.starts("high"), run.starts("low")) == ((0.0,), (100.0,))


S50 = """
    job   partition  submit  nodes  run_time  time_limit
    j1    lo              0      2      3000        3600
    high  hi             10      3       100        3600
    j2    lo             20      1       200         300
"""


@pytest.mark.parametrize(
    ("scheduler", "start"),
    [
        pytest.param("builtin", 3100.0, id="main scheduler: no"),
        pytest.param("easy", 20.0, id="EASY: yes"),
        pytest.param("backfill", 20.0, id="backfill: yes"),
    ],
)
def test_leftover_nodes_of_a_closed_partition(scheduler: str, start: float) -> None:
    """S50: J2 ends before the blocked job could start."""
    run = replay_table(
        S50,
        cluster=cluster(3),
        config={
            "scheduler": scheduler,
            "preempt": "preempt/partition_prio",
            "preempt_mode": "cancel",
            "exempt_time": 36000.0,
            "partitions": tiers(lo=1, hi=2),
        },
    )
    assert run.starts("j2") == (start,)
    assert run.starts("high") == (3000.0,)


# ---------------------------------------------------------------------------------- backfilling
def test_easy_fills_without_delaying_the_first_blocked_job() -> None:
    """Textbook: b waits for a; c fits before, d would delay b."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      3       100         100
        b         1      4        50          50
        c         2      1        90          95
        d         3      1        99         100
        """,
        cluster=cluster(4),
        config=EASY,
    )
    assert [run.starts(job)[0] for job in "abcd"] == [0.0, 100.0, 2.0, 150.0]


def test_easy_lets_long_jobs_use_what_the_blocked_job_does_not_need() -> None:
    """Textbook: one node more than a and b need."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      2       100         100
        b         1      3        50          50
        c         2      1       400         400
        d         3      1       400         400
        """,
        cluster=cluster(4),
        config=EASY,
    )
    assert [run.starts(job)[0] for job in "abcd"] == [0.0, 100.0, 2.0, 150.0]


def test_easy_reserves_anew_when_a_job_ends_early() -> None:
    """The blocked job starts as soon as it can, not when it was promised."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      3        40         100
        b         1      4        50          50
        """,
        cluster=cluster(4),
        config=EASY,
    )
    assert run.starts("b") == (40.0,)


@pytest.mark.parametrize("exclusive", ["-", "node"])
def test_easy_lays_no_job_over_one_that_it_may_not_preempt(exclusive: str) -> None:
    """Only a job that may preempt has nodes of exclusive candidates added (slurm-preemption 1.10 step 4).

    `first` waits for `peer`, and alone may preempt; taking `low` would not help it. `next` gets n1 after `low`.
    """
    run = replay_table(
        f"""
        job    partition  submit  nodes  required_nodes  run_time  time_limit  exclusive    tasks
        low    low             0      1  n1                    50          50  node             1
        peer   hi              1      1  n2                   100         100  -                2
        first  hi              2      2  -                     10          10  -                2
        next   hi              3      1  n1                    10          10  {exclusive}      1
        """,
        cluster=cluster(2, cpus=2),
        config={
            "scheduler": "easy",
            "select": "select/cons_tres",
            "select_parameters": "CR_Core",
            "preempt": "preempt/partition_prio",
            "preempt_mode": "requeue,gang",
            "partitions": tiers(low=1, hi=2),
        },
    )
    assert run.victims == ()
    assert run.starts("next") == (50.0,)


def test_backfill_plans_in_whole_minutes() -> None:
    """Q08: D starts, B at the end of A, C at the end of B."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      3       180         180
        b         1      4       300         300
        c         2      1       240         240
        d         3      1       120         120
        """,
        cluster=cluster(4),
        config=BACKFILL | {"clockwork": {"bf_resolution": 60.0}},
    )
    assert [run.starts(job)[0] for job in "abcd"] == [0.0, 180.0, 480.0, 3.0]


def test_preemptors_that_need_no_kill_may_be_many_in_one_pass() -> None:
    """7.2: suspending preemptors start at once and do not close their partition."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        j1   low             0      1       500
        j2   low             0      1       500
        p1   hi             10      1       100
        p2   hi             10      1       100
        """,
        cluster=cluster(2),
        config=BUILTIN
        | {
            "preempt": "preempt/partition_prio",
            "preempt_mode": "suspend,gang",
            "partitions": tiers(low=1, hi=2),
        },
    )
    assert (run.starts("p1"), run.starts("p2")) == ((10.0,), (10.0,))


@pytest.mark.parametrize("scheduler", ["builtin", "easy", "backfill"])
def test_one_after_another_on_one_node(scheduler: str) -> None:
    """Every scheduler walks a plain queue alike."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1        10
        b         0      1        10
        c         5      1        10
        """,
        config={"scheduler": scheduler},
    )
    assert run.timeline == timeline("""
         0  a  start
        10  a  complete
        10  b  start
        20  b  complete
        20  c  start
        30  c  complete
    """)


@pytest.mark.parametrize(("news", "start"), [(True, 8.5), (False, 9.5)])
def test_backfill_sees_an_exempt_time_end_while_each_look_is_news(news: bool, start: float) -> None:
    """`i` waits behind `h`, which would need more than `low` leaves; `keep` is in no job's reach, and ends at 14.

    `low` is exempt until 8.25, and what it leaves is kept for `i` until the next look.
    """
    run = replay_table(
        "job   partition  submit  nodes  run_time  time_limit\n"
        "keep  safe            0      1        14          30\n"
        "low   low             2      1        22          30\n"
        "h     high            3      2         4          30\n"
        "i     high            3      1         4           5\n",
        cluster=cluster(2),
        config={
            "scheduler": "backfill",
            "clockwork": {
                "sched_interval": 1.0,
                "sched_phase": 0.5,
                "bf_interval": 1.0,
                "bf_phase": 0.25,
                "pass_on_submit": False,
                "pass_on_completion": False,
            },
            "rules": {"reasons_are_news": news},
            "preempt": "preempt/partition_prio",
            "preempt_mode": "cancel",
            "exempt_time": 6.0,
            "partitions": {
                "safe": {"priority_tier": 1, "preempt_mode": "off"},
                "low": {"priority_tier": 1},
                "high": {"priority_tier": 2},
            },
        },
    )
    assert run.starts("i") == (start,)


@pytest.mark.parametrize(("interval", "when_due"), [(1.0, "BeginTime"), (0.0, "Resources")])
def test_the_next_look_finds_that_a_begin_time_has_come(interval: float, when_due: str) -> None:
    """Until then it stays the reason; without periods there is a look at once."""
    clocks = {"sched_interval": interval, "sched_phase": 0.5, "pass_on_submit": False}
    settings = config(cluster(1), {"scheduler": "builtin", "clockwork": clocks})
    run = Engine(settings, Recorder(build_cluster(settings)), Policies(settings))
    reasons = []
    run.step(0.0, [Submitted(JobSpec(id="first"))])
    run.step(0.5, [Submitted(JobSpec(id="later", begin_at=2.0))])
    for now in (1.5, 2.0, 2.5):
        run.step(now, [])
        reasons.append(run.ledger.jobs["later"].reason)
    assert reasons == ["BeginTime", when_due, "Resources"]


@pytest.mark.parametrize(("rule", "starts"), [(True, (3.0, 8.0)), (False, (20.0, 20.0))])
def test_a_job_that_could_never_run_on_the_rest_holds_up_no_other(
    rule: bool, starts: tuple[float, ...]
) -> None:
    """`h` keeps n2 and n3 from others; `m` has too many CPUs for n1, where `next`, and then `low`, find room."""
    run = replay_table(
        "job   partition  submit  nodes  cpus  run_time  exclusive\n"
        "r     high            0      1     1        10       node\n"
        "h     high            1      2     2        10       node\n"
        "m     mid             2      1     8         3          -\n"
        "next  mid             3      1     1         5          -\n"
        "low   low             4      1     1         5          -\n",
        cluster=(node("n1", cpus=4), node("n[2-3]", cpus=8)),
        config={
            "scheduler": "builtin",
            "select": "select/cons_tres",
            "rules": {"unable_on_the_rest_holds_up_none": rule},
            "partitions": {
                "high": {"nodes": "n[2-3]", "priority_tier": 3},
                "mid": {"priority_tier": 2},
                "low": {"priority_tier": 1},
            },
        },
    )
    assert (*run.starts("next"), *run.starts("low")) == starts

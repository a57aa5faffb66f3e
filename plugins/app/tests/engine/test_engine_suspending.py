"""Suspension under gang with whole nodes: numbered scenarios of select/linear and of preemption."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobState
from makeway_testing import cluster, one_node, replay_table, timeline


def two_tiers(low: str = "FORCE:1", hi: str = "FORCE:1", **more: Any) -> dict[str, Any]:
    """Return SUSPEND,GANG with two tiers that oversubscribe as given."""
    return {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "suspend,gang",
        "partitions": {
            "low": {"oversubscribe": low},
            "hi": {"oversubscribe": hi, "priority_tier": 2},
        },
        "scheduler": "builtin",
        **more,
    }


def gang(oversubscribe: str, **more: Any) -> dict[str, Any]:
    """Return time slicing alone, in one partition."""
    return {
        "preempt_mode": "gang",
        "partitions": {"batch": {"oversubscribe": oversubscribe}},
        "scheduler": "builtin",
        **more,
    }


def test_the_victim_keeps_its_progress() -> None:
    """10 s before, 50 s after."""
    run = replay_table(
        """
        job   partition  submit  cpus  run_time
        low   low             0     4        60
        high  hi             10     4        20
        """,
        cluster=one_node(cpus=4),
        config=two_tiers(),
    )
    assert run.timeline == timeline("""
         0  low   start
        10  low   suspend  for high
        10  high  start
        30  high  complete
        30  low   resume
        80  low   complete
    """)


def test_the_first_of_five_make_way_for_exactly_as_long_as_needed() -> None:
    """S29, L11: the preemption page's first example."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        485  low             0      1       500
        486  low             0      1       500
        487  low             1      1       500
        488  low             1      1       500
        489  low             2      1       500
        490  hi             27      3        30
        """,
        cluster=cluster(5),
        config=two_tiers(),
        until=100.0,
    )
    assert run.nodes("490") == "n[1-3]"
    assert run.timeline[5:] == timeline("""
        27  485  suspend  for 490
        27  486  suspend  for 490
        27  487  suspend  for 490
        27  490  start
        57  490  complete
        57  485  resume
        57  486  resume
        57  487  resume
    """)


def test_idle_nodes_are_used_beside_one_victim() -> None:
    """S30, L12: three low jobs on n1-3; three nodes take n1, n4, n5; the next job takes n2."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        a    low             0      1       500
        b    low             0      1       500
        c    low             0      1       500
        p    hi             10      3       100
        q    hi             20      1       100
        """,
        cluster=cluster(5),
        config=two_tiers(),
    )
    assert (run.nodes("p"), run.nodes("q")) == ("n[1,4-5]", "n2")
    assert run.victims == ("a", "b")


def test_few_nodes_go_before_many() -> None:
    """L13."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        a    low             0      3       500
        b    low             0      1       500
        c    low             0      1       500
        p    hi             10      1       100
        q    hi             20      2       100
        """,
        cluster=cluster(5),
        config=two_tiers(),
    )
    assert (run.nodes("p"), run.nodes("q")) == ("n4", "n[1-2]")


def test_the_free_node_of_a_suspended_victim_takes_the_next() -> None:
    """L18: low on n1-2; the first high job takes n1, the second n2, and no other has to stop."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        a    low             0      2       500
        p    hi             10      1       100
        q    hi             20      1       100
        """,
        cluster=cluster(2),
        config=two_tiers(),
    )
    assert (run.nodes("p"), run.nodes("q")) == ("n1", "n2")
    assert run.only("a") == timeline("""
          0  a  start
         10  a  suspend  for p
        120  a  resume
        610  a  complete
    """)


@pytest.mark.parametrize(
    ("low", "hi"),
    [
        ("NO", "NO"),
        ("NO", "FORCE:1"),
        ("FORCE:1", "NO"),
        ("FORCE:2", "NO"),
        ("FORCE:1", "EXCLUSIVE"),
    ],
)
def test_oversubscribe_does_not_matter_to_linear(low: str, hi: str) -> None:
    """S43, linear: the low job is suspended in all cases."""
    run = replay_table(
        """
        job   partition  submit  cpus  run_time
        low   low             0     4        60
        high  hi             10     4        20
        """,
        config=two_tiers(low, hi),
    )
    assert run.only("low")[1:] == timeline("""
        10  low  suspend  for high
        30  low  resume
        80  low  complete
    """)


@pytest.mark.parametrize("scheduler", ["builtin", "backfill"])
@pytest.mark.parametrize(
    ("overlays", "low", "start"),
    [
        pytest.param(True, ("10 low suspend for high",), 10.0, id="as Slurm does"),
        pytest.param(False, ("60 low complete",), 60.0, id="corrected"),
    ],
)
def test_linear_stops_even_those_that_are_off(
    overlays: bool, low: tuple[str, ...], start: float, scheduler: str
) -> None:
    """L14: FORCE:2 over FORCE:2 that is OFF; L15: corrected, the high job waits, as under cons_tres.

    It knows from when it could start, so that backfill keeps the node for it.
    """
    partitions = {
        "low": {"oversubscribe": "FORCE:2", "preempt_mode": "off"},
        "hi": {"oversubscribe": "FORCE:2", "priority_tier": 2},
    }
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit
        low   low             0      1        60          60
        high  hi             10      1        20          20
        next  low            11      1        20         100
        """,
        config=two_tiers(partitions=partitions, rules={"linear_overlays_off": overlays}, scheduler=scheduler),
        until=100.0,
    )
    assert run.only("low")[1:2] == low
    assert run.starts("high") == (start,)


@pytest.mark.parametrize(
    ("any_shadow", "fate"),
    [
        pytest.param(True, (JobState.PENDING, "BeginTime"), id="as Slurm does"),
        pytest.param(False, (JobState.SUSPENDED, "None"), id="corrected"),
    ],
)
def test_a_turn_is_lost_under_a_shadow_elsewhere(any_shadow: bool, fate: tuple[JobState, str]) -> None:
    """Gang 1.5: low is REQUEUE; b has to wait for its turn behind a on n1, while high runs on n2 alone."""
    partitions = {
        "low": {"oversubscribe": "FORCE:2", "preempt_mode": "requeue"},
        "hi": {"oversubscribe": "FORCE:2", "priority_tier": 2},
    }
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  required_nodes
        high  hi              0      1        60  n2
        a     low             1      1        60  n1
        b     low            10      1        60  n1
        """,
        cluster=cluster(2),
        config=two_tiers(
            partitions=partitions,
            rules={"gang_kills_under_any_shadow": any_shadow},
            clockwork={"requeue_delay": 100.0},
        ),
        until=12.0,
    )
    assert (run.state("b"), run.reason("b")) == fate


@pytest.mark.parametrize(
    ("skips", "leaves", "excuses"),
    [
        pytest.param(True, 10.0, set(), id="as Slurm does"),
        pytest.param(False, 30.0, {"in its grace time"}, id="corrected"),
    ],
)
def test_grace_time_under_gang(skips: bool, leaves: float, excuses: set[str]) -> None:
    """G28: gang kills at once; corrected, the victim has its 20 s, beside the preemptor that runs already."""
    partitions = {
        "low": {"oversubscribe": "FORCE:1", "preempt_mode": "cancel", "grace_time": 20.0},
        "hi": {"oversubscribe": "FORCE:1", "priority_tier": 2},
    }
    run = replay_table(
        """
        job   partition  submit  nodes  tasks  run_time
        low   low             0      1      4        60
        high  hi             10      1      4        40
        """,
        config=two_tiers(
            partitions=partitions,
            rules={"gang_skips_grace": skips},
            select="select/cons_tres",
            select_parameters="CR_Core",
        ),
    )
    history = run.run.recorder.histories["low"]
    assert (history.final_state, history.ended_at) == (JobState.PREEMPTED, leaves)
    assert run.starts("high") == (10.0,)
    assert {one.excuse for one in run.checker.excused} == excuses


def test_only_those_that_are_off_are_spared() -> None:
    """With the defect corrected: a job of another partition is displaced, and an idle node is used."""
    partitions = {
        "off": {"oversubscribe": "FORCE:2", "preempt_mode": "off"},
        "low": {"oversubscribe": "FORCE:2"},
        "hi": {"oversubscribe": "FORCE:2", "priority_tier": 2},
    }
    run = replay_table(
        """
        job     partition  submit  nodes  run_time  required_nodes
        spared  off             0      1        60  n1
        low     low             1      1        60  n2
        one     hi             10      1        20  -
        two     hi             11      1        20  -
        """,
        cluster=cluster(3),
        config=two_tiers(partitions=partitions, rules={"linear_overlays_off": False}),
    )
    assert (run.nodes("one"), run.nodes("two")) == ("n3", "n2")
    assert run.victims == ("low",)
    assert run.only("spared")[1:] == ("60 spared complete",)


def test_modes_of_three_tiers() -> None:
    """S33, the preemption page's second example: requeue, suspend, off."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        94   low             0      1       500
        95   med            10      1       500
        96   hi             20      1        50
        """,
        config={
            "preempt": "preempt/partition_prio",
            "preempt_mode": "suspend,gang",
            "scheduler": "builtin",
            "clockwork": {"completing_time": 1.0, "requeue_delay": 121.0},
            "partitions": {
                "low": {"priority_tier": 10, "preempt_mode": "requeue"},
                "med": {"priority_tier": 20, "oversubscribe": "FORCE:1", "preempt_mode": "suspend"},
                "hi": {"priority_tier": 30, "oversubscribe": "FORCE:1", "preempt_mode": "off"},
            },
        },
        until=200.0,
    )
    assert run.timeline == timeline("""
         0  94  start
        10  94  leave    for 95
        11  94  requeue
        11  95  start
        20  95  suspend  for 96
        20  96  start
        70  96  leave
        71  96  complete
        71  95  resume
    """)
    assert run.state("94") is JobState.PENDING


# --------------------------------------------------------------------------------------- memory
MEMORY = {"select_parameters": "CR_Memory"}


def test_linear_forgets_the_memory_of_a_suspended_victim() -> None:
    """L08: 700 MB and 500 MB on a node of 1,000 MB; it is a defect, the record excuses it."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  memory_mb
        low   low             0      1        60        700
        high  hi             10      1        20        500
        """,
        cluster=one_node(memory_mb=1000),
        config=two_tiers(**MEMORY),
    )
    assert run.starts("high") == (10.0,)
    assert {one.excuse for one in run.checker.excused} == {"suspension frees memory"}


def test_without_that_defect_the_preemptor_waits_for_memory() -> None:
    """The contrast of L09: suspended jobs keep their memory."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  memory_mb
        low   low             0      1        60        700
        high  hi             10      1        20        500
        """,
        cluster=one_node(memory_mb=1000),
        config=two_tiers(**MEMORY, rules={"linear_suspend_frees_memory": False}),
    )
    assert run.starts("high") == (60.0,)


def test_without_memory_options_a_job_takes_all_memory() -> None:
    """L06."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1       100
        b         0      1       100
        """,
        cluster=one_node(memory_mb=1000),
        config=gang("FORCE:4", **MEMORY),
        until=50.0,
    )
    assert (run.state("b"), run.reason("b")) == (JobState.PENDING, "Resources")


def test_suspended_jobs_keep_their_memory() -> None:
    """L07: three of 400 MB on 1,000 MB: two take turns, the third waits."""
    run = replay_table(
        """
        job  submit  nodes  run_time  memory_mb
        a         0      1       200        400
        b         0      1       200        400
        c         0      1       200        400
        """,
        cluster=one_node(memory_mb=1000),
        config=gang("FORCE:3", **MEMORY),
        until=50.0,
    )
    assert (run.state("b"), run.state("c")) == (JobState.SUSPENDED, JobState.PENDING)


# ---------------------------------------------------------------------------- which shares with which
def test_jobs_of_one_size_lie_on_one_another() -> None:
    """L03: FORCE:3 on five nodes."""
    run = replay_table(
        """
        job  submit  nodes  run_time  exclusive
        1         0      2      1000  -
        2         1      2      1000  -
        3         2      2      1000  -
        4         3      2      1000  -
        5         4      1      1000  -
        6         5      3      1000  -
        7         6      1      1000  -
        8         7      2      1000  -
        9         8      2      1000  true
        10        9      1      1000  -
        """,
        cluster=cluster(5),
        config=gang("FORCE:3", clockwork={"first_tick": 30.0}),
        until=10.0,
    )
    assert {job: (run.nodes(job), run.state(job).value[0]) for job in map(str, range(1, 9))} == {
        "1": ("n[1-2]", "R"),
        "2": ("n[3-4]", "R"),
        "3": ("n[1-2]", "S"),
        "4": ("n[3-4]", "S"),
        "5": ("n5", "R"),
        "6": ("n[1-3]", "S"),
        "7": ("n5", "S"),
        "8": ("n[4-5]", "S"),
    }
    assert (run.reason("9"), run.reason("10")) == ("Resources", "Priority")


def test_yes_shares_only_with_those_who_offer() -> None:
    """L04, L05."""
    alone = replay_table(
        """
        job  submit  nodes  run_time  oversubscribe
        a         0      2       100  -
        b         1      2       100  -
        c         2      1       100  true
        """,
        cluster=cluster(2),
        config=gang("YES:2"),
        until=10.0,
    )
    assert [alone.state(job).value[0] for job in "abc"] == ["R", "P", "P"]
    offered = replay_table(
        """
        job  submit  nodes  run_time  oversubscribe
        a         0      2       100  true
        b         1      2       100  true
        c         2      2       100  true
        d         3      1       100  -
        """,
        cluster=cluster(2),
        config=gang("YES:2"),
        until=10.0,
    )
    assert [offered.state(job).value[0] for job in "abcd"] == ["R", "S", "P", "P"]


def test_force_one_is_exclusive() -> None:
    """L10."""
    jobs = "job partition submit nodes run_time\n" + "\n".join(f"j{at} low 0 1 100" for at in range(6))
    run = replay_table(jobs, cluster=cluster(5), config=two_tiers(), until=10.0)
    assert run.state("j5") is JobState.PENDING


def test_partitions_of_one_tier_are_not_sliced_against_each_other() -> None:
    """Gang 4.3.9: both run on the same node, and the checker says which rule excuses it."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        a    pa              0      1       100
        b    pb              0      1       100
        """,
        config={
            "preempt_mode": "gang",
            "partitions": {"pa": {"oversubscribe": "FORCE:2"}, "pb": {"oversubscribe": "FORCE:2"}},
        },
    )
    assert run.timeline == timeline("""
          0  a  start
          0  b  start
        100  a  complete
        100  b  complete
    """)
    assert {one.excuse for one in run.checker.excused} == {"equal tiers"}


# ------------------------------------------------------------------------------- limits and holds
def test_a_suspended_victim_of_linear_keeps_its_deadline() -> None:
    """L16, S55: killed at its original 60 s as PREEMPTED; an undisturbed job gets TIMEOUT."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit
        low   low             0      1       500          60
        calm  low             0      1       500          60
        high  hi              4      1        30        3600
        """,
        cluster=cluster(2),
        config=two_tiers(),
    )
    assert run.timeline == timeline("""
         0  low   start
         0  calm  start
         4  low   suspend    for high
         4  high  start
        34  high  complete
        34  low   resume
        60  low   preempted
        60  calm  timeout
    """)


def test_without_that_defect_suspension_does_not_count() -> None:
    """S55 as cons_tres has it: the limit is extended by the time suspended."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  time_limit
        low   low             0      1       900         600
        high  hi            120      1       300        3600
        """,
        config=two_tiers(rules={"linear_suspend_keeps_deadline": False}),
    )
    assert run.only("low")[-1] == "900 low timeout"


def test_a_victim_that_a_person_suspends_stays_suspended() -> None:
    """S58: until scontrol resume."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time
        low   low             0      1       100
        high  hi             10      1        20
        """,
        config=two_tiers(),
        commands="""
            15 suspend low
            50 resume low
        """,
    )
    assert run.only("low") == timeline("""
          0  low  start
         10  low  suspend  for high
         50  low  resume
        140  low  complete
    """)


def test_a_job_suspended_by_a_person_keeps_its_share() -> None:
    """G26: B, stopped by gang and then by a person, is in the way of C."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1       500
        b         1      1       500
        c        10      1       500
        """,
        config=gang("FORCE:2"),
        commands="5 suspend b",
        until=50.0,
    )
    assert [run.state(job).value[0] for job in "abc"] == ["R", "S", "P"]


@pytest.mark.parametrize(
    ("beside", "excuses"),
    [
        pytest.param(True, {"resumed by a person"}, id="as Slurm does"),
        pytest.param(False, set(), id="corrected"),
    ],
)
def test_a_job_resumed_by_a_person_runs_beside_the_holder(beside: bool, excuses: set[str]) -> None:
    """G23 to G25: until the rotation picks it."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1       200
        b        10      1       200
        """,
        config=gang("FORCE:2", rules={"resume_runs_beside": beside}),
        commands="""
             5 suspend a
            20 resume a
        """,
        until=400.0,
    )
    assert {one.excuse for one in run.checker.excused} == excuses
    assert run.only("a")[:2] == ("0 a start", "5 a suspend")


def test_a_job_resumed_under_a_shadow_stays_stopped() -> None:
    """`low` was stopped by the arbiter, then by a person: after his resume it counts as running, and no more.

    Recorded: resume_by_hand_stays_stopped.
    """
    stopped, works = (
        replay_table(
            """
            job   partition  submit  cpus  run_time
            low   low             0     4        30
            high  hi             10     4        50
            """,
            cluster=one_node(cpus=4),
            config=two_tiers(rules={"resume_leaves_stopped": stays}),
            commands="""
                20 suspend low
                40 resume low
            """,
            until=400.0,
        )
        for stays in (True, False)
    )
    assert stopped.only("low") == ("0 low start", "10 low suspend for high", "40 low resume")
    assert works.only("low") == (*stopped.only("low"), "60 low complete")


def test_nodes_of_a_job_killed_at_its_resume_stay_taken() -> None:
    """`first` is killed as a person resumes it under the shadow of `high`; `next` finds its node closed for good.

    Recorded: resume_by_hand_keeps_nodes.
    """
    stuck, free = (
        replay_table(
            """
            job    partition  submit  cpus  run_time
            high   hi              0     4        50
            first  low             0     4        30
            next   low            30     4        10
            """,
            cluster=cluster(2, cpus=4),
            config=two_tiers(
                partitions={"low": {"preempt_mode": "cancel"}, "hi": {"priority_tier": 2}},
                rules={"killed_at_resume_keeps_nodes": keeps},
            ),
            commands="""
                10 suspend first
                20 resume first
            """,
            until=400.0,
        )
        for keeps in (True, False)
    )
    assert (stuck.starts("next"), free.starts("next")) == ((50.0,), (30.0,))


@pytest.mark.parametrize(("nodes", "starts"), [(1, ()), (2, (50.0,))])
def test_marks_of_exclusive_jobs_go_together(nodes: int, starts: tuple[float, ...]) -> None:
    """`b` ends at 36, after `a`: where both were, no mark is left; where `a` was alone, its mark stays.

    Recorded: cons_resume_overflow_exclusive, cons_resume_overflow_exclusive_alone.
    """
    run = replay_table(
        f"""
        job  submit  nodes  run_time
        a         0      2        20
        b         6      {nodes}        30
        d        50      2        10
        """,
        cluster=cluster(2),
        config={
            "scheduler": "builtin",
            "select": "select/cons_tres",
            "select_parameters": "CR_Core",
            "partitions": {"batch": {"oversubscribe": "EXCLUSIVE"}},
            "rules": {"overflow_keeps_marks": True},
        },
        commands="""
             5 suspend a
            10 resume a
        """,
        until=100.0,
    )
    assert run.starts("b") == (6.0,)
    assert run.starts("d") == starts


def test_het_jobs_are_invisible_to_gang() -> None:
    """G18: a component runs beside the job that holds the node, and never stops."""
    from makeway.model import JobSpec

    specs = [
        JobSpec(id="a", run_time=100.0),
        JobSpec(id="h+0", run_time=100.0, submit_at=1.0, het_id="h"),
        JobSpec(id="h+1", run_time=100.0, submit_at=1.0, het_id="h", het_offset=1),
    ]
    run = replay_table(specs, cluster=cluster(2), config=gang("FORCE:2", scheduler="backfill"))
    assert run.timeline == timeline("""
          0  a    start
          1  h+0  start
          1  h+1  start
        100  a    complete
        101  h+0  complete
        101  h+1  complete
    """)
    assert {one.excuse for one in run.checker.excused} == {"heterogeneous"}


def test_why_a_job_stays_suspended_is_asked_of_suspended_jobs_alone() -> None:
    """low waits for high, which runs on its core; nothing keeps high suspended."""
    run = replay_table(
        """
        job   partition  submit  cpus  run_time
        low   low             0     4        60
        high  hi             10     4        20
        """,
        cluster=one_node(cpus=4),
        config=two_tiers(),
        until=20.0,
    )
    engine = run.run.engine
    low, high = (engine.ledger.jobs[name] for name in ("low", "high"))
    assert (low.state, high.state) == (JobState.SUSPENDED, JobState.RUNNING)
    assert engine.stays(low)
    assert engine.stays(high) == []


@pytest.mark.parametrize(
    ("ends", "nodes", "fate"),
    [
        pytest.param(True, "n2", JobState.CANCELLED, id="as Slurm does"),
        pytest.param(True, "n3", JobState.PENDING, id="elsewhere"),
        pytest.param(False, "n2", JobState.PENDING, id="corrected"),
    ],
)
def test_who_still_leaves_is_not_requeued_under_a_shadow(ends: bool, nodes: str, fate: JobState) -> None:
    """A person requeues `a` at 10: n2 is clean at 11, n1 with its script at 31; `h` starts at 12."""
    run = replay_table(
        f"""
        job   partition  submit  nodes  run_time  required_nodes
        a     low             0      2        60  n[1-2]
        h     hi             12      1         5  {nodes}
        """,
        cluster=cluster(3),
        config=two_tiers(
            partitions={
                "low": {"oversubscribe": "FORCE:1", "preempt_mode": "requeue"},
                "hi": {"oversubscribe": "FORCE:1", "priority_tier": 2},
            },
            rules={"gang_ends_leaving": ends},
            clockwork={"completing_time": 1.0, "batch_host_delay": 20.0, "requeue_delay": 100.0},
        ),
        commands="10 requeue a",
        until=50.0,
    )
    assert run.starts("h") == (12.0,)
    assert run.state("a") is fate

"""Limits, dependencies, begin times, failing nodes, and what people do (slurm-preemption 4.11)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.config import build_cluster, parse_toml
from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Command, Finished, NodesDrained, NodesUp, SendSignal, Submitted
from makeway_engine.engine import Engine
from makeway_engine.why_suspended import reasons_of
from makeway_testing import TableRun, cluster, replay_table, tiers, timeline

BUILTIN: dict[str, Any] = {"scheduler": "builtin"}
ONE = """
    job  submit  nodes  run_time
    a         0      1       100
"""
TWO = ONE + "    b         0      1       100\n"


def refusals(run: TableRun) -> list[str]:
    """Return why people's commands were refused."""
    return [reason for _, _, reason in run.run.recorder.refusals]


# ------------------------------------------------------------------------------------ time limits
@pytest.mark.parametrize(
    ("settings", "end"),
    [
        pytest.param({}, "60 a timeout", id="exactly"),
        pytest.param({"over_time_limit": 20.0}, "80 a timeout", id="OverTimeLimit"),
        pytest.param({"enforce_time_limits": False}, "100 a complete", id="not enforced"),
        pytest.param(
            {"clockwork": {"limit_sweep": 30.0, "limit_phase": 10.0}},
            "70 a timeout",
            id="at the next sweep",
        ),
    ],
)
def test_time_limits(settings: dict[str, Any], end: str) -> None:
    """A job runs no longer than its limit and what the clockwork adds to it."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      1       100          60
        """,
        config=BUILTIN | settings,
    )
    assert run.timeline == ("0 a start", end)


@pytest.mark.parametrize(
    ("keys", "end"),
    [
        pytest.param({"default_time": 30.0, "max_time": 60.0}, "30 a timeout", id="default"),
        pytest.param({"max_time": 60.0}, "60 a timeout", id="no default: the longest"),
        pytest.param({}, "100 a complete", id="none"),
    ],
)
def test_the_partition_gives_limits_to_jobs_without(keys: dict[str, Any], end: str) -> None:
    """Jobs that ask for no limit get the partition's."""
    run = replay_table(ONE, config=BUILTIN | {"partitions": {"batch": keys}})
    assert run.timeline[-1] == end


def test_a_job_that_ends_at_its_limit_has_completed() -> None:
    """Both fall on one instant: what it did counts."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      1        60          60
        """,
        config=BUILTIN,
    )
    assert run.state("a") is JobState.COMPLETED


# --------------------------------------------------------------------------- waiting for something
def test_a_dependent_waits_for_all_to_end_however_they_end() -> None:
    """Reason Dependency, then at once."""
    jobs = """
        job  submit  nodes  run_time  depends_on
        a         0      1        10  -
        b         0      1       100  -
        c         0      1        10  a,b
    """
    run = replay_table(jobs, cluster=cluster(2), config=BUILTIN, commands="50 cancel b")
    assert run.starts("c") == (50.0,)
    waiting = replay_table(jobs, cluster=cluster(2), config=BUILTIN, until=20.0)
    assert waiting.reason("c") == "Dependency"


def test_a_dependent_waits_for_all_components() -> None:
    """Of a heterogeneous job, by its id; by the id of one component for that one alone."""
    parts = [
        JobSpec(id="h+0", run_time=10.0, het_id="h"),
        JobSpec(id="h+1", run_time=30.0, het_id="h", het_offset=1),
    ]
    after = [
        JobSpec(id="all", run_time=1.0, submit_at=1.0, depends_on=("h",)),
        JobSpec(id="one", run_time=1.0, submit_at=1.0, depends_on=("h+0",)),
    ]
    run = replay_table([*parts, *after], cluster=cluster(4), config={"scheduler": "backfill"})
    assert (run.starts("one"), run.starts("all")) == ((10.0,), (30.0,))


def test_begin_time() -> None:
    """Not before, although the node is idle; others go first."""
    jobs = """
        job  submit  nodes  run_time  begin
        a         0      1        10     30
        b         0      1        10      -
    """
    run = replay_table(jobs, config=BUILTIN)
    assert (run.starts("a"), run.starts("b")) == ((30.0,), (0.0,))
    assert replay_table(jobs, config=BUILTIN, until=20.0).reason("a") == "BeginTime"


def test_a_held_job_waits_for_its_release() -> None:
    """Priority 0: JobHeldUser."""
    jobs = """
        job  submit  nodes  run_time  priority
        a         0      1        10         0
    """
    run = replay_table(jobs, config=BUILTIN, commands="20 release a")
    assert run.starts("a") == (20.0,)
    assert replay_table(jobs, config=BUILTIN).reason("a") == "JobHeldUser"


def test_a_job_that_is_released_before_its_begin_time_starts_then() -> None:
    """It was held when it came, so that nothing has waited for that time yet; once it is free, it runs once."""
    jobs = """
        job  submit  nodes  run_time  begin  priority
        a         0      1        10     30         0
    """
    run = replay_table(jobs, config=BUILTIN, commands="20 release a")
    assert run.starts("a") == (30.0,)
    assert replay_table(jobs, config=BUILTIN, commands="20 release a", until=25.0).reason("a") == "BeginTime"
    twice = replay_table(jobs, config=BUILTIN, commands="10 release a\n15 hold a\n20 release a")
    assert twice.starts("a") == (30.0,)


def test_hold_and_release_of_a_waiting_job_send_it_to_the_end() -> None:
    """A released job gets a fresh priority below all others (slurm-gang-and-select 5.1)."""
    run = replay_table(
        TWO + "    c         1      1       100\n",
        config=BUILTIN,
        commands="""
            10 hold b
            20 release b
        """,
    )
    assert (run.starts("c"), run.starts("b")) == ((100.0,), (200.0,))


def test_a_given_priority_reorders_the_queue() -> None:
    """Higher first."""
    run = replay_table(
        TWO + "    c         1      1       100\n",
        config=BUILTIN,
        commands="10 priority c 4294967295",
    )
    assert (run.starts("c"), run.starts("b")) == ((100.0,), (200.0,))


# --------------------------------------------------------------------------------------- people
def test_suspend_frees_the_node_and_resume_gives_the_time_back() -> None:
    """4.11: limit and work count running time only; the node takes another job meanwhile."""
    run = replay_table(
        """
        job  submit  nodes  run_time  time_limit
        a         0      1       100         110
        b         5      1        20         110
        """,
        config=BUILTIN,
        commands="""
            10 suspend a
            50 resume a
        """,
    )
    assert run.timeline == timeline("""
          0  a  start
         10  a  suspend
         10  b  start
         30  b  complete
         50  a  resume
        140  a  complete
    """)


def test_requeue_by_a_person() -> None:
    """4.11: like a preempting requeue; the work is lost."""
    run = replay_table(ONE, config=BUILTIN, commands="30 requeue a")
    assert run.timeline == timeline("""
          0  a  start
         30  a  requeue
         30  a  start
        130  a  complete
    """)
    assert run.history("a").job.lost == 30.0


def test_a_suspended_job_that_is_requeued_is_held() -> None:
    """S42, 4.11: its priority is 0; reason JobHeldAdmin."""
    run = replay_table(
        ONE,
        config=BUILTIN,
        commands="""
            10 suspend a
            20 requeue a
        """,
    )
    assert (run.state("a"), run.reason("a")) == (JobState.PENDING, "JobHeldAdmin")


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        pytest.param("10 suspend b", "the job is pending", id="suspend a pending job"),
        pytest.param("10 resume a", "the job is running, not suspended", id="resume a running job"),
        pytest.param("10 requeue b", "the job is pending", id="requeue a pending job"),
        pytest.param("10 release a", "the job is not held", id="release what is not held"),
        pytest.param("10 cancel x", "the job is unknown or has ended", id="an unknown job"),
        pytest.param("150 cancel a", "the job is unknown or has ended", id="a finished job"),
        pytest.param(
            "150 requeue a",
            "the job is unknown or has ended",
            id="a finished job in a world that may be real",
        ),
        pytest.param(
            "10 start b", "there is no room: Resources: 1 node wanted, 0 usable", id="start without room"
        ),
        pytest.param("10 start a", "the job is running, not pending", id="start a running job"),
    ],
)
def test_commands_that_make_no_sense_are_refused(commands: str, reason: str) -> None:
    """They are in the record, and nothing else changes."""
    run = replay_table(TWO, config=BUILTIN, commands=commands)
    assert refusals(run) == [reason]
    assert run.timeline == replay_table(TWO, config=BUILTIN).timeline


@pytest.mark.parametrize(("rule", "order"), [(True, ["w", "b", "a"]), (False, ["w", "a", "b"])])
def test_the_release_of_a_job_that_is_not_held(rule: bool, order: list[str]) -> None:
    """Under the rule it gets a new priority all the same, which is the lowest of priority/basic."""
    run = replay_table(
        """
        job  submit  run_time
        w         0        20
        a         1         5
        b         2         5
        """,
        config=BUILTIN | {"rules": {"release_renews_priority": rule}},
        commands="10 release a",
    )
    assert sorted("wab", key=lambda job: run.starts(job)) == order


def test_unknown_commands_are_refused_with_a_guess() -> None:
    """Allowed words and the nearest one."""
    (reason,) = refusals(replay_table(ONE, config=BUILTIN, commands="10 suspnd a"))
    assert "did you mean 'suspend'?" in reason


@pytest.mark.parametrize(
    ("at", "state"), [(10.0, JobState.CANCELLED), (5.0, JobState.CANCELLED)], ids=["runs", "waits"]
)
def test_cancel(at: float, state: JobState) -> None:
    """A running job is killed, a waiting one leaves the queue."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        x         0      1         8
        a         0      1       100
        """,
        config=BUILTIN,
        commands=f"{at} cancel a",
    )
    assert run.state("a") is state
    assert run.history("a").ended_at == at


def test_people_may_start_a_job_ahead_of_the_queue() -> None:
    """Where there is room for it."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1       100
        b         0      2       100
        c         0      1        10
        """,
        cluster=cluster(2),
        config=BUILTIN,
        commands="20 start c",
    )
    assert run.starts("c") == (20.0,)


# ---------------------------------------------------------------------------------------- nodes
def test_jobs_on_a_failed_node_are_requeued_or_end() -> None:
    """Requeued if they may be; NODE_FAIL else."""
    run = replay_table(
        """
        job  submit  nodes  run_time  requeue
        a         0      1       100  true
        b         0      1       100  false
        """,
        cluster=cluster(2),
        config=BUILTIN,
        commands="""
            10 down n[1-2]
            60 up n1
        """,
    )
    assert run.timeline == timeline("""
          0  a  start
          0  b  start
         10  a  requeue
         10  b  node_fail
         60  a  start
        160  a  complete
    """)


def test_a_drained_node_lets_its_job_end_and_takes_no_other() -> None:
    """Until it is up again."""
    run = replay_table(
        TWO,
        config=BUILTIN,
        commands="""
            10 drain n1
            300 up n1
        """,
    )
    assert (run.state("a"), run.starts("b")) == (JobState.COMPLETED, (300.0,))


def test_a_suspended_job_on_a_failed_node_leaves_too() -> None:
    """It holds its node while it is suspended."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  requeue
        low   low             0      1       100  false
        high  hi             10      1        50  false
        """,
        config={
            "preempt": "preempt/partition_prio",
            "preempt_mode": "suspend,gang",
            "partitions": tiers(low=1, hi=2),
        },
        commands="20 down n1",
    )
    assert (run.state("low"), run.state("high")) == (JobState.NODE_FAIL, JobState.NODE_FAIL)


# ------------------------------------------------------------------------------ jobs that never fit
@pytest.mark.parametrize(
    "row",
    [
        pytest.param("a  0  3  -      -", id="too many nodes"),
        pytest.param("a  0  1  ghost  -", id="no such partition"),
        pytest.param("a  0  1  -      n9", id="no such node"),
        pytest.param("a  0  1  -      n[1-2]", id="more nodes named than it takes"),
    ],
)
def test_jobs_that_can_never_run_end_at_once_with_a_reason(row: str) -> None:
    """FAILED, and listed."""
    run = replay_table(
        f"""
        job  submit  nodes  partition  required_nodes
        {row}
        """,
        cluster=cluster(2),
        config=BUILTIN,
    )
    assert run.state("a") is JobState.FAILED
    assert [entry[0] for entry in run.run.recorder.unrunnable] == ["a"]


# ---------------------------------------------------------------------------- in worlds that live
def _engine(text: str = "") -> Engine:
    config = parse_toml(text or ONE_NODE, "test")
    return Engine(config, Recorder(build_cluster(config), lambda line: None), Policies(config))


ONE_NODE = """
node = [{ name = "n1", cpus = 2 }]
partition = [{ name = "all", default = true }]
[policy]
select = "select/whole_nodes"
"""


def test_a_job_waits_for_nodes_that_may_come_back() -> None:
    """One that is submitted while all nodes are drained is not refused: it starts when they are back."""
    engine = _engine()
    engine.step(0.0, [NodesDrained(1)])
    assert engine.step(1.0, [Submitted(JobSpec(id="a"))]) == []
    assert engine.ledger.jobs["a"].state is JobState.PENDING
    (start,) = engine.step(2.0, [NodesUp(1)])
    assert start.job.id == "a"


def test_a_person_sends_a_signal() -> None:
    """A running job gets it; a pending one cannot, and an odd name is refused."""
    engine = _engine()
    engine.step(0.0, [Submitted(JobSpec(id="a")), Submitted(JobSpec(id="b"))])
    (action,) = engine.step(1.0, [Command("signal", "a", None, "SIGUSR1")])
    assert isinstance(action, SendSignal)
    assert (action.job.id, action.signal, action.steps_only) == ("a", "USR1", False)
    wrong = [Command("signal", "b", None, "USR1"), Command("signal", "a", None, "rm -rf")]
    assert engine.step(2.0, wrong) == []
    assert [why for _, _, why in engine.recorder.refusals] == [
        "the job is pending, not active",
        "got 'rm -rf'; allowed: the name of a signal, as in USR1",
    ]


def test_a_partition_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    """The person who submits sees what is allowed, and the nearest name."""
    engine = _engine()
    engine.step(0.0, [Submitted(JobSpec(id="a", partitions=("al",)))])
    assert engine.recorder.unrunnable == [
        ("a", "", "no partition named 'al'; allowed: all; did you mean 'all'?")
    ]


def test_a_running_job_is_given_another_limit() -> None:
    """Counted from its start; a limit that has passed ends it at once, an odd one is refused."""
    engine = _engine()
    engine.step(0.0, [Submitted(JobSpec(id="a", time_limit=600.0))])
    engine.step(10.0, [Command("change", "a", None, "time_limit=100")])
    assert engine.next_wake == 100.0
    engine.step(20.0, [Command("change", "a", None, "time_limit=soon")])
    assert [why for _, _, why in engine.recorder.refusals] == [
        "time_limit: got 'soon'; allowed: whole seconds, 1 or more"
    ]
    assert engine.ledger.jobs["a"].time_limit == 100.0
    (kill,) = engine.step(30.0, [Command("change", "a", None, "time_limit=20")])
    assert (kill.job.id, type(kill).__name__) == ("a", "Kill")


def test_a_waiting_job_is_put_into_another_partition() -> None:
    """It stands there as if submitted to it; a partition that could never run it is refused, and it stays."""
    engine = _engine(
        """
node = [{ name = "n[1-2]", cpus = 1 }]
partition = [
  { name = "all", nodes = "n[1-2]", default = true, default_time = 600 },
  { name = "high", nodes = "n2", priority_tier = 2, default_time = 1200 },
  { name = "small", nodes = "n1", max_nodes = 1 },
]
"""
    )
    jobs = engine.ledger.jobs
    engine.step(0.0, [Submitted(JobSpec(id=each, min_nodes=2)) for each in ("a", "b")])
    engine.step(0.0, [Submitted(JobSpec(id="c"))])
    engine.step(1.0, [Command("change", "c", None, "partition=high")])
    assert (jobs["c"].partition.name, jobs["c"].time_limit, jobs["c"].spec.partitions) == (
        "high",
        1200.0,
        ("high",),
    )
    engine.step(
        2.0,
        [
            Command("change", "b", None, "partition=small"),
            Command("change", "b", None, "partition=hihg"),
            Command("change", "a", None, "partition=high"),
        ],
    )
    assert [why for _, _, why in engine.recorder.refusals] == [
        "partition: PartitionNodeLimit: needs 2 nodes; partition small gives at most 1",
        "partition: no partition named 'hihg'; allowed: all, high, small; did you mean 'high'?",
        "the job is running, not pending",
    ]
    assert (jobs["b"].partition.name, jobs["b"].spec.partitions) == ("all", ())
    started = engine.step(3.0, [Finished("a", JobState.COMPLETED, cleaned=True, incarnation=1)])
    assert [each.job.id for each in started] == ["c"]


def test_why_a_job_is_suspended() -> None:
    """What a person stopped waits for a person; of a job that runs there is nothing to say."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        a         0      1        50
        b         0      1        50
        """,
        cluster=cluster(2),
        commands="5 suspend a",
        until=10,
    )
    engine = run.engine
    a, b = (engine.ledger.jobs[name] for name in "ab")
    said = [stay.why for stay in reasons_of(a, engine.gang, engine.policies, engine.ledger)]
    assert said == ["a person suspended it, and it was not resumed"]
    assert reasons_of(b, engine.gang, engine.policies, engine.ledger) == []


# ---------------------------------------------------------------------------- heterogeneous jobs
PARTS = [
    JobSpec(id="h+0", run_time=10.0, het_id="h"),
    JobSpec(id="h+1", run_time=10.0, het_id="h", het_offset=1),
]
BLOCKER = [
    JobSpec(id="w", min_nodes=3, run_time=20.0),
    *(attrs.evolve(part, submit_at=1.0) for part in PARTS),
]
BY_BACKFILL: dict[str, Any] = {"scheduler": "backfill"}


def test_the_leader_suspends_and_resumes_all_components() -> None:
    """Both run for 10 s besides the 20 s that they stand still; a component alone is refused."""
    run = replay_table(
        PARTS,
        cluster=cluster(3),
        config=BY_BACKFILL,
        commands="2 suspend h+1\n3 suspend h+0\n22 resume h+1\n23 resume h+0",
    )
    assert [step for step in run.timeline if "complete" in step] == ["30 h+0 complete", "30 h+1 complete"]
    whole = "components of a heterogeneous job stop and go on together; name its leader"
    assert refusals(run) == [whole, whole]


def test_a_component_that_waits_is_not_cancelled() -> None:
    """Its leader cancels all; one that runs is cancelled alone."""
    waits = replay_table(BLOCKER, cluster=cluster(3), config=BY_BACKFILL, commands="5 cancel h+1")
    assert (waits.starts("h+0"), waits.starts("h+1")) == ((20.0,), (20.0,))
    assert len(refusals(waits)) == 1
    gone = replay_table(BLOCKER, cluster=cluster(3), config=BY_BACKFILL, commands="5 cancel h+0")
    assert (gone.starts("h+0"), gone.starts("h+1")) == ((), ())
    runs = replay_table(PARTS, cluster=cluster(3), config=BY_BACKFILL, commands="5 cancel h+1")
    assert (runs.state("h+0"), runs.state("h+1")) == (JobState.COMPLETED, JobState.CANCELLED)


@pytest.mark.parametrize("held", ["h+0", "h+1"])
def test_the_leader_holds_all_components_and_another_itself(held: str) -> None:
    """Either way none starts, for they start together; once it is released all do."""
    waits = replay_table(
        BLOCKER, cluster=cluster(3), config=BY_BACKFILL, commands=f"5 hold {held}", until=40.0
    )
    assert [waits.reason(part.id) == "JobHeldAdmin" for part in PARTS] == [held == "h+0", True]
    run = replay_table(
        BLOCKER, cluster=cluster(3), config=BY_BACKFILL, commands=f"5 hold {held}\n50 release {held}"
    )
    assert (run.starts("h+0"), run.starts("h+1")) == ((50.0,), (50.0,))


# --------------------------------------------------------------- what operators have done, and cancels on the way
def given(commands: str) -> TableRun:
    """Replay two jobs of ann that want one node, under commands of several people."""
    jobs = [
        JobSpec(id="first", run_time=20.0, user="ann"),
        JobSpec(id="a", run_time=10.0, user="ann", submit_at=1.0),
    ]
    return replay_table(jobs, cluster=cluster(1), config=BUILTIN, commands=commands, until=300.0)


def why_not(run: TableRun) -> list[str]:
    """Return why commands were refused, without what is allowed."""
    return [text.partition(";")[0] for text in refusals(run)]


@pytest.mark.parametrize("verb", ["release a", "priority a 5"])
def test_a_hold_by_an_operator_is_undone_by_operators(verb: str) -> None:
    """Slurm: a user may not release an admin hold, and says JobHeldAdmin; anybody releases his own."""
    kept = given(f"2 hold a\n5 {verb} @ann")
    assert (kept.starts("a"), kept.reason("a")) == ((), "JobHeldAdmin")
    assert why_not(kept) == ["an operator holds the job"]
    assert given(f"2 hold a\n5 {verb}").starts("a") == (20.0,)
    assert given(f"2 hold a @ann\n5 {verb} @ann").starts("a") == (20.0,)
    assert given(f"2 hold a\n3 hold a @ann\n5 {verb} @ann").starts("a") == ()


def test_a_stop_by_an_operator_is_undone_by_operators() -> None:
    """Neither a resume nor a release of its owner lets it go on; requeued it stays held."""
    for tried in ("resume", "release"):
        run = given(f"2 suspend first\n5 {tried} first @ann\n40 resume first")
        assert why_not(run) == ["an operator has stopped the job"]
        assert run.only("first") == (
            "0 first start",
            "2 first suspend",
            "40 first resume",
            "58 first complete",
        )
    again = given("2 suspend first\n5 requeue first @ann\n8 release first @ann")
    assert (again.starts("first"), again.reason("first")) == ((0.0,), "JobHeldAdmin")
    own = given("2 suspend first @ann\n5 resume first @ann")
    assert (refusals(own), own.state("first")) == ([], JobState.COMPLETED)


@pytest.mark.parametrize("when", [12, 25, 39])
def test_a_cancel_of_a_job_that_leaves_for_a_requeue_ends_it(when: int) -> None:
    """Slurm: scancel of a job that is PENDING and COMPLETING makes it CANCELLED, and prevents the requeue."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time  on_term
        a    low             0      1       300  ignore
        b    hi             10      1       300  -
        """,
        cluster=cluster(1),
        config={
            "partitions": tiers(low=1, hi=2),
            "preempt": "preempt/partition_prio",
            "preempt_mode": "requeue",
            "clockwork": {"kill_wait": 30.0},
        },
        commands=f"{when} cancel a",
    )
    assert refusals(run) == []
    assert (run.starts("a"), run.state("a"), run.starts("b")) == ((0.0,), JobState.CANCELLED, (40.0,))

"""What follows a failure is a rule with a setting; what is no news changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from makeway.config import FailureTable, WorldTable, build_cluster
from makeway.model import JobState, PreemptMode, SuspendedBy
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.worlds.events import (
    Action,
    BegunAnew,
    Checkpoint,
    Checkpointed,
    Cleaned,
    Command,
    Event,
    Failed,
    Finished,
    Kill,
    NodesUp,
    Noticed,
    Obstructed,
    Started,
    Submitted,
    Suspend,
)
from makeway_engine.engine import Engine
from makeway_testing import builders

LOW, HIGH = builders.jobs(
    """
    job   partition  cpus  time_limit
    low   batch         2         100
    high  urgent        2         100
    """
)
SUSPEND: dict[str, Any] = {"preempt_mode": "suspend,gang"}
DONE = JobState.COMPLETED


class Bench:
    """An engine whose world is the test."""

    def __init__(self, nodes: int = 1, failures: FailureTable | None = None, **policy: Any) -> None:
        settings = {
            "partitions": builders.tiers(batch=1, urgent=2),
            "preempt": "preempt/partition_prio",
            "preempt_mode": "requeue",
            **policy,
        }
        config = builders.config(builders.cluster(nodes, cpus=2), settings)
        config = attrs.evolve(config, world=WorldTable(failures=failures or FailureTable()))
        self.lines: list[Line] = []
        self.engine = Engine(config, Recorder(build_cluster(config), self.lines.append), Policies(config))

    def __call__(self, at: float, *events: Event) -> list[Action]:
        """Let the engine decide at `at`."""
        return self.engine.step(at, events)

    def job(self, job_id: str) -> Any:
        """Return a live job."""
        return self.engine.ledger.jobs[job_id]

    def notes(self, kind: str) -> list[dict[str, Any]]:
        """Return what lines of a kind say."""
        return [dict(line.data) for line in self.lines if line.kind == kind]


def words(actions: Sequence[Action]) -> list[str]:
    """Return actions in a word each."""
    return [f"{type(action).__name__} {action.job.id}" for action in actions]


# ------------------------------------------------------------------------------------- starts
def test_a_failed_start_puts_the_job_back_with_the_reason() -> None:
    """It keeps its place, waits for ``start_wait``, and starts as its next incarnation."""
    bench = Bench()
    (start,) = bench(0.0, Submitted(LOW))
    assert bench(1.0, Failed(start.serial, "no such directory")) == []
    job = bench.job("low")
    assert (job.state, job.reason) == (
        JobState.PENDING,
        "StartFailed: no such directory [world.failures.start_wait]",
    )
    assert (job.restarts, job.submit_at) == (0, 0.0)
    assert bench.engine.next_wake == 11.0
    (again,) = bench(11.0)
    assert words([again]) == ["Start low"]
    assert again.incarnation == 2
    (note,) = bench.notes("failed")
    assert note["rule"] == "world.failures.start_wait"


def test_after_enough_failures_the_job_is_held() -> None:
    """``start_hold_after`` says how many; a start that succeeds in between begins a new count."""
    bench = Bench(failures=FailureTable(start_wait=1.0, start_hold_after=2))
    (start,) = bench(0.0, Submitted(LOW))
    bench(0.5, Failed(start.serial, "no"))
    (start,) = bench(2.0)
    bench(2.0, Failed(start.serial, "no"))
    assert bench.job("low").held
    assert bench.engine.next_wake in (None, 3.0)
    assert bench(10.0) == []
    assert bench.notes("failed")[-1]["held"] is True
    assert words(bench(20.0, Command("release", "low"))) == ["Start low"]


def test_a_start_that_cannot_succeed_is_held_at_once() -> None:
    """The world says so by ``retry=False``."""
    bench = Bench()
    (start,) = bench(0.0, Submitted(LOW))
    bench(0.0, Failed(start.serial, "its user does not exist", retry=False))
    assert bench.job("low").held


def test_the_node_that_refused_is_set_aside_for_a_while() -> None:
    """The job starts elsewhere meanwhile; ``node_set_aside`` says for how long, and a node reported as up is back."""
    bench = Bench(nodes=2, failures=FailureTable(start_wait=0.0, node_set_aside=50.0))
    (start,) = bench(0.0, Submitted(LOW))
    (again,) = bench(1.0, Failed(start.serial, "disk full", nodes=1))
    assert again.job.allocation is not None
    assert again.job.allocation.nodes == 2
    assert bench.engine.ledger.up == 2
    assert bench.notes("set_aside") == [
        {"nodes": "n1", "until": 51.0, "rule": "world.failures.node_set_aside"}
    ]
    bench(51.0)
    assert bench.engine.ledger.up == 3


def test_a_node_that_is_reported_up_is_no_longer_set_aside() -> None:
    """The world knows better."""
    bench = Bench(nodes=2)
    (start,) = bench(0.0, Submitted(LOW))
    bench(1.0, Failed(start.serial, "disk full", nodes=1))
    bench(2.0, NodesUp(1))
    assert bench.engine.ledger.up == 3


def test_limits_count_from_the_real_start() -> None:
    """A start that is confirmed at 4 s with a limit of 100 s ends at 104 s."""
    bench = Bench()
    (start,) = bench(0.0, Submitted(LOW))
    bench(6.0, Started("low", start.incarnation, 4.0))
    assert bench.job("low").started_at == 4.0
    assert bench.engine.next_wake == 104.0
    assert words(bench(104.0)) == ["Kill low"]


# --------------------------------------------------------------------------------- suspensions
def test_a_suspension_that_failed_leaves_the_victim_running() -> None:
    """Its preemptor waits; nothing asks again for ``suspend_wait``; the victim's limit counts on."""
    bench = Bench(**SUSPEND)
    bench(0.0, Submitted(LOW))
    stop, start = bench(10.0, Submitted(HIGH))
    assert start.after == (stop.serial,)
    actions = bench(12.0, Failed(stop.serial, "2 processes in D"))
    assert set(words(actions)) <= {"Resume low"}  # which is harmless: it never stopped
    low, high = bench.job("low"), bench.job("high")
    assert low.state is JobState.RUNNING
    assert low.ran_until(12.0) == 12.0
    assert low.end_at == 100.0
    assert high.state is JobState.PENDING
    assert "2 processes in D [world.failures.suspend_wait]" in high.reason
    assert bench(30.0) == []
    again = bench(72.0)
    assert words(again) == ["Suspend low", "Start high"]


def test_the_start_that_rests_on_it_is_given_up_once() -> None:
    """The world reports it as failed too, which is no news; it does not count against the job."""
    bench = Bench(failures=FailureTable(start_hold_after=1), **SUSPEND)
    bench(0.0, Submitted(LOW))
    stop, start = bench(10.0, Submitted(HIGH))
    bench(12.0, Failed(stop.serial, "no"), Failed(start.serial, "no"))
    assert not bench.job("high").held
    assert sum(bench.engine.reports.unheeded.values()) == 1


def test_the_two_failures_may_come_in_either_order() -> None:
    """The victim goes on and the preemptor waits all the same."""
    bench = Bench(**SUSPEND)
    bench(0.0, Submitted(LOW))
    stop, start = bench(10.0, Submitted(HIGH))
    bench(12.0, Failed(start.serial, "it rests on another"), Failed(stop.serial, "no"))
    assert bench.job("low").state is JobState.RUNNING
    assert bench.job("high").state is JobState.PENDING
    assert not bench.job("high").held


def test_a_resumption_that_failed_is_repeated() -> None:
    """After ``resume_again``; until then it counts as stopped, as it is."""
    bench = Bench(**SUSPEND)
    bench(0.0, Submitted(LOW))
    bench(10.0, Submitted(HIGH))
    (resume,) = bench(20.0, Finished("high", DONE, cleaned=True))
    assert bench(20.0, Failed(resume.serial, "busy")) == []
    assert bench.job("low").state is JobState.SUSPENDED
    assert words(bench(25.0)) == ["Resume low"]


# ---------------------------------------------------------------------------------------- kills
def test_a_kill_that_failed_is_repeated_and_escalated() -> None:
    """The node counts as taken until it is clean."""
    bench = Bench()
    bench(0.0, Submitted(LOW))
    (kill,) = bench(10.0, Submitted(HIGH))
    assert isinstance(kill, Kill)
    assert (kill.attempt, kill.forced) == (1, False)
    assert bench(11.0, Failed(kill.serial, "1 process in D")) == []
    (kill,) = bench(41.0)
    assert isinstance(kill, Kill)
    assert (kill.attempt, kill.forced, kill.incarnation) == (2, False, 1)
    bench(42.0, Failed(kill.serial, "1 process in D"))
    (kill,) = bench(72.0)
    assert isinstance(kill, Kill)
    assert (kill.attempt, kill.forced) == (3, True)
    assert words(bench(73.0, Cleaned("low", None, 1))) == ["Start high"]
    assert bench(150.0) == []


# ------------------------------------------------------------------------------------ what others do
def test_a_job_that_somebody_stopped_waits_for_a_person() -> None:
    """It is not continued by any policy."""
    bench = Bench(**SUSPEND)
    bench(0.0, Submitted(LOW))
    assert bench(5.0, Noticed("low", JobState.SUSPENDED, 1, "alice")) == []
    assert bench.job("low").suspended_by is SuspendedBy.ADMIN
    assert bench(50.0) == []
    bench(60.0, Noticed("low", JobState.RUNNING, 1, "alice"))
    assert bench.job("low").ran_until(60.0) == 5.0


def test_a_victim_that_somebody_continued_is_stopped_again() -> None:
    """``restop_noticed``: two jobs never run on one core for long."""
    bench = Bench(**SUSPEND)
    bench(0.0, Submitted(LOW))
    bench(10.0, Submitted(HIGH))
    actions = bench(12.0, Noticed("low", JobState.RUNNING, 1, "alice"))
    assert [type(action) for action in actions] == [Suspend]
    assert bench.job("low").state is JobState.SUSPENDED


@pytest.mark.parametrize(
    ("state", "then"),
    [
        pytest.param(JobState.CANCELLED, "Start high", id="cancelled"),
        pytest.param(JobState.PENDING, "Start high", id="requeued"),
    ],
)
def test_a_job_that_somebody_ended_makes_room(state: JobState, then: str) -> None:
    """Its nodes are free at once."""
    bench = Bench(preempt="preempt/none", preempt_mode="off")
    bench(0.0, Submitted(LOW))
    bench(1.0, Submitted(HIGH))
    assert then in words(bench(5.0, Noticed("low", state, 1)))


def test_a_checkpoint_of_its_own_is_kept() -> None:
    """What it saved counts when it is requeued."""
    bench = Bench()
    bench(0.0, Submitted(LOW))
    bench(8.0, Checkpointed("low", 6.0, 1))
    bench(10.0, Submitted(HIGH))
    bench(10.0, Cleaned("low", None, 1))
    assert bench.job("low").begun_with == 6.0


def test_a_checkpoint_that_fails_leaves_what_was_saved_before() -> None:
    """Of ten seconds of work six were saved by itself, and four are lost."""
    bench = Bench(preempt_mode="checkpoint")
    bench(0.0, Submitted(LOW))
    bench(6.0, Checkpointed("low", 6.0, 1))
    low = bench.job("low")
    assert low.cost(PreemptMode.REQUEUE, 10.0) == 4.0
    actions = bench(10.0, Submitted(HIGH))
    (save,) = (each for each in actions if isinstance(each, Checkpoint))
    bench(10.0, Failed(save.serial, "the disk is full"))
    bench(10.0, Cleaned("low", None, 1))
    assert (low.begun_with, low.lost) == (6.0, 4.0)


def test_what_cannot_be_gone_on_from_is_lost_as_well() -> None:
    """Six seconds were saved, and the image is damaged: it begins anew, and its next requeue loses only the rest."""
    bench = Bench()
    bench(0.0, Submitted(LOW))
    bench(6.0, Checkpointed("low", 6.0, 1))
    bench(8.0, Noticed("low", JobState.PENDING, 1, "its keeper was killed"))
    low = bench.job("low")
    assert (low.begun_with, low.lost, low.starts) == (6.0, 2.0, 2)
    bench(9.0, BegunAnew("low", "it is damaged", 1))  # of an earlier incarnation
    assert low.begun_with == 6.0
    bench(9.0, BegunAnew("low", "it is damaged", 2), BegunAnew("low", "it is damaged", 2))
    assert (low.begun_with, low.lost) == (0.0, 8.0)
    (note,) = bench.notes("begun_anew")
    assert (note["lost"], note["why"]) == (6, "it is damaged")
    bench(10.0, Noticed("low", JobState.PENDING, 2, "its keeper was killed"))
    assert low.lost == 10.0


@pytest.mark.parametrize("requeueable", [True, False])
def test_what_cannot_be_checkpointed_makes_way_otherwise_and_it_is_said(requeueable: bool) -> None:
    """Ten seconds of work would be lost; once the connection is closed, none."""
    bench = Bench(preempt_mode="checkpoint")
    bench(0.0, Submitted(attrs.evolve(LOW, requeue=requeueable)))
    bench(1.0, Started("low", 1, 0.0, "it is connected to 10.0.0.7"))
    low = bench.job("low")
    assert low.cost(PreemptMode.CHECKPOINT, 10.0) == 10.0
    bench(2.0, Obstructed("low", "", 1))
    assert low.cost(PreemptMode.CHECKPOINT, 10.0) == 0.0
    bench(3.0, Obstructed("low", "it has a terminal", 1))
    bench(10.0, Submitted(HIGH))
    (told,) = bench.notes("preempt")
    assert told["mode"] == ("requeue" if requeueable else "cancel")
    assert "it cannot be checkpointed: it has a terminal" in told["why"]
    assert not bench.notes("checkpoint")
    (decision,) = (each for each in bench.notes("decision") if each["outcome"] == "preempts")
    assert (decision["candidates"], decision["costs"]) == ([["low", told["mode"]]], [10])


# ------------------------------------------------------------------------------------------ echoes
ECHOES: list[tuple[Event, str]] = [
    (Finished("nobody", DONE), "Finished: no such job"),
    (Finished("gone", DONE), "Finished: the job has ended"),
    (Finished("low", DONE, incarnation=7), "Finished: no such incarnation"),
    (Finished("high", DONE), "Finished: the job is PENDING"),
    (Finished("low", JobState.RUNNING), "Finished: RUNNING is no end that a job comes to by itself"),
    (Cleaned("low"), "Cleaned: the job is RUNNING"),
    (Cleaned("nobody"), "Cleaned: no such job"),
    (Started("high"), "Started: the job is PENDING"),
    (Failed(999, "no"), "Failed: no such action is open"),
    (Noticed("low", JobState.RUNNING), "Noticed: the job is RUNNING"),
    (Checkpointed("low", 0.0), "Checkpointed: nothing new is saved"),
    (BegunAnew("low"), "BegunAnew: it had nothing to go on from"),
    (Obstructed("low"), "Obstructed: nothing new is said of checkpoints"),
    (Submitted(LOW), "Submitted: it was submitted before"),
    (Submitted(attrs.evolve(LOW, id="gone")), "Submitted: it was submitted before"),
]


@pytest.mark.parametrize(("event", "told"), ECHOES, ids=[told for _, told in ECHOES])
def test_what_is_no_news_changes_nothing(event: Event, told: str) -> None:
    """It is counted, and a line of the record says why."""
    bench = Bench(preempt="preempt/none", preempt_mode="off")
    bench(0.0, Submitted(attrs.evolve(LOW, id="gone")))
    bench(1.0, Finished("gone", DONE, cleaned=True), Submitted(LOW))
    bench(1.0, Submitted(HIGH))
    before = [(job.id, job.state, job.starts, job.end_at) for job in bench.engine.ledger.jobs.values()]
    assert bench(2.0, event) == []
    assert [
        (job.id, job.state, job.starts, job.end_at) for job in bench.engine.ledger.jobs.values()
    ] == before
    assert dict(bench.engine.reports.unheeded) == {told: 1}
    assert len(bench.notes("unheeded")) == 1


def test_an_end_of_an_earlier_incarnation_is_an_echo() -> None:
    """The job that was requeued and started again goes on."""
    bench = Bench()
    bench(0.0, Submitted(LOW))
    bench(5.0, Submitted(HIGH))
    bench(5.0, Cleaned("low", None, 1))
    bench(9.0, Finished("high", DONE, cleaned=True))
    bench(10.0, Finished("low", DONE, True, 1), Cleaned("low", None, 1))
    assert bench.job("low").state is JobState.RUNNING
    assert bench.engine.reports.unheeded.total() == 2

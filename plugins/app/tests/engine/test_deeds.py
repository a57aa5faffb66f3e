"""Actions have serials and incarnations, and name what they rest on."""

from __future__ import annotations

from typing import Any

from makeway.config import build_cluster
from makeway.model import JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Cleaned, Finished, Kill, Noticed, Resume, Start, Submitted, Suspend
from makeway_engine.engine import Engine
from makeway_testing import builders

LOW, HIGH = builders.jobs(
    """
    job   partition  cpus
    low   batch         2
    high  urgent        2
    """
)


def engine_of(**policy: Any) -> Engine:
    """Return an engine of one node with two tiers, of which the upper preempts the lower."""
    settings = {
        "partitions": builders.tiers(batch=1, urgent=2),
        "preempt": "preempt/partition_prio",
        **policy,
    }
    config = builders.config(builders.one_node(cpus=2), settings)
    return Engine(config, Recorder(build_cluster(config)), Policies(config))


def test_a_start_waits_for_the_jobs_stopped_on_its_cores() -> None:
    """The preemptor's start names the suspension of its victim, and the victim's resumption none."""
    engine = engine_of(preempt_mode="suspend,gang")
    (first,) = engine.step(0.0, [Submitted(LOW)])
    assert isinstance(first, Start)
    assert (first.serial, first.incarnation, first.after) == (1, 1, ())
    assert first.allocation is engine.ledger.jobs["low"].allocation

    stop, start = engine.step(5.0, [Submitted(HIGH)])
    assert isinstance(start, Start)
    assert isinstance(stop, Suspend)
    assert (stop.serial, start.serial) == (2, 3)
    assert stop.after == ()
    assert start.after == (2,)

    (resume,) = engine.step(9.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    assert isinstance(resume, Resume)
    assert (resume.serial, resume.incarnation, resume.after) == (4, 1, ())


def test_each_start_is_a_new_incarnation() -> None:
    """A victim that was requeued starts again as its own second incarnation."""
    engine = engine_of(preempt_mode="requeue")
    engine.step(0.0, [Submitted(LOW)])
    (kill,) = engine.step(5.0, [Submitted(HIGH)])
    assert isinstance(kill, Kill)
    assert (kill.serial, kill.incarnation) == (2, 1)
    (start,) = engine.step(6.0, [Cleaned("low")])
    assert (start.job.id, start.incarnation) == ("high", 1)
    (again,) = engine.step(9.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    assert (again.job.id, again.serial, again.incarnation) == ("low", 4, 2)


def test_what_was_asked_of_an_incarnation_that_is_over_is_never_asked_again() -> None:
    """A start of which nothing was heard, whose job went back to the queue: the next start has another number."""
    engine = engine_of(preempt_mode="suspend,gang")
    engine.step(0.0, [Submitted(LOW)])
    engine.step(1.0, [Submitted(HIGH)])
    engine.step(5.0, [Noticed("low", JobState.PENDING, 1, "its keeper was killed")])
    deeds = engine.deeds
    assert deeds is not None
    assert engine.ledger.jobs["low"].state is JobState.PENDING
    assert [(each.job.id, type(each)) for each in deeds.unsettled()] == [("high", Start)]
    assert deeds.last(engine.ledger.jobs["low"], Suspend) == 0


def test_what_has_succeeded_is_settled_with_all_that_came_before() -> None:
    """The resumption settles the suspension and the start of its job; what was never heard of is nothing."""
    engine = engine_of(preempt_mode="suspend,gang")
    engine.step(0.0, [Submitted(LOW)])
    engine.step(5.0, [Submitted(HIGH)])
    engine.step(9.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    deeds = engine.deeds
    assert deeds is not None
    assert deeds.find(4) is not None
    deeds.succeeded(99)
    assert deeds.find(4) is not None
    deeds.succeeded(4)
    assert [deeds.find(serial) for serial in (1, 2, 4)] == [None, None, None]


def test_what_is_asked_for_again_after_a_crash() -> None:
    """All that may not have been done; of a stop and the resumption that undoes it the last one."""
    engine = engine_of(preempt_mode="suspend,gang")
    engine.step(0.0, [Submitted(LOW)])
    engine.step(5.0, [Submitted(HIGH)])
    deeds = engine.deeds
    assert deeds is not None
    assert [type(each) for each in deeds.unsettled()] == [Start, Suspend, Start]
    engine.step(9.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    assert [type(each) for each in deeds.unsettled()] == [Start, Resume]


def test_a_start_elsewhere_waits_for_no_job() -> None:
    """A job that is stopped on other cores is not in the way."""
    config = builders.config(
        builders.cluster(2, cpus=2),
        {
            "partitions": builders.tiers(batch=1, urgent=2),
            "preempt": "preempt/partition_prio",
            "preempt_mode": "suspend,gang",
        },
    )
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    low = builders.jobs("job partition nodes\na batch 1\nb batch 1")
    for spec in low:
        engine.step(0.0, [Submitted(spec)])
    engine.step(1.0, [Submitted(HIGH)])
    stopped = next(job for job in engine.ledger.active if job.state is JobState.SUSPENDED)
    other = "b" if stopped.id == "a" else "a"
    (last,) = builders.jobs("job partition nodes\nc batch 1")
    (start,) = engine.step(2.0, [Finished(other, JobState.COMPLETED, cleaned=True), Submitted(last)])
    assert (start.job.id, start.after) == ("c", ())

"""Turn a survey into events: what is really there, against what the engine's books say.

The live loop does so now and then, which makes up for lost events, and after a sleep; recovery does so after a crash.
Its world shows a job with an action under way as it will be once the action has succeeded. What the engine has asked
for is therefore no surprise.
"""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import Job, JobState
from makeway.state import Standing, held_of
from makeway.worlds.api import Seen, Survey
from makeway.worlds.events import (
    Adopted,
    Cleaned,
    Event,
    Failed,
    Finished,
    Kill,
    NodesDown,
    NodesDrained,
    NodesUp,
    Noticed,
    Resume,
    Start,
    Submitted,
    Suspend,
)
from makeway_engine.engine import Engine

BY = "survey"
"""Who is said to have done what a survey found out."""
_THERE = (JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING)


def differences(engine: Engine, survey: Survey) -> list[Event]:
    """Return the events that would have told the engine what `survey` shows; nodes first, then jobs by their index."""
    events = list(_of_nodes(engine, survey))
    jobs = sorted(engine.ledger.jobs.values(), key=lambda job: job.index)
    for job in jobs:
        event = _of_job(engine, job, survey)
        if event is not None:
            events.append(event)
    for job_id in sorted(survey.jobs.keys() - engine.ledger.jobs.keys()):
        event = _of_stranger(engine, survey.jobs[job_id])
        if event is not None:
            events.append(event)
    return events


def _of_nodes(engine: Engine, survey: Survey) -> Iterator[Event]:
    known = engine.reports
    down = survey.nodes_down & engine.ledger.all_nodes
    drained = survey.nodes_drained & engine.ledger.all_nodes & ~down
    if down & ~known.down:
        yield NodesDown(down & ~known.down)
    if drained & ~known.drained:
        yield NodesDrained(drained & ~known.drained)
    back = (known.down & ~down & ~drained) | (known.drained & ~drained & ~down)
    if survey.complete and back:
        yield NodesUp(back)


def _of_job(engine: Engine, job: Job, survey: Survey) -> Event | None:
    seen = survey.jobs.get(job.id)
    if seen is not None and seen.incarnation and seen.incarnation != job.starts:
        seen = None  # what is left of an earlier incarnation
    if engine.transitions.is_leaving(job):
        return _of_leaving(engine, job, seen, survey)
    if job.state is JobState.PENDING:
        return _of_pending(job, seen)
    if seen is None:
        if (job.id, job.starts) in survey.never_started:
            serial = engine.deeds.last(job, Start) if engine.deeds is not None else 0
            why = f"{BY}: it was never started"
            return Failed(serial, why) if serial else Noticed(job.id, JobState.PENDING, job.starts, why)
        if survey.complete:
            return Noticed(job.id, JobState.FAILED, job.starts, f"{BY}: it is gone")
        return None
    if seen.state is job.state or seen.state is JobState.PENDING:
        return None  # as it should be, or about to start
    if seen.state is JobState.COMPLETING and seen.ends_as is not None:
        return Finished(job.id, seen.ends_as, False, job.starts)
    return _never_done(engine, job, seen, survey) or Noticed(job.id, seen.state, job.starts, BY)


def _never_done(engine: Engine, job: Job, seen: Seen, survey: Survey) -> Event | None:
    """Return the failure of what was asked for last and is not known to have succeeded; None: it was done."""
    if engine.deeds is None:
        return None
    stop, go_on = engine.deeds.last(job, Suspend), engine.deeds.last(job, Resume)
    if seen.state is JobState.SUSPENDED and go_on > stop:
        return Failed(go_on, f"{BY}: it is still stopped")
    if seen.state is JobState.RUNNING and stop > go_on:
        rest = [survey.jobs.get(action.job.id) for action in engine.deeds.resting_on(stop)]
        if not any(other is not None and other.state is JobState.RUNNING for other in rest):
            return Failed(stop, f"{BY}: it was never stopped")
    return None


def _of_leaving(engine: Engine, job: Job, seen: Seen | None, survey: Survey) -> Event | None:
    if seen is None:
        return Cleaned(job.id, None, job.starts) if survey.complete else None
    if seen.state.ended:
        return Cleaned(job.id, None, job.starts)
    if seen.state in (JobState.RUNNING, JobState.SUSPENDED) and engine.deeds is not None:
        serial = engine.deeds.last(job, Kill)
        return Failed(serial, f"{BY}: it is still there") if serial else None
    return None


def _of_pending(job: Job, seen: Seen | None) -> Event | None:
    if seen is None or seen.state not in _THERE or not job.starts:
        return None
    return Noticed(job.id, seen.state, job.starts, BY)


def _of_stranger(engine: Engine, seen: Seen) -> Event | None:
    if seen.spec is None or seen.state.ended or engine.reports.has_ended(seen.job_id):
        return None
    if seen.state is JobState.PENDING:
        return Submitted(seen.spec)
    return Adopted(
        Standing(
            spec=seen.spec,
            state=seen.state,
            starts=max(1, seen.incarnation),
            allocation=None if seen.allocation is None else held_of(engine.ledger.cluster, seen.allocation),
            started_at=seen.started_at,
            ran=seen.ran,
        )
    )

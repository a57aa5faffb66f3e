"""Keep a row for each job in a journal: what it asked for, where it stands, and how it ended.

A row is written when its job has changed since it was written last. Most changes are told by an event, a line of the
record or an action; some live jobs are looked at in turn for those that are not.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from makeway.model import Job, JobState, Seconds
from makeway.record import Line
from makeway.settings import unstructure
from makeway.worlds.api import Step
from makeway.worlds.events import Command, Resume, Submitted
from makeway_engine.engine import Engine
from makeway_engine.snapshot import job_of

_SWEEP = 32
"""Live jobs looked at in each step for changes that no event and no line tells of (reason, marks)."""
_ACTIVE = (JobState.RUNNING, JobState.SUSPENDED)
_ENDS = frozenset(state.value for state in JobState if state.ended)
_Mark = tuple[Any, ...]
REFUSED = "REFUSED"
"""State of what was submitted and could never run: it was no job."""


class JobRows:
    """The table of jobs, and what was written last of each live one."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._marks: dict[str, _Mark] = {}
        """What was written last of each live job."""
        self._undo: list[tuple[str, _Mark | None]] = []
        """What was there before the transaction that is under way."""
        self._round: deque[str] = deque()
        """Live jobs that are still to be looked at in this round."""

    # ------------------------------------------------------------------------- transactions
    def follow(self, engine: Engine) -> None:
        """Write the jobs of an engine that are not there yet; those that are it has adopted."""
        jobs = engine.ledger.jobs
        there = {row[0] for row in self._database.execute("SELECT id FROM jobs WHERE standing IS NOT NULL")}
        adopted = (jobs[job_id] for job_id in there.intersection(jobs))
        # Too short to be equal to any: each row is written anew when its job is next looked at.
        self._marks = {job.id: (job.state, job.resumed_at, job.ran) for job in adopted}
        self.write(engine, [job for job in jobs.values() if job.id not in there])

    def forget(self) -> None:
        """Know nothing of what was written: each row is written anew when its job is next looked at."""
        self._round.clear()
        self._undo.clear()
        self._marks = {}

    def begin(self) -> None:
        """Let `undo` lead back to here."""
        self._undo.clear()

    def undo(self) -> None:
        """Forget what was written since `begin`: the transaction has failed."""
        for job_id, mark in reversed(self._undo):
            self._set_mark(job_id, mark)

    def write_step(self, engine: Engine, step: Step) -> None:
        """Write the rows of all jobs that a step has changed, begun or ended."""
        self.write(engine, self._touched(engine, step))
        self._write_refused(engine, step)
        self._write_ends(step.lines, step.now)

    def _set_mark(self, job_id: str, mark: _Mark | None) -> None:
        """Remember what was written last of a job; None: it has ended."""
        self._undo.append((job_id, self._marks.get(job_id)))
        if mark is None:
            self._marks.pop(job_id, None)
        else:
            self._marks[job_id] = mark

    # --------------------------------------------------------------------------------- rows
    def _touched(self, engine: Engine, step: Step) -> Iterable[Job]:
        """Return the live jobs that a step may have changed, and some others in turn."""
        jobs = engine.ledger.jobs
        if any(isinstance(event, Command) for event in step.events):
            return jobs.values()  # people name jobs in ways of their own
        names: dict[str, None] = {}
        for event in step.events:
            for key in ("job_id", "spec", "standing"):
                about = getattr(event, key, None)
                about = getattr(about, "spec", about)
                if about is not None:
                    names[getattr(about, "id", about)] = None
        for line in step.lines:
            names[line.job] = None
            for key in ("preemptor", "victim"):
                if other := line.data.get(key):
                    names[other] = None
        names.update((action.job.id, None) for action in step.actions)
        if any(isinstance(action, Resume) for action in step.actions):
            # Suspended jobs may have changed places with the one that goes on.
            names.update((job.id, None) for job in engine.ledger.active if job.state is JobState.SUSPENDED)
        names.update(self._others(engine))
        return [jobs[name] for name in names if name in jobs]

    def _others(self, engine: Engine) -> Iterator[tuple[str, None]]:
        for _ in range(_SWEEP):
            if not self._round:
                self._round.extend(engine.ledger.jobs)
            if not self._round:
                return
            yield self._round.popleft(), None

    def write(self, engine: Engine, jobs: Iterable[Job]) -> None:
        """Write what has changed of some live jobs."""
        known, new, changed = [], [], []
        for job in jobs:
            mark = _mark(job, engine)
            old = self._marks.get(job.id)
            if mark == old:
                continue
            self._set_mark(job.id, mark)
            plain = unstructure(job_of(engine, job))
            spec = to_json(plain.pop("spec"))
            standing = to_json(plain)
            worked = _worked(old, job, engine.ledger.now)
            if old is None:
                told = (job.id, job.index, spec, standing, job.state.value, job.spec.submit_at, worked or 0.0)
                new.append(told)
            else:
                known.append((standing, job.state.value, worked, job.lost, job.id))
                if old[-1] is not job.spec:  # a person changed what it asks for
                    changed.append((spec, job.id))
        self._database.executemany(
            "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, NULL, ?, 0) ON CONFLICT (id) DO UPDATE SET"
            " place = excluded.place, spec = excluded.spec, standing = excluded.standing, state = excluded.state,"
            " ended_at = NULL",
            new,
        )
        self._database.executemany(
            "UPDATE jobs SET standing = ?, state = ?, worked = coalesce(?, worked), lost = ? WHERE id = ?",
            known,
        )
        self._database.executemany("UPDATE jobs SET spec = ? WHERE id = ?", changed)

    def _write_refused(self, engine: Engine, step: Step) -> None:
        """Write down jobs that were submitted and ended in one step: they were never live after any."""
        for event in step.events:
            if isinstance(event, Submitted) and event.spec.id not in engine.ledger.jobs:
                spec = event.spec
                row = (
                    spec.id,
                    engine.submission.last_index,
                    to_json(unstructure(spec)),
                    JobState.FAILED.value,
                    spec.submit_at,
                )
                self._database.execute(
                    "INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, NULL, ?, ?, NULL, 0, 0)", row
                )

    def _write_ends(self, lines: Sequence[Line], now: Seconds) -> None:
        ends = []
        refused = {line.job for line in lines if line.kind == "rejected"}
        for line in lines:
            state = line.data.get("state") if line.kind == "state" else None
            if state in _ENDS:
                state = REFUSED if line.job in refused else state
                ends.append((state, line.at, _worked_until(self._marks.get(line.job), now), line.job))
                self._set_mark(line.job, None)
        self._database.executemany(
            "UPDATE jobs SET standing = NULL, state = ?, ended_at = ?, worked = max(worked, ?) WHERE id = ?",
            ends,
        )


def _mark(job: Job, engine: Engine) -> _Mark:
    """Return what tells whether a job has changed since it was written."""
    return (
        job.state,
        job.resumed_at,
        job.ran,
        job.reason,
        job.priority,
        job.partition.index,
        job.submit_at,
        job.eligible_at,
        job.eligible_since,
        job.end_at,
        job.allocation,
        job.starts,
        job.restarts,
        job.preemptions,
        job.preempt_at,
        job.asked_at,
        job.checkpointed,
        job.begun_with,
        job.lost,
        job.kept,
        job.marks,
        job.id in engine.transitions.graces,
        engine.transitions.becomes(job),
        engine.ledger.left_early(job),
        job.spec,
    )


def _worked(old: _Mark | None, job: Job, now: Seconds) -> float | None:
    """Return the running time of the last incarnation, as far as it is over; None: it is as written before."""
    if job.state in _ACTIVE:
        return job.ran_until(now)
    return _worked_until(old, now) if old is not None and old[0] in _ACTIVE else None


def _worked_until(mark: _Mark | None, now: Seconds) -> float:
    if mark is None:
        return 0.0
    state, resumed_at, ran = mark[:3]
    if state is JobState.RUNNING and resumed_at is not None:
        return float(ran + now - resumed_at)
    return float(ran) if state is JobState.SUSPENDED else 0.0


def to_json(value: Any) -> str:
    """Return a value as the journal has it."""
    return json.dumps(value, separators=(",", ":"))

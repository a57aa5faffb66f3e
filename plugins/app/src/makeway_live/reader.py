"""Read the journal of a live run as a workload: what would another policy have done with the jobs that ran here?

Every job keeps its request and its submission. How long it works is what was found out: the running time of its last
incarnation. One that reached a time limit works on until the limit of the replay; one that has not ended yet likewise,
or until the replay ends where it has no limit. One that was cancelled while it waited is withdrawn when it was.
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from makeway.errors import ConfigError, JournalError, Problem
from makeway.model import Cluster, JobSpec, JobState, Seconds
from makeway.readers.api import ReadOptions, Workload
from makeway.settings import structure
from makeway.worlds.encoding import event_of_plain
from makeway.worlds.events import Event
from makeway_live.journal_file import connect, is_journal, reading

_ENDS_WITHOUT_A_LIMIT = frozenset(
    state.value for state in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.OUT_OF_MEMORY)
)
_REFUSED = "SELECT DISTINCT job FROM lines WHERE kind = 'rejected'"
_JOBS = (
    "SELECT spec, state, worked, ended_at, submitted_at FROM jobs"
    f" WHERE id NOT IN ({_REFUSED}) ORDER BY submitted_at, place"
)
"""Jobs that were refused when they came are not part of what ran."""


class JournalReader:
    """Reads journals (`makeway_live.journal`)."""

    name = "journal"
    reads_machine_only = True

    def claims(self, path: Path, head: str) -> bool:
        """Claim no text."""
        del path, head
        return False

    def claims_binary(self, path: Path) -> bool:
        """Recognise SQLite's mark and makeway's."""
        return is_journal(path)

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read all jobs.

        :raises ConfigError: it is no journal, is damaged, or holds a job that cannot be read.
        """
        del options
        with _opened(path) as database, reading(path):
            rows = database.execute(_JOBS).fetchall()
            last = database.execute("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1").fetchone()
            start_wall = None if last is None else float(last[1]) - float(last[0])
        workload = Workload(
            name=path.name, jobs=_specs(rows, path), commands=functools.partial(commands_in, path)
        )
        if start_wall is not None:
            workload.start_wall = start_wall
        waiting = sum(1 for row in rows if row[3] is None)
        if waiting:
            until = "until its time limit" if waiting == 1 else "until their time limits"
            who, jobs = ("it runs on", "job has") if waiting == 1 else ("they run on", "jobs have")
            workload.notes.append(
                f"{waiting:,} {jobs} not ended yet; {who} {until}, or to the end of the replay without one"
            )
        return workload


def commands_in(path: Path, cluster: Cluster) -> list[tuple[Seconds, Event]]:
    """Return what people and nodes did during the run, each with its instant.

    :raises ConfigError: the file cannot be read, or names nodes that are not there.
    """
    with _opened(path) as database, reading(path):
        rows = database.execute("SELECT at, event FROM commands ORDER BY step, rowid").fetchall()
        return [(float(at), event_of_plain(json.loads(plain), cluster, str(path))) for at, plain in rows]


class _opened:  # noqa: N801  # used like a function
    """Open a journal to read; what is wrong becomes a ConfigError, as with any workload."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._database = connect(self._path, write=False)
        except JournalError as error:
            raise _as_config(self._path, error) from None
        return self._database

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._database is not None:
            self._database.close()
        if isinstance(error, JournalError):
            raise _as_config(self._path, error) from None


def _as_config(path: Path, error: JournalError) -> ConfigError:
    return ConfigError(str(path), [Problem("", str(error).removeprefix(f"{path}: "))])


def _specs(rows: list[tuple[Any, ...]], path: Path) -> Iterator[JobSpec]:
    for text, state, worked, ended_at, submitted_at in rows:
        try:
            with reading(path):
                spec = structure(json.loads(text), JobSpec, str(path))
                found = _as_it_ran(
                    attrs.evolve(spec, submit_at=max(0.0, submitted_at)), state, worked, ended_at
                )
        except JournalError as error:
            raise _as_config(path, error) from None
        yield found


def _as_it_ran(spec: JobSpec, state: str, worked: float, ended_at: float | None) -> JobSpec:
    """Return a job with the work that it turned out to have; a simulated one has said so itself."""
    if spec.run_time is not None:
        return spec
    if ended_at is not None and state in _ENDS_WITHOUT_A_LIMIT:
        attributes = dict(spec.attributes)
        if state != JobState.COMPLETED.value:
            attributes["ends_as"] = state
        if state == JobState.CANCELLED.value and not worked:
            return attrs.evolve(spec, withdrawn_at=max(ended_at, spec.submit_at), attributes=attributes)
        return attrs.evolve(spec, run_time=worked, attributes=attributes)
    if ended_at is None or spec.time_limit is not None:
        return spec
    return attrs.evolve(spec, run_time=worked)

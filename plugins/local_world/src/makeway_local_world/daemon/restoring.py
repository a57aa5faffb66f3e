"""Go on where a journal is damaged or gone, once a person has decided so (``makeway up --recover``).

The copy of the journal is as old as the last daemon's start, or there is none yet. What happened since is told by what
lies beside it: the submission of each job, with what the engine was told of it; what each start held; the directories
of starts; how starts ended. Their word goes before the copy's. Nothing is deleted, and the machine is drained: what
waited may have been cancelled since.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from makeway.arrays import parse_array
from makeway.errors import JournalError
from makeway_live.journal_file import connect, telling
from makeway_local_world import submission
from makeway_local_world.daemon import backup, wards
from makeway_local_world.processes.ends import End, end_of
from makeway_local_world.processes.rundir import all_keys
from makeway_local_world.requests import MOST_TASKS
from makeway_local_world.submission import directory_of

REASON = "the journal was recovered: see `makeway queue`, then `makeway undrain`"
_FAR = 1_000_000
"""By how much serials of actions and places of jobs go on, so that none is given twice."""
_log = logging.getLogger("makeway")


@attrs.frozen
class _Left:
    """What lies there of one job."""

    job_id: str
    spec: dict[str, Any]
    incarnation: int
    """Its last start; 0: it was never started."""
    there: bool
    """Whether the directory of that start is there: it runs, or its end was never written down."""
    end: End | None
    held: dict[str, Any] | None
    since: float | None
    """Unix time of that start."""
    zero: float
    """About the Unix time of the run's instant 0."""


def restore(state: Path, nodes: str) -> list[str]:
    """Put the copy in the place of the journal, and write into it what is known of the time since; say what was done.

    The journal that was there is moved aside.

    :param nodes: those of the machine, which are drained: nothing starts before a person has looked.
    :raises JournalError: the copy cannot be read, or no other be written; nothing was changed.
    """
    journal = state / "journal.db"
    copy = journal.with_name(backup.NAME)
    fresh = journal.with_name("journal.recovered.db")
    try:
        fresh.unlink(missing_ok=True)
        if copy.exists():
            shutil.copyfile(copy, fresh)
            os.chmod(fresh, 0o600)
        told = _bring_up_to_date(fresh, state, nodes)
    except OSError as error:
        raise JournalError(f"{fresh}: {error.strerror}; nothing was changed") from None
    wards.write(state, wards.drained("makeway", REASON))
    aside = journal.with_name(f"journal.lost-{time.strftime('%Y%m%d-%H%M%S')}.db")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{journal}{suffix}", f"{aside}{suffix}")
    os.rename(fresh, journal)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{fresh}{suffix}")
    return [f"the journal that was there is {aside}", *told]


def _bring_up_to_date(path: Path, state: Path, nodes: str) -> list[str]:
    database = connect(path, write=True)
    with contextlib.closing(database), telling(path):
        database.execute("BEGIN IMMEDIATE")
        lefts = list(_lefts(state))
        row = database.execute("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1").fetchone()
        if row is None:  # instant 0 of a run of which only submissions are left
            zero = max((left.zero for left in lefts if left.spec), default=time.time())
            row = max(0.0, time.time() - zero), time.time()
            database.execute("INSERT INTO steps VALUES (1, ?, ?, '[]')", row)
        zero = float(row[1]) - float(row[0])
        _forget_open_actions(database, nodes)
        told = [text for left in lefts if (text := _write(database, left, zero))]
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return told


def _forget_open_actions(database: sqlite3.Connection, nodes: str) -> None:
    """What was on its way when the copy was made has long been done, and must not be done again.

    The nodes are drained from the first decision on, which comes before the first look at the machine.
    """
    database.execute("UPDATE actions SET open = 0")
    row = database.execute("SELECT data FROM memory WHERE part = 'engine'").fetchone()
    engine = json.loads(row[0]) if row is not None else {}
    last = database.execute("SELECT coalesce(max(serial), 0) FROM actions").fetchone()[0]
    deeds = {"next_serial": int(last) + _FAR, "stopped": {}, "open": []}
    reports = {**engine.get("reports", {}), "drained": nodes}
    database.execute("DELETE FROM memory")
    for part, data in (
        ("engine", {**engine, "deeds": deeds, "reports": reports}),
        ("nodes", {"down": nodes}),
    ):
        database.execute(
            "INSERT INTO memory SELECT ?, coalesce(max(step), 0), ? FROM steps", (part, json.dumps(data))
        )


def _lefts(state: Path) -> Iterator[_Left]:
    """Look at what lies there of each job."""
    there: dict[str, int] = {}
    for job_id, incarnation in all_keys(state):
        there[job_id] = max(incarnation, there.get(job_id, 0))
    try:
        names = sorted(os.listdir(state / "jobs"))
    except FileNotFoundError:
        return
    for stored in map(unquote, names):
        try:
            told = submission.where(state, stored)
            tasks = (None,) if told.array is None else parse_array(told.array, MOST_TASKS).tasks
        except (submission.SubmissionError, ValueError) as error:
            _log.warning("%s", error)
            continue
        beside = set(os.listdir(directory_of(state, stored)))
        zero = (directory_of(state, stored) / submission.FILE).stat().st_mtime - float(
            told.spec.get("submit_at", 0.0)
        )
        for task in tasks:
            job_id = stored if task is None else f"{stored}_{task}"
            own = {} if task is None else {"id": job_id, "array_task": task}
            last = max(there.get(job_id, 0), _last_start(job_id, beside))
            held = submission.load_held(state, job_id, last) if last else None
            # Its end is kept before its directory is taken away, which a crash may leave half done.
            over = submission.beside(job_id, "exit", last) in beside
            yield _Left(
                job_id,
                {**told.spec, **own} if told.spec else {},
                last,
                there=bool(last) and there.get(job_id) == last and not over,
                end=end_of(state, job_id, last) if last else None,
                held=None if held is None else held["held"],
                since=None if held is None else held["wall"],
                zero=zero,
            )


def _last_start(job_id: str, beside: set[str]) -> int:
    """Return the number of the last start of which a file tells; 0: there is none."""
    last = 0
    while any(submission.beside(job_id, kind, last + 1) in beside for kind in ("exit", submission.HELD)):
        last += 1
    return last


def _write(database: sqlite3.Connection, left: _Left, zero: float) -> str:
    """Write down where a job stands if the copy does not know; say so, or nothing."""
    row = database.execute("SELECT standing FROM jobs WHERE id = ?", (left.job_id,)).fetchone()
    if row is not None and row[0] is None:
        return ""  # it had ended
    known = None if row is None else json.loads(row[0])
    if known is not None and known.get("starts", 0) == left.incarnation and (left.there or left.end is None):
        return ""
    if not left.spec:
        return f"job {left.job_id} is left as it is: nothing says what it asked for"
    submitted = float(left.spec.get("submit_at", 0.0))
    if row is None:
        place = database.execute("SELECT coalesce(max(place), 0) + 1 FROM jobs").fetchone()[0]
        database.execute(
            "INSERT INTO jobs VALUES (?, ?, ?, NULL, 'PENDING', ?, NULL, 0, 0)",
            (left.job_id, place, json.dumps(left.spec), submitted),
        )
    began = max(0.0, (left.since or zero) - zero)
    for _ in range((known or {}).get("starts", 0), left.incarnation):
        _tell(database, left.job_id, began, state="RUNNING", nodes=(left.held or {}).get("nodes", ""))
    standing: dict[str, Any] = {"starts": left.incarnation, "submit_at": submitted}
    state, ended_at, told = "PENDING", None, "waits"
    if left.there and left.held is not None:
        state, told = "RUNNING", f"was started, for the {_nth(left.incarnation)} time"
        standing |= {"allocation": left.held, "started_at": began}
    elif left.end is not None and left.end.killed is None and not left.end.failed and not left.there:
        state = left.end.state.value
        ended_at = max(0.0, (left.end.wall or zero) - zero)
        told = f"ended: {left.end.why or 'exit code 0'}"
        _tell(database, left.job_id, ended_at, state=state)
    elif left.incarnation:
        standing["restarts"] = left.incarnation
        told = "had run and was ended, by a cancel or for a requeue; it waits"
    if ended_at is None:
        place = database.execute("SELECT place FROM jobs WHERE id = ?", (left.job_id,)).fetchone()[0]
        standing |= {"state": state, "index": place}
    database.execute(
        "UPDATE jobs SET standing = ?, state = ?, ended_at = ? WHERE id = ?",
        (json.dumps(standing) if ended_at is None else None, state, ended_at, left.job_id),
    )
    return f"job {left.job_id} {told}"


def _tell(database: sqlite3.Connection, job_id: str, at: float, **data: str) -> None:
    """Write a line of the record about a job's state, behind all others of the last step."""
    database.execute(
        "INSERT INTO lines SELECT max(step), (SELECT coalesce(max(place), 0) + 1 FROM lines"
        " WHERE step = (SELECT max(step) FROM steps)), ?, 'state', ?, ? FROM steps",
        (at, job_id, json.dumps(data)),
    )


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")

"""Drop from a journal what is older than the rule of ``[world.journal]`` says; docs/adoption.md says what that is."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import attrs

from makeway.config import JournalTable
from makeway.errors import JournalError
from makeway.model import Seconds
from makeway_live import journal_schema as schema
from makeway_live.journal_file import connect, look_for_damage, telling


@attrs.frozen
class Dropped:
    """How much was dropped."""

    steps: int
    jobs: int


def drop(database: sqlite3.Connection, table: JournalTable, now: Seconds) -> Dropped:
    """Drop what is older than the rule says, within the caller's transaction.

    Jobs keep their request, their times and how they ended. The last step stays: it tells the time.

    :param now: on the run's clock, seconds.
    """
    step, before = database.execute(
        "SELECT (SELECT max(step) FROM steps), (SELECT max(step) FROM steps WHERE at < ?)",
        (now - table.keep_steps_for,),
    ).fetchone()
    newest, last = int(step or 0), int(before or 0)
    if table.keep_steps:
        last = max(last, newest - table.keep_steps)
    last = min(last, newest - 1)
    steps = database.execute("DELETE FROM steps WHERE step <= ?", (last,)).rowcount
    database.execute("DELETE FROM lines WHERE step <= ?", (last,))
    database.execute("DELETE FROM actions WHERE step <= ? AND NOT open", (last,))
    jobs = database.execute("DELETE FROM jobs WHERE ended_at < ?", (now - table.keep_jobs_for,)).rowcount
    if table.keep_jobs:
        jobs += database.execute(
            "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended_at IS NOT NULL"
            " ORDER BY ended_at DESC LIMIT -1 OFFSET ?)",
            (table.keep_jobs,),
        ).rowcount
    oldest = database.execute("SELECT min(submitted_at) FROM jobs").fetchone()[0]
    if oldest is not None:
        database.execute("DELETE FROM commands WHERE at < ?", (oldest,))
    return Dropped(max(0, steps), max(0, jobs))


def compact(path: Path, table: JournalTable, wall: float, *, dry: bool = False) -> Dropped:
    """Drop what is older than the rule says from a journal that nothing else has open, and give its space back.

    :param wall: Unix time now.
    :param dry: only say what would be dropped.
    :raises JournalError: it is in use, is no journal, or cannot be written; then nothing was dropped.
    """
    with alone(path) as database, telling(path):
        last = database.execute("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1").fetchone()
        now = 0.0 if last is None else float(last[0]) + max(0.0, wall - float(last[1]))
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        database.execute("BEGIN IMMEDIATE")
        schema.migrate(database, version)
        dropped = drop(database, table, now)
        database.execute("ROLLBACK" if dry else "COMMIT")
        if not dry:
            database.execute("VACUUM")
    return dropped


@contextlib.contextmanager
def alone(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a journal to write while nothing else has it open; until this ends, nothing can.

    :raises JournalError: it is in use, is not there, is no journal, or is damaged.
    """
    connect(path, write=False).close()  # what is no journal is refused before anything is done to it
    with telling(path):
        uri = f"{path.absolute().as_uri()}?mode=rw"
        database = sqlite3.connect(uri, uri=True, timeout=0.0, isolation_level=None)
    try:
        with telling(path):
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            try:
                # A process that has a journal with a write-ahead log open holds a lock that this change has to wait
                # for.
                database.execute("PRAGMA journal_mode = DELETE").fetchone()
                database.execute("BEGIN EXCLUSIVE")
                database.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if (getattr(error, "sqlite_errorname", "") or "").startswith(
                    ("SQLITE_BUSY", "SQLITE_LOCKED")
                ):
                    raise JournalError(
                        f"{path}: it is in use; nothing was changed. A daemon compacts its own journal by "
                        "[world.journal]; end it first to do more"
                    ) from None
                raise
            look_for_damage(database, path)
        yield database
    finally:
        database.close()

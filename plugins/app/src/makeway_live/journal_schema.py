"""Define the tables of a journal, and bring those of earlier versions up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

APPLICATION = 0x4D6B5779
"""SQLite's application id of a journal: ``MkWy``."""
VERSION = 3

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (step INTEGER PRIMARY KEY, at REAL NOT NULL, wall REAL NOT NULL, events TEXT NOT NULL);
CREATE TABLE actions (
  serial INTEGER PRIMARY KEY, step INTEGER NOT NULL, job TEXT NOT NULL, action TEXT NOT NULL,
  open INTEGER NOT NULL
);
CREATE INDEX actions_open ON actions (open) WHERE open;
CREATE INDEX actions_step ON actions (step);
CREATE TABLE lines (
  step INTEGER NOT NULL, place INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, job TEXT NOT NULL,
  data TEXT NOT NULL, PRIMARY KEY (step, place)
) WITHOUT ROWID;
CREATE INDEX lines_job ON lines (job);
CREATE TABLE jobs (
  id TEXT PRIMARY KEY, place INTEGER NOT NULL, spec TEXT NOT NULL, standing TEXT, state TEXT NOT NULL,
  submitted_at REAL NOT NULL, ended_at REAL, worked REAL NOT NULL, lost REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX jobs_live ON jobs (place) WHERE standing IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE commands (step INTEGER NOT NULL, at REAL NOT NULL, event TEXT NOT NULL);
CREATE TABLE memory (part TEXT PRIMARY KEY, step INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE configs (step INTEGER NOT NULL, at REAL NOT NULL, config TEXT NOT NULL);
"""
"""Version 3. A job's `standing` is null once it has ended; `worked` is the running time of its last incarnation, and
`lost` what requeues and cancels threw away."""


def _from_1(database: sqlite3.Connection) -> None:
    """Version 1 kept no commands of their own, and did not mark which actions are open."""
    database.execute("CREATE TABLE commands (step INTEGER NOT NULL, at REAL NOT NULL, event TEXT NOT NULL)")
    database.execute("ALTER TABLE actions ADD COLUMN open INTEGER NOT NULL DEFAULT 0")
    database.execute("CREATE INDEX actions_open ON actions (open) WHERE open")
    database.execute(
        "INSERT INTO commands SELECT steps.step, steps.at, each.value FROM steps, json_each(steps.events) AS each"
        " WHERE json_extract(each.value, '$.event') IN ('Command', 'NodesDown', 'NodesDrained', 'NodesUp')"
        " ORDER BY steps.step, each.id"
    )


def _from_2(database: sqlite3.Connection) -> None:
    """Version 2 did not say what was lost."""
    database.execute("ALTER TABLE jobs ADD COLUMN lost REAL NOT NULL DEFAULT 0")


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _from_1, 2: _from_2}
"""Version -> what makes the next one of it, within one transaction."""


def create(database: sqlite3.Connection) -> None:
    """Make the tables of a new journal."""
    for statement in TABLES.split(";"):
        if statement.strip():
            database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Bring the tables of an earlier version up to date."""
    while version < VERSION:
        MIGRATIONS[version](database)
        version += 1
    database.execute(f"PRAGMA user_version = {VERSION}")

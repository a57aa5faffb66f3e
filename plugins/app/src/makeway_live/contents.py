"""Tell what a journal holds, without writing to it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import attrs

from makeway_live.journal_file import connect, reading

_ABOUT = "(:job IS NULL OR job = :job OR (kind = 'preempt' AND json_extract(data, '$.preemptor') = :job))"


@attrs.frozen(kw_only=True)
class Contents:
    """What a journal holds. Instants are Unix time."""

    file: str
    bytes: int
    """Size of the file, with what its write-ahead log holds."""
    version: int
    """Of its tables."""
    steps: int
    """Steps that are kept."""
    first_step: int
    last_step: int
    first_at: float | None
    """Of the earliest step that is kept; None: there is none."""
    last_at: float | None
    jobs: dict[str, int]
    """How many jobs are in each state, ended ones too."""
    open_actions: int
    """Actions whose outcome is not known yet."""
    config: str | None
    """The last configuration, as TOML; None: none was written."""


def contents(path: Path) -> Contents:
    """Return what a journal holds; a daemon may go on writing.

    :raises JournalError: it cannot be read.
    """
    with contextlib.closing(connect(path, write=False)) as database, reading(path):
        database.execute("BEGIN")  # all of it as of one step
        version = database.execute("PRAGMA user_version").fetchone()[0]
        steps, first, last = database.execute("SELECT count(*), min(step), max(step) FROM steps").fetchone()
        walls = dict(database.execute("SELECT step, wall FROM steps WHERE step IN (?, ?)", (first, last)))
        jobs = dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state"))
        # The first version did not mark which actions are open.
        marked = version >= 2
        unsettled = database.execute("SELECT count(*) FROM actions WHERE open").fetchone()[0] if marked else 0
        config = database.execute("SELECT config FROM configs ORDER BY rowid DESC LIMIT 1").fetchone()
        log = path.with_name(path.name + "-wal")
        return Contents(
            file=str(path),
            bytes=path.stat().st_size + (log.stat().st_size if log.exists() else 0),
            version=version,
            steps=steps,
            first_step=first or 0,
            last_step=last or 0,
            first_at=walls.get(first),
            last_at=walls.get(last),
            jobs=jobs,
            open_actions=unsettled,
            config=None if config is None else config[0],
        )


def lines(path: Path, most: int, job: str | None = None) -> list[dict[str, Any]]:
    """Return the last lines of the record, the latest last; ``at`` is Unix time.

    :param job: only those about this job, and those in which it displaced another.
    :raises JournalError: it cannot be read.
    """
    with contextlib.closing(connect(path, write=False)) as database, reading(path):
        last = database.execute("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1").fetchone()
        zero = 0.0 if last is None else float(last[1]) - float(last[0])
        rows = database.execute(
            f"SELECT at, kind, job, data FROM lines WHERE {_ABOUT} ORDER BY step DESC, place DESC LIMIT :most",
            {"job": job, "most": most},
        ).fetchall()
        return [
            {"at": round(at + zero, 3), "kind": kind, "job": about, **json.loads(data)}
            for at, kind, about, data in reversed(rows)
        ]

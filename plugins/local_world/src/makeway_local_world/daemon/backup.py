"""Keep a copy of the journal as it was when the daemon started (local-world 8).

A damaged journal is never replaced by an empty one: keepers may hold jobs that it knows of. The copy is what people
can go back to.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

from makeway_local_world.daemon.past import Past
from makeway_local_world.processes.rundir import all_keys

NAME = "journal.backup.db"
LARGEST = 256 << 20
"""Bytes of a journal that is copied at each start; a larger one is left to the site's own backups."""
_log = logging.getLogger("makeway")


def make(journal: Path) -> bool:
    """Copy a journal beside itself, whole or not at all; say whether there is a new copy.

    One that is damaged, too large, or for which there is no room leaves the copy before in place.
    """
    copy = journal.with_name(NAME)
    fresh = copy.with_suffix(".new")
    try:
        if journal.stat().st_size > LARGEST:
            return False
        fresh.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(journal, timeout=5.0, isolation_level=None)) as database:
            database.execute("VACUUM INTO ?", (str(fresh),))
        os.chmod(fresh, 0o600)
        os.replace(fresh, copy)
    except FileNotFoundError:
        return False
    except (OSError, sqlite3.Error) as error:
        _log.warning("no copy of %s was made: %s", journal, error)
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        return False
    return True


def what_is_lost(journal: Path) -> str:
    """Say that a journal is gone, an empty file, or one that does not know what was started here; empty: it is not.

    SQLite would begin it anew; all jobs would be forgotten, and the next start would overwrite the copy.

    :raises JournalError: it cannot be read.
    """
    try:
        if journal.stat().st_size:
            return _what_it_does_not_know(journal)
        lost = "it is empty"
    except FileNotFoundError:
        lost = "it is gone"
    except OSError:
        return ""
    traces = [name for name in (NAME, "next-id", "jobs", "run") if _holds(journal.with_name(name))]
    return (
        f"{lost}, but {' and '.join(traces)} {'are' if len(traces) > 1 else 'is'} there"
        if lost and traces
        else ""
    )


def _what_it_does_not_know(journal: Path) -> str:
    """Say which jobs were started here that a journal never heard of; each start is written down before it is done."""
    past = Past(journal)
    try:
        unknown = sorted({job_id for job_id, _ in all_keys(journal.parent)} - set(past.ids()))
    finally:
        past.close()
    if not unknown:
        return ""
    which = f"job {unknown[0]}" if len(unknown) == 1 else f"{len(unknown)} jobs, such as {unknown[0]}"
    return f"it does not know {which}, started here"


def _holds(path: Path) -> bool:
    """Whether a file is there, or something in a directory."""
    try:
        return not path.is_dir() or any(path.iterdir()) if path.exists() else False
    except OSError:
        return True


def hint(journal: Path) -> str:
    """Say what goes on without a journal that cannot be used."""
    copy = journal.with_name(NAME)
    there = f"; {copy} is as it was when a daemon last started" if copy.exists() else ""
    return f"{there}; to go on with all that is left: makeway up --recover"

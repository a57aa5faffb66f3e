"""Open a journal's file, and say in plain words why something cannot be done with it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from makeway.errors import JournalError, MakewayError
from makeway_live import journal_schema as schema

PATIENCE = 5.0
"""Seconds to wait for another process that holds the file."""
MAGIC = b"SQLite format 3\0"
_CHECKED_UP_TO = 256 << 20
"""Bytes of a file that is looked through for damage whenever it is opened for writing."""
_PAGE = 4096
"""Bytes that SQLite wants at a time."""
_KEPT = "what it holds already is kept"


@contextlib.contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn what SQLite says into what is wrong, where, and what helps.

    :raises JournalError: in place of any error of SQLite or of the file system.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise JournalError(f"{path}: {_plainly(error, path)}") from error
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror or error}; {_KEPT}") from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Do as `telling`, and say so as well where what was read makes no sense.

    :raises JournalError: in place of what follows from values that were never written.
    """
    with telling(path):
        try:
            yield
        except MakewayError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise JournalError(
                f"{path}: what it holds is damaged ({type(error).__name__}: {str(error)[:80]}); nothing was changed"
            ) from error


def _plainly(error: sqlite3.Error, path: Path) -> str:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and _is_full(path)):
        return f"the disk is full; {_KEPT}, free some space on {path.parent}"
    if name.startswith("SQLITE_READONLY"):
        return f"the file, or its directory, is read-only; {_KEPT}, allow this user to write to it"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process has locked it for more than {PATIENCE:g} s; {_KEPT}, end that process"
    if name.startswith("SQLITE_CORRUPT"):
        return (
            f"a page of it is damaged ({error}); nothing was changed: copy it to a safe place, and save what can be "
            "read with `sqlite3 journal.db .recover`"
        )
    if name.startswith("SQLITE_NOTADB"):
        return (
            "it is no journal: another kind of file, or damaged from its first page on; nothing was changed"
        )
    if name.startswith("SQLITE_CANTOPEN"):
        return "it cannot be opened; see whether its directory is there and this user may use it"
    if name.startswith("SQLITE_IOERR"):
        return f"the disk does not do what it is told ({error}); {_KEPT}, see the system's log"
    return f"{error}; {_KEPT}"


def _is_full(path: Path) -> bool:
    """Whether the disk has no room for a page: what SQLite maps into memory fails as an error of the disk then."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _PAGE


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """Open a journal; one that is not there is made when it is to be written.

    :raises JournalError: it cannot be opened, is something else, is damaged, or was written by a later makeway.
    """
    with reading(path):
        if not write and not path.exists():
            raise JournalError(f"{path}: there is no such file")
        mode = "rwc" if write else "ro"
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        database = sqlite3.connect(
            uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(database, path, write=write)
        except BaseException:
            database.close()
            raise
    return database


def _prepare(database: sqlite3.Connection, path: Path, *, write: bool) -> None:
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    application = int(database.execute("PRAGMA application_id").fetchone()[0])
    empty = not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not (empty and write) and application != schema.APPLICATION:
        raise JournalError(f"{path}: it is a database, but no journal of makeway; nothing was changed")
    if version > schema.VERSION:
        raise JournalError(
            f"{path}: it was written by a later makeway (version {version}; this one reads up to {schema.VERSION}); "
            "nothing was changed"
        )
    if not write:
        return
    look_for_damage(database, path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = OFF")
    database.execute("PRAGMA temp_store = MEMORY")
    if empty or version < schema.VERSION:
        database.execute("BEGIN IMMEDIATE")
        if empty:
            schema.create(database)
        else:
            schema.migrate(database, version)
        database.execute("COMMIT")
        # From the log into the file, whose first page tells others that it is a journal.
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def look_for_damage(database: sqlite3.Connection, path: Path) -> None:
    """Look through a file for damage, unless that would take long.

    :raises JournalError: it is damaged.
    """
    if path.stat().st_size > _CHECKED_UP_TO:
        return
    found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise JournalError(
            f"{path}: it is damaged ({found.strip().splitlines()[-1]}); nothing was changed: copy it to a safe place, "
            "and save what can be read with `sqlite3 journal.db .recover`"
        )


def is_journal(path: Path) -> bool:
    """Whether a file is a database of SQLite with makeway's mark."""
    try:
        with path.open("rb") as stream:
            head = stream.read(72)
    except OSError:
        return False
    return head.startswith(MAGIC) and head[68:72] == schema.APPLICATION.to_bytes(4, "big")

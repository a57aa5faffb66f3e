"""Write every step of a live run down before anything of it is performed, and tell after a crash where it stood.

One transaction per step: its events, the lines of the record, the state of each job that it touched, the actions
that are intended. The outcome of an action is an event of a later step. After `Journal.write` has returned, the step
survives a crash of the machine (SQLite with a write-ahead log and ``synchronous=FULL``); if it raises, nothing of the
step is in the file. A step in which nothing but intended actions have come about survives a crash of this process, and
goes to the disk with the next one: after a crash of the machine the world tells what became of them.
docs/adoption.md says what is kept for how long.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from makeway.config import Config, JournalTable, dump_toml, parse_toml
from makeway.errors import JournalError
from makeway.model import Seconds
from makeway.state import State, job_from_json, nodes_to_text
from makeway.worlds.api import Step
from makeway.worlds.encoding import action_to_plain, event_to_plain
from makeway.worlds.events import (
    Adopted,
    Command,
    Event,
    NodesDown,
    NodesDrained,
    NodesUp,
    Performed,
    Started,
    Submitted,
)
from makeway_engine.engine import Engine
from makeway_engine.snapshot import engine_memory, fingerprint, plugins_memory
from makeway_live.compaction import drop
from makeway_live.job_rows import JobRows, to_json
from makeway_live.journal_file import connect, reading, telling

ENDS_TOLD = 100_000
"""How many jobs that have ended a new engine is told of, so that it knows echoes of them."""
MEMORY_EVERY: Seconds = 5.0
"""Least time between two times that arbiter and policies are asked what they remember."""
_PLUGINS = ("selector", "gang", "policies")
_PEOPLE = (Command, NodesDown, NodesDrained, NodesUp)


class Journal:
    """The journal of one run, in one file. See `makeway.worlds.api.Journal`."""

    def __init__(self, path: Path, table: JournalTable | None = None) -> None:
        """Open the file, or make it.

        :param table: what is kept for how long; None: the defaults.
        :raises JournalError: it cannot be opened, is damaged, or is something else.
        """
        self.path = path
        self._table = table or JournalTable()
        self._database = connect(path, write=True)
        self._engine: Engine | None = None
        self._config = ""
        self._rows = JobRows(self._database)
        self._open: set[int] = set()
        """Serials of actions that are marked as open."""
        self._texts: dict[str, str] = {}
        """What was written last of each part of the memory."""
        self._remembered_at: Seconds | None = None
        self._compacted_at: Seconds | None = None
        with reading(path):
            self.step = int(self._value("SELECT max(step) FROM steps") or 0)
            """Number of the last step."""

    def _value(self, query: str, *values: Any) -> Any:
        row = self._database.execute(query, values).fetchone()
        return row[0] if row is not None else None

    # ----------------------------------------------------------------------------- looking back
    @property
    def empty(self) -> bool:
        """Whether nothing was ever written."""
        return not self.step

    def clock_at(self, wall: float, uptime: tuple[str, float] = ("", 0.0)) -> Seconds:
        """Return what the run's clock says at a Unix time: it goes on while no daemon runs.

        :param uptime: the same instant by the clock of the machine's boot. If the last step is of that boot, it counts:
            the other clock may have been set since.
        """
        with reading(self.path):
            row = self._database.execute("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1").fetchone()
            if row is None:
                return 0.0
            at, boot, then = json.loads(
                self._value("SELECT value FROM meta WHERE key = 'uptime'") or '[0, "", 0]'
            )
            if boot and boot == uptime[0]:
                return float(at) + max(0.0, uptime[1] - float(then))
            return float(row[0]) + max(0.0, wall - float(row[1]))

    def zero(self) -> float | None:
        """Return the Unix time of the run's instant 0 by the last step; None: nothing was ever written."""
        with reading(self.path):
            row = self._database.execute("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1").fetchone()
            return None if row is None else float(row[1]) - float(row[0])

    def config(self) -> Config | None:
        """Return the configuration of the last step; None: none was written."""
        with telling(self.path):
            text = self._value("SELECT config FROM configs ORDER BY rowid DESC LIMIT 1")
        return None if text is None else parse_toml(text, str(self.path))

    def state(self) -> State | None:
        """Return where the run stood after the last step; None: nothing was ever written.

        :raises JournalError: the file cannot be read.
        :raises ConfigError: a job in it cannot be.
        """
        with reading(self.path):
            return None if self.empty else self._state()

    def _state(self) -> State:
        at, wall = self._database.execute(
            "SELECT at, wall FROM steps WHERE step = ?", (self.step,)
        ).fetchone()
        rows = self._database.execute(
            "SELECT spec, standing FROM jobs WHERE standing IS NOT NULL ORDER BY place"
        ).fetchall()
        parts = {
            part: (step, json.loads(data))
            for part, step, data in self._database.execute("SELECT part, step, data FROM memory")
        }
        actions = [
            json.loads(row[0])
            for row in self._database.execute("SELECT action FROM actions WHERE open ORDER BY serial")
        ]
        ended = [
            row[0]
            for row in self._database.execute(
                "SELECT id FROM jobs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT ?",
                (ENDS_TOLD,),
            )
        ]
        jobs = tuple(
            job_from_json(f'{{"spec": {spec}, {standing[1:]}', f"{self.path}, a job")
            for spec, standing in rows
        )
        told: dict[str, Any] = {
            name: data for name, (_, data) in parts.items() if name in ("gang", "policies")
        }
        engine = dict(parts["engine"][1]) if "engine" in parts else {}
        whole = parts.get("whole")
        if whole is not None and whole[0] == self.step:
            told = whole[1]
            engine = told.get("engine", {})
            actions = []  # it has them
        engine.setdefault("reports", {})["ended"] = ended[::-1]
        if actions and "deeds" in engine:
            engine["deeds"]["open"] = actions
        told = {**told, "engine": engine}
        down = parts["nodes"][1]["down"] if "nodes" in parts else None
        return State(at=at, wall=wall - at, down_nodes=down, jobs=jobs, memory=told)

    # ------------------------------------------------------------------------------ going on
    def follow(self, engine: Engine) -> None:
        """Write down the steps of `engine` from now on; to be called once it has adopted what there is.

        :raises JournalError: its jobs and its configuration cannot be written now; the next step tries again.
        """
        self._engine = engine
        self._texts.clear()
        self._config = dump_toml(engine.config)
        self._rows.forget()
        try:
            with self._transaction() as database:
                self._write_config(database, engine.ledger.now)
                self._rows.follow(engine)
        except BaseException:
            self._rows.forget()  # nothing of it is in the file
            raise
        self._open = {row[0] for row in self._database.execute("SELECT serial FROM actions WHERE open")}

    def _write_config(self, database: sqlite3.Connection, now: Seconds) -> None:
        """Write the configuration down if it is another one than the last."""
        text = self._config
        if text != self._value("SELECT config FROM configs ORDER BY rowid DESC LIMIT 1"):
            database.execute("INSERT INTO configs VALUES (?, ?, ?)", (self.step, now, text))

    def write(self, step: Step) -> None:
        """Write a step of the engine that is followed; when it returns, the step survives a crash.

        :raises JournalError: it could not be written; then nothing of it was.
        """
        engine = self._engine
        if engine is None:
            raise JournalError(f"{self.path}: no engine is followed yet")
        number = self.step + 1
        self._rows.begin()
        before = self._open, dict(self._texts)
        try:
            with self._transaction(at_once=not _world_can_tell(step)) as database:
                self._write_step(database, engine, step, number)
        except BaseException:
            self._open, self._texts = before
            self._rows.undo()
            raise
        self.step = number
        self._compact_now_and_then(step.now)

    def _write_step(self, database: sqlite3.Connection, engine: Engine, step: Step, number: int) -> None:
        cluster = engine.ledger.cluster
        self._write_config(database, step.now)
        events = [_event(event, cluster) for event in step.events]
        database.execute(
            "INSERT INTO steps VALUES (?, ?, ?, ?)", (number, step.now, step.wall, to_json(events))
        )
        database.execute(
            "INSERT OR REPLACE INTO meta VALUES ('uptime', ?)", (to_json([step.now, *step.uptime]),)
        )
        for event, plain in zip(step.events, events, strict=True):
            if isinstance(event, _PEOPLE):
                database.execute("INSERT INTO commands VALUES (?, ?, ?)", (number, step.now, to_json(plain)))
        database.executemany(
            "INSERT INTO actions VALUES (?, ?, ?, ?, 1)",
            [
                (each.serial, number, each.job.id, to_json(action_to_plain(each, cluster)))
                for each in step.actions
            ],
        )
        database.executemany(
            "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)",
            [
                (number, place, line.at, line.kind, line.job, to_json(dict(line.data)))
                for place, line in enumerate(step.lines)
            ],
        )
        self._rows.write_step(engine, step)
        self._settle(engine, step)
        self._write_memory(engine, step.now, number)

    # ------------------------------------------------------------------------------ memory
    def _settle(self, engine: Engine, step: Step) -> None:
        """Mark the actions whose outcome is known by now."""
        if engine.deeds is None:
            return
        still = engine.deeds.open_serials()
        settled = (self._open | {action.serial for action in step.actions}) - still
        if settled:
            self._database.executemany(
                "UPDATE actions SET open = 0 WHERE serial = ?", [(serial,) for serial in sorted(settled)]
            )
        self._open = still

    def _write_memory(self, engine: Engine, now: Seconds, number: int) -> None:
        ledger = engine.ledger
        small: dict[str, Any] = {
            "transitions": {"lowest_priority": engine.transitions.save()["lowest_priority"]},
            "reports": engine.reports.save(whole=False),
            "in_use": engine.in_use.plain(),
        }
        if engine.deeds is not None:
            small["deeds"] = {"next_serial": engine.deeds.next_serial, "stopped": {}, "open": []}
        self._remember("engine", small, number)
        self._remember(
            "nodes", {"down": nodes_to_text(ledger.cluster, ledger.all_nodes & ~ledger.up)}, number
        )
        if self._remembered_at is None or not 0 <= now - self._remembered_at < MEMORY_EVERY:
            self._remembered_at = now
            found = plugins_memory(engine)
            found["selector"] = {"plugin": found["selector"]["plugin"]}  # its books follow from the jobs
            for part in _PLUGINS:
                self._remember(part, found.get(part, {}), number)

    def _remember(self, part: str, data: Any, number: int) -> None:
        text = to_json(data)
        if self._texts.get(part) != text:
            self._texts[part] = text
            self._database.execute("INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", (part, number, text))

    # ------------------------------------------------------------------------- transactions
    @contextlib.contextmanager
    def _transaction(self, *, at_once: bool = True) -> Iterator[sqlite3.Connection]:
        """Write all of it or nothing.

        :param at_once: whether it has to survive a crash of the machine, too.
        """
        database = self._database
        with telling(self.path):
            database.execute(f"PRAGMA synchronous = {'FULL' if at_once else 'NORMAL'}")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    # --------------------------------------------------------------------------- compaction
    def _compact_now_and_then(self, now: Seconds) -> None:
        every = self._table.compact_every
        if self._compacted_at is None:
            self._compacted_at = now
        elif every and now - self._compacted_at >= every:
            self._compacted_at = now
            with contextlib.suppress(JournalError):  # the next step says what is wrong, if it is still so
                self.compact(now)

    def compact(self, now: Seconds) -> tuple[int, int]:
        """Drop what is older than the rule says; jobs keep their request, their times and how they ended.

        :returns: how many steps were dropped, and how many jobs.
        :raises JournalError: it could not be done; then nothing was dropped.
        """
        with self._transaction() as database:
            dropped = drop(database, self._table, now)
        return dropped.steps, dropped.jobs

    # ------------------------------------------------------------------------------- ending
    def close(self) -> None:
        """Write the whole memory down, so that the next engine goes on exactly as this one would have, and close.

        :raises JournalError: the memory could not be written; the steps are there all the same.
        """
        try:
            if self._engine is not None and self.step:
                engine = self._engine
                whole = {
                    "config": fingerprint(engine),
                    "engine": engine_memory(engine),
                    **plugins_memory(engine),
                }
                with self._transaction():
                    self._rows.write(engine, engine.ledger.jobs.values())
                    self._remember("whole", whole, self.step)
        finally:
            self._database.close()


def _world_can_tell(step: Step) -> bool:
    """Whether a step only says that intended actions have come about."""
    return not step.actions and all(isinstance(event, Started | Performed) for event in step.events)


def _event(event: Event, cluster: Any) -> dict[str, Any]:
    """Return an event; what was submitted stands with its job."""
    if isinstance(event, Submitted | Adopted):
        spec = event.spec if isinstance(event, Submitted) else event.standing.spec
        return {"event": type(event).__name__, "job": spec.id}
    return event_to_plain(event, cluster)

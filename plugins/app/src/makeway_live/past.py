"""Read in the journal what happened: jobs that have ended, and the lines of the record, from any thread.

Each thread has a connection of its own, which only reads. A sequence number is the number of a step of the engine.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from makeway.hostlist import expand_hostlist
from makeway_live.job_rows import REFUSED
from makeway_live.journal_file import connect, telling

T = TypeVar("T")
MOST_SUSPENSIONS = 50
_ENDS = f"ended_at IS NOT NULL AND state <> '{REFUSED}'"


@attrs.frozen(kw_only=True)
class Runs:
    """When and where a job ran: its last start, and how often it was started."""

    started: float | None = None
    nodes: str = ""
    starts: int = 0
    suspended: float = 0.0
    """Seconds for which its last incarnation was suspended."""
    suspensions: tuple[tuple[float, float], ...] = ()
    """From when to when its last incarnation was suspended; only the last `MOST_SUSPENSIONS` times."""
    cpus: int | None = None
    """CPUs that its last incarnation held; None: that is not known."""
    cores: Mapping[str, str] | None = None
    """Node -> CPUs that its last incarnation held there, empty for all; None: that is not known."""


class Past:
    """Reads one journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        :raises JournalError: the journal cannot be read.
        """
        with telling(self._path):
            database = getattr(self._local, "database", None)
            if database is None:
                database = self._local.database = connect(self._path, write=False)
                self._all.append(database)
            return list(database.execute(query, values))

    def close(self) -> None:
        """Close the connections of all threads, none of which may read any more.

        Otherwise what the journal wrote last would stay in the file of its log when it is closed.
        """
        for database in self._all:
            database.close()
        self._all.clear()

    def ids(self) -> list[str]:
        """Return the ids of all jobs that are known."""
        return [str(row[0]) for row in self.rows("SELECT id FROM jobs")]

    # ----------------------------------------------------------------------------------- jobs
    def job(self, job_id: str) -> dict[str, Any] | None:
        """Return a job that has ended, or one that is live as far as the journal knows it; None: unknown."""
        rows = self.rows(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", job_id)
        return self._shown(rows[0]) if rows else None

    def tasks(self, array_id: str) -> list[str]:
        """Return the jobs that are tasks of an array."""
        rows = self.rows(
            "SELECT id FROM jobs WHERE json_extract(spec, '$.array_id') = ? ORDER BY place", array_id
        )
        return [str(row[0]) for row in rows]

    def last_of(self, user: str) -> str | None:
        """Return the job that a user submitted last, or its array; None: there is none."""
        rows = self.rows(
            "SELECT id, json_extract(spec, '$.array_id') FROM jobs WHERE json_extract(spec, '$.user') = ?"
            f" AND state <> '{REFUSED}' ORDER BY submitted_at DESC, place DESC LIMIT 1",
            user,
        )
        return None if not rows else str(rows[0][1] or rows[0][0])

    def ended(self, since: float, until: float, user: str | None, limit: int) -> list[dict[str, Any]]:
        """Return jobs that ended between two instants of Unix time, the latest last."""
        zero = self.zero()
        query = f"SELECT {_COLUMNS} FROM jobs WHERE {_ENDS} AND ended_at BETWEEN ? AND ?"
        values: list[Any] = [since - zero, until - zero]
        if user is not None:
            query += " AND json_extract(spec, '$.user') = ?"
            values.append(user)
        rows = self.rows(f"{query} ORDER BY ended_at DESC LIMIT ?", *values, limit)
        return [self._shown(row) for row in reversed(rows)]

    def state_of(self, job_id: str) -> str | None:
        """Return the state of a job, as of the last step; None: it is unknown."""
        rows = self.rows("SELECT state FROM jobs WHERE id = ?", job_id)
        return str(rows[0][0]) if rows else None

    def ended_as(self, job_id: str) -> str | None:
        """Return the state that a job ended in; None: it has not ended, or is unknown."""
        rows = self.rows("SELECT state FROM jobs WHERE id = ? AND standing IS NULL", job_id)
        return str(rows[0][0]) if rows else None

    def zero(self) -> float:
        """Return the Unix time of the run's instant 0, by the last step."""
        rows = self.rows("SELECT at, wall FROM steps ORDER BY step DESC LIMIT 1")
        return float(rows[0][1]) - float(rows[0][0]) if rows else 0.0

    def _shown(self, row: tuple[Any, ...]) -> dict[str, Any]:
        job_id, text, state, submitted_at, ended_at, worked, lost = row
        spec = json.loads(text)
        zero = self.zero()
        runs = self.runs(job_id)
        return {
            "id": job_id,
            "array": spec.get("array_id"),
            "name": spec.get("name", ""),
            "user": spec.get("user", "user"),
            "group": spec.get("group"),
            "account": spec.get("account"),
            "partition": ",".join(spec.get("partitions", ())),
            "qos": spec.get("qos"),
            "state": state,
            "priority": spec.get("priority"),
            "nodes": runs.nodes,
            "node_count": spec.get("min_nodes", 1),
            "cpus": runs.cpus if runs.cpus is not None else _asked_cpus(spec),
            "memory_mb": spec.get("memory_mb_per_node"),
            "gres": spec.get("gres", {}),
            "memory_mb_per_cpu": spec.get("memory_mb_per_cpu"),
            "time_limit": spec.get("time_limit"),
            "ran": round(worked, 3),
            "lost": round(lost, 3),
            "submitted_at": round(submitted_at + zero, 3),
            "started_at": None if runs.started is None else round(runs.started + zero, 3),
            "suspended": round(runs.suspended, 3),
            "suspensions": [[round(each + zero, 3) for each in span] for span in runs.suspensions],
            "cores": runs.cores,
            "incarnation": runs.starts,
            "requeues": max(0, runs.starts - 1),
            "ended_at": None if ended_at is None else round(ended_at + zero, 3),
            "command": " ".join(spec.get("command", ()))[:500],
        }

    def starts(self, job_id: str) -> int:
        """Return how often a job was started, as far as lines are kept."""
        return self.runs(job_id).starts

    def runs(self, job_id: str) -> Runs:
        """Return when and where a job ran, as far as lines are kept."""
        found = Runs()
        before, stopped_at, began = "", 0.0, 0
        for step, at, text in self.rows(
            "SELECT step, at, data FROM lines WHERE job = ? AND kind = 'state' ORDER BY step, place", job_id
        ):
            data = json.loads(text)
            state = str(data.get("state"))
            if state == "RUNNING" and before != "SUSPENDED":
                found = Runs(started=float(at), nodes=str(data.get("nodes", "")), starts=found.starts + 1)
                began = step
            elif before == "SUSPENDED" and state != before:
                spans = (*found.suspensions, (stopped_at, float(at)))[-MOST_SUSPENSIONS:]
                found = attrs.evolve(
                    found, suspended=found.suspended + float(at) - stopped_at, suspensions=spans
                )
            if state == "SUSPENDED" and before != state:
                stopped_at = float(at)
            before = state
        held = self._held(job_id, began) if began else {}
        if not held:
            return found
        nodes = expand_hostlist(held["nodes"])
        cores = _on_each(held.get("cores") or [""], len(nodes))
        each = _on_each(held.get("cpus") or [], len(nodes))
        return attrs.evolve(
            found, cpus=sum(each) if each else None, cores=dict(zip(nodes, cores, strict=True))
        )

    def _held(self, job_id: str, step: int) -> dict[str, Any]:
        """Return what a job was given by the start in a step; empty: that is not known."""
        rows = self.rows(
            "SELECT json_extract(action, '$.allocation') FROM actions WHERE step = ? AND job = ?"
            " AND json_extract(action, '$.action') = 'Start'",
            step,
            job_id,
        )
        return dict(json.loads(rows[0][0])) if rows and rows[0][0] is not None else {}

    # ---------------------------------------------------------------------------------- lines
    def lines_of(self, job_id: str) -> list[dict[str, Any]]:
        """Return the lines of the record about a job, and those in which it displaced another."""
        rows = self.rows(
            "SELECT at, kind, job, data FROM lines WHERE job = ?"
            " OR (kind = 'preempt' AND json_extract(data, '$.preemptor') = ?) ORDER BY step, place",
            job_id,
            job_id,
        )
        return [_line(*row) for row in rows]

    def preemptions(self) -> Iterator[dict[str, Any]]:
        """Yield all lines that say which job made way for which."""
        for row in self.rows(
            "SELECT at, kind, job, data FROM lines WHERE kind = 'preempt' ORDER BY step, place"
        ):
            yield _line(*row)

    def steps_after(self, step: int, most: int) -> list[tuple[int, float, list[dict[str, Any]]]]:
        """Return the steps after one, with their Unix times and their lines of the record."""
        rows = self.rows("SELECT step, wall FROM steps WHERE step > ? ORDER BY step LIMIT ?", step, most)
        if not rows:
            return []
        lines: dict[int, list[dict[str, Any]]] = {}
        for number, *line in self.rows(
            "SELECT step, at, kind, job, data FROM lines WHERE step > ? AND step <= ? ORDER BY step, place",
            step,
            rows[-1][0],
        ):
            lines.setdefault(number, []).append(_line(*line))
        return [(int(number), float(wall), lines.get(number, [])) for number, wall in rows]

    def first_step(self) -> int:
        """Return the number of the earliest step that is kept; 0: there is none."""
        return int(self.rows("SELECT coalesce(min(step), 0) FROM steps")[0][0])


_COLUMNS = "id, spec, state, submitted_at, ended_at, worked, lost"


def _asked_cpus(spec: Mapping[str, Any]) -> int:
    tasks = max(1, spec.get("tasks") or 1, spec.get("min_nodes", 1))
    return int(tasks * spec.get("cpus_per_task", 1))


def _on_each(values: list[T], nodes: int) -> list[T]:
    """Return a value for each node, where one may stand for all."""
    return values * nodes if len(values) == 1 else values


def _line(at: float, kind: str, job: str, data: str) -> dict[str, Any]:
    return {"at": at, "kind": kind, "job": job, **json.loads(data)}

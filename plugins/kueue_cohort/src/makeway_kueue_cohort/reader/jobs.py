"""Read jobs for Kueue's queues from a CSV file with a header.

Needed are ``queue`` (LocalQueue), ``created`` (seconds, or a date and time) and ``duration`` (seconds). May be there:
``name``, ``user``, ``namespace``, ``priority``, ``priority_class``, ``pods``, and what each pod asks for: ``cpu``,
``memory``, and any resource by its name (``nvidia.com/gpu``).
"""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections.abc import Mapping
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem, nearest
from makeway.foreign import ForeignWorkload, Source
from makeway.model import JobSpec
from makeway_kueue_cohort.reader.quantity import quantity

_NEEDED = ("queue", "created", "duration")
_KNOWN = (*_NEEDED, "name", "user", "namespace", "priority", "priority_class", "pods", "cpu", "memory")
_TOLERATIONS = "tolerations"
_MB = 1024 * 1024


@attrs.frozen
class KueueJobs:
    """See `makeway.foreign.ForeignWorkloadReader`."""

    name: str = "kueue-csv"

    def claims(self, name: str, head: str) -> bool:
        """Recognise the header."""
        del name
        return set(_NEEDED) <= set(_columns(head))

    def translate(self, source: Source) -> ForeignWorkload:
        """Read all rows.

        :raises ConfigError: the header has a column that is no resource and is not known.
        """
        columns = _columns(source.text)
        unknown = [
            each
            for each in columns
            if each not in (*_KNOWN, _TOLERATIONS) and "/" not in each and each != "gpu"
        ]
        if unknown:
            text = f"unknown column {unknown[0]!r}{nearest(unknown[0], _KNOWN)}; resources are named as in quotas"
            raise ConfigError(source.name, [Problem(f"{source.name}:1", text)])
        rows = csv.DictReader(io.StringIO(source.text), fieldnames=columns, skipinitialspace=True)
        next(rows, None)
        found: list[JobSpec] = []
        rejected: list[tuple[int, str]] = []
        rounded, ids = 0, set[str]()
        for number, row in enumerate(rows, 1):
            try:
                job, parts = _job(row, number, source.name, rows.line_num)
                if job.id in ids:
                    raise ValueError(f"name: {job.id!r} is there twice")
            except ValueError as error:
                rejected.append((rows.line_num, str(error)))
                continue
            ids.add(job.id)
            rounded += parts
            found.append(job)
        begin = min((job.submit_at for job in found), default=0.0)
        dated = any(job.wall_submit is not None for job in found)
        jobs = [attrs.evolve(job, submit_at=job.submit_at - begin) for job in found] if dated else found
        notes = (f"{rounded} jobs ask for parts of a core; they count as whole cores",) if rounded else ()
        return ForeignWorkload(
            jobs=jobs, rejected=rejected, notes=notes, start_wall=begin if dated and jobs else None
        )


def _columns(text: str) -> list[str]:
    first = text.lstrip("\ufeff").split("\n", 1)[0].strip()
    return [each.strip() for each in next(csv.reader([first]), [])]


def _job(row: Mapping[str, str | None], number: int, file: str, line: int) -> tuple[JobSpec, bool]:
    """Return a job, and whether its cores were rounded up.

    :raises ValueError: the row cannot be used.
    """
    if None in row.values() or None in row:
        raise ValueError("it has not as many columns as the header")
    given = {key: (value or "").strip() for key, value in row.items()}
    if not given["queue"]:
        raise ValueError("queue: it is empty")
    submit, wall = _instant(given["created"])
    pods = _whole(given, "pods", 1)
    if pods < 1:
        raise ValueError("pods: allowed: 1 or more")
    cpu = quantity(given["cpu"]) if given.get("cpu") else 1.0
    memory = quantity(given["memory"]) if given.get("memory") else 0.0
    pieces = {
        name.rpartition("/")[2]: round(quantity(amount) * pods)
        for name, amount in given.items()
        if name not in (*_KNOWN, _TOLERATIONS) and amount and quantity(amount)
    }
    priority = _whole(given, "priority", 0) if given.get("priority") else None
    attributes: dict[str, Any] = {"priority": 0} if priority == 0 else {}
    if given.get(_TOLERATIONS):
        attributes[_TOLERATIONS] = tuple(given[_TOLERATIONS].split(";"))
    job = JobSpec(
        id=given.get("name") or str(number),
        name=given.get("name", ""),
        user=given.get("user") or "user",
        account=given.get("namespace") or None,
        partitions=(given["queue"],),
        qos=given.get("priority_class") or None,
        submit_at=submit,
        wall_submit=wall,
        run_time=_seconds(given["duration"]),
        tasks=pods,
        cpus_per_task=max(1, math.ceil(cpu)),
        memory_mb_per_node=math.ceil(memory * pods / _MB) or None,
        gres_total=pieces,
        priority=priority or None,  # 0 would hold it
        attributes=attributes,
        source=f"{file}:{line}",
    )
    return job, cpu != math.ceil(cpu)


def _whole(given: Mapping[str, str], key: str, default: int) -> int:
    text = given.get(key)
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{key}: got {text!r}; allowed: a whole number") from None


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < math.inf:
        raise ValueError(f"duration: got {text!r}; allowed: 0 or more seconds")
    return found


def _instant(text: str) -> tuple[float, float | None]:
    """Return an instant, and the same as Unix time if it is a date; dates without a zone are UTC."""
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if math.isfinite(seconds) and seconds >= 0:
            return seconds, None
        raise ValueError(f"created: got {text!r}; allowed: 0 or more seconds, or a date and time")
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"created: got {text!r}; allowed: seconds, or a date and time") from None
    wall = (at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC)).timestamp()
    return wall, wall

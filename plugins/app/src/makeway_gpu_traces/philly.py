"""Read Microsoft Philly: the extract of Pollux and Sia (CSV), and the job log as Microsoft published it (JSON).

A virtual cluster becomes a partition. Neither says how many cores a job had: it is a gang of tasks, each with one
core and one GPU. There are no limits either, so the run time is the limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import read_text
from makeway_gpu_traces.fields import BadRowError, Fields, amount, instant, known, whole, word

NOTE = "the trace names no cores and no limits: a core for each GPU, and the run time as limit"


def _gang(gpus: int, run: float, group: str) -> dict[str, Any]:
    """Return what both forms say of a job."""
    return {
        "partitions": (group,),
        "run_time": run,
        "time_limit": run,
        "tasks": gpus,
        "gres_total": {"gpu": gpus},
    }


@attrs.frozen
class PhillyCsv:
    """The extract: one row a job, in no order, without ids and users."""

    name: str = "philly"
    needed: frozenset[str] = frozenset("timestamp duration num_gpus gpu_time cluster".split())
    dated: bool = True
    notes: tuple[str, ...] = (NOTE,)

    def submitted(self, fields: Fields) -> float:
        """Return when a job was submitted."""
        return instant(fields["timestamp"], "timestamp")

    def job(self, fields: Fields, number: int) -> dict[str, Any]:
        """Return one job; its id is the number of its row."""
        gang = _gang(whole(fields, "num_gpus", least=1), amount(fields, "duration"), word(fields, "cluster"))
        return {"id": str(number), **gang}


EXTRACT = PhillyCsv()


@attrs.frozen
class PhillyJson:
    """Reads ``cluster_job_log``; see `makeway.readers.api.WorkloadReader`.

    The size is that of the first attempt; the run time is the sum over all attempts, which had the same task.
    """

    name: str = "philly-json"

    def claims(self, path: Path, head: str) -> bool:
        """Recognise the keys of a job."""
        del path
        return all(f'"{key}"' in head for key in ("jobid", "vc", "attempts", "submitted_time"))

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read all jobs, one after the other, and put them in order of submission.

        :raises ConfigError: it cannot be read, or is no list of JSON objects.
        """
        workload = Workload(name=path.name, jobs=iter(()), most_rejected=options.most_rejected, notes=[NOTE])
        found: list[tuple[float, int, dict[str, Any]]] = []
        ids = set[str]()
        for line, entry in _objects(path):
            try:
                submit, job = _job(entry)
                if job["id"] in ids:
                    raise BadRowError(f"job {job['id']!r} was there before")
            except BadRowError as reason:
                workload.reject(line, str(reason), str(entry.get("jobid", "")), usual=reason.usual)
                continue
            ids.add(job["id"])
            found.append((submit, line, job))
        if options.progress is not None:
            options.progress(path.stat().st_size)
        found.sort(key=lambda each: each[:2])
        start = workload.start_wall = found[0][0] if found else None
        workload.jobs = (
            JobSpec(
                **job, submit_at=submit - (start or 0.0), wall_submit=submit, source=f"{path.name}:{line}"
            )
            for submit, line, job in found
        )
        return workload


def _objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each object of a JSON list with its line, one at a time."""
    text, decoder = read_text(path), json.JSONDecoder()
    at, line, counted = 0, 1, 0
    begun = False
    while True:
        at = _past(text, at, " \t\r\n," if begun else " \t\r\n[")
        if at >= len(text) or text[at] == "]":
            return
        begun = True
        line, counted = line + text.count("\n", counted, at), at
        try:
            entry, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ConfigError(
                str(path), [Problem(f"{path.name}:{line}", f"not valid JSON: {error}")]
            ) from None
        if not isinstance(entry, dict):
            text = f"got {entry!r:.60}; allowed: a list of jobs, each an object"
            raise ConfigError(str(path), [Problem(f"{path.name}:{line}", text)])
        yield line, entry


def _past(text: str, at: int, skipped: str) -> int:
    return next((place for place in range(at, len(text)) if text[place] not in skipped), len(text))


def _job(entry: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return a job with its submit time.

    :raises BadRowError: with the reason.
    """
    fields = {key: str(entry.get(key) or "") for key in ("jobid", "vc", "user", "status", "submitted_time")}
    submit = instant(fields["submitted_time"], "submitted_time")
    attempts = [each for each in _listed(entry, "attempts") if known(str(each.get("start_time") or ""))]
    if not attempts:
        raise BadRowError(f"it never ran: {fields['status'] or 'no status'}", usual=True)
    gpus = sum(len(each.get("gpus") or ()) for each in _listed(attempts[0], "detail"))
    if not gpus:
        raise BadRowError("its first attempt names no GPUs", usual=True)
    run = math.fsum(map(_ran, attempts))
    first = instant(str(attempts[0]["start_time"]), "start_time")
    return submit, {
        "id": word(fields, "jobid"),
        "user": fields["user"] or "user",
        "attributes": {
            "state": fields["status"],
            "wait": max(0.0, first - submit),
            "attempts": len(attempts),
        },
        **_gang(gpus, run, word(fields, "vc")),
    }


def _listed(entry: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = entry.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadRowError(f"{key}: allowed: a list of objects")
    return found


def _ran(attempt: Mapping[str, Any]) -> float:
    end = str(attempt.get("end_time") or "")
    if not known(end):
        raise BadRowError("an attempt has no end", usual=True)
    run = instant(end, "end_time") - instant(str(attempt["start_time"]), "start_time")
    if run < 0:
        raise BadRowError("end_time is before start_time")
    return run

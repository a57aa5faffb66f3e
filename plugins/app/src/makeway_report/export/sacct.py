"""Write what ``sacct -P -X`` would print of a run: a row per job, about its last start.

Times are in UTC and whole seconds, as Slurm has them. Elapsed leaves out the time suspended.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from makeway.hostlist import expand_hostlist
from makeway_report.export.rows import cores_of, ran, runs_of
from makeway_report.record_file import RecordFile

COLUMNS = (
    "JobID JobName User Group Account Partition QOS Submit Eligible Start End Elapsed Suspended Timelimit "
    "NNodes NCPUS ReqNodes ReqCPUS ReqMem ReqTRES Restarts State NodeList"
).split()
NO_DATE = 946_684_800.0
"""Second 0 of a workload without dates: 2000-01-01."""
_RUNNING = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")


def write_sacct(record: RecordFile, to: Callable[[str], object]) -> list[str]:
    """Write the rows; return what had to be changed, in words.

    :param to: takes the text, piece by piece.
    """
    epoch = record.heading["epoch"]
    told = [] if epoch is not None else ["the workload has no dates: second 0 is 2000-01-01T00:00:00"]
    plain = all(_is_number(job_id) for job_id, _ in record.jobs())
    if not plain:
        told.append("ids that Slurm does not know: jobs are numbered, JobName holds the id")
    to("|".join(COLUMNS) + "\n")
    for number, (job_id, job) in enumerate(record.jobs(), 1):
        cells = _row(job, NO_DATE if epoch is None else epoch)
        cells["JobID"] = job_id if plain else str(number)
        if not plain:
            cells["JobName"] = job_id
        to("|".join(_clean(cells[name]) for name in COLUMNS) + "\n")
    return told


def _is_number(job_id: str) -> bool:
    return job_id.isascii() and job_id.isdigit() and len(job_id) <= 18


def _clean(text: str) -> str:
    """Keep a value within its cell."""
    return " ".join(text.replace("|", "/").split()) if "|" in text or not text.isprintable() else text


def _row(job: Mapping[str, Any], epoch: float) -> dict[str, str]:
    asked, runs = job["requested"], runs_of(job)
    run = runs[-1] if runs and job["final_state"] != "PENDING" else None
    over = job["final_state"] not in _RUNNING
    limit = asked["time_limit"]
    last = job["intervals"][-1]["end"] if job["intervals"] else job["submit"]
    suspended = sum(e["end"] - e["start"] for e in run or () if e["state"] == "SUSPENDED")
    cpus = cores_of(run[0]) if run else 0
    return {
        "JobName": job["name"],
        **{name: job.get(name.lower(), "") for name in ("User", "Group", "Account", "Partition", "QOS")},
        "Submit": _date(epoch + job["submit"]),
        "Eligible": _date(epoch + job["submit"]),
        "Start": _date(epoch + run[0]["start"]) if run else "Unknown",
        "End": _date(epoch + last) if over else "Unknown",
        "Elapsed": _span(ran(run) if run else 0.0),
        "Suspended": _span(suspended),
        "Timelimit": "Partition_Limit" if limit is None else _span(limit),
        "NNodes": str(len(expand_hostlist(run[0]["nodes"])) if run else asked["nodes"]),
        "NCPUS": str(cpus or asked["cpus"]),
        "ReqNodes": str(asked["nodes"]),
        "ReqCPUS": str(asked["cpus"]),
        "ReqMem": _memory(asked),
        "ReqTRES": ",".join(_tres(asked)),
        "Restarts": str(job["restarts"]),
        "State": job["final_state"],
        "NodeList": run[0]["nodes"] if run else "None assigned",
    }


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(round(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _span(seconds: float) -> str:
    days, rest = divmod(round(seconds), 86400)
    shown = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{shown}" if days else shown


def _memory(asked: Mapping[str, Any]) -> str:
    if "memory_mb_per_cpu" in asked:
        return f"{asked['memory_mb_per_cpu']}Mc"
    return f"{asked['memory_mb_per_node']}Mn" if "memory_mb_per_node" in asked else ""


def _tres(asked: Mapping[str, Any]) -> Iterator[str]:
    yield f"cpu={asked['cpus']}"
    yield f"node={asked['nodes']}"
    counts = {name: count * asked["nodes"] for name, count in asked.get("gres", {}).items()}
    counts |= asked.get("gres_total", {})
    yield from (f"gres/{name}={count}" for name, count in counts.items())
    yield from (f"license/{name}={count}" for name, count in asked.get("licenses", {}).items())

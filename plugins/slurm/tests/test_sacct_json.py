"""``sacct --json`` comes to the same jobs as ``sacct -P``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
CONFIG = """
[[node]]
name = "n[1-2]"
cpus = 4
memory_mb = 8000
gres = { gpu = 2 }
[[partition]]
name = "main"
[policy]
select = "select/cons_tres"
"""
MAY = 1_714_521_600
"""2024-05-01 00:00 UTC."""
TABLE = """\
JobID|User|Account|Partition|QOS|Submit|Start|End|Elapsed|Timelimit|NNodes|ReqCPUS|ReqTRES|NodeList|Priority|Reason|Restarts|State|JobName
7|ann|physics|main|normal|2024-05-01T00:00:00|2024-05-01T00:01:00|2024-05-01T00:11:00|00:10:00|01:00:00|1|4|cpu=4,mem=4000M,node=1,gres/gpu=2|n1|10|Resources|0|COMPLETED|run
8_3|ann|physics|main|normal|2024-05-01T00:00:10|2024-05-01T00:02:00|2024-05-01T00:03:00|00:01:00|UNLIMITED|1|2|cpu=2,node=1|n2|9|None|1|FAILED|arr
"""


def number(value: int | None) -> dict[str, Any]:
    """Return a number as Slurm has them since data_parser v0.0.39."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def job(**more: Any) -> dict[str, Any]:
    """Return a job as sacct --json prints it, less what is not read."""
    return {
        "user": "ann",
        "account": "physics",
        "partition": "main",
        "qos": "normal",
        "array": {"job_id": 0, "task_id": number(None)},
        "het": {"job_id": 0, "job_offset": number(None)},
        "reservation": {"id": 0, "name": ""},
        "allocation_nodes": 1,
        **more,
    }


def tres(**counts: int) -> list[dict[str, Any]]:
    """Return requested TRES; ``gpu`` is a generic resource."""
    return [
        {"type": "gres" if kind == "gpu" else kind, "name": "gpu" if kind == "gpu" else "", "count": count}
        for kind, count in counts.items()
    ]


JOBS = [
    job(
        job_id=7,
        name="run",
        nodes="n1",
        priority=number(10),
        restart_cnt=0,
        state={"current": ["COMPLETED"], "reason": "Resources"},
        required={"CPUs": 4, "memory_per_node": number(None), "memory_per_cpu": number(None)},
        tres={"requested": tres(cpu=4, mem=4000, node=1, gpu=2), "allocated": []},
        time={
            "submission": MAY,
            "eligible": MAY,
            "start": MAY + 60,
            "end": MAY + 660,
            "elapsed": 600,
            "limit": number(60),
        },
    ),
    job(
        job_id=9,
        name="arr",
        nodes="n2",
        priority=number(9),
        restart_cnt=1,
        array={"job_id": 8, "task_id": number(3)},
        state={"current": "FAILED", "reason": "None"},  # the shape of 21.08
        required={"CPUs": 2},
        tres={"requested": tres(cpu=2, node=1)},
        time={
            "submission": MAY + 10,
            "eligible": MAY + 10,
            "start": MAY + 120,
            "end": MAY + 180,
            "elapsed": 60,
            "limit": {"set": False, "infinite": True, "number": 0},
        },
    ),
]


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "as it is printed"])
def test_json_comes_to_the_same_as_the_table(run: Run, tmp_path: Path, indent: int | None) -> None:
    """Sizes, times, limits, GPUs, array tasks, priorities and reasons."""
    config, table, listed = tmp_path / "site.toml", tmp_path / "may.sacct", tmp_path / "may.json"
    config.write_text(CONFIG)
    table.write_text(TABLE)
    listed.write_text(json.dumps({"jobs": JOBS, "meta": {}, "errors": []}, indent=indent))
    records = []
    for workload in (table, listed):
        out = tmp_path / f"{workload.name}.out"
        done = run("replay", config, workload, "--against-log", "--json", out)
        assert done.status == 0, done.err
        records.append(json.loads(out.read_text()))
    one, other = records
    assert list(one["jobs"]) == ["7", "8_3"]
    assert one["jobs"] == other["jobs"]
    assert one["against_log"] == other["against_log"]
    assert one["jobs"]["7"]["requested"]["gres"] == {"gpu": 2}


def test_what_is_no_list_of_jobs_is_said(run: Run, tmp_path: Path) -> None:
    """In one sentence, with the file."""
    config, listed = tmp_path / "site.toml", tmp_path / "may.json"
    config.write_text(CONFIG)
    listed.write_text('{"jobs": 3}')
    done = run("replay", config, listed)
    assert done.status == 2
    assert "may.json: jobs: got none; allowed: the list that sacct --json prints" in done.err
    listed.write_text('{"jobs": [')
    assert "may.json: not valid JSON" in run("replay", config, listed).err
    listed.write_text('{"jobs": [{"job_id": 7, "job_state": ["PENDING"]}]}')
    assert "no submit time" in run("replay", config, listed).err

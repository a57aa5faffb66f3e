"""Jobs whose MaxRSS on record is more than they asked for, where slurm.conf asks to cancel those."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

CONF = """\
ClusterName=c
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams={}
NodeName=n[1-2] CPUs=8 RealMemory=16000
PartitionName=p Nodes=ALL Default=YES
"""
HEADER = "JobID|User|Partition|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|ReqMem|MaxRSS|State|NodeList"
JOB = (
    "{}|ann|p|2026-06-01T00:00:0{}|2026-06-01T00:00:0{}|2026-06-01T00:16:40|00:16:40|01:00:00|1|{}|{}||{}|n1"
)
STEP = "{}|||2026-06-01T00:00:00|2026-06-01T00:00:00|2026-06-01T00:16:40|00:16:40||1|1||{}|COMPLETED|n1"


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Return what writes a slurm.conf and a log."""

    def write(params: str, *rows: str) -> tuple[Path, Path]:
        conf, log = tmp_path / "slurm.conf", tmp_path / "june.sacct"
        conf.write_text(CONF.format(params))
        log.write_text("\n".join((HEADER, *rows)) + "\n")
        return conf, log

    return write


def _replay(run: Run, *words: object) -> tuple[dict[str, tuple[str, float]], str]:
    done = run("replay", *words, "--json", "-", "--set", "scheduler.clockwork=ideal")
    assert done.status == 0, done.err
    jobs = json.loads(done.out)["jobs"]
    ends = {
        job: (each["final_state"], sum(i["end"] - i["start"] for i in each["intervals"]))
        for job, each in jobs.items()
    }
    return ends, done.err


def _rows() -> list[str]:
    """Return jobs of 1,000 s each: 1 and 2 ask for 1 GB and have 1 GB and 1.5 GB; 3 asks for 2 CPUs of 500 MB each.

    Job 4 asks for all memory of its node, and job 5 was cancelled for its memory on record.
    """
    asked = [("1", 1, "1000M", "1000.00M"), ("2", 1, "1000M", "1536000K"), ("3", 2, "500Mc", "1100.5M")]
    asked += [("4", 1, "0", "15G"), ("5", 1, "1000Mn", "2000M")]
    rows = []
    for at, (job, cpus, memory, peak) in enumerate(asked):
        state = "OUT_OF_MEMORY" if job == "5" else "COMPLETED"
        rows += [JOB.format(job, at, at, cpus, memory, state), STEP.format(f"{job}.extern", "0")]
        rows.append(STEP.format(f"{job}.batch", peak))
    return rows


def test_a_job_over_its_memory_is_cancelled(run: Run, files: Any) -> None:
    """At the end of its run, or as far into it as is said; one that ended so on record ends when it did."""
    conf, log = files("OverMemoryKill", *_rows())
    ends, said = _replay(run, conf, log)
    states = {job: state for job, (state, _) in ends.items()}
    over = "OUT_OF_MEMORY"
    assert states == {"1": "COMPLETED", "2": over, "3": over, "4": "COMPLETED", "5": over}
    assert "MaxRSS" not in said
    half, _ = _replay(run, conf, log, "--set", "workload.over_memory_at=0.5")
    assert {job: ran for job, (_, ran) in half.items()} == {
        "1": 1000,
        "2": 500,
        "3": 500,
        "4": 1000,
        "5": 1000,
    }
    assert {job: state for job, (state, _) in half.items()} == states


def test_nothing_happens_where_the_site_does_not_ask_for_it(run: Run, files: Any) -> None:
    """Unless a key does."""
    conf, log = files("NoShared", *_rows())
    ends, _ = _replay(run, conf, log)
    assert {state for state, _ in ends.values()} == {"COMPLETED"}
    ends, _ = _replay(run, conf, log, "--set", "workload.over_memory_kill=true")
    assert ends["2"][0] == "OUT_OF_MEMORY"


def test_a_log_without_the_column_is_told_once(run: Run, files: Any) -> None:
    """With sacct -X, steps and their memory are missing."""
    rows = [row for row in _rows() if not row.split("|")[0].endswith(("batch", "extern"))]
    ends, said = _replay(run, *files("OverMemoryKill", *rows))
    assert {state for state, _ in ends.values()} == {"COMPLETED"}
    assert said.count("MaxRSS") == 1


def test_a_share_that_is_none_is_told(run: Run, files: Any) -> None:
    """From 0 to 1."""
    done = run("replay", *files("OverMemoryKill", *_rows()), "--set", "workload.over_memory_at=2")
    assert done.status == 2
    assert "workload.over_memory_at: got 2; allowed: 0 to 1" in done.err

"""SchedulerParameters=bf_licenses: backfill plans licences as it plans nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

SITE = """\
ClusterName=eda
SlurmctldHost=head
SchedulerType=sched/backfill
SchedulerParameters={options}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PriorityType=priority/basic
Licenses=vcs:2
NodeName=n[1-10] CPUs=8 RealMemory=32000 State=UNKNOWN
PartitionName=all Nodes=n[1-10] MaxTime=2-0 State=UP Default=YES
"""


def started(tmp_path: Path, options: str, *jobs: str) -> dict[str, float]:
    """Return when each job started first."""
    (tmp_path / "slurm.conf").write_text(SITE.format(options=options))
    (tmp_path / "jobs.jsonl").write_text("\n".join(jobs) + "\n")
    out = tmp_path / "out.json"
    paths = [str(tmp_path / name) for name in ("slurm.conf", "jobs.jsonl")]
    done = CliRunner().invoke(cli, ["replay", *paths, "--json", str(out)])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(out.read_text())["jobs"]
    return {
        job: next(each["start"] for each in told["intervals"] if each["state"] == "RUNNING")
        for job, told in found.items()
    }


def job(number: int, submit: int, licences: int, run_time: int, limit: int) -> str:
    spec = {"id": number, "submit": submit, "cpus": 1, "run_time": run_time, "time_limit": limit}
    return json.dumps({**spec, "licenses": {"vcs": licences}})


TWO = (job(1, 0, 1, 1000, 1200), job(2, 0, 1, 1500, 1800), job(3, 10, 2, 600, 1200))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(
            "bf_interval=30",
            {3: 1900, 4: 1000},
            id="without: job 4 takes what is free at 1,000 s",
        ),
        pytest.param(
            "bf_licenses", {3: 1500, 4: 2100}, id="with: both licences are job 3's once both are back"
        ),
    ],
)
def test_a_job_that_wants_all_licences_is_not_starved(
    tmp_path: Path, options: str, expected: dict[int, float]
) -> None:
    """Job 4 would run from 1,000 s past 1,800 s, when the limits say that both licences are back."""
    found = started(tmp_path, options, *TWO, job(4, 420, 1, 900, 1200))
    for number, at in expected.items():
        assert found[str(number)] == pytest.approx(at, abs=60)


def test_a_job_that_is_over_before_goes_ahead(tmp_path: Path) -> None:
    """From 1,000 s for at most 600 s: before 1,800 s, when job 3 is planned."""
    found = started(tmp_path, "bf_licenses", *TWO, job(4, 420, 1, 300, 600))
    assert found["4"] == pytest.approx(1000, abs=60)
    assert found["3"] == pytest.approx(1500, abs=60)


def test_jobs_without_licences_go_ahead(tmp_path: Path) -> None:
    """They stand behind a job that ends the main pass, but backfill starts them."""
    plain = json.dumps({"id": 4, "submit": 20, "cpus": 1, "run_time": 60, "time_limit": 600})
    found = started(tmp_path, "bf_licenses", *TWO, plain)
    assert found["4"] == pytest.approx(20, abs=60)

"""Hold the example of five schedulers to what its page says: one key changed, and each takes GPUs back in its way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "examples" / "five-ways" / "cluster.toml"
JOBS = """timestamp,duration,num_gpus,gpu_time,cluster
2017-11-06 00:00:00,90000,400,36000000,ee9e8c
2017-11-06 01:00:00,600,8,4800,11cb48
"""


# OpenPBS is an example of its own, which need not be installed here.
@pytest.mark.parametrize("preempt", ["preempt/partition_prio", "moab/qos", "lsf/queue", "kueue/cohort"])
def test_each_takes_gpus_back(tmp_path: Path, preempt: str) -> None:
    """One virtual cluster has all GPUs; another has a higher rank, or a quota of its own. 400 GPUs lose an hour."""
    jobs, record = tmp_path / "philly.csv", tmp_path / "record.json"
    jobs.write_text(JOBS)
    given = ["replay", CONFIG, jobs, "--set", f"policy.preempt={preempt}", "--json", record]
    done = CliRunner().invoke(cli, [str(each) for each in given])
    assert done.exit_code == 0, done.output
    found = json.loads(record.read_text())
    assert [(each["preemptor"], each["victim"]) for each in found["preemptions"]] == [("2", "1")]
    assert found["metrics"]["max_wait"] == 0.0
    assert found["metrics"]["gpu_seconds_lost"] == 400 * 3600.0

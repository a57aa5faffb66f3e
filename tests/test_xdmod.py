"""The study of docs/xdmod.md gives the figures that the page states."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from makeway.config import parse_toml

ROOT = Path(__file__).parent.parent
NAME = "xdmod-pozidriv.sacct.gz"
FOLDERS = (os.environ.get("MAKEWAY_WORKLOADS", ""), str(ROOT.parent / "shared" / "workloads"))
LOG = next((Path(folder) / NAME for folder in FOLDERS if folder and (Path(folder) / NAME).exists()), None)

STUDY = ROOT / "examples" / "xdmod" / "study.py"
HEADER = (
    "JobID|User|Cluster|Partition|Submit|Eligible|Start|End|Elapsed|Timelimit|NNodes|NCPUS|State|NodeList"
)


def stated(mode: str) -> str:
    """Return the page's row of figures for a mode."""
    page = (ROOT / "docs" / "xdmod.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in page if line.startswith(f"| {mode} | ") and line.count("|") == 9)


def study(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the study."""
    given = [sys.executable, str(STUDY), *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, check=False)


def logged(job: int, partition: str, begin: str, end: str, state: str) -> str:
    """Return a row: a job of eight CPUs on a node of a cluster of our own, from minute to minute of one hour."""
    times = "|".join(f"2024-05-01T10:{minute}:00" for minute in (begin, begin, begin, end))
    elapsed = f"00:{int(end) - int(begin):02}:00"
    return f"{job}|ann|spock|{partition}|{times}|{elapsed}|01:00:00|1|8|{state}|vulcan1"


def test_the_study_takes_the_log_of_another_cluster(tmp_path: Path) -> None:
    """Partitions, sizes of nodes and scavengers are the log's: job 1 had to go for job 2, as Slurm decided."""
    log = tmp_path / "may.sacct"
    rows = [logged(1, "idle", "00", "20", "PREEMPTED"), logged(2, "paid", "20", "30", "COMPLETED")]
    log.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    done = study(log, "--mode", "pinned")
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == "2 jobs, 0 rows unusable, 1 really preempted"
    assert last == "| pinned | 1 | 1 | 1.00 | 1.00 | 1 | 1 | paid (1) |"
    written = tmp_path / "cluster.toml"
    assert study(log, "--write-config", written).returncode == 0
    config = parse_toml(written.read_text(encoding="utf-8"), "written")
    assert (config.cluster.name, config.node[0].name, config.node[0].cpus) == ("spock", "vulcan1", 8)
    assert {table.name: table.priority_tier for table in config.partition} == {"idle": 1, "paid": 2}


def test_the_study_says_what_it_needs(tmp_path: Path) -> None:
    """A log without preemptions, and a partition that no job used."""
    log = tmp_path / "may.sacct"
    log.write_text(f"{HEADER}\n{logged(1, 'idle', '00', '20', 'COMPLETED')}\n", encoding="utf-8")
    assert "no job ended as PREEMPTED" in study(log).stderr
    assert "no job was in partition 'idel'; did you mean 'idle'?" in study(log, "--scavenger", "idel").stderr


@pytest.mark.slow
@pytest.mark.skipif(LOG is None, reason=f"{NAME} is not here; MAKEWAY_WORKLOADS names its folder")
@pytest.mark.parametrize("mode", ["pinned", "submitted"])
def test_the_page_states_what_the_study_finds(mode: str) -> None:
    """The log reads whole, and victims, precision and recall are those of the page."""
    done = study(LOG, "--mode", mode)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "11704 jobs, 0 rows unusable, 86 really preempted"
    assert lines[-1] == stated(mode)

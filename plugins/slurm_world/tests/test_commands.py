"""What ``makeway slurm`` refuses before it asks the cluster."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from makeway.cli import cli
from makeway_slurm_world.driving.preconditions import left_to_slurm
from makeway_slurm_world.reading.jobs import Zone, live_jobs
from makeway_slurm_world.reading.records import job_lines, job_record

RECORDED = Path(__file__).parent / "data" / "22.05" / "job.txt"


def test_a_misspelt_command_is_refused_with_the_nearest() -> None:
    found = CliRunner().invoke(cli, ["slurm", "lokk"])
    assert found.exit_code == 2
    assert (
        "no command named 'lokk'; allowed: advise, drive, look, release, whom; did you mean 'look'?"
        in found.output
    )


def test_a_board_needs_its_folder(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[policy]\npreempt = "preempt/partition_prio"\n')
    board = tmp_path / "none" / "board.json"
    given = ["slurm", "drive", str(policy), "--nodes", "n1", "--board", str(board)]
    found = CliRunner().invoke(cli, given)
    assert found.exit_code == 2
    assert f"--board: {board}: its folder is not there, or cannot be written to" in found.output


def test_it_is_said_which_jobs_are_left_to_slurm() -> None:
    """Of the recorded jobs, 7 and 8 are one heterogeneous job that waits."""
    lines = job_lines(RECORDED.read_text(encoding="utf-8"))
    jobs = [job for line in lines for job in live_jobs(job_record(line), Zone(wall=0.0), 0.0)]
    told = left_to_slurm(jobs)
    assert len(told) == 1
    assert told[0].startswith("1 heterogeneous job waits, and Slurm starts it elsewhere: ")
    assert left_to_slurm(job for job in jobs if job.spec.het_id is None) == []

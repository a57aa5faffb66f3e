"""What ``makeway slurm`` refuses before it asks the cluster."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from makeway.cli import cli


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

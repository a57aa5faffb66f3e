"""What ``makeway slurm`` refuses before it asks the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli
from makeway_slurm_world.driving.preconditions import slow_backfill


def test_a_misspelt_command_is_refused_with_the_nearest() -> None:
    found = CliRunner().invoke(cli, ["slurm", "lokk"])
    assert found.exit_code == 2
    assert (
        "no command named 'lokk'; allowed: advise, drive, look, release, victims; did you mean 'look'?"
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


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("", []),
        ("batch_sched_delay=0,bf_interval=45", []),
        ("bf_interval=60,bf_max_job_test=500", ["60 s", "120 or more"]),
    ],
)
def test_a_slow_backfill_is_named(parameters: str, said: list[str]) -> None:
    """Slurm starts heterogeneous jobs at its backfill's turns alone; a start is taken back after 90 s."""
    told = slow_backfill(parameters, 90.0)
    assert len(told) == (1 if said else 0)
    assert all(word in told[0] for word in said)


def test_a_dry_release_does_not_wait_for_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints what there is to do now; a real one goes on trying, and tells each reason once."""
    said = "slurm_load_reservations error: Unable to contact slurm controller (connect failure)"
    for name in ("scontrol", "squeue"):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    given = ["slurm", "release", "--state", str(tmp_path / "state"), "--timeout"]
    found = CliRunner().invoke(cli, [*given, "60", "--dry-run"])
    assert found.exit_code == 1
    assert f"makeway: scontrol -a -o show res: {said}\n" in found.output
    monkeypatch.setattr("makeway_slurm_world.commands.release.PAUSE", 0.05)
    found = CliRunner().invoke(cli, [*given, "0.5"])
    assert found.exit_code == 1
    assert found.output.count(said) == 1
    assert "not all is given back yet; run it again" in found.output

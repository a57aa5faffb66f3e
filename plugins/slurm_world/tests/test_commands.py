"""The command ``makeway slurm`` names the nearest of its own commands where one is misspelt."""

from __future__ import annotations

from click.testing import CliRunner

from makeway.cli import cli


def test_a_misspelt_command_is_refused_with_the_nearest() -> None:
    found = CliRunner().invoke(cli, ["slurm", "lokk"])
    assert found.exit_code == 2
    assert (
        "no command named 'lokk'; allowed: advise, drive, look, release, whom; did you mean 'look'?"
        in found.output
    )

"""``makeway slurm``: what can be done with a running Slurm."""

from __future__ import annotations

import importlib

import click

from makeway_app.cli.group import Helpful

_OWN = {
    "look": "Show the running cluster as makeway sees it, and say what of it cannot be seen.",
    "advise": "Say what a policy would do now: who would start, who would make way, who waits and why.",
    "victims": "Say which jobs a job would displace now: a waiting one, or one described as for sbatch.",
    "drive": "Let another policy decide over some nodes, without a line in slurm.conf.",
    "release": "Give the nodes back to Slurm; each step can be repeated.",
}


class _Lazy(Helpful):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, in the order in which a site would dare to use them."""
        return list(_OWN)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _OWN:
            return None
        module = importlib.import_module(f"makeway_slurm_world.commands.{cmd_name}")
        found: click.Command = getattr(module, cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_OWN.items()))


@click.group(cls=_Lazy)
def slurm() -> None:
    """Look at a running Slurm, ask another policy for its advice, or let it decide over some nodes.

    `look`, `advise` and `victims` change nothing; `drive` and `release` print with --dry-run what they would do.

    Commands of Slurm's are found in PATH; SLURM_CONF counts as it does for them.
    """

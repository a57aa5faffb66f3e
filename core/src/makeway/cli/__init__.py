"""The command ``makeway``: replay, check, explain, verify, import, plugins.

========  ====================================================================
module    what it owns
========  ====================================================================
group     exit statuses, and what an error looks like
inputs    configurations of any kind, workloads, people's commands
changes   ``--set`` and ``--compare``: one key changed from the command line
outputs   files that appear whole or not at all
terminal  where tables, notes and progress go
========  ====================================================================

Every other module is one subcommand.
"""

from __future__ import annotations

import click

from makeway.cli.check import check
from makeway.cli.explain import explain
from makeway.cli.group import Guarded
from makeway.cli.importing import import_
from makeway.cli.plugins import plugins
from makeway.cli.replay import replay
from makeway.cli.verify import verify


@click.group(cls=Guarded, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="makeway", message="%(prog)s %(version)s")
def cli() -> None:
    """Replay, check and explain preemption and gang scheduling policies."""


for _command in (replay, check, explain, verify, import_, plugins):
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    cli(prog_name="makeway")


__all__ = ["cli", "main"]

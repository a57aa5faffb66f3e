"""The command ``makeway``: replay, check, import, plugins, completion.

========  ====================================================================
module    what it owns
========  ====================================================================
group     exit statuses, and what an error looks like
inputs    configurations of any kind, workloads, people's commands
changes   ``--set`` and ``--compare``: one key changed from the command line
brought   commands that other distributions bring
outputs   files that appear whole or not at all
terminal  where tables, notes and progress go
========  ====================================================================

Every other module is one subcommand.
"""

from __future__ import annotations

import click

from makeway import collector
from makeway_app.cli.group import Guarded, obey_signals

COMMANDS = {
    "replay": "makeway_app.cli.replay:replay",
    "check": "makeway_app.cli.check:check",
    "import": "makeway_app.cli.importing:import_",
    "plugins": "makeway_app.cli.plugins:plugins",
    "completion": "makeway_app.cli.completion:completion",
}
"""Own commands, in the order of the help; each is imported when it is called."""


@click.group(cls=Guarded, own=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="makeway", message="%(prog)s %(version)s")
def cli() -> None:
    """Replay, check and explain preemption and gang scheduling policies."""


def main() -> None:
    """Run the command line, and leave its memory to the system: walking through it once more takes long."""
    obey_signals()
    try:
        cli(prog_name="makeway")
    finally:
        collector.freeze()


__all__ = ["COMMANDS", "cli", "main"]

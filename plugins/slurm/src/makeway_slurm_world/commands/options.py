"""What several commands share."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from makeway_app.cli.terminal import note
from makeway_slurm_world.reading.look import Look, gather, look
from makeway_slurm_world.talking.runner import Asker, Reader

config_argument = click.argument("config", required=False, type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def look_now(asker: Asker | None = None, ours: str = "") -> Look:
    """Look at the running cluster.

    :param ours: a reservation that does not count.
    :raises SlurmError: it cannot be asked.
    """
    return look(gather(asker or Reader(), time.time()), ours)


def tell(found: Look, *, quiet: bool = False) -> None:
    """Say on standard error what could not be read, and what is not modelled."""
    note("warning", found.unread)
    if not quiet:
        note("note", found.warnings)
        note("note", found.matters)
        note("note", [f"{each.name} is set and not modelled" for each in found.unmodelled])


def put(data: Any) -> None:
    """Print JSON."""
    click.echo(json.dumps(data, indent=1, sort_keys=True))

"""``makeway import``: turn a foreign configuration into TOML."""

from __future__ import annotations

from pathlib import Path

import click

from makeway.config import dump_toml
from makeway.errors import ConfigError, Problem
from makeway_app.cli.inputs import load_config
from makeway_app.cli.listing import listed
from makeway_app.cli.options import accounting_option, nodes_option, release_option
from makeway_app.cli.outputs import STDOUT, Output, check_names
from makeway_app.cli.terminal import note


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", default=STDOUT, metavar="FILE", help="Write there, not to stdout.")
@release_option
@nodes_option
@accounting_option
def import_(
    file: Path, output: str, release: str | None, nodes: Path | None, accounting: tuple[Path, ...]
) -> None:
    """Turn the foreign configuration FILE (slurm.conf, ...) into TOML.

    What Slurm takes differently from how it is written, and what has no place in a makeway
    configuration, becomes a warning on standard error.
    """
    check_names((("--output", output),), [file, *accounting])
    loaded = load_config(file, release, nodes, accounting)
    if loaded.reader is None and not accounting:
        raise ConfigError(str(file), [Problem("", "it is TOML already; nothing to import")])
    names = ", ".join(path.name for path in (file, *accounting))
    with Output(output) as target:
        target.write(f"# From {names}, by `makeway import`.\n{dump_toml(loaded.config)}")
    note("warning", (*loaded.matters, *loaded.warnings, *loaded.refused))
    for line in listed(loaded.unmodelled, "not modelled, may matter"):
        click.echo(line, err=True)

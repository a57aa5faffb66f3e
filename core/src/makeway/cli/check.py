"""``makeway check``: find what is wrong with a configuration, or what it does unexpectedly."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from makeway.check import Finding
from makeway.check import check as find
from makeway.cli.group import FAILED
from makeway.cli.inputs import Loaded, check_plugins, commands_of, load_config
from makeway.cli.options import config_argument, release_option
from makeway.config import validate
from makeway.errors import ConfigError, MakewayError
from makeway.readers.lines import read_head
from makeway.readers.mapping import check_mapping
from makeway.readers.native import workload_of_tables
from makeway.report import count

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command()
@config_argument
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@release_option
def check(config: Path, strict: bool, release: str | None) -> None:
    """Say what Slurm would refuse, ignore or do unexpectedly in CONFIG.

    The exit status is 1 if there are errors (with --strict: or warnings).
    """
    read_head(config)  # what is no readable file has no findings
    findings = tuple(_findings(config, release))
    for finding in findings:
        click.echo(_line(finding))
    levels = [finding.level for finding in findings]
    click.echo(f"{config}: {_score(levels)}")
    if "error" in levels or (strict and "warning" in levels):
        raise click.exceptions.Exit(FAILED)


def _findings(path: Path, release: str | None) -> Iterator[Finding]:
    try:
        loaded = load_config(path, release, checked=False)
    except ConfigError as error:
        yield from _errors(error)
        return
    yield from find(loaded.config, loaded.warnings, loaded.places)
    with contextlib.suppress(ConfigError):  # wrong values are among the findings already
        validate(loaded.config, str(path))
        yield from _wider(loaded, path)


def _wider(loaded: Loaded, path: Path) -> Iterator[Finding]:
    """Find what a replay would stumble over beside the cluster and its policy."""
    config = loaded.config
    calls: tuple[Callable[[], Any], ...] = (
        lambda: check_plugins(config, str(path)),
        lambda: check_mapping(config),
        lambda: workload_of_tables(config.job, str(loaded.path)) if config.job else None,
        lambda: commands_of(config, str(loaded.path)),
    )
    for call in calls:
        try:
            call()
        except MakewayError as error:
            yield from _errors(error)


def _errors(error: MakewayError) -> Iterable[Finding]:
    if isinstance(error, ConfigError):
        return [Finding(level="error", where=p.where, message=p.message) for p in error.problems]
    return [Finding(level="error", where="", message=str(error))]


def _line(finding: Finding) -> str:
    head, _, rest = str(finding).partition(":")
    return f"{click.style(head, fg=_COLOURS[finding.level])}:{rest}"


def _score(levels: Sequence[str]) -> str:
    parts = [count(levels.count(level), level) for level in _COLOURS if level in levels]
    return ", ".join(parts) or "nothing to complain about"

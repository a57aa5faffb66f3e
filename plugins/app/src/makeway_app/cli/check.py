"""``makeway check``: find what is wrong with a configuration, or what it does unexpectedly."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from makeway import registry
from makeway.config import Config, build_cluster, validate
from makeway.errors import ConfigError, Finding, MakewayError, PluginError, Problem
from makeway.obstacle import counted
from makeway.readers.api import Loaded
from makeway.readers.lines import read_head
from makeway.readers.mapping import apply_mapping, check_mapping
from makeway.vendors import Vendor, named, vendors
from makeway_app.cli.changes import change_all
from makeway_app.cli.group import FAILED
from makeway_app.cli.inputs import check_plugins, load_config
from makeway_app.cli.listing import listed
from makeway_app.cli.options import (
    accounting_option,
    config_argument,
    nodes_option,
    release_option,
    set_option,
)
from makeway_app.cli.terminal import show
from makeway_app.readers.commands import commands_of
from makeway_app.readers.native import workload_of_tables
from makeway_app.readers.outages import outages_of
from makeway_app.report import terms_table, ways_table

_OURS = "world/local"
"""The world in which makeway's own daemon runs the jobs."""
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command()
@config_argument
@click.option(
    "--strict",
    is_flag=True,
    help="Let warnings fail too, and say what the release would refuse to start with as errors.",
)
@click.option("--all", "every", is_flag=True, help="List parameters without influence as well.")
@set_option
@release_option
@nodes_option
@accounting_option
def check(
    config: Path,
    strict: bool,
    every: bool,
    changes: tuple[str, ...],
    release: str | None,
    nodes: Path | None,
    accounting: tuple[Path, ...],
) -> None:
    """Say what the scheduler would refuse, ignore or do unexpectedly in CONFIG.

    The exit status is 1 if there are errors (with --strict: or warnings).
    """
    for path in (config, *accounting):
        read_head(path)  # what is no readable file has no findings
    findings: list[Finding] = []
    loaded: Loaded | None = None
    try:
        loaded = load_config(config, release, nodes, accounting, checked=False)
        if changes:
            loaded = attrs.evolve(loaded, config=change_all(loaded.config, changes, "--set"))
    except ConfigError as error:
        findings += _unread(error, nodes, accounting)
    else:
        findings += _remarks(loaded, strict=strict)
        findings += _findings(loaded)
    for finding in findings:
        click.echo(_line(finding))
    levels = [finding.level for finding in findings]
    if loaded is not None:
        _list(loaded, every=every)
        levels += ["warning"] * len(loaded.unmodelled)
        if "error" not in levels:
            _words(loaded.config)
    click.echo(f"{config}: {_score(levels)}")
    if "error" in levels or (strict and "warning" in levels):
        raise click.exceptions.Exit(FAILED)


def _words(config: Config) -> None:
    """Say what was put into the words of the policy, and which jobs make way for which."""
    translated, terms = registry.translated(config)
    tables = [*terms_table(terms, translated.policy.preempt), *ways_table(registry.ways(translated))]
    if tables:
        show(tables)
        click.echo("")


def _unread(error: ConfigError, nodes: Path | None, accounting: Sequence[Path]) -> Iterator[Finding]:
    for finding in _errors(error):
        beside = not finding.where and error.source in (str(nodes), *map(str, accounting))
        yield attrs.evolve(finding, where=error.source) if beside else finding


def _remarks(loaded: Loaded, *, strict: bool) -> Iterator[Finding]:
    """Yield what the reader of a foreign file had to say, what matters most first."""
    for text in (*loaded.matters, *loaded.warnings):
        yield Finding(level="warning", where="", message=text)
    for text in loaded.refused:
        yield Finding(level="error" if strict else "warning", where="", message=text)


def _list(loaded: Loaded, *, every: bool) -> None:
    """Print the parameters that are not modelled."""
    lines = [*listed(loaded.unmodelled, "not modelled, may matter")]
    if every:
        lines += listed(loaded.idle, "no influence here")
    for line in lines:
        head, _, rest = line.partition(":") if not line.startswith(" ") else ("", "", line)
        click.echo(f"{click.style(head, fg=_COLOURS['warning'])}:{rest}" if head else rest)


def _findings(loaded: Loaded) -> Iterator[Finding]:
    """Yield what the policy, and what stands beside it, object to."""
    wrong = tuple(_wrong_values(loaded.config))
    found = wrong or (*_policy(loaded), *_beside(loaded))
    said = set(loaded.warnings)
    for finding in found:
        placed = finding.at(loaded.places)
        if str(placed).removeprefix(f"{placed.level}: ") not in said:  # the reader may have said it
            yield placed


def _policy(loaded: Loaded) -> Iterator[Finding]:
    """Find what the scheduler that leads the run would object to, then what the plugins do."""
    config, _ = registry.translated(loaded.config)
    own: list[Finding] = []
    vendor: Vendor | None = None
    try:
        policies = check_plugins(config, str(loaded.path))
        own += policies.findings(config, build_cluster(config))
        vendor = policies.leader
    except MakewayError as error:
        own += _errors(error)
        vendor = _supposed(config)
    if vendor is not None and vendor.check is not None:
        # Its notes compare with the vendor's own manual, which says nothing to people whose daemon is makeway's.
        ours = config.world.name == _OURS
        yield from (each for each in vendor.check(config) if not (ours and each.level == "note"))
    yield from own


def _wrong_values(config: Config) -> Iterator[Finding]:
    """Yield what `validate` objects to."""
    try:
        validate(config, "config")
    except ConfigError as error:
        vendor = _supposed(config)
        sections = vendor.sections if vendor is not None else {}
        for problem in error.problems:
            section = sections.get(problem.where.rpartition(".")[2], "")
            yield Finding.of(problem, section=section)


def _supposed(config: Config) -> Vendor | None:
    """Return the vendor that leads as far as the plugins can be loaded; of none, the only one that checks anything."""
    for name in registry.names_in(config):
        try:
            said = registry.vendor_of(name, registry.load(name))
        except PluginError:
            continue
        if said:
            return named(said)
    checking = [vendor for vendor in vendors() if vendor.check is not None]
    return checking[0] if len(checking) == 1 else None


def _beside(loaded: Loaded) -> Iterator[Finding]:
    """Find what a replay or a daemon would stumble over beside the cluster and its policy."""
    config, source = loaded.config, str(loaded.path)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: check_mapping(config),
        lambda: _check_jobs(config, source) if config.job else None,
        lambda: commands_of(config, source),
        lambda: outages_of(config, source, 0.0),
        lambda: registry.scheduler_of(config.scheduler.type),
        lambda: registry.world_settings(config),
    )
    for call in calls:
        try:
            call()
        except MakewayError as error:
            yield from _errors(error)


def _check_jobs(config: Config, source: str) -> None:
    """Check the jobs in the configuration itself, and that each has a partition to go to.

    :raises ConfigError: with all problems.
    """
    workload = workload_of_tables(config.job, source)
    try:
        collections.deque(apply_mapping(workload, config).jobs, maxlen=0)
    except ConfigError:
        return  # the rules are wrong, which is told by itself
    if workload.rejected:
        raise ConfigError(source, [Problem(f"job {row.job}", row.reason) for row in workload.rejected])


def _errors(error: MakewayError) -> Iterable[Finding]:
    if isinstance(error, ConfigError):
        return list(map(Finding.of, error.problems))
    return [Finding(level="error", where="", message=str(error))]


def _line(finding: Finding) -> str:
    head, _, rest = str(finding).partition(":")
    return f"{click.style(head, fg=_COLOURS[finding.level])}:{rest}"


def _score(levels: Sequence[str]) -> str:
    parts = [counted(levels.count(level), level) for level in _COLOURS if level in levels]
    return ", ".join(parts) or "nothing to complain about"

"""``makeway plugins``: list what is installed, and what a configuration uses of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from makeway import registry
from makeway.errors import nearest
from makeway.registry import Described
from makeway_app.cli.inputs import load_config
from makeway_app.cli.loose import plugin_option
from makeway_app.cli.terminal import show
from makeway_app.report import table

_KIND_OF_HOOK = {
    "makeway_selector": "select",
    "makeway_preempt_candidates": "preempt",
    "makeway_gang": "gang",
    "makeway_priority": "priority",
    "makeway_search": "search",
    "makeway_queue": "order",
    "makeway_limits": "limit",
    "makeway_protect": "protect",
    "makeway_dialect": "reader",
}
"""The first that a plugin implements says what it is, unless its name does."""


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Mark what this configuration selects, and name what is missing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--check",
    "checked",
    multiple=True,
    metavar="NAME",
    help="Check this plugin alone: import, hooks, settings, and its answers in small built-in scenes "
    "(with the settings that --config has for it). Repeatable.",
)
@click.option(
    "--decision-time-limit",
    type=click.FloatRange(min=0.0, max=86400.0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With --check: what the import and each call may take; 0: any.",
)
@plugin_option
def plugins(
    config: Path | None,
    as_json: bool,
    checked: tuple[str, ...],
    decision_time_limit: float,
    plugin_files: Mapping[str, Path],
) -> None:
    """List the installed plugins with the hooks that they implement, or check some of them."""
    if checked:
        settings = {} if config is None else load_config(config).config.policy.settings
        check = registry.tool("probing", "--check").check_plugins_named
        if not check(checked, settings, decision_time_limit, plugin_files, as_json=as_json):
            raise click.exceptions.Exit(1)
        return
    if plugin_files:
        raise click.UsageError("--plugin goes with --check here")
    found = registry.described()
    selected = None if config is None else registry.names_in(load_config(config).config)
    if as_json:
        click.echo(json.dumps([_entry(each, selected) for each in found], indent=1))
    else:
        show([_table(found, selected)])
    missing = _missing(found, selected or ())
    for text in missing:
        click.echo(f"makeway: {text}", err=True)
    if missing:
        raise click.exceptions.Exit(1)


def kind_of(each: Described) -> str:
    """Return what a plugin is for: select, preempt, gang, ...; empty: it cannot be said."""
    prefix, slash, _ = each.installed.name.partition("/")
    if slash and prefix in registry.KINDS:
        return prefix
    kinds = (kind for hook, kind in _KIND_OF_HOOK.items() if hook in each.hooks)
    return next(kinds, "")


def _entry(each: Described, selected: Sequence[str] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": each.installed.name,
        "kind": kind_of(each),
        "distribution": each.installed.distribution,
        "version": each.installed.version,
        "hooks": list(each.hooks),
        "problem": each.problem,
    }
    if selected is not None:
        entry["selected"] = each.installed.name in selected
    return entry


def _table(found: Sequence[Described], selected: Sequence[str] | None) -> Any:
    headings = ["name", "kind", "distribution", "version"]
    headings += ["selected"] if selected is not None else []
    shown = table(*headings, "hooks", left=len(headings) + 1)
    for each in found:
        item = each.installed
        cells = [item.name, kind_of(each), item.distribution, item.version]
        if selected is not None:
            cells.append("yes" if item.name in selected else "")
        hooks = ", ".join(hook.removeprefix("makeway_") for hook in each.hooks)
        last = Text(f"cannot be used: {each.problem}", style="red") if each.problem else hooks
        shown.add_row(*cells, last)
    return shown


def _missing(found: Sequence[Described], selected: Sequence[str]) -> list[str]:
    """Say what the configuration selects and nothing offers."""
    names = [each.installed.name for each in found]
    return [
        f"no plugin named {name!r} is installed{nearest(name, names)}; {registry.how_to_get(name)}"
        for name in selected
        if name not in names
    ]

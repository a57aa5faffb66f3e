"""Show what ``makeway plugins --check NAME`` found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from makeway.hookspecs import CONTRACT_VERSION
from makeway_app.cli.loose import load_files
from makeway_app.cli.terminal import note, show
from makeway_app.report import table
from makeway_testing.probing.trial import Trial, try_out


def check_plugins_named(
    names: Sequence[str],
    settings: Mapping[str, Any],
    limit: float,
    files: Mapping[str, Path],
    *,
    as_json: bool,
) -> bool:
    """Look at each plugin, show what was found, and say whether all of them are without fault."""
    trials = [try_out(name, settings, limit, _opener(name, files)) for name in names]
    if as_json:
        click.echo(json.dumps([_entry(trial) for trial in trials], indent=1))
    for trial in trials:
        if not as_json:
            _show(trial)
        note("warning", trial.warnings)
        for fault in trial.faults:
            click.echo(f"makeway: {fault}", err=True)
    return not any(trial.faults for trial in trials)


def _opener(name: str, files: Mapping[str, Path]) -> Callable[[], Any] | None:
    return (lambda: load_files({name: files[name]})[name]) if name in files else None


def _entry(trial: Trial) -> dict[str, Any]:
    item = trial.installed
    return {
        "name": trial.name,
        "distribution": item.distribution if item else None,
        "version": item.version if item else None,
        "requires": item.wants if item else None,
        "contract": CONTRACT_VERSION,
        "hooks": {hook: trial.calls[hook] for hook in trial.hooks},
        "scenes": trial.scenes,
        "candidates_named": trial.named,
        "victims_taken": trial.victims,
        "not_put_to_the_test": dict(trial.untested),
        "warnings": trial.warnings,
        "faults": trial.faults,
    }


def _show(trial: Trial) -> None:
    item = trial.installed
    lines: list[Any] = []
    if item is None and trial.hooks:
        lines.append(f"plugin {trial.name!r}, not installed; this is contract {CONTRACT_VERSION}")
    if item is not None:
        wants = f", requires makeway {item.wants}" if item.wants else ""
        lines.append(f"{item}, module {item.target}{wants}; this is contract {CONTRACT_VERSION}")
    if trial.hooks and not (trial.faults and not trial.calls):
        scenes = f" in {trial.scenes} scenes" if trial.scenes else ""
        shown = table("hook", f"calls{scenes}", left=1)
        for hook in trial.hooks:
            shown.add_row(hook, f"{trial.calls[hook]:,}" if trial.calls[hook] else "not called for")
        lines.append(shown)
        if "makeway_preempt_candidates" in trial.hooks:
            lines.append(f"{trial.named:,} candidates named, {trial.victims:,} victims taken")
    lines += [f"not put to the test: {hook}: {why}" for hook, why in trial.untested]
    count = len(trial.faults)
    found = f"{count} fault{'s' * (count > 1)}" if count else "no fault found"
    if trial.untested and not count:
        found += " in what was put to the test"
    lines.append(f"{trial.name}: {found}")
    show(lines)

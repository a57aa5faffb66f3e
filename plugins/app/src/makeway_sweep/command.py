"""``makeway sweep``: one workload under every combination of values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.readers.api import Loaded, ReadOptions
from makeway_app.cli.asked import Asked
from makeway_app.cli.group import FAILED, UNUSABLE
from makeway_app.cli.inputs import check_plugins, open_jobs, with_actions
from makeway_app.cli.loose import load_files
from makeway_app.cli.nearer import overruled
from makeway_app.cli.options import workload_options
from makeway_app.cli.processes import cores
from makeway_app.cli.request import in_world
from makeway_app.cli.running import warmed_up
from makeway_app.cli.terminal import console, note, show
from makeway_app.readers.foreign import AdaptedWorkload
from makeway_app.readers.open import READERS, reader_for, readers_for
from makeway_sweep.page import page
from makeway_sweep.plan import (
    Axis,
    Variant,
    axes_of,
    digest_of,
    identified,
    product,
    reading_key,
    refusal,
    told,
)
from makeway_sweep.store import MANIFEST, Store
from makeway_sweep.summary import Row, on_front
from makeway_sweep.tables import as_csv, tables
from makeway_sweep.work import Outcome, Shared, Task, on_cores, on_dask


@attrs.frozen(kw_only=True)
class Sweep:
    """What is to be done."""

    axes: tuple[Axis, ...]
    variants: tuple[Variant, ...]
    left_out: tuple[str, ...]
    """Combinations that are no configuration, with the reason."""
    loaded: Loaded
    workload: Path | None
    format: str | None
    limit: int | None
    task: Task
    warm_up: tuple[Path, ...] = ()
    """Logs of the time before, from which usage at the start is worked out."""

    def label(self, variant: Variant) -> str:
        """Return what a run is called."""
        return told(self.axes, variant.values)


@click.command()
@workload_options
@click.option(
    "--vary",
    "vary",
    multiple=True,
    required=True,
    metavar="KEY=A,B,C",
    help="Values of a key, as for --set; one with commas in it is quoted. Repeatable: all combinations are run.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where results, table.csv and index.html go; a sweep that was broken off goes on there.",
)
@click.option("--workers", type=click.IntRange(1, 4096), help="Processes at once; else one per core.")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler listens there.")
@click.option("--records", is_flag=True, help="Keep the record of each run, for `makeway report`.")
@click.option("--skip-invalid", is_flag=True, help="Leave out combinations that are no configuration.")
@click.option(
    "--again", is_flag=True, help="Run what is done already once more, as after a change of a plugin."
)
def sweep(
    asked: Asked,
    vary: tuple[str, ...],
    folder: Path,
    workers: int | None,
    dask: str | None,
    records: bool,
    skip_invalid: bool,
    again: bool,
) -> None:
    """Replay WORKLOAD under every combination of values, side by side, and compare what comes of it.

    DIR gets one result per run as soon as it is done, then table.csv and index.html.  Started again, the same
    sweep does only what is missing; with more values, only what is new.
    """
    axes = axes_of(vary)
    if dask is not None and asked.plugin_files:
        text = "its files are on this computer only; install the plugin on the workers"
        raise ConfigError("--plugin", [Problem("", text)])
    loaded, files = asked.load(), asked.plugin_files
    base = with_actions(in_world(asked.changed(loaded.config), None), asked.actions)
    variants, left_out = _variants(base, axes, files, skip_invalid=skip_invalid)
    content = digest_of(asked.workload, asked.format, *(digest_of(path) for path in asked.warm_up))
    ready = identified(variants, content, files, asked.until, asked.limit)
    task = Task(until=asked.until, files=files, records=records)
    wanted = Sweep(
        axes=axes,
        variants=tuple(ready),
        left_out=tuple(left_out),
        loaded=loaded,
        workload=asked.workload,
        format=asked.format,
        limit=asked.limit,
        task=task,
        warm_up=asked.warm_up,
    )
    vain = [told for axis in axes for told in overruled(ready[0].config, "--vary", axis.key)]
    note("warning", [*loaded.warnings, *vain])
    with contextlib.closing(Store(folder)) as store:
        _manifest(wanted, store)
        failed = _run(wanted, store, workers or cores(), dask, again=again)
        _finish(wanted, store, failed)


def _variants(
    base: Config, axes: Sequence[Axis], plugins: Mapping[str, Path], *, skip_invalid: bool
) -> tuple[list[Variant], list[str]]:
    """Return the combinations that can be run, and those that cannot with the reason.

    :raises ConfigError: one cannot, and they are not to be left out; or none can.
    """
    planned = product(base, axes)
    loose = load_files(plugins)
    invalid, valid = dict(planned.invalid), []
    for variant in planned.variants:
        try:
            _check(variant.config, loose)
            valid.append(variant)
        except ConfigError as error:
            invalid[variant.values] = error
    if invalid and not (skip_invalid and valid):
        raise refusal(axes, invalid, len(invalid) + len(valid))
    reasons = [
        f"{told(axes, values)}: {'; '.join(map(str, each.problems))}" for values, each in invalid.items()
    ]
    return valid, reasons


def _check(config: Config, loose: Mapping[str, Any]) -> None:
    if config.world.real:
        text = f"got {config.world.name!r}; allowed: world/simulated, for sweeps do not run in real time"
        raise ConfigError("--vary", [Problem("world.name", text)])
    check_plugins(config, "--vary", loose)


# ---------------------------------------------------------------------------------------- running
def _run(wanted: Sweep, store: Store, workers: int, dask: str | None, *, again: bool) -> dict[str, str]:
    """Do what is missing; return what failed, by identity."""
    missing = [each for each in wanted.variants if again or not _done(wanted, store, each)]
    # Two combinations may be one and the same configuration.
    missing = list({each.identity: each for each in missing}.values())
    done = len({each.identity for each in wanted.variants}) - len(missing)
    if done:
        note("note", [f"{done:,} of {done + len(missing):,} runs are in {store.folder} already"])
    if not missing:
        return {}
    workloads, keys = _read(wanted, missing)
    missing = list(_warmed(wanted, missing, workloads, keys))
    jobs = [(each, wanted.label(each), keys[each.identity]) for each in missing]
    if dask is not None:
        outcomes = on_dask(jobs, workloads, wanted.task, dask)
    else:
        outcomes = on_cores(jobs, workloads, wanted.task, workers)
    labels = {each.identity: wanted.label(each) for each in missing}
    failed: dict[str, str] = {}
    with contextlib.closing(outcomes), _progress(len(missing)) as advance:  # type: ignore[type-var]
        for outcome in outcomes:
            if outcome.metrics is None:
                failed[outcome.identity] = outcome.error
            else:
                _keep(store, outcome, labels[outcome.identity])
            advance()
    return failed


def _done(wanted: Sweep, store: Store, variant: Variant) -> bool:
    if store.load(variant.identity) is None:
        return False
    return not wanted.task.records or store.has_record(variant.identity)


def _keep(store: Store, outcome: Outcome, label: str) -> None:
    if outcome.record is not None:
        store.keep_record(outcome.identity, outcome.record)
    result = {"label": label, "metrics": dict(outcome.metrics or {}), "jobs_never_run": outcome.never}
    store.keep(outcome.identity, result)


def _read(wanted: Sweep, variants: Sequence[Variant]) -> tuple[dict[str, Shared], dict[str, str]]:
    """Read the workload once per way of reading it; return these, and which is whose."""
    alike = wanted.workload is None or _read_alike(wanted.workload, wanted.format)
    found: dict[str, Shared] = {}
    keys: dict[str, str] = {}
    for variant in variants:
        if variant.config.workload.warm:
            text = "got true; allowed: false, or replay --compare, which begins with the jobs that ran"
            raise ConfigError("workload.warm", [Problem("", text)])
        key = keys[variant.identity] = reading_key(variant.config, alike=alike)
        if key in found:
            continue
        options = ReadOptions(config=variant.config, limit=wanted.limit)
        opened = open_jobs(wanted.loaded, wanted.workload, options, wanted.format)
        jobs = tuple(opened.jobs)
        if not found:
            note("note", opened.notes)
            if opened.commands is not None:
                note("note", ["what people did during the run of the workload is left out"])
        found[key] = Shared(
            name=opened.name, jobs=jobs, epoch=opened.start_wall, unusable=opened.rejected_count
        )
    return found, keys


def _warmed(
    wanted: Sweep, variants: Sequence[Variant], workloads: Mapping[str, Shared], keys: Mapping[str, str]
) -> Iterator[Variant]:
    """Yield the variants with what each user had used at the start, worked out under each one's own rules."""
    told_before: set[str] = set()
    for variant in variants:
        start = workloads[keys[variant.identity]].epoch
        config, notes = warmed_up(variant.config, wanted.warm_up, start)
        note("note", [text for text in notes if text not in told_before])
        told_before.update(notes)
        yield attrs.evolve(variant, config=config)


def _read_alike(path: Path, format: str | None) -> bool:
    """Whether what reads the workload looks only at that part of a configuration which `reading_key` names."""
    readers, _ = readers_for(path, format)
    reader = reader_for(path, format, readers)
    return (
        reader in READERS
        or isinstance(reader, AdaptedWorkload)
        or getattr(reader, "reads_machine_only", False)
    )


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show how many runs are done, and the time left; only on a terminal."""
    target = console(err=True)
    if not target.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs, left:"))
    with Progress(*columns, TimeRemainingColumn(), console=target, transient=True) as shown:
        task = shown.add_task("sweeping", total=total)
        yield lambda: shown.advance(task)


# ---------------------------------------------------------------------------------------- results
def _manifest(wanted: Sweep, store: Store) -> None:
    """Write down what belongs to the sweep: values and identity of each run."""
    import json

    content = {
        "version": 1,
        "workload": wanted.workload.name if wanted.workload else wanted.loaded.path.name,
        "vary": [{"key": axis.key, "values": list(axis.values)} for axis in wanted.axes],
        "runs": [{"run": each.identity, "values": list(each.values)} for each in wanted.variants],
        "left_out": list(wanted.left_out),
    }
    store.write(store.folder / MANIFEST, [json.dumps(content, indent=1, ensure_ascii=False), "\n"])


def _finish(wanted: Sweep, store: Store, failed: Mapping[str, str]) -> None:
    """Write table and page, show the summary, and choose the exit status."""
    rows, never = [], 0
    for number, each in enumerate(wanted.variants, 1):
        result = None if each.identity in failed else store.load(each.identity)
        if result is not None:
            never = max(never, result["jobs_never_run"])
            rows.append(
                Row(
                    number=number,
                    values=each.values,
                    identity=each.identity,
                    metrics=result["metrics"],
                    own=each.own,
                )
            )
    rows = on_front(rows)
    labels = {each.identity: wanted.label(each) for each in wanted.variants}
    errors = [f"{labels[identity]}: {text}" for identity, text in failed.items()]
    store.write(store.folder / "table.csv", [as_csv(wanted.axes, rows)])
    name = (wanted.workload or wanted.loaded.path).name
    title = f"{name}: {', '.join(axis.key for axis in wanted.axes)}"
    store.write(store.folder / "index.html", [page(wanted.axes, rows, title, [*errors, *wanted.left_out])])
    if wanted.left_out:
        note("warning", [f"left out, no configuration: {text}" for text in wanted.left_out])
    if rows:
        show(tables(wanted.axes, rows))
    note("note", [f"{store.folder}: {len(rows):,} runs; index.html compares them, table.csv has all figures"])
    for text in errors:
        click.echo(f"makeway: failed: {text}", err=True)
    if errors:
        raise click.exceptions.Exit(FAILED)
    unusable = max((row.metrics["rows_unusable"] for row in rows), default=0)
    if never:
        text = f"done, but up to {never:,} jobs can never run here, and {unusable:,} rows are unusable"
        click.echo(f"makeway: {text}; makeway replay lists them", err=True)
        raise click.exceptions.Exit(UNUSABLE)

"""``makeway journal``: look into the journal of a live run, and drop what is old."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import attrs
import click

from makeway.config import Config, JournalTable, parse_toml
from makeway.escapes import printable
from makeway.obstacle import counted
from makeway_app.cli.group import Helpful
from makeway_live.compaction import compact as compact_file
from makeway_live.contents import Contents, contents, lines

_MEBIBYTE = 1 << 20
_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
_json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


@click.group(cls=Helpful)
def journal() -> None:
    """Show what the journal of a live run holds, or drop what is old.

    A journal is the file journal.db in the state directory of `makeway up` and `makeway slurm drive`. `makeway replay`
    and `makeway explain` take it as a workload.
    """


@journal.command()
@_file
@click.option(
    "-n",
    "--last",
    type=click.IntRange(0, 1_000_000),
    default=20,
    show_default=True,
    help="How many lines of the record to show.",
)
@click.option(
    "--job", metavar="ID", help="Only lines about this job, and those in which it displaced another."
)
@_json_option
def show(file: Path, last: int, job: str | None, as_json: bool) -> None:
    """Show what FILE holds, and the last lines of its record.

    Only reads; a daemon may go on writing.
    """
    found = contents(file)
    told = lines(file, last, job)
    if as_json:
        click.echo(json.dumps({**attrs.asdict(found), "lines": told}, indent=1, sort_keys=True))
        return
    for line in _summary(found):
        click.echo(printable(line))
    for each in told:
        click.echo(printable(_line(each)))


@journal.command()
@_file
@click.option(
    "--keep-steps-for", type=click.FloatRange(min=0), metavar="SECONDS", help="Keep steps that are younger."
)
@click.option("--keep-steps", type=click.IntRange(min=1), metavar="N", help="Keep the last N steps at most.")
@click.option(
    "--keep-jobs-for",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Keep jobs that ended no longer ago.",
)
@click.option(
    "--keep-jobs", type=click.IntRange(min=1), metavar="N", help="Keep the last N ended jobs at most."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
def compact(file: Path, dry_run: bool, **rules: Any) -> None:
    """Drop old steps and jobs from FILE, and give the space back.

    What no option says is as in [world.journal] of the configuration that FILE holds. Jobs that have not ended stay,
    and so does the last step. A journal that a daemon or anybody else has open is refused.
    """
    table = attrs.evolve(_rule(file), **{key: value for key, value in rules.items() if value is not None})
    before = file.stat().st_size
    dropped = compact_file(file, table, time.time(), dry=dry_run)
    verb = "would drop" if dry_run else "dropped"
    click.echo(f"{verb} {counted(dropped.steps, 'step')} and {counted(dropped.jobs, 'job')}")
    if not dry_run:
        click.echo(f"{_size(before)} before, {_size(file.stat().st_size)} now")


def _rule(file: Path) -> JournalTable:
    """Return what the configuration in a journal says of it."""
    text = contents(file).config
    return JournalTable() if text is None else parse_toml(text, str(file)).world.journal


# -------------------------------------------------------------------------------------------- words
def _summary(found: Contents) -> list[str]:
    told = [f"{found.file}: {_size(found.bytes)}, version {found.version}"]
    if not found.steps:
        return [*told, "nothing was ever written"]
    told.append(
        f"steps: {found.steps:,} kept, {found.first_step:,} to {found.last_step:,}, "
        f"{_when(found.first_at)} to {_when(found.last_at)}"
    )
    if found.config is not None:
        config: Config = parse_toml(found.config, found.file)
        mode = ",".join(config.policy.preempt_mode)
        told.append(f"policy: {config.policy.select}, {config.policy.preempt} ({mode})")
    jobs = ", ".join(f"{number:,} {state}" for state, number in found.jobs.items())
    told.append(f"jobs: {jobs or 'none'}")
    told.append(f"actions whose outcome is not known: {found.open_actions:,}")
    return told


def _line(line: dict[str, Any]) -> str:
    rest = {key: value for key, value in line.items() if key not in ("at", "kind", "job")}
    words = " ".join(f"{key}={value}" for key, value in rest.items() if value not in ("", None))
    about = f" job {line['job']}" if line["job"] else ""
    return f"{_when(line['at'])}{about} {line['kind']} {words}".rstrip()


def _when(at: float | None) -> str:
    return "?" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _size(size: int) -> str:
    return f"{size / _MEBIBYTE:,.1f} MiB"

"""``makeway verify``: hold replays against recordings of a real scheduler."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import click

from makeway.errors import ConfigError, Problem
from makeway.foreign import ScenarioReader
from makeway_app.cli.group import FAILED
from makeway_app.cli.inputs import guarded
from makeway_app.cli.terminal import console
from makeway_verify import recordings
from makeway_verify.verdicts import Outcome, Verdict, print_score

_GOOD = (Outcome.AGREES, Outcome.SKIPPED)


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    help="The recording, or the folder of recordings, of scenarios that do not hold it themselves.",
)
@click.option("--only", metavar="GLOB", help="Of a folder, only scenarios so named: 'lin_*'.")
@click.option("--skip-missing", is_flag=True, help="Skip scenarios whose plugins are missing.")
def verify(scenario: Path, recorded: Path | None, only: str | None, skip_missing: bool) -> None:
    """Replay SCENARIO, a file or a folder, and compare with what a real scheduler did.

    Recordings that hold their scenario need nothing else; other scenarios need --recorded.
    Of a folder without recordings, those in its folders results* are taken.
    The exit status is 1 if anything differs.
    """
    if recorded is None:
        verdicts = recordings.verdicts(scenario, only, skip_missing=skip_missing)
    else:
        pairs = _pairs(scenario, recorded, only)
        readers = recordings.scenario_readers(scenario)
        verdicts = [_verdict(readers, *pair, skip_missing=skip_missing) for pair in pairs]
    print_score(verdicts, console())
    if any(verdict.outcome not in _GOOD for verdict in verdicts):
        raise click.exceptions.Exit(FAILED)


def _pairs(scenario: Path, recorded: Path, only: str | None) -> list[tuple[Path, Path]]:
    """Return scenarios, each with where its recording would be.

    :raises ConfigError: there is none.
    """
    if not scenario.is_dir():
        return [(scenario, _recording_of(scenario, recorded))]
    if not recorded.is_dir():
        problem = Problem("", "no such folder; a folder of scenarios needs a folder of recordings")
        raise ConfigError(str(recorded), [problem])
    paths = sorted(scenario.glob("*.toml"))
    kept = [path for path in paths if only is None or fnmatch.fnmatchcase(path.stem, only)]
    if not kept:
        of = f" like {only!r} among {len(paths)}" if only is not None else ""
        raise ConfigError(str(scenario), [Problem("", f"no scenarios{of} (*.toml)")])
    return [(path, recorded / f"{path.stem}.json") for path in kept]


def _recording_of(scenario: Path, recorded: Path) -> Path:
    found = recorded / f"{scenario.stem}.json" if recorded.is_dir() else recorded
    if scenario.exists() and not found.exists():
        raise ConfigError(str(found), [Problem("", "no such file")])
    return found


def _verdict(
    readers: Sequence[ScenarioReader], scenario: Path, recorded: Path, *, skip_missing: bool
) -> Verdict:
    reader = recordings.reader_of(scenario, readers)
    verdict: Verdict = guarded(
        reader.name, lambda: reader.verdict(str(scenario), str(recorded), skip_missing=skip_missing)
    )
    return verdict

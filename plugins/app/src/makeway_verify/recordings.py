"""Replay recordings of other schedulers, or ask what they asked; the readers of plugins know them, and judge."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import attrs
import click

from makeway import registry
from makeway.config import Config, validate
from makeway.errors import ConfigError, MakewayError, Problem
from makeway.foreign import (
    Judgement,
    Played,
    RecordedAnswer,
    RecordedScenario,
    RecordedVerdict,
    RecordingReader,
    ScenarioReader,
)
from makeway.readers.lines import read_head
from makeway.settings import structure
from makeway_app.cli.inputs import guarded
from makeway_app.cli.terminal import note
from makeway_app.readers.commands import commands_of
from makeway_app.readers.foreign import FileSource
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_verify.verdicts import Aspect, Comparison, Difference, Outcome, Verdict

_ELSEWHERE = "scenarios whose recording is a file of its own need --recorded"


def scenario_readers(path: Path) -> list[ScenarioReader]:
    """Return the readers that play scenarios whose recordings are files of their own.

    :raises ConfigError: none does.
    """
    offered, failed = registry.offered("recordings")
    note("warning", map(str, failed))
    readers = [reader for reader in offered if hasattr(reader, "verdict")]
    if not readers:
        raise ConfigError(str(path), [Problem("", registry.missing("--recorded"))])
    return readers


def reader_of(path: Path, readers: Sequence[ScenarioReader]) -> ScenarioReader:
    """Return the reader that plays one scenario.

    :raises ConfigError: it cannot be read, or no reader knows it.
    """
    head = read_head(path)
    for reader in readers:
        if guarded(reader.name, lambda reader=reader: reader.claims(path.name, head)):
            return reader
    names = ", ".join(reader.name for reader in readers)
    raise ConfigError(str(path), [Problem("", f"not a scenario of a known kind; known: {names}")])


def verdicts(path: Path, only: str | None, *, skip_missing: bool) -> list[Verdict]:
    """Judge every recording of `path`, a file or a folder, that a plugin knows.

    Where a folder holds none, those in its folders ``results*`` are meant.

    :raises UsageError: no plugin knows any.
    """
    offered, failed = registry.offered("recordings")
    note("warning", map(str, failed))
    offered = [reader for reader in offered if hasattr(reader, "recorded")]
    known = _known([path], only, offered)
    if not known and path.is_dir():
        known = _known(sorted(filter(Path.is_dir, path.glob("results*"))), only, offered)
    found = [_verdict(file, reader, skip_missing=skip_missing) for file, reader in known]
    if not found:
        raise click.UsageError(f"no installed plugin knows a recording in {path}; {_ELSEWHERE}")
    return found


def _known(
    paths: Sequence[Path], only: str | None, readers: list[RecordingReader]
) -> list[tuple[Path, RecordingReader]]:
    """Return the recordings among files, and in folders, each with who reads it."""
    found = []
    for path in paths:
        for file in sorted(filter(Path.is_file, path.iterdir())) if path.is_dir() else [path]:
            if only is None or fnmatch.fnmatchcase(file.stem, only):
                reader = _reader_of(file, readers)
                if reader is not None:
                    found.append((file, reader))
    return found


def _reader_of(path: Path, readers: list[RecordingReader]) -> RecordingReader | None:
    if not readers and path.exists():
        return None
    head = read_head(path)
    for reader in readers:
        if guarded(reader.name, lambda reader=reader: reader.claims(path.name, head)):
            return reader
    return None


def _verdict(path: Path, reader: RecordingReader, *, skip_missing: bool) -> Verdict:
    recorded = guarded(reader.name, lambda: reader.recorded(FileSource(path)))
    if hasattr(recorded, "verdict"):
        judged = cast(RecordedVerdict, recorded)
        found: Verdict = guarded(reader.name, lambda: judged.verdict(skip_missing=skip_missing))
        return found
    about = Verdict(name=recorded.name, outcome=Outcome.SKIPPED, release=recorded.release)
    if recorded.unmodelled:
        return attrs.evolve(about, why=f"not modelled: {', '.join(recorded.unmodelled)}")
    if hasattr(recorded, "answered"):
        return _judged(about, guarded(reader.name, cast(RecordedAnswer, recorded).answered))
    scenario = cast(RecordedScenario, recorded)
    config = structure({**scenario.tables, "action": list(scenario.commands)}, Config, str(path))
    validate(config, str(path))
    absent = registry.missing_to_play(config)
    if absent:
        outcome = Outcome.SKIPPED if skip_missing else Outcome.FAILED
        return attrs.evolve(about, outcome=outcome, why=absent)
    try:
        played = _play(config, scenario, str(path))
    except MakewayError as error:
        why = f"{type(error).__name__}: {error}"
        return attrs.evolve(about, outcome=Outcome.FAILED, why=why)
    return _judged(about, guarded(reader.name, lambda: scenario.judge(played)))


def _play(config: Config, scenario: RecordedScenario, source: str) -> Played:
    most = 0

    def stepped(engine: Engine) -> None:
        nonlocal most
        held = Counter(
            index
            for job in engine.ledger.active
            if job.allocation is not None
            for index in job.allocation.node_indices
        )
        most = max(most, *held.values(), 0)

    options = Options(until=scenario.until, after_step=stepped)
    run = replay(config, scenario.jobs, commands_of(config, source), options)
    return Played(summary=run.summary(), most_jobs_on_a_node=most)


def _judged(about: Verdict, judgement: Judgement) -> Verdict:
    if judgement.not_imitated:
        return attrs.evolve(about, why=judgement.not_imitated)
    differences = tuple(
        Difference(Aspect.STATES, job, at, recorded, replayed)
        for job, at, recorded, replayed in judgement.differences
    )
    outcome = Outcome.DIFFERS if differences else Outcome.AGREES
    return attrs.evolve(about, outcome=outcome, comparison=Comparison(differences=differences))

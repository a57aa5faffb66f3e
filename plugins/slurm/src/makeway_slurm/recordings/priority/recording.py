"""Read a recording about priorities and limits: its scenario, and what was observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.bounds import json_of
from makeway.errors import ConfigError, Problem
from makeway.model import Seconds
from makeway.readers.lines import read_text
from makeway.settings import structure
from makeway_slurm.readers.values import parse_time
from makeway_slurm.recordings.entries import noted

FORMAT = 1


@attrs.frozen(kw_only=True)
class Change:
    """A job as it stood from one look on."""

    t: Seconds
    state: str
    reason: str | None = None
    priority: int = 0
    nodes: str = ""


@attrs.frozen(kw_only=True)
class Seen:
    """What was seen of one job."""

    at: Seconds | None = None
    submitted: Seconds | None = None
    job_id: int | None = None
    changes: tuple[Change, ...] = ()
    last: Mapping[str, Any] = attrs.field(factory=dict)
    refused: str | None = None
    said: str | None = None

    @property
    def time_limit(self) -> Seconds | None:
        """Return the last time limit that was shown; None: none, or still that of a partition.

        :raises ValueError: it is no time.
        """
        told = self.last.get("TimeLimit")
        return None if told in (None, "Partition_Limit") else parse_time(str(told))


@attrs.frozen(kw_only=True)
class Table:
    """What a command printed."""

    at: Seconds
    what: str
    taken: Seconds
    rows: tuple[Mapping[str, str], ...] = ()
    text: str = ""


@attrs.frozen(kw_only=True)
class Recording:
    """One result file."""

    slurm_version: str
    scenario: Mapping[str, Any]
    observed_seconds: Seconds
    jobs: Mapping[str, Seen]
    tables: tuple[Table, ...] = ()
    actions: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    looks: Mapping[str, tuple[Seconds, Seconds]] = attrs.field(factory=dict)
    """The first and the last look of ``main`` and ``backfill``, each about a second after the other; none: an older
    recording, that does not say."""
    minute_phase: Seconds | None = None
    """How many seconds past a full minute the wall clock stood at second 0; None: an older recording, that does not
    say."""
    format: int = FORMAT

    @property
    def release(self) -> str:
        """Return the release as ``[scheduler] slurm_release`` has it."""
        return self.slurm_version.partition("-")[0]

    @property
    def decays(self) -> Sequence[Seconds]:
        """Return the instants of the recalculations."""
        return [float(event["t"]) for event in self.events if event.get("what") == "decay"]

    def submitted(self, name: str, at: Seconds) -> Seconds:
        """Return when a job came, as the controller's log says, or else the runner.

        :param at: when it should have come.
        """
        own = (event for event in self.events if event.get("what") == "taken")
        taken = [float(event["t"]) for event in own if str(event.get("job", "")).partition("[")[0] == name]
        seen = self.jobs.get(name)
        return (
            taken[0] if taken else seen.submitted if seen is not None and seen.submitted is not None else at
        )


def looks_so(text: str) -> bool:
    """Whether a result is of this kind: it says for how many seconds was observed, beside its own scenario."""
    return '"observed_seconds"' in text and '"slurm_version"' in text


def read(path: Path) -> Recording:
    """Read a result file.

    :raises ConfigError: it cannot be read, or is no recording of this kind.
    """
    return parse(read_text(path), str(path))


def parse(text: str, source: str) -> Recording:
    """Read the text of a result file.

    :param source: how messages call the file.
    :raises ConfigError: it is no recording of this kind.
    """
    data = json_of(text, source)
    if not isinstance(data, dict):
        raise ConfigError(source, [Problem("", "not a recording: the outermost value is no table")])
    for table in data.get("tables", ()):
        if isinstance(table, dict) and table.get("text") is None:
            table.pop("text", None)
    recording = structure(data, Recording, source)
    if recording.format != FORMAT:
        problem = Problem("format", f"got {recording.format}; allowed: {FORMAT}")
        raise ConfigError(source, [problem])
    problems: list[Problem] = []
    for name, seen in recording.jobs.items():
        noted(problems, f"jobs.{name}.last.TimeLimit", lambda seen=seen: seen.time_limit)
    if problems:
        raise ConfigError(source, problems)
    return recording

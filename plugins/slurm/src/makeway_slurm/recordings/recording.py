"""Read a recording: what a real Slurm did with a scenario (the oracle's result format, JSON).

Only the shape is checked here; `makeway_slurm.recordings.verify` compares, and
`makeway_slurm.recordings.scenario` takes the delays that the recording ran with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.bounds import json_of
from makeway.errors import ConfigError, Problem
from makeway.model import Seconds
from makeway.readers.lines import read_text
from makeway.settings import structure

FORMAT = 1
"""The only version of the format that there is."""


@attrs.frozen(kw_only=True)
class RecordedInterval:
    """A stretch of time in which nothing about a job changed."""

    state: str
    start: Seconds
    end: Seconds
    nodes: tuple[str, ...] = ()
    cpu_ids: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    gres: Mapping[str, str] = attrs.field(factory=dict)
    """Node -> counted resources there, as scontrol shows them: ``gpu:2(IDX:0-1)``."""
    restart: int = 0
    """How often the job had been requeued by then."""
    reasons: tuple[Any, ...] = ()
    """Pairs of an offset and a pending reason."""


@attrs.frozen(kw_only=True)
class RecordedJob:
    """What happened to one job."""

    at: Seconds
    """Offset of the submission as planned."""
    submitted: Seconds
    answered: Seconds
    job_id: int | None = None
    """None: it was refused."""
    intervals: tuple[RecordedInterval, ...] = ()
    final_state: str | None = None
    """None: it was never seen."""
    restarts: int = 0
    run_time: str | None = None
    run_seconds: tuple[Seconds, ...] = ()
    exit_code: str | None = None
    refused: str | None = None
    """What sbatch said; None: the job was accepted."""


@attrs.frozen(kw_only=True)
class Timeslice:
    """The rhythm of the timeslicer."""

    seconds: Seconds
    ticks: tuple[Seconds, ...] = ()


@attrs.frozen(kw_only=True)
class Phases:
    """Where the controller's clocks stood, as offsets from the start of the observation."""

    second: Seconds
    """First full second of the clock by which Slurm counts."""
    looks: tuple[Seconds, ...] = ()
    """Passes of the main scheduler."""
    backfills: tuple[Seconds, ...] = ()
    """Passes of the backfill scheduler."""
    estimator: Seconds | None = None
    """First run of the thread in which sched/builtin estimates starts; None: not recorded, or another scheduler."""


@attrs.frozen(kw_only=True)
class Recording:
    """One result file."""

    scenario: str
    slurm_version: str
    observed: Seconds
    """Length of the observation."""
    format: int = FORMAT
    timeslice: Timeslice | None = None
    """None: there was no gang scheduling."""
    phases: Phases | None = None
    """None: they were not recorded."""
    requeue_delay: Seconds = 6.0
    preempt_retry: Seconds = 3.0
    runtime_trim: Seconds = 0.15
    suspend_nap_removed: bool = True
    sample_period: Seconds = 0.3
    suspect: Mapping[str, Seconds] = attrs.field(factory=dict)
    jobs: Mapping[str, RecordedJob] = attrs.field(factory=dict)
    actions: tuple[Any, ...] = ()
    squeue: tuple[Any, ...] = ()
    responding: Mapping[str, tuple[Seconds, ...]] = attrs.field(factory=dict)
    """Node -> when it answered again after it had been down."""
    events: tuple[Any, ...] = ()

    @property
    def release(self) -> str:
        """Return the release as `makeway_slurm_rules.rules` takes it: 22.05.8, and 26.11 for a 26.11.0-0rc1."""
        number, _, candidate = self.slurm_version.partition("-")
        return ".".join(number.split(".")[:2]) if candidate else number


def read_recording(path: Path) -> Recording:
    """Read a result file.

    :raises ConfigError: it cannot be read, is no JSON, or is not in the oracle's format.
    """
    return parse_recording(json_of(read_text(path), str(path)), str(path))


def parse_recording(data: Any, source: str = "recording") -> Recording:
    """Check the shape of a recording.

    :raises ConfigError: with all that is wrong.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(source, [Problem("", "not a recording: the outermost value is no table")])
    recording = structure(data, Recording, source)
    if recording.format != FORMAT:
        problem = Problem("format", f"got {recording.format}; allowed: {FORMAT}")
        raise ConfigError(source, [problem])
    return recording

"""Hold the jobs of a log as arrays: whose they are, and into which days the log is cut."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec, Seconds
from makeway.obstacle import counted
from makeway_app.judged import LEAST, UNITS

KINDS = ("partition", "qos", "account", "user")
"""By what jobs are grouped."""
WEEK: Seconds = 7 * 86400.0
DAY: Seconds = 86400.0
Array = Any
"""An array of numpy."""


@attrs.frozen
class Group:
    """Some jobs of the log: those of a partition, a QOS, an account or a user."""

    kind: str
    name: str


@attrs.define(eq=False, slots=False)
class Log:
    """The jobs that are replayed."""

    jobs: tuple[JobSpec, ...]
    default: str
    """Partition of jobs that name none."""
    unit: str = ""
    """What the log is cut into: days, or hours where it is short."""
    length: Seconds = 0.0
    """Of such a part."""
    parts: int = 0
    """How many there are from the first submission to the last."""
    at: dict[str, int] = attrs.field(factory=dict)
    """Job -> its place in arrays."""
    part: Array = None
    """Of each job: in which part it was submitted."""

    @property
    def days(self) -> float:
        """How long the log is."""
        return self.parts * self.length / DAY

    @property
    def tried(self) -> int:
        """On how many parts candidates are tried: those of a week, or half of a shorter log."""
        return min(self.parts // 2, round(WEEK / self.length))

    @property
    def stretch(self) -> int:
        """Of how many parts it is said what they may bring: those of a week, or a third of a shorter log."""
        return min(self.parts // 3, round(WEEK / self.length))

    @property
    def stretches(self) -> str:
        """What these are called."""
        week = self.stretch * self.length == WEEK
        return "weeks" if week else f"stretches of {counted(self.stretch, self.unit)}"

    @functools.cached_property
    def _names(self) -> dict[str, list[str]]:
        return {kind: [_name(spec, kind, self.default) for spec in self.jobs] for kind in KINDS}

    def names(self, kind: str) -> list[str]:
        """Return the groups of a kind, those with most jobs first."""
        jobs_of: dict[str, int] = {}
        for name in self._names[kind]:
            if name:
                jobs_of[name] = jobs_of.get(name, 0) + 1
        return sorted(jobs_of, key=lambda name: (-jobs_of[name], name))

    def mask(self, group: Group | None) -> Array:
        """Return which jobs are of a group."""
        if group is None:
            return np.ones(len(self.jobs), dtype=bool)
        return self._masks(group)

    @functools.cache  # noqa: B019 - there is one log in a process
    def _masks(self, group: Group) -> Array:
        return np.array([name == group.name for name in self._names[group.kind]], dtype=bool)


def _name(spec: JobSpec, kind: str, default: str) -> str:
    if kind == "partition":
        return spec.partitions[0] if spec.partitions else default
    return str(getattr(spec, kind) or "")


def log_of(jobs: Sequence[JobSpec], config: Config, source: str) -> Log:
    """Cut a log into days, or into hours where it has jobs on too few days.

    :raises ConfigError: it is too short to say anything.
    """
    default = next((table.name for table in config.partition if table.default), config.partition[0].name)
    log = Log(jobs=tuple(jobs), default=default)
    log.at = {spec.id: at for at, spec in enumerate(log.jobs)}
    submits = [spec.submit_at for spec in log.jobs]
    for unit, length in UNITS:
        places = [math.floor(at / length) for at in submits]
        if len(set(places)) >= LEAST:
            first = min(places)
            log.unit, log.length = unit, length
            log.part = np.array(places) - first
            log.parts = max(places) - first + 1
            return log
    hours = len({math.floor(at / UNITS[-1][1]) for at in submits})
    text = (
        f"the log is too short to say anything: it has jobs in {hours} hours, and at least {LEAST} are needed"
    )
    raise ConfigError(source, [Problem("", text)])


def busiest(log: Log, weight: Array, parts: int) -> Array:
    """Return which jobs are of the so many parts in a row that have most weight.

    :param weight: of each job; where none has any, it is the first ones.
    """
    of_part = np.bincount(log.part, weights=weight, minlength=log.parts)
    first = int(np.argmax(np.convolve(of_part, np.ones(parts), "valid")))
    return (log.part >= first) & (log.part < first + parts)

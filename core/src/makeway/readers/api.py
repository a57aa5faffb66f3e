"""Say what a reader of foreign files offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from makeway.config import Config
from makeway.left_out import Said
from makeway.model import Cluster, JobSpec, Seconds
from makeway.obstacle import counted
from makeway.worlds.events import Event


@attrs.frozen(kw_only=True)
class Loaded(Said):
    """A configuration, whatever file it is from, beside what is said of it."""

    config: Config
    """As TOML would say it."""
    path: Path = Path()
    """The file; empty: none."""
    reader: str | None = None
    """What read a foreign file; None: it is TOML."""
    without_usage: tuple[str, ...] = ()
    """Warnings that do not hold where usage at the start is worked out (``--warm-up``)."""


@attrs.frozen(kw_only=True)
class Rejected:
    """A row of a workload that cannot be used."""

    line: int
    """Where it stands, from 1 on."""
    reason: str
    """What was given, and what is allowed."""
    job: str = ""
    """Id of the job, where the row says it; empty: it does not."""
    usual: bool = False
    """Whether nothing is wrong with the row: its format says so of jobs that did not run, or of what is not known."""


@attrs.define
class Workload:
    """Jobs of a trace in order of submission, read as they are asked for.

    `jobs` may be walked once. `rejected` and `notes` grow while it is.
    """

    name: str
    """What it is called in results: the file's name."""
    jobs: Iterator[JobSpec]
    """In order of submission."""
    rejected: list[Rejected] = attrs.field(factory=list)
    """Rows that cannot be used."""
    rejected_count: int = 0
    """All of them; `rejected` keeps the first `most_rejected` of either kind."""
    usual_count: int = 0
    """How many of them are usual for the format (`Rejected.usual`)."""
    most_rejected: int | None = 1000
    """None: all are kept."""
    notes: list[str] = attrs.field(factory=list)
    """What was adjusted, one line each."""
    total: int | None = None
    """How many jobs there are at most; None: the trace is read as the run goes on."""
    start_wall: float | None = None
    """Unix time of instant 0; None: the trace does not say."""
    begin: float | None = None
    """Instant at which the span of the log begins, if earlier jobs are in it; None: the log does not say."""
    header: dict[str, str] = attrs.field(factory=dict)
    """What the trace says of itself (MaxNodes, MaxProcs, ...)."""
    commands: Callable[[Cluster], Sequence[tuple[Seconds, Event]]] | None = None
    """Returns what people and nodes did meanwhile, each with its instant; None: the trace does not say.

    It raises ConfigError for what does not fit the cluster."""
    details: dict[str, Any] = attrs.field(factory=dict)
    """What the trace knows happened, by job id (state, nodes, start), for comparisons."""

    @property
    def faulty_count(self) -> int:
        """Rows with which something is wrong."""
        return self.rejected_count - self.usual_count

    def reject(self, line: int, reason: str, job: str = "", *, usual: bool = False) -> None:
        """Count a row that cannot be used, and remember it.

        :param usual: nothing is wrong with it, see `Rejected.usual`.
        """
        self.rejected_count += 1
        self.usual_count += usual
        alike = self.usual_count if usual else self.faulty_count
        if self.most_rejected is None or alike <= self.most_rejected:
            self.rejected.append(Rejected(line=line, reason=reason, job=job, usual=usual))

    def never_started(self, number: int) -> None:
        """Note how many jobs of a log never started."""
        if number:
            until = "it waits until it is withdrawn" if number == 1 else "they wait until they are withdrawn"
            self.notes.append(f"{counted(number, 'job')} never started: {until}")


class WorkloadReader(Protocol):
    """Reads one kind of workload file.

    One of files that are no text has a method ``claims_binary(path)`` too, which looks at the file itself.
    """

    @property
    def name(self) -> str:
        """Short, as in ``--format swf``."""

    def claims(self, path: Path, head: str) -> bool:
        """Say by file name and first lines (decompressed) whether the file is of this kind."""

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Open it; rows are read as they are asked for.

        :raises ConfigError: if the file cannot be read at all (missing, binary, empty, truncated).
        """


@attrs.frozen(kw_only=True)
class ReadOptions:
    """How to read a workload."""

    config: Config
    """The site whose jobs they are."""
    limit: int | None = None
    """Most jobs to take; None: all."""
    progress: Callable[[int], None] | None = None
    """Told the bytes read so far; None: nothing is told."""
    most_rejected: int | None = 1000
    """Most unusable rows to keep with their reasons; None: all."""

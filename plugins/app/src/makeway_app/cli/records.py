"""Write the records of runs: ``--json`` as one document, ``--log`` line by line, ``--report`` as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.console import RenderableType

from makeway.config import Config, build_cluster
from makeway.history import History, Preemption
from makeway.model import NOTHING, Cluster
from makeway.readers.api import Workload
from makeway.record import Archive, Line, Recorder, to_json
from makeway_app.archive import About, JsonArchive, heading
from makeway_app.cli import brought
from makeway_app.cli.outputs import Output
from makeway_app.cli.upgrade import Story
from makeway_app.replay import Run
from makeway_engine.engine import Engine

PageWriter = Callable[[Sequence[tuple[Path, str]], Callable[[str], object], int], None]
"""Takes records with what their runs are called, and where the page goes."""
View = Callable[[Sequence[tuple[Path, str]]], Iterable[RenderableType]]
"""Takes the same records; gives what the terminal shows."""


@attrs.frozen
class Several:
    """Hands each job and each preemption on to several archives."""

    archives: Sequence[Archive]

    def ended(self, history: History, recorder: Recorder) -> None:
        """Take a job that has ended."""
        for each in self.archives:
            each.ended(history, recorder)

    def preempted(self, entry: Preemption) -> None:
        """Take a preemption."""
        for each in self.archives:
            each.preempted(entry)


@attrs.define
class Keeper:
    """Writes down one run."""

    log: Output | None = None
    archive: JsonArchive | None = None
    against: Any = None
    """What holds the run against its log; None: nothing does."""
    story: Story | None = None
    """What runs under other releases are held against; None: there are none."""
    _about: About | None = None

    def begin(self, config: Config, label: str, workload: Workload) -> Cluster:
        """Learn what is run; return the cluster to run it on."""
        cluster = build_cluster(config)
        self._about = About(
            config=config, cluster=cluster, label=label, workload=workload.name, epoch=workload.start_wall
        )
        return cluster

    def told(self) -> Archive | None:
        """Return what is told of each job that has ended."""
        found = [each for each in (self.archive, self.against, self.story) if each is not None]
        return Several(found) if len(found) > 1 else found[0] if found else None

    def started(self, engine: Engine) -> None:
        """Write the first line of the log."""
        if self.log is not None and self._about is not None:
            self.write(Line(0.0, "record", "", heading(self._about, engine.recorder)))

    def write(self, line: Line) -> None:
        """Add a line to the log."""
        if self.log is not None:
            self.log.write(f"{to_json(line)}\n")

    def end(self, run: Run, figures: Mapping[str, Any]) -> None:
        """Write the last lines of the log."""
        if self.log is not None:
            run.recorder.finish(run.ended_at)
            self.write(Line(run.ended_at, "metrics", "", figures))

    def write_json(
        self,
        to: Callable[[str], object],
        run: Run,
        figures: Mapping[str, Any],
        compared: Mapping[str, Mapping[str, Any]] = NOTHING,
    ) -> None:
        """Hand the whole record to `to`, piece by piece.

        :param compared: metrics of the runs that it is compared with, by label.
        """
        if self.archive is None or self._about is None:
            return
        more: dict[str, Any] = {"metrics": dict(figures)}
        if self.against is not None:
            more["against_log"] = self.against.as_dict()
        if compared:
            more["compared"] = {label: dict(each) for label, each in compared.items()}
        self.archive.write(to, run, self._about, more)

    def write_record(self, path: Path, run: Run, figures: Mapping[str, Any]) -> None:
        """Write the record of the run alone."""
        with path.open("w", encoding="utf-8") as stream:
            self.write_json(stream.write, run, figures)


def page_writer() -> PageWriter:
    """Return what writes pages.

    :raises PluginError: the package that brings it is not installed.
    """
    found: PageWriter = brought.load(brought.PAGES, "html")
    return found


def views_named(names: Iterable[str]) -> list[View]:
    """Return what draws runs in the terminal.

    :raises PluginError: the package that brings one is not installed.
    """
    return [brought.load(brought.VIEWS, name) for name in names]

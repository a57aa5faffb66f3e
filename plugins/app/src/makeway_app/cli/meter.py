"""Show on a terminal how far a replay has come."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import attrs
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from makeway_engine.engine import Engine

_SELDOM = 256
"""Steps from one look at the meter to the next."""


class _Speed(ProgressColumn):
    """How many jobs end per second, on average so far."""

    def render(self, task: Task) -> Text:
        """Return it; nothing before anything can be known."""
        jobs, elapsed = task.fields["jobs"], task.elapsed
        return Text(f"{jobs / elapsed:,.0f} jobs/s" if jobs and elapsed else "")


class _Left(TimeRemainingColumn):
    """The time left, by how fast the workload is read; unknown once all of it was read."""

    def render(self, task: Task) -> Text:
        """Return it."""
        known = task.total is not None and not task.finished
        return Text.assemble(super().render(task), " left") if known else Text("")


@attrs.define
class Meter:
    """Shows how far a replay has come."""

    progress: Progress
    task: TaskID
    steps: int = 0

    def read(self, count: int) -> None:
        """Take note of the bytes read so far."""
        self.progress.update(self.task, completed=count)

    def stepped(self, engine: Engine) -> None:
        """Take note of a step of the engine."""
        self.steps += 1
        if self.steps % _SELDOM == 0:
            self.progress.update(self.task, jobs=engine.recorder.metrics.ended)


@contextlib.contextmanager
def bar(target: Console, title: str, total: int | None) -> Iterator[Meter]:
    """Show a bar while the body runs.

    :param total: bytes of the workload; None: not known.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[jobs]:,} jobs ended"),
        _Speed(),
        _Left(),
    )
    with Progress(*columns, console=target, transient=True) as shown:
        yield Meter(shown, shown.add_task(title, total=total, jobs=0))

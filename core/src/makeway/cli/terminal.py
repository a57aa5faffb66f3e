"""Know where tables, notes and progress go.

In a file or a pipe, tables are as wide as they have to be and end no line with blanks: they can be
compared and pasted.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator

import attrs
import click
from rich.console import Console, RenderableType
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

from makeway.engine.engine import Engine

_WIDE = 4000
"""Columns of a file or a pipe."""
_SELDOM = 256
"""Steps from one look at the meter to the next."""


def console(*, err: bool = False) -> Console:
    """Return a console on standard output, or standard error."""
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def show(renderables: Iterable[RenderableType], *, err: bool = False) -> None:
    """Print `renderables`, a blank line between two of them."""
    target = console(err=err)
    with target.capture() as captured:
        for at, renderable in enumerate(renderables):
            if at:
                target.print()
            target.print(renderable)
    lines = captured.get().splitlines()
    if not target.is_terminal:
        lines = [line.rstrip() for line in lines]
    if lines:
        click.echo("\n".join(lines), err=err, color=target.is_terminal)


def note(kind: str, texts: Iterable[str]) -> None:
    """Print remarks on standard error, one line each."""
    for text in texts:
        click.echo(f"{kind}: {text}", err=True)


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


@attrs.frozen
class Hooks:
    """Whom to tell about progress; None: nobody looks."""

    read: Callable[[int], None] | None = None
    stepped: Callable[[Engine], None] | None = None


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Iterator[Hooks]:
    """Show a bar on standard error while the body runs; only on a terminal.

    :param total: bytes of the workload; None: not known.
    """
    target = console(err=True)
    if not target.is_terminal:
        yield Hooks()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[jobs]:,} jobs ended"),
        _Speed(),
        _Left(),
    )
    with Progress(*columns, console=target, transient=True) as shown:
        meter = Meter(shown, shown.add_task(title, total=total, jobs=0))
        yield Hooks(meter.read, meter.stepped)

"""Know where tables and notes go.

In a file or a pipe, tables are as wide as they have to be and end no line with blanks: they can be
compared and pasted. What is no printable character is escaped in both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from makeway.escapes import printable_lines

_WIDE = 4000
"""Columns of a file or a pipe."""


class _Console(Console):
    """A console that shows names as `makeway.escapes` does, whoever chose them."""

    def render_str(self, text: str, **options: Any) -> Text:
        """See rich; cells of tables are measured by what they return here."""
        return super().render_str(printable_lines(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See rich."""
        for segment in super().render(renderable, options):
            shown = segment.control or segment.text.isprintable()
            yield segment if shown else Segment(printable_lines(segment.text), segment.style)


def console(*, err: bool = False) -> Console:
    """Return a console on standard output, or standard error; names are data, whatever ``[x]`` or ``:x:`` they hold."""
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _WIDE
    return _Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)


def show(renderables: Iterable[RenderableType], *, err: bool = False) -> None:
    """Print `renderables`, a blank line between two of them."""
    target = console(err=err)
    with target.capture() as captured:
        for at, renderable in enumerate(renderables):
            if at:
                target.print()
            target.print(renderable, crop=False)
    lines = captured.get().splitlines()
    if not target.is_terminal:
        lines = [line.rstrip() for line in lines]
    if lines:
        click.echo("\n".join(lines), err=err, color=target.is_terminal)


def note(kind: str, texts: Iterable[str]) -> None:
    """Print remarks on standard error, one line each."""
    for text in texts:
        click.echo(printable_lines(f"{kind}: {text}"), err=True)

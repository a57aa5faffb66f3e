"""Print: the one place from which commands write to a terminal, and where what others wrote is escaped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from makeway.escapes import printable, printable_lines


def say(*lines: str, err: bool = False) -> None:
    """Print lines; a line end within one is shown, too."""
    click.echo("\n".join(map(printable, lines)), err=err)


def say_text(text: str) -> None:
    """Print a text of several lines, which ends with a line end."""
    click.echo(printable_lines(text), nl=False)


def put(data: Any) -> None:
    """Print JSON; whatever is not ASCII is escaped in it."""
    click.echo(json.dumps(data, indent=1, sort_keys=True))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> list[str]:
    """Return rows as columns with two spaces between them, a line each."""
    shown = [headings, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in shown) for at in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        laid = (
            cell.rjust(width) if head in right else cell.ljust(width)
            for cell, width, head in zip(cells, widths, headings, strict=True)
        )
        return "  ".join(laid).rstrip()

    return list(map(line, shown))


__all__ = ["put", "say", "say_text", "table"]

"""Lay out rows of text in columns, as every table of a terminal has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = (), *, gap: int = 2) -> list[str]:
    """Return a line for each row, `gap` blanks between its cells; those of `right` end below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        placed = enumerate(zip(row, widths, strict=True))
        cells = [cell.rjust(width) if at in right else cell.ljust(width) for at, (cell, width) in placed]
        lines.append((" " * gap).join(cells).rstrip())
    return lines

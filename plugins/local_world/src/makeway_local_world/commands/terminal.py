"""Print: the one place from which commands write to a terminal, and where what others wrote is escaped."""

from __future__ import annotations

import json
import sys

from makeway.columns import columns
from makeway.escapes import printable, printable_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _write(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    stream.flush()


def say(*lines: str, err: bool = False) -> None:
    """Print lines; a line end within one is shown, too."""
    _write("\n".join(map(printable, lines)) + "\n", err=err)


def say_text(text: str, *, err: bool = False) -> None:
    """Print a text of several lines, which ends with a line end."""
    _write(printable_lines(text), err=err)


def warn(texts: Sequence[str]) -> None:
    """Print warnings on standard error, a line each."""
    for text in texts:
        _write(f"warning: {printable_lines(text)}\n", err=True)


def put(data: Any) -> None:
    """Print JSON; whatever is not ASCII is escaped in it."""
    _write(json.dumps(data, indent=1, sort_keys=True) + "\n")


def clear() -> None:
    """Clear the screen, if there is one."""
    if sys.stdout.isatty():
        _write("\x1b[2J\x1b[H")


def agreed(question: str) -> bool:
    """Ask a question; say whether the answer is yes."""
    _write(f"{question} [y/N]: ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> list[str]:
    """Return a heading and rows in columns, a line each; what others wrote is escaped."""
    shown = [headings, *([printable(cell) for cell in row] for row in rows)]
    return columns(shown, [at for at, heading in enumerate(headings) if heading in right])

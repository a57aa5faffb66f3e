"""Show text of others on a terminal: whatever it holds, it moves no cursor, sets no title and hides nothing.

Names, commands and paths of jobs are written by the users who submit them. Everything that is no printable
character is shown as Python writes it: ``\\x1b``, ``\\u202e``, ``\\udcff``.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text as one line that can be printed."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def printable_lines(text: str) -> str:
    """Return a text that can be printed, with its line ends."""
    return "\n".join(map(printable, text.split("\n")))

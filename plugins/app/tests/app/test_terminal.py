"""Tables show what is in a name, and do nothing that it says to the terminal."""

from __future__ import annotations

import pytest
from rich.text import Text

from makeway_app.cli.terminal import show
from makeway_app.report import table


def test_names_of_others_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """In cells, whose columns are as wide as what is shown, and in lines of words."""
    made = table("user", "jobs")
    made.add_row("a\x1b[2J\x1b]0;x\x07", "1")
    made.add_row("ben\u202e", "22")
    show([made, Text("first \x1b[31m\nsecond")])
    assert capsys.readouterr().out.splitlines() == [
        "user                  jobs",
        r"a\x1b[2J\x1b]0;x\x07     1",
        r"ben\u202e               22",
        "",
        r"first \x1b[31m",
        "second",
    ]

"""What others wrote reaches nobody's terminal as it is."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from makeway.escapes import printable, printable_lines
from makeway_local_world import commands
from makeway_local_world.commands import terminal

Site = Any
EVIL = "/tmp/\x1b]0;PWNED\x07\x9b2J\u202e\r\nroot  0:00"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Prüfung", "plain Prüfung"),
        ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("a\u202eb\u200b", "a\\u202eb\\u200b"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_is_no_printable_character_is_shown_as_python_writes_it(text: str, shown: str) -> None:
    assert printable(text) == shown
    shown.encode()


def test_lines_stay_lines() -> None:
    assert printable_lines("a\n\x1bb\n") == "a\n\\x1bb\n"


def test_cells_of_a_table_are_escaped() -> None:
    head, row = terminal.table(["A", "B"], [["\x1b\n", "b"]])
    assert row == "\\x1b\\n  b"
    assert head == "A       B"


def test_no_command_prints_by_itself() -> None:
    """But the one module that escapes; `logs` alone copies bytes of the job itself."""
    for path in Path(commands.__file__).parent.glob("*.py"):
        if path.name == "terminal.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in ("click.echo", "click.secho", "print", "sys.stdout.write"), (
                    path,
                    node.lineno,
                )


def test_a_queue_with_evil_names(up: Site) -> None:
    """In `queue`, `history`, `why`, `wait`, and in refusals; the job fails to start, and its path is told."""
    up.ok("submit", "-D", "/tmp", "--hold", "-J", "fine", "--", EVIL)
    job = up.submit("-D", "/tmp", "-o", "/dev/null", "--", EVIL)
    up.until(lambda: "StartFailed" in up.ok("why", job) or up.jobs()[job]["held"], "it fails to start")
    told = [up.ok("queue"), up.ok("why", job)]
    up.ok("cancel", job)
    up.until(lambda: job not in up.jobs())
    told += [up.ok("history"), up.ok("history", "-P"), up.run("why", "\x1b[2J").output]
    told.append(up.run("submit", "-p", "\x1b[2J", "--", "true").output)
    for text in told:
        assert text
        assert text.replace("\n", "").isprintable(), text

"""What a start imports, and on which interpreters it may be."""

from __future__ import annotations

import gc
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from makeway import catalogue
from makeway_app.cli import COMMANDS, cli
from makeway_app.cli.brought import COMMANDS as GROUP
from makeway_app.cli.brought import names

ROOT = Path(__file__).parents[4]
Run = Callable[..., Any]


def _imported_by(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom makeway_app.cli import cli\n"
        f"try:\n    cli({list(arguments)!r}, prog_name='makeway')\n"
        "except SystemExit as end:\n    print(end.code, *sorted(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    status, *modules = done.stderr.split()
    assert status == "0"
    return set(modules)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_imports_no_command(argument: str) -> None:
    """Neither own ones, nor those of other distributions, nor the libraries that only they need."""
    modules = _imported_by(argument)
    heavy = {"attrs", "rich", "pluggy", "jinja2", "packaging", "makeway_engine", "makeway.registry"}
    assert modules & heavy == set()
    ours = {name.partition(".")[0] for name in modules if name.startswith("makeway")}
    assert ours == {"makeway", "makeway_app"}


def test_a_command_imports_no_other() -> None:
    """Its own help says what it takes; the pages of other distributions are not needed for that."""
    modules = _imported_by("verify", "--help")
    assert "makeway_verify.command" in modules
    assert {"makeway_explain.command", "makeway_testing.new_plugin", "jinja2"} & modules == set()


def test_every_command_is_listed_with_what_its_own_help_says() -> None:
    """The catalogue repeats the first sentence of each, so that none is imported to be listed."""
    context = click.Context(cli)
    said = {}
    for name in (*COMMANDS, *names(GROUP)):
        command = cli.get_command(context, name)
        assert command is not None
        said[name] = " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())
    assert {name: catalogue.summary(name) for name in said} == said


def test_a_command_of_others_is_imported_to_be_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but itself knows what it does."""
    found = click.Command("theirs", help="Do what only they can.")
    hidden = click.Command("secret", help="Not for everybody.", hidden=True)
    offered = {"theirs": found, "secret": hidden}
    monkeypatch.setattr(
        "makeway_app.cli.brought.names", lambda group: sorted(offered) if group == GROUP else []
    )
    monkeypatch.setattr("makeway_app.cli.brought.command", lambda name: offered[name])
    shown = run("--help").out
    assert re.search(r"^  theirs +Do what only they can\.$", shown, re.MULTILINE)
    assert "secret" not in shown
    assert re.search(r"^  replay +Replay WORKLOAD", shown, re.MULTILINE)
    assert shown.index("Replay and compare:") < shown.index("  replay ") < shown.index("Other commands:")
    assert shown.index("Other commands:") < shown.index("  theirs ")


def test_every_command_of_this_project_stands_in_one_section() -> None:
    """The help lists it there, and no section promises what nothing brings."""
    listed = [name for names in catalogue.sections().values() for name in names]
    assert sorted(listed) == sorted(catalogue.commands())


def test_the_help_shows_whole_sentences(run: Run) -> None:
    """None ends in dots, however narrow the terminal."""
    shown = run("--help").out
    for name in (*COMMANDS, *names(GROUP)):
        assert catalogue.summary(name).partition(". ")[0].rstrip(".") in " ".join(shown.split()), name


def test_interpreters_that_cannot_set_objects_aside(
    run: Run, with_jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyPy has no such call; a replay does without, and says the same."""
    usual = run("replay", with_jobs)
    monkeypatch.delattr(gc, "freeze")
    monkeypatch.delattr(gc, "unfreeze")
    done = run("replay", with_jobs)
    assert (done.status, done.err) == (0, "")
    assert done.out == usual.out


def test_only_one_module_sets_objects_aside() -> None:
    """So that no other asks for what an interpreter may not have."""
    sources = [*(ROOT / "core/src").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    users = {path.name for path in sources if re.search(r"\bgc\.(un)?freeze\b", path.read_text())}
    assert users == {"collector.py"}

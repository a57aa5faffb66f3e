"""Run makeway's command line within a test, beside distributions that are made up."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from makeway_app.cli import cli


@attrs.frozen
class Done:
    """What a command came to."""

    status: int
    out: str
    err: str


Run = Callable[..., Done]
"""Runs the command line with these arguments, whatever makes text of them."""


def command_line(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line; a traceback fails the test.

    :param monkeypatch: takes the variables that change its output out of the environment.
    """
    for name in ("MAKEWAY_DEBUG", "MAKEWAY_TRACE_HOOKS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    old = "mix_stderr" in inspect.signature(CliRunner).parameters  # before click 8.2
    options: Any = {"mix_stderr": False} if old else {}
    runner = CliRunner(**options)

    def run_it(*arguments: object) -> Done:
        result = runner.invoke(cli, [str(each) for each in arguments], prog_name="makeway")
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.stderr
        return Done(result.exit_code, result.stdout, result.stderr)

    return run_it


Install = Callable[[str, Mapping[str, str], Mapping[str, str]], None]
"""Puts a distribution on the path: its name, its plugins with their modules, its modules with their text."""


def distributions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a distribution with plugins on the path, until the test ends.

    :param folder: where its files are written.
    """

    def install_it(distribution: str, points: Mapping[str, str], modules: Mapping[str, str]) -> None:
        place = folder / f"site-{distribution}"
        info = place / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = {module}" for name, module in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[makeway]", *lines, ""]))
        for name, source in modules.items():
            (place / f"{name}.py").write_text(source)
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.syspath_prepend(place)

    return install_it

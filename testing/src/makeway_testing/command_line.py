"""Run makeway's command line within a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from makeway.cli import cli


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


__all__ = ["Done", "Run", "command_line"]

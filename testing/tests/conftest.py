"""Fixtures for tests of the command line: run it, and put made-up distributions on the path."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway_testing.command_line import Install, Run, command_line, distributions


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line; nothing but an exit may come out of it."""
    return command_line(monkeypatch)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a distribution with plugins on the path."""
    return distributions(tmp_path, monkeypatch)

"""Run makeway's command line within a test."""

from __future__ import annotations

import pytest

from makeway_testing.command_line import Run, command_line


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line; nothing but an exit may come out of it."""
    return command_line(monkeypatch)

"""The bar of a long replay: jobs per second, time left, and nothing at all without a terminal."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from makeway_app.cli import terminal


def stepped(jobs: int) -> Any:
    """Return an engine of which so many jobs have ended."""
    return SimpleNamespace(recorder=SimpleNamespace(metrics=SimpleNamespace(ended=jobs)))


def shown(monkeypatch: pytest.MonkeyPatch, total: int | None, read: int) -> str:
    """Return what a terminal gets of a replay that has read so many bytes after 10 s."""
    stream, now = io.StringIO(), [100.0]
    fake = Console(file=stream, force_terminal=True, width=120, color_system=None)
    fake.get_time = lambda: now[0]
    monkeypatch.setattr(terminal, "console", lambda **_: fake)
    with terminal.progress("replaying", total) as hooks:
        assert hooks.read is not None
        assert hooks.stepped is not None
        for at in range(1, 11):
            now[0] = 100.0 + at
            hooks.read(read * at // 10)
        for _ in range(256):
            hooks.stepped(stepped(500))
    return stream.getvalue()


def test_speed_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 jobs in 10 s are 50 a second; a quarter of the file in 10 s leaves 30 s."""
    text = shown(monkeypatch, 4000, 1000)
    assert "500 jobs ended 50 jobs/s" in text
    assert "0:00:30 left" in text or "0:00:31 left" in text


@pytest.mark.parametrize(("total", "read"), [(None, 1000), (1000, 1000)], ids=["no size", "all read"])
def test_what_is_not_known_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, total: int | None, read: int
) -> None:
    """How long the rest takes when all of the workload is read, or its size is unknown."""
    last = shown(monkeypatch, total, read).split("replaying")[-1]
    assert "50 jobs/s" in last
    assert "left" not in last


def test_without_a_terminal_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a hook."""
    stream = io.StringIO()
    monkeypatch.setattr(terminal, "console", lambda **_: Console(file=stream))
    with terminal.progress("replaying", 10) as hooks:
        assert hooks == terminal.Hooks()
    assert not stream.getvalue()

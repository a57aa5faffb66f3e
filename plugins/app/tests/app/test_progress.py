"""How far a long replay is: its date, the jobs that have ended, and the time left, on a terminal and in a file."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from makeway.readers.api import Workload
from makeway_app.cli import meter
from makeway_app.cli.meter import Board, Gauge

OCTOBER = 1_759_276_800.0
"""2025-10-01 00:00 UTC."""


def engine(now: float, submitted: int, ended: int) -> Any:
    """Return an engine that is at an instant."""
    metrics = SimpleNamespace(jobs=submitted, ended=ended)
    return SimpleNamespace(ledger=SimpleNamespace(now=now), recorder=SimpleNamespace(metrics=metrics))


def board(terminal: bool = False) -> tuple[Board, Gauge, io.StringIO]:
    """Return a board of one gauge, and what it prints on."""
    stream = io.StringIO()
    target = Console(file=stream, force_terminal=terminal, width=80, color_system=None)
    made = Board(["replaying"], target)
    return made, made.gauges[0], stream


def begin(gauge: Gauge, looked_at: Any) -> None:
    """Let a gauge look at an engine once."""
    gauge.started(looked_at)
    while not gauge.runs:
        time.sleep(0.01)


def comes(stream: io.StringIO, text: str) -> None:
    """Wait until a text is shown."""
    until = time.monotonic() + 300.0
    while text not in stream.getvalue():
        assert time.monotonic() < until, stream.getvalue()
        time.sleep(0.01)


def test_a_log_that_is_read_at_once_does_not_stand_at_100_per_cent() -> None:
    """All of the file was read: 602 of 1,239 jobs have ended, 14 days after the first submission."""
    _, gauge, _ = board()
    gauge.opens(1000)
    gauge.read(1000)
    gauge.opened(Workload(name="oct.sacct", jobs=iter(()), total=1239, start_wall=OCTOBER))
    begin(gauge, engine(14 * 86400 + 3600, 700, 602))
    assert gauge.line(10.0) == (
        "replaying: at 2025-10-15 01:00, 602 of 1,239 jobs ended (49%), about 11 s left"
    )


def test_a_log_that_is_read_as_it_goes() -> None:
    """A quarter of the file held 500 jobs, so there will be 2,000; 100 have ended in 5 s, so 95 s are left."""
    _, gauge, _ = board()
    gauge.opens(4000)
    gauge.opened(Workload(name="a.swf", jobs=iter(())))
    gauge.read(1000)
    begin(gauge, engine(7200.0, 500, 100))
    assert gauge.line(5.0) == (
        "replaying: at second 7,200 (2:00:00), 100 of 2,000 jobs ended (5%), about 0:01:35 left"
    )


@pytest.mark.parametrize("total", [None, 2000])
def test_no_more_jobs_are_counted_on_than_are_taken(total: int | None) -> None:
    """--limit 400 of 2,000 jobs, of which 100 have ended."""
    _, gauge, _ = board()
    gauge.opens(4000)
    gauge.opened(Workload(name="a.swf", jobs=iter(()), total=total), 400)
    gauge.read(1000)
    begin(gauge, engine(7200.0, 400, 100))
    assert gauge.jobs == "100 of 400 jobs"


def test_in_a_file_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing for a run that is short, or over."""
    monkeypatch.setattr(meter, "_SOON", 0.05)
    made, gauge, stream = board()
    with made.shown():
        with gauge.following():
            gauge.opened(Workload(name="a", jobs=iter(()), total=10))
            begin(gauge, engine(5.0, 10, 5))
            comes(stream, "\n")
        lines = stream.getvalue().splitlines()
        assert lines
        assert lines[0].startswith("replaying: at second 5, 5 of 10 jobs ended (50%)")
    monkeypatch.setattr(meter, "_SOON", 3600.0)
    short, gauge, stream = board()
    with short.shown(), gauge.following():
        begin(gauge, engine(5.0, 10, 5))
    assert not stream.getvalue()


def test_a_terminal_shows_a_bar() -> None:
    """Which fits 80 columns."""
    made, gauge, stream = board(terminal=True)
    with made.shown(), gauge.following():
        gauge.opened(Workload(name="a", jobs=iter(()), total=1239, start_wall=OCTOBER))
        begin(gauge, engine(3600.0, 700, 602))
        comes(stream, "49% 2025-10-01 01:00  602 of 1,239 jobs")

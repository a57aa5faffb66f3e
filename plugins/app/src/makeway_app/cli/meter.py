"""Show how far replays are: the date that they have come to, the jobs that have ended, and the time left.

Each run, in whatever process, writes a few numbers into memory that all share; one thread shows them, as bars on a
terminal and as a line now and then in a file.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.sharedctypes import RawArray
from typing import Any

import attrs
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from makeway.obstacle import counted
from makeway.readers.api import Workload
from makeway_app.report import clock
from makeway_engine.engine import Engine

_STATE, _SHARE, _NOW, _SUBMITTED, _ENDED, _TOTAL, _LIMIT, _EPOCH = range(8)
FIELDS = 8
_RUNS, _OVER = 1.0, 2.0
_LOOK = 0.2
"""Seconds between two looks at a run."""
_SOON, _SOON_FOR, _LATER = 10.0, 60.0, 60.0
"""In a file, a line comes every so many seconds for so long, then every so many."""
_EARLY = 0.01
"""Share of the jobs below which nothing can be said of the time left."""


@attrs.define(eq=False)
class Gauge:
    """How far one run is."""

    title: str
    numbers: Any
    """Shared memory of all runs."""
    at: int
    _size: int = 0
    _engine: Engine | None = None
    _over: threading.Event = attrs.field(factory=threading.Event)

    def _get(self, field: int) -> float:
        value: float = self.numbers[self.at * FIELDS + field]
        return value

    def _put(self, field: int, value: float) -> None:
        self.numbers[self.at * FIELDS + field] = value

    # ------------------------------------------------------------------- the run tells
    def opens(self, size: int | None) -> None:
        """The workload is opened: a file of so many bytes."""
        self._size = size or 0

    def read(self, count: int) -> None:
        """So many bytes of it were read."""
        self._put(_SHARE, count / self._size if self._size else 0.0)

    def opened(self, workload: Workload, limit: int | None = None) -> None:
        """It says how many jobs it has, and when they begin, if it knows; no more than `limit` are taken."""
        self._put(_TOTAL, workload.total or 0)
        self._put(_LIMIT, math.inf if limit is None else limit)
        self._put(_EPOCH, math.nan if workload.start_wall is None else workload.start_wall)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Let the run be known to be over when the body is."""
        try:
            yield
        finally:
            self._over.set()
            self._look()
            self._put(_STATE, _OVER)

    def started(self, engine: Engine) -> None:
        """A run begins: a thread looks at its engine from now on."""
        self._engine = engine
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while not self._over.is_set():
            self._look()
            self._over.wait(_LOOK)

    def _look(self) -> None:
        if self._engine is not None and self._get(_STATE) != _OVER:
            metrics = self._engine.recorder.metrics
            self._put(_NOW, self._engine.ledger.now)
            self._put(_SUBMITTED, metrics.jobs)
            self._put(_ENDED, metrics.ended)
            self._put(_STATE, _RUNS)

    # ----------------------------------------------------------------- what people see
    @property
    def runs(self) -> bool:
        """Whether it has begun and is not over."""
        return self._get(_STATE) == _RUNS

    @property
    def over(self) -> bool:
        """Whether it has come to its end."""
        return self._get(_STATE) == _OVER

    @property
    def ended(self) -> int:
        """Jobs that have ended."""
        return int(self._get(_ENDED))

    @property
    def total(self) -> int:
        """Jobs that there will be, else a guess by how much of the workload was read; 0: not known."""
        known, share = self._get(_TOTAL), self._get(_SHARE)
        found = known or (self._get(_SUBMITTED) / min(1.0, share) if share else 0.0)
        return round(min(found, self._get(_LIMIT)))

    @property
    def share(self) -> float:
        """How much of the run is done, from 0 to 1."""
        return 1.0 if self.over else min(1.0, self.ended / self.total) if self.total else 0.0

    @property
    def date(self) -> str:
        """The instant of the replay: its date, if the workload has dates."""
        return moment(self._get(_NOW), None if math.isnan(self._get(_EPOCH)) else self._get(_EPOCH))

    @property
    def jobs(self) -> str:
        """602 of 1,239 jobs, those that have ended."""
        return f"{self.ended:,} of {counted(self.total, 'job')}" if self.total else counted(self.ended, "job")

    def left(self, elapsed: float) -> str:
        """Return an estimate of the time left after so many seconds; empty: not known yet."""
        share = self.share
        return f"{clock(round(elapsed * (1 - share) / share))} left" if _EARLY <= share < 1 else ""

    def line(self, elapsed: float) -> str:
        """Return all of it in a line."""
        left = self.left(elapsed)
        share = f" ({self.share:.0%})" if self.total else ""
        told = (f"at {self.date}", f"{self.jobs} ended{share}", f"about {left}" if left else "")
        return f"{self.title}: {', '.join(filter(None, told))}"


def moment(now: float, epoch: float | None) -> str:
    """Return an instant of a replay for people: 2025-10-03 14:05, or the time since second 0.

    :param epoch: Unix time of second 0; None: not known.
    """
    if epoch is None:
        return f"second {now:,.0f} ({clock(now)})" if now >= 60 else f"second {now:g}"
    return f"{datetime.datetime.fromtimestamp(epoch + now, datetime.UTC):%Y-%m-%d %H:%M}"


class Board:
    """Gauges of several runs, and what shows them."""

    def __init__(self, titles: Sequence[str], target: Console) -> None:
        self._numbers = RawArray("d", FIELDS * len(titles))
        self._target = target
        self.gauges = [Gauge(title, self._numbers, at) for at, title in enumerate(titles)]

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the gauges while the body runs; no process may be forked meanwhile."""
        over = threading.Event()
        with self._bars() if self._target.is_terminal else contextlib.nullcontext() as progress:
            look = self._lines if progress is None else self._refresh
            thread = threading.Thread(target=look, args=(over, progress), daemon=True)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()

    def _bars(self) -> Progress:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=8),
            TaskProgressColumn(),
            TextColumn("{task.fields[told]}"),
        )
        return Progress(*columns, console=self._target, transient=True)

    def _refresh(self, over: threading.Event, progress: Progress) -> None:
        began = time.monotonic()
        tasks = [
            progress.add_task(gauge.title.partition(":")[0], total=1.0, told="") for gauge in self.gauges
        ]
        while True:
            for task, gauge in zip(tasks, self.gauges, strict=True):
                elapsed = time.monotonic() - began
                told = (
                    "  ".join(filter(None, (gauge.date, gauge.jobs, gauge.left(elapsed))))
                    if gauge.runs
                    else ""
                )
                progress.update(task, completed=gauge.share, told="done" if gauge.over else told)
            if over.wait(_LOOK):
                return

    def _lines(self, over: threading.Event, _: None) -> None:
        began = time.monotonic()
        while not over.wait(_SOON if time.monotonic() - began < _SOON_FOR else _LATER):
            elapsed = time.monotonic() - began
            for gauge in self.gauges:
                if gauge.runs:
                    self._target.print(gauge.line(elapsed))

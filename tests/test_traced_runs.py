"""A run in which jobs are traced takes the same path as one in which nothing looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config, parse_toml
from makeway.model import Job
from makeway.readers.api import ReadOptions
from makeway.record import Line
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, replay
from makeway_engine.placing import Outcome, Placer, Question

EXAMPLE = Path(__file__).parents[1] / "examples" / "kth"
JOBS = 200

Tried = list[tuple[float, str, str, str]]
"""Instant, job, partition and outcome of each attempt that was not in vain, in order."""


def run(config: Config, traced: Callable[[Job], bool] | None) -> tuple[Tried, list[Line], int]:
    """Return the attempts, the lines of the record, and the number of decisions traced."""
    tried: Tried = []
    lines: list[Line] = []
    ask = Placer.try_start

    def noted(self: Placer, question: Question) -> Outcome:
        outcome = ask(self, question)
        if outcome is not Outcome.BUSY:  # one job in vain may speak for others, where none is traced
            tried.append((self.ledger.now, question.job.id, question.partition.name, outcome.value))
        return outcome

    jobs = open_workload(EXAMPLE / "kth-sp2-1500.swf.gz", ReadOptions(config=config, limit=JOBS)).jobs
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Placer, "try_start", noted)
        done = replay(config, jobs, (), Options(traced=traced, sink=lines.append))
    return tried, lines, len(done.recorder.decisions)


def plain(line: Line) -> tuple[Any, ...]:
    """Return a line of the record without what it says for people alone."""
    return line.at, line.kind, line.job, {key: each for key, each in line.data.items() if key != "detail"}


@pytest.mark.parametrize("scheduler", ["builtin", "backfill", "easy", "greedy"])
@pytest.mark.parametrize("example", ["cluster", "suspend"])
def test_attempts_and_record_are_the_same(scheduler: str, example: str) -> None:
    """Every attempt that came to anything, and every line of the record; only what is said beside may be longer."""
    config = parse_toml((EXAMPLE / f"{example}.toml").read_text(), example)
    config = attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, type=scheduler))
    tried, lines, none = run(config, None)
    tried_traced, lines_traced, traced = run(config, lambda _: True)
    assert tried_traced == tried
    assert list(map(plain, lines_traced)) == list(map(plain, lines))
    assert traced >= len(tried) >= JOBS
    assert none == 0

"""The time that is given is kept, and what there was no time for is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec, Seconds
from makeway_app.cli.inputs import load_config
from makeway_sweep.plan import Variant
from makeway_sweep.work import Shared, Task, run
from makeway_tune.files import Chosen
from makeway_tune.log import Array
from makeway_tune.runs import Runner
from makeway_tune.search import Score
from makeway_tune.work import Work

Tune = Callable[..., Result]
LATE = "of the whole log takes longer; give more time, or take fewer jobs with --limit"


@pytest.mark.parametrize("task", [Task(longest=0.0), Task(by=0.0)])
def test_a_replay_that_takes_too_long_is_given_up(conf: Path, task: Task) -> None:
    """Its outcome says so, and has no figures."""
    config = load_config(conf).config
    jobs = (JobSpec(id="1", submit_at=0.0, run_time=60.0),)
    shared = Shared(name="log", jobs=jobs, epoch=None, unusable=0)
    assert not run(Variant(values=(), config=config), "", shared, Task()).error
    outcome = run(Variant(values=(), config=config), "", shared, task)
    assert (outcome.given_up, outcome.metrics, outcome.error) == (True, None, "it took too long")


@pytest.mark.parametrize("told", [True, False])
def test_no_time_for_a_single_replay(tune: Tune, conf: Path, log: Path, told: bool) -> None:
    """Whether the log says when jobs started or not: one sentence, and no answer."""
    if not told:
        rows = [line.split("|") for line in log.read_text().splitlines()]
        kept = [at for at, name in enumerate(rows[0]) if name not in ("Start", "End")]
        log.write_text("".join("|".join(row[at] for at in kept) + "\n" for row in rows))
    result = tune(conf, log, "--within", "0.001s")
    assert result.exit_code == 2
    assert LATE in " ".join(result.output.split())
    assert "recommended" not in result.output


def test_where_time_is_short(tune: Tune, conf: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of replays that take as long as they will, candidates have one day, and one of them is replayed over all."""
    whole, take = Work.as_configured, Work._take

    def as_configured(self: Work, *given: Any) -> None:
        whole(self, *given)
        self.one = 1e9

    def taken(self: Work, mine: Array) -> Seconds:
        return take(self, mine) + 1e9

    monkeypatch.setattr(Work, "as_configured", as_configured)
    monkeypatch.setattr(Work, "_take", taken)
    result = tune(conf, log, "--trials", "8", "--only", "batch PreemptMode", "--only", "GraceTime")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "of the busiest 23 hours, 1 finalist on all" in text


def test_days_that_say_nothing_are_made_more(
    tune: Tune, conf: Path, long_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of 143 hours: 24 of them at first, then 48, 96 and all, for no trial differs."""
    tried: list[int] = []

    def found(self: Work, *given: Any) -> dict[Chosen, Score]:
        tried.append(self.days)
        return {(): Score(values=(1.0,))}

    whole = Work.as_configured

    def as_configured(self: Work, *given: Any) -> None:
        whole(self, *given)
        self.one = 1e9

    monkeypatch.setattr(Work, "as_configured", as_configured)
    monkeypatch.setattr(Work, "_search", found)
    result = tune(conf, long_log, "--trials", "100000")
    assert result.exit_code == 0, result.output
    assert tried == [24, 48, 96, 143]
    assert "no other setting was tried" in result.output


def test_the_site_as_configured_is_refused_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lacks a plugin, say; a candidate that is refused is left out."""

    def refuse(runner: Runner, chosen: object) -> Config:
        raise ConfigError("lsb.queues", [Problem("policy.select", "no plugin named 'select/cons_tres'")])

    monkeypatch.setattr(Runner, "_read", refuse)
    nothing: Any = None
    runner = Runner(asked=nothing, site=nothing, leader="", workers=1)
    with pytest.raises(ConfigError, match="no plugin named"):
        runner.config(())
    candidate: Any = (("GraceTime", "60"),)
    assert runner.config(candidate) is None
    assert runner.refused == {candidate: "no plugin named 'select/cons_tres'"}

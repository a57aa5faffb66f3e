"""Differences between two replays are told only where they are more than chance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from makeway_app.judged import LEAST, judge

Run = Callable[..., Any]
DAY, HOUR = 86400.0, 3600.0


def changes(values: Sequence[float], every: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return one job for each day or hour, with how its wait changed and when it was submitted."""
    jobs = [str(at) for at in range(len(values))]
    return dict(zip(jobs, values, strict=True)), {job: at * every for at, job in enumerate(jobs)}


def test_what_is_the_same_each_day_differs() -> None:
    """Each log that is drawn has the same mean, whichever days it has."""
    found = judge(*changes([60.0] * LEAST, DAY), seed=1)
    assert found is not None
    assert (found.value, found.low, found.high) == (60.0, 60.0, 60.0)
    assert (found.unit, found.parts, found.differs) == ("day", LEAST, True)


def test_one_odd_day_is_no_difference() -> None:
    """Of 20 days one has a change: a log lacks that day with a chance of 0.95 to the power of 20, which is 36%."""
    found = judge(*changes([6000.0, *[0.0] * 19], DAY), seed=1)
    assert found is not None
    assert (found.value, found.low, found.differs) == (300.0, 0.0, False)
    # It has that day three times at most but with a chance of 1.6%, twice at most but with one of 7.5%.
    assert found.high == 900.0


def test_jobs_count_not_days() -> None:
    """A day of nine jobs that wait 10 s less counts more than one of one that waits 20 s more: -70 s of 10 jobs."""
    waits, submitted = changes([20.0], DAY)
    for at in range(9):
        waits[f"b{at}"], submitted[f"b{at}"] = -10.0, DAY
    found = judge(waits, submitted, seed=1)
    assert found is not None
    assert found.value == -7.0


def test_of_a_sum_no_job_counts_twice() -> None:
    """Of 20 days one has 100 more: drawn days have it up to three times, so 0 to 300, however many jobs there are."""
    lost, submitted = changes([100.0, *[0.0] * 19], DAY)
    for at in range(50):
        lost[f"b{at}"], submitted[f"b{at}"] = 0.0, DAY
    found = judge(lost, submitted, seed=1, summed=True)
    assert found is not None
    assert (found.value, found.low, found.high, found.differs) == (100.0, 0.0, 300.0, False)
    always = judge(*changes([2.0] * LEAST, DAY), seed=1, summed=True)
    assert always is not None
    assert (always.value, always.low, always.high, always.differs) == (28.0, 28.0, 28.0, True)


def test_a_short_log_is_judged_by_hours_or_not_at_all() -> None:
    """Fourteen hours are enough, thirteen are not; without a common job there is nothing to judge."""
    by_hour = judge(*changes([-60.0] * LEAST, HOUR), seed=1)
    assert by_hour is not None
    assert (by_hour.unit, by_hour.parts, by_hour.differs) == ("hour", LEAST, True)
    short = judge(*changes([-60.0] * (LEAST - 1), HOUR), seed=1)
    assert short is not None
    assert (short.unit, short.parts, short.differs) == ("", LEAST - 1, False)
    assert judge({}, {}, seed=1) is None


@pytest.mark.parametrize("seed", [0, 7])
def test_a_seed_draws_the_same_again(seed: int) -> None:
    """Whoever repeats a command gets the same answer."""
    given = changes([float(at * 37 % 101) for at in range(30)], DAY)
    assert judge(*given, seed=seed) == judge(*given, seed=seed)
    assert judge(*given, seed=seed) != judge(*given, seed=seed + 1)


SITE = """
[[node]]
name = "n1"
cpus = 1

[[partition]]
name = "batch"
nodes = "n1"
default = true

[policy]
select = "select/cons_tres"
select_parameters = ["CR_CPU"]

[scheduler]
clockwork = "ideal"
"""


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (
            14,
            "mean wait, B less A: +0:16:40; 95% of logs drawn from its 14 days: +0:16:40 to +0:16:40: longer",
        ),
        (2, "mean wait, B less A: +0:16:40; not judged: 2 hours with jobs, and 14 are needed"),
    ],
)
def test_compared_runs_are_judged(run: Run, tmp_path: Path, days: int, said: str) -> None:
    """Each day two jobs are submitted, and one waits: 1,000 s with one CPU for both, but with two none does."""
    config, jobs = tmp_path / "site.toml", tmp_path / "jobs.jsonl"
    config.write_text(SITE.replace("cpus = 1", "cpus = 2"))
    rows = [
        {"id": f"{day}{name}", "submit": day * DAY, "run_time": 2000, "tasks": 1}
        for day in range(days)
        for name in "ab"
    ]
    jobs.write_text("\n".join(map(json.dumps, rows)))
    done = run("replay", config, jobs, "--compare", "node.n1.cpus=1")
    assert said in " ".join(done.out.split())


TIERS = """
[[node]]
name = "n1"
cpus = 2

[[partition]]
name = "low"
nodes = "n1"
default = true

[[partition]]
name = "high"
nodes = "n1"
priority_tier = 2

[policy]
select = "select/cons_tres"
select_parameters = ["CR_CPU"]
preempt = "preempt/partition_prio"
preempt_mode = ["requeue"]

[scheduler]
clockwork = "ideal"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "said"),
    [
        pytest.param(
            14,
            (
                "core-hours lost, B less A: +14.0; 95% of logs drawn from its 14 days: +14.0 to +14.0: more",
                "preemptions, B less A: +14; 95% of logs drawn from its 14 days: +14 to +14: more",
            ),
            id="the same each day",
        ),
        pytest.param(
            2,
            ("core-hours lost +2.0, preemptions +2; not judged: 4 hours with jobs, and 14 are needed",),
            id="too short",
        ),
    ],
)
def test_lost_hours_and_preemptions_are_judged(
    run: Run, tmp_path: Path, days: int, said: tuple[str, ...]
) -> None:
    """Each day a job has run for an hour when one of another tier comes; with one CPU it is requeued."""
    config, jobs = tmp_path / "site.toml", tmp_path / "jobs.jsonl"
    config.write_text(TIERS)
    rows = [
        {"id": f"{day}{name}", "submit": day * DAY + at, "run_time": 4000, "tasks": 1, "partition": name}
        for day in range(days)
        for at, name in ((0.0, "low"), (HOUR, "high"))
    ]
    jobs.write_text("\n".join(map(json.dumps, rows)))
    done = run("replay", config, jobs, "--compare", "node.n1.cpus=1")
    for each in said:
        assert each in " ".join(done.out.split())
    same = run("replay", config, jobs, "--compare", "scheduler.requeue=true")
    assert "core-hours lost, B less A" not in same.out

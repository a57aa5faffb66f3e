"""Goals, figures and intervals, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from makeway.config import parse_toml
from makeway.model import JobSpec
from makeway_sweep.work import ByJob
from makeway_tune.facts import Costs, Facts, drawn, facts_of, value
from makeway_tune.goals import Limit, Measure, goals_of, measure_of
from makeway_tune.log import Group, Log, busiest, log_of
from makeway_tune.sure import change, disturbed, draws, student, told

CONFIG = parse_toml(
    'node = [{ name = "n1", cpus = 4 }]\npartition = [{ name = "low", default = true }, { name = "high" }]',
    "cluster.toml",
)
DAYS = 16


def log_with(users: int = 2, days: int = DAYS) -> Log:
    """Return a log of two jobs a day: one of low, one of high."""
    jobs = [
        JobSpec(
            id=f"{day}{name}",
            user=f"u{day % users}",
            partitions=() if name == "low" else (name,),
            submit_at=day * 86400.0,
            run_time=100.0,
            time_limit=120.0,
        )
        for day in range(days)
        for name in ("low", "high")
    ]
    return log_of(jobs, CONFIG, "log")


def facts(log: Log, waits: list[float], lost: float = 0.0) -> Facts:
    """Return a run in which jobs waited so long, and each lost so much."""
    size = len(log.jobs)
    return Facts(np.array(waits), np.full(size, lost), np.zeros(size))


def test_a_log_of_days_is_cut_into_days() -> None:
    """16 days with jobs are enough for days; a week has 7 of them, and jobs without a partition are of the default."""
    log = log_with()
    assert (log.unit, log.parts, log.tried, log.days) == ("day", 16, 7, 16.0)
    assert log.names("partition") == ["high", "low"]


def test_goals_are_read() -> None:
    """Measures, groups of any kind, limits in minutes, in shares of today, and never."""
    log = log_with()
    high = Group("partition", "high")
    goals = goals_of(
        ["lost-hours[user=u1]"], ["wait[high].p95 <= 10min", "lost-hours<=90%"], ["preempted[high]"], log
    )
    assert goals.minimise == (Measure(what="lost-hours", whose=Group("user", "u1")),)
    assert goals.limits == (
        Limit(
            measure=Measure(what="wait", whose=high, stat="p95"), most=600.0, said="wait[high].p95 <= 10min"
        ),
        Limit(measure=Measure(what="lost-hours"), most=0.9, relative=True, said="lost-hours<=90%"),
        Limit(measure=Measure(what="preempted", whose=high), most=0.0, said="never preempted[high]"),
    )
    assert goals.limits[1].bound(200.0) == 180.0
    assert str(measure_of("wait[high]", "--minimise", log)) == "wait[high].mean"


def test_figures_of_a_run() -> None:
    """Two jobs a day: those of low wait 10 s, those of high 30 s; one job is hit twice and loses half an hour twice."""
    log = log_with()
    found = ByJob(
        waits={spec.id: 30.0 if spec.partitions else 10.0 for spec in log.jobs},
        preempted={"3low": 2},
        losses=[("3low", 1800.0, 4), ("3low", 1800.0, 4)],
    )
    run = facts_of(log, found, Costs())
    assert value(measure_of("wait", "", log), log, run) == 20.0
    assert value(measure_of("wait[low].p95", "", log), log, run) == 10.0
    assert value(measure_of("lost-hours", "", log), log, run) == 4.0 / 16
    assert value(measure_of("preempted[low]", "", log), log, run) == 2 / 16
    assert value(measure_of("hit-twice[high]", "", log), log, run) == 0.0
    assert value(measure_of("hit-twice[u1]", "", log), log, run) == 1 / 16
    cheaper = facts_of(log, found, Costs(every=lambda at: 1500.0, restart=lambda at: 60.0))
    assert cheaper.lost.sum() == pytest.approx(2 * 360 * 4 / 3600)


def test_a_job_that_never_started_has_no_wait() -> None:
    """Waits are those of jobs that started."""
    log = log_with()
    run = facts_of(log, ByJob(waits={"0low": 5.0}, preempted={}, losses=()), Costs())
    assert value(measure_of("wait", "", log), log, run) == 5.0
    assert math.isnan(value(measure_of("wait[high]", "", log), log, run))


def test_drawn_weeks_are_what_their_days_are() -> None:
    """A week of one day seven times over has the figures of that day."""
    log = log_with()
    run = facts(log, [float(at // 2) for at in range(2 * DAYS)], lost=1.0)
    counts = np.zeros((2, DAYS))
    counts[0, 3] = counts[1, 5] = 7
    for text in ("wait", "wait.median", "wait.p95", "wait.max"):
        assert list(drawn(measure_of(text, "", log), log, run, counts)) == [3.0, 5.0]
    assert list(drawn(measure_of("lost-hours", "", log), log, run, counts)) == [2.0, 2.0]


def test_what_never_varies_is_sure() -> None:
    """Days that are all alike leave no doubt; days that differ do, and a difference of noise is said to be none."""
    log = log_with()
    drawings = draws(log, 1)
    assert set(drawings.logs.sum(axis=1)) == {16.0}
    same, less = facts(log, [100.0] * 32), facts(log, [60.0] * 32)
    wait = measure_of("wait", "", log)
    found = told(wait, log, [same], drawings)
    assert (found.low, found.value, found.high) == pytest.approx((100.0, 100.0, 100.0))
    moved = change(wait, log, [same], [less], drawings)
    assert moved.differs
    assert (moved.low, moved.value, moved.high) == pytest.approx((-40.0, -40.0, -40.0))
    chance = np.random.default_rng(2)
    noise = facts(log, list(100.0 + chance.normal(0, 50, 32)))
    assert not change(wait, log, [same], [noise], drawings).differs


def test_the_weeks_of_a_log_are_counted_from_its_end() -> None:
    """Of 23 days the first two are in no week."""
    log = log_with(days=23)
    assert log.stretches == "weeks"
    weeks = [list(np.flatnonzero(row)) for row in draws(log, 0).weeks]
    assert weeks == [[*range(16, 23)], [*range(9, 16)], [*range(2, 9)]]


def test_a_third_of_a_short_log_is_told_like_a_week() -> None:
    """Of 16 days, and of 17 hours, five."""
    jobs = [JobSpec(id=str(at), submit_at=at * 3600.0, run_time=1.0) for at in range(17)]
    assert log_with().stretches == "stretches of 5 days"
    assert log_of(jobs, CONFIG, "log").stretches == "stretches of 5 hours"
    assert [sum(row) for row in draws(log_with(), 0).weeks] == [5, 5, 5]


@pytest.mark.parametrize(("free", "within"), [(1, 6.314), (2, 2.920), (3, 2.353), (10, 1.812), (30, 1.697)])
def test_students_t(free: int, within: float) -> None:
    """The column of 90% of its tables in textbooks."""
    assert student(0.9, free) == pytest.approx(within, abs=0.001)


def week_log(*weeks: float) -> tuple[Log, Facts]:
    """Return a log of so many weeks, in each of which so many core-hours are lost a day."""
    log = log_with(users=21, days=7 * len(weeks))
    lost = [each / 2 for week in weeks for each in [week] * 14]
    return log, Facts(np.zeros(len(lost)), np.array(lost), np.zeros(len(lost)))


def farther(few: int) -> float:
    """Return, from the covariances of fractional Gaussian noise, how far a week lies from the mean of those before."""

    def together(one: int, other: int) -> float:
        apart = abs(one - other)
        return 0.5 * float((apart + 1) ** 1.8 - 2 * apart**1.8 + abs(apart - 1) ** 1.8)

    weights = np.array([1 / few] * few + [-1.0])
    covariances = np.array([[together(at, by) for by in range(few + 1)] for at in range(few + 1)])
    own = np.mean([[covariances[at, by] for by in range(few)] for at in range(few)])
    return float(weights @ covariances @ weights / (1 - own))


def test_a_week_to_come_lies_between() -> None:
    """Weeks that lose 125, 216 and 343 core-hours a day: by cube roots 6, give or take 2.920 times their spread.

    A user with jobs in one of them, or in none, tells nothing of another.
    """
    log, run = week_log(125.0, 216.0, 343.0)
    lost, drawings = measure_of("lost-hours", "", log), draws(log, 0)
    found = told(lost, log, [run], drawings)
    by = 2.920 * math.sqrt(2 / 3 * farther(3))
    assert 2.920 * math.sqrt(4 / 3) < by < 2.920 * 1.5
    assert found.value == pytest.approx(684 / 3)
    assert [found.low, found.high] == pytest.approx([(6 - by) ** 3, (6 + by) ** 3], rel=1e-3)
    alone = told(measure_of("wait[u3]", "", log), log, [run], drawings)
    assert alone.value == 0.0
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    untold = change(measure_of("wait[u3]", "", log), log, [run], [run], drawings)
    assert (untold.value, untold.differs) == (0.0, False)
    assert math.isnan(untold.high)


def test_a_change_in_a_week_to_come_lies_between() -> None:
    """Changes of -1, -8 and -27: by cube roots -2 give or take; never more than all that may be lost.

    Less in each of three weeks is no chance, though another week may well bring more.
    """
    log, before = week_log(1000.0, 1000.0, 1000.0)
    _, after = week_log(999.0, 992.0, 973.0)
    lost, drawings = measure_of("lost-hours", "", log), draws(log, 0)
    found = change(lost, log, [before], [after], drawings)
    by = 2.920 * math.sqrt(2 / 3 * farther(3))
    after_told = told(lost, log, [after], drawings)
    assert found.value == pytest.approx(-12.0)
    assert found.differs
    assert found.low == pytest.approx(max((-2 - by) ** 3, after_told.low - 1000.0), rel=1e-3)
    assert found.high == pytest.approx(min((by - 2) ** 3, after_told.high - 1000.0), rel=1e-3)
    assert found.low < -27.0 < 0.0 < found.high


def test_run_times_are_a_little_off_and_within_limits() -> None:
    """The same for every candidate; no job outgrows its limit."""
    log = log_with()
    made = disturbed(log.jobs, 3)
    assert made == disturbed(log.jobs, 3)
    lengths = [spec.run_time or 0.0 for spec in made]
    assert len(set(lengths)) > 10
    assert max(lengths) <= 120.0
    assert [spec.submit_at for spec in made] == [spec.submit_at for spec in log.jobs]


def test_the_busiest_week() -> None:
    """Candidates are tried where there is something to win."""
    log = log_with()
    weight = np.zeros(32)
    weight[20] = 1.0  # day 10
    found = busiest(log, weight, 7)
    assert found[20]
    assert found.sum() == 14

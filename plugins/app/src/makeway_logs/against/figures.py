"""Work out how far waits, priorities and reasons of a replay are from those of its log."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.metrics import tidy
from makeway.model import Seconds
from makeway_logs.against.row import Count, Row

DAY: Seconds = 86400.0
WINDOW = 14
"""Days over which waits are averaged."""
WITHIN: Mapping[str, Seconds] = {"1_min": 60.0, "10_min": 600.0, "60_min": 3600.0}
GROUPS: Mapping[str, Callable[[Row], str]] = {
    "partition": lambda row: row.partition,
    "qos": lambda row: row.qos,
    "account": lambda row: row.account,
    "user": lambda row: row.user,
}
COUNTED: Mapping[str, Callable[[Count], str]] = {
    "partition": lambda count: count.partition,
    "user": lambda count: count.user,
}


@attrs.frozen(kw_only=True)
class Figures:
    """Waits of some jobs, in the log and in the replay."""

    jobs: int
    median: tuple[Seconds, Seconds]
    mean: tuple[Seconds, Seconds]
    within: Mapping[str, float]
    """Share of the starts that are at most so far from those of the log."""
    off: float | None
    """Mean absolute percentage error of the moving average; None: no job waited."""
    days: int
    """Over how many days it was taken."""

    def as_dict(self) -> dict[str, Any]:
        """Return it in values that JSON has."""
        return {
            "jobs": self.jobs,
            "median_wait": _both(*map(tidy, self.median)),
            "mean_wait": _both(*map(tidy, self.mean)),
            "starts_within": {name: tidy(share) for name, share in self.within.items()},
            "moving_average": {
                "window_days": WINDOW,
                "days": self.days,
                "mape": None if self.off is None else tidy(self.off),
            },
        }


def figures_of(rows: Sequence[Row]) -> Figures:
    """Return the figures of some jobs, at least one."""
    recorded, replayed = [row.recorded for row in rows], [row.replayed for row in rows]
    gaps = [abs(row.recorded - row.replayed) for row in rows]
    off, days = moving_error(rows)
    return Figures(
        jobs=len(rows),
        median=(statistics.median(recorded), statistics.median(replayed)),
        mean=(statistics.fmean(recorded), statistics.fmean(replayed)),
        within={name: sum(gap <= most for gap in gaps) / len(gaps) for name, most in WITHIN.items()},
        off=off,
        days=days,
    )


def moving_error(rows: Iterable[Row]) -> tuple[float | None, int]:
    """Return by how much the moving average of waits is off in the mean, and over how many days.

    The average of a day is that of all jobs submitted on it and in the 13 days before. Days whose recorded average is
    0 have no percentage, and are left out.
    """
    sums: dict[int, list[float]] = {}
    for row in rows:
        of_day = sums.setdefault(int(row.submit // DAY), [0.0, 0.0, 0.0])
        of_day[0] += 1
        of_day[1] += row.recorded
        of_day[2] += row.replayed
    if not sums:
        return None, 0
    errors: list[float] = []
    first, last = min(sums), max(sums)
    count = recorded = replayed = 0.0
    for day in range(first, last + 1):
        for sign, at in ((1.0, day), (-1.0, day - WINDOW)):
            here = sums.get(at)
            if here is not None:
                count += sign * here[0]
                recorded += sign * here[1]
                replayed += sign * here[2]
        if count and recorded > 1e-6:
            errors.append(abs(replayed - recorded) / recorded)
    return (statistics.fmean(errors) if errors else None), len(errors)


def by_group(rows: Sequence[Row], group: str) -> dict[str, Figures]:
    """Return the figures of each partition, QOS or account, by name."""
    of = GROUPS[group]
    ordered = sorted(rows, key=of)
    return {name: figures_of(list(mine)) for name, mine in itertools.groupby(ordered, key=of)}


@attrs.frozen(kw_only=True)
class Counts:
    """How often jobs had to go, and what that cost, in the log and in the replay; None: the log does not say of all."""

    jobs: int
    requeues: tuple[int | None, int]
    preemptions: tuple[int | None, int]
    lost: tuple[float | None, float]

    def as_dict(self) -> dict[str, Any]:
        """Return it in values that JSON has."""
        return {
            "jobs": self.jobs,
            "requeues": _both(*self.requeues),
            "preemptions": _both(*self.preemptions),
            "core_seconds_lost": _both(*(None if value is None else tidy(value) for value in self.lost)),
        }


def _both(recorded: float | None, replayed: float | None) -> dict[str, float | None]:
    return {"recorded": recorded, "replayed": replayed}


def counts_of(counts: Sequence[Count]) -> Counts:
    """Add up some jobs."""

    def known(values: Iterable[float | None]) -> Any:
        listed = list(values)
        return None if None in listed else sum(each for each in listed if each is not None)

    return Counts(
        jobs=len(counts),
        requeues=(known(each.requeues[0] for each in counts), sum(each.requeues[1] for each in counts)),
        preemptions=(
            known(each.preemptions[0] for each in counts),
            sum(each.preemptions[1] for each in counts),
        ),
        lost=(known(each.lost[0] for each in counts), math.fsum(each.lost[1] for each in counts)),
    )


def counts_by(counts: Sequence[Count], group: str) -> dict[str, Counts]:
    """Return the counts of each partition or user, by name."""
    of = COUNTED[group]
    ordered = sorted(counts, key=of)
    return {name: counts_of(list(mine)) for name, mine in itertools.groupby(ordered, key=of)}


def later_runs(rows: Iterable[Row]) -> tuple[int, Seconds, Seconds] | None:
    """Return how many runs after requeues can be compared, and their mean waits; None: there is none."""
    pairs = [pair for row in rows for pair in row.later]
    if not pairs:
        return None
    return (
        len(pairs),
        statistics.fmean(one for one, _ in pairs),
        statistics.fmean(other for _, other in pairs),
    )


@attrs.frozen(kw_only=True)
class Agreement:
    """How many of some pairs are alike."""

    compared: int
    equal: int
    close: int = 0
    """Numbers only: within 1 %."""
    median_off: float | None = None
    """Numbers only: median of the differences, as a share of the recorded one."""

    def as_dict(self) -> dict[str, Any]:
        """Return it in values that JSON has."""
        found: dict[str, Any] = {"compared": self.compared, "equal": self.equal}
        if self.median_off is not None:
            found |= {"close": self.close, "median_off": self.median_off}
        return found


def priorities(rows: Iterable[Row]) -> Agreement | None:
    """Compare the priorities at the start; None: the log has none."""
    pairs = [row.priorities for row in rows if row.priorities is not None]
    if not pairs:
        return None
    off = [abs(one - other) / one for one, other in pairs]
    return Agreement(
        compared=len(pairs),
        equal=sum(one == other for one, other in pairs),
        close=sum(each <= 0.01 for each in off),
        median_off=tidy(statistics.median(off)),
    )


def reasons(rows: Iterable[Row]) -> Agreement | None:
    """Compare why jobs last waited; None: the log does not say."""
    pairs = [row.reasons for row in rows if row.reasons is not None]
    if not pairs:
        return None
    return Agreement(compared=len(pairs), equal=sum(plain(one) == plain(other) for one, other in pairs))


def plain(reason: str) -> str:
    """Return a reason as it is compared: sacct and squeue spell blanks differently."""
    return reason.replace(" ", "_").lower()


def as_dict(rows: Sequence[Row], counts: Sequence[Count]) -> dict[str, Any]:
    """Return all figures in values that JSON has."""
    found: dict[str, Any] = {"jobs_compared": len(rows)}
    if rows:
        found["all"] = figures_of(rows).as_dict()
        for group in GROUPS:
            named = by_group(rows, group)
            found[f"by_{group}"] = {name: each.as_dict() for name, each in named.items()}
    if counts:
        found["counts"] = {
            "all": counts_of(counts).as_dict(),
            **{
                f"by_{group}": {name: each.as_dict() for name, each in counts_by(counts, group).items()}
                for group in COUNTED
            },
        }
    later = later_runs(rows)
    if later is not None:
        number, *means = later
        found["later_runs"] = {"compared": number, "mean_wait": _both(*map(tidy, means))}
    for name, agreement in (("priority", priorities(rows)), ("reason", reasons(rows))):
        found[name] = None if agreement is None else agreement.as_dict()
    return found

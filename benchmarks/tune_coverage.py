"""Does `makeway tune` keep its promises? ``python benchmarks/tune_coverage.py examples/kth/cluster.toml LOG``.

Coverage: a log of many weeks is replayed under a few settings, as a whole and with run times that are a little off. For
each stretch of `--seen` days the figures get the interval that `makeway tune` would tell. The week behind it, or what
takes its place in a short log, has its own figure, of which the interval knows nothing. Printed is how often that lies
within, and how wide the interval is against it. Where the change from one setting to the next is told as more than
noise, the week behind is asked whether it went the same way; and of each change whether it lies within its interval.

Regret: on the first `--jobs` jobs all combinations of a few settings are replayed, and the search may try a third of
them. Printed is by what share the best that it found is worse than the best of all.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import numpy as np

from makeway.config import Config
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway_app.cli.changes import change_all
from makeway_app.cli.inputs import load_config
from makeway_app.readers.open import open_workload
from makeway_sweep.plan import Variant
from makeway_sweep.work import Shared, Task, run
from makeway_tune.facts import Costs, Facts, facts_of, value
from makeway_tune.files import Chosen, Site, site_of
from makeway_tune.goals import Measure
from makeway_tune.log import Log, log_of
from makeway_tune.search import Score, search
from makeway_tune.sure import Drawn, Told, change, disturbed, draws, told

SETTINGS = ("policy.preemption.youngest_first=false", "policy.preemption.exempt_time=3600")
MEASURES = (
    *(Measure(what="wait", stat=stat) for stat in ("mean", "median", "p95")),
    *(Measure(what=what) for what in ("lost-hours", "preempted", "hit-twice")),
)
SMALL = ("exempt_time", "grace_time")
DISTURBED = 2


def replayed(config: Config, jobs: Sequence[JobSpec], log: Log) -> Facts:
    """Return what became of the jobs."""
    shared = Shared(name="log", jobs=tuple(jobs), epoch=None, unusable=0)
    outcome = run(Variant(values=(), config=config), "", shared, Task(by_job=True))
    if outcome.by_job is None:
        raise SystemExit(outcome.error)
    return facts_of(log, outcome.by_job, Costs())


def part_of(log: Log, facts: Facts, first: int, parts: int) -> tuple[Log, Facts]:
    """Return some days of a log that was replayed as a whole."""
    mask = (log.part >= first) & (log.part < first + parts)
    jobs = tuple(spec for spec, mine in zip(log.jobs, mask, strict=True) if mine)
    cut = Log(jobs=jobs, default=log.default, unit=log.unit, length=log.length, parts=parts)
    cut.part = log.part[mask] - first
    return cut, Facts(facts.waits[mask], facts.lost[mask], facts.hits[mask])


@attrs.frozen(eq=False)
class Window:
    """Some days of a log, and those behind them, of which nothing is known then."""

    log: Log
    runs: Sequence[Sequence[Facts]]
    """Of each setting the replays."""
    drawings: Drawn
    after: Log
    came: Sequence[Facts]
    """Of each setting what then came."""


def windows(replays: Sequence[Sequence[Facts]], log: Log, seen: int) -> Iterator[Window]:
    """Yield all windows of so many days; what comes behind one is what comes behind no other."""
    ahead = part_of(log, replays[0][0], 0, seen)[0].stretch
    for first in range(0, log.parts - seen - ahead + 1, ahead):
        runs = [[part_of(log, each, first, seen) for each in listed] for listed in replays]
        came = [part_of(log, listed[0], first + seen, ahead) for listed in replays]
        here, after = runs[0][0][0], came[0][0]
        facts = [[each for _, each in listed] for listed in runs]
        yield Window(here, facts, draws(here, first), after, [each for _, each in came])


def replays_of(config: Config, log: Log) -> Sequence[Sequence[Facts]]:
    """Return the replays of each setting: of the log, and of the log with other run times."""
    worlds = [log.jobs, *(disturbed(log.jobs, seed) for seed in range(DISTURBED))]
    return [
        [replayed(change_all(config, [setting], "--set"), jobs, log) for jobs in worlds]
        for setting in SETTINGS
    ]


def coverage(config: Config, logs: Sequence[Log], every: Sequence[int]) -> None:
    """Print how often what comes lies within what was told of the days before.

    :param every: how many days are seen, or hours of a short log.
    """
    replays = [replays_of(config, log) for log in logs]
    for seen in every:
        looked = [each for log, made in zip(logs, replays, strict=True) for each in windows(made, log, seen)]
        figures = {str(each): [list(_held(window, each)) for window in looked] for each in MEASURES}
        changes = [[each for measure in MEASURES for each in _moved(window, measure)] for window in looked]
        figures["all"] = [list(itertools.chain(*listed)) for listed in zip(*figures.values(), strict=True)]
        for name, listed in (*figures.items(), ("changes", changes)):
            print(f"{seen} seen, {name:12} {_share(listed)}")
        same = [went for window in looked for each in MEASURES for went in _went(window, each)]
        print(f"{seen} seen, changes beyond the noise that went the same way: {sum(same)} of {len(same)}")


Held = tuple[bool, float]
"""Whether what came lies within what was told, and how wide that is over the figure."""


def _share(of_windows: Sequence[Sequence[Held]]) -> str:
    """Return how often what came lies within, give or take two standard errors; and how wide that is.

    Figures of one window are no independent trials: the error is that of a ratio over windows (Cochran, Sampling
    Techniques, on clusters).
    """
    hits = np.array([sum(within for within, _ in listed) for listed in of_windows if listed])
    tried = np.array([len(listed) for listed in of_windows if listed])
    few = len(tried)
    if not few:
        return "nothing was told"
    share = hits.sum() / tried.sum()
    error = (
        math.sqrt(((hits - share * tried) ** 2).sum() * few / (few - 1)) / tried.sum()
        if few > 1
        else math.nan
    )
    wide = [each for listed in of_windows for _, each in listed if not math.isnan(each)]
    width = f", {np.median(wide):.1f} times the figure wide" if wide else ""
    return f"{hits.sum():4} of {tried.sum():4} within: {share:.0%} +- {2 * error:.0%}, {few} windows{width}"


def _held(window: Window, measure: Measure) -> Iterator[Held]:
    """Yield for each setting whether what came lies within what was told.

    Where nothing was told and nothing came, there is nothing to hold.
    """
    for runs, facts in zip(window.runs, window.came, strict=True):
        came = value(measure, window.after, facts)
        promise = told(measure, window.log, runs, window.drawings)
        if math.isnan(came) or math.isnan(promise.high) or not (came or promise.high):
            continue
        yield _within(promise, came), (promise.high - promise.low) / came if came else math.nan


def _moved(window: Window, measure: Measure) -> Iterator[Held]:
    """Yield the same of the change from one setting to the next; it is as wide as it is over the figure before."""
    one, other = window.runs
    moved = change(measure, window.log, one, other, window.drawings)
    before, after = (value(measure, window.after, facts) for facts in window.came)
    if (
        math.isnan(after - before)
        or math.isnan(moved.high)
        or not (after - before or moved.low or moved.high)
    ):
        return
    yield _within(moved, after - before), (moved.high - moved.low) / before if before else math.nan


def _within(promise: Told, came: float) -> bool:
    return promise.low - 1e-9 <= came <= promise.high + 1e-9


def _went(window: Window, measure: Measure) -> Iterator[bool]:
    """Yield, of a change beyond the noise, whether what came moved that way, or not at all."""
    one, other = window.runs
    moved = change(measure, window.log, one, other, window.drawings)
    before, after = (value(measure, window.after, facts) for facts in window.came)
    if moved.differs and not math.isnan(after - before):
        yield (after - before) * moved.value >= 0


def regret(path: Path, config: Config, log: Log, seed: int, settings: Sequence[str]) -> None:
    """Print how far the best that was found is from the best of all."""
    site: Site = site_of(path, config, settings)
    known: dict[Chosen, float] = {}

    def cost(chosen: Chosen) -> float:
        if chosen not in known:
            with site.placed(chosen) as (file, _):
                facts = replayed(load_config(file).config, log.jobs, log)
            wait, hours = Measure(what="wait", stat="mean"), Measure(what="lost-hours")
            known[chosen] = value(wait, log, facts) + 60 * value(hours, log, facts)
        return known[chosen]

    every = [
        site.chosen(dict(zip((each.name for each in site.knobs), values, strict=True)))
        for values in itertools.product(*((each.now, *each.values) for each in site.knobs))
    ]
    best = min(map(cost, every))
    found = search(
        site,
        lambda listed: [Score(values=(cost(each),)) for each in listed],
        1,
        trials=len(every) // 3,
        seed=seed,
        until=time.monotonic() + 3600,
        progress=lambda number: None,
    )
    least = min(score.values[0] for score in found.values())
    share = (least - best) / best if best else 0.0
    now = (cost(()) - best) / best if best else 0.0
    print(f"regret after {len(found)} of {len(every)} combinations: {share:.1%}; as configured: {now:.1%}")


def main() -> None:
    """Measure coverage, then regret."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("log", type=Path, nargs="+", help="of several the windows are counted together")
    parser.add_argument(
        "--seen",
        type=int,
        nargs="*",
        default=[14, 21, 28, 42],
        help="days that are seen; hours of a short log",
    )
    parser.add_argument("--jobs", type=int, default=1000, help="jobs for the regret; 0: leave it out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="take only so many jobs")
    parser.add_argument("--skip", type=int, default=0, help="jobs at the beginning to leave out")
    parser.add_argument(
        "--settings", nargs="+", default=SMALL, help="parts of the names of those for the regret"
    )
    given = parser.parse_args()
    config = load_config(given.config).config
    limit = None if given.limit is None else given.skip + given.limit
    logs = []
    for path in given.log:
        jobs = tuple(open_workload(path, ReadOptions(config=config, limit=limit)).jobs)[given.skip :]
        logs.append(log_of(jobs, config, str(path)))
        print(f"{path.name}: {len(jobs):,} jobs over {logs[-1].days:,.0f} days")
    if given.seen:
        coverage(config, logs, given.seen)
    if given.jobs:
        few = log_of(logs[0].jobs[: given.jobs], config, str(given.log[0]))
        regret(given.config, config, few, given.seed, given.settings)


if __name__ == "__main__":
    main()

"""Does `makeway tune` keep its promises? ``python benchmarks/tune_coverage.py examples/kth/cluster.toml LOG``.

Coverage: a log of many weeks is replayed under a few settings, as a whole and with run times that are a little off. For
each stretch of `--seen` weeks the figures get the interval that `makeway tune` would tell, and the week behind the
stretch, of which the interval knows nothing, has its own figure. Printed is how often that lies within.

Regret: on the first `--jobs` jobs all combinations of a few settings are replayed, and the search may try a third of
them. Printed is by what share the best that it found is worse than the best of all.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Sequence
from pathlib import Path

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
from makeway_tune.sure import disturbed, draws, told

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


def coverage(config: Config, log: Log, seen: int) -> None:
    """Print how often the week that comes lies within what was told of the weeks before."""
    hits = {str(each): [0, 0] for each in MEASURES}
    worlds = [log.jobs, *(disturbed(log.jobs, seed) for seed in range(DISTURBED))]
    for setting in SETTINGS:
        changed = change_all(config, [setting], "--set")
        runs = [replayed(changed, jobs, log) for jobs in worlds]
        for week in range(log.parts // 7 - seen):
            cuts = [part_of(log, facts, 7 * week, 7 * seen) for facts in runs]
            after, facts = part_of(log, runs[0], 7 * (week + seen), 7)
            drawn = draws(cuts[0][0], week)
            for measure in MEASURES:
                came = value(measure, after, facts)
                if not math.isnan(came):
                    promise = told(measure, cuts[0][0], [each for _, each in cuts], drawn)
                    hits[str(measure)][0] += promise.low - 1e-9 <= came <= promise.high + 1e-9
                    hits[str(measure)][1] += 1
    for name, (within, of) in hits.items():
        print(f"{name:14} {within:4} of {of:4} weeks within: {within / of:.0%}")
    within, of = np.sum(list(hits.values()), axis=0)
    print(f"{'all':14} {within:4} of {of:4} weeks within: {within / of:.0%}")


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
    parser.add_argument("log", type=Path)
    parser.add_argument("--seen", type=int, default=3, help="weeks of a stretch; 0: no coverage")
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
    jobs = tuple(open_workload(given.log, ReadOptions(config=config, limit=limit)).jobs)[given.skip :]
    log = log_of(jobs, config, str(given.log))
    print(f"{len(jobs):,} jobs over {log.days:,.0f} days")
    if given.seen:
        coverage(config, log, given.seen)
    if given.jobs:
        few = jobs[: given.jobs]
        regret(given.config, config, log_of(few, config, str(given.log)), given.seed, given.settings)


if __name__ == "__main__":
    main()

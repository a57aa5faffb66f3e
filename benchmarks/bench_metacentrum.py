"""Replay three months of jobs with QOS preemption under select/cons_tres, beside a loop that only counts cores.

The log is ``metacentrum-wagap-2013.swf.gz``: 17,900 jobs of 11 queues on 68 nodes with 2,176 cores. The loop beside it
counts cores alone, without nodes, memory, preemption or records: the ratio is what remains when machines differ.
Times are CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import attrs
import counting_loop

from makeway.config import Config
from makeway.readers.api import ReadOptions
from makeway_app.cli.inputs import load_config
from makeway_app.readers.open import open_workload
from makeway_app.replay import replay

HERE = Path(__file__).parent


SCHEDULERS = ("builtin", "easy", "greedy")


def measured(config: Config, log: Path, rounds: int) -> str:
    """Replay the log so many times; return what it took, in words."""
    jobs = list(open_workload(log, ReadOptions(config=config)).jobs)
    counted = counting_loop.read_swf(log)
    times, ratios, preemptions = [], [], 0
    for _ in range(rounds):
        began = time.process_time()
        counting_loop.simulate(counted, 2176, "easy")
        loop = time.process_time() - began
        began = time.process_time()
        run = replay(config, jobs)
        times.append(time.process_time() - began)
        ratios.append(times[-1] / loop)
        preemptions = run.recorder.metrics.preemptions
    took = statistics.median(times)
    return (
        f"{config.policy.select}, {config.policy.preempt}, {config.scheduler.type}: {len(jobs) / took:,.0f} jobs/s, "
        f"{preemptions:,} preemptions (median of {rounds}); "
        f"{statistics.median(ratios):.0f} times as long as a loop that counts"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="metacentrum-wagap-2013.swf.gz")
    parser.add_argument("--config", type=Path, default=HERE / "metacentrum.toml")
    parser.add_argument("--scheduler", help="one scheduler.type only", choices=[*SCHEDULERS, "backfill"])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    config = load_config(given.config).config
    for scheduler in [given.scheduler] if given.scheduler else SCHEDULERS:
        scheduled = attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, type=scheduler))
        print(measured(scheduled, given.log, given.rounds))


if __name__ == "__main__":
    main()

"""Replay Philly's extract under ``kueue/cohort`` on clusters of several sizes, in the classic way and by fair shares.

Run ``python benchmarks/quota_replay.py philly.csv [--gpus N ...] [--limit N]``. Queues and jobs are those of
``examples/five-ways``; quotas grow with the cluster. Beside each stands a replay of the same jobs first come, first
served: the ratio is what quotas that lend cost. The smaller the cluster, the more jobs are displaced.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway_app.cli.inputs import load_config
from makeway_app.readers.open import open_workload
from makeway_app.replay import replay

EXAMPLE = Path(__file__).parents[1] / "examples" / "five-ways" / "cluster.toml"
POLICY = "kueue/cohort"
_ON_NODE = 8
_OF_EXAMPLE = 400


def scaled(settings: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Return the settings with quotas `factor` times as large."""
    queues = [
        queue | {"quotas": [each | {"nominal": round(each["nominal"] * factor)} for each in queue["quotas"]]}
        for queue in settings["queue"]
    ]
    return dict(settings) | {"queue": queues}


def site(gpus: int, sharing: str) -> Config:
    """Return the example with so many GPUs."""
    config = load_config(EXAMPLE).config
    settings = scaled(config.policy.settings[POLICY], gpus / _OF_EXAMPLE) | {"sharing": sharing}
    policy = attrs.evolve(
        config.policy,
        preempt=POLICY,
        select="kueue/quota",
        select_parameters=(),
        settings={POLICY: settings},
    )
    nodes = (attrs.evolve(config.node[0], name=f"n[1-{gpus // _ON_NODE}]"),)
    return attrs.evolve(config, node=nodes, policy=policy)


def plain(config: Config) -> Config:
    """Return the same cluster where jobs start in the order in which they come, and none makes way."""
    policy = attrs.evolve(config.policy, preempt="preempt/none", select="select/gpu_pack", settings={})
    return attrs.evolve(config, policy=policy, scheduler=attrs.evolve(config.scheduler, type="builtin"))


def took(config: Config, jobs: Sequence[JobSpec]) -> tuple[float, int]:
    """Return the CPU seconds of a replay and how many preemptions there were."""
    began = time.process_time()
    run = replay(config, jobs)
    return time.process_time() - began, run.recorder.metrics.preemptions


def main() -> None:
    """Print a row for each size and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="philly.csv, the extract of Pollux and Sia")
    parser.add_argument("--gpus", type=int, nargs="+", default=[2496, 800, 400], help="of the cluster")
    parser.add_argument("--sharing", nargs="+", default=["classic", "fair"], choices=["classic", "fair"])
    parser.add_argument("--limit", type=int, help="the first so many jobs")
    given = parser.parse_args()
    for gpus in given.gpus:
        config = site(gpus, "classic")
        jobs = list(open_workload(given.log, ReadOptions(config=config)).jobs)[: given.limit]
        without, _ = took(plain(config), jobs)
        print(f"{gpus:,} GPUs, first come, first served: {len(jobs) / without:,.0f} jobs/s", flush=True)
        for sharing in given.sharing:
            seconds, preemptions = took(site(gpus, sharing), jobs)
            print(
                f"{gpus:,} GPUs, {sharing}: {len(jobs) / seconds:,.0f} jobs/s, {preemptions:,} preemptions, "
                f"{seconds / without:.1f} times as long",
                flush=True,
            )


if __name__ == "__main__":
    main()

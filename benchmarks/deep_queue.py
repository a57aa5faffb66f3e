"""Replay a queue that is deep from the start, until it is empty: what does a job cost when thousands wait?

All jobs are submitted within the first second. The cost is CPU time per job; the exponent says how it grows with the
depth of the queue, fitted over all depths given.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import attrs

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import JobSpec
from makeway_app.cli.inputs import load_config
from makeway_app.replay import Options, replay

SITES = Path(__file__).parent / "sites"
_SEED = 20130101
_THOUSAND = "n[0001-1000]"
_SLURMS_DEPTH = 500
"""bf_max_job_test, where no line sets it."""


def _plain(
    scheduler: str,
    select: str,
    preempt: str = "preempt/none",
    mode: tuple[str, ...] = ("off",),
    nodes: str = "n[001-100]",
    clockwork: Mapping[str, float] | None = None,
) -> Config:
    """Return nodes of 8 cores with two partitions, of which the second may preempt the first if any may."""
    cores = select == "select/cons_tres"
    return Config(
        node=(NodeTable(name=nodes, cpus=8, memory_mb=64_000),),
        partition=(PartitionTable(name="low", default=True), PartitionTable(name="high", priority_tier=2)),
        policy=PolicyTable(
            select=select,
            select_parameters=("CR_Core_Memory",) if cores else (),
            preempt=preempt,
            preempt_mode=mode,
        ),
        scheduler=SchedulerTable(type=scheduler, clockwork=dict(clockwork or {})),
    )


def _jobs(count: int, seed: int = _SEED) -> list[JobSpec]:
    """Return jobs of one to eight nodes that run for up to three hours, by limits of up to twice as long."""
    chance = Random(seed)
    found = []
    for at in range(count):
        run = chance.randint(60, 10_800)
        found.append(
            JobSpec(
                id=str(at + 1),
                user=f"user{chance.randrange(20)}",
                partitions=("high" if chance.random() < 0.1 else "low",),
                submit_at=at / count,
                run_time=float(run),
                time_limit=float(60 * math.ceil(run * chance.uniform(1.0, 2.0) / 60)),
                min_nodes=chance.choice((1, 1, 1, 2, 4, 8)),
                cpus_per_task=chance.choice((1, 2, 4, 8)),
                memory_mb_per_node=chance.choice((1_000, 4_000, 16_000)),
            )
        )
    return found


def _lsf_jobs(count: int) -> list[JobSpec]:
    """Return jobs that may all start: JL/U and HJOB_LIMIT of the site allow six slots on a host."""
    chance = Random(_SEED)
    queues = ("urgent", "short", "short", "normal", "normal", "normal")
    return [
        JobSpec(
            id=str(at + 1),
            user=f"user{chance.randrange(20)}",
            partitions=(chance.choice(queues),),
            submit_at=at / count,
            run_time=float(chance.randint(60, 10_800)),
            tasks=chance.choice((1, 1, 1, 2, 4, 6)),
        )
        for at in range(count)
    ]


def _moab_jobs(count: int) -> list[JobSpec]:
    chance = Random(_SEED)
    found = []
    for at in range(count):
        run, user = chance.randint(60, 10_800), chance.randrange(20)
        found.append(
            JobSpec(
                id=str(at + 1),
                user=f"user{user}",
                group=f"group{user % 4}",
                account=f"account{user % 5}",
                qos="high" if chance.random() < 0.1 else "low",
                submit_at=at / count,
                run_time=float(run),
                time_limit=float(60 * math.ceil(run * chance.uniform(1.0, 2.0) / 60)),
                tasks=chance.choice((1, 1, 1, 2, 4, 8)),
            )
        )
    return found


@attrs.frozen
class Case:
    """A configuration, the jobs that it gets, and what is to be reached."""

    config: Callable[[], Config]
    jobs: Callable[[int], list[JobSpec]]


def _site(name: str, file: str, nodes: str | None = None) -> Config:
    folder = SITES / name
    return load_config(folder / file, None, folder / nodes if nodes else None).config


def _plain_case(scheduler: str, select: str) -> Case:
    return Case(lambda: _plain(scheduler, select), _jobs)


CASES = {
    **{
        f"{scheduler}, {select}": _plain_case(scheduler, f"select/{select}")
        for scheduler in ("builtin", "easy", "greedy", "backfill")
        for select in ("linear", "cons_tres")
    },
    "backfill, 1,000 nodes": Case(lambda: _plain("backfill", "select/linear", nodes=_THOUSAND), _jobs),
    "backfill, 1,000 nodes, depth 500": Case(
        lambda: _plain(
            "backfill", "select/linear", nodes=_THOUSAND, clockwork={"bf_max_job_test": _SLURMS_DEPTH}
        ),
        _jobs,
    ),
    "backfill and gang": Case(
        lambda: _plain("backfill", "select/linear", "preempt/partition_prio", ("suspend", "gang")), _jobs
    ),
    "lsf": Case(lambda: _site("lsf", "lsb.queues"), _lsf_jobs),
    "moab": Case(lambda: _site("moab", "moab.cfg", "nodes.toml"), _moab_jobs),
}


def cost(case: Case, depth: int) -> float:
    """Return the CPU seconds per job of a replay with so many jobs."""
    config, jobs = case.config(), case.jobs(depth)
    began = time.process_time()
    replay(config, jobs, (), Options(keep=False))
    return (time.process_time() - began) / depth


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the straight line that fits the logarithms of `points` best."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", help=f"some of: {'; '.join(CASES)}", default=list(CASES))
    parser.add_argument("--depths", type=int, nargs="+", default=[500, 1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=3, help="the least of so many is taken")
    given = parser.parse_args()
    for name in given.case:
        points = [
            (depth, min(cost(CASES[name], depth) for _ in range(given.rounds))) for depth in given.depths
        ]
        figures = ", ".join(f"{seconds * 1e6:,.0f} us at {depth:,}" for depth, seconds in points)
        grows = f"; grows with Q^{exponent(points):.2f}" if len(points) > 1 else ""
        print(f"{name}: {figures}{grows}", flush=True)


if __name__ == "__main__":
    main()

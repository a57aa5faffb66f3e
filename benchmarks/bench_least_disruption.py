"""Time one decision of ``search/least_disruption`` beside select/linear's own two passes, in the
same run.

Many one-node jobs of one size but of different ages, all candidates, and a preemptor of half the
nodes. With ``--widest 64`` the jobs have 1 to 64 nodes, which is where choosing the fewest is a
knapsack problem.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from random import Random

from makeway import bitmap
from makeway.config import (
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    SchedulerTable,
    build_cluster,
)
from makeway.model import Allocation, Candidates, Choice, Job, JobSpec, PreemptMode
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.engine import Engine
from makeway_search_least_disruption import least_disruption
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.search import two_passes
from makeway_select_linear.selector import LinearSelector

NOW = 10_000.0


def full_cluster(jobs: int, widest: int, sharers: int) -> Engine:
    """Return an engine on whose cluster `jobs` jobs leave no node idle."""
    rng = Random(1)
    sizes = [rng.randint(1, widest) for _ in range(jobs)]
    nodes = -(-sum(sizes) // sharers)
    config = Config(
        node=(NodeTable(name=f"n[1-{nodes}]", cpus=8),),
        partition=(
            PartitionTable(name="low", default=True),
            PartitionTable(name="high", priority_tier=2),
        ),
        policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("requeue",)),
        scheduler=SchedulerTable(type="builtin"),
    )
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    at = 0
    for number, size in enumerate(sizes):
        engine.ledger.now = float(rng.randint(0, 9000))
        held = sorted({index % nodes for index in range(at, at + size)})
        _start(engine, JobSpec(id=str(number), min_nodes=size), held, shared=sharers > 1)
        at += size
    engine.ledger.now = NOW
    return engine


def _start(engine: Engine, spec: JobSpec, held: Sequence[int], *, shared: bool) -> None:
    engine.submit(spec)
    job = engine.ledger.jobs[spec.id]
    allocation = Allocation(nodes=bitmap.of(held), node_indices=tuple(held), shared=shared)
    engine.queue.remove(job)
    engine.ledger.start(job, allocation)
    engine.selector.placed(job)


def blocked(engine: Engine, wanted: int) -> tuple[Callable[[], LinearAttempt], Candidates]:
    """Return how to begin an attempt for `wanted` nodes, and which jobs it may displace."""
    spec = JobSpec(id="P", partitions=("high",), min_nodes=wanted)
    engine.submit(spec)
    job = engine.ledger.jobs["P"]
    selector = engine.selector
    assert isinstance(selector, LinearSelector)
    listed: Sequence[Job] = engine.ledger.active
    modes = (PreemptMode.REQUEUE,) * len(listed)
    candidates = Candidates(jobs=tuple(listed), modes=modes)
    return lambda: selector.attempt(job, engine.ledger.all_nodes, engine.ledger), candidates


def timed(call: Callable[[], Choice | None]) -> tuple[float, Choice]:
    """Return how long `call` takes, and its answer."""
    began = time.perf_counter()
    choice = call()
    took = time.perf_counter() - began
    assert choice is not None
    return took, choice


def main() -> None:
    """Print both times, their ratio, and what was chosen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--widest", type=int, default=1, help="jobs have 1 to so many nodes")
    parser.add_argument("--sharers", type=int, default=1, help="jobs on each node")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--effort", type=int, default=200_000)
    given = parser.parse_args()
    engine = full_cluster(given.jobs, given.widest, given.sharers)
    wanted = len(engine.ledger.cluster.nodes) // 2
    begin, candidates = blocked(engine, wanted)
    rounds = []
    for _ in range(given.rounds):
        slurms, theirs = timed(lambda: two_passes(begin(), candidates))
        least, ours = timed(lambda: least_disruption(begin(), candidates, engine.ledger, NOW, given.effort))
        rounds.append((slurms, least))
    slurm_time = statistics.median(slurms for slurms, _ in rounds)
    our_time = statistics.median(least for _, least in rounds)
    print(f"{given.jobs} jobs of 1 to {given.widest} nodes, {given.sharers} on each; {wanted} wanted")
    print(f"two passes:       {slurm_time * 1000:7.1f} ms, {len(theirs.victims)} victims")
    print(f"least disruption: {our_time * 1000:7.1f} ms, {len(ours.victims)} victims, {ours.method}")
    print(f"ratio (least disruption / two passes): {our_time / slurm_time:.2f}")


if __name__ == "__main__":
    main()

"""Time one preemption decision: many one-node jobs, a preemptor of half the nodes, REQUEUE.

Real Slurm 22.05.8 needs 1,548 ms for 10,000 nodes under select/linear (measured elsewhere, on its own
controller); here the decision (candidates, order, vetoes, search, placement) is timed beside the plain
transcription of the same algorithm, in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import time

import attrs

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import Choice, JobSpec
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine


def full_cluster(size: int, select: str = "select/linear") -> Engine:
    """Return an engine whose `size` nodes each run one low job."""
    config = Config(
        node=(NodeTable(name=f"n[1-{size}]", cpus=8, sockets=2, cores_per_socket=4, memory_mb=16000),),
        partition=(
            PartitionTable(name="low", default=True, priority_tier=1),
            PartitionTable(name="high", priority_tier=2),
        ),
        policy=PolicyTable(select=select, preempt="preempt/partition_prio", preempt_mode=("requeue",)),
        scheduler=SchedulerTable(type="builtin"),
    )
    if select == "select/cons_tres":
        config = attrs.evolve(
            config, policy=attrs.evolve(config.policy, select_parameters=("CR_Core_Memory",))
        )
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    jobs = [
        JobSpec(
            id=str(at),
            partitions=("low",),
            min_nodes=1,
            max_nodes=1,
            memory_mb_per_node=16000,
            tasks=8,
            tasks_per_node=8,
        )
        for at in range(size)
    ]
    engine.step(0.0, [Submitted(job) for job in jobs])
    assert engine.ledger.active_count == size, engine.ledger.active_count
    return engine


def decide(engine: Engine, size: int) -> tuple[float, int]:
    """Return the seconds that one decision takes, and how many victims it chooses."""
    engine.ledger.now = 10.0
    spec = JobSpec(
        id="P",
        partitions=("high",),
        min_nodes=size // 2,
        max_nodes=size // 2,
        memory_mb_per_node=1000,
        tasks=8 * (size // 2),
        tasks_per_node=8,
    )
    engine.submit(spec)
    job = engine.ledger.jobs["P"]
    placer = engine.placer
    partition = engine.ledger.cluster.partitions[1]
    object.__setattr__(job, "partition", partition)
    ledger = engine.ledger
    began = time.process_time()
    candidates = placer.order.candidates(job)
    choice, _ = placer.search.choose(job, ledger.all_nodes, candidates)
    took = time.process_time() - began
    assert isinstance(choice, Choice)
    engine.transitions.cancel_pending(job)
    return took, len(choice.victims)


def main() -> None:
    """Print the times for a cluster and one ten times as large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--select", default="select/linear")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    times = {}
    for size in (given.nodes, given.nodes * 10):
        engine = full_cluster(size, given.select)
        found = [decide(engine, size) for _ in range(given.rounds)]
        times[size] = statistics.median(took for took, _ in found)
        print(
            f"{size} nodes: median {times[size] * 1000:.1f} ms, "
            f"best {min(took for took, _ in found) * 1000:.1f} ms, {found[0][1]} victims"
        )
    print(f"ten times the cluster costs {times[given.nodes * 10] / times[given.nodes]:.1f} times as long")


if __name__ == "__main__":
    main()

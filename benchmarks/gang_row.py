"""Time the row of ``gang/timeslice``: a tick, and an end, while most jobs of a partition wait for their turn.

Each node has as many jobs as it may have, all of which want the whole node; one of them runs. The arbiter is timed by
itself: its orders are not carried out.
"""

from __future__ import annotations

import argparse
import time

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, build_cluster
from makeway.model import Allocation, ClusterView, GangVerb, Job, JobSpec, JobState, Partition
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.engine import Engine
from makeway_slurm.gang_timeslice import Timeslicer

_ENDS = 50


def crowded(nodes: int, each: int) -> tuple[Timeslicer, ClusterView]:
    """Return an arbiter that was told of so many jobs on each of so many nodes."""
    config = Config(
        node=(NodeTable(name=f"n[1-{nodes}]", cpus=8),),
        partition=(PartitionTable(name="shared", default=True, oversubscribe=f"FORCE:{each}"),),
        policy=PolicyTable(preempt_mode=("gang",), gang="gang/timeslice"),
    )
    engine = Engine(config, Recorder(build_cluster(config), keep=False), Policies(config))
    partition = engine.ledger.cluster.partitions[0]
    arbiter = Timeslicer(engine.ledger)
    for at in range(nodes * each):
        arbiter.started(_running(at, at % nodes, partition), engine.ledger)
    return arbiter, engine.ledger


def _running(index: int, node: int, partition: Partition) -> Job:
    spec = JobSpec(id=str(index), partitions=("shared",))
    return Job(
        spec=spec,
        id=spec.id,
        index=index,
        user="user",
        account=None,
        partitions=(partition,),
        partition=partition,
        qos=None,
        submit_at=0.0,
        eligible_at=0.0,
        time_limit=None,
        priority=1,
        requeueable=True,
        size=1,
        state=JobState.RUNNING,
        started_at=0.0,
        resumed_at=0.0,
        allocation=Allocation(nodes=1 << node, node_indices=(node,), shared=True),
    )


def measure(nodes: int, each: int, rounds: int = 3) -> tuple[float, float]:
    """Return the least CPU seconds of a tick, and the mean of an end."""
    arbiter, view = crowded(nodes, each)
    ticks = []
    for _ in range(rounds + 1):  # the first tick promotes the running jobs, and stops none
        began = time.process_time()
        orders = arbiter.tick(view)
        ticks.append(time.process_time() - began)
    assert len(orders) == 2 * nodes, len(orders)
    running = [order.job for order in orders if order.verb is GangVerb.RESUME]
    ends = running[:: len(running) // _ENDS]
    began = time.process_time()
    followers = [order for job in ends for order in arbiter.ended(job, view)]
    took = (time.process_time() - began) / len(ends)
    assert len(followers) == len(ends), len(followers)
    return min(ticks[1:]), took


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_250, 2_500, 5_000, 10_000])
    parser.add_argument("--each", type=int, default=8, help="jobs on each node")
    given = parser.parse_args()
    for nodes in given.nodes:
        tick, end = measure(nodes, given.each)
        print(
            f"{nodes * given.each:,} jobs on {nodes:,} nodes: tick {1e3 * tick:.1f} ms, end {1e3 * end:.3f} ms"
        )


if __name__ == "__main__":
    main()

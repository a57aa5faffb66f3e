"""A row that is changed at one place gives the very orders of one that is put together anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, build_cluster
from makeway.model import Allocation, ClusterView, GangOrder, GangVerb, Job, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.engine import Engine
from makeway_engine.ledger import put
from makeway_slurm.gang_timeslice import Timeslicer
from makeway_slurm.gang_timeslice.rows import GangPartition, Member
from makeway_testing.builders import job

NODES = 12


def _site() -> ClusterView:
    config = Config(
        node=(NodeTable(name=f"n[1-{NODES}]", cpus=4, sockets=1, cores_per_socket=4),),
        partition=(
            PartitionTable(name="low", default=True, oversubscribe="FORCE:4"),
            PartitionTable(name="high", priority_tier=2, oversubscribe="FORCE:2"),
        ),
        policy=PolicyTable(
            preempt="preempt/partition_prio", preempt_mode=("suspend", "gang"), gang="gang/timeslice"
        ),
    )
    return Engine(config, Recorder(build_cluster(config), keep=False), Policies(config)).ledger


def _allocation(chance: Random) -> Allocation:
    """Return one to three nodes, wholly or in part."""
    indices = tuple(sorted(chance.sample(range(NODES), chance.choice((1, 1, 1, 2, 3)))))
    cores = tuple(chance.choice((1, 3, 6, 12, 15)) for _ in indices) if chance.random() < 0.6 else None
    return Allocation(nodes=bitmap.of(indices), node_indices=indices, cores=cores, shared=True)


def _told(orders: Sequence[GangOrder]) -> list[tuple[object, ...]]:
    return [
        (order.verb, order.job.id, order.because_of and order.because_of.id, order.why) for order in orders
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_very_orders(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs start, end, are held and let go, and take turns; most ends are answered without asking all."""
    chance, view = Random(seed), _site()
    quick, plain = Timeslicer(view), Timeslicer(view)
    partitions = view.cluster.partitions
    there: list[Job] = []
    asked = {"in place": 0, "anew": 0}
    outside = GangPartition.outside
    how = "in place"

    def counted(self: GangPartition) -> Sequence[Member]:
        found = outside(self)
        asked[how] += len(found)
        return found

    monkeypatch.setattr(GangPartition, "outside", counted)

    def both(call: Callable[[Timeslicer], Sequence[GangOrder]]) -> None:
        nonlocal how
        how = "in place"
        orders = call(quick)
        how = "anew"
        with monkeypatch.context() as patch:
            for name in ("stands", "quiet"):
                patch.setattr(GangPartition, name, property(lambda self: False))
            expected = call(plain)
        assert _told(orders) == _told(expected)
        for order in orders:
            stops = order.verb is not GangVerb.RESUME
            put(order.job, state=JobState.SUSPENDED if stops else JobState.RUNNING)

    for at in range(300):
        what = chance.random()
        if what < 0.45 or len(there) < 40:
            new = job(str(at), partition=partitions[chance.random() < 0.1], nodes=1)
            put(new, allocation=_allocation(chance))
            there.append(new)
            both(lambda arbiter, new=new: arbiter.started(new, view))  # type: ignore[misc]
        elif what < 0.92 - seed % 2 * 0.04:
            gone = there.pop(chance.randrange(len(there)))
            put(gone, allocation=None)
            both(lambda arbiter, gone=gone: arbiter.ended(gone, view))  # type: ignore[misc]
        elif what < 0.92:
            held = chance.choice(there)
            put(held, priority=0 if held.priority else 1000)
            if not held.priority:  # nothing tells it which was let go
                both(lambda arbiter, held=held: arbiter.held(held, view))  # type: ignore[misc]
        else:
            both(lambda arbiter: arbiter.tick(view))
    assert asked["in place"] * (2 - seed % 2) < asked["anew"], asked  # what is held has all asked again

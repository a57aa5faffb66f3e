"""A row that stands is not put together anew: what comes out is the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from makeway.model import JobSpec
from makeway_slurm.gang_timeslice.rows import GangPartition
from makeway_testing.builders import config, node
from makeway_testing.scenario import replay_table

SELECT = {
    "linear": {"select": "select/linear"},
    "cores": {"select": "select/cons_tres", "select_parameters": "CR_Core"},
    "CPUs": {"select": "select/cons_tres", "select_parameters": "CR_CPU"},
    "sockets": {"select": "select/cons_tres", "select_parameters": "CR_Socket"},
}


def jobs(seed: int) -> list[JobSpec]:
    """Draw jobs of three tiers, some of which share."""
    random = Random(seed)
    drawn = []
    for at in range(80):
        nodes = random.choice((1, 1, 1, 2))
        drawn.append(
            JobSpec(
                id=f"j{at}",
                partitions=(random.choice(("low", "low", "shared", "mid", "high")),),
                submit_at=float(random.randint(0, 150)),
                run_time=float(random.randint(3, 60)),
                time_limit=float(random.randint(60, 90)),
                min_nodes=nodes,
                max_nodes=nodes,
                tasks=nodes * random.randint(1, 4),
            )
        )
    return sorted(drawn, key=lambda spec: spec.submit_at)


@pytest.mark.parametrize("select", SELECT)
@pytest.mark.parametrize("seed", range(4))
def test_the_same_record_with_every_row_put_together_anew(
    select: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions: dict[str, Any] = {
        "low": {"default": True},
        "shared": {"oversubscribe": "FORCE:2"},
        "mid": {"priority_tier": 2, "nodes": "n[2-4]"},
        "high": {"priority_tier": 3, "nodes": "n[3-4]", "preempt_mode": "off" if seed % 2 else None},
    }
    chosen = config(
        (node("n[1-4]", sockets=2, cores_per_socket=2),),
        SELECT[select],
        preempt="preempt/partition_prio",
        preempt_mode="suspend,gang",
        partitions=partitions,
        scheduler=("easy", "builtin")[seed // 2 % 2],
        timeslice=7.0,
    )
    stood = 0
    stands = GangPartition.stands

    def counting(self: GangPartition) -> bool:
        nonlocal stood
        found = stands.__get__(self)
        stood += found
        return bool(found)

    monkeypatch.setattr(GangPartition, "stands", property(counting))
    quick = replay_table(jobs(seed), config=chosen, checked=False)
    monkeypatch.setattr(GangPartition, "stands", property(lambda self: False))
    assert quick.record == replay_table(jobs(seed), config=chosen, checked=False).record
    assert stood or select in ("CPUs", "sockets")
    assert quick.record.count("SUSPENDED") > 10

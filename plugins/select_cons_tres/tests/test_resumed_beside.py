"""Jobs that a person stops and lets go on, among jobs that take nodes alone: every scene plays to its end."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from makeway import bitmap
from makeway.model import Job, JobState
from makeway_testing.builders import cluster, tiers

_SIZES = ("-n1", "-n2", "-n1 -N1 --exclusive", "-N2 --exclusive")
_EVENTS = 40


def _cores(job: Job, node: int) -> int | None:
    held = job.allocation
    assert held is not None
    return None if held.cores is None else held.cores[held.node_indices.index(node)]


def _overlap(one: Job, other: Job) -> bool:
    """Whether two jobs hold a core in common."""
    assert one.allocation is not None
    assert other.allocation is not None
    for node in bitmap.indices(one.allocation.nodes & other.allocation.nodes):
        mine, theirs = _cores(one, node), _cores(other, node)
        if mine is None or theirs is None or mine & theirs:
            return True
    return False


@pytest.mark.parametrize("scheduler", ["builtin", "backfill"])
@pytest.mark.parametrize("mode", ["requeue", "cancel"])
@pytest.mark.parametrize("seed", range(12))
def test_only_those_let_go_on_lie_on_others(
    seed: int, mode: str, scheduler: str, stage: Callable[..., Any]
) -> None:
    """As in real Slurm (recorded: resumed_beside_both, resumed_beside_stopped, resumed_beside_sharers)."""
    chance = Random(seed)
    scene = stage(
        cluster(2, cpus=4, sockets=1, cores_per_socket=4, memory_mb=4000),
        select_parameters="CR_Core",
        scheduler=scheduler,
        preempt="preempt/partition_prio",
        preempt_mode=mode,
        partitions=tiers(low=1, high=2),
    )
    gone_on: set[str] = set()
    for number in range(_EVENTS):
        jobs = list(scene.engine.ledger.jobs.values())
        running = [job for job in jobs if job.state is JobState.RUNNING]
        stopped = [job for job in jobs if job.state is JobState.SUSPENDED]
        scene.wait(1.0)
        what = chance.random()
        if what < 0.4 or not running:
            scene.submit(f"j{number}", chance.choice(_SIZES), chance.choice(("low", "high")))
        elif what < 0.55:
            scene.end(chance.choice(running).id)
        elif what < 0.75:
            scene.command("suspend", chance.choice(running).id)
        elif stopped:
            chosen = chance.choice(stopped)
            gone_on.add(chosen.id)
            scene.command("resume", chosen.id)
        alone = [
            job
            for job in scene.engine.ledger.jobs.values()
            if job.state is JobState.RUNNING and job.id not in gone_on
        ]
        assert not any(_overlap(one, other) for at, one in enumerate(alone) for other in alone[:at])
    assert gone_on

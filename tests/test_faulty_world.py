"""All policies in a world that hurts, under a daemon that crashes: what may never happen does not happen."""

from __future__ import annotations

import functools
import os
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import Config, FailureTable, WorldTable
from makeway.engine.engine import Engine
from makeway.invariants import InvariantChecker
from makeway.model import Job, JobSpec
from makeway.record import Preemption
from makeway.registry import Policies
from makeway_testing import builders
from makeway_testing.crashes import CrashingRun, check_run
from makeway_testing.faulty import NONE, Faults

TIERS: dict[str, Any] = {"partitions": builders.tiers(batch=1, urgent=2)}
PRIO: dict[str, Any] = {**TIERS, "preempt": "preempt/partition_prio"}
SETUPS: dict[str, dict[str, Any]] = {
    "none": {**TIERS, "preempt": "preempt/none"},
    "suspend": {**PRIO, "preempt_mode": "suspend,gang"},
    "requeue": {**PRIO, "preempt_mode": "requeue"},
    "cancel": {**PRIO, "preempt_mode": "cancel", "scheduler": "backfill"},
}
CI = 300


@functools.cache
def built(name: str) -> tuple[Config, Policies]:
    """Return a set-up, built once."""
    config = builders.config(builders.cluster(3, cpus=2), SETUPS[name])
    failures = FailureTable(start_hold_after=0, node_set_aside=30.0, kill_again=5.0, suspend_wait=20.0)
    config = attrs.evolve(config, world=WorldTable(survey=30.0, failures=failures))
    return config, Policies(config)


def workload(rng: Random) -> list[JobSpec]:
    """Return some jobs that meet."""
    at, jobs = 0.0, []
    for number in range(rng.randrange(3, 9)):
        at += rng.choice((0.0, 3.0, 10.0, 40.0))
        jobs.append(
            JobSpec(
                id=str(number + 1),
                partitions=(rng.choice(("batch", "urgent")),),
                submit_at=at,
                run_time=rng.choice((5.0, 30.0, 80.0)),
                time_limit=rng.choice((60.0, 600.0)),
                min_nodes=rng.choice((1, 1, 2)),
                requeue=rng.choice((None, None, False)),
            )
        )
    return jobs


def anybody(engine: Engine, entry: Preemption, victim: Job) -> str:
    """Allow what the policy's own tests judge."""
    del engine, entry, victim
    return ""


def run(name: str, seed: int, crashes: int, faults: Faults | None = None) -> None:
    """Run one workload, and check all that may never happen."""
    rng = Random(seed)
    config, policies = built(name)
    jobs = workload(rng)
    play = CrashingRun(config, jobs, seed=seed, crashes=crashes, faults=faults, policies=policies)
    checker = InvariantChecker(patience=400.0)
    check_run(play.run(checker), jobs)


@pytest.mark.parametrize("name", SETUPS)
def test_without_faults_it_is_the_simulated_world(name: str) -> None:
    """Nothing goes wrong where nothing is meant to."""
    for seed in range(5):
        run(name, seed, 0, NONE)


@pytest.mark.parametrize("name", SETUPS)
def test_crashing_runs(name: str) -> None:
    """Each job ends exactly once, none is started twice in an incarnation."""
    seeds = range(CI // len(SETUPS))
    if "MAKEWAY_SEED" in os.environ:
        seeds = range(int(os.environ["MAKEWAY_SEED"]), int(os.environ["MAKEWAY_SEED"]) + 1)
    for seed in seeds:
        try:
            run(name, seed, 3)
        except Exception as error:
            error.add_note(f"MAKEWAY_SEED={seed}")
            raise

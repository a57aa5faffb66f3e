"""Random sequences of events, valid or not, never break the engine's books.

``python -m pytest -m nightly tests/test_fuzz_events.py`` runs 100,000; a failure names the seed, which
``MAKEWAY_SEED`` runs alone.
"""

from __future__ import annotations

import functools
import os
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import Config, FailureTable, WorldTable, build_cluster
from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import (
    Action,
    BegunAnew,
    Checkpointed,
    Cleaned,
    Command,
    Event,
    Failed,
    Finished,
    Kill,
    NodesDown,
    NodesDrained,
    NodesUp,
    Noticed,
    Obstructed,
    Performed,
    Reused,
    Started,
    Submitted,
)
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.invariants import check_invariants

CI, NIGHTLY, BLOCKS = 1_000, 100_000, 10
STEPS = 16
TIERS: dict[str, Any] = {"partitions": builders.tiers(batch=1, urgent=2)}
SETUPS: list[dict[str, Any]] = [
    {**TIERS, "preempt": "preempt/partition_prio", "preempt_mode": "suspend,gang"},
    {**TIERS, "preempt": "preempt/partition_prio", "preempt_mode": "requeue"},
    {**TIERS, "preempt": "preempt/partition_prio", "preempt_mode": "cancel", "scheduler": "backfill"},
    {
        "partitions": {
            "batch": {"priority_tier": 1, "oversubscribe": "FORCE:2"},
            "urgent": {"priority_tier": 2},
        },
        "preempt": "preempt/partition_prio",
        "preempt_mode": "suspend,gang",
        "select": "select/cons_tres",
        "clockwork": "slurm",
    },
    {**TIERS, "preempt": "preempt/partition_prio", "preempt_mode": "requeue,gang", "scheduler": "greedy"},
]
ENDS = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)
VERBS = (
    "suspend",
    "resume",
    "requeue",
    "cancel",
    "checkpoint",
    "hold",
    "release",
    "priority",
    "start",
    "dance",
)
IDS = (*map(str, range(1, 13)), "ghost")


@functools.cache
def built(setup: int) -> tuple[Config, Policies]:
    """Return one of the set-ups; looking for its plugins takes longer than a sequence."""
    config = builders.config(builders.cluster(2, cpus=2), SETUPS[setup])
    return config, Policies(config)


def config_of(rng: Random, config: Config) -> Config:
    """Return `config` with rules after failures that strike at once or never."""
    failures = FailureTable(
        start_wait=rng.choice((0.0, 5.0)),
        start_hold_after=rng.choice((0, 2)),
        node_set_aside=rng.choice((0.0, 10.0)),
        suspend_wait=rng.choice((0.0, 10.0)),
        kill_again=rng.choice((1.0, 10.0)),
        restop_noticed=rng.random() < 0.5,
    )
    return attrs.evolve(config, world=WorldTable(failures=failures))


def spec_of(rng: Random) -> JobSpec:
    """Return a small job."""
    return JobSpec(
        id=rng.choice(IDS[:-1]),
        partitions=(rng.choice(("batch", "urgent")),),
        min_nodes=rng.choice((1, 1, 2)),
        tasks=rng.choice((None, 1, 2)),
        time_limit=rng.choice((None, 20.0, 60.0)),
        requeue=rng.choice((None, False)),
    )


def event_of(rng: Random, engine: Engine, actions: list[Action]) -> Event:
    """Return any event at all: half of them about what is there, the others about anything."""
    live = list(engine.ledger.jobs)
    job_id = rng.choice(live) if live and rng.random() < 0.7 else rng.choice(IDS)
    job = engine.ledger.jobs.get(job_id)
    incarnation = rng.choice((0, job.starts if job else 1, rng.randrange(4)))
    nodes = rng.randrange(8)
    now = engine.ledger.now
    serial = rng.choice(actions).serial if actions and rng.random() < 0.8 else rng.randrange(40)
    at = rng.choice((None, now, now - 3.0, now + 9.0, float("nan")))
    makers: tuple[Any, ...] = (
        lambda: Submitted(spec_of(rng)),
        lambda: Submitted(spec_of(rng)),
        lambda: Started(job_id, incarnation, at),
        lambda: Finished(job_id, rng.choice((*ENDS, JobState.RUNNING)), rng.random() < 0.6, incarnation),
        lambda: Cleaned(job_id, rng.choice((None, None, nodes)), incarnation),
        lambda: Failed(serial, "no", rng.random() < 0.8, rng.choice((0, nodes))),
        lambda: Failed(serial, "no"),
        lambda: Performed(serial),
        lambda: Noticed(job_id, rng.choice(list(JobState)), incarnation, "somebody"),
        lambda: Checkpointed(job_id, rng.choice((0.0, 5.0, -1.0, 1e9, float("nan"))), incarnation),
        lambda: BegunAnew(job_id, "it is damaged", incarnation),
        lambda: Obstructed(job_id, rng.choice(("", "it has a terminal")), incarnation),
        lambda: Command(rng.choice(VERBS), job_id, None, rng.choice(("", "5", "0", "ignorepolicies"))),
        lambda: rng.choice((NodesDown, NodesDrained))(nodes),
        lambda: NodesUp(7),
        lambda: Reused(job_id, "somebody"),
    )
    made: Event = rng.choice(makers)()
    return made


def obeyed(rng: Random, actions: list[Action]) -> list[Event]:
    """Return what an honest world would report of some actions, so that runs get anywhere."""
    return [
        Cleaned(action.job.id, None, action.incarnation)
        for action in actions[-4:]
        if isinstance(action, Kill) and rng.random() < 0.5
    ]


def run(seed: int) -> None:
    """Run one sequence."""
    rng = Random(seed)
    config, policies = built(rng.randrange(len(SETUPS)))
    config = config_of(rng, config)
    engine = Engine(config, Recorder(build_cluster(config), lambda line: None), policies)
    actions: list[Action] = []
    now = 0.0
    resumed: set[str] = set()
    for _ in range(STEPS):
        now += rng.choice((0.0, 0.0, 0.5, 3.0, 11.0, 40.0))
        events = [event_of(rng, engine, actions) for _ in range(rng.randrange(4))]
        events += [Submitted(spec_of(rng)) for _ in range(2) if rng.random() < 0.4]
        events += obeyed(rng, actions)
        resumed |= {e.job_id for e in events if isinstance(e, Command) and e.name == "resume"}
        resumed |= {e.job_id for e in events if isinstance(e, Noticed) and e.state is JobState.RUNNING}
        done = engine.step(now, events)
        serials = [action.serial for action in done]
        assert serials == sorted(set(serials))
        assert all(action.incarnation == action.job.starts for action in done)
        actions += done
        check_invariants(engine, resumed)


def run_all(first: int, last: int) -> None:
    """Run a range of seeds, or the one that the environment names."""
    if "MAKEWAY_SEED" in os.environ:
        first = int(os.environ["MAKEWAY_SEED"])
        last = first + 1
    for seed in range(first, last):
        try:
            run(seed)
        except Exception as error:
            error.add_note(f"MAKEWAY_SEED={seed}")
            raise


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_events_never_break_the_books(block: int) -> None:
    """No exception, and every job is in exactly one place after every step."""
    run_all(block * CI // BLOCKS, (block + 1) * CI // BLOCKS)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(BLOCKS))
def test_many_random_events_never_break_the_books(block: int) -> None:
    """The same, for longer."""
    run_all(block * NIGHTLY // BLOCKS, (block + 1) * NIGHTLY // BLOCKS)

"""A clock that is late by up to half a second decides what one on time decides, as much later and no more.

The world keeps its own time: only the engine is woken late. Instants of the workload lie off the grids of the
scheduler, as no clock can tell what falls on a point from what comes right after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import attrs
import pytest

from makeway.clockwork import PRESETS
from makeway.config import Config, build_cluster
from makeway.model import JobSpec, Seconds
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.worlds.api import Moment
from makeway.worlds.events import Action, Event, Start, Started
from makeway_app.replay import Options, drive
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_testing import builders

LATEST = 0.5
TIERS: dict[str, Any] = {"partitions": builders.tiers(batch=1, urgent=2)}
POLICIES: dict[str, dict[str, Any]] = {
    "none": {**TIERS, "preempt": "preempt/none", "preempt_mode": "off"},
    "suspend": {**TIERS, "preempt": "preempt/partition_prio", "preempt_mode": "suspend,gang"},
    "requeue": {**TIERS, "preempt": "preempt/partition_prio", "preempt_mode": "requeue"},
    "cancel": {
        "partitions": {"batch": {"priority_tier": 1, "grace_time": 17.0}, "urgent": {"priority_tier": 2}},
        "preempt": "preempt/partition_prio",
        "preempt_mode": "cancel",
    },
    "slices": {
        "partitions": {"batch": {"oversubscribe": "FORCE:2"}},
        "preempt": "preempt/none",
        "preempt_mode": "gang",
        "timeslice": 31.0,
    },
}
SCHEDULERS = ("builtin", "easy", "backfill", "greedy")
CI = 12


class LateWorld(SimulatedWorld):
    """Wakes the engine late; what it does itself happens when it should have been asked to."""

    def __init__(self, jobs: Sequence[JobSpec], engine: Engine, rng: Random) -> None:
        super().__init__(jobs, engine.clockwork)
        self._rng = rng
        self._told: Seconds = 0.0
        self._true: Seconds = 0.0
        self._begun: list[Event] = []

    def wait(self, until: Seconds | None) -> Moment | None:
        """Wait as ever; be late if nothing but the clock wakes the engine."""
        if self._begun:
            begun, self._begun = self._begun, []
            return self._told, begun
        found = super().wait(until)
        if found is None:
            return None
        self._true, events = found
        late = 0.0
        if not events:
            late = min(LATEST * self._rng.random(), max(0.0, self.next_at() - self._true))
        self._told = max(self._told, self._true + late)
        return self._told, events

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Perform at the instant at which the engine should have been woken, and say so of starts."""
        assert now == self._told
        super().perform(actions, self._true)
        self._begun += [
            Started(action.job.id, action.incarnation, self._true)
            for action in actions
            if isinstance(action, Start)
        ]


def workload(rng: Random) -> list[JobSpec]:
    """Return jobs at instants that end in 2 or 7, no two of whose limits strike within half a second."""
    at, jobs = 2.0, []
    for number in range(rng.randrange(3, 7)):
        at += rng.choice((0.0, 5.0, 10.0, 25.0, 60.0))
        jobs.append(
            JobSpec(
                id=str(number + 1),
                partitions=(rng.choice(("batch", "urgent")),),
                submit_at=at,
                run_time=rng.choice((10.0, 25.0, 40.0, 95.0)),
                time_limit=rng.choice((50.0, 110.0)) + 0.8 * number,
                min_nodes=rng.choice((1, 1, 2)),
            )
        )
    return jobs


def decided(
    config: Config, jobs: Sequence[JobSpec], rng: Random | None
) -> list[tuple[Seconds, tuple[Any, ...]]]:
    """Return what a run decides: instant, and what about which job; on time without `rng`."""
    lines: list[Line] = []
    recorder = Recorder(build_cluster(config), lines.append)
    engine = Engine(config, recorder, Policies(config), trusted=rng is None)
    if rng is None:
        drive(engine, SimulatedWorld(jobs, engine.clockwork), Options(until=5000.0))
    else:
        drive(engine, LateWorld(jobs, engine, rng), Options(until=5000.0))
        assert not engine.reports.unheeded
    return [
        (
            line.at,
            (line.kind, line.job, line.data.get("state"), line.data.get("nodes"), line.data.get("preemptor")),
        )
        for line in lines
        if line.kind in ("state", "preempt") and line.data.get("state") != "PENDING"
    ]


def in_order(found: Sequence[tuple[Seconds, tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return what was decided about each job, in order."""
    by_job: dict[str, list[tuple[Any, ...]]] = {}
    for _, what in found:
        by_job.setdefault(what[1], []).append(what)
    return by_job


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("policy", POLICIES)
def test_late_wakes_change_no_decision(preset: str, scheduler: str, policy: str) -> None:
    """The same about every job, in the same order; later by no more than the wake-ups that it rests on were."""
    for seed in range(CI):
        rng = Random(seed)
        settings = {**POLICIES[policy], "scheduler": scheduler, "clockwork": preset}
        config = builders.config(builders.cluster(2, cpus=2), settings)
        jobs = workload(rng)
        if policy == "slices":
            jobs = [attrs.evolve(spec, partitions=("batch",)) for spec in jobs]
        punctual, late = decided(config, jobs, None), decided(config, jobs, rng)
        assert in_order(late) == in_order(punctual), f"seed {seed}"
        for (at, _), (nominal, _) in zip(sorted(late), sorted(punctual), strict=True):
            assert abs(at - nominal) <= LATEST * rests_on(punctual, nominal) + 1e-6, f"seed {seed}"


def rests_on(found: Sequence[tuple[Seconds, tuple[Any, ...]]], until: Seconds) -> int:
    """Return on how many wake-ups in a row a decision may rest: each adds its own lateness.

    Grace time, kill wait and requeue delay run from one decision to the next; what is left of a limit is counted from
    the suspension that was decided.
    """
    before = [what for at, what in found if at <= until]
    displaced = sum(1 for what in before if what[0] == "preempt")
    stopped = sum(1 for what in before if what[2] == "SUSPENDED")
    return 1 + 3 * displaced + stopped


def test_a_limit_is_enforced_though_the_clock_is_late() -> None:
    """Preset slurm, wake-ups 3 ms late: a limit of 50 s ends at the sweep at 60 s, and the next job starts then."""
    config = builders.config(builders.one_node(cpus=2), {"clockwork": "slurm", "scheduler": "builtin"})
    lines: list[Line] = []
    engine = Engine(config, Recorder(build_cluster(config), lines.append), Policies(config))

    class Late(SimulatedWorld):
        def wait(self, until: Seconds | None) -> Moment | None:
            found = super().wait(until)
            return found if found is None or found[1] else (found[0] + 0.003, ())

    jobs = builders.jobs("job submit cpus run_time time_limit\n1 0 2 500 50\n2 5 2 10 50")
    drive(engine, Late(jobs, engine.clockwork), Options())
    starts = {line.job: line.at for line in lines if line.data.get("state") == "RUNNING"}
    ends = {line.job: line.at for line in lines if line.data.get("state") == "TIMEOUT"}
    assert ends == {"1": pytest.approx(60.0, abs=0.01)}
    assert starts["2"] == pytest.approx(60.0, abs=0.01)

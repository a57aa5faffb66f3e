"""Another configuration takes over in the middle of runs: no job is lost, or the old one goes on and says why."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from makeway.config import Config
from makeway.errors import ConfigError, PluginError
from makeway.model import JobSpec, JobState
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.worlds.events import Finished, Submitted
from makeway_app.worlds.simulated import PacedWorld, SimulatedWorld
from makeway_engine.engine import Engine
from makeway_live.drive import Live
from makeway_live.journal import Journal
from makeway_live.recovery import recover
from makeway_live.reload import reload
from makeway_testing import builders, cluster, one_node
from makeway_testing.invariants import check_invariants
from makeway_testing.strategies import POLICIES, SCHEDULERS, Scenario, contended

MANY = os.environ.get("MAKEWAY_EXAMPLES")


def changed(config: Config, preempt: str, mode: tuple[str, ...], select: str) -> Config:
    """Return a configuration with other policies."""
    parameters = ("CR_Core",) if select == "select/cons_tres" else ()
    policy = attrs.evolve(
        config.policy,
        preempt=preempt,
        preempt_mode=mode,
        select=select,
        select_parameters=parameters,
        gang="gang/timeslice",
    )
    return attrs.evolve(config, policy=policy)


def begin(config: Config, lines: list[Line] | None = None) -> Engine:
    """Return an engine without jobs."""
    sink = None if lines is None else lines.append
    return Engine(config, Recorder(builders.build_cluster(config), sink), Policies(config))


def test_no_job_is_lost_when_policies_change_under_way() -> None:
    """Preempt plugin and selector change after every few steps; each job ends exactly once."""
    tried, done = [], []

    @hypothesis_settings(
        max_examples=int(MANY or 60),
        derandomize=MANY is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data(), contended(POLICIES, (*SCHEDULERS, "greedy")))
    def holds(data: st.DataObject, scenario: Scenario) -> None:
        assert not isinstance(scenario.settings, Config)
        config = builders.config(
            scenario.machine, {**scenario.settings, "gang": "gang/timeslice", "rules": {}}
        )
        lines: list[Line] = []
        engine = begin(config, lines)
        world = SimulatedWorld(scenario.specs, engine.clockwork)
        steps = 0
        while (moment := world.wait(engine.next_wake)) is not None and steps < 400:
            steps += 1
            world.perform(engine.step(*moment), moment[0])
            if steps % 3 == 0 and steps < 60:
                preempt, mode = data.draw(st.sampled_from(POLICIES))
                select = data.draw(st.sampled_from(("select/linear", "select/cons_tres")))
                new = changed(config, preempt, tuple(mode.split(",")), select)
                tried.append(new)
                try:
                    engine, actions = reload(engine, new)
                except ConfigError:
                    continue  # some of these do not go with the partitions that were drawn
                done.append(new)
                world.perform(actions, engine.ledger.now)
        ended = [line.job for line in lines if line.kind == "state" and JobState(line.data["state"]).ended]
        assert sorted(ended) == sorted(spec.id for spec in scenario.specs)

    holds()
    assert len(done) > len(tried) // 2 > 50


def tiers(**more: Any) -> Config:
    """Return one node, a low and a high tier, victims that are suspended."""
    parts = {"low": {"priority_tier": 1}, "high": {"priority_tier": 2}}
    told = {"partitions": parts, "preempt": "preempt/partition_prio", "preempt_mode": "suspend,gang", **more}
    return builders.config(one_node(), told)


def at_work(config: Config) -> Engine:
    """Return an engine with a job that runs and its victim."""
    engine = begin(config)
    engine.step(0.0, [Submitted(JobSpec(id="low", partitions=("low",), time_limit=500.0))])
    engine.step(10.0, [Submitted(JobSpec(id="high", partitions=("high",), time_limit=500.0))])
    assert engine.ledger.jobs["low"].state is JobState.SUSPENDED
    return engine


def test_the_victim_goes_on_under_the_new_policy() -> None:
    """Suspended by one arbiter, resumed by the next."""
    old = at_work(tiers())
    new, actions = reload(old, tiers(timeslice=60, preempt_mode="requeue,gang"))
    assert actions == []
    assert new.recorder is old.recorder
    done = new.step(20.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    assert [(type(each).__name__, each.job.id) for each in done] == [("Resume", "low")]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        pytest.param(
            tiers(preempt_mode="requeue"),
            "policy.gang: job low was suspended by a policy, and nothing here would let it go on",
            id="nothing resumes",
        ),
        pytest.param(
            tiers(partitions={"low": {}, "top": {"priority_tier": 2}}),
            "no partition named 'high'",
            id="a partition is gone",
        ),
        pytest.param(
            builders.config(cluster(2), {"preempt": "preempt/none"}), "node: other nodes", id="other nodes"
        ),
    ],
)
def test_the_old_engine_goes_on_if_the_new_one_cannot(config: Config, problem: str) -> None:
    """It decides as if nothing had been asked, and hands over the same."""
    old = at_work(tiers())
    before = old.save()
    with pytest.raises(ConfigError, match=problem.split("(", maxsplit=1)[0]):
        reload(old, config)
    assert old.save() == before
    check_invariants(old)
    assert old.recorder.histories["low"].job is old.ledger.jobs["low"]


def test_a_plugin_that_there_is_not_changes_nothing() -> None:
    """The error names what is installed."""
    old = at_work(tiers())
    wrong = tiers()
    wrong = attrs.evolve(wrong, policy=attrs.evolve(wrong.policy, preempt="preempt/quos"))
    with pytest.raises(PluginError, match="preempt/qos"):
        reload(old, wrong)
    assert old.ledger.jobs["low"].state is JobState.SUSPENDED


def test_a_live_loop_reloads_between_turns(tmp_path: Path) -> None:
    """The journal follows the new engine, and a later daemon goes on under the new configuration."""
    config = tiers()
    clock = StoppedClock()
    journal = Journal(tmp_path / "journal.db")
    engine = recover(config, journal, Recorder(builders.build_cluster(config), keep=False)).engine
    world = PacedWorld(engine.clockwork, clock)
    live = Live(engine, world, clock, journal=journal)
    live.step(0.0, [Submitted(JobSpec(id="low", partitions=("low",), run_time=90.0, time_limit=500.0))])
    live.step(0.0, [Submitted(JobSpec(id="high", partitions=("high",), run_time=9.0, time_limit=500.0))])
    with pytest.raises(ConfigError, match="nothing here would let it go on"):
        live.reload(tiers(preempt_mode="requeue"))
    assert live.engine is engine
    live.reload(tiers(preempt_mode="requeue,gang", timeslice=60))
    assert live.engine is not engine
    assert sorted(live.engine.ledger.jobs) == ["high", "low"]
    kept = journal.config()
    assert kept is not None
    assert kept.policy.preempt_mode == ("requeue", "gang")
    live.step(1.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    assert live.engine.ledger.jobs["low"].state is JobState.RUNNING
    journal.close()
    with closing(Journal(tmp_path / "journal.db")) as again:
        state = again.state()
    assert state is not None
    assert [(job.spec.id, job.state) for job in state.jobs] == [("low", JobState.RUNNING)]


class StoppedClock:
    """A clock that stands still."""

    def now(self) -> float:
        """Return the start."""
        return 0.0

    def wall(self) -> float:
        """Return some day."""
        return 1e9

    def slept(self) -> float:
        """Return nothing."""
        return 0.0

    def wait(self, until: float | None) -> None:
        """Come back at once."""

    def wake(self) -> None:
        """No job waits."""

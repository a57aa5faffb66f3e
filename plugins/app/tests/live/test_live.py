"""The live loop: jobs run at the pace of a clock, and what goes wrong never ends it."""

from __future__ import annotations

import gc
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config, WorldTable, build_cluster
from makeway.errors import JournalError
from makeway.hookspecs import hookimpl
from makeway.model import JobState
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.worlds.api import Step
from makeway.worlds.clock import FakeClock
from makeway.worlds.events import Command, Start, Submitted
from makeway_app.replay import Options, replay
from makeway_app.worlds import simulated
from makeway_engine.engine import Engine
from makeway_live.agenda import Agenda
from makeway_live.drive import Live
from makeway_testing import builders

JOBS = builders.jobs(
    """
    job   partition  submit  cpus  run_time
    low   batch           0     2        60
    high  urgent         10     2        20
    """
)
TIERS: dict[str, Any] = {
    "partitions": builders.tiers(batch=1, urgent=2),
    "preempt": "preempt/partition_prio",
    "preempt_mode": "suspend,gang",
}


def config(**more: Any) -> Config:
    """Return one node, two tiers."""
    return builders.config(builders.one_node(cpus=2), {**TIERS, **more})


def live(clock: FakeClock, journal: Any = None, chosen: Config | None = None, plugins: Any = None) -> Live:
    """Return the loop over the simulated world at the pace of `clock`."""
    chosen = chosen or config()
    heard = Recorder(build_cluster(chosen), lambda line: None)
    engine = Engine(chosen, heard, Policies(chosen, plugins or {}))
    world = simulated.PacedWorld(engine.clockwork, clock)
    return Live(engine, world, clock, journal=journal, agenda=Agenda(JOBS))


def finish(loop: Live, turns: int = 500) -> None:
    """Turn until nothing is left."""
    for _ in range(turns):
        if loop.over:
            return
        loop.turn()
    pytest.fail("it does not come to an end")


def test_it_decides_what_a_replay_decides() -> None:
    """The record is the same, line by line, as that of the simulated world."""
    lines: list[Line] = []
    replay(config(), JOBS, options=Options(sink=lines.append))

    class Keeps:
        def __init__(self) -> None:
            self.lines: list[Line] = []

        def write(self, step: Step) -> None:
            self.lines += step.lines

    journal = Keeps()
    loop = live(FakeClock(), journal)
    finish(loop)
    assert journal.lines == lines
    assert loop.engine.reports.unheeded == {}


def test_a_replay_may_run_in_a_world_with_a_clock() -> None:
    """``[world]`` names it; the clock is one that stands for the computer's."""
    chosen = attrs.evolve(config(), world=WorldTable(name="world/paced"))
    options = Options(plugins={"world/paced": simulated}, clock=FakeClock())
    run = replay(chosen, JOBS, options=options)
    assert run.ended_at == 80.0
    assert {job: each.final_state for job, each in run.recorder.histories.items()} == {
        "low": JobState.COMPLETED,
        "high": JobState.COMPLETED,
    }


class Full:
    """A journal on a disk that is full for a while."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.steps: list[Step] = []

    def write(self, step: Step) -> None:
        """Write, or refuse."""
        if self.refusals:
            self.refusals -= 1
            raise JournalError("no space left on device")
        self.steps.append(step)


def test_nothing_is_performed_that_is_not_written_down() -> None:
    """While the disk is full nothing starts; then it goes on where it was."""
    clock = FakeClock()
    journal = Full(3)
    loop = live(clock, journal)
    loop.turn()
    assert loop.unwritten is not None
    assert loop.why_unwritten == "no space left on device"
    assert loop.world.survey().jobs == {}
    loop.turn()
    loop.turn()
    assert clock.now() == 2.0  # it tried once a second
    loop.turn()
    assert not loop.why_unwritten
    assert [type(action) for action in journal.steps[0].actions] == [Start]
    assert set(loop.world.survey().jobs) == {"low"}
    finish(loop)


def test_people_are_heard_at_once() -> None:
    """What is fed from outside is in the next turn, whatever the loop waited for."""
    clock = FakeClock()
    loop = live(clock)
    loop.turn()
    (extra,) = builders.jobs("job partition cpus run_time\nextra urgent 2 5")
    loop.feed(Submitted(extra), Command("hold", "low"))
    loop.turn()
    assert clock.now() == 0.0
    assert loop.engine.ledger.jobs["extra"].state is JobState.RUNNING


def test_a_sleep_is_written_down_and_looked_into() -> None:
    """While the machine sleeps jobs stand still, and so does the run's clock."""
    clock = FakeClock()
    journal = Full(0)
    loop = live(clock, journal)
    loop.turn()
    clock.sleep(3600.0)
    finish(loop)
    notes = [line for step in journal.steps for line in step.lines if line.kind == "clock"]
    assert [line.data for line in notes] == [{"slept": 3600.0}]
    assert loop.engine.recorder.metrics.last_end == 80.0


def test_a_jump_of_the_wall_clock_changes_no_decision() -> None:
    """It is written down; limits count on the run's clock."""
    clock = FakeClock()
    journal = Full(0)
    loop = live(clock, journal)
    loop.turn()
    clock.set_wall(-7200.0)
    finish(loop)
    notes = [line.data for step in journal.steps for line in step.lines if line.kind == "clock"]
    assert notes == [{"wall_jumped": -7200.0}]
    assert loop.engine.recorder.metrics.last_end == 80.0


@pytest.mark.parametrize("how", ["slept", "set ahead", "set back"])
def test_a_job_for_a_time_of_day_begins_then(how: str) -> None:
    """Its time comes nearer on the run's clock while the machine sleeps, and moves when the clock is set."""
    clock = FakeClock()
    loop = live(clock)
    loop.turn()
    (late,) = builders.jobs("job partition cpus run_time\nlate urgent 2 5")
    begins = clock.wall() + 5000.0
    loop.feed(Submitted(attrs.evolve(late, begin_at=clock.now() + 5000.0)))
    loop.turn()
    if how == "slept":
        clock.sleep(3600.0)
    else:
        clock.set_wall(600.0 if how == "set ahead" else -600.0)
    started: list[float] = []
    loop.engine.recorder.tee(
        lambda line: (
            started.append(clock.wall())
            if line.job == "late" and line.data.get("state") == "RUNNING"
            else None
        )
    )
    finish(loop)
    assert started == [pytest.approx(begins, abs=2.0)]


def test_begin_is_changed_while_a_job_waits() -> None:
    """Also of one that might have started already; what is no number is refused."""
    clock = FakeClock()
    loop = live(clock)
    late, held = builders.jobs("job partition cpus run_time\nlate urgent 2 5\nheld urgent 2 5")
    loop.feed(Submitted(attrs.evolve(late, begin_at=100.0)), Submitted(held), Command("hold", "held"))
    loop.turn()
    loop.feed(*(Command("change", name, None, f"begin={at}") for name, at in (("late", "7"), ("held", "7"))))
    loop.feed(Command("change", "late", None, "begin=soon"))
    loop.turn()
    jobs = loop.engine.ledger.jobs
    assert (jobs["late"].eligible_at, jobs["held"].eligible_at) == (7.0, 7.0)
    assert jobs["late"].spec.begin_at == 7.0


def test_the_collector_of_cycles_stays_on() -> None:
    """A daemon runs for months."""
    finish(live(FakeClock()))
    assert gc.isenabled()


def raising(after: int) -> types.ModuleType:
    """Return a preempt plugin that raises when it is asked for the `after`-th time and later."""
    module = types.ModuleType("raising")
    asked: list[int] = []

    @hookimpl
    def makeway_preempt_candidates(preemptor: Any, active: Sequence[Any]) -> Any:
        asked.append(1)
        if len(asked) >= after:
            raise ValueError("no idea")
        return None

    module.makeway_preempt_candidates = makeway_preempt_candidates  # type: ignore[attr-defined]
    module.asked = asked  # type: ignore[attr-defined]
    return module


def test_a_policy_that_raises_is_switched_off_after_a_while() -> None:
    """Its error is in the record, the job waits, jobs go on; after three errors it is asked no more."""
    plugin = raising(1)
    journal = Full(0)
    chosen = config(preempt="preempt/raising", preempt_mode="requeue", scheduler="greedy")
    loop = live(FakeClock(), journal, chosen, {"preempt/raising": plugin})
    more = builders.jobs(
        """
        job  partition  submit  cpus  run_time
        a    urgent         12     2         5
        b    urgent         14     2         5
        c    urgent         16     2         5
        d    urgent         18     2         5
        """
    )
    loop.agenda = Agenda([*JOBS, *more])
    finish(loop)
    lines = [line for step in journal.steps for line in step.lines]
    errors = [line for line in lines if line.kind == "policy_error"]
    assert len(errors) == 3
    assert errors[0].job == "high"
    assert "ValueError: no idea" in errors[0].data["why"]
    assert len(plugin.asked) == 3
    (off,) = [line for line in lines if line.kind == "preemption_off"]
    assert off.data["rule"] == "world.failures.policy_errors"
    assert {each.final_state for each in loop.engine.recorder.histories.values()} == {JobState.COMPLETED}


def test_the_waiting_job_says_why() -> None:
    """Its reason names the policy's error."""
    chosen = config(preempt="preempt/raising", preempt_mode="requeue", scheduler="greedy")
    loop = live(FakeClock(), None, chosen, {"preempt/raising": raising(1)})
    while "high" not in loop.engine.ledger.jobs:
        loop.turn()
    assert loop.engine.ledger.jobs["high"].reason == "PolicyError"


def test_a_clock_set_between_two_daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hours forward: a running job has run on for moments only, and a begin time keeps its time of day."""
    from makeway_live.recovery import live_of

    first = live_of(config(), tmp_path)
    later = attrs.evolve(JOBS[0], id="later", submit_at=0.0, begin_at=6 * 3600.0)
    first.feed(Submitted(later))
    first.turn(0.0)
    before = first.clock.now()
    first.journal.close()  # type: ignore[union-attr]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 5 * 3600.0)
    second = live_of(config(), tmp_path)
    assert second.clock.now() - before < 60.0
    second.turn(0.0)
    second.turn(0.0)
    begin = second.engine.ledger.jobs["later"].spec.begin_at
    assert begin == pytest.approx(3600.0, abs=60.0)
    second.journal.close()  # type: ignore[union-attr]

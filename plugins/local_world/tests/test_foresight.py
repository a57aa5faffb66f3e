"""What is foreseen for a job, by a copy of the engine that runs on."""

from __future__ import annotations

import math

import pytest

from makeway.model import JobSpec
from makeway.state import State
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_local_world import default
from makeway_local_world.daemon import foresight

HOUR, DAY = 3600.0, 86400.0
LAB = default.lab(default.Machine(name="here", cpus=2, memory_mb=8000), world="world/simulated")


class _Seen(Exception):  # noqa: N818  # no error
    """Breaks a run off."""


def _state(jobs: list[JobSpec], at: float) -> State:
    """Return how a lab stands at an instant."""
    found: list[State] = []

    def stepped(engine: Engine) -> None:
        if engine.ledger.now >= at:
            found.append(engine.save())
            raise _Seen

    with pytest.raises(_Seen):
        replay(LAB, jobs, (), Options(after_step=stepped))
    return found[0]


def test_a_day_ahead_is_seen_where_priorities_change_every_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two jobs of a day fill the machine one after another: the third starts once both have used their limits."""
    monkeypatch.setattr(foresight, "LONGEST", math.inf)
    monkeypatch.setattr(foresight, "MOST_STEPS", 10 * foresight.STRIDE)
    jobs = [JobSpec(id=f"j{at}", user="ann", tasks=2, run_time=DAY, time_limit=DAY) for at in range(3)]
    found = foresight.look(LAB, _state(jobs, 10.0), "j2")
    assert (found.starts_at, found.cut_short, found.after) == (2 * DAY, False, ("j1",))


def test_what_comes_soon_is_seen_as_priorities_change() -> None:
    """Another user's job passes what is left of an array by the next recalculation, as it does in the lab itself."""
    array = [JobSpec(id=f"a{at}", user="ann", run_time=60.0, time_limit=60.0) for at in range(20)]
    late = JobSpec(id="b", user="bob", submit_at=5.0, run_time=60.0, time_limit=60.0)
    found = foresight.look(LAB, _state([*array, late], 10.0), "b")
    assert found.starts_at == 60.0


def test_a_job_that_is_only_asked_about_is_seen_a_day_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is handed in to the copy once, however coarsely that goes on."""
    monkeypatch.setattr(foresight, "LONGEST", math.inf)
    jobs = [JobSpec(id="long", user="ann", tasks=2, run_time=DAY, time_limit=DAY)]
    wanted = JobSpec(id="new", user="bob", tasks=2, run_time=HOUR, time_limit=HOUR)
    assert foresight.look(LAB, _state(jobs, 0.0), "new", [wanted]).starts_at == DAY

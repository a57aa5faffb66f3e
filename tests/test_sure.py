"""Limits promise that asking them would change nothing: they are asked less often, and promises are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.errors import PluginError, PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, ClusterView, Job, JobSpec, Limits, Overdue
from makeway_app.replay import Options, replay

MOST = 6
CONFIG = Config(
    node=(NodeTable(name="n[1-4]"),),
    partition=(PartitionTable(name="all", default=True),),
    policy=PolicyTable(plugins=("limit/jobs",)),
    scheduler=SchedulerTable(type="easy"),
)
JOBS = [
    JobSpec(id=str(at), submit_at=at * 7.0, min_nodes=1 + at % 3, run_time=20.0 + at % 5 * 9, time_limit=60.0)
    for at in range(40)
]


class Plain(Limits):
    """Lets six jobs run at a time, refuses every ninth, and ends none."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Hold jobs back."""
        self.asked.append("admit")
        return Blocked() if len(view.active) >= MOST else None

    def validate(self, job: Job, view: ClusterView) -> str:
        """Refuse some."""
        self.asked.append("validate")
        return "a ninth one" if int(job.id) % 9 == 8 else ""

    def expired(self, view: ClusterView) -> Overdue:
        """End none."""
        self.asked.append("expired")
        return Overdue(jobs={}, ask_again_at=None)

    def marks(self, view: ClusterView) -> Mapping[str, frozenset[str]]:
        """Mark those that wait, at first."""
        self.asked.append("marks")
        return {} if view.now > 100 else {job.id: frozenset({"EARLY"}) for job in view.pending}


class Sure(Plain):
    """The same, with promises."""

    def __init__(self, view: ClusterView) -> None:
        super().__init__()
        self.surely_valid = lambda job: int(job.id) % 9 != 8
        self.calm_until = lambda: math.inf
        self.marked_until = lambda: math.inf if view.now > 100 else view.now


class Plugin:
    """Builds limits, and keeps them."""

    def __init__(self, build: Callable[[ClusterView], Any]) -> None:
        self.build = build
        self.built: Any = None

    @hookimpl
    def makeway_limits(self, view: ClusterView) -> Any:
        """Build them."""
        self.built = self.build(view)
        return self.built


def test_what_is_sure_is_asked_less_often_and_nothing_else_changes() -> None:
    """Jobs are refused only where limits are asked."""
    sure, plain = Plugin(Sure), Plugin(lambda view: Plain())
    runs = [replay(CONFIG, JOBS, (), Options(plugins={"limit/jobs": each})) for each in (sure, plain)]
    assert runs[0].summary() == runs[1].summary()
    rarely, often = sure.built.asked, plain.built.asked
    assert rarely.count("validate") == 4
    assert often.count("validate") == 40
    assert "expired" not in rarely
    assert 0 < rarely.count("marks") < often.count("marks") / 2


def promising(name: str, promise: Any) -> Plugin:
    """Return a plugin whose limits promise something else."""

    def build(view: ClusterView) -> Plain:
        limits = Plain()
        setattr(limits, name, promise)
        return limits

    return Plugin(build)


def failing(job: Any = None) -> float:
    """Fail."""
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("name", "promise", "text"),
    [
        ("surely_valid", lambda job: 1, "allowed: True or False"),
        ("surely_valid", failing, "no idea"),
        ("calm_until", lambda: None, "allowed: seconds"),
        ("calm_until", failing, "no idea"),
        ("marked_until", lambda: "never", "allowed: seconds"),
        ("marked_until", failing, "no idea"),
    ],
)
def test_what_is_promised_is_checked(name: str, promise: Any, text: str) -> None:
    """The error names the plugin and the hook."""
    with pytest.raises((PolicyError, PluginError), match=text) as raised:
        replay(CONFIG, JOBS, (), Options(plugins={"limit/jobs": promising(name, promise)}))
    assert "limit/jobs" in str(raised.value)
    assert "makeway_limits" in str(raised.value)


@pytest.mark.parametrize("name", ["surely_valid", "calm_until", "marked_until"])
def test_nothing_need_be_promised(name: str) -> None:
    """None: limits are asked as ever."""
    run = replay(CONFIG, JOBS, (), Options(plugins={"limit/jobs": promising(name, None)}))
    assert run.summary()["metrics"]["jobs"] == len(JOBS)

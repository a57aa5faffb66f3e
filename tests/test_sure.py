"""A mark says for sure that asking a hook would change nothing: it is asked less often, and answers are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.errors import PolicyError
from makeway.hookspecs import hookimpl, sure_by
from makeway.model import Blocked, ClusterView, Job, JobSpec, Overdue
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


class Limit:
    """Lets six jobs run at a time, refuses every ninth, and ends none."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def far(view: ClusterView) -> Callable[[Job], float]:  # noqa: N805
        """Be sure where there are few jobs, active and waiting."""
        return lambda job: math.inf if len(view.active) + len(view.pending) <= MOST else view.now

    @hookimpl
    @sure_by(far)
    def makeway_admit(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Blocked]:
        """Hold jobs back."""
        self.asked.append("admit")
        return {job.id: Blocked() for job in jobs if len(view.active) >= MOST}

    @hookimpl
    @sure_by(lambda view: lambda job: int(job.id) % 9 != 8)
    def makeway_accept(self, jobs: Sequence[Job]) -> Mapping[str, str]:
        """Refuse some."""
        self.asked.append("accept")
        return {job.id: "a ninth one" for job in jobs if int(job.id) % 9 == 8}

    @hookimpl
    @sure_by(lambda view: lambda: math.inf)
    def makeway_overdue(self) -> Overdue:
        """End nobody."""
        self.asked.append("overdue")
        return Overdue(jobs={}, ask_again_at=None)

    @hookimpl
    @sure_by(lambda view: lambda: math.inf if view.now > 100 else view.now)
    def makeway_marks(self, view: ClusterView) -> Mapping[str, frozenset[str]]:
        """Mark those who wait, at first."""
        self.asked.append("marks")
        return {} if view.now > 100 else {job.id: frozenset({"EARLY"}) for job in view.pending}


class Plain(Limit):
    """The same, asked always."""

    @hookimpl
    def makeway_admit(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Blocked]:
        """Hold jobs back."""
        return Limit.makeway_admit(self, jobs, view)

    @hookimpl
    def makeway_accept(self, jobs: Sequence[Job]) -> Mapping[str, str]:
        """Refuse some."""
        return Limit.makeway_accept(self, jobs)

    @hookimpl
    def makeway_overdue(self) -> Overdue:
        """End nobody."""
        return Limit.makeway_overdue(self)

    @hookimpl
    def makeway_marks(self, view: ClusterView) -> Mapping[str, frozenset[str]]:
        """Mark those who wait, at first."""
        return Limit.makeway_marks(self, view)


def test_who_is_sure_is_asked_less_often_and_nothing_else_changes() -> None:
    """Jobs are refused only where the hook is asked."""
    sure, plain = Limit(), Plain()
    runs = [replay(CONFIG, JOBS, (), Options(plugins={"limit/jobs": each})) for each in (sure, plain)]
    assert runs[0].summary() == runs[1].summary()
    assert sure.asked.count("accept") == 4
    assert plain.asked.count("accept") == 40
    assert "overdue" not in sure.asked
    assert 0 < sure.asked.count("marks") < plain.asked.count("marks") / 2
    assert 0 < sure.asked.count("admit") < plain.asked.count("admit") - 15


def wrong(hook: str, said: Callable[[ClusterView], Any]) -> Any:
    """Return a plugin that is sure of something else."""
    answer: Any = {} if hook != "makeway_overdue" else Overdue(jobs={}, ask_again_at=None)

    class Wrong:
        pass

    def implementation(self: Any) -> Any:
        return answer

    implementation.__name__ = hook
    setattr(Wrong, hook, hookimpl(sure_by(said)(implementation)))
    return Wrong()


def failing(job: Any = None) -> float:
    """Fail."""
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("hook", "said", "text"),
    [
        ("makeway_admit", lambda view: 3, "a function, or None"),
        ("makeway_admit", lambda view: lambda job: "soon", "allowed: seconds"),
        ("makeway_admit", lambda view: lambda job: math.nan, "allowed: seconds"),
        ("makeway_admit", lambda view: failing, "no idea"),
        ("makeway_accept", lambda view: lambda job: 1, "allowed: True or False"),
        ("makeway_accept", lambda view: failing, "no idea"),
        ("makeway_overdue", lambda view: lambda: None, "allowed: seconds"),
        ("makeway_overdue", lambda view: failing, "no idea"),
        ("makeway_marks", lambda view: lambda: "never", "allowed: seconds"),
        ("makeway_marks", lambda view: failing, "no idea"),
    ],
)
def test_what_is_said_is_checked(hook: str, said: Any, text: str) -> None:
    """The error names the plugin and the hook."""
    with pytest.raises(PolicyError, match=text) as raised:
        replay(CONFIG, JOBS, (), Options(plugins={"limit/jobs": wrong(hook, said)}))
    assert "limit/jobs" in str(raised.value)
    assert hook in str(raised.value)


@pytest.mark.parametrize("hook", ["makeway_admit", "makeway_accept", "makeway_overdue", "makeway_marks"])
def test_nobody_need_be_sure(hook: str) -> None:
    """None instead of a function: the hook is asked as ever."""
    run = replay(CONFIG, JOBS, (), Options(plugins={"limit/jobs": wrong(hook, lambda view: None)}))
    assert run.summary()["metrics"]["jobs"] == len(JOBS)

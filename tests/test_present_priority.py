"""Whose turn it is goes by the priorities that jobs have by now.

EASY holds those that arrive against the priority that the first job has now, not when room was kept for it; and
priorities are worked out once more after the last job has ended (recorded: order_changes_idle).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, ClusterView, Job, JobSpec, Limits
from makeway.priorities import Occasion
from makeway_app.replay import Options, replay


class Falling:
    """Gives what a job's attribute says; ten seconds later a job named ``head`` has little left of it."""

    next_at = 10.0

    def fresh(self, jobs: Sequence[Job], occasion: Occasion, view: ClusterView) -> list[int]:
        """Give the first priority."""
        return [job.spec.attributes["first"] for job in jobs]

    def again(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, int]:
        """Give them all anew."""
        self.next_at = view.now + 10.0
        return {job.id: 10 if job.id == "head" else job.priority for job in jobs}


class Plugin:
    """Brings it."""

    @hookimpl
    def makeway_priority(self) -> Any:
        """Give priorities."""
        return Falling()


def spec(id: str, at: float, nodes: int, first: int) -> JobSpec:
    """Return a job that runs for 100 s."""
    return JobSpec(
        id=id,
        submit_at=at,
        min_nodes=nodes,
        run_time=100.0,
        time_limit=100.0,
        attributes={"first": first},
    )


def test_who_stands_before_the_first_one_by_now_starts_first() -> None:
    """The head had 100 when it came and has 10 when another one comes with 50, and a third one with 5."""
    config = Config(
        node=(NodeTable(name="n[1-4]"),),
        partition=(PartitionTable(name="all", default=True),),
        policy=PolicyTable(priority="priority/falling"),
        scheduler=SchedulerTable(type="easy"),
    )
    jobs = [spec("a", 0, 2, 1), spec("head", 1, 4, 100), spec("b", 25, 1, 50), spec("c", 26, 1, 5)]
    run = replay(config, jobs, (), Options(plugins={"priority/falling": Plugin()}))
    began = {name: job["intervals"][-1]["start"] for name, job in run.summary()["jobs"].items()}
    assert began == {"a": 0.0, "b": 25.0, "head": 125.0, "c": 225.0}


class FallingAtRest(Falling):
    """Takes from ``head`` while no job runs."""

    def __init__(self) -> None:
        """Be there for one run."""
        self.asked_at: list[float] = []

    def again(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, int]:
        """Give them all anew."""
        self.asked_at.append(view.now)
        self.next_at = view.now + 10.0
        return {job.id: 10 for job in jobs if job.id == "head" and not view.active}


class Closed:
    """Lets ``head`` in never, and lets it hold up those behind it."""

    def __init__(self, given: FallingAtRest) -> None:
        """Give priorities by `given`."""
        self.given = given

    @hookimpl
    def makeway_priority(self) -> Any:
        """Give priorities."""
        return self.given

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Keep it out."""
        return HeadOut()


class HeadOut(Limits):
    """Keeps ``head`` out."""

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Keep it out."""
        return Blocked(reason="Limit", holds_up=True) if job.id == "head" else None


def test_priorities_are_worked_out_once_after_the_last_end() -> None:
    """The clock ticks each 10 s: `b` comes before the closed head at 30 s, not when `a` ends at 25 s."""
    config = Config(
        node=(NodeTable(name="n[1-4]"),),
        partition=(PartitionTable(name="all", default=True),),
        policy=PolicyTable(priority="priority/falling", plugins=("limit/closed",)),
        scheduler=SchedulerTable(type="builtin"),
    )
    given = FallingAtRest()
    plugins = {"priority/falling": Closed(given), "limit/closed": Closed(given)}
    jobs = [
        JobSpec(id=id, submit_at=at, min_nodes=nodes, run_time=time, attributes={"first": first})
        for id, at, nodes, time, first in [("a", 0, 4, 25, 1), ("head", 1, 1, 5, 100), ("b", 2, 1, 15, 50)]
    ]
    run = replay(config, jobs, (), Options(plugins=plugins))
    last = {name: job["intervals"][-1]["start"] for name, job in run.summary()["jobs"].items()}
    assert last == {"a": 0.0, "b": 30.0, "head": 1.0}
    assert given.asked_at == [10.0, 20.0, 30.0, 40.0, 50.0]  # `b` ends at 45 s; head waits for ever

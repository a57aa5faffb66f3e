"""EASY holds those who arrive against the priority that the first job has now, not when room was kept for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.hookspecs import hookimpl
from makeway.model import ClusterView, Job, JobSpec
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

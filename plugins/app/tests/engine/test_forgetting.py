"""What the engine keeps for a while: the last jobs to end, and sums of what is held."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makeway.model import Allocation, Job, JobState
from makeway_engine.echoes import ENDS_KEPT, Echoes
from makeway_engine.entries import Listeners
from makeway_engine.plugins_told import PluginsTold
from makeway_engine.schedulers.shapes import Shapes
from makeway_engine.usage import UsageBooks
from makeway_testing import builders


def test_the_last_to_end_are_remembered() -> None:
    """As many as are kept, all of them; of one more the first is forgotten."""
    echoes = Echoes(cast(Any, None), cast(Any, None), told=False)
    jobs = [str(at) for at in range(ENDS_KEPT + 1)]
    echoes.note_ended(jobs[:-1])
    assert echoes.ended == jobs[:-1]
    echoes.note_ended(jobs[-1:])
    assert echoes.ended == jobs[1:]


@pytest.mark.parametrize(("running", "held"), [(True, 1), (False, 2)])
def test_sums_that_are_first_asked_for_while_a_job_is_suspended(running: bool, held: int) -> None:
    """Of two active jobs one runs."""
    cluster = builders.build_cluster(builders.config(builders.cluster(2)))
    jobs = [
        builders.job(
            str(index),
            state=state,
            allocation=Allocation(nodes=1 << index, node_indices=(index,), shared=True),
        )
        for index, state in enumerate((JobState.RUNNING, JobState.SUSPENDED))
    ]
    usage = UsageBooks(cluster, jobs).of("user", running=running)
    assert sum(each.jobs for each in usage.values()) == held


def test_a_shape_forgets_jobs_that_a_glance_no_longer_judges() -> None:
    """A job that begins to wait for another reason goes apart, and comes back; one that does not stays."""
    cluster = builders.build_cluster(builders.config(builders.cluster(2)))
    partition = cluster.partitions[0]
    jobs = [builders.job(str(at), partition=partition) for at in range(2)]
    entries = [((0, 0, 0, 0.0, at, 0), job, partition) for at, job in enumerate(jobs)]
    alone: set[str] = set()
    queue = SimpleNamespace(entries=entries, listeners=Listeners())
    shapes = Shapes(cast(Any, queue), lambda job: job.size, lambda job: job.id in alone)
    shapes.many = 1
    assert shapes.complete()

    def found() -> tuple[list[str], list[str]]:
        judged = [entry[1].id for shape in shapes.behind(None) for entry in shape.entries]
        return judged, [entry[1].id for entry in shapes.apart]

    assert found() == (["0", "1"], [])
    for who, expected in (({"0"}, (["1"], ["0"])), (set[str](), (["0", "1"], []))):
        alone.clear()
        alone.update(who)
        for job in jobs:
            shapes.waits(job)
        assert found() == expected


def test_a_selector_that_knows_nothing_of_adoption_is_told_of_starts() -> None:
    """In the order of the jobs, and what was suspended in that of the moments; one that does is left to itself."""
    jobs = [
        builders.job("1", nodes=[0], state=JobState.SUSPENDED, suspended_at=9.0),
        builders.job("2", nodes=[0], state=JobState.SUSPENDED, suspended_at=5.0),
        builders.job("3", nodes=[1]),
    ]

    class Plain:
        def __init__(self) -> None:
            self.told: list[str] = []

        def placed(self, job: Job) -> None:
            self.told.append(f"placed {job.id}")

        def suspended(self, job: Job) -> None:
            self.told.append(f"suspended {job.id}")

    class Knowing(Plain):
        def restore(self, active: Sequence[Job], memory: object, view: object) -> None:
            del memory, view
            self.told.append(f"takes over {len(active)}")

    expected = {
        Plain: ["placed 1", "placed 2", "placed 3", "suspended 2", "suspended 1"],
        Knowing: ["takes over 3"],
    }
    for kind, told in expected.items():
        selector = kind()
        engine = SimpleNamespace(
            ledger=None,
            selector=selector,
            gang=None,
            policies=SimpleNamespace(restore=lambda memory, ledger: None, who=lambda hook: None),
            transitions=SimpleNamespace(priorities=SimpleNamespace(prioritizer=None)),
        )
        state = SimpleNamespace(memory={})
        PluginsTold(cast(Any, engine), cast(Any, state), "test", same=False).tell(jobs, ())
        assert selector.told == told

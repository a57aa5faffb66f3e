"""Lists of active jobs are kept while they are asked for, and say the same when they have not been for long."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makeway.model import Cluster, Job
from makeway_engine.active import ActiveJobs

NODES = 3


def _job(index: int, node: int, at: float) -> Job:
    """Return as much of a job as lists look at."""
    made: Any = SimpleNamespace(
        id=str(index), index=index, started_at=at, allocation=SimpleNamespace(node_indices=(node,))
    )
    return cast(Job, made)


@pytest.mark.parametrize("rarely", [1, 10, 400])
def test_lists_say_who_is_there(rarely: int) -> None:
    """In job-table order and node by node, however seldom they are asked for."""
    chance = Random(rarely)
    active = ActiveJobs(cast(Cluster, SimpleNamespace(nodes=range(NODES))))
    there: dict[int, Job] = {}
    asked = 0
    for step in range(3000):
        index = chance.randrange(60)
        if index in there:
            active.remove(there.pop(index))
        else:
            there[index] = _job(index, chance.randrange(NODES), float(step))
            active.add(there[index])
        if chance.randrange(rarely) == 0:
            asked += 1
            assert list(active.in_order) == [there[at] for at in sorted(there)]
            if rarely > 10 and chance.random() < 0.5:
                continue
            for node in range(NODES):
                on = [job for job in there.values() if cast(Any, job.allocation).node_indices == (node,)]
                assert list(active.on(node)) == sorted(on, key=lambda job: job.started_at or 0.0)
    assert asked > 2


def test_a_list_that_is_not_asked_for_is_dropped() -> None:
    """Then a start and an end cost nothing more than the table by id."""
    active = ActiveJobs(cast(Cluster, SimpleNamespace(nodes=range(NODES))))
    jobs = [_job(index, 0, 0.0) for index in range(200)]
    active.add(jobs[0])
    assert list(active.in_order) == jobs[:1]
    kept = [active.listed]
    for job in jobs[1:]:
        active.add(job)
    kept.append(active.listed)
    assert kept == [True, False]
    assert list(active.in_order) == jobs

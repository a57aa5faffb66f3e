"""Which age while only so many may: limits of jobs that accrue (slurm-priority-and-limits 8 no. 3; 5 no. 4 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_slurm.multifactor.tables import priority_rows

NAME = "priority/multifactor"
EACH_SECOND = 10
"""What a second of age is worth: the weight is 6000, and the highest age 600 s."""


def site(qos: Mapping[str, Any], associations: Sequence[Mapping[str, Any]] = ()) -> Config:
    """Return four nodes, recalculated at 60, 120, ... s; all jobs age, and nothing else counts."""
    tables = {
        "cluster": {"attributes": {"associations": list(associations)}},
        "node": [{"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4}],
        "partition": [{"name": "main", "default": True}],
        "qos": [{"name": "few", "attributes": dict(qos)}],
        "policy": {
            "select": "select/cons_tres",
            "select_parameters": ["CR_CPU"],
            "priority": NAME,
            "settings": {NAME: {"calc_period": 60.0, "weight_age": 6000, "max_age": 600.0}},
        },
        "scheduler": {"type": "builtin", "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def job(name: str, at: float, run: float = 1000.0, **more: Any) -> JobSpec:
    """Return a job that takes the whole cluster."""
    given = {"user": "alice", "qos": "few", "min_nodes": 4, "max_nodes": 4, "tasks": 16, **more}
    return JobSpec(id=name, submit_at=at, run_time=run, time_limit=2000.0, **given)


def array(at: float, tasks: int, run: float = 1000.0) -> list[JobSpec]:
    """Return an array of such jobs."""
    return [job(f"arr_{task}", at, run, array_id="arr", array_task=task) for task in range(1, tasks + 1)]


def ages(config: Config, jobs: Sequence[JobSpec], at: float) -> dict[str, int]:
    """Return how many seconds each waiting job was old at the last recalculation."""
    found: dict[str, int] = {}

    def look(engine: Engine) -> None:
        found.update({row.job: round(row.age) // EACH_SECOND for row in priority_rows(engine.ledger)})

    replay(config, jobs, (), Options(snapshots={at: look}, until=at + 1))
    return found


def test_only_so_many_jobs_of_a_user_age() -> None:
    """The others stay at 0 until a place is free; their clock starts in that instant, not at the next recalculation."""
    jobs = [
        job("full", 0, 100.0, qos=None),
        *(job(f"a{at}", at) for at in (2, 3, 4)),
        job("b", 5, user="bob"),
    ]
    config = site({"MaxJobsAccruePU": "2"})

    assert ages(config, jobs, 70) == {"a2": 58, "a3": 57, "a4": 0, "b": 55}
    assert ages(config, jobs, 130) == {"a3": 117, "a4": 20, "b": 115}, "a2 started at 100 s"


def test_a_limit_of_all_users_together() -> None:
    jobs = [job("full", 0, 100.0, qos=None), job("a", 2), job("b", 3, user="bob"), job("c", 4, user="carol")]

    assert ages(site({"GrpJobsAccrue": "2"}), jobs, 70) == {"a": 58, "b": 57, "c": 0}


def test_a_limit_of_an_association_counts_where_the_qos_has_none() -> None:
    """It counts all jobs of the user that age, whichever limit let them."""
    tree = [
        {"Account": "root"},
        {"Account": "acct"},
        {"Account": "acct", "User": "alice", "MaxJobsAccrue": "1"},
    ]
    jobs = [
        job("full", 0, 100.0, qos=None, user="root", account="root"),
        *(job(f"a{at}", at, account="acct", qos=None) for at in (2, 3)),
    ]

    assert ages(site({}, tree), jobs, 70) == {"a2": 58, "a3": 0}
    assert ages(site({}, tree), jobs, 130) == {"a3": 20}


def test_tasks_of_an_array_age_as_far_as_there_are_places() -> None:
    jobs = [job("full", 0, 100.0, qos=None), *array(2, 3), job("one", 4)]

    assert ages(site({"MaxJobsAccruePU": "2"}), jobs, 70) == {"arr_1": 58, "arr_2": 58, "arr_3": 0, "one": 0}


@pytest.mark.parametrize(
    ("tasks", "young"),
    [
        pytest.param(3, "one", id="the rest of the array is one task: it came before the other job"),
        pytest.param(
            4, "arr_4", id="the rest of the array went behind the other job with the task that aged"
        ),
    ],
)
def test_what_is_left_of_an_array_moves_behind_those_who_came_since(tasks: int, young: str) -> None:
    """Places come free at 100 and 150 s (recorded: accrual_arrays)."""
    jobs = [job("full", 0, 100.0, qos=None), *array(2, tasks, 50.0), job("one", 4), job("last", 5)]
    found = ages(site({"MaxJobsAccruePU": "2"}), jobs, 190)

    assert found["arr_3"] == 80
    assert found["last"] == 0
    assert found[young] == (30 if young == "one" else 0)
    if young == "arr_4":
        assert found["one"] == 30


def test_the_place_of_a_job_that_starts_goes_to_the_next() -> None:
    jobs = [job("full", 0, 100.0, qos=None), job("a", 2), job("b", 3), job("c", 4)]
    config = site({"MaxJobsAccruePU": "1"})

    assert ages(config, jobs, 70) == {"a": 58, "b": 0, "c": 0}
    assert ages(config, jobs, 130) == {"b": 20, "c": 0}


def test_without_limits_all_tasks_of_an_array_age_together() -> None:
    jobs = [job("full", 0, 100.0, qos=None), *array(2, 3)]

    assert ages(site({}), jobs, 70) == {"arr_1": 58, "arr_2": 58, "arr_3": 58}

"""For which jobs backfill keeps nodes where several rules could hold, by the rule (`makeway_slurm_rules.rules`)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config
from makeway.model import Exclusive, JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, Run, replay
from makeway_engine.engine import Engine

MINUTE = 60.0


def site(
    *, scheduler: dict[str, Any] | None = None, main: dict[str, Any] | None = None, **partition: Any
) -> Config:
    """Return three nodes of 4 CPUs, an open partition unless it is said how, and one over the same nodes as given."""
    tables = {
        "cluster": {
            "attributes": {
                "associations": [{"Account": "a"}, {"Account": "b"}, {"Account": "a", "User": "u"}]
            }
        },
        "node": [{"name": "n[1-3]", "cpus": 4}],
        "partition": [{"name": "main", "default": True, **(main or {})}, {"name": "other", **partition}],
        "qos": [
            {"name": "normal"},
            {"name": "mins", "attributes": {"MaxTRESMins": "cpu=11"}},
            {"name": "gpus", "attributes": {"MaxTRESMins": "gres/gpu=5", "GrpTRESRunMins": "gres/gpu=5"}},
        ],
        "policy": {
            "plugins": ["limits/slurm"],
            "select": "select/cons_tres",
            "select_parameters": ["CR_CPU"],
        },
        "scheduler": {
            "type": "backfill",
            "clockwork": "ideal",
            "enforce_part_limits": False,
            **(scheduler or {}),
        },
    }
    return structure(tables, Config, "test")


def job(name: str, submit_at: float, minutes: float | None, run_time: float = 600.0, **more: Any) -> JobSpec:
    limit = None if minutes is None else minutes * MINUTE
    asked = {"user": "u", "account": "a", "qos": "normal", **more}
    return JobSpec(id=name, submit_at=submit_at, run_time=run_time, time_limit=limit, **asked)


def tasks(limit: int | None, count: int = 3) -> list[JobSpec]:
    """Return an array whose tasks take a whole node for two minutes."""
    return [
        job(
            f"a{at}",
            2.0,
            2,
            run_time=100.0,
            array_id="a",
            array_task=at,
            array_limit=limit,
            exclusive=Exclusive.NODE,
        )
        for at in range(1, count + 1)
    ]


def start_of(name: str, run: Run) -> float | None:
    intervals = run.summary()["jobs"][name]["intervals"]
    return next((each["start"] for each in intervals if each["state"] == "RUNNING"), None)


SPREAD = job("spread", 0.0, 2, run_time=120.0, min_nodes=3, tasks=3)
"""A CPU of each node, for two minutes."""


@pytest.mark.parametrize(("release", "starts"), [("22.05", None), ("23.02.4", 5.0)])
def test_tasks_beyond_the_limit_of_an_array_are_planned_for_until_23_02_4(
    release: str, starts: float | None
) -> None:
    """From 120 s on a task may have each node, so that a job of three minutes delays one; then only one task runs."""
    run = replay(
        site(scheduler={"slurm_release": release}),
        [SPREAD, *tasks(1), job("small", 5.0, 3, run_time=150.0)],
        (),
        Options(until=119.0),
    )
    assert start_of("small", run) == starts


@pytest.mark.parametrize(("most", "starts"), [(2, 5.0), (3, None)])
def test_so_many_tasks_of_an_array_have_nodes_kept_for_them(most: int, starts: float | None) -> None:
    """With two, the third node is free for a job of three minutes."""
    run = replay(
        site(scheduler={"clockwork": {"bf_max_job_array_resv": most}}),
        [SPREAD, *tasks(None), job("small", 5.0, 3, run_time=150.0)],
        (),
        Options(until=119.0),
    )
    assert start_of("small", run) == starts


@pytest.mark.parametrize(
    ("partition", "rules", "starts"),
    [
        ({"attributes": {"AllowAccounts": "b"}}, {}, None),
        ({"attributes": {"AllowAccounts": "b"}}, {"backfill_plans_for_barred_accounts": False}, 5.0),
        ({"attributes": {"AllowAccounts": "b", "DenyQos": "normal"}}, {}, 5.0),
        ({"attributes": {"DenyQos": "normal"}}, {}, 5.0),
        ({"max_time": 30.0}, {}, 5.0),
        ({"max_nodes": 1}, {}, 5.0),
    ],
    ids=["account", "account, rule off", "account and QOS", "QOS", "time", "nodes"],
)
def test_nodes_are_kept_for_a_job_that_its_account_alone_keeps_out(
    partition: dict[str, Any], rules: dict[str, bool], starts: float | None
) -> None:
    """`wide` waits for `runs`; meanwhile `shut` has the two idle nodes from now on, so that `small` has none."""
    run = replay(
        site(scheduler={"rules": rules}, **partition),
        [
            job("runs", 0.0, 3, run_time=170.0, tasks=4),
            job("wide", 1.0, 5, min_nodes=3, exclusive=Exclusive.NODE),
            job("shut", 2.0, 1, min_nodes=2, partitions=("other",), exclusive=Exclusive.NODE),
            job("small", 5.0, 1, run_time=10.0),
        ],
        (),
        Options(until=100.0),
    )
    assert start_of("small", run) == starts
    assert start_of("shut", run) is None


@pytest.mark.parametrize("partitions", [("other",), ("main", "other")])
def test_a_job_that_may_not_use_its_partition_says_so_at_once(partitions: tuple[str, ...]) -> None:
    """Even where no node could run it: a partition is closed to it before nodes are looked at."""
    partition = {"attributes": {"AllowAccounts": "b"}}
    run = replay(
        site(**partition),
        [job("shut", 0.0, 1, min_nodes=1, max_nodes=1, tasks=9, partitions=partitions)],
        (),
        Options(until=20.0),
    )
    shown = run.summary()["jobs"]["shut"]
    assert shown["final_state"] == "PENDING"
    assert shown["reason"] == "PartitionConfig"  # a sentence before 24.11


def test_a_job_that_no_node_can_run_is_refused() -> None:
    """Where the last of its partitions is open to it (recorded: part_impossible_and_barred)."""
    large = job("large", 0.0, 1, min_nodes=1, max_nodes=1, tasks=9, partitions=("other", "main"))
    run = replay(site(attributes={"AllowAccounts": "b"}), [large], (), Options(until=20.0))
    assert run.summary()["jobs"]["large"]["final_state"] == "FAILED"


@pytest.mark.parametrize(("default", "starts"), [(None, 0.0), (600.0, None)])
def test_without_a_time_limit_that_of_each_partition_holds(
    default: float | None, starts: float | None
) -> None:
    """A job of two partitions may run in the short one if the first one gives none; a default is its limit in both."""
    run = replay(
        site(main={"max_nodes": 1, "default_time": default}, max_time=300.0),
        [job("wide", 0.0, None, min_nodes=2, partitions=("main", "other"), run_time=10.0)],
        (),
        Options(until=20.0),
    )
    assert start_of("wide", run) == starts


@pytest.mark.parametrize(
    ("minutes", "rules", "starts"),
    [(5, {}, 0.0), (None, {}, None), (None, {"no_time_limit_exceeds_minutes": False}, 0.0)],
)
def test_without_a_time_limit_a_job_exceeds_limits_on_minutes(
    minutes: float | None, rules: dict[str, bool], starts: float | None
) -> None:
    """One CPU for the five minutes that its partition allows would be less than eleven."""
    told: list[str] = []

    def look(engine: Engine) -> None:
        for waiting in engine.ledger.pending:
            blocked = engine.ledger.kept_out(waiting)
            told.append(blocked.detail if blocked is not None else "")

    run = replay(
        site(scheduler={"rules": rules}, max_time=300.0),
        [job("single", 0.0, minutes, run_time=10.0, qos="mins", partitions=("other",))],
        (),
        Options(until=20.0, after_step=look),
    )
    assert start_of("single", run) == starts
    assert all("the job has no time limit, and 11 minutes of cpu are allowed" in each for each in told)
    assert bool(told) is (starts is None)


def test_limits_on_minutes_of_what_a_job_does_not_want_let_it_in() -> None:
    """However long it may run: no GPU for any time is no minute of a GPU."""
    run = replay(site(), [job("single", 0.0, None, run_time=10.0, qos="gpus")], (), Options(until=20.0))
    assert start_of("single", run) == 0.0

"""Why a job can never run is said in the terms of its request, and names what is in the way."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobSpec
from makeway_testing import node, replay_table

LINEAR: dict[str, Any] = {"select": "select/linear", "select_parameters": "CR_Memory"}
CONS: dict[str, Any] = {"select": "select/cons_tres", "select_parameters": "CR_Core_Memory"}
NODES = (
    node("n[1-2]", cpus=8, memory_mb=8000, features=("big", "ib")),
    node("n[3-4]", cpus=4, memory_mb=4000, features=("ib",), gres={"gpu": 2}),
    node("n5", cpus=4, memory_mb=4000, features=("old",)),
    node("m1", cpus=64, memory_mb=64000),
)
PARTITIONS = {"p": {"nodes": "n[1-5]", "default": True}, "q": {"nodes": "m1"}}


def why(config: dict[str, Any], **keys: Any) -> str:
    """Return why a job with these keys can never run; empty: it ran."""
    heading = " ".join(["job", "run_time", *keys])
    values = " ".join(["x", "1", *(str(value) for value in keys.values())])
    run = replay_table(
        f"{heading}\n{values}\n", cluster=NODES, config=config | {"partitions": PARTITIONS}, until=10.0
    )
    return next((reason for _, _, reason in run.run.recorder.unrunnable), "")


@pytest.mark.parametrize("config", [LINEAR, CONS], ids=["linear", "cons_tres"])
@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        pytest.param({"nodes": 2, "memory_mb": 8000}, "", id="it can"),
        pytest.param(
            {"memory_mb": 9000}, "needs 1 node with 9000 MB of memory; partition p has none", id="memory"
        ),
        pytest.param(
            {"nodes": 3, "memory_mb": 5000},
            "needs 3 nodes with 5000 MB of memory; partition p has 2",
            id="too few with so much memory",
        ),
        pytest.param(
            {"nodes": 2, "features": "old"},
            "needs 2 nodes with features 'old'; partition p has 1",
            id="features",
        ),
        pytest.param({"features": "gold"}, "no node has the feature 'gold'", id="no such feature"),
        pytest.param(
            {"memory_mb": 5000, "features": "old"},
            "needs 1 node with 5000 MB of memory and features 'old'; partition p has none",
            id="two that do not go together",
        ),
        pytest.param(
            {"nodes": 3, "excluded_nodes": "n[1-3]"},
            "needs 3 nodes; partition p has 2 beside those it excludes",
            id="excluded",
        ),
        pytest.param({"tasks": 40, "max_nodes": 1}, "40", id="CPUs on one node"),
        pytest.param({"tasks": 100}, "needs 100 CPUs; partition p gives at most 28", id="CPUs in all"),
        pytest.param(
            {"required_nodes": "m1"}, "asks for m1, where it cannot run in partition p", id="elsewhere"
        ),
    ],
)
def test_what_is_in_the_way_is_named(config: dict[str, Any], keys: dict[str, Any], reason: str) -> None:
    """Alone where that is enough; numbers agree with their nouns."""
    found = why(config, **keys)
    assert reason in found
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("config", [LINEAR, CONS], ids=["linear", "cons_tres"])
def test_features_that_cannot_be_read_are_the_jobs_fault(config: dict[str, Any]) -> None:
    """Whatever reader let them through: the job is refused, the run goes on."""
    specs = [JobSpec(id="a", run_time=1.0, features="a&&b"), JobSpec(id="b", run_time=1.0)]
    run = replay_table(specs, cluster=NODES, config=config | {"partitions": PARTITIONS}, until=10.0)
    assert [(job, why) for job, _, why in run.run.recorder.unrunnable] == [
        ("a", "cannot read the features 'a&&b' at '&'")
    ]
    assert run.starts("b") == (0.0,)


@pytest.mark.parametrize("config", [LINEAR, CONS], ids=["linear", "cons_tres"])
def test_generic_resources_are_named(config: dict[str, Any]) -> None:
    """Per node, and over the whole job."""
    specs = [JobSpec(id="a", run_time=1.0, gres={"gpu": 3})]
    specs += [JobSpec(id="b", run_time=1.0, min_nodes=3, gres={"gpu": 1})]
    run = replay_table(specs, cluster=NODES, config=config | {"partitions": PARTITIONS}, until=10.0)
    reasons = {job: reason for job, _, reason in run.run.recorder.unrunnable}
    assert reasons == {
        "a": "needs 1 node with 3 gpu; partition p has none",
        "b": "needs 3 nodes with 1 gpu; partition p has 2",
    }


def test_a_total_of_generic_resources_is_named() -> None:
    """cons_tres counts them over the job."""
    specs = [JobSpec(id="c", run_time=1.0, min_nodes=2, gres_total={"gpu": 9})]
    run = replay_table(specs, cluster=NODES, config=CONS | {"partitions": PARTITIONS}, until=10.0)
    assert [reason for _, _, reason in run.run.recorder.unrunnable] == [
        "needs 9 gpu in all; partition p has 4"
    ]

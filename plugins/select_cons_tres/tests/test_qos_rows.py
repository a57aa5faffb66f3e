"""The extra row of preempt/qos: slurm-gang-and-select 4.3.7, slurm-preemption 5.2.5, rows C25 to C31, S34, S53."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway_testing.builders import Machine, cluster

ONE: Machine = cluster(1, sockets=2, cores_per_socket=4)
QOS = {
    "select_parameters": "CR_Core",
    "preempt": "preempt/qos",
    "preempt_mode": "suspend,gang",
    "timeslice": 30,
    "qos": {"low": {"priority": 1}, "high": {"priority": 10, "preempt": "low"}},
}


def one(over: str) -> dict[str, Any]:
    """Return one partition."""
    return {"partitions": {"p": {"default": True, "oversubscribe": over}}}


def turns(scene: Any, names: str, ticks: int) -> list[str]:
    """Return the states after each of the next ticks."""
    seen = []
    for _ in range(ticks):
        scene.wait(30)
        seen.append(scene.states(names))
    return seen


def test_preemptors_share_one_row(stage: Callable[..., Any]) -> None:
    """C25, 22.05: FORCE:1; low 8 cores, two high jobs of 4: they share the extra row, taking turns with the low one."""
    scene = stage(ONE, QOS, rules={"qos_suspend_simulated": False}, **one("FORCE:1"))
    scene.submit("low", "-n8 --qos=low")
    assert scene.submit("h1", "-n4 --qos=high") == "n1:0-1,4-5"
    assert scene.submit("h2", "-n4 --qos=high") == "n1:2-3,6-7"
    assert scene.submit("h3", "-n4 --qos=high") == ""
    assert scene.states("low h1 h2 h3") == "R S S PD"
    assert turns(scene, "low h1 h2", 4) == ["R S S", "S R R", "R S S", "S R R"]


def test_preemptors_lie_on_one_another(stage: Callable[..., Any]) -> None:
    """C25 since 24.11.2: each takes the cores of the low job anew (recorded: qos_row_of_several)."""
    scene = stage(ONE, QOS, **one("FORCE:1"))
    scene.submit("low", "-n8 --qos=low")
    for name in ("h1", "h2"):
        assert scene.submit(name, "-n4 --qos=high") == "n1:0-1,4-5"
    assert scene.submit("h3", "-n8 --qos=high") == ""
    assert scene.states("low h1 h2 h3") == "R S S PD"
    assert turns(scene, "low h1 h2", 4) == ["R S S", "S R S", "S S R", "R S S"]


def test_who_left_the_extra_row_frees_its_cores(stage: Callable[..., Any]) -> None:
    """Jobs of the extra row that had cores in common are put into rows anew when one of them ends."""
    scene = stage(ONE, QOS, **one("FORCE:1"))
    scene.submit("low", "-n8 --qos=low")
    scene.submit("h1", "-n4 --qos=high")
    scene.submit("h2", "-n4 --qos=high")
    scene.command("cancel", "low")
    scene.command("cancel", "h1")
    assert scene.submit("next", "-n4 --qos=low") == "n1:2-3,6-7"
    scene.command("cancel", "h2")
    assert scene.submit("last", "-n4 --qos=low") == "n1:0-1,4-5"


def test_no_extra_row_without_force(stage: Callable[..., Any]) -> None:
    """C26: NO: the high job waits for good."""
    scene = stage(ONE, QOS, **one("NO"))
    scene.submit("low", "-n8 --qos=low")
    assert scene.submit("high", "-n4 --qos=high") == ""


def test_extra_row_after_all_others(stage: Callable[..., Any]) -> None:
    """C27: FORCE:2; two low jobs of 8 cores, then the high one: three take turns."""
    scene = stage(ONE, QOS, **one("FORCE:2"))
    scene.submit("l1", "-n8 --qos=low")
    scene.submit("l2", "-n8 --qos=low")
    scene.submit("h", "-n4 --qos=high")
    assert scene.states("l1 l2 h") == "R S S"
    after = turns(scene, "l1 l2 h", 5)
    assert after == ["R S S", "S R S", "S S R", "R S S", "S R S"]
    assert scene.submit("l3", "-n8 --qos=low") == ""


@pytest.mark.parametrize(
    ("tier", "states", "after"),
    [
        pytest.param(1, "R R", "R R", id="same tier: both run"),
        pytest.param(5, "S R", "S R", id="higher tier: the low one is stopped"),
        pytest.param(0, "R S", "R S", id="lower tier: placed and stopped at once"),
    ],
)
def test_other_partition(stage: Callable[..., Any], tier: int, states: str, after: str) -> None:
    """C28, C29, S35: low in p, high in q over the same node."""
    partitions = {
        "p": {"default": True, "oversubscribe": "FORCE:1"},
        "q": {"oversubscribe": "FORCE:1", "priority_tier": tier},
    }
    scene = stage(ONE, QOS, partitions=partitions)
    scene.submit("low", "-n8 --qos=low")
    scene.submit("high", "-n4 --qos=high", "q")
    assert scene.states("low high") == states
    scene.wait(90)
    assert scene.states("low high") == after


def test_a_free_row_before_victims(stage: Callable[..., Any]) -> None:
    """C30: REQUEUE without gang, FORCE:2: both run, none is preempted."""
    scene = stage(ONE, QOS, preempt_mode="requeue", **one("FORCE:2"))
    scene.submit("low", "-n8 --qos=low")
    scene.submit("high", "-n4 --qos=high")
    assert scene.states("low high") == "R R"


def test_one_of_two_is_requeued(stage: Callable[..., Any]) -> None:
    """C31: REQUEUE, NO; low 4, low 4, high 2: one low job goes, high gets its cores."""
    scene = stage(ONE, QOS, preempt_mode="requeue", **one("NO"))
    scene.submit("l1", "-n4 --qos=low")
    scene.submit("l2", "-n4 --qos=low")
    scene.submit("high", "-n2 --qos=high")
    assert scene.cores("high") == "0,4"
    assert scene.job("l1").restarts == 1
    assert scene.job("l2").restarts == 0


def test_suspended_first_then_turns(stage: Callable[..., Any]) -> None:
    """S34: one partition, one node: the preemptor is stopped first, then they alternate."""
    scene = stage(ONE, QOS, **one("FORCE:1"))
    scene.submit("low", "-n8 --qos=low")
    scene.submit("high", "-n8 --qos=high")
    scene.submit("third", "-n1 --qos=low")
    assert scene.states("low high third") == "R S PD"
    assert turns(scene, "low high", 4) == ["R S", "S R", "R S", "S R"]


def test_cores_of_those_that_stay_are_not_taken(stage: Callable[..., Any]) -> None:
    """Only cores of candidates are overlaid (24.11.2): a job of the same QOS keeps its cores to itself."""
    scene = stage(ONE, QOS, **one("FORCE:1"))
    scene.submit("other", "-n4 --qos=high")
    scene.submit("low", "-n4 --qos=low")
    assert scene.submit("high", "-n4 --qos=high") == scene.where("low") == "n1:2-3,6-7"


@pytest.mark.parametrize(
    ("x", "y"), [pytest.param(1, 2, id="suspend first"), pytest.param(2, 1, id="requeue first")]
)
def test_mixed_modes(stage: Callable[..., Any], x: int, y: int) -> None:
    """S53: X is suspended, Y requeued; only one kind is used, so two nodes cannot be had."""
    qos = {
        "x": {"priority": x, "preempt_mode": "suspend"},
        "y": {"priority": y, "preempt_mode": "requeue"},
        "high": {"preempt": "x,y"},
    }
    machine = cluster(2, sockets=2, cores_per_socket=4)
    scene = stage(machine, QOS, qos=qos, **one("FORCE:1"))
    scene.submit("jx", "-n8 -w n1 --qos=x")
    scene.submit("jy", "-n8 -w n2 --qos=y")
    assert scene.submit("p", "-N2 -n16 --qos=high") == ""
    assert scene.states("jx jy") == "R R"
    scene.command("cancel", "p")
    assert scene.submit("p1", "-N1 -n8 --qos=high") == ("n1:0-7" if x == 1 else "n2:0-7")

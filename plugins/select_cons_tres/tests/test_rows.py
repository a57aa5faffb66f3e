"""Which jobs share cores with which: slurm-gang-and-select 4.3.1 to 4.3.5, 4.5, rows C08 to C20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway_select_cons_tres.request import AVAILABLE, ONE_ROW, RESERVED, mark_of
from makeway_testing.builders import Machine, cluster

ONE: Machine = cluster(1, sockets=2, cores_per_socket=4)
GANG = {"select_parameters": "CR_Core", "preempt_mode": "gang"}


def shared(over: str) -> dict[str, Any]:
    """Return one partition that shares."""
    return {"partitions": {"p": {"default": True, "oversubscribe": over}}}


def fill_three_rows(stage: Callable[..., Any]) -> Any:
    """Return a stage after the submissions of C08."""
    scene = stage(ONE, GANG, **shared("FORCE:3"))
    for name, tasks in (("a8", 8), ("b4", 4), ("c2", 2), ("d8", 8), ("e2", 2), ("f1", 1), ("g1", 1)):
        scene.submit(name, f"-n{tasks} -m block:block")
    return scene


def test_the_fullest_row_comes_first(stage: Callable[..., Any]) -> None:
    """C08: the second -n2 fills the second row; nothing is left for the two -n1."""
    scene = fill_three_rows(stage)
    places = [scene.cores(name) for name in ("a8", "b4", "c2", "d8", "e2", "f1", "g1")]
    assert places == ["0-7", "0-3", "4-5", "0-7", "6-7", "", ""]
    assert scene.states("a8 b4 c2 d8 e2 f1 g1") == "R S S S S PD PD"


def test_rows_are_put_together_anew_when_a_job_leaves(stage: Callable[..., Any]) -> None:
    """C09: the 4, 2 and 2 core jobs run at once; the two -n1 start in the emptied row."""
    scene = fill_three_rows(stage)
    scene.command("cancel", "a8")
    assert scene.states("b4 c2 e2 d8 f1 g1") == "R R R S S S"
    assert (scene.cores("f1"), scene.cores("g1")) == ("0", "1")


def test_an_emptied_row_is_filled_in_turn(stage: Callable[..., Any]) -> None:
    """C10: then -n2, -n2, -n4, -n8."""
    scene = fill_three_rows(stage)
    scene.command("cancel", "a8")
    assert [scene.submit("h2", "-n2"), scene.submit("i2", "-n2")] == ["n1:2,4", "n1:3,5"]
    assert [scene.submit("j4", "-n4"), scene.submit("k8", "-n8")] == ["", ""]


def test_exclusive_in_force_gets_a_row(stage: Callable[..., Any]) -> None:
    """C11: -n2; -n1 --exclusive; -n1 goes into the row of the first."""
    scene = stage(ONE, GANG, **shared("FORCE:2"))
    places = [scene.submit("a", "-n2"), scene.submit("x", "-n1 --exclusive"), scene.submit("c", "-n1")]
    assert places == ["n1:0,4", "n1:0-7", "n1:1"]
    assert scene.states("a x c") == "R S R"


def test_with_gang_no_job_is_asked_whether_it_shares(stage: Callable[..., Any]) -> None:
    """C12: YES:2, the second job without -s is sliced."""
    scene = stage(ONE, GANG, **shared("YES:2"))
    scene.submit("a", "-n8")
    scene.submit("b", "-n8")
    assert scene.states("a b") == "R S"


def test_as_many_as_there_are_rows(stage: Callable[..., Any]) -> None:
    """C13: YES:2, -s three times."""
    scene = stage(ONE, GANG, **shared("YES:2"))
    for name in "abc":
        scene.submit(name, "-n8 -s")
    assert scene.states("a b c") == "R S PD"


@pytest.mark.parametrize(
    ("over", "args", "states"),
    [
        pytest.param("NO", "", "R PD PD", id="NO"),
        pytest.param("YES:2", "", "R PD PD", id="YES:2 unasked"),
        pytest.param("YES:2", " -s", "R R PD", id="YES:2 with -s"),
        pytest.param("FORCE:1", "", "R PD PD", id="FORCE:1"),
        pytest.param("FORCE:2", "", "R R PD", id="FORCE:2"),
        pytest.param("EXCLUSIVE", "", "R PD PD", id="EXCLUSIVE"),
    ],
)
def test_without_gang(stage: Callable[..., Any], over: str, args: str, states: str) -> None:
    """No core is free: a job that may share runs beside the other, up to the number of rows (4.5, last column)."""
    scene = stage(ONE, select_parameters="CR_Core", **shared(over))
    for name in "abc":
        scene.submit(name, f"-n8{args}")
    assert scene.states("a b c") == states


@pytest.mark.parametrize(
    ("over", "args", "mark"),
    [
        ("NO", "", ONE_ROW),
        ("NO", "-s", ONE_ROW),
        ("YES:1", "-s", ONE_ROW),
        ("YES:2", "", ONE_ROW),
        ("YES:2", "-s", AVAILABLE),
        ("FORCE:1", "", AVAILABLE),
        ("FORCE:2", "", AVAILABLE),
        ("EXCLUSIVE", "-s", RESERVED),
    ],
)
def test_the_mark_of_a_job(stage: Callable[..., Any], over: str, args: str, mark: int) -> None:
    """Fixed at its start: only YES with a count above one asks whether the job shares (4.3.1)."""
    scene = stage(ONE, select_parameters="CR_Core", **shared(over))
    scene.submit("a", f"-n1 {args}")
    assert mark_of(scene.job("a")) == mark


@pytest.mark.parametrize(
    ("over", "states"),
    [("NO", "R R"), ("YES:2", "R R"), ("FORCE:1", "R R"), ("FORCE:2", "R R"), ("EXCLUSIVE", "R PD")],
)
def test_free_cores_are_for_all_jobs(stage: Callable[..., Any], over: str, states: str) -> None:
    """A second job while cores are free (4.5, third column)."""
    scene = stage(ONE, select_parameters="CR_Core", **shared(over))
    scene.submit("a", "-n2")
    scene.submit("b", "-n2")
    assert scene.states("a b") == states


def test_two_partitions_of_one_tier_ignore_each_other(stage: Callable[..., Any]) -> None:
    """G16: same tier, both NO, gang on: both run at once; the third waits (4.3.9)."""
    scene = stage(ONE, GANG, partitions={"pa": {}, "pb": {}})
    scene.submit("a", "-n8", "pa")
    scene.submit("b", "-n8", "pb")
    scene.submit("c", "-n8", "pa")
    assert scene.states("a b c") == "R R PD"


def test_a_one_row_job_keeps_off_nodes_that_others_share(stage: Callable[..., Any]) -> None:
    """C20: pc NO does not get a core of a node where FORCE:2 partitions are busy (4.3.3 no. 5)."""
    partitions = {
        "pa": {"oversubscribe": "FORCE:2"},
        "pb": {"oversubscribe": "FORCE:2"},
        "pc": {},
    }
    scene = stage(ONE, GANG, partitions=partitions)
    scene.submit("a", "-n8", "pa")
    scene.submit("b", "-n8", "pb")
    scene.submit("c", "-n1", "pc")
    scene.submit("a2", "-n8", "pa")
    assert scene.states("a b c a2") == "R R PD PD"  # c closes its partition's nodes for the pass


def test_memory_of_stopped_jobs_counts(stage: Callable[..., Any]) -> None:
    """C22: FORCE:4, three jobs of 3000 MB on 8000 MB."""
    machine = cluster(1, sockets=2, cores_per_socket=4, memory_mb=8000)
    settings = {"select_parameters": "CR_Core_Memory", "preempt_mode": "gang"}
    scene = stage(machine, settings, **shared("FORCE:4"))
    for name in "abc":
        scene.submit(name, "-n8 --mem=3000")
    assert scene.states("a b c") == "R S PD"


@pytest.mark.parametrize(("release", "states"), [("26.11", "R S"), ("22.05.8", "R PD")])
def test_rows_of_a_partition_that_is_off(stage: Callable[..., Any], release: str, states: str) -> None:
    """A partition that is OFF may share its own rows, since 23.11 (4.3.2 no. 2)."""
    scene = stage(
        ONE,
        select_parameters="CR_Core",
        preempt="preempt/partition_prio",
        preempt_mode="suspend,gang",
        slurm_release=release,
        partitions={
            "low": {"default": True, "oversubscribe": "FORCE:2", "preempt_mode": "off"},
            "hi": {"priority_tier": 2},
        },
    )
    scene.submit("a", "-n8")
    scene.submit("b", "-n8")
    assert scene.states("a b") == states


# ------------------------------------------------------------------------- suspended by a person
def test_a_person_suspends_and_the_cores_are_free(stage: Callable[..., Any]) -> None:
    """G23, G24: FORCE:2; B runs while A is stopped; after the resume both run until it is A's turn."""
    scene = stage(ONE, GANG, timeslice=30, **shared("FORCE:2"))
    scene.submit("a", "-n8")
    scene.command("suspend", "a")
    scene.submit("b", "-n8")
    assert scene.states("a b") == "S R"
    scene.command("resume", "a")
    assert scene.states("a b") == "R R"
    after_each_tick = []
    for _ in range(4):
        scene.wait(30)
        after_each_tick.append(scene.states("a b"))
    assert after_each_tick == ["R R", "R S", "S R", "R S"]  # the first tick only promotes B


def test_cores_given_away_meanwhile(stage: Callable[..., Any]) -> None:
    """G25: NO; A is suspended, B takes its cores, A is resumed into no row: both run (4.3.10)."""
    scene = stage(ONE, select_parameters="CR_Core")
    scene.submit("a", "-n8")
    scene.command("suspend", "a")
    scene.submit("b", "-n8")
    scene.command("resume", "a")
    assert scene.states("a b") == "R R"
    scene.end("a")
    scene.submit("c", "-n8")
    assert scene.states("b c") == "R PD"
    scene.end("b")
    assert scene.states("c") == "R"


def test_a_stopped_job_keeps_its_row_when_a_person_holds_it(stage: Callable[..., Any]) -> None:
    """G26: FORCE:2; B waits for its turn, is suspended by a person as well, and keeps its row."""
    scene = stage(ONE, GANG, **shared("FORCE:2"))
    scene.submit("a", "-n8")
    scene.submit("b", "-n8")
    scene.command("suspend", "b")
    scene.submit("c", "-n8")
    assert scene.states("a b c") == "R S PD"
    assert scene.job("b").priority == 0


def test_memory_stays_with_a_suspended_job(stage: Callable[..., Any]) -> None:
    """A person's suspension frees cores, not memory (4.3.10)."""
    machine = cluster(1, sockets=2, cores_per_socket=4, memory_mb=8000)
    scene = stage(machine, select_parameters="CR_Core_Memory")
    scene.submit("a", "-n8 --mem=5000")
    scene.command("suspend", "a")
    assert scene.submit("b", "-n8 --mem=3000") == "n1:0-7"
    scene.end("b")
    assert scene.submit("c", "-n8 --mem=4000") == ""
    scene.command("cancel", "a")
    assert scene.where("c") == "n1:0-7"

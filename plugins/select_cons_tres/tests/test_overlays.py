"""Jobs laid over lower tiers, and what gang makes of it.

slurm-gang-and-select 4.3.2 and 4.3.3, slurm-preemption 5.2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from makeway.hookspecs import hookimpl
from makeway.model import Job, JobState
from makeway_testing import one_node, replay_table, tiers
from makeway_testing.builders import Machine, cluster, node

FIVE: Machine = cluster(5, sockets=2, cores_per_socket=4)
ONE: Machine = cluster(1, sockets=2, cores_per_socket=4)
SUSPEND = {
    "select_parameters": "CR_Core",
    "preempt": "preempt/partition_prio",
    "preempt_mode": "suspend,gang",
}


def two(low: str = "FORCE:1", high: str = "FORCE:1", **of_low: Any) -> dict[str, Any]:
    """Return a low and a high partition."""
    return {
        "partitions": {
            "lo": {"default": True, "oversubscribe": low, **of_low},
            "hi": {"priority_tier": 2, "oversubscribe": high},
        }
    }


@pytest.fixture
def three_low(stage: Callable[..., Any]) -> Any:
    """Return a stage after C14: three lo -N1 -n2, all on n1."""
    scene = stage(FIVE, SUSPEND, **two())
    for name in "abc":
        scene.submit(name, "-N1 -n2")
    return scene


def test_force_1_is_not_exclusive(three_low: Any) -> None:
    """C14."""
    assert [three_low.where(name) for name in "abc"] == ["n1:0,4", "n1:1,5", "n1:2,6"]
    assert three_low.states("a b c") == "R R R"


def test_idle_cores_first(three_low: Any) -> None:
    """C15: hi -N3 -n6 finds room beside the others; none is suspended."""
    assert three_low.submit("hi", "-N3 -n6", "hi") == "n1:3,7 n2:0-1,4 n3:0"
    assert three_low.states("a b c hi") == "R R R R"


def test_lower_tiers_are_overlaid(three_low: Any) -> None:
    """C16: hi -N5 -n40 stops all of them."""
    three_low.submit("hi", "-N5 -n40", "hi")
    assert three_low.states("a b c hi") == "S S S R"
    three_low.end("hi")
    assert three_low.states("a b c") == "R R R"


def test_idle_nodes_are_preferred_only_if_all_fits(stage: Callable[..., Any]) -> None:
    """C17, S30: lo on n1-3, n4-5 idle; hi -N3 takes n1-3 and stops three; the next, of one node, takes n4."""
    scene = stage(FIVE, SUSPEND, **two())
    for name in ("n1", "n2", "n3"):
        scene.submit(name, f"-N1 -n8 -w {name}")
    scene.submit("hi", "-N3 -n24", "hi")
    scene.submit("hi2", "-N1 -n8", "hi")
    assert (scene.nodes("hi"), scene.nodes("hi2")) == ("n[1-3]", "n4")
    assert scene.states("n1 n2 n3 hi hi2") == "S S S R R"


@pytest.mark.parametrize(
    ("low", "high", "states"),
    [
        pytest.param("NO", "NO", "S R", id="NO under NO"),
        pytest.param("NO", "YES:2", "S R", id="NO under YES unasked"),
        pytest.param("NO", "FORCE:1", "R PD", id="NO under FORCE:1"),
        pytest.param("NO", "FORCE:2", "R PD", id="NO under FORCE:2"),
        pytest.param("NO", "EXCLUSIVE", "R PD", id="NO under EXCLUSIVE"),
        pytest.param("FORCE:1", "NO", "S R", id="FORCE:1 under NO"),
        pytest.param("FORCE:1", "FORCE:1", "S R", id="FORCE:1 under FORCE:1"),
        pytest.param("FORCE:1", "FORCE:2", "S R", id="FORCE:1 under FORCE:2"),
        pytest.param("FORCE:1", "EXCLUSIVE", "R PD", id="FORCE:1 under EXCLUSIVE"),
        pytest.param("FORCE:2", "NO", "R PD", id="FORCE:2 under NO"),
        pytest.param("FORCE:2", "FORCE:1", "S R", id="FORCE:2 under FORCE:1"),
        pytest.param("FORCE:2", "FORCE:2", "S R", id="FORCE:2 under FORCE:2"),
        pytest.param("EXCLUSIVE", "NO", "R PD", id="EXCLUSIVE under NO"),
        pytest.param("EXCLUSIVE", "FORCE:1", "R PD", id="EXCLUSIVE under FORCE:1"),
    ],
)
def test_oversubscribe_matrix(stage: Callable[..., Any], low: str, high: str, states: str) -> None:
    """C18, S43: a low job fills the node, a high one arrives (4.3.3, slurm-preemption 5.2.4)."""
    scene = stage(ONE, SUSPEND, **two(low, high))
    scene.submit("lo", "-n8")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == states


def test_no_under_force_is_requeued_where_the_mode_says_so(stage: Callable[..., Any]) -> None:
    """C18, last row: NO with mode REQUEUE under FORCE:1: the scheduler preempts it, hi starts afterwards."""
    scene = stage(ONE, SUSPEND, **two("NO", "FORCE:1", preempt_mode="requeue"))
    scene.submit("lo", "-n8")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == "PD R"
    assert scene.job("lo").restarts == 1


def test_gang_requeues_without_grace(stage: Callable[..., Any]) -> None:
    """S44, G28: REQUEUE under gang, FORCE:1 over FORCE:1: hi runs at once, no grace time."""
    scene = stage(ONE, SUSPEND, **two(preempt_mode="requeue", grace_time=60.0))
    scene.submit("lo", "-n8")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == "PD R"


def test_without_that_defect_gang_gives_grace(stage: Callable[..., Any]) -> None:
    """lo hears of it and runs on beside hi until its grace time is over; then it is requeued."""
    rules = {"gang_skips_grace": False}
    scene = stage(ONE, SUSPEND, **two(preempt_mode="requeue", grace_time=60.0), rules=rules)
    scene.submit("lo", "-n8")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == "R R"
    scene.wait(59.0)
    assert scene.states("lo hi") == "R R"
    scene.wait(2.0)
    assert scene.states("lo hi") == "PD R"
    assert scene.job("lo").restarts == 1


def test_memory_is_not_freed_by_suspension(stage: Callable[..., Any]) -> None:
    """S31, L09: hi waits for memory; less of it is granted, and then the low job is stopped."""
    machine = cluster(1, cpus=4, memory_mb=1000)
    scene = stage(machine, SUSPEND, select_parameters="CR_Core_Memory", **two())
    scene.submit("lo", "-n4 --mem=700")
    assert scene.submit("hi", "-n4 --mem=500", "hi") == ""
    scene.command("cancel", "hi")
    scene.submit("hi2", "-n4 --mem=300", "hi")
    assert scene.states("lo hi2") == "S R"


def test_memory_of_a_requeued_job_is(stage: Callable[..., Any]) -> None:
    """S31: the same with a low partition that is requeued, gang still on."""
    machine = cluster(1, cpus=4, memory_mb=1000)
    scene = stage(machine, SUSPEND, select_parameters="CR_Core_Memory", **two(preempt_mode="requeue"))
    scene.submit("lo", "-n4 --mem=700")
    scene.submit("hi", "-n4 --mem=500", "hi")
    assert scene.states("lo hi") == "PD R"


@pytest.mark.parametrize(
    ("mode", "states"),
    [pytest.param("suspend,gang", "R PD", id="kept"), pytest.param("cancel", "- R", id="freed")],
)
def test_counted_resources_of_a_stopped_job(stage: Callable[..., Any], mode: str, states: str) -> None:
    """S32: the one GPU is with the low job."""
    machine = cluster(1, cpus=4, gres={"gpu": 1})
    scene = stage(machine, SUSPEND, preempt_mode=mode, **two("NO", "NO"))
    scene.submit("lo", "-n1 --gres=gpu:1")
    scene.submit("hi", "-n1 --gres=gpu:1", "hi")
    assert scene.states("lo hi") == states


@pytest.mark.parametrize(
    ("release", "states"),
    [pytest.param("26.11", "R PD", id="protected"), pytest.param("22.05.8", "S R", id="not yet")],
)
def test_exempt_time_guards_cores(stage: Callable[..., Any], release: str, states: str) -> None:
    """S45: PreemptExemptTime protects under SUSPEND,GANG since 26.05, if it is set cluster-wide."""
    scene = stage(ONE, SUSPEND, exempt_time=10, slurm_release=release, **two("NO", "NO"))
    scene.submit("lo", "-n8")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == states
    scene.wait(10)
    assert scene.states("lo hi") == "S R"


@pytest.mark.parametrize("release", ["26.11", "22.05.8"])
def test_exempt_time_guards_exclusive_jobs(stage: Callable[..., Any], release: str) -> None:
    """S45: an --exclusive job is protected in all releases: its nodes come back only with candidates."""
    scene = stage(ONE, SUSPEND, exempt_time=10, slurm_release=release, **two("NO", "NO"))
    scene.submit("lo", "-n8 --exclusive")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == "R PD"
    scene.wait(10)
    assert scene.states("lo hi") == "S R"


def test_partition_that_is_off_is_not_overlaid(stage: Callable[..., Any]) -> None:
    """L15: FORCE:2 over FORCE:2, the low one OFF: hi waits (4.3.2 no. 2)."""
    scene = stage(ONE, SUSPEND, **two("FORCE:2", "FORCE:2", preempt_mode="off"))
    scene.submit("lo", "-n8")
    scene.submit("hi", "-n8", "hi")
    assert scene.states("lo hi") == "R PD"


def test_shadow_without_a_preempt_plugin(stage: Callable[..., Any]) -> None:
    """G15: preempt/none, gang, tiers 1 and 5: hi takes cores 0-1,4-5 and the low job is stopped (4.4.7)."""
    partitions = {
        "lo": {"default": True, "oversubscribe": "FORCE:1"},
        "hi": {"priority_tier": 5, "oversubscribe": "FORCE:1"},
    }
    scene = stage(ONE, select_parameters="CR_Core", preempt_mode="gang", partitions=partitions)
    scene.submit("lo", "-n8")
    assert scene.submit("hi", "-n4", "hi") == "n1:0-1,4-5"
    assert scene.states("lo hi") == "S R"
    scene.wait(200)
    assert scene.states("lo hi") == "S R"


@pytest.fixture
def three_tiers(stage: Callable[..., Any]) -> Any:
    """Return a stage with l 8 cores, m 4 and h 2 on one node (G17)."""
    partitions = {
        name: {"priority_tier": tier, "oversubscribe": "FORCE:1"}
        for tier, name in enumerate(("l", "m", "h"), start=1)
    }
    scene = stage(ONE, SUSPEND, partitions=partitions)
    for name, tasks in (("l", 8), ("m", 4), ("h", 2)):
        scene.submit(name, f"-n{tasks}", name)
    return scene


def test_cores_idle_in_the_tier_below_are_preferred(three_tiers: Any) -> None:
    """G17: h takes cores 2 and 6, which m leaves; l comes back only when both have ended (test 3)."""
    assert (three_tiers.cores("m"), three_tiers.cores("h")) == ("0-1,4-5", "2,6")
    assert three_tiers.states("l m h") == "S R R"
    three_tiers.end("h")
    assert three_tiers.states("l m") == "S R"
    three_tiers.end("m")
    assert three_tiers.states("l") == "R"


def test_a_stopped_job_fills_the_row_of_its_partition(three_tiers: Any) -> None:
    """C33: l -n2 waits although l is stopped: the row is full (4.3.5)."""
    assert three_tiers.submit("l2", "-n2", "l") == ""


def test_placements_say_that_they_lie_over_others(three_tiers: Any) -> None:
    """`Placement.overlays` tells the engine to name the jobs that gang stops as victims."""
    three_tiers.submit("m2", "-n2", "m")
    assert three_tiers.states("m2") == "R"
    assert [entry.victim for entry in three_tiers.engine.recorder.preemptions] == ["l"]


def test_pairs_under_a_shadow_keep_their_turns(stage: Callable[..., Any]) -> None:
    """G14: two lo jobs on each of two nodes, then hi jobs on n1: the pair on n2 goes on slicing."""
    machine = cluster(2, sockets=2, cores_per_socket=4)
    scene = stage(machine, SUSPEND, timeslice=10, **two("FORCE:2", "FORCE:2"))
    for name in ("a1", "a2"):
        scene.submit(name, "-n8 -w n1")
    for name in ("b1", "b2"):
        scene.submit(name, "-n8 -w n2")
    for name in ("h1", "h2"):
        scene.submit(name, "-n8 -w n1", "hi")
    assert scene.states("a1 a2 h1 h2") == "S S R S"
    seen_low, seen_high = set(), set()
    for _ in range(6):
        scene.wait(10)
        assert scene.states("a1 a2") == "S S"
        seen_low.add(scene.states("b1 b2"))
        seen_high.add(scene.states("h1 h2"))
    assert seen_low == seen_high == {"R S", "S R"}
    scene.command("cancel", "h1")
    scene.command("cancel", "h2")
    assert scene.states("a1 a2") == "R S"


def test_a_veto_guards_cores() -> None:
    """What a plugin protects is not laid over either: the job waits, as it would without overlays."""

    @hookimpl
    def makeway_protect(candidates: Sequence[Job]) -> dict[str, str]:
        return {job.id: "precious" for job in candidates if job.id == "a"}

    plugin = SimpleNamespace(makeway_protect=makeway_protect)
    run = replay_table(
        """
        job  partition  submit  cpus  run_time
        a    low             0     4        60
        b    hi             10     4        20
        """,
        cluster=one_node(cpus=4),
        config={
            "select": "select/cons_tres",
            "select_parameters": "CR_Core",
            "preempt": "preempt/partition_prio",
            "preempt_mode": "suspend,gang",
            "partitions": tiers(low=1, hi=2),
            "protect": "protect/test",
        },
        plugins={"protect/test": plugin},
    )
    assert run.starts("b") == (60.0,)
    assert run.victims == ()


def test_one_stopped_beside_a_job_that_leaves_node_by_node() -> None:
    """The arbiter hears of the end of j1 when its last node is left: a job that it stopped meanwhile goes on later."""
    run = replay_table(
        """
        job  partition  submit  min_nodes  run_time  on_term  time_limit
        j1   a          0       2          20        ignore   10
        j2   a          5       1          20        -        -
        j3   a          5       1          10        -        -
        """,
        cluster=cluster([node("n[1-3]", cpus=1)]),
        config={
            "select": "select/cons_tres",
            "preempt_mode": "gang",
            "timeslice": 10.0,
            "partitions": {"a": {"oversubscribe": "FORCE:2"}},
            "clockwork": {"preset": "slurm", "limit_sweep": 0.0},
        },
    )
    assert (run.state("j1"), run.state("j3")) == (JobState.TIMEOUT, JobState.COMPLETED)

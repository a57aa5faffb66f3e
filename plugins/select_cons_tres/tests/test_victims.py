"""Which victims cons_tres takes: slurm-preemption 5.2.3 and 1.11, rows S06 to S12, C31 and C32, S38 to S46."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makeway.model import Blocked, Candidates, Job, PreemptMode
from makeway_select_cons_tres.search import _Search
from makeway_testing import builders, replay_table
from makeway_testing.builders import cluster, node, tiers

CANCEL = {
    "select_parameters": "CR_Core",
    "preempt": "preempt/partition_prio",
    "preempt_mode": "cancel",
    "partitions": tiers(low=1, hi=2),
}
FOUR_CORES = {"cpus": 4, "sockets": 1, "cores_per_socket": 4}


def low(scene: Any, **jobs: str) -> None:
    """Submit jobs to the low partition, one second apart."""
    for name, args in jobs.items():
        scene.submit(name, args, "low")
        scene.wait(1)


def test_never_looks_past_the_first_success(stage: Callable[..., Any]) -> None:
    """S08: candidates of 1, 1 and 2 cores, 2 are wanted: the first two go although the third would do."""
    scene = stage(cluster(1, **FOUR_CORES), CANCEL)
    low(scene, j1="-n1", j2="-n1", j3="-n2")
    scene.submit("p", "-n2", "hi")
    assert scene.states("j1 j2 j3 p") == "- - R R"


def test_who_saves_its_state_is_taken_as_who_is_requeued() -> None:
    """A checkpoint gives everything back, too: 4 cores are wanted, so that old leaves at 30 and goes on at 50."""
    run = replay_table(
        """
        job  partition  submit  cpus  run_time
        old  low             0     4       100
        new  hi             30     4        20
        """,
        cluster=cluster(1, **FOUR_CORES),
        config={**CANCEL, "preempt_mode": "checkpoint", "select": "select/cons_tres", "clockwork": "ideal"},
    )
    assert run.victims == ("old",)
    assert run.starts("old") == (0.0, 50.0)
    assert run.history("old").worked == 100.0


def test_youngest_first(stage: Callable[..., Any]) -> None:
    """S08 with youngest_first: only the third goes."""
    scene = stage(cluster(1, **FOUR_CORES), CANCEL, youngest_first=True)
    low(scene, j1="-n1", j2="-n1", j3="-n2")
    scene.submit("p", "-n2", "hi")
    assert scene.states("j1 j2 j3 p") == "R R - R"


@pytest.mark.parametrize(
    ("strict", "states", "nodes"),
    [
        pytest.param(False, "R - - R", "n[1-3]", id="by chosen nodes: b and c"),
        pytest.param(True, "- R - R", "n[2-4]", id="strict_order: a and c"),
    ],
)
def test_strict_order(stage: Callable[..., Any], strict: bool, states: str, nodes: str) -> None:
    """S11: exclusive jobs a on n4, b on n1, c on n2-3; three whole nodes are wanted."""
    scene = stage(cluster(4, **FOUR_CORES), CANCEL, strict_order=strict)
    low(
        scene,
        a="-N1 --exclusive -w n4",
        b="-N1 --exclusive -w n1",
        c="-N2 --exclusive -w n[2-3]",
    )
    scene.submit("p", "-N3 --exclusive", "hi")
    assert (scene.states("a b c p"), scene.nodes("p")) == (states, nodes)


@pytest.mark.parametrize(
    ("count", "states", "nodes"),
    [
        pytest.param(0, "- - - R", "n[1-4]", id="0: one reorder"),
        pytest.param(1, "R - - R", "n[2-5]", id="1: two reorders"),
    ],
)
def test_reorder_count(stage: Callable[..., Any], count: int, states: str, nodes: str) -> None:
    """S12: exclusive jobs a on n1, b on n4-5, c on n2-3; four nodes are wanted."""
    scene = stage(cluster(5, **FOUR_CORES), CANCEL, reorder_count=count)
    low(
        scene,
        a="-N1 --exclusive -w n1",
        b="-N2 --exclusive -w n[4-5]",
        c="-N2 --exclusive -w n[2-3]",
    )
    scene.submit("p", "-N4 --exclusive", "hi")
    assert (scene.states("a b c p"), scene.nodes("p")) == (states, nodes)


def test_two_four_eight(stage: Callable[..., Any]) -> None:
    """S07: victims of 2, 4 and 8 nodes, 8 are wanted: only the last goes."""
    scene = stage(cluster(14, **FOUR_CORES), CANCEL)
    low(scene, a="-N2 --exclusive", b="-N4 --exclusive", c="-N8 --exclusive")
    scene.submit("p", "-N8 --exclusive", "hi")
    assert (scene.states("a b c p"), scene.nodes("p")) == ("R R - R", "n[7-14]")


def test_fewest_nodes_first(stage: Callable[..., Any]) -> None:
    """C32: lo -N3 on n1-3, lo -N1 on n4, n5 idle; hi -N2 takes n4-5, the next n1-2."""
    scene = stage(cluster(5, **FOUR_CORES), CANCEL)
    low(scene, three="-N3 --exclusive", one="-N1 --exclusive -w n4")
    scene.submit("p", "-N2 --exclusive", "hi")
    assert (scene.states("three one"), scene.nodes("p")) == ("R -", "n[4-5]")
    scene.submit("q", "-N2 --exclusive", "hi")
    assert (scene.states("three"), scene.nodes("q")) == ("-", "n[1-2]")


def test_requested_nodes(stage: Callable[..., Any]) -> None:
    """S06: -w n2 spares the job on n1, although it is first in order."""
    scene = stage(cluster(2, **FOUR_CORES), CANCEL)
    low(scene, j1="-n4 -w n1", j2="-n4 -w n2")
    scene.submit("p", "-n4 -w n2", "hi")
    assert scene.states("j1 j2 p") == "R - R"


def test_cores_of_one_node_come_free_one_by_one(stage: Callable[..., Any]) -> None:
    """A job that holds part of a node counts as soon as the node as a whole serves, not before."""
    scene = stage(cluster(2, **FOUR_CORES), CANCEL)
    low(scene, a="-n2 -w n1", b="-n2 -w n1", c="-n4 -w n2")
    scene.submit("p", "-N1 -n4", "hi")
    assert scene.states("a b c p") == "- - R R"


def test_idle_nodes_are_used_as_far_as_they_go(stage: Callable[..., Any]) -> None:
    """Killing is the last resort: two of three nodes are idle, one job goes."""
    scene = stage(cluster(4, **FOUR_CORES), CANCEL)
    low(scene, a="-N1 --exclusive -w n1", b="-N1 --exclusive -w n2")
    scene.submit("p", "-N3 --exclusive", "hi")
    assert (scene.states("a b p"), scene.nodes("p")) == ("- R R", "n[1,3-4]")


def test_no_job_goes_in_vain(stage: Callable[..., Any]) -> None:
    """When removing all candidates does not help, none is touched."""
    scene = stage(cluster(2, **FOUR_CORES), CANCEL)
    scene.submit("keeps", "-n4 -w n1", "hi")
    low(scene, a="-n4 -w n2")
    scene.submit("p", "-N2 -n8", "hi")
    assert scene.states("keeps a p") == "R R PD"


def test_jobs_with_mode_off_or_suspend_are_not_removed(stage: Callable[..., Any]) -> None:
    """Only REQUEUE and CANCEL candidates can be removed (slurm-preemption 5.2.3); S56: SUSPEND without gang waits."""
    partitions = {
        "low": {"preempt_mode": "suspend"},
        "hi": {"priority_tier": 2},
    }
    scene = stage(cluster(1, **FOUR_CORES), CANCEL, partitions=partitions)
    low(scene, a="-n4")
    scene.submit("p", "-n4", "hi")
    assert scene.states("a p") == "R PD"


@pytest.mark.parametrize(
    ("release", "place", "states"),
    [pytest.param("26.11", "n2", "R", id="only the last"), pytest.param("22.05.8", "n1", "-", id="each")],
)
def test_feature_alternatives(stage: Callable[..., Any], release: str, place: str, states: str) -> None:
    """S46: [fa|fb], fa is busy with a low job, fb is idle."""
    machine = (node("n1", features=("fa",)), node("n2", features=("fb",)))
    scene = stage(machine, CANCEL, slurm_release=release)
    low(scene, j1="-n4 -w n1")
    scene.submit("p", "-n4 -C [fa|fb]", "hi")
    assert (scene.nodes("p"), scene.states("j1")) == (place, states)


# -------------------------------------------------------------------------------------- licences
LICENCE = {**CANCEL, "licenses": {"lic": 1, "other": 1}}


@pytest.mark.parametrize(
    ("settings", "states"),
    [
        pytest.param({"reclaim_licenses": True}, "- R", id="reclaim_licenses"),
        pytest.param({}, "R PD", id="not asked for"),
        pytest.param({"reclaim_licenses": True, "slurm_release": "22.05.8"}, "R PD", id="before 23.02"),
    ],
)
def test_licence_held_elsewhere(stage: Callable[..., Any], settings: Any, states: str) -> None:
    """S40: the holder is not on the node that the preemptor takes."""
    scene = stage(cluster(2, **FOUR_CORES), {**LICENCE, **settings})
    low(scene, j1="-n4 -w n1 -L lic")
    scene.submit("p", "-n4 -w n2 -L lic", "hi")
    assert scene.states("j1 p") == states


def test_only_holders_of_what_is_short(stage: Callable[..., Any]) -> None:
    """A holder of another wanted licence, of which enough is left, is spared (slurm-preemption 1.11)."""
    scene = stage(
        cluster(3, **FOUR_CORES), {**LICENCE, "licenses": {"lic": 1, "many": 5}}, reclaim_licenses=True
    )
    low(scene, spare="-n4 -w n1 -L many", short="-n4 -w n2 -L lic")
    scene.submit("p", "-n4 -w n3 -L lic,many", "hi")
    assert scene.states("spare short p") == "R - R"


@pytest.mark.parametrize(
    ("held_on", "states"),
    [
        pytest.param("n2", "- R R", id="on the chosen node: goes"),
        pytest.param("n1", "R R PD", id="elsewhere: safe"),
    ],
)
def test_one_of_several_licences(stage: Callable[..., Any], held_on: str, states: str) -> None:
    """foo|bar: only a holder on the chosen node is taken (slurm-preemption 1.11, 11 no. 1)."""
    scene = stage(cluster(2, **FOUR_CORES), LICENCE, reclaim_licenses=True)
    low(scene, a=f"-n1 -w {held_on} -L lic:1", b="-n1 -w n1 -L other:1")
    scene.submit("p", "-n1 -w n2 -L lic:1|other:1", "hi")
    assert scene.states("a b p") == states


def test_licence_of_a_suspended_victim(stage: Callable[..., Any]) -> None:
    """S40: suspension gives no licence back."""
    scene = stage(cluster(1, **FOUR_CORES), LICENCE, reclaim_licenses=True, preempt_mode="suspend,gang")
    low(scene, j1="-n4 -L lic")
    scene.submit("p", "-n4 -L lic", "hi")
    assert scene.states("j1 p") == "R PD"


# --------------------------------------------------------------------------------- heterogeneous
@pytest.mark.parametrize(
    ("second", "states"),
    [
        pytest.param({"preempt_mode": "requeue"}, "PD PD R", id="requeue decides"),
        pytest.param({"preempt_mode": "off"}, "R R PD", id="off protects all"),
    ],
)
def test_heterogeneous_victims(stage: Callable[..., Any], second: Any, states: str) -> None:
    """S39: components in low (CANCEL) and low2; the preemptor wants the first one's node."""
    partitions = {"low": {"nodes": "n1"}, "low2": {"nodes": "n2", **second}, "hi": {"priority_tier": 2}}
    scene = stage(cluster(2, **FOUR_CORES), CANCEL, partitions=partitions, scheduler="backfill")
    scene.submit("h", "-n4 -p low : -n4 -p low2")
    scene.submit("p", "-n4 -w n1", "hi")
    assert scene.states("h+0 h+1 p") == states


def test_a_choice_has_to_lift_the_limit_by_its_victims_alone() -> None:
    """slurm-preemption 1.11: a job that was removed on the way but is spared gives back nothing."""
    holder, other = builders.job("1"), builders.job("2")
    short = Blocked(reason="Licenses", wanted=1, available=0, frees={holder.id: 1.0})

    def kept_out(job: Job, without: Sequence[tuple[Job, PreemptMode]] = ()) -> Blocked | None:
        return None if any(each is holder for each, _ in without) else short

    view = SimpleNamespace(settings=lambda cls: cls(), rule=lambda name: True, kept_out=kept_out)
    attempt = SimpleNamespace(view=view, job=builders.job("3"))
    candidates = Candidates(jobs=(holder, other), modes=(PreemptMode.CANCEL,) * 2)
    search = _Search(cast(Any, attempt), candidates, cast(Any, None), 0)
    assert [search._lifts(victims) for victims in ((0,), (0, 1), (1,), ())] == [True, True, False, False]

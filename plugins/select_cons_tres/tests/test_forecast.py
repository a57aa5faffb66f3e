"""When a job could start: slurm-gang-and-select 4.3.11, slurm-preemption 5.2.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway.model import Forecast, PreemptMode
from makeway_testing.builders import cluster, tiers

FOUR_CORES = {"cpus": 4, "sockets": 1, "cores_per_socket": 4}
PLAIN = {"select_parameters": "CR_Core"}


def forecast(scene: Any, args: str, removable: str = "") -> Forecast | None:
    """Return when a job could start, with some jobs removed at once; it is taken back afterwards."""
    engine = scene.engine
    scene.submit("asked", args)
    job = engine.ledger.jobs["asked"]
    gone = [(engine.ledger.jobs[name], PreemptMode.REQUEUE) for name in removable.split()]
    found: Forecast | None = engine.selector.forecast(job, job.partition.nodes, engine.ledger, gone)
    scene.command("cancel", "asked")
    return found


@pytest.fixture
def busy(stage: Callable[..., Any]) -> Callable[..., Any]:
    """Fill two nodes with jobs that end at 60, 70, 300 and 600 s."""

    def build(**settings: Any) -> Any:
        scene = stage(cluster(2, **FOUR_CORES), PLAIN, **settings)
        for name, args, limit in (
            ("a", "-n2 -w n1", 60.0),
            ("b", "-n2 -w n2", 70.0),
            ("c", "-n2 -w n1", 300.0),
            ("d", "-n2 -w n2", 600.0),
        ):
            scene.submit(name, args, time_limit=limit)
        return scene

    return build


@pytest.mark.parametrize(
    ("args", "at", "nodes"),
    [
        pytest.param("-N1 -n2", 60, 0b01, id="one node: the first with room"),
        pytest.param("-N1 -n4", 300, 0b01, id="a whole node"),
        pytest.param("-N1 --exclusive", 300, 0b01, id="asked for as such"),
        pytest.param("-N2", 70, 0b11, id="two nodes"),
        pytest.param("-n4", 70, 0b11, id="four CPUs anywhere"),
        pytest.param("-N2 -n8", 600, 0b11, id="everything"),
    ],
)
def test_easy_gets_the_first_instant(busy: Callable[..., Any], args: str, at: float, nodes: int) -> None:
    """Under EASY: the end of the job that makes it fit."""
    found = forecast(busy(scheduler="easy"), args)
    assert found is not None
    assert (found.at, found.nodes) == (at, nodes)


@pytest.mark.parametrize(
    ("release", "at"),
    [
        pytest.param("26.11", 60, id="the last job on the chosen nodes"),
        pytest.param("22.05.8", 70, id="the last job of the batch"),
    ],
)
def test_slurm_lets_jobs_end_in_batches(busy: Callable[..., Any], release: str, at: float) -> None:
    """Jobs that end up to 120 s are one batch; the job takes n1 when both have ended."""
    found = forecast(busy(scheduler="backfill", slurm_release=release), "-N1 -n2 -w n1")
    assert found is not None
    assert (found.at, found.nodes) == (at, 0b01)


@pytest.mark.parametrize(
    ("phase", "alone", "two"),
    [
        pytest.param(5, 145, 170, id="115 s is a half minute"),
        pytest.param(14, 100, 226, id="106 s is one"),
        pytest.param(15, 100, 170, id="105 s is one"),
        pytest.param(20, 145, 170, id="100 s is one: the next counts"),
    ],
)
def test_batches_begin_at_half_minutes_of_the_wall_clock(
    stage: Callable[..., Any], phase: float, alone: float, two: float
) -> None:
    """All windows count from the first half minute after the first end: of 30 s, then 60, 120, 240 s."""
    for args, second, at in (("-N1 -n4", 145.0, alone), ("-N2 -n8", 170.0, two)):
        scene = stage(
            cluster(3, **FOUR_CORES),
            PLAIN,
            scheduler="backfill",
            slurm_release="22.05.8",
            clockwork={"preset": "ideal", "minute_phase": phase},
        )
        for node, limit in enumerate((100.0, second, 226.0), 1):
            scene.submit(f"on_{node}", f"-n4 -w n{node}", time_limit=limit)
        found = forecast(scene, args)
        assert found is not None
        assert found.at == at


def test_now_if_there_is_room(stage: Callable[..., Any]) -> None:
    """First as things stand."""
    scene = stage(cluster(2, **FOUR_CORES), PLAIN)
    engine = scene.engine
    scene.submit("busy", "-n4 -w n1")
    engine.ledger.set_down(0b10)
    scene.submit("asked", "-n4")
    engine.ledger.set_up(0b10)
    job = engine.ledger.jobs["asked"]
    found = engine.selector.forecast(job, job.partition.nodes, engine.ledger, ())
    assert (found.at, found.nodes, found.preempts) == (0, 0b10, False)


def test_now_if_candidates_leave(busy: Callable[..., Any]) -> None:
    """Then with all candidates gone at once: "now" means "begin to preempt now"."""
    found = forecast(busy(), "-N1 -n4", "a c")
    assert found is not None
    assert (found.at, found.nodes, found.preempts) == (0, 0b01, True)


def test_never_while_a_job_has_no_limit(stage: Callable[..., Any]) -> None:
    """Jobs without a limit do not end as far as can be seen."""
    scene = stage(cluster(1, **FOUR_CORES), PLAIN)
    scene.submit("a", "-n4")
    assert forecast(scene, "-n1") is None


@pytest.mark.parametrize("args", ["--mem=600", "--mem-per-cpu=600", ""])
def test_memory_comes_free_too(stage: Callable[..., Any], args: str) -> None:
    """A node serves when its memory does, not only its cores."""
    machine = cluster(1, memory_mb=1000, **FOUR_CORES)
    scene = stage(machine, select_parameters="CR_Core_Memory", scheduler="easy")
    scene.submit("a", "-n1 --mem=300 -t 0:01:00")
    scene.submit("b", "-n1 --mem=600 -t 0:02:00")
    scene.submit("c", "-n2 --mem=100 -t 0:03:00")
    found = forecast(scene, f"-N1 -n1 {args}")
    assert found is not None
    assert found.at == (120 if args else 180)


def test_easy_backfills_beside_the_reservation(stage: Callable[..., Any]) -> None:
    """A job that ends in time may use cores of the reserved node, a longer one may not."""
    scene = stage(cluster(1, **FOUR_CORES), PLAIN, scheduler="easy")
    scene.submit("a", "-n2 -t 0:10:00")
    scene.submit("head", "-N1 -n4 -t 0:10:00")
    scene.submit("long", "-N1 -n1 -t 0:20:00")
    scene.submit("short", "-N1 -n1 -t 0:05:00")
    assert scene.states("a head long short") == "R PD PD R"


def test_backfill_preempts(stage: Callable[..., Any]) -> None:
    """Slurm's backfill finds the start that preemption makes possible (slurm-preemption 5.3)."""
    settings = {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "cancel",
        "partitions": tiers(low=1, hi=2),
    }
    scene = stage(cluster(2, **FOUR_CORES), PLAIN | settings, scheduler="backfill")
    scene.submit("l1", "-n4 -w n1", "low")
    scene.submit("l2", "-n4 -w n2", "low")
    scene.submit("p", "-n2", "hi")
    assert scene.states("l1 l2 p") == "- R R"

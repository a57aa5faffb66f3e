"""The examples of the gang page: slurm-gang-and-select 3.4, rows G19 to G21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway_testing.builders import cluster

TWO_BY_FOUR = {"sockets": 2, "cores_per_socket": 4, "memory_mb": 24000}
NEW, OLD = "26.11", "22.05.8"


def play(stage: Callable[..., Any], parameters: str, args: str, release: str, first_tick: float) -> Any:
    """Start six jobs at 0, 0, 1, 2, 2, 2 on five nodes under FORCE; ticks every 30 s from `first_tick`."""
    scene = stage(
        cluster(5, **TWO_BY_FOUR),
        select_parameters=parameters,
        slurm_release=release,
        preempt_mode="gang",
        timeslice=30,
        clockwork={"first_tick": first_tick},
        partitions={"active": {"default": True, "oversubscribe": "FORCE"}},
    )
    for number, at in enumerate((0, 0, 1, 2, 2, 2), start=1):
        scene.step((), float(at))
        scene.submit(f"j{number}", f"{args} --mem=1000")
    return scene


def intervals(scene: Any, ticks: int, slice_: float = 30.0) -> list[str]:
    """Return what runs right after each tick, as the numbers of the jobs."""
    found = []
    for _ in range(ticks):
        scene.step((), scene.engine.next_wake)
        words = scene.states("j1 j2 j3 j4 j5 j6").split()
        found.append("".join(str(at) for at, word in enumerate(words, start=1) if word == "R"))
    return found


@pytest.mark.parametrize("release", [NEW, OLD])
def test_cr_core_example(stage: Callable[..., Any], release: str) -> None:
    """Jobs 44 to 49, G20: 46 and 47 always run, {44,45} and {48,49} take turns from the second tick on."""
    scene = play(stage, "CR_Core_Memory", "--ntasks-per-node=2 -N5", release, 14)
    assert scene.states("j1 j2 j3 j4 j5 j6") == "R R R R S S"
    assert intervals(scene, 5) == ["1234", "3456", "1234", "3456", "1234"]


def test_cr_core_example_prints(stage: Callable[..., Any]) -> None:
    """The page's printed run times at t = 50 and t = 143, one second apart at most."""
    scene = play(stage, "CR_Core_Memory", "--ntasks-per-node=2 -N5", OLD, 14)
    scene.wait(48)
    ran = {name: scene.job(name).ran_until(scene.now) for name in ("j1", "j2", "j3", "j5")}
    assert ran == {"j1": 44, "j2": 44, "j3": 49, "j5": 6}  # 44 0:44, 45 0:43, 46 0:49, 48 0:06
    scene.wait(93)
    ran = {name: scene.job(name).ran_until(scene.now) for name in ("j1", "j3", "j5")}
    assert ran == {"j1": 83, "j3": 142, "j5": 60}  # 44 1:23, 46 2:22, 48 1:00


def test_cr_cpu_example(stage: Callable[..., Any]) -> None:
    """Jobs 51 to 56, G19 on 22.05: CPUs are counted, each job runs in two slices of three."""
    scene = play(stage, "CR_CPU_Memory", "--ntasks-per-node=2 -N5", OLD, 16)
    assert scene.states("j1 j2 j3 j4 j5 j6") == "R R R R S S"
    assert intervals(scene, 5) == ["1234", "1256", "3456", "1234", "1256"]


def test_cr_cpu_example_prints(stage: Callable[..., Any]) -> None:
    """The page's printed run times at t = 69, t = 86 and t = 288."""
    scene = play(stage, "CR_CPU_Memory", "--ntasks-per-node=2 -N5", OLD, 16)

    def ran(*names: str) -> list[float]:
        return [scene.job(name).ran_until(scene.now) for name in names]

    scene.wait(67)
    assert ran("j1", "j5", "j3", "j4") == [69, 23, 45, 44]
    scene.wait(17)
    assert ran("j3", "j5", "j1") == [55, 40, 76]
    scene.wait(202)
    assert ran("j1", "j3", "j4", "j5") == [198, 197, 196, 180]


def test_cr_cpu_since_23_11(stage: Callable[..., Any]) -> None:
    """G19 on the newest release: CPUs are no longer counted, 3 and 4 always run."""
    scene = play(stage, "CR_CPU_Memory", "--ntasks-per-node=2 -N5", NEW, 16)
    assert intervals(scene, 4) == ["1234", "3456", "1234", "3456"]


@pytest.mark.parametrize("release", [NEW, OLD])
def test_as_printed_on_the_page(stage: Callable[..., Any], release: str) -> None:
    """G21: -n10 -N5 packs, so only two jobs run at a time: {1,2}, {3,4}, {5,6}."""
    scene = play(stage, "CR_Core_Memory", "-n10 -N5", release, 14)
    assert intervals(scene, 5) == ["12", "34", "56", "12", "34"]

"""What is known of moments ahead changes no forecast: each is held to one that is worked out anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from makeway.model import Forecast, Job, JobState, PreemptMode
from makeway_select_cons_tres.timeline import Moments
from makeway_testing.builders import cluster, tiers

_SIZES = ("-n1", "-n2", "-n3", "-n4 -N1", "-n6", "-N2", "-n9", "-n2 --mem=700", "-n12", "-N2 --exclusive")
_EVENTS = 60


def _anew(scene: Any, job: Job, nodes: int, gone: Sequence[tuple[Job, PreemptMode]]) -> Forecast | None:
    """Return a forecast as if nothing was known."""
    selector = scene.engine.selector
    known, selector._moments, selector._timelines_at = selector._moments, None, None
    found: Forecast | None = selector.forecast(job, nodes, scene.engine.ledger, gone)
    selector._moments, selector._timelines_at = known, None
    return found


def _happens(scene: Any, chance: Random, number: int, *, by_hand: bool) -> None:
    """Let a job come, end, or be stopped or continued by a person, or let time pass."""
    jobs = list(scene.engine.ledger.jobs.values())
    running = [job for job in jobs if job.state is JobState.RUNNING]
    stopped = [job for job in jobs if job.state is JobState.SUSPENDED]
    what = chance.random()
    if what < 0.5 or not running:
        limit = chance.choice((60.0, 300.0, 1200.0, 7200.0))
        part = chance.choice(("low", "high"))
        size = chance.choice(_SIZES[:-1] if by_hand else _SIZES)
        scene.submit(f"j{number}", f"{size} --mem=100", part, time_limit=limit)
    elif what < 0.75:
        scene.end(chance.choice(running).id)
    elif what < 0.85 and by_hand:
        scene.command("suspend", chance.choice(running).id)
    elif stopped and by_hand:
        scene.command("resume", chance.choice(stopped).id)
    else:
        scene.wait(chance.choice((1.0, 30.0, 200.0)))


@pytest.mark.parametrize("mode", ["requeue", "suspend,gang"])
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_forecasts(
    seed: int, by_hand: bool, mode: str, stage: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that is known of moments, and with nothing."""
    chance = Random(seed)
    kept = Moments.of
    again = 0

    def counted(self: Moments, key: int) -> Any:
        nonlocal again
        again += key in self._known
        return kept(self, key)

    monkeypatch.setattr(Moments, "of", counted)
    scene = stage(
        cluster(5, cpus=4, sockets=1, cores_per_socket=4, memory_mb=2000),
        select_parameters="CR_Core_Memory",
        scheduler="backfill",
        preempt="preempt/partition_prio",
        preempt_mode=mode,
        partitions=tiers(low=1, high=2),
    )
    compared = 0
    for number in range(_EVENTS):
        _happens(scene, chance, number, by_hand=by_hand)
        ledger = scene.engine.ledger
        low = [job for job in ledger.active if job.partition.name == "low" and job.state is JobState.RUNNING]
        for job in [job for job in ledger.jobs.values() if job.state is JobState.PENDING][:3]:
            nodes = job.partition.nodes & ledger.up & chance.choice((-1, 0b01111, 0b11010))
            for how in (None, PreemptMode.REQUEUE, PreemptMode.SUSPEND):
                gone = [] if how is None else [(other, how) for other in low]
                found = scene.engine.selector.forecast(job, nodes, ledger, gone)
                assert found == _anew(scene, job, nodes, gone)
                compared += 1
    assert compared
    if mode == "requeue" and not by_hand:  # else the same jobs may have left other books behind
        assert again > 5

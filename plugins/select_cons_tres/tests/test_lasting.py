"""A forecast that still holds is what would be said anew."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import ClusterView, Exclusive, Forecast, JobSpec
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.forecast import forecast
from makeway_select_cons_tres.lasting import Lasting
from makeway_testing import replay_table
from makeway_testing.builders import cluster

COUNT = 120


def jobs(chance: Random) -> list[JobSpec]:
    """Return many small jobs, and some of large wishes that wait long; instants coincide now and then."""
    drawn = []
    for at in range(COUNT):
        large = chance.random() < 0.15
        nodes = chance.choice((1, 1, 1, 1, 3, 4)) if large else chance.choice((1, 1, 1, 2))
        run = chance.choice((5.0, 20.0, 60.0, 200.0))
        more: dict[str, Any] = {}
        if chance.random() < 0.015:
            more = chance.choice(({"exclusive": Exclusive.NODE}, {"memory_mb_per_node": 0}))
        spec = {
            "min_nodes": nodes,
            "max_nodes": nodes,
            "tasks": nodes,
            "cpus_per_task": chance.choice((4, 2)) if large else chance.choice((1, 1, 2)),
            "memory_mb_per_node": chance.choice((7_900, 6_000))
            if large
            else chance.choice((100, 900, 3_000)),
        }
        drawn.append(
            JobSpec(
                id=str(at),
                submit_at=10.0 * chance.randrange(60),
                run_time=run,
                time_limit=chance.choice((run, run + 30.0, 100.0, 200.0, 200.0, 400.0, None)),
                partitions=(chance.choice(("low", "low", "low", "hi")),),
                **{**spec, **more},
            )
        )
    return sorted(drawn, key=lambda spec: spec.submit_at)


def commands(chance: Random) -> str:
    """Return what people do to jobs and nodes, deadlines that are moved included."""
    lines = []
    for _ in range(15):
        at, job = 10 * chance.randrange(60) + chance.choice((0, 3)), chance.randrange(COUNT)
        verb = chance.choice(("suspend", "requeue", "cancel", "change", "change", "change", "down", "drain"))
        if verb in ("down", "drain"):
            name = f"n{chance.randrange(7)}"
            lines += [f"{at} {verb} {name}", f"{at + 50} up {name}"]
        elif verb == "change":
            lines.append(f"{at} change {job} timelimit={chance.choice((1, 2, 5))}")
        else:
            lines.append(f"{at} {verb} {job}")
            if verb == "suspend":
                lines.append(f"{at + 40} resume {job}")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.usefixtures("each_forecast")
def test_what_lasts_is_what_would_be_said_anew(
    monkeypatch: pytest.MonkeyPatch, drawn_site: Callable[..., Config]
) -> None:
    """Whatever starts, ends, is displaced, suspended or given another limit; for jobs of one node and of several."""
    held = {True: 0, False: 0}
    holds = Lasting.holds

    def counted(self: Lasting, view: ClusterView) -> bool:
        still = holds(self, view)
        held[self.alone] += still
        return still

    monkeypatch.setattr(Lasting, "holds", counted)
    for seed in range(50):
        chance = Random(f"lasting {seed}")
        replay_table(
            jobs(chance),
            config=drawn_site(seed, (4, 8, 8, 16)),
            commands=commands(chance) if seed % 2 else "",
        )
    assert min(held.values()) > 50


@pytest.mark.parametrize(
    ("change", "lasts"),
    [
        pytest.param(lambda scene: scene.end("short"), True, id="who was to be over by then ends"),
        pytest.param(
            lambda scene: scene.end("late"), False, id="who was to stay ends, and n2 serves at once"
        ),
        pytest.param(
            lambda scene: scene.end("small"), True, id="who was to stay ends, and n3 serves no sooner"
        ),
        pytest.param(lambda scene: scene.end("last"), False, id="who was waited for ends"),
        pytest.param(
            lambda scene: begin(scene, "-w n3", 50.0), True, id="somebody starts who is over by then"
        ),
        pytest.param(lambda scene: begin(scene, "-w n3", 900.0), True, id="somebody starts elsewhere"),
        pytest.param(
            lambda scene: begin(scene, "-w n1", 900.0), False, id="somebody starts on the node found"
        ),
        pytest.param(
            lambda scene: limit(scene, "late", 200.0), False, id="a deadline is moved, without a notice"
        ),
        pytest.param(lambda scene: limit(scene, "last", 800.0), False, id="so is that of who is waited for"),
        pytest.param(
            lambda scene: limit(scene, "late", 700.0), True, id="one that comes later anyway is moved"
        ),
        pytest.param(lambda scene: scene.step((), 250.0), True, id="time goes on, and a limit ends a job"),
    ],
)
def test_by_hand(stage: Callable[..., Any], change: Callable[[Any], None], lasts: bool) -> None:
    """A job of 4 cores waits for n1 until 300; n2 is held up to 600, n3 in part for ever."""
    machine = cluster(3, cpus=4, sockets=1, cores_per_socket=4, memory_mb=1_000)
    scene = stage(machine, {"select_parameters": "CR_Core_Memory"}, scheduler="easy")
    scene.submit("short", "-n2 --mem=100 -w n1", time_limit=60.0)
    scene.submit("last", "-n1 --mem=100 -w n1", time_limit=300.0)
    scene.submit("late", "-n2 --mem=100 -w n2", time_limit=600.0)
    scene.submit("small", "-n1 --mem=100 -w n3", time_limit=900.0)
    scene.submit("stays", "-n1 --mem=100 -w n3", time_limit=None)
    scene.submit("asked", "-N1 -n4 --mem=100", time_limit=100.0)
    ledger, selector = scene.engine.ledger, scene.engine.selector
    asked = ledger.jobs["asked"]

    def says() -> Forecast | None:
        found: Forecast | None = selector.forecast(asked, asked.partition.nodes, ledger, ())
        return found

    for _ in range(2):
        found = says()
        assert found is not None
        assert (found.at, found.nodes) == (300.0, 0b001)
    lasting = selector._ahead.lasting
    assert lasting is not None
    change(scene)
    assert (selector._ahead.lasting is lasting and lasting.holds(ledger)) is lasts
    expected = forecast(ConsAttempt(selector, asked, asked.partition.nodes, ledger), ())
    assert says() == expected


def limit(scene: Any, name: str, seconds: float) -> None:
    """Give a running job another time limit."""
    scene.engine.ledger.limit(scene.job(name), seconds)


def begin(scene: Any, where: str, limit: float) -> None:
    """Let a job of one core start on a node; it comes before the one that waits."""
    assert scene.submit("new", f"-n1 --mem=100 --nice=-1000 {where}", time_limit=limit)

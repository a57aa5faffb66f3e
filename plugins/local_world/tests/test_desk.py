"""What somebody asks for never ends a turn of others."""

from __future__ import annotations

import types
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest

from makeway.model import JobSpec
from makeway.worlds.events import Command, Submitted
from makeway_live.drive import Live
from makeway_local_world.daemon.desk import Blamed, Desk
from makeway_testing import builders

POISON = "poison"


class _Loop:
    """A live loop whose turns fail on poison."""

    unwritten = None
    why_unwritten = ""

    def __init__(self) -> None:
        self.engine = types.SimpleNamespace(
            recorder=types.SimpleNamespace(tee=lambda heard: None, refusals=[])
        )
        self.journal = None
        self.inbox: list[Any] = []
        self.done: list[Any] = []

    def feed(self, *events: Any) -> None:
        self.inbox += events

    def turn(self, _: float = 0.0) -> None:
        events, self.inbox = self.inbox, []
        if any(isinstance(each, Submitted) and each.spec.id == POISON for each in events):
            raise RecursionError("maximum recursion depth exceeded")
        self.done += events


def _turned(names: Sequence[str]) -> tuple[_Loop, dict[str, Future[str]]]:
    """Return what becomes of submissions that come in one turn."""
    loop = _Loop()
    desk = Desk(cast("Live", loop))
    told = {name: desk.tell([Submitted(JobSpec(id=name))], lambda name=name: name) for name in names}  # type: ignore[misc]
    desk.turn()
    desk.turn()
    return loop, told


@pytest.mark.parametrize("names", [[POISON], ["a", POISON, "b"], ["a", "b", POISON], [POISON, "a"]])
def test_who_makes_a_turn_fail_is_refused_alone(names: list[str]) -> None:
    """The others are done and answered, and the job that did it is taken out again."""
    loop, told = _turned(names)
    for name in names:
        if name == POISON:
            with pytest.raises(Blamed, match="RecursionError"):
                told[name].result(0)
        else:
            assert told[name].result(0) == name
    taken = [each.spec.id for each in loop.done if isinstance(each, Submitted)]
    assert taken == [name for name in names if name != POISON]
    assert [each.job_id for each in loop.done if isinstance(each, Command)] == [POISON]


def test_a_turn_that_fails_by_itself_is_not_blamed_on_anybody() -> None:
    loop = _Loop()
    desk = Desk(cast("Live", loop))
    loop.feed(Submitted(JobSpec(id=POISON)))
    with pytest.raises(RecursionError):
        desk.turn()


def test_the_engine_refuses_what_it_cannot_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    """One submission fails within the step; the others come in."""
    from makeway.config import build_cluster
    from makeway.record import Line, Recorder
    from makeway.registry import Policies
    from makeway_engine import submission
    from makeway_engine.engine import Engine

    config = builders.config(builders.cluster(2))
    lines: list[Line] = []
    engine = Engine(config, Recorder(build_cluster(config), lines.append), Policies(config))
    engine.forgive()

    def fails(self: Any, job: Any) -> str:
        raise OverflowError("int too large")

    real = submission.Submission._misfit
    monkeypatch.setattr(
        submission.Submission,
        "_misfit",
        lambda self, job: fails(self, job) if job.id == POISON else real(self, job),
    )
    specs = [JobSpec(id=name, run_time=5.0) for name in ("a", POISON, "b")]
    actions = engine.step(0.0, [*map(Submitted, specs), Command("priority", "a", None, "\u00b2")])
    assert [each.job.id for each in actions] == ["a", "b"]
    refused = {line.job: line.data["reason"] for line in lines if line.kind in ("rejected", "refused")}
    assert refused[POISON].startswith("internal error, please report it: OverflowError")
    assert refused["a"].endswith("allowed: a priority from 0 to 4294967295")


def test_who_no_longer_waits_for_an_answer_ends_no_turn() -> None:
    """A client that hangs up cancels its call: the call is done all the same, and so are those behind it."""
    loop = _Loop()
    desk = Desk(cast("Live", loop))
    told = [desk.tell([Submitted(JobSpec(id=name))], lambda name=name: name) for name in ("a", "b")]  # type: ignore[misc]
    assert told[0].cancel()
    desk.turn()
    assert told[1].result(0) == "b"
    assert [each.spec.id for each in loop.done] == ["a", "b"]

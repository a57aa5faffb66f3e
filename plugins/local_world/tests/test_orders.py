"""What becomes of an order when jobs end before it reaches them."""

from __future__ import annotations

import asyncio
import types
from concurrent.futures import Future
from typing import Any, cast

import pytest

from makeway.worlds.events import Command
from makeway_local_world.daemon.service import Caller, Service
from makeway_local_world.daemon.verbs import Order, Outcome

GONE = "the job is unknown or has ended"


class _Commanded:
    """What is sent to the engine about a job, as far as `Service.order` looks at it."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id


def _service(there: set[str], refused: dict[str, str]) -> Service:
    """Return enough of a service to give an order: the engine has the jobs `there`, and refuses `refused`."""
    told: Future[dict[str, str]] = Future()
    told.set_result(refused)

    async def ask(look: Any) -> Any:
        return look()

    def judge(order: Order, uid: int, name: str) -> Outcome:
        return Outcome(done=["1", "2"], commands=[cast(Command, _Commanded(each)) for each in ("1", "2")])

    engine = types.SimpleNamespace(
        ledger=types.SimpleNamespace(jobs={each: types.SimpleNamespace(spec=None) for each in there}),
        transitions=types.SimpleNamespace(is_leaving=lambda job: False),
    )
    made: Any = Service.__new__(Service)
    made.ask = ask
    made.verbs = types.SimpleNamespace(judge=judge)
    made.live = types.SimpleNamespace(engine=engine)
    made.desk = types.SimpleNamespace(tell=lambda commands, look: told)
    made._warn = lambda names: None
    return cast(Service, made)


@pytest.mark.parametrize(
    ("order", "there", "done", "refused"),
    [
        pytest.param(Order(verb="cancel", everything=True), {"1"}, ["1"], {}, id="all, one has ended"),
        pytest.param(
            Order(verb="cancel", everything=True),
            {"1", "2"},
            ["1"],
            {"2": GONE},
            id="all, one is refused and still there",
        ),
        pytest.param(
            Order(verb="cancel", jobs=("1", "2")), {"1"}, ["1"], {"2": GONE}, id="by name, one has ended"
        ),
    ],
)
def test_only_who_was_named_is_missed(
    order: Order, there: set[str], done: list[str], refused: dict[str, str]
) -> None:
    """A job that ends between the look at all jobs and the order is no reason to fail."""
    service = _service(there, {"2": GONE})
    answer = asyncio.run(service.order(Caller(uid=0, gid=0), order))
    assert answer == {"done": done, "refused": refused}

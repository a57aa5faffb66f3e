"""Hold the scheduler that tries one job of each request to the loop that tries all."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.errors import PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, Candidates, Job, JobSpec, Limits
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.placing import Outcome, Placer, Question
from makeway_engine.schedulers.requests import Requests

Seen = list[tuple[float, tuple[tuple[object, ...], ...]]]

QUEUES = {
    "urgent": (60, {"PREEMPTION": "PREEMPTIVE[normal]", "UJOB_LIMIT": "6"}),
    "normal": (30, {"PREEMPTION": "PREEMPTABLE", "QJOB_LIMIT": "14", "UJOB_LIMIT": "7", "HJOB_LIMIT": "3"}),
    "slow": (50, {"PREEMPTION": "PREEMPTIVE[normal]", "PREEMPT_DELAY": "90"}),
}


def _config(**more: str) -> Config:
    return Config(
        node=tuple(NodeTable(name=f"h{at}", cpus=4, memory_mb=8_000) for at in range(5)),
        partition=tuple(
            PartitionTable(name=name, priority_tier=tier, attributes={**attributes, **more})
            for name, (tier, attributes) in QUEUES.items()
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={
                "lsf/queue": {
                    "users": {"u1": {"MAX_JOBS": "7"}, "default": {"MAX_JOBS": "9"}},
                    "limits": [{"NAME": "jobs", "PER_USER": "all", "JOBS": "6"}],
                }
            },
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 1.0}),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    instants = sorted(chance.choice((0, 0, chance.randrange(900))) for _ in range(70))
    return [
        JobSpec(
            id=str(at + 1),
            partitions=(chance.choice(("urgent", "slow", "normal", "normal", "normal")),),
            user=chance.choice(("u1", "u2", "u3")),
            submit_at=float(instant),
            run_time=float(chance.randint(5, 300)),
            time_limit=400.0,
            tasks=chance.choice((1, 1, 2, 5)),
            batch=chance.random() < 0.9,
            memory_mb_per_cpu=chance.choice((None, 500)),
        )
        for at, instant in enumerate(instants)
    ]


def _seen(config: Config, jobs: list[JobSpec]) -> Seen:
    """Return what each step leaves: of every job its state, why it waits, and where it is."""
    found: Seen = []

    def look(engine: Engine) -> None:
        found.append(
            (
                engine.ledger.now,
                tuple(
                    (job.id, job.state, job.reason, job.nodes, job.preemptions)
                    for job in engine.ledger.jobs.values()
                ),
            )
        )

    replay(config, jobs, (), Options(after_step=look, keep=False))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_same_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is suspended, limited, or may preempt only after a while."""
    jobs = _jobs(seed)
    asked: list[bool] = []
    complete = Requests.complete

    def noted(self: Requests) -> bool:
        asked.append(complete(self))
        return asked[-1]

    monkeypatch.setattr(Requests, "many", 2)
    monkeypatch.setattr(Requests, "complete", noted)
    quick = _seen(_config(), jobs)
    assert asked.count(True) > 20, "the quick way was not taken"
    monkeypatch.setattr(Requests, "complete", lambda self: False)
    monkeypatch.setattr(Requests, "in_vain", lambda self, job: None)
    assert quick == _seen(_config(), jobs)
    assert any(job[4] for _, step in quick for job in step), "no job was preempted"


def test_fewer_are_asked() -> None:
    """Of 60 jobs that ask for the same one is tried in a pass once all have been tried."""
    tried: list[str] = []
    jobs = [
        JobSpec(id=str(at), partitions=("normal",), user="u1", submit_at=0.0, run_time=50.0, tasks=1)
        for at in range(60)
    ]

    whole = Placer.try_start

    def noted(self: Placer, question: Question) -> Outcome:
        tried.append(question.job.id)
        return whole(self, question)

    def count(many: int) -> int:
        tried.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Requests, "many", many)
            patch.setattr(Placer, "try_start", noted)
            replay(_config(), jobs, (), Options(keep=False))
        return len(tried)

    assert count(2) * 2 < count(10_000)


@pytest.mark.parametrize(
    "more", [{"SLOT_RESERVE": "MAX_RESERVE_TIME[20]"}, {"DISPATCH_WINDOW": "8:00-20:00"}]
)
def test_where_more_than_the_request_counts(more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reserved slots depend on what stands before a job, and windows on the time: all are tried."""
    monkeypatch.setattr(Requests, "many", 2)
    monkeypatch.setattr(Requests, "__init__", lambda *_: pytest.fail("it is not to be made"))
    replay(_config(**more), _jobs(0)[:20], (), Options(keep=False))


def test_records_tell_of_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """So all are tried where they are kept."""
    monkeypatch.setattr(Requests, "__init__", lambda *_: pytest.fail("it is not to be made"))
    replay(_config(), _jobs(0)[:20], (), Options(sink=lambda line: None))


class _Admits(Limits):
    """Keeps no job out."""

    def admit(self, job: Job, view: Any) -> Blocked | None:
        """Let it in."""
        return None


class Wrong:
    """Limits with one wrong promise, beside right ones."""

    def __init__(self, **promises: Any) -> None:
        self.promises = {"by_request": lambda job: True, **promises}

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Promise."""
        limits = _Admits()
        for name, promise in self.promises.items():
            setattr(limits, name, promise)
        return limits


class WrongPolicy(Wrong):
    """The same, with candidates of its own."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Any) -> Candidates:
        """Name none."""
        return Candidates()


def _fails(job: Any = None) -> Any:
    return 1 / 0


def _blamed(config: Config, plugin: Wrong, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    monkeypatch.setattr(Requests, "many", 2)
    with pytest.raises(PolicyError) as caught:
        replay(config, _jobs(0)[:40], (), Options(plugins={"wrong": plugin}, keep=False, **options))
    assert (caught.value.plugin, caught.value.hook) == ("wrong", "makeway_limits")
    return caught.value.message


@pytest.mark.parametrize(
    ("by_request", "message"),
    [
        (5, "by_request is 5; allowed: a function, or None"),
        (lambda job: "yes", "its function returned 'yes'; allowed: True or False"),
        (_fails, "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_promise(by_request: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of a job, and True or False from it."""
    config = attrs.evolve(_config(), policy=attrs.evolve(_config().policy, plugins=("wrong",)))
    assert message in _blamed(config, Wrong(by_request=by_request), monkeypatch)


@pytest.mark.parametrize(
    ("promises", "message"),
    [
        ({"inadmissible": lambda job: 5}, "its inadmissible said 5; allowed: a reason, or None"),
        ({"inadmissible": _fails}, "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_reason(promises: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why a job would wait."""
    policy = PolicyTable(select="select/linear", preempt="wrong", preempt_mode=("cancel",))
    config = attrs.evolve(_config(), policy=policy)
    assert message in _blamed(config, WrongPolicy(**promises), monkeypatch)


class _Book:
    """Knows in which state each active job is."""

    def __init__(self, view: Any) -> None:
        self.states: dict[str, str] = {}

    def started(self, job: Any, view: Any) -> None:
        self.states[job.id] = job.state.value

    def left(self, job: Any, view: Any) -> None:
        del self.states[job.id]

    def stopped(self, job: Any, view: Any) -> None:
        assert self.states[job.id] == "RUNNING"
        self.states[job.id] = "SUSPENDED"

    def resumed(self, job: Any, view: Any) -> None:
        assert self.states[job.id] == "SUSPENDED"
        self.states[job.id] = "RUNNING"

    def altered(self, job: Any, view: Any) -> None:
        assert job.id in self.states or job.state.value == "PENDING"


def test_a_witness_knows_the_state_of_each_active_job() -> None:
    """`makeway.model.Witness`: of all that start, stop, go on and leave."""
    suspended = 0

    def look(engine: Engine) -> None:
        nonlocal suspended
        states = engine.ledger.book(_Book).states
        assert states == {job.id: job.state.value for job in engine.ledger.active}
        suspended += "SUSPENDED" in states.values()

    replay(_config(), _jobs(0), (), Options(keep=False, after_step=look))
    assert suspended > 10

"""Hold the scheduler that asks for one job after the other to the one that orders the whole queue for each pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import ClusterTable, Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.errors import PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, Candidates, ClusterView, Job, JobSpec, Limits, PreemptMode, QueueOrder
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.one_by_one import OneByOne


class LongestFirst:
    """Names the job with the longest time limit of those that wait."""

    def __init__(self) -> None:
        self.waiting: dict[int, Job] = {}
        self.tried: set[int] = set()

    def forget(self) -> None:
        """No job waits."""
        self.waiting.clear()

    def came(self, job: Job) -> None:
        """One more waits."""
        self.waiting[job.index] = job

    def left(self, job: Job) -> None:
        """One fewer does."""
        del self.waiting[job.index]

    def waits(self, job: Job) -> None:
        """Its reason does not matter."""
        assert self.waiting[job.index] is job

    def begin(self, *, alone: bool, every_job: bool) -> bool:
        """All are to be tried."""
        del alone, every_job
        self.tried.clear()
        return True

    def next(self) -> Job | None:
        """Name the longest of those that were not named yet."""
        left = [job for job in self.waiting.values() if job.index not in self.tried]
        if not left:
            return None
        job = min(left, key=_rank)
        self.tried.add(job.index)
        return job

    def waits_as_before(self, job: Job) -> bool:
        """No job is passed over."""
        return False

    def kind(self, job: Job) -> str | None:
        """Short jobs displace none."""
        return "short" if (job.time_limit or 0) < 100 else None


def _rank(job: Job) -> tuple[float, int]:
    return -(job.time_limit or 0), job.index


def _sort(self: QueueOrder, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
    return sorted(pending, key=_rank)


class Closing(Limits):
    """Closes no nodes."""

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> int:
        """Close none."""
        return 0


class Policy:
    """Long jobs before short ones, which they displace."""

    def __init__(self, turns: Callable[[], Any] = LongestFirst) -> None:
        self.queue = type("Longest", (QueueOrder,), {"sort": _sort, "turns": lambda self: turns()})

    @hookimpl
    def makeway_queue(self) -> QueueOrder:
        """Order by length."""
        order: QueueOrder = self.queue()
        return order

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Close no nodes, but who knows."""
        return Closing()

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
        """Name those that are shorter by half."""
        if (preemptor.time_limit or 0) < 100:
            return Candidates()
        found = tuple(each for each in active if (each.time_limit or 0) < (preemptor.time_limit or 0) / 2)
        return Candidates(jobs=found, modes=(PreemptMode.REQUEUE,) * len(found))


def _config(**more: Any) -> Config:
    return Config(
        cluster=ClusterTable(licenses={"pen": 1}),
        node=(NodeTable(name="n[1-4]", cpus=4, memory_mb=4_000),),
        partition=(PartitionTable(name="batch", default=True), PartitionTable(name="other")),
        policy=PolicyTable(
            **{
                "select": "select/cons_tres",
                "select_parameters": ("CR_Core",),
                "preempt": "longest",
                "preempt_mode": ("requeue",),
                **more,
            }
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 5.0}),
    )


def _jobs(seed: int, odd: dict[str, Any] | None = None) -> list[JobSpec]:
    chance = Random(seed)
    instants = sorted(chance.choice((0, chance.randrange(300))) for _ in range(60))
    return [
        JobSpec(
            id=str(at + 1),
            submit_at=float(instant),
            run_time=float(chance.randint(5, 150)),
            time_limit=float(chance.choice((50, 90, 160, 400))),
            tasks=chance.choice((1, 1, 2, 4, 9)),
            **(odd if odd and at % 9 == 5 else {}),
        )
        for at, instant in enumerate(instants)
    ]


def _seen(config: Config, jobs: list[JobSpec], plugins: dict[str, Any]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []

    def look(engine: Engine) -> None:
        for job in engine.ledger.jobs.values():
            found.append((engine.ledger.now, job.id, job.state, job.reason, job.nodes, job.preemptions))

    replay(config, jobs, (), Options(after_step=look, keep=False, plugins=plugins))
    return found


def _compare(config: Config, jobs: list[JobSpec], plugins: dict[str, Any]) -> tuple[int, int]:
    """Return how many passes named jobs one by one, and how many tries they needed."""
    counts = [0, 0]
    go_through, try_entry = OneByOne.go_through, Attempts.try_entry

    def passes(self: OneByOne, *given: Any) -> None:
        counts[0] += 1
        go_through(self, *given)

    def tries(self: Attempts, *given: Any, **named: Any) -> Any:
        counts[1] += 1
        return try_entry(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneByOne, "go_through", passes)
        patch.setattr(Attempts, "try_entry", tries)
        quick = _seen(config, jobs, plugins)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneByOne, "begins", lambda self, attempts: False)
        assert quick == _seen(config, jobs, plugins)
    assert any(each[5] for each in quick), "no job was displaced"
    return counts[0], counts[1]


@pytest.mark.parametrize("seed", range(5))
def test_the_same_steps(seed: int) -> None:
    """What is displaced, and comes again."""
    passes, _ = _compare(_config(), _jobs(seed), {"longest": Policy()})
    assert passes > 30


@pytest.mark.parametrize(
    "odd",
    [
        {"partitions": ("batch", "other")},
        {"licenses": {"pen": 1}},
        {"begin_at": 200.0},
        {"depends_on": ("1",)},
    ],
    ids=lambda odd: str(*odd),
)
def test_odd_jobs(odd: dict[str, Any]) -> None:
    """In several partitions, with licences, not eligible at once: the queue is ordered while need be."""
    passes, _ = _compare(_config(), _jobs(1, odd), {"longest": Policy()})
    assert passes


def test_kinds_are_tried_once() -> None:
    """Until something is given back, one short job of a request is enough; not so where others reserve nodes."""

    class Kept:
        @hookimpl
        def makeway_limits(self) -> Limits:
            """Keep no nodes, but who knows."""
            limits = Limits()
            limits.__class__ = type("Keeps", (Limits,), {"reservations": lambda self, job, view: ()})
            return limits

    jobs = [attrs.evolve(job, tasks=4) for job in _jobs(3)]
    _, fewer = _compare(_config(), jobs, {"longest": Policy()})
    config = _config(plugins=("kept",))
    _, all_of_them = _compare(config, jobs, {"longest": Policy(), "kept": Kept()})
    assert fewer < 0.8 * all_of_them


class _AboutAll(Limits):
    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Let all in."""
        return None


class _Limit:
    @hookimpl
    def makeway_limits(self) -> Limits:
        """Look at all jobs."""
        return _AboutAll()


class _Closes:
    @hookimpl
    def makeway_limits(self) -> Limits:
        """Look at the nodes of all jobs."""
        return Closing()


class _Default(QueueOrder):
    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Leave them as they are."""
        return pending


class _Order:
    @hookimpl
    def makeway_queue(self) -> QueueOrder:
        """Leave them as they are."""
        return _Default()


@pytest.mark.parametrize("other", [_Limit, _Closes, _Order])
def test_where_others_have_a_say(other: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is ordered as a whole."""
    monkeypatch.setattr(OneByOne, "__init__", lambda *_: pytest.fail("it is not to be made"))
    _seen(_config(plugins=("other",)), _jobs(0)[:20], {"longest": Policy(), "other": other()})


class _Declines:
    @hookimpl
    def makeway_queue(self) -> None:
        """Have no opinion."""


def test_one_without_an_opinion_has_no_say() -> None:
    """Though it is asked first; jobs are named one by one as ever."""
    plugins = {"longest": Policy(), "other": _Declines()}
    passes, _ = _compare(_config(plugins=("other",)), _jobs(0), plugins)
    assert passes > 30


def test_traces_tell_of_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """So all are tried where they are kept."""
    monkeypatch.setattr(OneByOne, "__init__", lambda *_: pytest.fail("it is not to be made"))
    options = Options(sink=lambda line: None, plugins={"longest": Policy()}, traced=lambda job: job.id == "3")
    replay(_config(), _jobs(0)[:20], (), options)


class _Stranger(LongestFirst):
    def next(self) -> Any:
        """Name something else."""
        return "me"


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        (lambda: 5, "its turns() returned 5: no forget()"),
        (_Stranger, "its next() named 'me'; allowed: jobs that came and have not left"),
        (lambda: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_wrong_turns(turns: Callable[[], Any], message: str) -> None:
    """What it returns has all methods, and names jobs that wait."""
    with pytest.raises(PolicyError) as caught:
        _seen(_config(), _jobs(0)[:20], {"longest": Policy(turns)})
    assert (caught.value.plugin, caught.value.hook) == ("longest", "makeway_queue")
    assert message in caught.value.message

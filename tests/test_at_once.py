"""A mark says whom a search would choose before all candidates are named: it decides the same, and is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from makeway.bitmap import NodeBits
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.errors import PolicyError
from makeway.hookspecs import at_once, hookimpl
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Choice,
    ClusterView,
    Job,
    JobSpec,
    Limits,
    Placement,
    PreemptMode,
)
from makeway_app.replay import Options, replay

NAME = "preempt/first"
CONFIG = Config(
    node=(NodeTable(name="n[1-4]", cpus=4),),
    partition=(PartitionTable(name="low", default=True), PartitionTable(name="high", priority_tier=2)),
    policy=PolicyTable(
        select="select/cons_tres",
        select_parameters=("CR_Core",),
        preempt=NAME,
        preempt_mode=("requeue",),
    ),
    scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 1.0}),
)
JOBS = [
    JobSpec(
        id=str(at),
        submit_at=at * 2.0,
        partitions=("high" if at % 3 == 2 else "low",),
        tasks=1 + at % 4,
        run_time=30.0 + at % 5 * 20,
        time_limit=600.0,
    )
    for at in range(40)
]


def lower(preemptor: Job, view: ClusterView) -> list[Job]:
    """Return whom a job may displace."""
    tier = preemptor.partition.priority_tier
    return [job for job in view.active if job.partition.priority_tier < tier]


def named(jobs: list[Job]) -> Candidates:
    """Name candidates that would be requeued."""
    return Candidates(jobs=tuple(jobs), modes=(PreemptMode.REQUEUE,) * len(jobs))


class First:
    """Takes the first of them that make room."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, view: ClusterView) -> Candidates:
        """Name all of lower partitions."""
        self.asked.append("candidates")
        return named(lower(preemptor, view))

    @hookimpl
    @at_once(lambda view: lambda job, begin: knows(job, begin, view))
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | Blocked:
        """Take one after the other."""
        self.asked.append("search")
        attempt = attempt.fresh()
        for count, job in enumerate(candidates.jobs, 1):
            attempt.remove(job, PreemptMode.REQUEUE)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Choice(placement=found, victims=tuple(range(count)))
        return Blocked()


def knows(job: Job, begin: Callable[[], Attempt], view: ClusterView) -> tuple[Candidates, Choice] | None:
    """Know it where the first one is enough."""
    first = lower(job, view)[:1]
    if not first:
        return None
    attempt = begin()
    attempt.remove(first[0], PreemptMode.REQUEUE)
    found = attempt.probe()
    return (named(first), Choice(placement=found, victims=(0,))) if isinstance(found, Placement) else None


class Guard:
    """Protects nobody, and wants to be asked."""

    @hookimpl
    def makeway_protect(self, candidates: Any) -> dict[str, str]:
        """Protect nobody."""
        return {}


class Other:
    """Searches first, and leaves it to the next."""

    @hookimpl
    def makeway_search(self, attempt: Attempt) -> None:
        """Have no opinion."""


def counts(options: Options, **plugins: Any) -> tuple[Any, list[str]]:
    """Return what became of the jobs, and how often the plugin was asked."""
    first = First()
    policy = attrs.evolve(CONFIG.policy, plugins=tuple(f"other/{name}" for name in plugins))
    given = {NAME: first, **{f"other/{name}": plugin for name, plugin in plugins.items()}}
    run = replay(attrs.evolve(CONFIG, policy=policy), JOBS, (), attrs.evolve(options, plugins=given))
    each = run.recorder.histories.values()
    return [(one.job.id, one.ended_at, one.preempted, repr(one.intervals)) for one in each], first.asked


def test_it_spares_asking_and_decides_the_same() -> None:
    """Where nobody records attempts; who looks on is asked as ever."""
    known, asked = counts(Options())
    recorded, everything = counts(Options(sink=lambda _: None))
    assert known == recorded
    assert sum(one[2] for one in known) > 3
    assert 0 < asked.count("search") < everything.count("search")
    assert asked.count("candidates") < everything.count("candidates")


@pytest.mark.parametrize("more", [{"guard": Guard()}, {"search": Other()}, {}])
def test_others_have_their_say(more: dict[str, Any]) -> None:
    """Whoever protects jobs, or searches first, is asked; so is each hook where its calls are logged."""
    _, everything = counts(Options(sink=lambda _: None))
    known, asked = counts(Options(trace=not more), **more)
    assert asked.count("search") == everything.count("search")
    assert known == counts(Options())[0]


def _wrong(said: Any) -> Any:
    class Wrong(First):
        @hookimpl
        @at_once(said)
        def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | Blocked:
            """Search as ever."""
            return First.makeway_search(self, attempt, candidates)

    return Wrong()


def _failing(job: Job, begin: Any) -> None:
    raise ValueError("no idea")


def _stranger(view: ClusterView) -> Any:
    def known(job: Job, begin: Callable[[], Attempt]) -> Any:
        found = knows(job, begin, view)
        return found and (named([job]), found[1])

    return known


def _third(view: ClusterView) -> Any:
    def known(job: Job, begin: Callable[[], Attempt]) -> Any:
        found = knows(job, begin, view)
        return found and (found[0], attrs.evolve(found[1], victims=(2,)))

    return known


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (lambda view: 3, "a function, or None"),
        (lambda view: lambda job, begin: 3, "allowed: Candidates and a Choice, or None"),
        (lambda view: lambda job, begin: (Candidates(), 3), "allowed: a Choice"),
        (lambda view: lambda job, begin: (3, 3), "allowed: Candidates"),
        (lambda view: _failing, "no idea"),
        (_stranger, "not among the active jobs"),
        (_third, "candidate number 2 of 1"),
    ],
)
def test_what_is_said_is_checked(said: Any, text: str) -> None:
    """The error names the plugin."""
    with pytest.raises(PolicyError, match=text) as raised:
        replay(CONFIG, JOBS, (), Options(plugins={NAME: _wrong(said)}))
    assert NAME in str(raised.value)


def test_nobody_need_know() -> None:
    """None instead of a function: the hooks are asked as ever."""
    run = replay(CONFIG, JOBS, (), Options(plugins={NAME: _wrong(lambda view: None)}))
    each = run.recorder.histories.values()
    found = [(one.job.id, one.ended_at, one.preempted, repr(one.intervals)) for one in each]
    assert found == counts(Options())[0]


class Closer:
    """Closes the first node to all."""

    def __init__(self) -> None:
        self.asked = 0

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Close it."""
        return FirstClosed(self)


class FirstClosed(Limits):
    """Closes the first node to all."""

    def __init__(self, closer: Closer) -> None:
        self.closer = closer

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Close it."""
        self.closer.asked += 1
        return 1


def _closing(said: Callable[[Job], NodeBits | None]) -> Any:
    """Return the plugin with a search that says which nodes are closed."""

    def known(job: Job, begin: Callable[..., Attempt], view: ClusterView) -> Any:
        return knows(job, lambda: begin(said(job)), view)

    class Closing(First):
        @hookimpl
        @at_once(lambda view: lambda job, begin: known(job, begin, view))
        def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | Blocked:
            """Search as ever."""
            return First.makeway_search(self, attempt, candidates)

        @hookimpl
        def makeway_limits(self) -> Limits:
            """Close a node to each."""
            return OneEach(self.asked)

    return Closing()


class OneEach(Limits):
    """Closes a node to each job."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Close it."""
        self.asked.append("closed")
        return 1 << job.index % 4


def _became(**plugins: Any) -> Any:
    policy = attrs.evolve(CONFIG.policy, plugins=tuple(f"other/{name}" for name in plugins if name != "own"))
    given = {NAME if name == "own" else f"other/{name}": plugin for name, plugin in plugins.items()}
    run = replay(attrs.evolve(CONFIG, policy=policy), JOBS, (), Options(plugins=given))
    each = run.recorder.histories.values()
    return [(one.job.id, one.ended_at, one.preempted, repr(one.intervals)) for one in each]


def test_a_plugin_that_knows_closed_nodes_is_not_asked_again() -> None:
    """It comes to the same as if an attempt had asked."""
    asking, knowing = _closing(lambda job: None), _closing(lambda job: 1 << job.index % 4)
    known = _became(own=knowing)
    assert _became(own=asking) == known
    assert sum(one[2] for one in known) > 3
    assert knowing.asked.count("closed") < asking.asked.count("closed")


def test_others_close_nodes_whatever_it_knows() -> None:
    """Where another plugin has a say, what this one knows does not count."""
    asking, knowing = _closing(lambda job: None), _closing(lambda job: 1 << job.index % 4)
    one, other = Closer(), Closer()
    assert _became(own=asking, limits=one) == _became(own=knowing, limits=other)
    assert one.asked == other.asked > 0

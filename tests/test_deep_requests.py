"""Hold the scheduler that tries one job of each request to the loop that tries everybody."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.errors import PolicyError
from makeway.hookspecs import Standing, by_request, hookimpl
from makeway.model import Blocked, Candidates, JobSpec
from makeway.worlds.events import Command
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.placing import Outcome, Placer, Question
from makeway_engine.schedulers.requests import Heads, Requests

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
    """Whoever is suspended, limited, or may preempt only after a while."""
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
    assert any(job[4] for _, step in quick for job in step), "nobody was preempted"


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
    """Reserved slots depend on who stands before a job, and windows on the time: everybody is tried."""
    monkeypatch.setattr(Requests, "many", 2)
    monkeypatch.setattr(Requests, "__init__", lambda *_: pytest.fail("it is not to be made"))
    replay(_config(**more), _jobs(0)[:20], (), Options(keep=False))


def test_records_tell_of_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """So everybody is tried where they are kept."""
    monkeypatch.setattr(Requests, "__init__", lambda *_: pytest.fail("it is not to be made"))
    replay(_config(), _jobs(0)[:20], (), Options(sink=lambda line: None))


@pytest.mark.parametrize(
    ("holds", "message"),
    [
        (lambda view: 5, "returned 5; allowed: a function of a job, or None"),
        (lambda view: lambda job: "yes", "its function returned 'yes'; allowed: True or False"),
        (lambda view: lambda job: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_mark(holds: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of a job, and True or False from it."""

    class Wrong:
        @hookimpl
        @by_request(holds)
        def makeway_admit(self, jobs: Any) -> dict[str, Blocked]:
            return {}

    monkeypatch.setattr(Requests, "many", 2)
    config = attrs.evolve(_config(), policy=attrs.evolve(_config().policy, plugins=("wrong",)))
    with pytest.raises(PolicyError) as caught:
        replay(config, _jobs(0)[:20], (), Options(plugins={"wrong": Wrong()}, keep=False))
    assert (caught.value.plugin, caught.value.hook) == ("wrong", "makeway_admit")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("in_vain", "message"),
    [
        (lambda view: lambda job: 5, "`in_vain`, which said 5; allowed: a reason, or None"),
        (lambda view: lambda job: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_reason(in_vain: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is not empty, or None, is what says why a job would wait."""

    class Wrong:
        @hookimpl
        @by_request(_always, in_vain)
        def makeway_admit(self, jobs: Any) -> dict[str, Blocked]:
            return {}

        @hookimpl
        @by_request(_always)
        def makeway_preempt_candidates(self, preemptor: Any) -> Candidates:
            return Candidates()

    monkeypatch.setattr(Requests, "many", 2)
    policy = PolicyTable(select="select/linear", preempt="wrong", preempt_mode=("cancel",))
    config = attrs.evolve(_config(), policy=policy)
    with pytest.raises(PolicyError) as caught:
        replay(config, _jobs(0)[:40], (), Options(plugins={"wrong": Wrong()}, keep=False))
    assert (caught.value.plugin, caught.value.hook) == ("wrong", "makeway_admit")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("turned", "message"),
    [
        (lambda view: lambda: 5, "`turned`, which said 5; allowed: a list of Standing, or None"),
        (lambda view: lambda: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_turn(turned: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons that were given before, or None, is what says which of them stand."""

    class Wrong:
        @hookimpl
        @by_request(_always, lambda view: lambda job: Standing("Wait"), turned)
        def makeway_admit(self, jobs: Any) -> dict[str, Blocked]:
            return {}

        @hookimpl
        @by_request(_always)
        def makeway_preempt_candidates(self, preemptor: Any) -> Candidates:
            return Candidates()

    monkeypatch.setattr(Requests, "many", 2)
    policy = PolicyTable(select="select/linear", preempt="wrong", preempt_mode=("cancel",))
    config = attrs.evolve(_config(), policy=policy)
    with pytest.raises(PolicyError) as caught:
        replay(config, _jobs(0)[:40], (), Options(plugins={"wrong": Wrong()}, keep=False, started=_ask))
    assert (caught.value.plugin, caught.value.hook) == ("wrong", "makeway_admit")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("idle", "message"),
    [
        (lambda view: lambda job: "Wait", "`idle`, which said 'Wait'; allowed: a Standing, or None"),
        (lambda view: lambda job: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_standing(idle: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `Standing` is what lets jobs rest while nobody hears why they wait."""

    class Wrong:
        @hookimpl
        @by_request(_always, idle=idle)
        def makeway_admit(self, jobs: Any) -> dict[str, Blocked]:
            return {}

        @hookimpl
        @by_request(_always)
        def makeway_preempt_candidates(self, preemptor: Any) -> Candidates:
            return Candidates()

    monkeypatch.setattr(Requests, "many", 2)
    policy = PolicyTable(select="select/linear", preempt="wrong", preempt_mode=("cancel",))
    config = attrs.evolve(_config(), policy=policy)
    with pytest.raises(PolicyError) as caught:
        replay(config, _jobs(0)[:40], (), Options(plugins={"wrong": Wrong()}, keep=False))
    assert (caught.value.plugin, caught.value.hook) == ("wrong", "makeway_admit")
    assert message in caught.value.message


def test_reasons_are_left_open_only_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where somebody looks after each step, commands come, the run is cut short, or another plugin looks on."""
    left: list[bool] = []
    monkeypatch.setattr(Requests, "leave_unheard", lambda self: left.append(self._idle is not None))

    class Onlooker:
        @hookimpl
        def makeway_marks(self, view: Any) -> dict[str, frozenset[str]]:
            return {}

    def is_left(config: Config, commands: Any = (), **options: Any) -> bool:
        left.clear()
        replay(config, _jobs(0)[:10], commands, Options(keep=False, **options))
        return left == [True]

    config = _config()
    assert is_left(config)
    assert not is_left(config, after_step=lambda engine: None)
    assert not is_left(config, until=100.0)
    assert not is_left(config, decided=lambda engine, decision: None)
    assert not is_left(config, [(1.0, Command("hold", "2"))])
    watched = attrs.evolve(config, policy=attrs.evolve(config.policy, plugins=("onlooker",)))
    assert not is_left(watched, plugins={"onlooker": Onlooker()})


def _ask(engine: Engine) -> None:
    engine.policies.turned(engine.ledger)()


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


def _always(view: Any) -> Callable[[Any], bool]:
    return lambda job: True


@pytest.mark.parametrize("seed", range(20))
def test_lists_that_are_looked_at_late(seed: int) -> None:
    """The entries come in the same order, however many of them stand in groups; and whoever is passed over."""
    chance = Random(seed)
    places = [(float(at), None, None) for at in chance.sample(range(200), 60)]
    lists: list[Any] = [sorted(chance.sample(places, 3)) for _ in range(12)]
    entries = sorted({entry for listed in lists for entry in listed})
    after = chance.choice((None, *entries[:20]))
    lists = [sorted(set(listed) - set(other)) for listed, other in zip(lists, [[], *lists], strict=False)]
    taken: set[Any] = set()
    for listed in lists:  # no entry stands in two of them
        listed[:] = [entry for entry in listed if entry not in taken]
        taken.update(listed)
    lists = [listed for listed in lists if listed]
    plain, grouped = lists[:4], [lists[4:7], lists[7:]]
    groups: list[Any] = []
    for each in grouped:
        first = min((listed for listed in each), key=lambda listed: listed[0], default=None)
        if first is not None and (after is None or first[0] > after):
            groups.append((first[0], first, lambda each=each: each))
        else:
            plain = plain + each
    goes_on = {entry: chance.random() < 0.6 for entry in taken}

    def told(heads: Heads) -> list[Any]:
        found = []
        while (head := heads.next()) is not None:
            found.append(head[0])
            if goes_on[head[0]]:
                heads.go_on(head[1], head[0])
        return found

    assert told(Heads(plain, after, groups)) == told(Heads(lists, after))


def test_the_first_of_those_who_share_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known without a look at each of their requests, whoever comes and goes meanwhile."""
    looked = 0
    heads = Requests.heads

    def checked(self: Requests, after: Any) -> Heads:
        nonlocal looked
        found = heads(self, after)
        for reason in self._by_reason if self.unheard else ():
            first = self._first_of(reason)
            assert first == min((listed[0], listed) for listed in self._lists_of(reason))
            looked += 1
        return found

    monkeypatch.setattr(Requests, "many", 2)
    monkeypatch.setattr(Requests, "heads", checked)
    for seed in range(6):
        replay(_config(), _jobs(seed), (), Options())
    assert looked > 500

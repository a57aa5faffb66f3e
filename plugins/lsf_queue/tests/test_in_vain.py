"""Hold what is said at a glance of jobs that would be tried in vain to trying them (lsf 5.1, 5.3)."""

from __future__ import annotations

import functools
from collections import Counter
from random import Random

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import Job, JobSpec
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.placing import Outcome, Placer, Question
from makeway_engine.schedulers.requests import Requests
from makeway_lsf_queue import judging, vain
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.victims import mode_of

QUEUES = {
    "urgent": (60, {"PREEMPTION": "PREEMPTIVE[normal]", "UJOB_LIMIT": "6"}),
    "normal": (30, {"PREEMPTION": "PREEMPTABLE", "QJOB_LIMIT": "12", "UJOB_LIMIT": "7", "HJOB_LIMIT": "3"}),
    "killed": (20, {"PREEMPTION": "PREEMPTABLE[urgent]", "QJOB_LIMIT": "9", "TERMINATE_WHEN": "PREEMPT"}),
}
LIMITS = [
    {"NAME": "jobs", "PER_USER": "all", "JOBS": "8"},
    {"NAME": "running", "PER_USER": "all", "SLOTS": "6"},
    {"NAME": "some", "QUEUES": "killed", "HOSTS": "h0 h1", "SLOTS": "5"},
]
LIMIT_KEYS = ("QJOB_LIMIT", "UJOB_LIMIT", "HJOB_LIMIT", "PJOB_LIMIT")


def _config(**more: str) -> Config:
    return Config(
        node=tuple(NodeTable(name=f"h{at}", cpus=4, attributes={"JL/U": 3}) for at in range(4)),
        partition=tuple(
            PartitionTable(name=name, priority_tier=tier, attributes={**attributes, **more})
            for name, (tier, attributes) in QUEUES.items()
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={"lsf/queue": {"users": {"u1": {"MAX_JOBS": "7"}}, "limits": LIMITS}},
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 1.0}),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    instants = sorted(chance.choice((0, 0, chance.randrange(900))) for _ in range(120))
    return [
        JobSpec(
            id=str(at + 1),
            partitions=(chance.choice(tuple(QUEUES)),),
            user=chance.choice(("u1", "u2", "u3")),
            submit_at=float(instant),
            run_time=float(chance.randint(5, 300)),
            tasks=chance.choice((1, 1, 2, 3)),
        )
        for at, instant in enumerate(instants)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_who_is_passed_over_would_wait_for_that_reason(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is tried: nothing is taken or given back."""
    said: dict[str, str] = {}
    reasons = Counter[str]()
    in_vain, try_start = Requests.in_vain, Placer.try_start

    def noted(self: Requests, job: Job) -> None:
        reason = in_vain(self, job)
        if reason is not None:
            said[job.id] = reason

    def tried(self: Placer, question: Question) -> Outcome:
        job, version = question.job, self.ledger.version
        told = self.making_way.save()
        outcome = try_start(self, question)
        reason = said.pop(job.id, None)
        if reason is not None:
            assert outcome in (Outcome.BUSY, Outcome.LIMITED)
            assert (job.reason, self.ledger.version) == (reason, version)
            assert self.making_way.save() == told
            reasons[reason] += 1
        return outcome

    monkeypatch.setattr(Requests, "many", 2)
    monkeypatch.setattr(Requests, "in_vain", noted)
    monkeypatch.setattr(Placer, "try_start", tried)
    replay(_config(), _jobs(seed), (), Options(keep=False, after_step=lambda engine: None))
    assert sum(reasons.values()) > 100
    assert len(reasons) > 3
    assert any(reason.startswith("PEND_HOST") for reason in reasons)


def _steps(config: Config, jobs: list[JobSpec]) -> list[object]:
    """Return what each step leaves of every job."""
    found: list[object] = []

    def look(engine: Engine) -> None:
        there = engine.ledger.jobs.values()
        found.append([(job.id, job.state, job.reason, job.nodes, job.preemptions) for job in there])

    replay(config, jobs, (), Options(keep=False, after_step=look))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_decided_otherwise(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all are tried, each step leaves the same of every job."""
    monkeypatch.setattr(Requests, "many", 2)
    tries: list[str] = []
    try_start = Placer.try_start

    def tried(self: Placer, question: Question) -> Outcome:
        tries.append(question.job.id)
        return try_start(self, question)

    monkeypatch.setattr(Placer, "try_start", tried)

    short, few = _steps(_config(), _jobs(seed)), len(tries)
    monkeypatch.setattr(Requests, "in_vain", lambda self, job: None)
    same = _steps(_config(), _jobs(seed)) == short
    assert same
    assert few * 2 < len(tries) - few


@st.composite
def _sites(draw: st.DrawFn) -> Config:
    """Draw the site above with other limits, other hosts and other ways to make way."""
    some = st.integers(1, 10).map(str)
    queues = {
        name: (tier, attributes | draw(st.fixed_dictionaries({}, optional=dict.fromkeys(LIMIT_KEYS, some))))
        for name, (tier, attributes) in QUEUES.items()
    }
    listed = draw(st.lists(st.sampled_from(LIMITS), unique_by=lambda limit: limit["NAME"]))
    params = draw(st.sampled_from(({}, {"PREEMPT_FOR": "MINI_JOB"}, {"USE_SUSP_SLOTS": "N"})))
    own = {"users": {"default": {"MAX_JOBS": draw(some)}}, "limits": listed, "params": params}
    return attrs.evolve(
        _config(),
        node=tuple(
            NodeTable(name=f"h{at}", cpus=draw(st.integers(1, 6)), attributes={"JL/U": draw(some)})
            for at in range(draw(st.integers(1, 4)))
        ),
        partition=tuple(
            PartitionTable(name=name, priority_tier=tier, attributes=attributes)
            for name, (tier, attributes) in queues.items()
        ),
        policy=attrs.evolve(_config().policy, settings={"lsf/queue": own}),
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_sites(), st.integers(0, 50))
def test_nothing_is_decided_otherwise_anywhere(config: Config, seed: int) -> None:
    """The same, whatever is limited."""
    jobs = _jobs(seed)[:40]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Requests, "many", 2)
        short = _steps(config, jobs)
        patch.setattr(Requests, "in_vain", lambda self, job: None)
        same = _steps(config, jobs) == short
        assert same


@pytest.mark.parametrize(
    "more", [{"JOB_ACCEPT_INTERVAL": "1"}, {"NO_PREEMPT_INTERVAL": "2"}, {"DISPATCH_WINDOW": "8:00-20:00"}]
)
def test_where_time_counts_nothing_is_said(more: dict[str, str]) -> None:
    """Hosts, victims and windows become free by time alone."""

    def look(engine: Engine) -> None:
        assert vain.inadmissible(engine.ledger) is None

    replay(_config(**more), _jobs(0)[:3], (), Options(started=look, keep=False))


@pytest.mark.slow
def test_what_stops_a_suspended_job_is_what_limits_say() -> None:
    """In short as at length, for all active jobs: a limit that is taken up, or a host of theirs that is closed."""
    answers = Counter[bool]()

    def look(engine: Engine) -> None:
        ledger = engine.ledger
        site = site_of(ledger)
        counted = Counted.of(site, ledger, functools.partial(mode_of, site=site))
        for job in ledger.active:
            at_length = bool(list(judging.standing_in_the_way(site, counted, job)))
            assert (judging.stopper(counted, job) is not None) == at_length
            answers[at_length] += 1
        for job in ledger.pending:
            first = judging.first_limit(counted, job)
            said = [each for each in judging.verdicts(site, counted, job) if not each.fits]
            left = [each.limit for each in said if not judging.leaves_other_hosts(each.limit, job)]
            assert (None if first is None else first[0]) == (left[0] if left else None)

    replay(_config(), _jobs(3), (), Options(after_step=look, keep=False))
    assert min(answers[True], answers[False]) > 50


def test_closed_hosts_are_what_all_jobs_leave() -> None:
    """What is kept from one moment to the next is what looking at all comes to."""
    shut = set[int]()

    def look(engine: Engine) -> None:
        ledger = engine.ledger
        counted = Counted.of(site_of(ledger), ledger, functools.partial(mode_of, site=site_of(ledger)))
        for job in ledger.pending:
            for limit, key, bound in counted.brought().about(job):
                if not limit.per_host:
                    continue
                on = counted.counted_on_hosts(limit, key, job)
                closed = [
                    index
                    for index, most, wanted in judging.rows_of(counted, limit, job, bound)
                    if (on[index].total if index in on else 0.0) + wanted > most
                ]
                assert judging.closed_by(counted, limit, job) == bitmap.of(closed)
                shut.add(len(closed))

    replay(_config(), _jobs(3), (), Options(after_step=look, keep=False))
    assert len(shut) > 2

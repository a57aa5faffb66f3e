"""Hold the sums that are kept as jobs come and go to counting all active jobs one by one."""

from __future__ import annotations

import functools
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import Job, JobSpec, JobState, PreemptMode
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.view_without import ViewWithout
from makeway_lsf_queue import counting, judging
from makeway_lsf_queue.compiling import build_site, site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import limits_of
from makeway_lsf_queue.search import _Prober, _walk
from makeway_lsf_queue.settings import Settings
from makeway_lsf_queue.victims import mode_of

LIMITS = {
    "normal": {"QJOB_LIMIT": "9", "UJOB_LIMIT": "5", "HJOB_LIMIT": "3", "PJOB_LIMIT": "0.75"},
    "urgent": {"UJOB_LIMIT": "6"},
}
SETTINGS = {
    "users": {"u1": {"MAX_JOBS": "7", "JL/P": "1"}, "g": {"MAX_JOBS": "11"}, "default": {"MAX_JOBS": "8"}},
    "user_groups": {"g": ["u1", "u2"]},
    "limits": [
        {"NAME": "jobs", "PER_USER": "all", "JOBS": "4"},
        {"NAME": "some_hosts", "QUEUES": "normal", "HOSTS": "h0 h1", "SLOTS": "5"},
        {"NAME": "memory", "PER_QUEUE": "all", "PER_HOST": "all", "MEM": "5000"},
        {"NAME": "of_hosts", "HOSTS": "h2", "SLOTS": "3"},
    ],
}


def _config(*, collects: bool) -> Config:
    queues = {
        "urgent": (60, {"PREEMPTION": "PREEMPTIVE[normal]", **LIMITS["urgent"]}),
        "normal": (30, {"PREEMPTION": "PREEMPTABLE", **LIMITS["normal"]}),
        "idle": (10, {"BACKFILL": "Y"} if collects else {}),
    }
    if collects:
        queues["urgent"][1]["SLOT_RESERVE"] = "MAX_RESERVE_TIME[20]"
    return Config(
        node=tuple(
            NodeTable(name=f"h{at}", cpus=4, memory_mb=8000, attributes={"JL/U": 3}) for at in range(4)
        ),
        partition=tuple(
            PartitionTable(name=name, priority_tier=tier, attributes=attributes)
            for name, (tier, attributes) in queues.items()
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={"lsf/queue": SETTINGS},
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 1.0}),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    instants = sorted(chance.randrange(900) for _ in range(40))
    return [
        JobSpec(
            id=str(at + 1),
            partitions=(chance.choice(("urgent", "normal", "normal", "idle")),),
            user=chance.choice(("u1", "u2", "u3")),
            group=chance.choice((None, "g")),
            submit_at=float(instant),
            run_time=float(chance.randint(5, 300)),
            time_limit=float(chance.randint(300, 400)),
            tasks=chance.choice((1, 1, 2, 5)),
            memory_mb_per_cpu=chance.choice((None, 500, 1500)),
        )
        for at, instant in enumerate(instants)
    ]


class _Witness:
    """Asks after each step how much of each limit is taken, in both ways."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.compared = self.taken = self.suspended = self.without = self.closed = 0

    def __call__(self, engine: Engine) -> None:
        ledger = engine.ledger
        site = site_of(ledger)
        modes = functools.partial(mode_of, site=site)
        self._compare(Counted.of(site, ledger, modes), list(ledger.jobs.values()))
        active = list(ledger.active)
        gone = self._chance.sample(active, self._chance.randint(0, len(active)))
        if gone:
            view = ViewWithout(ledger, [(job, PreemptMode.REQUEUE) for job in gone])
            self._compare(Counted.of(site, view, modes), list(ledger.jobs.values()))  # type: ignore[arg-type]
            self.without += 1
            self._compare(Counted.of(site, ledger, modes), active)
        self._closed(Counted.of(site, ledger, modes))
        self.suspended += sum(job.state is JobState.SUSPENDED for job in active)

    def _closed(self, counted: Counted) -> None:
        """Look at each host anew that a limit per host may close."""
        for (limit, _), cell in counted.brought()._cells.items():
            levels = {
                index: running + stopped if limit.suspended else running
                for index, (running, stopped) in cell.on.items()
            }
            assert {
                (level, index) for level, hosts in cell.at.items() for index in bitmap.indices(hosts)
            } == {(level, index) for index, level in levels.items() if level}
            for closed in cell.closed.values():
                full = [
                    index
                    for index, (most, wanted) in closed.rows.by_host.items()
                    if levels.get(index, 0.0) + wanted > most
                ]
                assert closed.now(cell) == bitmap.of(full)
                self.closed += len(full)

    def _compare(self, counted: Counted, jobs: list[Job]) -> None:
        for job in jobs:
            for limit in limits_of(counted.site):
                key = limit.member(job)
                if key is None or limit.bound(key) is None:
                    continue
                one = counted.counted_one_by_one(limit, key, job)
                if not limit.per_host:
                    assert counted.used(limit, key, job) == one, limit.label
                on = counted.counted_on_hosts(limit, key, job) if limit.per_host else {}
                taken = counted.taken_on(limit, key, job) if limit.per_host else {}
                nothing = counting.Use()
                for index in {*on, *taken}:
                    there = on.get(index, nothing)
                    assert taken.get(index, 0.0) == there.total, limit.label
                    assert counted.used_at(limit, key, job, index) == there, limit.label
                self.compared += 1
                self.taken += bool(one.total)


@pytest.mark.parametrize("collects", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_what_counting_one_by_one_comes_to(seed: int, collects: bool) -> None:
    """For every job and limit, as things stand and with some jobs gone; with jobs that collect slots too."""
    witness = _Witness(seed)
    replay(_config(collects=collects), _jobs(seed), (), Options(after_step=witness))
    assert witness.compared > 1000
    assert witness.taken > 100
    assert witness.suspended or seed or collects  # in the first workload a job is preempted
    assert witness.without
    assert witness.closed > 100 or collects  # there, other ways are gone


def test_what_is_said_to_one_is_said_to_those_who_ask_alike() -> None:
    """And to no others: each answer is the one without a memory."""

    def look(engine: Engine) -> None:
        ledger = engine.ledger
        site = site_of(ledger)
        counted = Counted.of(site, ledger, functools.partial(mode_of, site=site))
        for job in ledger.pending:
            anew = attrs.evolve(counted, answers={})
            assert judging.blocked(site, counted, job) == judging._blocked(site, anew, job)
            assert judging.closed(site, counted, job) == judging._closed(anew, job)
            asked.append(job.id)

    asked: list[str] = []
    replay(_config(collects=False), _jobs(7), (), Options(after_step=look))
    assert len(asked) > 200


@pytest.mark.slow
def test_a_job_that_limits_keep_out_finds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though all candidates make way: that is asked before any job is taken off the books."""
    asked: list[bool] = []
    is_kept_out = _Prober.is_kept_out

    def noted(self: _Prober) -> bool:
        asked.append(is_kept_out(self))
        assert not asked[-1] or self.place(range(len(self.jobs))) is None
        return asked[-1]

    monkeypatch.setattr(_Prober, "is_kept_out", noted)
    for seed in range(4):
        replay(_config(collects=seed % 2 == 0), _jobs(seed), (), Options(keep=False))
    assert asked.count(True) > 50
    assert asked.count(False) > 5


def test_what_is_known_of_a_moment_does_not_outlive_it() -> None:
    """A version counts what came and went: with another one nothing is known, with the same one all is."""
    memo, site = counting._Memo(), cast(Any, object())
    known = cast(Any, SimpleNamespace(site=site, brought=lambda: SimpleNamespace(knows=lambda gone: True)))

    def view(version: int, *made_way: object) -> Any:
        return SimpleNamespace(version=version, made_way=made_way)

    now = view(1)
    assert memo.get(site, now) is None
    memo.keep(now, known)
    assert memo.get(site, now) is known
    assert memo.base(site, view(1, "somebody")) is known
    assert memo.base(site, view(2, "somebody")) is None


def test_a_site_belongs_to_its_cluster() -> None:
    """Two clusters under the same settings are two sites."""
    config = _config(collects=False)
    settings = structure(SETTINGS, Settings, "test")
    views = [
        cast(Any, SimpleNamespace(cluster=build_cluster(config), settings=lambda cls: settings))
        for _ in range(2)
    ]
    for view in (*views, *views):
        assert site_of(view).cluster is view.cluster
    assert site_of(views[1]) is site_of(views[1])


@pytest.mark.parametrize("only_gains", [False, True])
@pytest.mark.parametrize("many", range(1, 12))
def test_the_walk_ends_with_the_first_who_makes_room(many: int, only_gains: bool) -> None:
    """The shortest prefix with which the job fits, as found by asking for each in turn (5.2)."""
    for needed in range(many + 2):
        prober = cast(
            Any,
            SimpleNamespace(
                place=lambda taken, needed=needed: object() if len(taken) >= needed else None,
                only_gains=only_gains,
                is_kept_out=lambda: False,
            ),
        )
        costly = list(range(many))
        plain = next((costly[:n] for n in range(many + 1) if prober.place(costly[:n]) is not None), None)
        assert _walk(prober, [], costly) == plain


def test_jobs_of_which_nothing_is_known_beforehand() -> None:
    """A job that holds something counts by itself, and so does a job that comes while slots are kept."""
    running: Any = SimpleNamespace(allocation=object())
    waiting: Any = SimpleNamespace(allocation=None)
    nothing_kept: Any = SimpleNamespace(reserved={})
    kept: Any = SimpleNamespace(reserved={"1": 4})
    assert Counted.request(nothing_kept, running) is None
    assert Counted.request(kept, waiting) is None


def test_limits_of_the_same_members_share_a_counter() -> None:
    """Slots in all and host by host, of a user or a queue; not where suspended jobs count for one of them alone."""
    config = _config(collects=False)
    own: Any = config.policy.settings["lsf/queue"]
    limits = [
        *own["limits"],
        {"NAME": "each", "PER_USER": "all", "SLOTS": "30"},
        {"NAME": "each_here", "PER_USER": "all", "PER_HOST": "all", "JOBS": "30"},
        {"NAME": "some", "PER_USER": "all ~u3", "SLOTS": "30"},
        {"NAME": "there", "PER_USER": "all", "HOSTS": "h1", "SLOTS": "30"},
    ]
    settings = {"lsf/queue": {**own, "limits": limits}}
    site = build_site(build_cluster(config), structure(settings["lsf/queue"], Settings, "here"))
    sums = counting.new_sums(site, lambda job: PreemptMode.SUSPEND)
    cells: dict[str, Any] = {}
    for limit in limits_of(site):
        if limit.shared_by != ("queue", "urgent"):
            cells[limit.label] = sums.cell((limit, "u1"))

    def of(*words: str) -> Any:
        (found,) = (cell for label, cell in cells.items() if all(word in label for word in words))
        return found

    assert of("QJOB_LIMIT", "normal") is of("HJOB_LIMIT", "normal") is of("PJOB_LIMIT", "normal")
    assert of("QJOB_LIMIT", "normal") is not of("UJOB_LIMIT", "normal")
    assert of("UJOB_LIMIT", "normal") is not of("UJOB_LIMIT", "urgent")
    assert of("MAX_JOBS of a user") is of("SLOTS", "each ")
    assert of("MAX_JOBS of a user") is not of("JL/P")  # where suspended jobs count
    others = [of("JOBS", "limit jobs "), of("JOBS", "each_here"), of("SLOTS", "some "), of("SLOTS", "there")]
    assert len({id(each) for each in (*others, of("MAX_JOBS of a user"))}) == 5


def test_who_counts_otherwise_once_he_has_made_way() -> None:
    """None of those that are suspended already, where they would be again; of others each."""
    known = 0

    def look(engine: Engine) -> None:
        nonlocal known
        ledger = engine.ledger
        counted = Counted.of(site_of(ledger), ledger, functools.partial(mode_of, site=site_of(ledger)))
        sums = counted.brought()
        stopped = tuple(job for job in ledger.active if job.state is JobState.SUSPENDED)
        for jobs in (stopped, tuple(ledger.active), stopped[:1]):
            each = {job.id: mode_of(job, sums.site) is PreemptMode.SUSPEND for job in jobs}
            settled = {job.id for job in stopped if each.get(job.id)}
            said = sums.changed_by(jobs)
            assert said == {job_id: stops for job_id, stops in each.items() if job_id not in settled}
            known += said == {} and len(jobs) > 0

    for seed in range(5):
        replay(_config(collects=False), _jobs(seed), (), Options(after_step=look, keep=False))
    assert known > 50

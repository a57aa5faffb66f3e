"""Hold what is kept from one moment to the next to looking at everything anew, on sites drawn by chance.

Hosts that suspended jobs keep, and hosts of those that wait: each is worked out in full after each
step. Then whole runs: where none rests and all are tried, each step leaves the same of every job.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from random import Random
from typing import Any

import attrs
import pytest

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import ClusterView, GangOrder, GangVerb, JobSpec
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.schedulers import Schedulers
from makeway_engine.schedulers.requests import Requests
from makeway_lsf_queue import changes, gaps, judging
from makeway_lsf_queue import survey as survey_module
from makeway_lsf_queue.capacity import Hosts, lasting_on
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.jobs import hosts_of
from makeway_lsf_queue.presence import presence_of
from makeway_lsf_queue.resume import Arbiter
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import held_on, rearranged
from makeway_lsf_queue.survey import Room, Survey, survey_of
from makeway_lsf_queue.victims import mode_of

QUEUES = {"top": 80, "mid": 60, "low": 40, "idle": 20}
LINES = ("PREEMPTABLE", "PREEMPTIVE PREEMPTABLE", "PREEMPTIVE", "PREEMPTIVE[low+1 mid]", "")
LIMITS: tuple[dict[str, str], ...] = (
    {"PER_USER": "all", "SLOTS": "8"},
    {"QUEUES": "low", "JOBS": "6"},
    {"PER_USER": "all", "JOBS": "7"},
    {"PER_HOST": "all", "SLOTS": "4"},
    {"HOSTS": "h0 h1", "SLOTS": "5"},
    {"USERS": "g", "SLOTS": "9"},
    {"PER_USER": "all", "PER_HOST": "all", "SLOTS": "3"},
    {"PER_QUEUE": "all", "PER_HOST": "all", "SLOTS_PER_PROCESSOR": "0.8"},
)
OPTIONS: dict[str, Any] = {
    "resume_order": "first_suspended",
    "chain": False,
    "jobs_limit_on_resume": "running",
    "resume": "preemptor",
    "ssusp_closes_host": False,
    "take_back": False,
    "ties": "oldest",
}


def _queue(chance: Random, name: str, tier: int) -> PartitionTable:
    line = "PREEMPTIVE" if name == "top" else chance.choice(LINES)
    said = {"PREEMPTION": line} if line else {}
    for key, most in (("QJOB_LIMIT", 20), ("UJOB_LIMIT", 9), ("HJOB_LIMIT", 5), ("PJOB_LIMIT", 2)):
        if chance.random() < 0.4:
            said[key] = str(chance.randint(1, most))
    if chance.random() < 0.2:
        said["TERMINATE_WHEN"] = "PREEMPT"
    if chance.random() < 0.2:
        said["MAX_JOB_PREEMPT"] = str(chance.randint(1, 3))
    return PartitionTable(name=name, priority_tier=tier, attributes=said)


def _site(chance: Random) -> Config:
    words = [
        word for word in ("MINI_JOB", "LEAST_RUN_TIME", "GROUP_MAX", "HOST_JLU") if chance.random() < 0.4
    ]
    params = {"PREEMPT_FOR": " ".join(words)} if words else {}
    users = {"u1": {"MAX_JOBS": str(chance.randint(2, 9))}, "g": {"MAX_JOBS": str(chance.randint(4, 14))}}
    own: dict[str, Any] = {
        "params": params | ({"USE_SUSP_SLOTS": "N"} if chance.random() < 0.2 else {}),
        "user_groups": {"g": ["u1", "u2"]},
        "users": users if chance.random() < 0.5 else {},
        "limits": [{"NAME": f"l{at}", **each} for at, each in enumerate(LIMITS) if chance.random() < 0.25],
        **{name: value for name, value in OPTIONS.items() if chance.random() < 0.15},
    }
    return Config(
        node=tuple(
            NodeTable(name=f"h{at}", cpus=chance.randint(1, 8), attributes={"JL/U": chance.randint(2, 6)})
            for at in range(chance.randint(2, 8))
        ),
        partition=tuple(_queue(chance, name, tier) for name, tier in QUEUES.items()),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={"lsf/queue": own},
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 1.0}),
    )


def _jobs(chance: Random, count: int) -> list[JobSpec]:
    span = chance.choice((1, 600))
    return [
        JobSpec(
            id=str(at + 1),
            partitions=(chance.choice(tuple(QUEUES)),),
            user=chance.choice(("u1", "u2", "u3")),
            submit_at=instant,
            run_time=float(chance.randint(5, 300)),
            tasks=chance.choice((1, 1, 1, 2, 3, 6)),
        )
        for at, instant in enumerate(sorted(float(chance.randint(0, span)) for _ in range(count)))
    ]


def room_at_length(survey: Survey, below: Container[str]) -> Sequence[tuple[int, int]]:
    """Return the hosts where jobs could get cores, and how many, as `lasting_on` does, job by job."""
    busy: dict[int, int] = {}
    for name, running in survey.running.items():
        if name in below:
            continue
        for job in running:
            held = job.allocation
            if held is not None and held.cores is not None:
                for index, cores in zip(held.node_indices, held.cores, strict=True):
                    busy[index] = busy.get(index, 0) | cores
    left = ((node.index, node.cores - busy.get(node.index, 0).bit_count()) for node in survey.used.nodes)
    return [(index, free) for index, free in left if free]


def kept_at_length(site: Site, survey: Survey, view: ClusterView, mine: str) -> dict[int, int]:
    """Return what `gaps.kept_slots` comes to, job by job."""
    found: dict[int, int] = {}
    for job in survey.suspended:
        if not gaps.may_use(site, view, mine, job):
            for index in bitmap.indices(job.nodes):
                held = held_on(job, index, survey.used.nodes[index].cpus)
                found[index] = found.get(index, 0) + held
    return found


class _Witness:
    """Works out after each step what is kept."""

    def __init__(self) -> None:
        self.seen = Counter[str]()

    def __call__(self, engine: Engine) -> None:
        ledger = engine.ledger
        site, survey = site_of(ledger), survey_of(site_of(ledger), ledger)
        active = [job for job in ledger.active if job.state.value == "SUSPENDED"]
        assert survey.suspended == active
        assert dict(presence_of(ledger).active) == {job.id: job for job in ledger.active}
        assert survey.stopped_first == survey._first_hosts()
        for queue, below in site.targets.items():
            room = {index: free for index, free in lasting_on(survey, ledger, queue).items() if free}
            assert room == dict(room_at_length(survey, below))
            kept = gaps.kept_slots(site, survey, ledger, queue)
            assert kept == kept_at_length(site, survey, ledger, queue)
            assert bitmap.of(list(kept)) == gaps.slots_kept(site, survey, ledger, queue).hosts
            self.seen["slots kept"] += len(kept)
        self._hosts_of_the_waiting(site, engine)
        self._stopped_by_limits(site, engine)

    def _hosts_of_the_waiting(self, site: Site, engine: Engine) -> None:
        ledger = engine.ledger
        at_length: dict[str, NodeBits] = {}
        for job in ledger.pending:
            if not job.held and job.eligible_at <= ledger.now:
                at_length[job.partition.name] = at_length.get(job.partition.name, 0) | hosts_of(job)
        found: dict[str, NodeBits] = {}
        for name, hosts in presence_of(ledger).pending_hosts(ledger.now):
            found[name] = found.get(name, 0) | hosts
        assert found == at_length

    def _stopped_by_limits(self, site: Site, engine: Engine) -> None:
        """A job that a limit leaves asleep is kept from going on by one."""
        ledger = engine.ledger
        survey = survey_of(site, ledger)
        counted = Counted.of(site, ledger, functools.partial(mode_of, site=site))
        woken = counted.brought().woken
        for job in survey.stopped:
            if job.id in survey.held and job.id not in woken:
                assert judging.stopper(counted, job) is not None
                self.seen["held"] += 1


@pytest.mark.slow
def test_what_is_kept_is_what_looking_anew_comes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """On thirty sites, after each step."""
    monkeypatch.setattr(Requests, "many", 2)
    witness = _Witness()
    for seed in range(30):
        chance = Random(seed)
        replay(_site(chance), _jobs(chance, 50), (), Options(keep=False, after_step=witness))
    assert witness.seen["slots kept"] > 100
    assert witness.seen["held"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [False, True])
def test_hosts_stand_as_they_do_when_all_are_looked_at(
    forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of hosts is what looking at all of them says, also where changes were long unread."""
    if forgets:
        monkeypatch.setattr(changes, "_MOST", 2)
        monkeypatch.setattr(survey_module, "_MOST_STARTED", 1)
    seen = Counter[bool]()
    look = Hosts.look

    def compared(self: Hosts, survey: Survey, view: ClusterView) -> tuple[bool, bool, str]:
        found = look(self, survey, view)
        fresh = Hosts(self.site, self.queue, self.hosts, self.wanted, self.job, Room(), self.shutters)
        assert found == look(fresh, survey, view)
        seen[found[0]] += 1
        return found

    monkeypatch.setattr(Requests, "many", 2)
    monkeypatch.setattr(Hosts, "look", compared)
    for seed in range(40):
        chance = Random(7000 + seed)
        replay(_site(chance), _jobs(chance, 60), (), Options())
    assert min(seen[True], seen[False]) > 20


@pytest.mark.slow
def test_starts_wake_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of suspended jobs that all stay stopped, none goes on as long as nothing happens but that others start."""
    seen = Counter[bool]()
    sleeps_on = Arbiter._sleeps_on

    def compared(self: Arbiter, view: Any) -> bool:
        known = self._asleep_at == presence_of(view).given_back
        found = sleeps_on(self, view)
        if known and survey_of(self._site, view).stopped:
            assert found
            assert next(self._resuming(view), None) is None
        seen[known] += 1
        return found

    monkeypatch.setattr(Arbiter, "_sleeps_on", compared)
    for seed in range(20):
        chance = Random(9000 + seed)
        replay(_site(chance), _jobs(chance, 60), (), Options(keep=False))
    assert min(seen[True], seen[False]) > 500


def _steps(config: Config, jobs: list[JobSpec]) -> list[object]:
    found: list[object] = []

    def look(engine: Engine) -> None:
        for job in engine.ledger.jobs.values():
            held = job.allocation
            where = None if held is None else (held.node_indices, held.cpus, held.cores)
            found.append((engine.ledger.now, job.id, job.state, job.reason, where, job.preemptions))

    replay(config, jobs, (), Options(keep=False, after_step=look))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_decided_otherwise_where_every_job_is_tried(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step leaves the same of every job as trying one after the other, without any index."""
    chance = Random(1000 + seed)
    config, jobs = _site(chance), _jobs(chance, 60)
    monkeypatch.setattr(Requests, "many", 2)
    quick = _steps(config, jobs)
    monkeypatch.setattr(Schedulers, "_requests", lambda self: None)
    same = _steps(config, jobs) == quick
    assert same


def _one_after_the_other(arbiter: Arbiter, view: Any, *, first: bool = False) -> Iterator[GangOrder]:
    """Let those go on that can, with a look at each of the suspended jobs in turn."""
    site = arbiter._site
    survey = arbiter._survey(view)
    pending = arbiter._pending_hosts(view) if first else {}
    kept: NodeBits = 0
    for job in sorted(survey.stopped, key=arbiter._order):
        priority = site.queue_of(job).priority
        if any(job.nodes & hosts for above, hosts in pending.items() if above > priority):
            kept |= job.nodes  # nor do those behind it go on before it
        if job.nodes & kept or job.state.value != "SUSPENDED":
            continue
        if arbiter._waits_for_preemptor(job, view) or arbiter._stays_stopped(job, view, survey):
            continue
        stopped = arbiter._needed(job, view, survey)
        if stopped is None or arbiter._is_held_back(job, view):
            continue
        for other in stopped:
            yield GangOrder(verb=GangVerb.SUSPEND, job=other, because_of=job, why="it goes on")
        allocation, trades = rearranged(job, view)
        yield GangOrder(verb=GangVerb.RESUME, job=job, allocation=allocation, trades=trades, why="free")
        survey = arbiter._survey(view)


@pytest.mark.slow
def test_those_go_on_who_would_one_after_the_other() -> None:
    """Of thirty sites each step leaves the same of every job."""
    resumed = 0
    for seed in range(30):
        chance = Random(3000 + seed)
        config, jobs = _site(chance), _jobs(chance, 50)
        quick = _steps(config, jobs)
        resumed += sum(1 for each in quick if isinstance(each, tuple) and each[5])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Arbiter, "_resuming", _one_after_the_other)
            same = _steps(config, jobs) == quick
            assert same
    assert resumed > 100


def _end(config: Config, jobs: list[JobSpec]) -> list[Any]:
    """Return what a run without a record leaves: of each job what became of it, and why those wait that still do."""
    run = replay(config, jobs, (), Options())
    left = [(job.id, job.state, job.reason) for job in run.engine.ledger.jobs.values()]
    each = run.recorder.histories.values()
    return [
        run.ended_at,
        left,
        [(one.job.id, one.ended_at, one.preempted, repr(one.intervals)) for one in each],
    ]


def test_a_job_may_have_more_hosts_than_it_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not known to wait by the slots of those alone, whether or not it is heard why jobs wait."""
    monkeypatch.setattr(Requests, "many", 2)
    config = attrs.evolve(
        _site(Random(0)),
        node=(NodeTable(name="h0", cpus=2), NodeTable(name="h1", cpus=2)),
        partition=tuple(
            PartitionTable(name=name, priority_tier=tier, attributes={"PREEMPTION": line})
            for name, tier, line in (("top", 80, "PREEMPTIVE"), ("low", 40, "PREEMPTABLE"))
        ),
    )
    settings = {"lsf/queue": {"users": {"u1": {"MAX_JOBS": "4"}}}}
    config = attrs.evolve(config, policy=attrs.evolve(config.policy, settings=settings))
    jobs = [
        JobSpec(id="0", partitions=("low",), user="u1", submit_at=0.0, run_time=60.0, tasks=2),
        JobSpec(
            id="1",
            partitions=("top",),
            user="u1",
            submit_at=1.0,
            run_time=60.0,
            tasks=3,
            required_nodes=("h0",),
        ),
    ]
    quick = _end(config, jobs)
    for step in (None, lambda engine: None):
        run = replay(config, jobs, (), Options(after_step=step, sink=(lambda line: None) if step else None))
        each = run.recorder.histories.values()
        assert [(one.job.id, one.ended_at, one.preempted, repr(one.intervals)) for one in each] == quick[2]
    history = run.recorder.histories["1"]
    assert [interval[1] for interval in history.intervals if interval[0].value == "RUNNING"] == [1.0]

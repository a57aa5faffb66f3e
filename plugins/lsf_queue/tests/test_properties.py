"""What holds for all sites and workloads: the relation, slots and limits, minimal victims, same input same record.

What is allowed is worked out here once more from the rules, not asked of the plugin; `test_mutants` shows that each
property notices a plugin that is broken.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Candidates,
    Choice,
    ClusterView,
    Job,
    JobSpec,
    JobState,
    Placement,
    PreemptMode,
)
from makeway_lsf_queue import plugin
from makeway_lsf_queue.search import search
from makeway_testing import TableRun, replay_table

QUEUES = ("top", "mid", "low", "idle")
Targets = dict[str, int] | None
"""Queue -> its preference number, 0: none; None: all lower ones."""
LINES: dict[str, tuple[Targets | bool, tuple[str, ...] | bool]] = {
    "": (False, False),
    "PREEMPTIVE": (None, False),
    "PREEMPTABLE": (False, True),
    "PREEMPTIVE PREEMPTABLE": (None, True),
    "PREEMPTIVE[low+1 mid]": ({"low": 1, "mid": 0}, False),
    "PREEMPTIVE[idle low+2] PREEMPTABLE[top]": ({"idle": 0, "low": 2}, ("top",)),
}
"""PREEMPTION line -> whose jobs the queue may take (False: none), and which take its own (True: all higher ones)."""
ACTIONS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"MAX_JOB_PREEMPT": "1"},
    {"TERMINATE_WHEN": "PREEMPT"},
    {"JOB_CONTROLS": "SUSPEND[brequeue $LSB_JOBID]", "MAX_JOB_PREEMPT": "3"},
)
PREEMPT_FOR = ("", "MINI_JOB", "OPTIMAL_MINI_JOB", "LEAST_RUN_TIME", "MINI_JOB GROUP_MAX")


@st.composite
def sites(draw: st.DrawFn, minimal: bool = False) -> Config:
    """Draw a site of one to three hosts and four queues."""
    slots = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    words = PREEMPT_FOR[1:3] if minimal else PREEMPT_FOR
    chosen = draw(st.sampled_from(words))
    params = {"PREEMPT_FOR": chosen} if chosen else {}
    if draw(st.booleans()):
        params["NO_PREEMPT_RUN_TIME"] = str(draw(st.integers(1, 20)))
    own: dict[str, Any] = {"params": params}
    if not minimal and draw(st.booleans()):
        own["users"] = {"u1": {"MAX_JOBS": str(draw(st.integers(1, 3)))}, "g": {"MAX_JOBS": "4"}}
        own["user_groups"] = {"g": ["u1", "u2"]}
    partitions = []
    for name in QUEUES:
        attributes: dict[str, str] = dict(draw(st.sampled_from(ACTIONS)))
        numbered = [each for each in LINES if "+" in each and name == "top"]
        line = draw(st.sampled_from([*LINES, *2 * numbered]))
        if line:
            attributes["PREEMPTION"] = line
        tier = draw(st.integers(20 if name == "top" else 1, 60))
        partitions.append(PartitionTable(name=name, priority_tier=tier, attributes=attributes))
    return Config(
        node=tuple(NodeTable(name=f"h{at}", cpus=count) for at, count in enumerate(slots)),
        partition=tuple(partitions),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={"lsf/queue": own},
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"requeue_delay": 1.0}),
    )


@st.composite
def workloads(draw: st.DrawFn) -> list[JobSpec]:
    """Draw up to twelve jobs."""
    count = draw(st.integers(2, 12))
    instants = sorted(draw(st.lists(st.integers(0, 1800), min_size=count, max_size=count)))
    return [
        JobSpec(
            id=str(at + 1),
            partitions=(draw(st.sampled_from(QUEUES)),),
            user=draw(st.sampled_from(("u1", "u2", "u3"))),
            submit_at=float(instant),
            run_time=float(draw(st.integers(1, 1800))),
            tasks=draw(st.integers(1, 5)),
        )
        for at, instant in enumerate(instants)
    ]


@st.composite
def contended(draw: st.DrawFn) -> list[JobSpec]:
    """Draw wide jobs that fill the hosts, then narrow ones that stop some of them, then others that look for room."""
    jobs: list[JobSpec] = []

    def add(queues: Sequence[str], least: int, most: int, run_time: float) -> None:
        at = float(10 * len(jobs))
        job = JobSpec(
            id=str(len(jobs) + 1),
            partitions=(draw(st.sampled_from(queues)),),
            user=draw(st.sampled_from(("u1", "u2", "u3"))),
            submit_at=at,
            run_time=run_time,
            tasks=draw(st.integers(least, most)),
        )
        jobs.append(job)

    for _ in range(draw(st.integers(1, 5))):
        add(QUEUES[1:], 1, 4, 2000.0)
    for _ in range(draw(st.integers(1, 2))):
        add(QUEUES[:3], 1, 7, draw(st.sampled_from((15.0, 1500.0))))
    for _ in range(draw(st.integers(2, 5))):
        add(QUEUES, 1, 4, float(draw(st.integers(10, 900))))
    return jobs


def run(config: Config, jobs: Sequence[JobSpec], **more: Any) -> TableRun:
    """Replay with all invariants checked."""
    return replay_table(list(jobs), config=config, **more)


class Relation:
    """Which may preempt which, and with which preference, by section 2.2."""

    def __init__(self, config: Config) -> None:
        self.priority = {part.name: part.priority_tier for part in config.partition}
        self.lines = {part.name: LINES[part.attributes.get("PREEMPTION", "")] for part in config.partition}

    def may(self, queue: str, other: str) -> bool:
        """Lower, and of a list of either, or of both without lists; a list of the victim keeps all others out."""
        if self.priority[queue] <= self.priority[other]:
            return False
        targets, by = self.lines[queue][0], self.lines[other][1]
        if isinstance(by, tuple):
            return queue in by
        return by or (targets is not False and (targets is None or other in self._numbers(queue)))

    def related(self, queue: str, other: str) -> bool:
        """Either may preempt the other."""
        return self.may(queue, other) or self.may(other, queue)

    def _numbers(self, queue: str) -> dict[str, int]:
        targets = self.lines[queue][0]
        return targets if isinstance(targets, dict) else {}

    def has_numbers(self, queue: str) -> bool:
        """Whether any target has a preference number."""
        return any(self._numbers(queue).values())

    def rank(self, queue: str, other: str) -> int:
        """The larger a preference, the smaller; 0 for all if there is no number (3.2)."""
        return -self._numbers(queue).get(other, 0)


def params(config: Config) -> dict[str, str]:
    """Return what lsb.params says."""
    said: dict[str, str] = config.policy.settings["lsf/queue"]["params"]
    return said


Held = tuple[Job, JobState, float, float, dict[int, int]]


def held(found: TableRun) -> list[Held]:
    """Return each stretch of time for which a job held slots: job, state, from, to, host -> slots."""
    return [
        (history.job, state, start, end, dict(zip(kept.node_indices, kept.cpus or (), strict=True)))
        for history in found.run.recorder.histories.values()
        for state, start, end, kept, _ in history.intervals
        if kept is not None and state in (JobState.RUNNING, JobState.SUSPENDED)
    ]


def starts(stretches: Sequence[Held]) -> list[Held]:
    """Return those that begin with a start, not with going on, be it at the instant at which it was stopped."""
    resumed = {(job.id, end) for job, _, _, end, _ in stretches}
    return [
        each for each in stretches if each[1] is JobState.RUNNING and (each[0].id, each[2]) not in resumed
    ]


def arrivals(found: TableRun) -> Iterator[tuple[Held, list[Held]]]:
    """Yield each start, and what held slots when it came about.

    By the order of the record: within one instant a job is stopped, another started, and the first may go on.
    """
    stretches = held(found)
    there: dict[str, Held] = {}
    for line in found.lines:
        if line.kind != "state" or line.job is None:
            continue
        name, before = line.data["state"], there.get(line.job)
        if name not in (JobState.RUNNING.name, JobState.SUSPENDED.name):
            there.pop(line.job, None)
        elif before is not None:
            there[line.job] = (before[0], JobState[name], *before[2:])
        else:
            # A job that is stopped at the instant at which it started holds the same as it did; of one that
            # ends at that very instant no stretch is kept.
            start = next((one for one in stretches if one[0].id == line.job and one[2] == line.at), None)
            if start is None:
                continue
            yield start, list(there.values())
            there[line.job] = (start[0], JobState[name], *start[2:])


FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@FEW
@given(sites(), contended())
def test_the_relation(config: Config, jobs: list[JobSpec]) -> None:
    """No job is preempted for a queue that has no right to it (2.2); the slots are an invariant of every run."""
    found = run(config, jobs)
    relation = Relation(config)
    queue_of = {spec.id: spec.partitions[0] for spec in jobs}
    for entry in found.run.recorder.preemptions:
        assert entry.preemptor is not None
        assert relation.may(queue_of[entry.preemptor], queue_of[entry.victim])


@pytest.mark.slow
@FEW
@given(sites(), workloads())
def test_same_input_same_record(config: Config, jobs: list[JobSpec]) -> None:
    """Byte for byte."""
    assert run(config, jobs).record == run(config, jobs).record


@pytest.mark.slow
@FEW
@given(sites(), contended())
def test_no_job_slips_into_a_gap(config: Config, jobs: list[JobSpec]) -> None:
    """A job that starts leaves the slots of suspended jobs of unrelated queues alone, by count (5.3)."""
    found = run(config, jobs)
    relation, nodes = Relation(config), found.run.recorder.cluster.nodes
    for (job, _, at, _, slots), there in arrivals(found):
        for index, count in slots.items():
            running = sum(h.get(index, 0) for _, s, _, _, h in there if s is JobState.RUNNING)
            kept = sum(
                h.get(index, 0)
                for other, s, _, _, h in there
                if s is JobState.SUSPENDED and not _may_use(relation, there, job, other)
            )
            if kept:
                assert running + kept + count <= nodes[index].cpus, (job.id, at)


def _may_use(relation: Relation, there: Sequence[Held], job: Job, stopped: Job) -> bool:
    """Whether `job` may use the slots of `stopped`: by a relation, or through one that stands on them (12 no. 3)."""
    mine, name = job.partition.name, stopped.partition.name
    between = {
        other.partition.name for other, _, _, _, _ in there if other.nodes & stopped.nodes or not other.nodes
    }
    return relation.related(mine, name) or any(
        relation.may(mine, each) and relation.may(each, name) for each in between
    )


@pytest.mark.slow
@FEW
@given(sites(), contended())
def test_limits_hold(config: Config, jobs: list[JobSpec]) -> None:
    """A user's running jobs never exceed MAX_JOBS; a start keeps to a group's, suspended jobs included or not (5.1)."""
    own = config.policy.settings["lsf/queue"]
    if "users" not in own:
        return
    relation = Relation(config)
    on = any(relation.may(queue, other) for queue, other in itertools.permutations(QUEUES, 2))
    group_runs_only = on and "GROUP_MAX" in params(config).get("PREEMPT_FOR", "")
    stretches = held(run(config, jobs))
    for job, _, at, _, _ in starts(stretches):
        there = [each for each in stretches if each[2] <= at < each[3]]
        running = [each for each in there if each[1] is JobState.RUNNING]
        mine = [each for each in (running if on else there) if each[0].user == "u1"]
        if job.user == "u1":
            assert _slots(mine) <= int(own["users"]["u1"]["MAX_JOBS"]), (job.id, at)
        group = [each for each in (running if group_runs_only else there) if each[0].user in ("u1", "u2")]
        if job.user in ("u1", "u2"):
            assert _slots(group) <= 4, (job.id, at)


def _slots(stretches: Sequence[Held]) -> int:
    return sum(sum(slots.values()) for *_, slots in stretches)


@pytest.mark.slow
@FEW
@given(sites(), contended())
def test_protections_hold(config: Config, jobs: list[JobSpec]) -> None:
    """No victim has run as long as NO_PREEMPT_RUN_TIME, or was preempted as often as MAX_JOB_PREEMPT (4.3)."""
    found = run(config, jobs)
    minutes = params(config).get("NO_PREEMPT_RUN_TIME")
    most = {part.name: part.attributes.get("MAX_JOB_PREEMPT") for part in config.partition}
    begun = {(job.id, at) for job, _, at, _, _ in starts(held(found))}
    for entry in found.run.recorder.preemptions:
        ran, times = 0.0, 0
        for job, state, start, end, _ in sorted(held(found), key=lambda each: each[2]):
            if job.id != entry.victim or state is not JobState.RUNNING or start >= entry.at:
                continue
            ran, times = (0.0, 0) if (job.id, start) in begun else (ran, times)
            ran += min(end, entry.at) - start
            times += end < entry.at
        limit = most[found.history(entry.victim).job.partition.name]
        assert minutes is None or ran < 60.0 * int(minutes) + 1e-6, entry.victim
        assert limit is None or times < int(limit), entry.victim


def watched(note: Callable[[Attempt, Candidates, Choice, float], None]) -> types.ModuleType:
    """Return the plugin with a search that shows each choice."""
    module = types.ModuleType("watched")
    module.__dict__.update(vars(plugin))

    @hookimpl
    def makeway_search(
        attempt: Attempt, candidates: Candidates, view: ClusterView, now: float
    ) -> Choice | None:
        choice = search(attempt, candidates, view)
        if choice is not None:
            note(attempt, candidates, choice, now)
        return choice

    module.makeway_search = makeway_search  # type: ignore[attr-defined]  # it is made here
    return module


def fits(attempt: Attempt, candidates: Candidates, taken: Iterable[int]) -> bool:
    """Whether the job fits once these have made way."""
    trial = attempt.fresh()
    for at in taken:
        trial.remove(candidates.jobs[at], candidates.modes[at])
    return isinstance(trial.probe(), Placement)


def split(candidates: Candidates, choice: Choice) -> tuple[list[int], list[int]]:
    """Return the victims that were suspended already, and those that were not."""
    running = [at for at in choice.victims if candidates.jobs[at].state is JobState.RUNNING]
    return [at for at in choice.victims if at not in running], running


def _needless(attempt: Attempt, candidates: Candidates, choice: Choice, now: float) -> None:
    del now
    for spared in split(candidates, choice)[1]:
        taken = [at for at in choice.victims if at != spared]
        assert not fits(attempt, candidates, taken), (attempt.job.id, candidates.jobs[spared].id)


@pytest.mark.slow
@FEW
@given(sites(minimal=True), contended())
def test_mini_job_takes_no_job_needlessly(config: Config, jobs: list[JobSpec]) -> None:
    """Put any single victim back, and the job no longer fits (3.4)."""
    run(config, jobs, plugins={"lsf/queue": watched(_needless)})


@pytest.mark.slow
@FEW
@given(sites(), contended())
def test_one_slot_victims_are_never_needless(config: Config, jobs: list[JobSpec]) -> None:
    """Over-preemption is for parallel jobs only (3.4), whatever PREEMPT_FOR says."""
    single = [attrs.evolve(job, tasks=1) for job in jobs]
    run(config, single, plugins={"lsf/queue": watched(_needless)})


@pytest.mark.slow
@FEW
@given(sites(minimal=True), contended())
def test_optimal_mini_job_takes_the_fewest(config: Config, jobs: list[JobSpec]) -> None:
    """No smaller set of candidates would do (3.4); up to four victims are searched exactly."""
    params(config)["PREEMPT_FOR"] = "OPTIMAL_MINI_JOB"

    def fewest(attempt: Attempt, candidates: Candidates, choice: Choice, now: float) -> None:
        del now
        stopped = [at for at, job in enumerate(candidates.jobs) if job.state is not JobState.RUNNING]
        costly = [at for at, job in enumerate(candidates.jobs) if job.state is JobState.RUNNING]
        if attempt.job.spec.cpus == 1:
            return
        for size in range(len(split(candidates, choice)[1])):
            for fewer in itertools.combinations(costly, size):
                assert not fits(attempt, candidates, (*stopped, *fewer)), attempt.job.id

    run(config, jobs, plugins={"lsf/queue": watched(fewest)})


@pytest.mark.slow
@FEW
@given(sites(), contended())
def test_the_order_of_victims(config: Config, jobs: list[JobSpec]) -> None:
    """With LEAST_RUN_TIME: preference numbers first, larger ones before; without any the shortest run (3.2, 3.3)."""
    relation = Relation(config)
    params(config)["PREEMPT_FOR"] = "LEAST_RUN_TIME"

    def ordered(attempt: Attempt, candidates: Candidates, choice: Choice, now: float) -> None:
        del choice
        mine = attempt.job.partition.name
        keys = []
        for job in candidates.jobs:
            if job.state is JobState.RUNNING:
                ran = now - job.started_at - job.stopped if job.started_at is not None else 0.0
                keys.append((relation.rank(mine, job.partition.name), ran))
        if not relation.has_numbers(mine):  # else the queue's priority comes before the run time (row 6)
            assert [ran for _, ran in keys] == sorted(ran for _, ran in keys)
        assert [rank for rank, _ in keys] == sorted(rank for rank, _ in keys)

    run(config, jobs, plugins={"lsf/queue": watched(ordered)})


@pytest.mark.parametrize("select", ["select/linear", "select/cons_tres"])
def test_works_with_both_selectors(select: str) -> None:
    """One slot per host is the same to both."""
    config = Config(
        node=(NodeTable(name="h[1-2]", cpus=1),),
        partition=(
            PartitionTable(name="high", priority_tier=80, attributes={"PREEMPTION": "PREEMPTIVE"}),
            PartitionTable(name="low", priority_tier=20),
        ),
        policy=PolicyTable(
            select=select,
            select_parameters=("CR_Core",) if select == "select/cons_tres" else (),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
        ),
        scheduler=SchedulerTable(type="greedy"),
    )
    jobs = [
        JobSpec(id="1", partitions=("low",), run_time=100, tasks=1),
        JobSpec(id="2", partitions=("low",), run_time=100, tasks=1, submit_at=1),
        JobSpec(id="3", partitions=("high",), run_time=50, tasks=2, submit_at=10),
    ]
    found = run(config, jobs)
    assert sorted(found.victims) == ["1", "2"]
    assert [entry.mode for entry in found.run.recorder.preemptions] == [PreemptMode.SUSPEND] * 2
    assert found.starts("3") == (10.0,)
    assert found.run.recorder.histories["2"].ended_at == 151.0

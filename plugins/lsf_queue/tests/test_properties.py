"""What holds for all sites and workloads: minimal victims, the relation, slots, same input same record."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import makeway_lsf_queue
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
from makeway.testing import TableRun, replay_table
from makeway_lsf_queue.compiling import build_site
from makeway_lsf_queue.search import search
from makeway_lsf_queue.settings import Settings
from makeway_lsf_queue.site import Site

QUEUES = ("top", "mid", "low", "idle")
LINES = (
    "",
    "PREEMPTIVE",
    "PREEMPTABLE",
    "PREEMPTIVE PREEMPTABLE",
    "PREEMPTIVE[low+1 mid]",
    "PREEMPTIVE[idle low+2] PREEMPTABLE[top]",
)
ACTIONS: tuple[dict[str, str], ...] = (
    {},
    {},
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
        line = draw(st.sampled_from(LINES))
        if line:
            attributes["PREEMPTION"] = line
        tier = draw(st.integers(1, 60))
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


def run(config: Config, jobs: Sequence[JobSpec], **more: Any) -> TableRun:
    """Replay with all invariants checked."""
    return replay_table(list(jobs), config=config, **more)


FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(sites(), workloads())
def test_the_relation_and_the_slots(config: Config, jobs: list[JobSpec]) -> None:
    """Nobody is preempted from a queue that has no right to it; running jobs never hold more slots than there are."""
    found = run(config, jobs)
    site = build_site(found.run.recorder.cluster, Settings())
    queue_of = {spec.id: spec.partitions[0] for spec in jobs}
    for entry in found.run.recorder.preemptions:
        assert entry.preemptor is not None
        assert site.may_preempt(queue_of[entry.preemptor], queue_of[entry.victim])


@FEW
@given(sites(), workloads())
def test_same_input_same_record(config: Config, jobs: list[JobSpec]) -> None:
    """Byte for byte."""
    assert run(config, jobs).record == run(config, jobs).record


@FEW
@given(sites(), workloads())
def test_nobody_slips_into_a_gap(config: Config, jobs: list[JobSpec]) -> None:
    """A job that starts leaves the slots of suspended jobs of unrelated queues alone, by count (5.3)."""
    found = run(config, jobs)
    site = build_site(found.run.recorder.cluster, Settings())
    nodes = found.run.recorder.cluster.nodes
    held = [
        (history.job, state, start, end, dict(zip(kept.node_indices, kept.cpus or (), strict=True)))
        for history in found.run.recorder.histories.values()
        for state, start, end, kept, _ in history.intervals
        if kept is not None and state in (JobState.RUNNING, JobState.SUSPENDED)
    ]
    begun = {(job.id, start) for job, state, start, _, _ in held if state is JobState.RUNNING}
    resumed = {(job.id, end) for job, state, _, end, _ in held if state is JobState.SUSPENDED}
    for job, state, at, _, slots in held:
        if state is not JobState.RUNNING or (job.id, at) not in begun - resumed:
            continue
        there = [each for each in held if each[2] < at < each[3] and each[0] is not job]
        for index, count in slots.items():
            running = sum(h.get(index, 0) for _, s, _, _, h in there if s is JobState.RUNNING)
            kept = sum(
                h.get(index, 0)
                for other, s, _, _, h in there
                if s is JobState.SUSPENDED and not _is_related(site, there, job, other)
            )
            if kept:
                assert running + kept + count <= nodes[index].cpus, (job.id, at)


def _is_related(site: Site, there: list[Any], job: Job, stopped: Job) -> bool:
    """Whether `job` may use the slots of `stopped`: by a relation, or through one that stands on them."""
    mine, name = job.partition.name, stopped.partition.name
    between = [other.partition.name for other, *_ in there if other.nodes & stopped.nodes or not other.nodes]
    return site.related(mine, name) or any(
        site.may_preempt(mine, each) and site.may_preempt(each, name) for each in between
    )


def _watched(needless: list[str]) -> types.ModuleType:
    """Return the plugin with a search that notes victims that were not needed."""
    module = types.ModuleType("watched")
    module.__dict__.update(vars(makeway_lsf_queue))

    @hookimpl
    def makeway_search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | None:
        choice = search(attempt, candidates, view)
        if choice is not None:
            for spared in choice.victims:
                if candidates.jobs[spared].state.value != "RUNNING":
                    continue
                trial = attempt.fresh()
                for at in choice.victims:
                    if at != spared:
                        trial.remove(candidates.jobs[at], candidates.modes[at])
                if isinstance(trial.probe(), Placement):
                    needless.append(f"{attempt.job.id} took {candidates.jobs[spared].id}")
        return choice

    module.makeway_search = makeway_search  # type: ignore[attr-defined]  # it is made here
    return module


@FEW
@given(sites(minimal=True), workloads())
def test_mini_job_takes_nobody_needlessly(config: Config, jobs: list[JobSpec]) -> None:
    """Put any single victim back, and the job no longer fits (3.4)."""
    needless: list[str] = []
    run(config, jobs, plugins={"lsf/queue": _watched(needless)})
    assert not needless


@FEW
@given(sites(), workloads())
def test_one_slot_victims_are_never_needless(config: Config, jobs: list[JobSpec]) -> None:
    """Over-preemption is for parallel jobs only (3.4), whatever PREEMPT_FOR says."""
    needless: list[str] = []
    single = [attrs.evolve(job, tasks=1) for job in jobs]
    run(config, single, plugins={"lsf/queue": _watched(needless)})
    assert not needless


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

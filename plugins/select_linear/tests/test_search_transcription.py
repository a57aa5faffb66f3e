"""The fast victim search takes the same victims as a plain transcription of slurm-preemption 5.1.3."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import Candidates, Job, JobSpec, Placement, PreemptMode
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.best_fit import best_fit
from makeway_select_linear.search import two_passes


def transcribed(
    attempt: LinearAttempt, jobs: Sequence[Job], modes: Sequence[PreemptMode]
) -> list[Job] | None:
    """Return the victims, step by step as slurm-preemption 5.1.3 has it; None if there is no way."""
    order = list(jobs)
    mode_of = dict(zip(map(id, jobs), modes, strict=True))
    for round_ in (1, 2):
        running: dict[int, list[Job]] = {}
        for job in attempt.view.active:
            for node in bitmap.indices(job.nodes):
                running.setdefault(node, []).append(job)
        gains = {id(job): 0 for job in order}
        for at, victim in enumerate(order):
            assert mode_of[id(victim)] in (PreemptMode.REQUEUE, PreemptMode.SUSPEND, PreemptMode.CANCEL)
            for node in bitmap.indices(victim.nodes):
                running[node].remove(victim)
            usable = [
                node
                for node in bitmap.indices(attempt.nodes & ~attempt.job.excluded)
                if len(running.get(node, [])) <= attempt.request.limit - 1
                and all(o.allocation is not None and o.allocation.shared for o in running.get(node, []))
            ]
            gains[id(victim)] = sum(1 for node in bitmap.indices(victim.nodes) if node in usable)
            if len(usable) < attempt.request.min_nodes:
                continue
            cpus, uniform = attempt.selector.cpus, attempt.selector.uniform
            chosen = best_fit(bitmap.of(usable), attempt.request, cpus, uniform)
            if chosen is None:
                continue
            if round_ == 1 and len(order) > 1:
                gains[id(victim)] = 9999
                for later in order[at + 1 :]:
                    gains[id(later)] = 0
                order.sort(key=lambda job: -gains[id(job)])
                break
            return [job for job in order if job.nodes & chosen and gains[id(job)]]
        else:
            return None
    return None


@st.composite
def situations(draw: st.DrawFn) -> tuple[Engine, Job, int]:
    """Draw a loaded cluster and a preemptor that does not fit; nodes may be shared."""
    size = draw(st.integers(2, 9))
    sharing = draw(st.sampled_from(["NO", "FORCE:1", "FORCE:2", "FORCE:3"]))
    config = Config(
        node=(NodeTable(name=f"n[1-{size}]", cpus=draw(st.integers(1, 3))),),
        partition=(
            PartitionTable(name="low", default=True, oversubscribe=sharing),
            PartitionTable(name="mid", priority_tier=2, oversubscribe=draw(st.sampled_from(["NO", sharing]))),
            PartitionTable(
                name="high", priority_tier=3, oversubscribe=draw(st.sampled_from(["NO", sharing]))
            ),
        ),
        policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("requeue",)),
        scheduler=SchedulerTable(type="builtin"),
    )
    run = Engine(config, Recorder(build_cluster(config)), Policies(config))
    for at in range(draw(st.integers(1, 12))):
        nodes = draw(st.integers(1, size))
        spec = JobSpec(
            id=str(at),
            partitions=(draw(st.sampled_from(["low", "low", "mid"])),),
            min_nodes=nodes,
            max_nodes=nodes,
        )
        run.step(float(at), [Submitted(spec)])
    wanted = draw(st.integers(1, size))
    return run, pending_job(run, wanted), wanted


def pending_job(run: Engine, wanted: int) -> Job:
    """Enter a job of the highest tier without letting a pass see it."""
    run.submit(JobSpec(id="P", partitions=("high",), min_nodes=wanted, max_nodes=wanted))
    return run.ledger.jobs["P"]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(situations())
def test_same_victims_as_the_transcription(situation: tuple[Engine, Job, int]) -> None:
    """Victims and their order agree on random clusters, shared nodes included."""
    run, job, _ = situation
    ledger = run.ledger
    candidates: Candidates = run.placer.order.candidates(job)
    nodes = run.placer.prober.nodes_with(job, ledger.all_nodes, candidates.jobs)
    attempt = run.selector.attempt(job, nodes, ledger)
    assert isinstance(attempt, LinearAttempt)
    if isinstance(attempt.probe(), Placement) or not candidates.jobs:
        return
    assert attempt.only_counts()
    fast = two_passes(attempt, candidates)
    slow = transcribed(attempt, candidates.jobs, candidates.modes)
    found = None if fast is None else [candidates.jobs[at].id for at in fast.victims]
    assert found == (None if slow is None else [victim.id for victim in slow])

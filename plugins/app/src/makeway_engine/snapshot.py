"""Hand the state of a run over: the jobs, and what each part of the engine and each plugin remembers."""

from __future__ import annotations

from typing import Any

from makeway.model import (
    Job,
)
from makeway.state import Standing, State, job_now, nodes_to_text
from makeway_engine.parts import Parts


def save(engine: Parts, *, jobs: bool = True) -> State:
    """Return the state of a run.

    :param jobs: False: only the instant, the nodes and the memory, for those that keep the jobs themselves.
    """
    ledger = engine.ledger
    cluster = ledger.cluster
    return State(
        at=ledger.now,
        cluster=cluster.name,
        down_nodes=nodes_to_text(cluster, ledger.all_nodes & ~ledger.up),
        jobs=tuple(job_of(engine, job) for job in sorted(ledger.jobs.values(), key=index_of)) if jobs else (),
        memory={
            "config": fingerprint(engine),
            "engine": engine_memory(engine),
            **plugins_memory(engine),
        },
    )


def job_of(engine: Parts, job: Job) -> Standing:
    """Return one live job as a state shows it."""
    ledger = engine.ledger
    history = engine.recorder.histories.get(job.id)
    left = ledger.left_early(job)
    return job_now(
        job,
        ledger.cluster,
        first_start_at=history.first_start if history is not None else None,
        left_nodes=nodes_to_text(ledger.cluster, left) if left else "",
        **engine.transitions.departure_of(job),
    )


def engine_memory(engine: Parts) -> dict[str, Any]:
    """Return what the engine's own parts hand over, in values that JSON has."""
    found = {name: part.save() for name, part in parts_of(engine).items()}
    if engine.deeds is not None:
        found["deeds"] = engine.deeds.save(engine.ledger.cluster)
    if reported := engine.reports.save():
        found["reports"] = reported
    if used := engine.in_use.plain():
        found["in_use"] = used
    return {**found, "queue": engine.queue.save(), "engine": engine.memory()}


def plugins_memory(engine: Parts) -> dict[str, Any]:
    """Return what selector, arbiter and policies hand over, in values that JSON has.

    :raises PolicyError: one hands over something else.
    """
    policies = engine.policies
    found: dict[str, Any] = {}
    for name, hook, part in (
        ("selector", "makeway_selector", engine.selector),
        ("gang", "makeway_gang", engine.gang),
        ("priorities", "makeway_priority", engine.transitions.priorities.prioritizer),
    ):
        if part is not None:
            call = getattr(part, "save", None)
            memory = call() if call is not None else {}
            found[name] = {"plugin": policies.who(hook), "memory": memory}
    if remembered := policies.save(engine.ledger):
        found["policies"] = remembered
    return found


def fingerprint(engine: Parts) -> str:
    """Return a short text that differs where the engine's own memory would not fit."""
    import hashlib

    config = engine.config
    tables = (config.cluster, config.node, config.partition, config.qos, config.policy, config.scheduler)
    said = "\n".join(map(repr, (*tables, engine.clockwork)))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def parts_of(engine: Parts) -> dict[str, Any]:
    """Return the parts of an engine that remember something, without the queue."""
    found = {
        "ledger": engine.ledger,
        "transitions": engine.transitions,
        "making_way": engine.making_way,
        "placing": engine.placer,
        "passes": engine.schedulers,
        "easy": engine.schedulers.easy,
    }
    backfill = engine.schedulers.backfill
    return found if backfill is None else {**found, "backfill": backfill}


def index_of(job: Job) -> int:
    """Return the place of a job in the job table."""
    return job.index

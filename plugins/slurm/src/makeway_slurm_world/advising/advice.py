"""Let a policy make one pass over a state, and tell what it would do.

The pass is an engine's own, in a simulated world that ends with the instant: what would follow from it later, such as
a victim that starts again, is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from makeway import vendors
from makeway.config import Config, build_cluster
from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec, JobState, PreemptMode, Seconds
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.shapes import Shapes
from makeway.state import State
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine

AFTERWARDS: Seconds = 86400.0
"""Requeue delay of the pass: a victim does not start again in it."""
_TRIES = 5
_JOB = re.compile(r"jobs\[([0-9]+)\]")


@attrs.frozen(kw_only=True)
class Start:
    """A job that would start."""

    job: str
    nodes: str
    partition: str


@attrs.frozen(kw_only=True)
class Displacement:
    """A job that would make way."""

    job: str
    mode: str
    """requeue, suspend, cancel or checkpoint."""
    preemptor: str
    why: str
    core_hours: float = 0.0
    """Work that it would lose: a requeue or a cancel throws away what it did since its start."""


@attrs.frozen(kw_only=True)
class Advice:
    """What a policy would do now."""

    starts: tuple[Start, ...] = ()
    displaced: tuple[Displacement, ...] = ()
    waits: Mapping[str, str] = attrs.field(factory=dict)
    """Job that waits -> why, in the field's words."""
    refused: Mapping[str, str] = attrs.field(factory=dict)
    """Job that could never run under the policy -> why."""
    left_out: tuple[str, ...] = ()
    """Jobs that could not be taken over, a sentence each."""

    @property
    def core_hours(self) -> float:
        """Work that would be lost in all; none of it, if these jobs were saved before they leave."""
        return sum(each.core_hours for each in self.displaced)

    def of(self, job: str) -> Advice:
        """Return what concerns one job."""
        return attrs.evolve(
            self,
            starts=tuple(each for each in self.starts if each.job == job),
            displaced=tuple(each for each in self.displaced if job in (each.job, each.preemptor)),
            waits={key: why for key, why in self.waits.items() if key == job},
            refused={key: why for key, why in self.refused.items() if key == job},
        )


def advise(config: Config, state: State, new: Sequence[JobSpec] = ()) -> Advice:
    """Let the policy of `config` make one pass over `state`.

    :param new: jobs that are submitted now.
    :raises PluginError, PolicyError: the policy cannot be had, or fails.
    :raises ConfigError: no job of the state can be taken over.
    """
    state, left_out, before = _adoptable(config, state)
    still = attrs.evolve(
        config,
        scheduler=attrs.evolve(
            config.scheduler,
            rules=vendors.without_defects(config.scheduler.rules),
            clockwork={"preset": "ideal", "requeue_delay": AFTERWARDS},
        ),
        world=attrs.evolve(config.world, name="world/simulated", state=None, settings={}),
        job=(),
        action=(),
    )
    starts: list[Start] = []
    displaced: list[Displacement] = []
    refused: dict[str, str] = {}

    def heard(line: Line) -> None:
        data = line.data
        if line.kind == "preempt":
            mode = str(data.get("mode", ""))
            displaced.append(
                Displacement(
                    job=line.job,
                    mode=mode,
                    preemptor=str(data.get("preemptor") or ""),
                    why=str(data.get("why", "")),
                    core_hours=_lost_by(before, line.job, PreemptMode(mode)),
                )
            )
        elif line.kind == "rejected":
            refused[line.job] = str(data.get("reason", ""))
        elif line.kind == "state" and data.get("state") == JobState.RUNNING.value and line.job in waiting:
            starts.append(Start(job=line.job, nodes=str(data.get("nodes", "")), partition=""))

    waiting = {job.spec.id for job in state.jobs if job.state is JobState.PENDING} | {spec.id for spec in new}

    run = replay(still, new, (), Options(begin=state, until=state.at, sink=heard))
    found = {job.id: job for job in run.engine.ledger.jobs.values()}
    return Advice(
        starts=tuple(
            attrs.evolve(each, partition=found[each.job].partition.name) if each.job in found else each
            for each in starts
        ),
        displaced=tuple(displaced),
        waits={
            job_id: job.reason
            for job_id, job in found.items()
            if job_id in waiting and job.state is JobState.PENDING
        },
        refused=refused,
        left_out=left_out,
    )


def _lost_by(before: Engine, job_id: str, mode: PreemptMode) -> float:
    """Return the core-hours that a job would lose; none, if it came but now."""
    job = before.ledger.jobs.get(job_id)
    if job is None:
        return 0.0
    seconds = job.cost(mode, before.ledger.now)
    return seconds * Shapes(before.ledger.cluster.nodes).cores_of(job) / 3600


def _adoptable(config: Config, state: State) -> tuple[State, tuple[str, ...], Engine]:
    """Return a state without the jobs that the configuration cannot have, which these are, and an engine that has it.

    :raises ConfigError: it is not a matter of single jobs.
    """
    left_out: list[str] = []
    for _ in range(_TRIES):
        try:
            engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
            engine.adopt(state, "slurmctld")
        except ConfigError as error:
            bad = dict(filter(None, (_blamed(problem.where, problem.message) for problem in error.problems)))
            if not bad:
                raise
            left_out += [
                f"job {state.jobs[at].spec.id} is left out: {why}" for at, why in sorted(bad.items())
            ]
            kept = tuple(job for at, job in enumerate(state.jobs) if at not in bad)
            state = attrs.evolve(state, jobs=kept)
            continue
        return state, tuple(left_out), engine
    problem = Problem("jobs", f"too many cannot be taken over, such as: {left_out[0]}")
    raise ConfigError("slurmctld", [problem])


def _blamed(where: str, message: str) -> tuple[int, str] | None:
    match = _JOB.match(where)
    return (int(match[1]), f"{where[match.end() :].lstrip('.')}: {message}") if match else None

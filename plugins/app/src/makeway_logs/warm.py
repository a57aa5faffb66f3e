"""Begin a replay with the jobs that ran when the log begins (``workload.warm``).

A log that accounting wrote for a span of time holds whatever ended in it or later. So from the first end on, it holds
every job that ran or waited: that instant is second 0 of a warm replay. A reader that knows better says so
(`makeway.readers.api.Workload.begin`). Jobs that ran then are adopted: on the nodes that the log names, else where the
selector places them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway import licences
from makeway.clockwork import Clockwork
from makeway.config import Config, build_cluster
from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist
from makeway.model import Allocation, Job, JobSpec, JobState, Placement, Seconds
from makeway.obstacle import counted
from makeway.readers.api import Workload
from makeway.readers.mapping import line_of
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.state import Standing, State, held_of
from makeway_app.replay import answerable
from makeway_engine.engine import Engine
from makeway_engine.ledger import put

_START = "at the start"


def warm_start(
    workload: Workload,
    config: Config,
    plugins: Mapping[str, Any] | None = None,
    clockwork: Clockwork | None = None,
) -> State:
    """Return the state in which a warm replay of `workload` begins, and leave in `workload` what comes later.

    Rows of jobs that ran and cannot be placed are rejected. All instants count from the beginning of the replay.

    :param plugins: plugins by name that need no installation.
    :raises ConfigError: the log does not say when its jobs started.
    """
    early, begin, later = _split(workload)
    workload.jobs = (_shifted(spec, begin) for spec in later)
    if workload.start_wall is not None:
        workload.start_wall += begin
    over, running, waiting = _sorted(workload, early, begin)
    policies = Policies(config, plugins or {})
    with answerable(policies):
        rehearsal = _Rehearsal(config, policies, clockwork)
    standing: list[Standing] = []
    for spec, start in sorted(running, key=lambda each: ("nodes" not in each[0].attributes, each[1])):
        try:
            with answerable(policies):
                partition, allocation = rehearsal.place(spec)
        except _NoPlaceError as error:
            workload.reject(line_of(spec), f"it ran {_START}: {error}", spec.id)
            continue
        standing.append(
            Standing(
                spec=_shifted(spec, begin),
                state=JobState.RUNNING,
                partition=partition,
                started_at=start - begin,
                allocation=held_of(rehearsal.cluster, allocation),
            )
        )
    waits = [Standing(spec=_shifted(spec, begin)) for spec in waiting]
    order = {spec.id: at for at, spec in enumerate(early)}
    jobs = sorted((*standing, *waits), key=lambda each: order[each.spec.id])
    workload.notes.append(
        f"the replay begins {begin:,.0f} s after the first submission: {counted(len(standing), 'job')} ran then, "
        f"{len(waits):,} waited, {over:,} had ended"
    )
    return State(wall=workload.start_wall, jobs=tuple(jobs))


# --------------------------------------------------------------------------------- the log
def _split(workload: Workload) -> tuple[list[JobSpec], Seconds, Iterator[JobSpec]]:
    """Return the jobs submitted before the beginning, the beginning, and the other jobs."""
    first = math.inf if workload.begin is None else workload.begin
    early: list[JobSpec] = []
    later: Iterator[JobSpec] = iter(())
    told = False
    for spec in workload.jobs:
        if spec.submit_at >= first:
            later = itertools.chain([spec], workload.jobs)
            break
        start = _start_of(spec)
        told |= start is not None
        if workload.begin is None and start is not None:
            first = min(first, start + (spec.run_time or 0.0))
        early.append(spec)
    if early and not told:
        text = f"got true, but {workload.name} does not say when its jobs started; allowed: false, or a log that does"
        raise ConfigError("workload.warm", [Problem("", text)])
    if not math.isfinite(first):
        first = 0.0
    split = next((at for at, spec in enumerate(early) if spec.submit_at >= first), len(early))
    return early[:split], first, itertools.chain(early[split:], later)


def _start_of(spec: JobSpec) -> Seconds | None:
    """Return when a job really started; None: the log does not say, or it never did."""
    wait = spec.attributes.get("wait")
    return None if wait is None or spec.withdrawn_at is not None else spec.submit_at + float(wait)


def _sorted(
    workload: Workload, early: Iterable[JobSpec], begin: Seconds
) -> tuple[int, list[tuple[JobSpec, Seconds]], list[JobSpec]]:
    """Return how many jobs were over, those that ran with their starts, and those that waited."""
    over = 0
    running: list[tuple[JobSpec, Seconds]] = []
    waiting: list[JobSpec] = []
    for spec in early:
        start = _start_of(spec)
        if start is None and spec.run_time:
            text = f"submitted before the start, and the log does not say whether it ran {_START}"
            workload.reject(line_of(spec), text, spec.id, usual=True)
        elif spec.withdrawn_at is not None and spec.withdrawn_at <= begin:
            over += 1
        elif start is None or start >= begin:
            waiting.append(spec)
        elif start + (spec.run_time or 0.0) <= begin:
            over += 1
        else:
            running.append((spec, start))
    return over, running, waiting


def _shifted(spec: JobSpec, begin: Seconds) -> JobSpec:
    """Return a job on the clock of the replay."""
    begin_at = None if spec.begin_at is None else spec.begin_at - begin
    withdrawn_at = None if spec.withdrawn_at is None else spec.withdrawn_at - begin
    return attrs.evolve(spec, submit_at=spec.submit_at - begin, begin_at=begin_at, withdrawn_at=withdrawn_at)


# ----------------------------------------------------------------------------------- places
class _NoPlaceError(Exception):
    """A job has no place at the start; the text says why."""


class _Rehearsal:
    """An engine of its own in which the running jobs are placed one by one."""

    def __init__(self, config: Config, policies: Policies, clockwork: Clockwork | None) -> None:
        self.cluster = build_cluster(config)
        self._engine = Engine(config, Recorder(self.cluster), policies, clockwork)
        self._count = 0

    def place(self, spec: JobSpec) -> tuple[str, Allocation]:
        """Give a job its nodes; return its partition and what it holds.

        :raises _NoPlaceError: says why there is none.
        """
        engine = self._engine
        names = _nodes_of(spec)
        self._count += 1
        draft, problem = engine.submission.draft(_pinned(spec, names), self._count)
        if problem:
            raise _NoPlaceError(problem)
        job = engine.ledger.enter(draft)
        reason = ""
        for partition in job.partitions:
            put(job, partition=partition)
            found = self._probe(job)
            if isinstance(found, Placement):
                engine.ledger.start(job, found.allocation)
                engine.selector.placed(job)
                return partition.name, found.allocation
            reason = reason or found
        holders = self._holders(job)
        engine.ledger.forget(job)
        where = f"no room on {spec.attributes['nodes']}" if names else "no room is left for it"
        raise _NoPlaceError(f"{where} {holders or f'({reason})'}")

    def _probe(self, job: Job) -> Placement | str:
        engine = self._engine
        lacking = licences.lacking(job, engine.ledger) if job.spec.licenses else None
        if lacking is not None:
            return lacking.detail or lacking.reason
        nodes = engine.placer.prober.nodes_for(job, job.required or engine.ledger.all_nodes)
        found = engine.placer.prober.look(engine.selector.attempt(job, nodes, engine.ledger))
        return found if isinstance(found, Placement) else found.detail or found.reason

    def _holders(self, job: Job) -> str:
        """Return what holds the nodes that a job had, for a message; empty: nothing."""
        held = [
            other.id
            for other in self._engine.ledger.active
            if other.allocation is not None and other.allocation.nodes & job.required
        ]
        return f"beside {_listed(held)}, which ran there as well" if held else ""


def _listed(ids: Sequence[str]) -> str:
    noun = "job" if len(ids) == 1 else "jobs"
    return f"{noun} {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''}"


def _nodes_of(spec: JobSpec) -> tuple[str, ...]:
    """Return the nodes that the log names; empty: none.

    :raises _NoPlaceError: they cannot be read.
    """
    try:
        return tuple(expand_hostlist(str(spec.attributes.get("nodes", ""))))
    except ValueError as error:
        raise _NoPlaceError(f"its nodes cannot be read: {error}") from None


def _pinned(spec: JobSpec, names: Sequence[str]) -> JobSpec:
    """Return a job that fits only where it ran."""
    if not names:
        return spec
    return attrs.evolve(spec, required_nodes=tuple(names), min_nodes=len(names), max_nodes=len(names))

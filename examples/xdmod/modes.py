"""Turn the log into workloads that test more or less of it, and replay them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
from recorded import Log, Loss, Recorded, kind_of

from makeway.config import Config, build_cluster
from makeway.model import JobSpec, Seconds
from makeway.registry import load, names_in
from makeway.replay import Options, Run, replay


@attrs.frozen(kw_only=True)
class Assumptions:
    """What the log does not tell and has to be assumed."""

    longer: Seconds | None = None
    """How much longer the preempted jobs would have run; None: up to their time limit."""
    constrained: bool = True
    """Whether jobs keep to the sizes of nodes that jobs like them ran on."""
    warm_at: Seconds = 0.0
    """Instant at which a warm start begins."""


@attrs.frozen(kw_only=True)
class Outcome:
    """Who had to make way, and when jobs started."""

    losses: Sequence[Loss]
    expected: Sequence[Loss]
    """What really happened, as far as the mode can know of it."""
    starts: Mapping[str, Seconds] = attrs.field(factory=dict)
    """First start by job id, on the log's clock; empty: single decisions, nothing started."""


Mode = Callable[[Log, Config, Assumptions], Outcome]


# ------------------------------------------------------------------------------------- the modes
def free(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Let every job of the log come when it was submitted, and start anywhere."""
    return _outcome(log, replay(config, free_jobs(log, assumed)), 0.0)


def warm(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Begin at an instant with the jobs that ran then, on their nodes; the others come as in `free`."""
    begin = assumed.warm_at
    specs = [_carried_over(job, begin, assumed) for job in log.running(begin)]
    specs += [_shifted(_free(job, log, assumed), begin) for job in log.started if job.start >= begin]
    return _outcome(log, replay(config, specs), begin)


def pinned(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Let every job start when and where it did, so that only what stands in its way is to be decided."""
    return _outcome(log, replay(_greedy(config), pinned_jobs(log, assumed)), 0.0)


def submitted(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Pin all jobs to their nodes, but let those that may preempt come when they were submitted."""
    return _outcome(log, replay(_greedy(config), submitted_jobs(log, assumed)), 0.0)


def single(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Take each decision by itself, from the state that the machine really was in.

    One is due whenever a job that may preempt came, and whenever one was preempted. Asked are all jobs that
    came and had not started; of a job that is named more than once, the first time counts.
    """
    asking = [job for job in log.started if not job.scavenger]
    instants = {job.eligible for job in asking} | {loss.at for loss in log.losses}
    decisions = _Decisions(log, config, assumed)
    found: dict[str, Loss] = {}
    for at in sorted(instants):
        waiting = [job for job in asking if job.eligible == at or job.eligible < at < job.start]
        for loss in decisions.at(at, waiting):
            found.setdefault(loss.job.id, loss)
    return Outcome(losses=list(found.values()), expected=log.losses)


def prompt(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Ask for each job that could preempt and really started at once, from the state when it came.

    Nothing unknown kept these jobs waiting. Expected are the losses that such a job followed on the node.
    """
    decisions = _Decisions(log, config, assumed)
    found: dict[str, Loss] = {}
    for job in log.prompt:
        for loss in decisions.at(job.eligible, [job]):
            found.setdefault(loss.job.id, loss)
    expected = [loss for loss in log.losses if log.prompt_successor(loss.job) is not None]
    return Outcome(losses=list(found.values()), expected=expected)


MODES: Mapping[str, Mode] = {mode.__name__: mode for mode in (free, warm, pinned, submitted, single, prompt)}


# --------------------------------------------------------------------------------------- their jobs
def free_jobs(log: Log, assumed: Assumptions) -> list[JobSpec]:
    """Return the jobs of `free`."""
    return [_free(job, log, assumed) for job in log.started]


def pinned_jobs(log: Log, assumed: Assumptions) -> list[JobSpec]:
    """Return the jobs of `pinned`."""
    return [_pinned(job, job.start, assumed) for job in log.started]


def submitted_jobs(log: Log, assumed: Assumptions) -> list[JobSpec]:
    """Return the jobs of `submitted`."""
    return [_pinned(job, job.start if job.scavenger else job.eligible, assumed) for job in log.started]


WORKLOADS = {"free": free_jobs, "pinned": pinned_jobs, "submitted": submitted_jobs}
"""Modes whose jobs make a workload by themselves."""


def _free(job: Recorded, log: Log, assumed: Assumptions) -> JobSpec:
    excluded = log.shunned[kind_of(job)] if assumed.constrained else ()
    return attrs.evolve(job.spec, run_time=_run_time(job, assumed), excluded_nodes=excluded)


def _pinned(job: Recorded, start: Seconds, assumed: Assumptions) -> JobSpec:
    return attrs.evolve(
        job.spec,
        run_time=_run_time(job, assumed),
        time_limit=None,
        begin_at=start,
        required_nodes=job.nodes,
        min_nodes=len(job.nodes),
        max_nodes=len(job.nodes),
    )


def _carried_over(job: Recorded, begin: Seconds, assumed: Assumptions) -> JobSpec:
    ran = begin - job.start
    limit = job.spec.time_limit
    return attrs.evolve(
        _pinned(job, begin, assumed),
        submit_at=0.0,
        begin_at=None,
        run_time=_run_time(job, assumed) - ran,
        time_limit=limit - ran if limit is not None else None,
    )


def _shifted(spec: JobSpec, begin: Seconds) -> JobSpec:
    """Put `spec` on a clock that starts at `begin`, after those that run then."""
    starts_at = max(1.0, spec.submit_at - begin)
    begin_at = max(starts_at, spec.begin_at - begin) if spec.begin_at is not None else None
    return attrs.evolve(spec, submit_at=starts_at, begin_at=begin_at)


def _run_time(job: Recorded, assumed: Assumptions) -> Seconds:
    ran = job.spec.run_time or 0.0
    if not job.preempted:
        return ran
    if assumed.longer is not None:
        return ran + assumed.longer
    return max(ran, job.spec.time_limit or ran)


def _greedy(config: Config) -> Config:
    """Let no job wait for another, and nothing take time: the log has decided order and delays."""
    table = attrs.evolve(config.scheduler, type="greedy", clockwork="ideal")
    return attrs.evolve(config, scheduler=table)


# ----------------------------------------------------------------------------------- what came of it
class _Decisions:
    """Decisions of one configuration, each taken from the state that the machine really was in."""

    def __init__(self, log: Log, config: Config, assumed: Assumptions) -> None:
        self._log = log
        self._config = _greedy(config)
        self._cluster = build_cluster(config)
        self._plugins = {name: load(name) for name in names_in(config)}
        self._running = {
            job.id: attrs.evolve(_pinned(job, job.start, assumed), run_time=None) for job in log.started
        }
        self._free = {job.id: _free(job, log, assumed) for job in log.started}

    def at(self, instant: Seconds, waiting: Iterable[Recorded]) -> Sequence[Loss]:
        """Return whom the policy has make way at an instant, if `waiting` wait then."""
        running = [self._running[job.id] for job in self._log.running(instant)]
        asking = [attrs.evolve(self._free[job.id], submit_at=instant, begin_at=None) for job in waiting]
        options = Options(until=instant, plugins=self._plugins)
        run = replay(self._config, [*running, *asking], options=options, cluster=self._cluster)
        return _losses(self._log, run, 0.0)


def _outcome(log: Log, run: Run, begin: Seconds) -> Outcome:
    histories = run.recorder.histories.items()
    starts = {key: each.first_start + begin for key, each in histories if each.first_start is not None}
    return Outcome(losses=_losses(log, run, begin), expected=log.losses, starts=starts)


def _losses(log: Log, run: Run, begin: Seconds) -> Sequence[Loss]:
    return [
        Loss(
            job=log.by_id[entry.victim],
            at=entry.at + begin,
            nodes=_nodes_at(run, entry.victim, entry.at),
            preemptor=log.by_id[entry.preemptor].partition if entry.preemptor is not None else None,
        )
        for entry in run.recorder.preemptions
    ]


def _nodes_at(run: Run, job_id: str, at: Seconds) -> frozenset[str]:
    """Return the nodes of a job that is told to make way at an instant."""
    recorder = run.recorder
    history = recorder.histories[job_id]
    spans = [(start, end, held) for state, start, end, held, _ in history.intervals if state.active]
    spans.append((history.since, at, history.allocation))
    held = next(held for start, end, held in spans if start <= at <= end and held is not None)
    return frozenset(recorder.cluster.nodes[index].name for index in held.node_indices)

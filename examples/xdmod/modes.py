"""Turn the log into workloads that test more or less of it, and replay them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
from recorded import Log, Loss, Recorded, kind_of

from makeway.config import Config, build_cluster
from makeway.model import JobSpec, Seconds
from makeway_app.replay import Options, Run, replay


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
    """Which jobs had to make way, and when jobs started."""

    losses: Sequence[Loss]
    starts: Mapping[str, Seconds]
    """First start by job id, on the log's clock; empty: nothing was left to decide."""
    not_placed: int = 0
    """Jobs that never started."""


Mode = Callable[[Log, Config, Assumptions], Outcome]


# ------------------------------------------------------------------------------------- the modes
def free(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Let every job of the log come when it was submitted, and start anywhere."""
    specs = [_free(job, log, assumed) for job in log.started]
    return _outcome(log, replay(config, specs), 0.0)


def warm(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Begin at an instant with the jobs that ran then, on their nodes; the others come as in `free`."""
    begin = assumed.warm_at
    running = [job for job in log.started if job.runs_at(begin)]
    later = [job for job in log.started if job.start >= begin]
    specs = [_carried_over(job, begin, assumed) for job in running]
    specs += [_shifted(_free(job, log, assumed), begin) for job in later]
    return _outcome(log, replay(config, specs), begin)


def pinned(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Let every job start when and where it did, so that only what stands in its way is to be decided."""
    specs = [_pinned(job, job.start, assumed) for job in log.started]
    return _outcome(log, replay(_greedy(config), specs), 0.0)


def submitted(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Pin all jobs to their nodes, but let those that may preempt come when they were submitted."""
    specs = [_pinned(job, job.start if job.scavenger else job.eligible, assumed) for job in log.started]
    return _outcome(log, replay(_greedy(config), specs), 0.0)


def single(log: Log, config: Config, assumed: Assumptions) -> Outcome:
    """Take each decision by itself, from the state that the machine really was in.

    One is due whenever a job that may preempt came, and whenever one was preempted. Asked are all such jobs
    that came and did not start before; the earliest instant counts for a job that is named more than once.
    """
    found: dict[str, Loss] = {}
    asking = [job for job in log.started if not job.scavenger]
    instants = {job.eligible for job in asking} | {loss.at for loss in log.losses}
    config = _greedy(config)
    for at in sorted(instants):
        waiting = [job for job in asking if job.eligible <= at < job.start or job.eligible == at]
        if waiting:
            for loss in _decide(log, config, assumed, waiting, at):
                found.setdefault(loss.job.id, loss)
    return Outcome(losses=list(found.values()), starts={})


MODES: Mapping[str, Mode] = {mode.__name__: mode for mode in (free, warm, pinned, submitted, single)}


# --------------------------------------------------------------------------------------- their jobs
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
    """Let no job wait for another: order was decided when the log was written."""
    return attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, type="greedy"))


# ----------------------------------------------------------------------------------- what came of it
def _decide(
    log: Log, config: Config, assumed: Assumptions, waiting: Iterable[Recorded], at: Seconds
) -> Sequence[Loss]:
    """Return which jobs the policy has make way at `at`, if `waiting` wait then."""
    running = [_forever(job) for job in log.started if job.runs_at(at)]
    asking = [attrs.evolve(_free(job, log, assumed), submit_at=at, begin_at=None) for job in waiting]
    run = replay(config, [*running, *asking], options=Options(until=at), cluster=None)
    return _losses(log, run, 0.0)


def _forever(job: Recorded) -> JobSpec:
    return attrs.evolve(_pinned(job, job.start, Assumptions()), run_time=None)


def _outcome(log: Log, run: Run, begin: Seconds) -> Outcome:
    histories = run.recorder.histories
    starts = {
        key: each.first_start + begin for key, each in histories.items() if each.first_start is not None
    }
    return Outcome(losses=_losses(log, run, begin), starts=starts, not_placed=len(histories) - len(starts))


def _losses(log: Log, run: Run, begin: Seconds) -> Sequence[Loss]:
    return [
        Loss(
            job=log.by_id[entry.victim],
            at=entry.at + begin,
            preemptor=log.by_id[entry.preemptor].partition if entry.preemptor is not None else None,
        )
        for entry in run.recorder.preemptions
    ]


__all__ = ["MODES", "Assumptions", "Outcome", "build_cluster"]

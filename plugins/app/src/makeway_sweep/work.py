"""Run variants side by side: on the cores of this computer, or on a Dask cluster.

Jobs are parsed once per way of reading them and shared: forked workers inherit them, a Dask cluster gets them once.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import build_cluster
from makeway.errors import ConfigError, MakewayError, Problem
from makeway.metrics import Metrics
from makeway.model import JobSpec, Seconds
from makeway_app.archive import About, JsonArchive
from makeway_app.cli.loose import load_files
from makeway_app.cli.processes import side_by_side
from makeway_app.readers.commands import commands_of
from makeway_app.readers.outages import outages_of
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_sweep.plan import Variant


@attrs.frozen(kw_only=True)
class Shared:
    """A workload that was read, for all runs that read it alike."""

    name: str
    jobs: tuple[JobSpec, ...]
    epoch: float | None
    unusable: int


@attrs.frozen(kw_only=True)
class Task:
    """What all runs of a sweep have in common."""

    until: Seconds | None = None
    files: Mapping[str, Path] = attrs.field(factory=dict)
    """Plugins in loose files, by name."""
    records: bool = False
    """Whether records are wanted beside the figures."""
    by_job: bool = False
    """Whether it is wanted what became of each job."""
    longest: float = math.inf
    """Seconds that a run may take; one that takes longer is given up."""
    by: float = math.inf
    """When all that still runs is given up, by `time.monotonic`; on a Dask cluster by how long that is from now."""


@attrs.frozen(kw_only=True)
class ByJob:
    """What became of each job of a run, by its id."""

    waits: Mapping[str, Seconds]
    """Of the jobs that started: from submission to the first start."""
    preempted: Mapping[str, int]
    """How often each of those had to make way that had to at all."""
    losses: Sequence[tuple[str, Seconds, int]]
    """Each time that work was thrown away: the job, its seconds of running, its CPUs."""

    @classmethod
    def of(cls, metrics: Metrics) -> ByJob:
        """Return it from the metrics of a run that kept it."""
        return cls(waits=metrics.wait_of or {}, preempted=metrics.preemptions_of, losses=metrics.losses or ())


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of one run."""

    identity: str
    metrics: Mapping[str, Any] | None = None
    """None: it failed."""
    never: int = 0
    """Jobs that can never run."""
    record: bytes | None = None
    by_job: ByJob | None = None
    """None: it was not wanted."""
    error: str = ""
    given_up: bool = False
    """Whether it failed since it took too long."""


def keep_jobs(engine: Engine) -> None:
    """Let a run that begins keep what becomes of each job."""
    engine.recorder.metrics.wait_of = {}
    engine.recorder.metrics.losses = []


class _GivenUpError(Exception):
    """A run took too long."""


def _in_time(task: Task) -> Callable[[Engine], None] | None:
    """Return what ends a run that takes too long; None: it may take as long as it wants."""
    ends = min(time.monotonic() + task.longest, task.by)
    if ends == math.inf:
        return None

    def look(engine: Engine) -> None:
        if time.monotonic() > ends:
            raise _GivenUpError

    return look


# ---------------------------------------------------------------------------------------- a run
def run(variant: Variant, label: str, shared: Shared, task: Task) -> Outcome:
    """Replay one variant; whatever goes wrong is told in the outcome, for errors may not travel."""
    try:
        return _run(variant, label, shared, task)
    except MakewayError as error:
        return Outcome(identity=variant.identity, error=str(error))
    except _GivenUpError:
        return Outcome(identity=variant.identity, error="it took too long", given_up=True)
    except Exception as error:
        text = f"internal error, please report it: {type(error).__name__}: {error}"
        return Outcome(identity=variant.identity, error=text)


def _run(variant: Variant, label: str, shared: Shared, task: Task) -> Outcome:
    config = variant.config
    cluster = build_cluster(config)
    with contextlib.ExitStack() as stack:
        archive = stack.enter_context(JsonArchive()) if task.records else None

        def started(engine: Engine) -> None:
            if task.by_job:
                keep_jobs(engine)

        options = Options(
            until=task.until,
            keep=False,
            archive=archive,
            plugins=load_files(task.files),
            started=started,
            after_step=_in_time(task),
        )
        commands = [*commands_of(config, "config"), *outages_of(config, "config", shared.epoch)]
        done = replay(config, iter(shared.jobs), commands, options, cluster)
        metrics = done.recorder.metrics
        metrics.rows_unusable = shared.unusable
        figures = dict(done.engine.metrics())
        figures["jobs_unfinished"] = figures["jobs"] - metrics.ended
        record = None
        if archive is not None:
            about = About(
                config=config, cluster=cluster, workload=shared.name, label=label, epoch=shared.epoch
            )
            content = io.BytesIO()
            # Without a date in it, so that the same run makes the same file.
            with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed:
                archive.write(lambda text: packed.write(text.encode()), done, about, {"metrics": figures})
            record = content.getvalue()
    return Outcome(
        identity=variant.identity,
        metrics=figures,
        never=len(done.recorder.unrunnable),
        record=record,
        by_job=ByJob.of(metrics) if task.by_job else None,
    )


# ---------------------------------------------------------------------------------- this computer
Wanted = Sequence[tuple[Variant, str, str]]
"""Variant, label, and the key of its workload."""


def on_cores(wanted: Wanted, workloads: Mapping[str, Shared], task: Task, workers: int) -> Iterator[Outcome]:
    """Yield outcomes as they come, from so many processes at once.

    :raises ConfigError: a process was killed.
    """

    def work(at: int) -> Outcome:
        variant, label, key = wanted[at]
        return run(variant, label, workloads[key], task)

    with side_by_side(work, len(wanted), 0 if workers == 1 else workers, "sweep") as outcomes:
        for _, outcome in outcomes:
            yield outcome


# ----------------------------------------------------------------------------------------- Dask
def on_dask(wanted: Wanted, workloads: Mapping[str, Shared], task: Task, address: str) -> Iterator[Outcome]:
    """Yield outcomes as they come, from the workers of a Dask cluster.

    :raises ConfigError: distributed is not installed, nothing answers there, or the cluster is lost.
    """
    try:
        import distributed
    except ImportError:
        text = "needs distributed: pip install 'makeway[sweep]'"
        raise ConfigError("--dask", [Problem("", text)]) from None
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError, TimeoutError, TypeError) as error:
        raise ConfigError("--dask", [Problem("", f"no scheduler answers at {address}: {error}")]) from None
    # Its machines have clocks of their own.
    task = attrs.evolve(task, longest=min(task.longest, task.by - time.monotonic()), by=math.inf)
    with client:
        if not client.scheduler_info()["workers"]:
            raise ConfigError("--dask", [Problem("", f"the scheduler at {address} has no workers")])
        sent = {key: client.scatter(each, broadcast=True) for key, each in workloads.items()}
        futures = {
            client.submit(run, variant, label, sent[key], task, pure=False): variant
            for variant, label, key in wanted
        }
        for future in distributed.as_completed(list(futures)):
            if future.status == "finished":
                yield future.result()
                continue
            raised = future.exception()
            text = f"on the Dask cluster: {type(raised).__name__}: {raised}"
            yield Outcome(identity=futures[future].identity, error=text)

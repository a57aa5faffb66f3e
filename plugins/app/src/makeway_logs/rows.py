"""Turn rows of accounting, read all at once, into a workload: what logs of PBS and LSF have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.model import JobSpec, Seconds
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import Line, read_lines, shown
from makeway.readers.mapping import Machine, machine_of

LATEST = 7_258_118_400
"""The first second of 2200: what is later is no time."""


class BadRowError(Exception):
    """A row that cannot be used; its text is the reason."""

    def __init__(self, reason: str, *, usual: bool = False) -> None:
        super().__init__(reason)
        self.usual = usual


@attrs.frozen(kw_only=True)
class Ended:
    """A job that has ended, as a row has it; times are Unix times."""

    line: int
    id: str
    order: tuple[int, ...]
    """The numbers of the id."""
    user: str
    submit: float
    start: float | None
    """None: it never started."""
    end: float
    run: Seconds
    cpus: int
    nodes: int = 1
    begin: float | None = None
    """When it could start at the earliest; None: at its submission."""
    limit: Seconds | None = None
    queue: str = ""
    group: str | None = None
    account: str | None = None
    name: str = ""
    memory_mb: int | None = None
    """On each node; None: the row does not say."""
    gpus: int = 0
    state: str = "COMPLETED"
    restarts: int = 0
    array: tuple[str, int] | None = None
    """Id of the array, and the number of the task."""
    max_nodes: int | None = None
    tasks_per_node: int | None = None
    """Processors on each node; None: any number."""
    said: Mapping[str, Any] = attrs.field(factory=dict)
    """Attributes of the job beside those of its run."""
    earlier: tuple[Mapping[str, Any], ...] = ()
    """Runs that a requeue ended: wait, ran and state of each."""


def read_accounting(
    path: Path, options: ReadOptions, jobs: Callable[[Iterator[Line], Workload], Iterator[Ended]]
) -> Workload:
    """Read all of a log, and put its jobs in order of submission; a second row of one id is rejected.

    :param jobs: makes jobs of lines that are not empty, and notes and rejects in the workload.
    :raises ConfigError: it cannot be read.
    """
    workload = Workload(name=path.name, jobs=iter(()), most_rejected=options.most_rejected)
    seen: dict[str, int] = {}
    rows = []
    for job in jobs((line for line in read_lines(path, options.progress) if line[1].strip()), workload):
        if job.id in seen:
            reason = f"job {shown(job.id)} was there before, in line {seen[job.id]}"
            workload.reject(job.line, reason, job.id)
            continue
        seen[job.id] = job.line
        rows.append(job)
    rows.sort(key=lambda job: (job.submit, job.order, job.line))
    workload.never_started(sum(job.start is None for job in rows))
    workload.total = len(rows)
    workload.start_wall = rows[0].submit if rows else None
    workload.jobs = _specs(rows, path.name, machine_of(options.config))
    return workload


def _specs(rows: Sequence[Ended], name: str, machine: Machine) -> Iterator[JobSpec]:
    zero = rows[0].submit if rows else 0.0
    for job in rows:
        more: dict[str, Any] = {}
        if job.memory_mb is not None and machine.memory_stated:
            more["memory_mb_per_node"] = job.memory_mb
        if job.gpus:
            share = job.gpus % job.nodes == 0
            more["gres" if share else "gres_total"] = {"gpu": job.gpus // job.nodes if share else job.gpus}
        if job.array is not None:
            more |= {"array_id": job.array[0], "array_task": job.array[1]}
        yield JobSpec(
            id=job.id,
            name=job.name,
            user=job.user,
            group=job.group,
            account=job.account,
            partitions=(job.queue,) if job.queue else (),
            submit_at=job.submit - zero,
            begin_at=job.begin - zero if job.begin is not None and job.begin > job.submit else None,
            run_time=job.run,
            withdrawn_at=max(job.end, job.submit) - zero if job.start is None else None,
            time_limit=job.limit,
            min_nodes=job.nodes,
            tasks=max(job.cpus, job.nodes),
            wall_submit=job.submit,
            source=f"{name}:{job.line}",
            max_nodes=job.max_nodes,
            tasks_per_node=job.tasks_per_node,
            attributes={**job.said, **_said(job)},
            **more,
        )


def _said(job: Ended) -> dict[str, Any]:
    said: dict[str, Any] = {"state": job.state, "restarts": job.restarts}
    if job.start is None:
        said["never_started"] = True
        return said
    said["wait"] = job.earlier[0]["wait"] if job.earlier else job.start - job.submit
    if job.earlier:
        said["runs"] = [
            *job.earlier,
            {"wait": job.start - job.earlier[-1]["end"], "ran": job.run, "state": job.state},
        ]
    return said

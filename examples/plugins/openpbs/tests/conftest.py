"""Build a small PBS site, run a few jobs, and say where they stand, in PBS's letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from makeway.model import JobSpec, JobState
from makeway_testing import TableRun, cluster, jobs, replay_table

SETTINGS = "openpbs/sched"
QUEUES = {"workq": 0, "workq2": 0, "expressq": 200}
"""The queues of the scenarios, each with its Priority."""


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """What came of some jobs."""

    table: TableRun

    def at(self, now: float) -> dict[str, str]:
        """Return job -> its letter right after an instant: Q, R, S, or F once it has ended."""
        found = {}
        for name, history in self.table.run.recorder.histories.items():
            if history.job.spec.submit_at > now:
                continue
            state = JobState.PENDING
            spans = [*history.intervals, (history.state, history.since, None, None, None)]
            for each, start, *_ in spans:
                if start <= now:
                    state = each
            found[name] = _LETTERS.get(state, "F")
        return found

    def starts(self, job: str) -> tuple[float, ...]:
        """Return when a job started, once per incarnation."""
        return self.table.starts(job)

    def steps(self, *names: str) -> Sequence[str]:
        """Return the timeline of some jobs."""
        return self.table.only(*names)

    @property
    def victims(self) -> tuple[str, ...]:
        """Which jobs had to make way, in order."""
        return self.table.victims

    @property
    def modes(self) -> tuple[tuple[str, str], ...]:
        """Which jobs had to make way, and how."""
        return tuple((each.victim, each.mode.value) for each in self.table.run.recorder.preemptions)

    @property
    def failures(self) -> list[str]:
        """Which jobs were told to make way and could not, in order."""
        return [line.job or "" for line in self.table.lines if line.kind == "not_preempted"]

    def nodes(self, job: str) -> str:
        """Return where a job ran last."""
        return self.table.nodes(job)


_LETTERS = {JobState.PENDING: "Q", JobState.RUNNING: "R", JobState.SUSPENDED: "S", JobState.COMPLETING: "E"}


def config(
    queues: Mapping[str, Any] | None = None, scheduler: str = "greedy", **settings: Any
) -> dict[str, Any]:
    """Return a flat configuration; a queue is its Priority, or a table of its attributes."""
    listed = queues or QUEUES
    partitions: dict[str, dict[str, Any]] = {
        name: {"attributes": {"Priority": given} if isinstance(given, int) else dict(given)}
        for name, given in listed.items()
    }
    partitions[next(iter(listed))]["default"] = True
    return {
        "select": "openpbs/vnodes",
        "preempt": "openpbs/sched",
        "preempt_mode": "suspend",
        "scheduler": scheduler,
        "partitions": partitions,
        "settings": {SETTINGS: settings},
    }


@pytest.fixture
def pbs() -> Callable[..., Trial]:
    """Return a function that replays jobs, one per line or semicolon: ``J1 workq 0 2 60 user=U limit=90``.

    That is id, queue, submission, CPUs, run time, and keys; ``more`` holds fields of single jobs, by id.
    """

    def run(
        text: str,
        *,
        nodes: Any = 1,
        commands: str = "",
        until: float | None = None,
        more: Mapping[str, Mapping[str, Any]] | None = None,
        clockwork: Any = "ideal",
        **settings: Any,
    ) -> Trial:
        machine = cluster(1, cpus=nodes) if isinstance(nodes, int) else cluster(nodes)
        specs = [_job(line, more or {}) for line in text.replace(";", "\n").splitlines() if line.strip()]
        table = replay_table(
            specs,
            cluster=machine,
            config={**config(**settings), "clockwork": clockwork},
            commands=commands,
            until=until,
        )
        return Trial(table=table)

    return run


def _job(line: str, more: Mapping[str, Mapping[str, Any]]) -> JobSpec:
    name, queue, submit, cpus, run_time, *words = line.split()
    keys = {"user": name, **dict(word.split("=", 1) for word in words)}
    columns = "job partition submit cpus run_time"
    (spec,) = jobs(f"{columns}\n{name} {queue} {submit} {cpus} {run_time}")
    limit = keys.pop("limit", None)
    fields: dict[str, Any] = {**keys, "time_limit": None if limit is None else float(limit)}
    return attrs.evolve(spec, **{**fields, **more.get(name, {})})

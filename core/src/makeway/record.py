"""Keep the record of a run: intervals of states, preemptions, decisions, metrics; one JSON line each.

Design: "Record of a run". With a sink the lines go out as they arise and ended jobs are dropped from
memory; without one everything is kept.
"""

from __future__ import annotations

import json
import statistics
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from makeway import bitmap
from makeway.hostlist import fold_hostlist
from makeway.model import Allocation, Cluster, Job, JobState, PreemptMode, Seconds
from makeway.worlds.events import Command

SLOWDOWN_BOUND: Seconds = 10.0
"""Bound of the bounded slowdown."""
_RUNNING = JobState.RUNNING
_PENDING = JobState.PENDING


@attrs.frozen
class Line:
    """One line of the record."""

    at: Seconds
    kind: str
    """state, preempt, decision, refused, rejected, suspend, resume, note."""
    job: str
    data: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the line as it is written."""
        return {"at": tidy(self.at), "kind": self.kind, "job": self.job, **self.data}


_ENDS = frozenset(state for state in JobState if state.ended)

Interval = tuple[JobState, Seconds, Seconds, Allocation | None, int]
"""State, start, end, what was held, and the number of restarts before."""


@attrs.define(eq=False)
class History:
    """What happened to one job."""

    job: Job
    since: Seconds
    state: JobState = JobState.PENDING
    intervals: list[Interval] = attrs.field(factory=list)
    allocation: Allocation | None = None
    first_start: Seconds | None = None
    final_state: JobState | None = None
    ended_at: Seconds | None = None
    preempted: int = 0
    lost: Seconds = 0.0
    """Core-seconds thrown away."""
    worked: Seconds = 0.0
    """Seconds of running that counted."""


@attrs.frozen
class Preemption:
    """One victim that had to make way."""

    at: Seconds
    preemptor: str | None
    victim: str
    mode: PreemptMode
    by: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Return the entry in the summary's shape."""
        return {
            "at": tidy(self.at),
            "preemptor": self.preemptor,
            "victim": self.victim,
            "mode": self.mode.value,
            "by": self.by,
            "why": self.why,
        }


@attrs.frozen(kw_only=True)
class Decision:
    """What was considered for one job in one attempt; for ``explain``."""

    at: Seconds
    job: str
    partition: str
    outcome: str
    """starts, preempts, waits."""
    reason: str = ""
    detail: str = ""
    placement: str = ""
    candidates: tuple[tuple[str, str], ...] = ()
    """Job id and mode, in order."""
    vacated: tuple[str, ...] = ()
    """Suspended jobs whose room the job may use; they are not among the candidates and victims."""
    protected: Mapping[str, str] = attrs.field(factory=dict)
    """Job id -> the rule that protects it."""
    victims: tuple[tuple[str, str], ...] = ()
    method: str = ""
    by: str = ""


@attrs.define
class Metrics:
    """Figures of a run, added up as jobs end."""

    jobs: int = 0
    waits: array[float] = attrs.field(factory=lambda: array("d"))
    slowdowns: float = 0.0
    ended: int = 0
    preemptions: int = 0
    jobs_preempted: int = 0
    core_seconds_lost: float = 0.0
    core_seconds_used: float = 0.0
    first_submit: Seconds | None = None
    last_end: Seconds = 0.0
    checkpoints: int = 0
    core_seconds_checkpointing: float = 0.0
    """Core-seconds for which nodes were held to write checkpoints."""
    core_seconds_restarting: float = 0.0
    """Core-seconds of running that went into reading checkpoints; part of those lost."""
    core_seconds_saved: float = 0.0
    """Core-seconds of work that checkpoints saved from being lost."""
    rows_unusable: int = 0
    unfinished: int = 0
    waits_in: dict[str, list[Seconds]] = attrs.field(factory=dict)
    """The same waits by the partition of the first start."""
    pairs: dict[tuple[str, str, str], int] = attrs.field(factory=dict)
    """Preemptions by the preemptor's partition (empty: nobody in particular), the victim's, and mode."""

    def as_dict(self, cores: int) -> dict[str, Any]:
        """Return the summary's metrics; waits in seconds from submission to first start."""
        waits = self.waits
        began = self.first_submit or 0.0
        makespan = max(0.0, self.last_end - began)
        capacity = cores * makespan
        return {
            "jobs": self.jobs,
            "mean_wait": tidy(sum(waits) / len(waits)) if waits else 0.0,
            "median_wait": tidy(statistics.median(waits)) if waits else 0.0,
            "max_wait": tidy(max(waits)) if waits else 0.0,
            "mean_bounded_slowdown": tidy(self.slowdowns / self.ended) if self.ended else 0.0,
            "utilisation": tidy(self.core_seconds_used / capacity) if capacity else 0.0,
            "makespan": tidy(makespan),
            "preemptions": self.preemptions,
            "jobs_preempted": self.jobs_preempted,
            "core_seconds_lost": tidy(self.core_seconds_lost),
            "rows_unusable": self.rows_unusable,
            "jobs_unfinished": self.unfinished,
            **self._checkpoint_figures(),
        }

    def _checkpoint_figures(self) -> dict[str, Any]:
        """Return what checkpoints cost; nothing where there were none."""
        if not self.checkpoints:
            return {}
        return {
            "checkpoints": self.checkpoints,
            "core_seconds_checkpointing": tidy(self.core_seconds_checkpointing),
            "core_seconds_restarting": tidy(self.core_seconds_restarting),
            "core_seconds_saved": tidy(self.core_seconds_saved),
        }


class Recorder:
    """Takes note of what the engine does."""

    def __init__(
        self,
        cluster: Cluster,
        sink: Callable[[Line], None] | None = None,
        *,
        keep: bool = True,
    ) -> None:
        self.cluster = cluster
        self.histories: dict[str, History] = {}
        self.preemptions: list[Preemption] = []
        self.metrics = Metrics()
        self.decisions: list[Decision] = []
        self.traced: Callable[[Job], bool] | None = None
        """Which jobs' attempts are kept as decisions; None: nobody's."""
        self.unrunnable: list[tuple[str, str, str]] = []
        """Jobs that can never run here: id, place in the workload, reason."""
        self.refusals: list[tuple[Seconds, Command, str]] = []
        self.failures: list[tuple[Seconds, str, str, str]] = []
        """Preemptions that could not be carried out: instant, preemptor, victim, reason."""
        self._sink = sink
        self._keep = keep
        self._names: dict[int, str] = {}
        self._cores = [node.cpus for node in cluster.nodes]
        self._same_cores = self._cores[0] if len(set(self._cores)) == 1 else None

    # ------------------------------------------------------------------------- states
    def entered(self, job: Job, now: Seconds) -> None:
        """A job was submitted."""
        self.histories[job.id] = History(job, now)
        metrics = self.metrics
        metrics.jobs += 1
        if metrics.first_submit is None or now < metrics.first_submit:
            metrics.first_submit = now
        if self._sink is not None:
            self._emit(now, "state", job, {"state": "PENDING", "reason": job.reason})

    def moved(self, job: Job, state: JobState, now: Seconds) -> None:
        """A job is in another state from now on."""
        history = self.histories[job.id]
        before = history.state
        if now > history.since or (before is _RUNNING and state in _ENDS):
            history.intervals.append((before, history.since, now, history.allocation, job.restarts))
        if before is _RUNNING:
            self.metrics.core_seconds_used += (now - history.since) * self._cpus(history.allocation)
        history.since = now
        history.state = state
        if state is _RUNNING:
            if history.first_start is None:
                history.first_start = now
                wait = now - job.spec.submit_at
                self.metrics.waits.append(wait)
                self.metrics.waits_in.setdefault(job.partition.name, []).append(wait)
            history.allocation = job.allocation
        elif state is _PENDING:
            history.allocation = None
        if self._sink is not None:
            self._emit(now, "state", job, self._state_data(job, state, history))

    def ended(self, job: Job, state: JobState, now: Seconds) -> None:
        """A job reached its final state."""
        history = self.histories[job.id]
        if history.state is not state:
            self.moved(job, state, now)
        history.final_state = state
        history.ended_at = now
        metrics = self.metrics
        if now > metrics.last_end:
            metrics.last_end = now
        metrics.ended += 1
        if history.preempted:
            metrics.jobs_preempted += 1
        run = history.worked
        slow = (now - job.spec.submit_at) / (run if run > SLOWDOWN_BOUND else SLOWDOWN_BOUND)
        metrics.slowdowns += slow if slow > 1.0 else 1.0
        if not self._keep:
            del self.histories[job.id]

    def work_kept(self, job: Job, seconds: Seconds) -> None:
        """Running time of an incarnation that counted."""
        self.histories[job.id].worked += seconds

    def checkpointed(self, job: Job, seconds: Seconds, now: Seconds) -> None:
        """A job saves its state, which keeps its nodes busy for some more `seconds`."""
        self.metrics.checkpoints += 1
        self.metrics.core_seconds_checkpointing += seconds * self.cores_of(job)
        self.metrics.core_seconds_saved += job.checkpointed * self.cores_of(job)
        self.note("checkpoint", job.id, now, saved=tidy(job.begun_with + job.checkpointed))

    def checkpoint_read(self, job: Job, seconds: Seconds) -> None:
        """A job spent so much of its running time on reading a checkpoint."""
        self.metrics.core_seconds_restarting += seconds * self.cores_of(job)

    def failed(self, victim: Job, preemptor: Job, asked: PreemptMode, why: str, now: Seconds) -> None:
        """A victim was told to make way, but what was asked could not be done."""
        self.failures.append((now, preemptor.id, victim.id, why))
        self.note("not_preempted", victim.id, now, preemptor=preemptor.id, asked=asked.value, why=why)

    def work_lost(self, job: Job, seconds: Seconds) -> None:
        """Running time that a requeue or cancel threw away."""
        lost = seconds * self.cores_of(job)
        self.histories[job.id].lost += lost
        self.metrics.core_seconds_lost += lost

    # ---------------------------------------------------------------------- decisions
    def preempted(
        self,
        victim: Job,
        preemptor: Job | None,
        mode: PreemptMode,
        by: str,
        why: str,
        now: Seconds,
    ) -> None:
        """A job has to make way."""
        self.histories[victim.id].preempted += 1
        self.metrics.preemptions += 1
        pair = (preemptor.partition.name if preemptor else "", victim.partition.name, mode.value)
        self.metrics.pairs[pair] = self.metrics.pairs.get(pair, 0) + 1
        entry = Preemption(now, preemptor.id if preemptor else None, victim.id, mode, by, why)
        if self._keep:
            self.preemptions.append(entry)
        if self._sink is not None:
            data = entry.as_dict()
            del data["at"]
            self._emit(now, "preempt", victim, data)

    def traces(self, job: Job) -> bool:
        """Whether the attempts of `job` are kept as decisions."""
        return self.traced is not None and self.traced(job)

    def decided(self, decision: Decision) -> None:
        """An attempt of a traced job came to an end."""
        self.decisions.append(decision)

    def rejected(self, job: Job, problem: str, now: Seconds) -> None:
        """A job cannot run on this cluster at all."""
        self.unrunnable.append((job.id, job.spec.source, problem))
        if self._sink is not None:
            self._emit(now, "rejected", job, {"reason": problem, "source": job.spec.source})

    def refused(self, command: Command, reason: str, now: Seconds) -> None:
        """A person's command was refused."""
        self.refusals.append((now, command, reason))
        if self._sink is not None:
            data = {"command": command.name, "user": command.user, "reason": reason}
            self._sink(Line(now, "refused", command.job_id, data))

    def note(self, kind: str, job_id: str, now: Seconds, **data: Any) -> None:
        """Write a line that is neither a change of state nor a preemption."""
        if self._sink is not None:
            self._sink(Line(now, kind, job_id, data))

    # ------------------------------------------------------------------------ shapes
    def cores_of(self, job: Job) -> int:
        """Return how many CPUs a job holds."""
        return self._cpus(job.allocation)

    def _cpus(self, allocation: Allocation | None) -> int:
        if allocation is None:
            return 0
        if allocation.cpus is not None:
            return sum(allocation.cpus)
        if self._same_cores is not None:
            return self._same_cores * len(allocation.node_indices)
        return sum(self._cores[index] for index in allocation.node_indices)

    def node_list(self, nodes: bitmap.NodeBits) -> str:
        """Return a set of nodes as a folded host list."""
        text = self._names.get(nodes)
        if text is None:
            listed = self.cluster.nodes
            text = fold_hostlist([listed[index].name for index in bitmap.indices(nodes)])
            if len(self._names) < 10_000:
                self._names[nodes] = text
        return text

    def cpus_of(self, allocation: Allocation) -> dict[str, str]:
        """Return node name -> folded CPU numbers."""
        listed = self.cluster.nodes
        cores = allocation.cores
        shown = {}
        for at, index in enumerate(allocation.node_indices):
            node = listed[index]
            if cores is None:
                shown[node.name] = _folded(range(node.cpus))
            else:
                threads = node.threads_per_core
                shown[node.name] = _folded(
                    core * threads + thread for core in bitmap.indices(cores[at]) for thread in range(threads)
                )
        return shown

    def summary(self, now: Seconds) -> dict[str, Any]:
        """Return the whole run in the design's shape; jobs by id, in order of submission.

        The reason of a job that has ended is empty, unless it could never run here: then it says why.
        """
        self.metrics.unfinished = sum(1 for history in self.histories.values() if history.final_state is None)
        total = sum(self._cores)
        jobs = {key: self.job_dict(h, now) for key, h in self.histories.items()}
        for key, _, problem in self.unrunnable:
            if key in jobs:
                jobs[key]["reason"] = problem
        return {
            "jobs": jobs,
            "preemptions": [entry.as_dict() for entry in self.preemptions],
            **self._failures(),
            **self._refusals(),
            "metrics": self.metrics.as_dict(total),
        }

    def _failures(self) -> dict[str, Any]:
        """Return preemptions that could not be carried out; nothing where there were none."""
        if not self.failures:
            return {}
        keys = ("at", "preemptor", "victim", "why")
        return {"failed_preemptions": [dict(zip(keys, each, strict=True)) for each in self.failures]}

    def _refusals(self) -> dict[str, Any]:
        """Return people's commands that were refused; nothing where there were none."""
        if not self.refusals:
            return {}
        shown = [
            {"at": tidy(at), "command": one.name, "job": one.job_id, "user": one.user, "reason": reason}
            for at, one, reason in self.refusals
        ]
        return {"refused_commands": shown}

    def job_dict(self, history: History, now: Seconds) -> dict[str, Any]:
        """Return one job in the design's shape; an open interval ends at `now`."""
        job = history.job
        intervals = list(history.intervals)
        if history.final_state is None:
            intervals.append((history.state, history.since, now, history.allocation, job.restarts))
        return {
            "name": job.spec.name,
            "partition": job.partition.name,
            "user": job.user,
            "submit": tidy(job.spec.submit_at),
            "final_state": (history.final_state or history.state).value,
            "reason": "" if history.final_state else job.reason,
            "restarts": job.restarts,
            "core_seconds_lost": tidy(history.lost),
            "intervals": [self._interval_dict(interval) for interval in intervals],
        }

    def _interval_dict(self, interval: Interval) -> dict[str, Any]:
        state, start, end, allocation, restarts = interval
        shown: dict[str, Any] = {
            "state": state.value,
            "start": tidy(start),
            "end": tidy(end),
            "restart": restarts,
        }
        if allocation is not None and state is not _PENDING:
            shown["nodes"] = self.node_list(allocation.nodes)
            shown["cpus"] = self.cpus_of(allocation)
        return shown

    def _state_data(self, job: Job, state: JobState, history: History) -> dict[str, Any]:
        data: dict[str, Any] = {"state": state.value}
        if state is _PENDING:
            data["reason"] = job.reason
            data["restarts"] = job.restarts
        elif history.allocation is not None:
            data["nodes"] = self.node_list(history.allocation.nodes)
        return data

    def _emit(self, now: Seconds, kind: str, job: Job, data: Mapping[str, Any]) -> None:
        if self._sink is not None:
            self._sink(Line(now, kind, job.id, data))


def to_json(line: Line) -> str:
    """Return a line of the record as JSON."""
    return json.dumps(line.as_dict(), separators=(",", ":"))


def tidy(value: Seconds) -> float:
    """Round to the microsecond, so that sums of floats print alike everywhere."""
    return round(value, 6)


def _folded(numbers: Iterable[int]) -> str:
    """Return 0-3,5 for 0 1 2 3 5."""
    shown = []
    for first, stop in bitmap.runs(bitmap.of(list(numbers))):
        shown.append(str(first) if stop == first + 1 else f"{first}-{stop - 1}")
    return ",".join(shown)

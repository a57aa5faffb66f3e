"""Show jobs as values that JSON has. Instants are Unix time, lengths are seconds."""

from __future__ import annotations

from typing import Any

from makeway import bitmap
from makeway.hostlist import fold_hostlist
from makeway.model import Job, JobState, Seconds, Vocabulary
from makeway.record import Line
from makeway.worlds.api import Step
from makeway.worlds.events import Resume, Start, Suspend
from makeway_engine.engine import Engine


class Displacers:
    """Remembers for which job each suspended or requeued job made way."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, str, Seconds]] = {}
        self._owners: dict[str, str] = {}

    def heard(self, line: Line) -> None:
        """Take note of a line of the record."""
        if line.kind in ("state", "adopted") and "user" in line.data:
            self._owners[line.job] = str(line.data["user"])
        if line.kind == "preempt":
            data = line.data
            self._of[line.job] = (str(data.get("preemptor") or ""), str(data.get("mode", "")), line.at)
        elif line.kind == "state" and line.data.get("state") not in ("SUSPENDED", "PENDING", "COMPLETING"):
            self._of.pop(line.job, None)

    def owner(self, job_id: str) -> str:
        """Return whose job it is, as far as lines told; empty: that is not known."""
        return self._owners.get(job_id, "")

    def of(self, job: Job) -> tuple[str, str, Seconds] | None:
        """Return for which job one makes way now, how, and since when; None: for none."""
        return None if job.state is JobState.RUNNING else self._of.get(job.id)


UNWRITTEN = "JournalUnwritten"
"""Reason of a job whose start is decided and waits to be written down."""
USE = "use"
"""Who stopped a job that makes way for a person at its node."""
_BEFORE = {Start: JobState.PENDING, Suspend: JobState.RUNNING, Resume: JobState.SUSPENDED}
"""The state of a job before an action."""


class Shown:
    """Shows jobs of one engine at one instant."""

    def __init__(
        self,
        engine: Engine,
        displacers: Displacers,
        wall_of_zero: float,
        now: Seconds,
        unwritten: Step | None = None,
        *,
        after: str = "",
    ) -> None:
        """Show the jobs of `engine`.

        :param unwritten: a step that could not be written down: what it decided has not been done.
        :param after: attribute of held jobs with the ids of others that have to end first; empty: the world has none.
        """
        self._after = after
        self._before: dict[str, JobState] = {}
        for action in unwritten.actions if unwritten is not None else ():
            before = _BEFORE.get(type(action))
            if before is not None:
                self._before.setdefault(action.job.id, before)
        self._engine = engine
        self._displacers = displacers
        self._zero = wall_of_zero
        self._now = now
        self._words: Vocabulary = engine.policies.vocabulary()

    def job(self, job: Job) -> dict[str, Any]:
        """Return all that is known of a live job."""
        engine, spec, words = self._engine, job.spec, self._words
        leaving = engine.transitions.is_leaving(job)
        state = JobState.COMPLETING if leaving else self._before.get(job.id, job.state)
        intended = state is JobState.PENDING and job.state is not state
        placed = None if intended else job.allocation
        started = None if intended else job.started_at
        shown: dict[str, Any] = {
            "id": job.id,
            "array": spec.array_id,
            "task": spec.array_task if spec.array_id is not None else None,
            "name": spec.name,
            "user": job.user,
            "account": job.account,
            "partition": job.partition.name if placed else ",".join(p.name for p in job.partitions),
            "qos": None if job.qos is None else job.qos.name,
            "state": state.value,
            "word": words.state(state, job.suspended_by, held=job.held),
            "reason": self._reason(job, state),
            "held": job.held,
            "kept": job.kept,
            "suspended_by": self._stopped_by(job),
            "priority": job.priority,
            "nodes": "",
            "node_count": job.size,
            "cpus": spec.cpus,
            "memory_mb": spec.memory_mb_per_node,
            "gres": dict(spec.gres),
            "time_limit": job.time_limit,
            "ran": round(job.ran_until(self._now), 3) if started is not None else 0.0,
            "submitted_at": self._wall(spec.submit_at),
            "eligible_at": self._wall(job.eligible_at),
            "started_at": self._wall(started),
            "ends_at": self._wall(job.end_at) if state is job.state is JobState.RUNNING else None,
            "suspended_at": self._wall(job.suspended_at),
            "incarnation": job.starts - intended,
            "requeues": job.restarts,
            "preemptions": job.preemptions,
            "command": " ".join(spec.command)[:500],
            "after": list(spec.attributes.get(self._after, ())),
        }
        if placed is not None:
            nodes = bitmap.indices(placed.nodes)
            shown["nodes"] = fold_hostlist([engine.ledger.cluster.nodes[index].name for index in nodes])
            shown["node_count"] = len(placed.node_indices)
            shown["cpus"] = engine.recorder.cores_of(job)
            if placed.cores is not None:
                shown["cores"] = engine.recorder.cpus_of(placed)
        if job.obstacle:
            shown["obstacle"] = job.obstacle
        safe = job.begun_with + job.checkpointed
        if safe and (job.marked_saved or state is JobState.PENDING):
            shown["saved"] = round(safe, 3)
        if job.lost:
            shown["lost"] = round(job.lost, 3)
        by = self._displacers.of(job)
        if by is not None:
            preemptor, mode, at = by
            shown["displaced"] = {"by": preemptor, "how": mode, "at": self._wall(at)}
        return shown

    def _stopped_by(self, job: Job) -> str | None:
        """Return what stopped a job: the policy, an administrator, or a person at its node; None: it is not stopped."""
        if job.suspended_by is None:
            return None
        return USE if job.id in self._engine.in_use.stopped else job.suspended_by.value

    def _reason(self, job: Job, state: JobState) -> str:
        if state is JobState.PENDING:
            if job.state is not state:
                return UNWRITTEN
            return self._words.reason(job.reason)
        return self._words.suspension(job.state, job.suspended_by, job.marks)

    def _wall(self, at: Seconds | None) -> float | None:
        return None if at is None else round(at + self._zero, 3)

    def jobs(self) -> list[dict[str, Any]]:
        """Return all live jobs, in job-table order."""
        present = sorted(self._engine.ledger.jobs.values(), key=lambda job: job.index)
        return [self.job(job) for job in present]

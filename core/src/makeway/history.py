"""Define what a record is made of: lines, histories of jobs, preemptions and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from makeway.metrics import tidy
from makeway.model import Allocation, Job, JobState, PreemptMode, Seconds


@attrs.frozen
class Line:
    """One line of the record."""

    at: Seconds
    kind: str
    """state, adopted, reason, preempt, decision, refused, rejected, not_preempted, checkpoint, nodes, node_fail."""
    job: str
    data: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the line as it is written."""
        return {"at": tidy(self.at), "kind": self.kind, "job": self.job, **self.data}


Interval = tuple[JobState, Seconds, Seconds, Allocation | None, int]
"""State, start, end, what was held, and the number of restarts before."""

Decided = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""Outcome, partition, reason and victims of a decision."""

RECORD_VERSION = 1
"""Version of the record's shape; grows when a key changes its meaning or goes. New keys may come without."""
DECISIONS_KEPT = 200
"""The most decisions that a job's history holds; further ones that let it wait are only counted."""
NAMES_KEPT = 100
"""The most candidates, and the most protected jobs, that a recorded decision names."""


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
    revived: bool = False
    """Whether a person had it run again after it had ended."""
    preempted: int = 0
    lost: Seconds = 0.0
    """Core-seconds thrown away; all of the job where preemption ended it."""
    again: Seconds = 0.0
    """The part of them that a user must submit again, for preemption ended the job."""
    worked: Seconds = 0.0
    """Seconds of running that counted."""
    number: int = 0
    """Place in the order of submission, from 0."""
    problem: str = ""
    """Why it can never run here; empty: it can."""
    waits: list[tuple[Seconds, Seconds, str]] = attrs.field(factory=list)
    """Start, end and reason of each stretch of waiting that is over."""
    waiting: tuple[Seconds, str] | None = None
    """Since when and why it waits now."""
    told: list[Decision] = attrs.field(factory=list)
    """What was decided about it."""
    decided: Decided | None = None
    """What the last decision came to."""
    untold: int = 0
    """Decisions beyond `DECISIONS_KEPT`."""

    def is_news(self, decided: Decided) -> bool:
        """Whether a decision comes to something else than the last one; a job that preempts waits for resources."""
        last = self.decided
        if last is not None and last[0] == "preempts" and decided[0] == "waits":
            return decided[1:3] != (last[1], "Resources")
        return decided != last


def needed(job: Job, worked: Seconds) -> Seconds:
    """Return for how long a job has to run: as long as it takes, or up to its limit where that is shorter.

    :param worked: its running that counted; it stands in where it is not known how long the job takes.
    """
    run = job.spec.run_time
    if run is None:
        return max(worked, job.ran)
    limit = job.time_limit
    return run if limit is None or run < limit else limit


def last_run(history: History) -> Seconds:
    """Return for how long a job ran since it was last requeued."""
    last = history.job.restarts
    return sum(
        end - start
        for state, start, end, _, restarts in history.intervals
        if state is JobState.RUNNING and restarts == last
    )


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
    costs: tuple[Seconds, ...] = ()
    """Seconds of work that each of the candidates would lose."""
    vacated: tuple[str, ...] = ()
    """Suspended jobs whose room the job may use; they are not among the candidates and victims."""
    protected: Mapping[str, str] = attrs.field(factory=dict)
    """Job id -> the rule that protects it."""
    victims: tuple[tuple[str, str], ...] = ()
    method: str = ""
    by: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it in the record's shape; what is empty is left out."""
        shown: dict[str, Any] = {"outcome": self.outcome, "partition": self.partition}
        for name in ("reason", "detail", "placement", "method", "by"):
            if value := getattr(self, name):
                shown[name] = value
        if self.candidates:
            shown["candidates"] = [list(pair) for pair in self.candidates[:NAMES_KEPT]]
            shown["costs"] = [tidy(cost) for cost in self.costs[:NAMES_KEPT]]
            shown["candidate_count"] = len(self.candidates)
        if self.vacated:
            shown["vacated"] = list(self.vacated)
        if self.victims:
            shown["victims"] = [list(pair) for pair in self.victims]
        if self.protected:
            rules: dict[str, list[str]] = {}
            for job_id, rule in list(self.protected.items())[:NAMES_KEPT]:
                rules.setdefault(rule, []).append(job_id)
            shown["protected"] = rules
            shown["protected_count"] = len(self.protected)
        return shown


def submission(job: Job) -> dict[str, Any]:
    """Return who submitted a job and what it asked for, in the record's shape; what was not given is left out."""
    spec = job.spec
    shown: dict[str, Any] = {"user": job.user}
    for name, value in (("group", spec.group), ("account", job.account), ("name", spec.name)):
        if value:
            shown[name] = value
    if job.qos is not None:
        shown["qos"] = job.qos.name
    if len(job.partitions) > 1:
        shown["partitions"] = [partition.name for partition in job.partitions]
    asked: dict[str, Any] = {"nodes": job.size, "cpus": spec.cpus, "time_limit": job.time_limit}
    if spec.max_nodes is not None and spec.max_nodes != job.size:
        asked["max_nodes"] = spec.max_nodes
    for name in ("memory_mb_per_node", "memory_mb_per_cpu"):
        if (amount := getattr(spec, name)) is not None:
            asked[name] = amount
    for name in ("gres", "gres_total", "licenses"):
        if counts := getattr(spec, name):
            asked[name] = dict(counts)
    if spec.features:
        asked["features"] = spec.features
    return {**shown, "requested": asked}

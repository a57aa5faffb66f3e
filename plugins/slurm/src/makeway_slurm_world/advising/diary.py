"""Keep a diary beside a cluster at work: what Slurm did between two looks, and what the policy said (slurm-live 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from makeway.hostlist import fold_hostlist
from makeway.model import JobState
from makeway_slurm_world.advising.advice import Advice
from makeway_slurm_world.reading.jobs import LiveJob
from makeway_slurm_world.reading.look import Look


@attrs.frozen(kw_only=True)
class Happened:
    """What Slurm did between two looks."""

    started: Mapping[str, str]
    """Job -> its nodes."""
    displaced: Mapping[str, str]
    """Job that had run -> requeue, or suspend."""
    ended: tuple[str, ...]
    """Jobs that are not there any more."""
    came: tuple[str, ...]
    """Jobs that were not there before; the policy was not asked about them."""
    core_hours: float
    """Work that requeues threw away: since the start of the job until the look before."""


def between(before: Look, after: Look) -> Happened:
    """Compare two looks."""
    was = {job.id: job for job in before.jobs}
    now = {job.id: job for job in after.jobs}
    started: dict[str, str] = {}
    displaced: dict[str, str] = {}
    for job_id, job in now.items():
        old = was.get(job_id)
        if job.state is not JobState.PENDING and (old is None or old.state is JobState.PENDING):
            started[job_id] = fold_hostlist(job.nodes)
        elif old is not None and old.state is not JobState.PENDING:
            how = _displaced(old, job)
            if how:
                displaced[job_id] = how
    return Happened(
        started=started,
        displaced=displaced,
        ended=tuple(job_id for job_id in was if job_id not in now),
        came=tuple(job_id for job_id in now if job_id not in was),
        core_hours=sum(_work(was[job_id]) for job_id, how in displaced.items() if how == "requeue"),
    )


def _work(job: LiveJob) -> float:
    return job.ran * job.spec.cpus / 3600


def _displaced(old: LiveJob, job: LiveJob) -> str:
    """Say how a job that ran was stopped; empty: it was not."""
    if job.restarts > old.restarts:
        return "requeue"
    if job.state is JobState.SUSPENDED and old.state is JobState.RUNNING:
        return "suspend"
    return ""


@attrs.define
class Diary:
    """Counts how often Slurm and a policy agree."""

    counts: Counter[str] = attrs.field(factory=Counter)
    core_hours: float = 0.0
    """Work that Slurm's requeues threw away."""

    def entry(self, before: Look, advice: Advice, after: Look) -> dict[str, Any]:
        """Hold what Slurm did after a look against what the policy said at it; count, and return a line."""
        happened = between(before, after)
        said = {start.job: start.nodes for start in advice.starts}
        came = set(happened.came)
        asked = {job_id: nodes for job_id, nodes in happened.started.items() if job_id not in came}
        both = [job_id for job_id in asked if job_id in said]
        same = [job_id for job_id in both if asked[job_id] == said[job_id]]
        counted = {
            "comparisons": 1,
            "started by both": len(both),
            "on the same nodes": len(same),
            "started by slurm alone": len(asked) - len(both),
            "started by the policy alone": len(said) - len(both),
            "displaced by slurm": len(happened.displaced),
            "displaced by the policy": len(advice.displaced),
            "displaced by both": len({each.job for each in advice.displaced} & set(happened.displaced)),
            "came and started between two looks": len(happened.started) - len(asked),
        }
        self.counts.update(counted)
        self.core_hours += happened.core_hours
        return {
            "at": round(after.state.wall or 0.0, 3),
            "slurm": {
                "started": dict(happened.started),
                "displaced": dict(happened.displaced),
                "ended": list(happened.ended),
                "came": list(happened.came),
                "core_hours_lost": round(happened.core_hours, 3),
            },
            "policy": {
                "starts": said,
                "displaces": [
                    {"job": each.job, "mode": each.mode, "for": each.preemptor, "why": each.why}
                    for each in advice.displaced
                ],
            },
            "differ": sorted(job_id for job_id in {*asked, *said} if asked.get(job_id) != said.get(job_id)),
        }

"""Hold a job against the limits that are about it alone: MaxWall, MaxTRES, MinTRES, MaxTRESMins (6.2)."""

from __future__ import annotations

import attrs

from makeway.model import Blocked, Job
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.limits.answers import full, full_of_minutes
from makeway_slurm.limits.asked import Asked, Listed
from makeway_slurm.limits.kinds import Kind, Rule
from makeway_slurm.limits.tres_minutes import minutes_of

ALONE = frozenset((Kind.WALL, Kind.JOB_TRES, Kind.NODE_TRES, Kind.LEAST_TRES, Kind.JOB_MINUTES))
"""Limits that are about one job: whoever passes once passes for good."""
# Members of an Enum are bound once where they are asked for again and again: Python 3.11 looks them up by a detour.
_WALL, _JOB_TRES, _NODE_TRES, _LEAST_TRES = Kind.WALL, Kind.JOB_TRES, Kind.NODE_TRES, Kind.LEAST_TRES
_JOB_MINUTES = Kind.JOB_MINUTES


def keeps_out(rule: Rule, job: Job, asked: Asked) -> Blocked | None:
    """Say how such a limit keeps a pending job out; None: it does not."""
    kind, most = rule.kind, rule.most
    if kind is _WALL:
        short = asked.minutes is None or asked.minutes > most
        given = job.spec.time_limit is not None or job.partitions[0].default_time is not None
        return full(rule, asked.minutes or 0, 0) if short and given else None
    wanted = asked.counts.get(rule.name, 0)
    if kind is _JOB_TRES:
        over = wanted > most
    elif kind is _NODE_TRES:
        over = wanted // max(1, asked.counts[NODE]) > most
    elif kind is _LEAST_TRES:
        over = wanted < most
    else:
        over = minutes_of(asked, wanted) > most
    if not over:
        return None
    if kind is _JOB_MINUTES:
        return full_of_minutes(rule, minutes_of(asked, wanted), 0)
    blocked = full(rule, wanted, 0)
    if kind is _NODE_TRES and most > 0:
        # It holds for the nodes that are chosen (recorded: limit_before_nodes).
        return attrs.evolve(blocked, least_nodes=wanted // (most + 1) + 1)
    return blocked


def passes_for_good(listed: Listed, job: Job, asked: Asked) -> bool:
    """Whether a limit can never keep a job out, as long as it asks for what it does."""
    if listed.alone:
        return keeps_out(listed.rule, job, asked) is None
    return listed.if_any and not asked.counts.get(listed.name, 0)


__all__ = ["ALONE", "keeps_out", "passes_for_good"]

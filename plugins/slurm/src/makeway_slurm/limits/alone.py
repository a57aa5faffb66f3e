"""Say which limits a job breaks on its own, whatever others hold: MaxWall, MaxTRES, MinTRES, MaxTRESMins (6.2)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway.model import Blocked, Job
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.limits.answers import full, full_of_minutes
from makeway_slurm.limits.asked import Asked, Listed
from makeway_slurm.limits.kinds import AS_MAXIMUM, OF_MINUTES, OF_WALL, Kind, Rule
from makeway_slurm.limits.tres_minutes import minutes_of

ALONE = frozenset((Kind.WALL, Kind.JOB_TRES, Kind.NODE_TRES, Kind.LEAST_TRES, Kind.JOB_MINUTES))
"""Limits that are about one job: a job that passes once passes for good."""
# Members of an Enum are bound once where they are asked for again and again: Python 3.11 looks them up by a detour.
_WALL, _NODE_TRES, _LEAST_TRES, _JOB_MINUTES = Kind.WALL, Kind.NODE_TRES, Kind.LEAST_TRES, Kind.JOB_MINUTES


def breaks(rule: Rule, job: Job, asked: Asked, counts: Mapping[str, int]) -> bool:
    """Whether a job breaks a limit on its own; one on what several jobs hold or use up bounds each of them, too.

    :param counts: the TRES that count for it: what it asks for by its words, or with all CPUs of whole nodes.
    """
    kind, most = rule.kind, rule.most
    if kind in OF_WALL:
        given = job.spec.time_limit is not None or job.partitions[0].default_time is not None
        return given and (asked.minutes is None or asked.minutes > most)
    wanted = counts.get(rule.name, 0)
    if kind in AS_MAXIMUM:
        return wanted > most
    if kind in OF_MINUTES:
        return minutes_of(asked, wanted) > most
    if kind is _NODE_TRES:
        return wanted // max(1, counts[NODE]) > most
    return kind is _LEAST_TRES and wanted < most


def keeps_out(rule: Rule, job: Job, asked: Asked) -> Blocked | None:
    """Say how a limit that is about one job keeps it out while it waits; None: it does not."""
    if not breaks(rule, job, asked, asked.counts):
        return None
    kind, most = rule.kind, rule.most
    if kind is _WALL:
        return full(rule, asked.minutes or 0, 0)
    wanted = asked.counts.get(rule.name, 0)
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

"""Say in words which limit keeps a job out, and how much of it is taken."""

from __future__ import annotations

import math

import attrs

from makeway.model import Blocked, Seconds
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits.kinds import Rule
from makeway_slurm.limits.node_cap import caps_nodes
from makeway_slurm.limits.stages import BEFORE_NODES

LIMIT = "limit"
"""What a job that a limit keeps out lacks."""


def full(rule: Rule, wanted: float, have: float, again: Seconds | None = None) -> Blocked:
    """Say that a job wants more than a limit has left.

    :param again: when time alone may lift it; None: time does not.
    """
    whose = f"QOS {rule.whose}" if isinstance(rule.whose, str) else "its account"
    what = f" of {rule.name}" if rule.name else ""
    return Blocked(
        reason=rule.reason,
        resource=LIMIT,
        wanted=wanted,
        available=max(0, rule.most - have),
        detail=f"{rule.reason}: {wanted:g}{what} wanted, {have:g} of {rule.most} taken ({whose})",
        keeps_nothing=True,
        ask_again_at=again,
        before_nodes=rule.kind in BEFORE_NODES,
        at_submission=rule.kind in BEFORE_NODES or caps_nodes(rule, wanted),
        stays=True,
    )


def full_of_minutes(rule: Rule, minutes: float, running: int, again: Seconds | None = None) -> Blocked:
    """Say that a job asks for more TRES-minutes than are left: infinitely many if it has no time limit."""
    blocked = full(rule, int(min(minutes, 1e15)), running, again)
    if minutes < math.inf:
        return blocked
    text = f"{rule.reason}: the job has no time limit, and {rule.most:,} minutes of {rule.name} are allowed"
    return attrs.evolve(blocked, detail=text)


def asks_again_at(rule: Rule, usage: UsageBook) -> Seconds | None:
    """Return when time alone may lift a limit: at the next recalculation, if usage can go down."""
    if not usage.counts or rule.most <= 0:
        return None
    return usage.next_at


def both(one: Blocked, other: Blocked) -> Blocked:
    """Return the first of two limits that depend on the nodes that are chosen, with the terms of both."""
    if one.allows_fewest and not other.allows_fewest:
        one, other = other, one
    return attrs.evolve(
        one,
        counted=one.counted + other.counted,
        least_nodes=max(one.least_nodes, other.least_nodes),
    )

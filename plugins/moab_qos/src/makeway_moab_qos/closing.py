"""Say which nodes a job must leave alone, for the hook; jobs that wait in front included (moab 7.2).

``moab/tasks`` keeps reservations processor by processor by itself. With another selector they are kept
here, in whole nodes: a job that would not end before the reserved job can start leaves its nodes alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, Seconds
from makeway_moab_qos.conditions import feasible_nodes
from makeway_moab_qos.credentials import qos_of, settings_of
from makeway_moab_qos.order import place_in_backfill
from makeway_moab_qos.periods import is_active
from makeway_moab_qos.reservations import closed_nodes as kept_nodes
from makeway_moab_qos.reservations import is_locked, may_use, nodes_of

_POLICY = frozenset(("PolicyLimit", "Deferred", "NegativePriority"))


def closed_nodes(job: Job, before: Sequence[Job], view: ClusterView, now: Seconds) -> NodeBits:
    """Return the nodes that `job` must leave alone."""
    closed = kept_nodes(job, view, now)
    settings = settings_of(view)
    blocked = [other for other in before if other.reason not in _POLICY and other.id != job.id]
    closed |= _outside_reservations(job, view)
    if not blocked or is_locked(job, view, now):
        return closed
    depth = settings.backfill_depth
    if (
        not settings.backfills
        or ("NOBF" in qos_of(job, view).flags)
        or (depth and place_in_backfill(job, blocked[0], view) > depth)
    ):
        return bitmap.full(len(view.cluster.nodes))
    if not settings.memo.get("exact"):
        depth = sum(settings.depths.values())
        for other in blocked[:depth]:
            closed |= _reserved(other, job, view, now)
    return closed


def _outside_reservations(job: Job, view: ClusterView) -> NodeBits:
    """Return the nodes that USERESERVED forbids: all but those of reservations that the job may use."""
    words = [flag for flag in qos_of(job, view).flags if flag.partition(":")[0] == "USERESERVED"]
    if not words:
        return 0
    named = {word.partition(":")[2] for word in words} - {""}
    inside = 0
    for standing in settings_of(view).standing:
        named_so = not named or standing.name in named
        if named_so and may_use(job, standing, view) and is_active(standing, view, view.now):
            inside |= nodes_of(standing, view)
    return bitmap.full(len(view.cluster.nodes)) & ~inside


def _reserved(other: Job, job: Job, view: ClusterView, now: Seconds) -> NodeBits:
    """Return the nodes kept for `other`, if `job` would still be there when it can start."""
    nodes = feasible_nodes(other, view)
    free = nodes & view.idle
    wanted = max(other.size, 1)
    at = now
    for end, _, running in view.releases():
        if free.bit_count() >= wanted:
            break
        free |= running.nodes & nodes
        at = end
    if free.bit_count() < wanted:
        return 0
    if job.time_limit is not None and now + job.time_limit <= at:
        return 0
    taken = bitmap.indices(free)
    return bitmap.of(taken[:wanted])

"""Keep nodes for the jobs they are promised to (moab 3.2 X4, 7.1, 7.2).

Three things close nodes to a job: a standing reservation whose lists do not name it, the lock of a
preemptor that waits for its victims (GUARANTEEDPREEMPTION), and a suspended job of higher priority
(CHECKSUSPENDEDJOBPRIORITY). Beside them a job that waits in front may hold a reservation of its own;
`makeway_moab_qos.promises` does that.
"""

from __future__ import annotations

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import flags, names_of, qos_name, settings_of
from makeway_moab_qos.hosts import matching
from makeway_moab_qos.periods import concerns, is_active, next_change
from makeway_moab_qos.plain import suspended
from makeway_moab_qos.priority import start_priority
from makeway_moab_qos.settings import Standing
from makeway_moab_qos.turns import Turns

_KIND = {"USER": "user", "GROUP": "group", "ACCT": "account", "CLASS": "klass"}


def nodes_of(standing: Standing, view: ClusterView) -> NodeBits:
    """Return the nodes of a standing reservation."""
    memo: dict[str, NodeBits] = settings_of(view).memo.setdefault("standing", {})
    if standing.name not in memo:
        if not standing.hosts:
            memo[standing.name] = bitmap.full(len(view.cluster.nodes))
        else:
            whole = settings_of(view).choices.host_expressions_match_whole
            names = matching(standing.hosts, (node.name for node in view.cluster.nodes), whole=whole)
            found = (view.cluster.node(name) for name in names)
            memo[standing.name] = bitmap.of([node.index for node in found if node is not None])
    return memo[standing.name]


def may_use(job: Job, standing: Standing, view: ClusterView) -> bool:
    """Whether a job may run inside a standing reservation."""
    if not standing.access:
        return True
    own = flags(job, view)
    if "PREEMPTEE" in standing.flags and "PREEMPTEE" in own:
        return True
    names = {**names_of(job), "qos": qos_name(job, view)}
    return any(
        bool(own.intersection(listed)) if kind == "jobattr" else names[kind] in listed
        for kind, listed in standing.access.items()
    )


def owns(job: Job, standing: Standing, view: ClusterView) -> bool:
    """Whether a job belongs to the owner of a standing reservation."""
    kind, _, name = standing.owner.partition(":")
    if kind == "QOS":
        return qos_name(job, view) == name
    return kind in _KIND and names_of(job)[_KIND[kind]] == name


def owner_reservations(job: Job, view: ClusterView) -> list[Standing]:
    """Return the reservations that let a job preempt as their owner (X4)."""
    return [
        each
        for each in settings_of(view).standing
        if each.owner
        and "OWNERPREEMPT" in each.flags
        and owns(job, each, view)
        and is_active(each, view, view.now)
    ]


def next_change_of_any(view: ClusterView, now: Seconds) -> Seconds | None:
    """Return when any standing reservation next begins or ends; None: none does."""
    found = (next_change(each, view, now) for each in settings_of(view).standing)
    return min((at for at in found if at is not None), default=None)


# ------------------------------------------------------------------------------------------ locks
def lock_end(job: Job, view: ClusterView) -> Seconds | None:
    """Return until when a preemptor's nodes are kept for it; None: it has no lock (section 7.1).

    Without GUARANTEEDPREEMPTION they are kept for the instant of the preemption only.
    """
    if job.asked_at is None or not job.asked_nodes or job.state is not JobState.PENDING:
        return None
    settings = settings_of(view)
    guaranteed = settings.guaranteed_preemption and not settings.maui
    return job.asked_at + settings.job_retry_time if guaranteed else job.asked_at


def is_locked(job: Job, view: ClusterView, now: Seconds) -> bool:
    """Whether nodes are kept for `job` now."""
    end = lock_end(job, view)
    return end is not None and (now < end or now == job.asked_at)


def closed_nodes(job: Job, view: ClusterView, now: Seconds) -> NodeBits:
    """Return the nodes that `job` must leave alone, reservations of waiting jobs apart."""
    closed = 0
    settings = settings_of(view)
    named: Turns | None = settings.memo.get("turns")
    waiting = named.askers.values() if named is not None and named.passing else view.pending
    for other in waiting:
        if other.asked_nodes and other.id != job.id and is_locked(other, view, now):
            closed |= other.asked_nodes
    for standing in settings.standing:
        if not may_use(job, standing, view) and concerns(standing, view, now, job.time_limit):
            closed |= nodes_of(standing, view)
    if settings.check_suspended_job_priority and not settings.maui:
        closed |= _under_higher(job, view, now)
    return closed


def _under_higher(job: Job, view: ClusterView, now: Seconds) -> NodeBits:
    """Return the nodes that hold a suspended job of higher priority (7.4)."""
    mine: int | None = None
    closed = 0
    for other in suspended(view):
        if mine is None:
            mine = start_priority(job, view, now)
        if start_priority(other, view, now) > mine:
            closed |= other.nodes
    return closed

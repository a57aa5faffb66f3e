"""Decide as the plugin ``openpbs/sched``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway.bitmap import NodeBits
from makeway.errors import Finding
from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Check,
    Choice,
    Cluster,
    ClusterView,
    Grouping,
    Job,
    Limits,
    Plan,
    PreemptMode,
    QueuedGang,
    QueueOrder,
    Seconds,
    Vocabulary,
)
from makeway_openpbs_sched import actions, admission, calendar, check, explain, order
from makeway_openpbs_sched.resume import Arbiter
from makeway_openpbs_sched.search import search
from makeway_openpbs_sched.settings import Settings
from makeway_openpbs_sched.site import site_of
from makeway_openpbs_sched.translate import TRANSLATOR
from makeway_openpbs_sched.victims import candidates, mode_of

__makeway_vendor__ = "openpbs"


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_dialect() -> Dialect:
    """Speak PBS."""
    return Dialect(vocabulary=VOCABULARY, translator=TRANSLATOR)


@hookimpl
def makeway_check(cluster: Cluster, settings: Mapping[type[Any], Any]) -> list[Finding]:
    """Find what OpenPBS would refuse, or does unexpectedly."""
    return check.findings(cluster, settings[Settings])


@hookimpl
def makeway_displaces_by() -> Grouping:
    """Let tables of preemptions be grouped by queue."""
    return Grouping("queue")


@hookimpl
def makeway_gang() -> QueuedGang:
    """Build the arbiter by which suspended jobs go on."""
    return Arbiter()


class ByValue(QueueOrder):
    """Orders waiting and suspended jobs by preemption value."""

    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Order all of them."""
        return order.in_order(pending, view, view.now, site_of(view))


@hookimpl
def makeway_queue() -> QueueOrder:
    """Order by preemption value."""
    return ByValue()


class PbsLimits(Limits):
    """Hard limits, dedicated time, the calendar."""

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Keep out what would break a hard limit, or run into dedicated time."""
        return admission.blocked(job, view, view.now, site_of(view))

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Keep vnodes for preempted jobs in the calendar."""
        return calendar.closed(job, view, view.now, site_of(view))


@hookimpl
def makeway_limits() -> Limits:
    """Keep to the limits of the site."""
    return PbsLimits()


@hookimpl
def makeway_preempt_candidates(preemptor: Job, view: ClusterView, now: Seconds) -> Candidates:
    """Name running jobs of lower value, lowest value and most recent start first."""
    site = site_of(view)
    if admission.incurable(preemptor, now, site):
        return Candidates(note="no preemption can cure what blocks it")
    return candidates(preemptor, view, now, site)


@hookimpl
def makeway_search(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: Seconds
) -> Choice | Blocked:
    """Take, cull by what blocks, let off from the back."""
    return search(attempt, candidates, view, now, site_of(view))


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView, now: Seconds) -> list[PreemptMode]:
    """Say what the first usable letter of each would do."""
    site = site_of(view)
    return [mode_of(job, now, site) for job in jobs]


@hookimpl
def makeway_preempt_action(victims: Sequence[Job], view: ClusterView, now: Seconds) -> list[Plan]:
    """Go through the letters of each."""
    return actions.plans(victims, now, site_of(view))


@hookimpl
def makeway_explain(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    """Go through what a preemption takes."""
    return explain.checks(job, view, now, site_of(view))


VOCABULARY = Vocabulary(
    states={
        "PENDING": "Q",
        "PENDING and held": "H",
        "RUNNING": "R",
        "SUSPENDED": "S",
        "COMPLETING": "E",
        "COMPLETED": "F",
        "CANCELLED": "F (deleted)",
        "PREEMPTED": "F (deleted to make way)",
        "TIMEOUT": "F (over its walltime)",
        "NODE_FAIL": "F (vnode failed)",
        "FAILED": "F (refused or failed)",
    },
    reasons={"Priority": "not looked at yet"},
    nouns={"partition": "queue", "node": "vnode"},
)
"""PBS's letters for the states of jobs; words beside them are ours."""

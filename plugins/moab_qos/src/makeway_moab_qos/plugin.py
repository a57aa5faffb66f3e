"""Decide as the plugin ``moab/qos``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

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
    Commands,
    Gang,
    Grouping,
    Job,
    Limits,
    Plan,
    PreemptMode,
    QueueOrder,
    Seconds,
    Turns,
)
from makeway_moab_qos import (
    actions,
    adoption,
    check,
    closing,
    credentials,
    explain,
    expressions,
    limits,
    manual,
    order,
    resume,
    status,
    turns,
    victims,
)
from makeway_moab_qos.settings import Settings
from makeway_moab_qos.translate import TRANSLATOR
from makeway_moab_qos.vocabulary import WORDS

__makeway_vendor__ = "moab"


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_dialect() -> Dialect:
    """Speak Moab, and show the queue as showq does."""
    return Dialect(vocabulary=attrs.evolve(WORDS, status=status.SHOWQ), translator=TRANSLATOR)


@hookimpl
def makeway_check(cluster: Cluster, settings: Mapping[type[Any], Any]) -> list[Finding]:
    """Find slips of the configuration (K21) and methods that the resource manager lacks."""
    return check.findings(cluster, settings[Settings])


@hookimpl
def makeway_displaces_by(view: ClusterView) -> Grouping | None:
    """Let tables of preemptions be grouped by QoS, where there are any."""
    return credentials.displaces_by(view)


@hookimpl
def makeway_gang(view: ClusterView) -> Gang | None:
    """Resume who was suspended."""
    return resume.arbiter(view)


class ByPriority(QueueOrder):
    """Orders the queue by computed priority."""

    def __init__(self, view: ClusterView) -> None:
        """Know the cluster."""
        self._view = view

    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Order all of it."""
        return order.in_order(pending, view, view.now)

    def turns(self) -> Turns | None:
        """Name one job after the other, where priorities that grow are all that counts."""
        return turns.turns(self._view)


@hookimpl
def makeway_queue(view: ClusterView) -> QueueOrder:
    """Order the queue by computed priority."""
    return ByPriority(view)


class MoabLimits(Limits):
    """Limits of users and classes, deferred jobs, reservations, wall-clock violations."""

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Keep out what is beyond a limit or deferred."""
        return limits.kept_out(job, view, view.now)

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Keep nodes for reservations, locks, and jobs that wait in front."""
        return closing.closed_nodes(job, before, view, view.now)

    def past_time_limit(self, job: Job, view: ClusterView) -> Plan | None:
        """Preempt a job over its limit, if WCVIOLATIONACTION says so."""
        return actions.past_time_limit(job, view)

    def marks(self, view: ClusterView) -> Mapping[str, frozenset[str]]:
        """Mark jobs that backfill started."""
        return order.marks(view, view.now)

    def save(self, view: ClusterView) -> dict[str, Any] | None:
        """Save usage, frozen priorities and reservations."""
        return adoption.save(view)

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Go on with them."""
        adoption.restore(memory, view)


@hookimpl
def makeway_limits() -> Limits:
    """Keep to the limits of the site."""
    return MoabLimits()


@hookimpl
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Candidates:
    """Name the preemptees of lower priority, cheapest per processor first."""
    return victims.candidates(preemptor, active, view, now)


@hookimpl
def makeway_search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | Blocked:
    """Take them one by one until the job fits; no other search has a say."""
    return victims.search(attempt, candidates, view) or Blocked()


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Say how each job would make way."""
    return [actions.method(job, view).mode for job in jobs]


@hookimpl
def makeway_preempt_action(
    victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView
) -> list[Plan]:
    """Suspend, checkpoint, requeue or cancel."""
    return actions.plans(victims, modes, view)


@hookimpl
def makeway_commands() -> Commands:
    """Find which jobs an expression means, and refuse what a user may not do."""
    return Commands(names=expressions.jobs_named, refuses=manual.refusal)


@hookimpl
def makeway_explain(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    """Go through the check list."""
    return explain.checks(job, view, now)

"""Preempt by QoS as Moab and Maui do (``moab/qos``), from a site's own moab.cfg.

A waiting job whose QoS is PREEMPTOR displaces running jobs marked PREEMPTEE of lower priority, the cheapest
per freed processor first; PREEMPTPOLICY says how they make way, and escalates where a job cannot make way
like that. Spec: moab. Profile ``moab`` is what Moab documents, profile ``maui`` what Maui 3.3.1 does.

============== ==============================================================
module         what it owns
============== ==============================================================
grammar        a moab.cfg taken apart; `times`: its values (section 9)
reader         the file becomes a configuration, `records` what it says of
               reservations and nodes; `parameters`: what is read (section 10)
settings       what was read, and what the documents leave open (15.1)
credentials    a job's QoS and flags (1, 3.3); `limits`: soft and hard (X2)
priority       start and run priority (4.2, 8)
order          the queue; marks of backfilled jobs (7.3)
turns          who is tried next, without ordering the whole queue; `streams`
               keeps it for that, and `plain` says for which jobs only room decides
conditions     which jobs may preempt which: conditions, context, guards (sections 3 and 6)
preemptees     how those stand that may be displaced
victims        order of the candidates and search (section 4)
actions        PREEMPTPOLICY and escalation (section 5); `capabilities` (section 13)
reservations   nodes kept for owners, locks (3.2 X4, 7.1); `periods`
fairshare      usage and targets (3.2 X3, 8.1)
adoption       what is handed over to another engine
resume         who was suspended goes on (7.4)
manual         what people may do (section 11); `expressions`: which jobs they mean
explain        the check list (section 12), by questions about jobs and settings
check          the same before anything runs
vocabulary     names; `status`: what ``showq`` prints (12.2)
closing        nodes that a job must leave alone (7.2)
recordings     what Maui itself did, for ``makeway verify``, and
               `recorded_commands`: what people typed
tasks          the selector ``moab/tasks``
============== ==============================================================
"""

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
    recordings,
    resume,
    status,
    turns,
    victims,
)
from makeway_moab_qos.reader import MoabReader
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
    """Read moab.cfg and maui.cfg, and recordings of Maui; speak Moab, and show the queue as showq does."""
    return Dialect(
        configs=[MoabReader()],
        recordings=[recordings.MauiRecordings()],
        vocabulary=attrs.evolve(WORDS, status=status.SHOWQ),
        translator=TRANSLATOR,
    )


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

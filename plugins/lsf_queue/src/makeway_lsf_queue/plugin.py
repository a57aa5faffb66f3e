"""Decide as the plugin ``lsf/queue``."""

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
    Gang,
    Grouping,
    Job,
    Limits,
    NodeSets,
    Plan,
    PreemptMode,
    QueueOrder,
    Seconds,
)
from makeway_lsf_queue import (
    actions,
    admission,
    asking,
    check,
    explain,
    opening,
    ordering,
    pacing,
    reserve,
    status,
    vain,
)
from makeway_lsf_queue.alike import alike
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.fairshare import Fairness
from makeway_lsf_queue.resume import Arbiter
from makeway_lsf_queue.search import search
from makeway_lsf_queue.settings import Settings
from makeway_lsf_queue.translate import TRANSLATOR
from makeway_lsf_queue.victims import candidates, mode_of
from makeway_lsf_queue.vocabulary import WORDS

__makeway_vendor__ = "lsf"


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_dialect() -> Dialect:
    """Speak LSF, and show the queue as bjobs does."""
    return Dialect(
        vocabulary=attrs.evolve(WORDS, status=status.BJOBS),
        translator=TRANSLATOR,
        asked=asking.asked,
        unheard=asking.unheard,
    )


@hookimpl
def makeway_check(cluster: Cluster, settings: Mapping[type[Any], Any]) -> list[Finding]:
    """Find what the daemons would warn of, and what hardly means what it seems to."""
    return check.findings(cluster, settings[Settings])


@hookimpl
def makeway_displaces_by() -> Grouping:
    """Let tables of preemptions be grouped by queue."""
    return Grouping("queue")


@hookimpl
def makeway_gang(view: ClusterView) -> Gang:
    """Build the arbiter that resumes."""
    return Arbiter(view)


class ByShares(QueueOrder):
    """Names the next job by the shares of users, where a queue has FAIRSHARE (9.3)."""

    def heads(self, tried: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Name it."""
        return view.book(Fairness).next(tried, view)


@hookimpl
def makeway_queue(view: ClusterView) -> QueueOrder | None:
    """Order by shares, if any queue has FAIRSHARE."""
    return ByShares() if site_of(view).has_shares else None


class LsfLimits(Limits):
    """Job slot limits, windows, reserved slots, hosts in order."""

    in_sets = staticmethod(ordering.is_ordered)

    def __init__(self, view: ClusterView) -> None:
        """Promise what the site's configuration allows."""
        self._site = site_of(view)
        self.by_request = alike(view)
        self.marked_until = opening.marked_until(self._site)
        self.inadmissible = vain.inadmissible(view)

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Keep a job out that would break a job slot limit, or whose window is closed."""
        return admission.blocked(job, view)

    def marks(self, view: ClusterView) -> Mapping[str, frozenset[str]]:
        """Mark jobs that wait for their run window to open."""
        return opening.marks(self._site, view)

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Close hosts that are full by a limit, reserved, or have just been given a job."""
        site, closed = self._site, admission.full_hosts(job, view)
        if site.paces:
            closed |= pacing.closed(site, job, view)
        return (
            closed | reserve.kept_from(job, before, view, view.now) if site.has_reserving_queues else closed
        )

    def node_sets(self, job: Job, nodes: NodeBits, view: ClusterView) -> NodeSets | None:
        """Place jobs on the hosts that HOSTS of their queue prefers, and in the order of RES_REQ (9.3)."""
        return ordering.node_sets(job, nodes, view)


@hookimpl
def makeway_limits(view: ClusterView) -> Limits:
    """Keep to the limits of the site."""
    return LsfLimits(view)


@hookimpl
def makeway_preempt_candidates(preemptor: Job, view: ClusterView, now: Seconds) -> Candidates:
    """Name the jobs of queues that may be preempted from here, in LSF's order."""
    return candidates(preemptor, view, now)


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Say how each job would make way."""
    site = site_of(view)
    return [mode_of(job, site) for job in jobs]


@hookimpl
def makeway_search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | Blocked:
    """Walk, then give back; no other search has a say."""
    return search(attempt, candidates, view) or Blocked()


@hookimpl
def makeway_explain(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    """Name each limit with its count, and what else keeps a job from preempting."""
    return explain.checks(job, view, now)


@hookimpl
def makeway_preempt_action(
    victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView
) -> list[Plan]:
    """Suspend, requeue or kill, at once."""
    return actions.plans(victims, modes, site_of(view))

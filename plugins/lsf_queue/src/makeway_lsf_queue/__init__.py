"""Preempt by queue, as IBM Spectrum LSF does it (``lsf/queue``).

Queues say in their PREEMPTION line whose jobs they may take, and which queues may take their own. A queue of
higher PRIORITY then suspends running jobs of lower ones, from the least loaded host or in an order of
preference. Victims go on as soon as their slots are free. Spec lsf; what the documentation leaves open is an
option of `settings.Settings`.

=============== =========================================================================
module          what it owns
=============== =========================================================================
settings        the tables beside lsb.queues, options for what is not documented
values, windows single values, time windows (4.1, 9.2)
preemption_line the PREEMPTION line (2.1)
shares          FAIRSHARE of a queue, read; fairshare: who is next by it
requirement     RES_REQ, read; asking: of a job, put into fields; ordering: in which order of hosts (9.3)
controls        JOB_CONTROLS, TERMINATE_WHEN: how victims make way (6.1)
site            all of it compiled: which queues may preempt which, in which order (2.2, 3.2)
jobs, slots     what is asked of jobs and hosts; survey: of all active jobs at once
protection      vetoes (section 4)
victims         the candidates, in which order (3.3, 3.5, 5.3)
search          which of them: the walk, MINI_JOB, OPTIMAL_MINI_JOB (3.4)
limits, groups  job slot limits (section 5); counting: how much they hold; judging: who is kept out by them
resources       shared resources, memory (section 8)
gaps            the slots of suspended jobs (5.3)
admission       what keeps pending and suspended jobs out; opening: windows of queues (6.1, 9.3)
alike, vain     who is answered by what it asks for, and nothing else; who would be tried in vain
presence        which active jobs changed; capacity: the slots that jobs could get if all others made way
pacing          hosts that have just been given a job (9.3)
reserve         slot reservation and backfill (section 7)
actions, resume making way, going on, migrating (section 6)
vocabulary      names and numbers (section 10); explain: what ``makeway explain`` goes through
status          what ``bjobs`` prints
check           what ``makeway check`` finds
translate       tiers and modes of other schedulers, and back
reader          lsb.queues and the files beside it (section 9)
=============== =========================================================================
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
from makeway_lsf_queue.reader.files import LsbQueuesReader
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
    """Read lsb.queues, and what lies beside it; speak LSF, and show the queue as bjobs does."""
    return Dialect(
        configs=[LsbQueuesReader()],
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
        return closed | reserve.kept_from(job, before, view, view.now) if site.anybody_reserves else closed

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

"""Decide as the plugin ``kueue/cohort``."""

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
    Placement,
    Plan,
    PreemptMode,
    QueueOrder,
    Signal,
)
from makeway_kueue_cohort import check, explain, requests
from makeway_kueue_cohort.settings import Settings
from makeway_kueue_cohort.translate import TRANSLATOR
from makeway_kueue_cohort.turns import candidates, mode_of, turns_of
from makeway_kueue_cohort.vocabulary import WORDS
from makeway_kueue_cohort.yard import yard_of

__makeway_vendor__ = "kueue"


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_dialect() -> Dialect:
    """Speak Kueue."""
    return Dialect(vocabulary=WORDS, translator=TRANSLATOR)


@hookimpl
def makeway_check(config: Any, cluster: Cluster, settings: Mapping[type[Any], Any]) -> list[Finding]:
    """Find what hardly means what it seems to."""
    return check.findings(config, cluster, settings[Settings])


@hookimpl
def makeway_displaces_by(view: ClusterView) -> Grouping:
    """Let tables of preemptions be grouped by ClusterQueue."""
    settings = view.settings(Settings)
    return Grouping("ClusterQueue", lambda job: requests.queue_of(job, settings) or "(none)")


class Heads(QueueOrder):
    """Names the next head of all queues (7.1, 7.2)."""

    def heads(self, tried: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Name it."""
        return turns_of(view).next(tried)


@hookimpl
def makeway_queue() -> QueueOrder:
    """Try the heads of queues, one after the other."""
    return Heads()


class Quotas(Limits):
    """Keeps jobs out whose quota is not there."""

    def validate(self, job: Job, view: ClusterView) -> str:
        """Refuse jobs that name no queue of the site."""
        return "" if yard_of(view).asking(job) is not None else self._no_queue(job, view)

    @staticmethod
    def _no_queue(job: Job, view: ClusterView) -> str:
        name = requests.queue_of(job, view.settings(Settings))
        return f"there is no ClusterQueue or LocalQueue named {name!r}"

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Keep a job out whose quota is not there."""
        turns = turns_of(view)
        asking = turns.yard.asking(job)
        if asking is None:
            return Blocked(reason="NoSuchQueue", detail=self._no_queue(job, view), never=True)
        return turns.limit(asking, view.made_way)

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Close nodes of other flavors than those chosen."""
        yard = yard_of(view)
        if not yard.splits:
            return 0
        plan = yard.plans.get(job.id)
        everything = (1 << len(view.cluster.nodes)) - 1
        return everything & ~yard.flavored(plan) if plan is not None else 0

    def save(self, view: ClusterView) -> dict[str, Any] | None:
        """Save which flavors jobs hold, and for which quota is kept until their victims have gone."""
        yard, claims = yard_of(view), turns_of(view).claims
        held = {name: _listed(yard.plans[name].uses) for name in yard.jobs if name in yard.plans}
        kept = {name: [_listed(claim.plan.uses), list(claim.victims)] for name, claim in claims.items()}
        return {"held": held, "kept": kept} if held or kept else None

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Let jobs hold the same flavors."""
        yard = yard_of(view)
        for name, uses in memory["held"].items():
            job = view.job(name)
            if job is not None:
                yard.recount(job, {(flavor, resource): amount for flavor, resource, amount in uses})
        for name, (uses, victims) in memory["kept"].items():
            job = view.job(name)
            if job is not None:
                kept = {(flavor, resource): amount for flavor, resource, amount in uses}
                turns_of(view).keep(job, kept, tuple(victims))


def _listed(uses: Mapping[tuple[str, str], int]) -> list[list[Any]]:
    return [[*pair, amount] for pair, amount in uses.items()]


@hookimpl
def makeway_limits(view: ClusterView) -> Limits:
    """Keep to quotas."""
    return Quotas()


@hookimpl
def makeway_preempt_candidates(preemptor: Job, view: ClusterView) -> Candidates:
    """Name those who have to leave: Kueue's own search, on quota alone."""
    return candidates(preemptor, view)


@hookimpl
def makeway_search(attempt: Attempt, candidates: Candidates) -> Choice | Blocked:
    """Take them all: they were chosen together."""
    for job, mode in zip(candidates.jobs, candidates.modes, strict=True):
        attempt.remove(job, mode)
    found = attempt.probe()
    if isinstance(found, Blocked):
        return found
    return chosen(found, candidates)


def chosen(placement: Placement, candidates: Candidates) -> Choice:
    """Return all candidates as victims, each with its reason."""
    return Choice(
        placement=placement,
        victims=tuple(range(len(candidates.jobs))),
        reasons=candidates.reasons,
        method="by quota: taken until it fits, then given back",
        considered=len(candidates.jobs),
    )


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job]) -> list[PreemptMode]:
    """Requeue all jobs (8.2)."""
    return [mode_of(job) for job in jobs]


@hookimpl
def makeway_preempt_action(
    preemptor: Job | None, victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView
) -> list[Plan]:
    """Delete the pods, with their own grace time (8.3)."""
    grace = view.settings(Settings).grace_time
    if preemptor is not None:
        turns_of(view).told(preemptor, victims)
    notice = (Signal(name="TERM"),) if grace else ()
    return [
        Plan(job=job, mode=mode, notice=notice, grace_time=grace)
        for job, mode in zip(victims, modes, strict=True)
    ]


@hookimpl
def makeway_explain(job: Job, view: ClusterView) -> list[Check]:
    """Go through quota, policies and candidates."""
    return explain.checks(job, view)

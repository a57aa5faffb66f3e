"""Name which jobs one may preempt, in the order in which they are taken (sections 2.5, 2.6, 3.3 and 3.5)."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Candidates, ClusterView, Job, PreemptMode, Seconds
from makeway_openpbs_sched.actions import letter_and_refusals
from makeway_openpbs_sched.letters import MODES
from makeway_openpbs_sched.requests import request_of
from makeway_openpbs_sched.room import capacity
from makeway_openpbs_sched.settings import MIN_TIME, Unsorted
from makeway_openpbs_sched.site import Site, running, started, usage_of

ROUNDS = 5
"""Times that victims are handed over for one preemptor (section 1.10)."""


def candidates(preemptor: Job, view: ClusterView, now: Seconds, site: Site) -> Candidates:
    """Return which jobs `preemptor` may preempt, lowest value and most recent start first."""
    on, changes = site.is_on(preemptor, now)
    if not on:
        return _none("preemptive_sched is off now", changes)
    settings = site.settings
    attempts = settings.preempt_attempts
    if attempts is not None and view.searches >= attempts:
        text = f"preempt_attempts: {attempts} searches were made in this cycle"
        return _none(text, now + settings.scheduler_iteration)
    if "aoe" in preemptor.spec.attributes:
        return _none("it asks for provisioning (aoe), and such jobs preempt no other")
    usage = usage_of(site, view)
    value, level = site.value_and_level(preemptor, usage, now)
    pool = running(view.active)
    values = {job.id: site.value(job, usage, now) for job in pool}
    again = _starves_at(preemptor, now, site)
    if not site.beneath(preemptor, value, values):
        return _none(f"its preemption value is {value} ({level}), and no running job is beneath", again)
    protected: dict[str, str] = {}
    kept: list[Job] = []
    for job in pool:
        reason = _safe(job, preemptor, values[job.id], value, view, now, site)
        if reason:
            protected[job.id] = reason
        else:
            kept.append(job)
    kept = _in_order(kept, values, now, site)
    if any(reason.startswith(_NO_LETTER) for reason in protected.values()):
        again = min(again or now + settings.scheduler_iteration, now + settings.scheduler_iteration)
    return Candidates(
        jobs=tuple(kept),
        modes=tuple(mode_of(job, now, site) for job in kept),
        protected=protected,
        note=f"preemption value {value} ({level})",
        ask_again_at=again,
        rounds=ROUNDS,
    )


def _none(note: str, again: Seconds | None = None) -> Candidates:
    return Candidates(note=note, ask_again_at=again)


def _starves_at(job: Job, now: Seconds, site: Site) -> Seconds | None:
    """Return when a waiting job begins to starve; None: never, or it does already."""
    settings = site.settings
    if not settings.help_starving_jobs or "starving" not in settings.preempt_prio:
        return None
    at = job.eligible_at + settings.max_starve + 1.0  # it has to have waited longer
    return at if at > now else None


_NO_LETTER = "no usable letter"


def _safe(
    job: Job, preemptor: Job, value: int, over: int, view: ClusterView, now: Seconds, site: Site
) -> str:
    """Say why a running job cannot be a victim (section 3.3); empty: it can."""
    if job.spec.reservation is not None:
        return "it runs in a reservation"
    if "provisioning" in job.spec.flags:
        return "its vnodes are being provisioned"
    wanted = site.targets(preemptor)
    if wanted is not None and not wanted.fit(job):
        return "preempt_targets of the preemptor leave it out"
    if value >= over:
        return f"its preemption value, {value}, is not below {over}"
    if not site.usable(job, now):
        group = site.group(job, now)
        return f"{_NO_LETTER}: preempt_order has {group or 'none'} for its share of time left"
    if job.nodes & ~view.up:
        return "one of its vnodes is down or offline"
    if not _could_hold(job, preemptor, view):
        return "none of its vnodes could ever hold a chunk of the preemptor"
    if preemptor.allocation is not None and not job.nodes & preemptor.nodes:
        return "it shares no vnode with the preemptor, which goes on where it was"
    return ""


def _could_hold(job: Job, preemptor: Job, view: ClusterView) -> bool:
    """Whether on one of the job's vnodes a chunk of the preemptor would fit if no other job were there (f)."""
    asked = request_of(preemptor)
    held = job.allocation
    for index in held.node_indices if held is not None else ():
        total = capacity(view.cluster.nodes[index])
        if all(
            asked.chunk.get(name, 0.0) + asked.per_vnode.get(name, 0.0) <= total.get(name, 0.0)
            for name in (*asked.chunk, *asked.per_vnode)
        ):
            return True
    return False


def _in_order(jobs: Sequence[Job], values: dict[str, int], now: Seconds, site: Site) -> list[Job]:
    """Sort victims (sections 1.6 and 3.5 no. 2); ties by submission, then id."""
    settings = site.settings
    if settings.preempt_sort == MIN_TIME:
        return sorted(jobs, key=lambda job: (values[job.id], -started(job, now), job.index))
    if settings.unsorted is Unsorted.SOURCE:
        return sorted(jobs, key=lambda job: (values[job.id], job.index))
    return sorted(jobs, key=lambda job: (values[job.id], started(job, now), job.index))


def mode_of(job: Job, now: Seconds, site: Site) -> PreemptMode:
    """Return what the first usable letter does to `job`; off where none is.

    Where it is refused and a suspension follows, that frees less than the letter would have: it is counted on.
    """
    letters = site.usable(job, now)
    if letters and letter_and_refusals(job, now, site)[0] == "S":
        return MODES["S"]
    return MODES[letters[0]] if letters else PreemptMode.OFF

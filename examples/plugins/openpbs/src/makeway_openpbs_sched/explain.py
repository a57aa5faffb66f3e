"""Say in ``makeway explain`` what a preemption would take, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Check, ClusterView, Job, Seconds
from makeway_openpbs_sched import admission
from makeway_openpbs_sched.settings import PATH
from makeway_openpbs_sched.site import Site, running, usage_of


def checks(job: Job, view: ClusterView, now: Seconds, site: Site) -> list[Check]:
    """Return the check list for a job that waits, up to the first step that fails."""
    found: list[Check] = []
    for check in (_on(job, now, site), _curable(job, view, now, site), *_standing(job, view, now, site)):
        found.append(check)
        if check.verdict == "fail":
            break
    return found


def _check(code: str, good: bool, question: str, found: str, setting: str) -> Check:
    verdict = "pass" if good else "fail"
    return Check(code=code, verdict=verdict, question=question, found=found, setting=f"{PATH}.{setting}")


def _on(job: Job, now: Seconds, site: Site) -> Check:
    on, changes = site.is_on(job, now)
    until = f", until {changes:g} s" if changes is not None else ""
    return _check("B01", on, "is preemption on?", ("yes" if on else "no") + until, "preemptive_sched")


def _curable(job: Job, view: ClusterView, now: Seconds, site: Site) -> Check:
    good = not admission.incurable(job, now, site)
    blocked = admission.blocked(job, view, now, site)
    text = "yes" if good else f"no: {blocked.reason if blocked else ''}; {blocked.detail if blocked else ''}"
    return _check("B02", good, "could the end of running jobs cure what blocks it?", text, "dedicated_time")


def _standing(job: Job, view: ClusterView, now: Seconds, site: Site) -> Sequence[Check]:
    usage = usage_of(site, view)
    value, level = site.value_and_level(job, usage, now)
    pool = running(view.active)
    values = {other.id: site.value(other, usage, now) for other in pool}
    lower = [other for other in pool if values[other.id] < value]
    span = f"; those who run have {min(values.values())} to {max(values.values())}" if values else ""
    beneath = site.beneath(job, value, values)
    found = [
        Check(
            code="B03",
            verdict="pass",
            question="what is its preemption value?",
            found=f"{value} ({level}){span}",
        ),
        _check(
            "B04", beneath, "does any job of lower value run?", f"{len(lower)} of {len(pool)}", "preempt_prio"
        ),
    ]
    wanted = site.targets(job)
    if wanted is not None:
        fit = [other for other in lower if wanted.fit(other)]
        text = f"{len(fit)} of those"
        found.append(
            _check("B05", bool(fit), "do its preempt_targets fit any?", text, "preempt_targets_enable")
        )
        lower = fit
    usable = [other for other in lower if site.usable(other, now)]
    text = f"{len(usable)} of those"
    found.append(
        _check("B06", bool(usable), "has preempt_order a usable letter for any?", text, "preempt_order")
    )
    attempts = site.settings.preempt_attempts
    if attempts is not None:
        text = f"{view.searches} of {attempts} were made"
        good = view.searches < attempts
        found.append(_check("B07", good, "were searches left in the cycle?", text, "preempt_attempts"))
    return found

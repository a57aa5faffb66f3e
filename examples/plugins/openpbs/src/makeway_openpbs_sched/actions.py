"""Plan how victims make way: each goes through the letters of its group (sections 4.1 to 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Job, Plan, PreemptMode, Seconds
from makeway_openpbs_sched.letters import MODES
from makeway_openpbs_sched.site import Site

_DONE = {"S": "suspended", "C": "checkpointed and requeued", "R": "requeued", "D": "deleted"}
SUBJOB = "SUBJOB"
"""Flag of a single subjob of an array."""


def plans(victims: Sequence[Job], now: Seconds, site: Site) -> list[Plan]:
    """Return one plan per victim: its first letter that works; one for which none works fails."""
    return [_plan(job, now, site) for job in victims]


def letter_and_refusals(job: Job, now: Seconds, site: Site) -> tuple[str, list[str]]:
    """Return the letter by which `job` makes way, empty if none works, and why those before it do not."""
    refused: list[str] = []
    for letter in site.group(job, now):
        why = _refusal(job, letter, site)
        if not why:
            return letter, refused
        refused.append(f"{letter} refused: {why}")
    return "", refused


def _plan(job: Job, now: Seconds, site: Site) -> Plan:
    letter, refused = letter_and_refusals(job, now, site)
    group = site.group(job, now)
    cause = f"preempt_order {group}" if group else "preempt_order has no letter for its share of time left"
    if not letter:
        mode = MODES[group[0]] if group else PreemptMode.OFF
        return Plan(job=job, mode=mode, why="; ".join([*refused, cause]), fails=True)
    return Plan(job=job, mode=MODES[letter], why="; ".join([*refused, f"{_DONE[letter]} ({cause})"]))


def _refusal(job: Job, letter: str, site: Site) -> str:
    """Say why the server or the node refuses a letter; empty: it works."""
    attributes = job.spec.attributes
    if letter in "SC" and "eoe" in attributes:
        return "it asks for a power profile (eoe)"
    if letter == "C":
        if attributes.get("Checkpoint") == "n":
            return "Checkpoint = n"
        if SUBJOB in job.spec.flags:
            return "it is a subjob of an array"
        if not site.settings.checkpoint_abort:
            return "there is no checkpoint_abort script"
    if letter == "R" and not job.requeueable:
        return "Rerunable = n"
    return ""

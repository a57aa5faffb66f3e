"""Preempt policies that are broken on purpose, one way each, as somebody might write them."""

from __future__ import annotations

_HEAD = """\
import datetime, os, random, time
from makeway.hookspecs import hookimpl
from makeway.model import *

SEEN = []

def lower(preemptor, active):
    tier = preemptor.partition.priority_tier
    return [job for job in active if job.partition.priority_tier < tier]

def named(jobs, mode=PreemptMode.REQUEUE):
    return Candidates(jobs=tuple(jobs), modes=(mode,) * len(jobs))

"""


def _candidates(*body: str, arguments: str = "preemptor, active, view, now") -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"{_HEAD}@hookimpl\ndef makeway_preempt_candidates({arguments}):\n{lines}\n"


_PLAIN = _candidates("return named(sorted(lower(preemptor, active), key=lambda job: job.index))")
_ACTION = "\n@hookimpl\ndef makeway_preempt_action(preemptor, victims, modes, view, now):\n    return "

BROKEN: dict[str, tuple[str, str]] = {
    "names no job: the tiers are compared the wrong way round by name": (
        _candidates("return named([j for j in active if j.partition.name == 'lowest'])"),
        "not put to the test: makeway_preempt_candidates: it never named a candidate",
    ),
    "has no opinion, as it forgot to return": (
        _candidates("named(lower(preemptor, active))"),
        "not put to the test: makeway_preempt_candidates: it never named a candidate",
    ),
    "lets any job displace any other": (
        _candidates("return named(sorted(active, key=lambda job: job.index))"),
        "jobs displace one another for ever",
    ),
    "lets the younger displace the older by submission": (
        _candidates("return named([j for j in active if j.submit_at < preemptor.submit_at])"),
        "jobs displace one another for ever",
    ),
    "sorts by the computer's clock": (
        _candidates(
            "jobs = sorted(lower(preemptor, active), key=lambda job: job.index)",
            "return named(jobs[::-1] if int(time.time() // 86400) % 2 else jobs)",
        ),
        "another time of the computer's clock",
    ),
    "displaces by day of the week only": (
        _candidates("return named(lower(preemptor, active) if datetime.date.today().weekday() < 3 else [])"),
        "another time of the computer's clock",
    ),
    "leaves the order to chance": (
        _candidates("jobs = lower(preemptor, active)", "random.shuffle(jobs)", "return named(jobs)"),
        "must depend on its arguments only",
    ),
    "keeps jobs in a set": (
        _candidates(
            "ids = {job.id for job in lower(preemptor, active)}", "return named([view.job(i) for i in ids])"
        ),
        "sets of jobs or of their ids come in another order",
    ),
    "sorts by place in memory": (
        _candidates("return named(sorted(lower(preemptor, active), key=id))"),
        "decides otherwise",
    ),
    "remembers which jobs it named, from run to run": (
        _candidates(
            "jobs = [j for j in lower(preemptor, active) if (j.id, j.started_at) not in SEEN]",
            "if len(SEEN) < 8: SEEN.extend((j.id, j.started_at) for j in jobs)",
            "return named(jobs)",
        ),
        "decides otherwise when the same scene is played again",
    ),
    "counts its calls": (
        _candidates("SEEN.append(1)", "return named(lower(preemptor, active)[: 1 + len(SEEN) // 40])"),
        "decides otherwise when the same scene is played again",
    ),
    "reads a file in every call": (
        _candidates("open(os.devnull).close()", "return named(lower(preemptor, active))"),
        "reaches out of the run: open",
    ),
    "compares every job with every other": (
        _candidates(
            "jobs = lower(preemptor, active)",
            "return named(sorted(jobs, key=lambda j: (sum(o.user == j.user for o in jobs), j.index)))",
        ),
        "times as long with 4 times the jobs",
    ),
    "never comes to an end where licences are involved": (
        _candidates("while preemptor.spec.licenses: pass", "return named(lower(preemptor, active))"),
        "did not end within",
    ),
    "takes a time limit for granted": (
        _candidates("return named(sorted(lower(preemptor, active), key=lambda j: j.end_at - now))"),
        "raised TypeError",
    ),
    "takes a QOS for granted": (
        _candidates("return named([j for j in lower(preemptor, active) if j.qos.priority < 50])"),
        "raised AttributeError",
    ),
    "plans in an order of its own": (
        _PLAIN
        + _ACTION
        + "[Plan(job=v, mode=PreemptMode.REQUEUE) for v in sorted(victims, key=lambda v: v.size)][:1]",
        "not one per victim",
    ),
    "gives no grace but a negative one": (
        _PLAIN
        + _ACTION
        + "[Plan(job=v, mode=m, grace_time=v.ran_until(now) - 60) for v, m in zip(victims, modes)]",
        "planned a grace_time of -",
    ),
    "lets higher tiers make way for lower ones": (
        _candidates(
            "tier = preemptor.partition.priority_tier",
            "return named([j for j in active if j.partition.priority_tier > tier])",
        ),
        "",
    ),
    "names the longest-running first where it meant the shortest": (
        _candidates("return named(sorted(lower(preemptor, active), key=lambda j: (j.started_at, j.index)))"),
        "",
    ),
}
"""What is wrong -> the source, and a part of what is said about it; empty: nothing shows that it is not meant so."""

"""Hold what the check list looks at, and its questions (moab 12.1)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.model import Check, ClusterView, Job, Seconds
from makeway_moab_qos.conditions import Right, Verdicts, feasible_nodes, judge, right_of
from makeway_moab_qos.credentials import flags, settings_of
from makeway_moab_qos.settings import Settings

PASS, FAIL, WARNING = "pass", "fail", "warning"
_SHOWN = 5


@attrs.frozen(kw_only=True)
class Case:
    """One job that waits, and what can be seen."""

    job: Job
    view: ClusterView
    now: Seconds
    settings: Settings
    right: Right
    verdicts: Verdicts
    near: Sequence[Job]
    """Active jobs on feasible nodes."""
    preemptees: Sequence[Job]
    """Those of them that carry PREEMPTEE."""


def case_of(job: Job, view: ClusterView, now: Seconds) -> Case:
    """Look at a job and its surroundings."""
    nodes = feasible_nodes(job, view)
    near = [other for other in view.active if other.nodes & nodes]
    return Case(
        job=job,
        view=view,
        now=now,
        settings=settings_of(view),
        right=right_of(job, view, now),
        verdicts=judge(job, view.active, view, now),
        near=near,
        preemptees=[other for other in near if "PREEMPTEE" in flags(other, view)],
    )


def check(code: str, verdict: str, found: str, setting: str = "") -> Check:
    """Answer one question."""
    return Check(code=code, verdict=verdict, question=QUESTIONS[code], found=found, setting=setting)


def few(words: Sequence[str]) -> str:
    """Name the first few of many."""
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


QUESTIONS = {
    "K01": "is it marked PREEMPTOR?",
    "K02": "is any job on a feasible node marked PREEMPTEE?",
    "K03": "is its priority higher?",
    "K04": "do nodes match the request?",
    "K05": "are few enough victims needed?",
    "K06": "does a policy forbid it?",
    "K07": "is PREEMPTPOLICY known, and can the resource manager do it?",
    "K08": "can the victims make way as asked?",
    "K09": "is GUARANTEEDPREEMPTION TRUE?",
    "K10": "is BACKFILLPOLICY FIRSTFIT (or PREEMPT)?",
    "K11": "is JOBNODEMATCHPOLICY not EXACTNODE?",
    "K12": "is NODEACCESSPOLICY SHARED?",
    "K13": "do active-time throttles protect the victims?",
    "K14": "is a victim interactive?",
    "K15": "is anything set that does not work with preemption?",
    "K16": "is it a job of one requirement?",
    "K17": "do weights give QoS priority any effect?",
    "K18": "is its QoS the one meant?",
    "K19": "is a victim suspended?",
    "K20": "would all victims together suffice?",
    "K21": "are there slips in the configuration?",
    "K22": "would suspension free what is needed?",
}

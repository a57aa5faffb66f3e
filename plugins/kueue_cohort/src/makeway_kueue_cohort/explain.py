"""Go through what keeps a job from its quota, for ``makeway explain``."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import Check, ClusterView, Job
from makeway_kueue_cohort import requests
from makeway_kueue_cohort.books import Node
from makeway_kueue_cohort.flavors import Assignment, Mode
from makeway_kueue_cohort.settings import NAME, Settings
from makeway_kueue_cohort.site import Sharing, Within
from makeway_kueue_cohort.turns import turns_of

_SETTINGS = f'policy.settings."{NAME}"'


def checks(job: Job, view: ClusterView) -> list[Check]:
    """Return the list for a job that waits."""
    return list(_checks(job, view))


def _checks(job: Job, view: ClusterView) -> Iterator[Check]:
    turns = turns_of(view)
    name = requests.queue_of(job, view.settings(Settings))
    asking = turns.yard.asking(job)
    question = "Is there such a ClusterQueue?"
    if asking is None:
        yield Check(
            code="Q1", verdict="fail", question=question, found=f"no: {name!r}", setting=f"{_SETTINGS}.queue"
        )
        return
    yield Check(code="Q1", verdict="pass", question=question, found=name)
    plan, node = turns.plan(asking), asking.workload.queue
    question = "Is there a flavor that it fits in, or may preempt in?"
    if plan.grade.mode is Mode.NO_FIT:
        yield Check(code="Q2", verdict="fail", question=question, found=plan.missing)
        return
    yield Check(code="Q2", verdict="pass", question=question, found=_flavors(plan))
    for pair, amount in plan.uses.items():
        free = max(0, node.available(pair))
        yield Check(
            code="Q3",
            verdict="pass" if amount <= free else "fail",
            question=f"Is {pair[1]} of flavor {pair[0]} left?",
            found=f"{amount / 1000:g} wanted, {free / 1000:g} left; {_state(node, pair)}",
        )
    yield from _preempting(node, view)
    found = turns.victims(asking) if plan.grade.mode is not Mode.FIT else ()
    listed = ", ".join(f"{each.workload.name} ({each.reason.value})" for each in found)
    yield Check(
        code="Q6",
        verdict="pass" if found else "fail",
        question="Is there any job whose leaving makes room?",
        found=listed or "none",
    )


def _flavors(plan: Assignment) -> str:
    return ", ".join(f"{resource}: {flavor}" for flavor, resource in plan.uses) or "it asks for nothing"


def _state(node: Node, pair: tuple[str, str]) -> str:
    own = f"{node.name} uses {node.used(pair) / 1000:g} of its {node.quota(pair) / 1000:g}"
    return f"{own}, so it borrows" if node.borrows(pair) else own


def _preempting(node: Node, view: ClusterView) -> Iterator[Check]:
    assert node.queue is not None
    policy = node.queue.preemption
    yield Check(
        code="Q4",
        verdict="fail" if policy.within_queue is Within.NEVER else "pass",
        question="May it preempt in its own queue?",
        found=policy.within_queue.value,
    )
    fair = view.settings(Settings).sharing is Sharing.FAIR
    borrow = "LowerPriority" if policy.borrow and not fair else "Never" if not fair else "by shares"
    yield Check(
        code="Q5",
        verdict="fail" if policy.reclaim is Within.NEVER or node.parent is None else "pass",
        question="May it reclaim in its cohort?",
        found=f"{policy.reclaim.value}; while borrowing: {borrow}"
        if node.parent is not None
        else "it is in none",
    )

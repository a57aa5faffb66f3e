"""Answer the questions of the check list that are about the configuration (moab 12.1)."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import Check, PreemptMode
from makeway_moab_qos.actions import asked_mode
from makeway_moab_qos.capabilities import YES, can, row_of
from makeway_moab_qos.check import slips
from makeway_moab_qos.credentials import qos_name
from makeway_moab_qos.explain.case import FAIL, PASS, WARNING, Case, check
from makeway_moab_qos.reservations import is_locked, lock_end
from makeway_moab_qos.settings import path


def k07(case: Case) -> Iterator[Check]:
    """Answer K07."""
    asked = asked_mode(case.settings)
    setting = path("preempt_policy")
    if case.settings.maui and any(chosen.fails for _, chosen in case.verdicts.allowed):
        yield check(
            "K07", FAIL, f"PREEMPTPOLICY {case.settings.preempt_policy} has no effect in Maui", setting
        )
        return
    unable = [
        rm for rm in case.settings.rm if asked is not PreemptMode.CANCEL and can(rm, asked.value) != YES
    ]
    for rm in unable:
        row = row_of(rm)
        title = row.title if row is not None else rm.type
        found = f"{asked.value} with {title}: {can(rm, asked.value)}; the next rung that works is used"
        yield check("K07", WARNING, found, setting)
    if not unable:
        yield check("K07", PASS, f"PREEMPTPOLICY {case.settings.preempt_policy}", setting)


def k09(case: Case) -> Iterator[Check]:
    """Answer K09."""
    settings, setting = case.settings, path("guaranteed_preemption")
    end = lock_end(case.job, case.view)
    if end is not None and is_locked(case.job, case.view, case.now) and end > case.now:
        left = end - case.now
        yield check("K09", WARNING, f"it holds a lock for {left:g} s more and waits for its victims", setting)
    elif end is not None and settings.guaranteed_preemption:
        yield check("K09", FAIL, f"its lock expired at {end:g} s; it may preempt afresh", setting)
    elif settings.guaranteed_preemption:
        yield check("K09", PASS, "TRUE", setting)
    else:
        yield check("K09", WARNING, "FALSE: freed nodes may go to another job", setting)


def k10(case: Case) -> Iterator[Check]:
    """Answer K10."""
    policy, setting = case.settings.backfill_policy, path("backfill_policy")
    if case.settings.maui and policy == "PREEMPT":
        yield check("K10", FAIL, "PREEMPT: Maui then preempts no job", setting)
    elif policy in ("FIRSTFIT", "PREEMPT"):
        yield check("K10", PASS, policy, setting)
    else:
        yield check("K10", WARNING, f"{policy}; the guide wants FIRSTFIT", setting)


def k11(case: Case) -> Iterator[Check]:
    """Answer K11."""
    exact = case.settings.node_match_policy == "EXACTNODE"
    centric = case.settings.preemption_algorithm == "PREEMPTORCENTRIC"
    found = f"JOBNODEMATCHPOLICY {case.settings.node_match_policy or 'not set'}"
    if exact:
        found += f", PREEMPTIONALGORITHM {case.settings.preemption_algorithm or 'not set'}"
    bad = exact and not centric and not case.settings.maui
    yield check("K11", FAIL if bad else PASS, found, path("node_match_policy"))


def k12(case: Case) -> Iterator[Check]:
    """Answer K12."""
    policy = case.settings.node_access_policy
    verdict = PASS if policy == "SHARED" else WARNING
    yield check("K12", verdict, policy, path("node_access_policy"))


def k15(case: Case) -> Iterator[Check]:
    """Answer K15."""
    plus = case.settings.node_set_plus
    bad = plus in ("SPANEVENLY", "DELAY")
    yield check("K15", FAIL if bad else PASS, f"NODESETPLUS {plus or 'not set'}", path("node_set_plus"))


def k16(case: Case) -> Iterator[Check]:
    """Answer K16."""
    parts = len(case.view.components(case.job))
    yield check("K16", FAIL if parts > 1 else PASS, f"{parts} requirement{'s' if parts > 1 else ''}")


def k17(case: Case) -> Iterator[Check]:
    """Answer K17."""
    weights = case.settings.weights
    written = "QOSWEIGHT" in case.settings.written or weights.qos is not None
    found = f"CREDWEIGHT {weights.cred:g}, QOSWEIGHT {weights.qos or 0:g}"
    found += "" if written else " (by default; nothing sets it)"
    name = qos_name(case.job, case.view)
    matters = bool(name) and any(each.priority for each in case.settings.qos.values())
    idle = not weights.cred or not weights.qos
    key = "cred" if not weights.cred else "qos"
    if idle and matters:
        yield check("K17", FAIL, f"{found}: QoS priority has no effect", path("weights", key))
    else:
        yield check("K17", PASS, found, path("weights", key))


def k21(case: Case) -> Iterator[Check]:
    """Answer K21."""
    found = slips(case.view.cluster, case.settings)
    if not found:
        yield check("K21", PASS, "none found")
    for each in found:
        yield check("K21", WARNING, each.message, each.where)

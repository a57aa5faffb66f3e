"""Go through the trouble-shooting list for a job that should have preempted and did not (spec moab 12.1).

The wording of the vendor's list is lost; the questions are the spec's K01 to K22. All are answered, not
only the first that fails, each with the setting that decided it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from makeway.model import Check, ClusterView, Job, JobState, PreemptMode, Seconds
from makeway_moab_qos.capabilities import YES, can, row_of
from makeway_moab_qos.conditions import Right, Verdicts, feasible_nodes, judge, right_of
from makeway_moab_qos.credentials import access, credential, flags, names_of, origins, qos_name, settings_of
from makeway_moab_qos.lints import slips
from makeway_moab_qos.methods import asked_mode, lacks, method
from makeway_moab_qos.priority import outranks_at, start_priority, terms
from makeway_moab_qos.reservations import is_locked, lock_end
from makeway_moab_qos.settings import Settings, path
from makeway_moab_qos.victims import supply

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


def checks(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    """Return the list for `job`; for the hook."""
    case = case_of(job, view, now)
    return [check for step in _STEPS for check in step(case)]


def _check(code: str, verdict: str, found: str, setting: str = "") -> Check:
    return Check(code=code, verdict=verdict, question=_QUESTIONS[code], found=found, setting=setting)


def _few(words: Sequence[str]) -> str:
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _given_by(job: Job, flag: str, view: ClusterView) -> tuple[str, str]:
    """Return who gives a job a flag, and where that is set."""
    if flag in job.spec.flags:
        return "the job itself", ""
    for who, setting, given in origins(job, view):
        if flag in given:
            return who, setting
    return "the scheduler", ""


# ------------------------------------------------------------------------------- the three conditions
def _k01(case: Case) -> Iterator[Check]:
    if case.right.ground == "preemptor":
        who, setting = _given_by(case.job, "PREEMPTOR", case.view)
        yield _check("K01", PASS, f"yes: {case.right.why} ({who})", setting)
    elif case.right.ground:
        yield _check("K01", PASS, case.right.why)
    else:
        qos = qos_name(case.job, case.view)
        setting = path("qos", qos, "flags") if qos is not None else ""
        own = ", ".join(sorted(flags(case.job, case.view))) or "none"
        yield _check("K01", FAIL, f"no; its flags: {own}; QoS {qos}: add QFLAGS=PREEMPTOR", setting)


def _k02(case: Case) -> Iterator[Check]:
    if case.preemptees:
        names = []
        for each in case.preemptees:
            who, _ = _given_by(each, "PREEMPTEE", case.view)
            names.append(f"{each.id} ({who})")
        yield _check("K02", PASS, f"yes: {_few(names)}")
        return
    if case.verdicts.allowed:
        yield _check("K02", PASS, "none is marked, but a context rule makes some preemptible")
        return
    qos = sorted({qos_name(other, case.view) or "none" for other in case.near})
    setting = path("qos", qos[0], "flags") if qos else ""
    yield _check(
        "K02", FAIL, f"none of {len(case.near)} jobs on feasible nodes; their QoS: {_few(qos)}", setting
    )


def _k03(case: Case) -> Iterator[Check]:
    mine = start_priority(case.job, case.view, case.now)
    shown = ", ".join(
        f"{term.name} {term.value:g} x {term.weight:g}" for term in terms(case.job, case.view, case.now)
    )
    too_high = []
    for other in case.preemptees:
        theirs = start_priority(other, case.view, case.now)
        if theirs >= mine:
            too_high.append((theirs, other))
    if not case.preemptees:
        yield _check("K03", PASS, f"its priority is {mine} ({shown}); there is nobody to compare with")
    elif not too_high:
        yield _check("K03", PASS, f"yes: {mine} ({shown})")
    else:
        theirs, other = min(too_high, key=lambda each: each[0])
        at = outranks_at(case.job, theirs, case.view, case.now)
        soon = (
            "never by waiting" if at is None else f"in {(at - case.now) / 60:.1f} minutes if nothing changes"
        )
        verdict = FAIL if len(too_high) == len(case.preemptees) else WARNING
        found = f"{mine} ({shown}) against {theirs} of {other.id}, gap {mine - theirs}; eligible {soon}"
        yield _check("K03", verdict, found, path("weights"))


# ------------------------------------------------------------------------------------ resources
def _k04(case: Case) -> Iterator[Check]:
    nodes = feasible_nodes(case.job, case.view)
    partition = case.job.partition.nodes
    reasons = []
    for count, why in (
        ((partition & ~case.view.up).bit_count(), "out of service"),
        ((partition & case.job.excluded).bit_count(), "excluded by the job"),
        (
            (partition & case.view.up & ~case.job.excluded & ~nodes).bit_count(),
            f"without {case.job.spec.features}",
        ),
    ):
        if count:
            reasons.append(f"{count} {why}")
    elsewhere = [
        other.id
        for other in case.view.active
        if not other.nodes & nodes and "PREEMPTEE" in flags(other, case.view)
    ]
    found = f"{nodes.bit_count()} of {partition.bit_count()} nodes are feasible"
    if reasons:
        found += f"; {', '.join(reasons)}"
    if elsewhere:
        found += f"; preemptees elsewhere: {_few(elsewhere)}"
    yield _check("K04", PASS if nodes else FAIL, found)


def _freed(case: Case) -> list[int]:
    nodes = feasible_nodes(case.job, case.view)
    return [supply(job, case.job, nodes, case.view) for job, _ in case.verdicts.allowed]


def _idle(case: Case) -> int:
    nodes = feasible_nodes(case.job, case.view)
    total = sum(node.cpus for node in case.view.cluster.nodes if nodes >> node.index & 1)
    running = [job for job in case.view.active if job.state is JobState.RUNNING]
    return total - sum(supply(job, case.job, nodes, case.view) for job in running)


def _k05(case: Case) -> Iterator[Check]:
    most = case.settings.choices.max_preemptees
    if case.settings.maui or not most:
        yield _check("K05", PASS, "there is no cap")
        return
    short, needed = case.job.spec.cpus - _idle(case), 0
    for freed in sorted(_freed(case), reverse=True):
        if short <= 0:
            break
        short -= freed
        needed += 1
    verdict = FAIL if needed > most else PASS
    yield _check(
        "K05", verdict, f"{needed} needed at the least, {most} allowed", path("choices", "max_preemptees")
    )


def _k06(case: Case) -> Iterator[Check]:
    reason = case.job.reason
    kept_out = reason not in ("None", "Resources", "Priority")
    yield _check("K06", FAIL if kept_out else PASS, f"it waits for {reason}" if kept_out else "no")


# -------------------------------------------------------------------------------------- methods
def _k07(case: Case) -> Iterator[Check]:
    asked = asked_mode(case.settings)
    setting = path("preempt_policy")
    if case.settings.maui and any(chosen.fails for _, chosen in case.verdicts.allowed):
        yield _check(
            "K07", FAIL, f"PREEMPTPOLICY {case.settings.preempt_policy} comes to nothing in Maui", setting
        )
        return
    unable = [
        rm for rm in case.settings.rm if asked is not PreemptMode.CANCEL and can(rm, asked.value) != YES
    ]
    for rm in unable:
        row = row_of(rm)
        title = row.title if row is not None else rm.type
        found = f"{asked.value} with {title}: {can(rm, asked.value)}; the next rung that works is used"
        yield _check("K07", WARNING, found, setting)
    if not unable:
        yield _check("K07", PASS, f"PREEMPTPOLICY {case.settings.preempt_policy}", setting)


def _k08(case: Case) -> Iterator[Check]:
    asked = asked_mode(case.settings)
    others = []
    for job in case.preemptees:
        chosen = method(job, case.view)
        if chosen.mode is not asked:
            lack = lacks(asked, job, case.view, skipped_suspend=False)
            others.append(f"{job.id}: {asked.value} -> {chosen.mode.value}: {lack or chosen.why}")
    if others:
        yield _check("K08", WARNING, _few(others), path("preempt_policy"))
    else:
        yield _check(
            "K08", PASS, f"all can be {asked.value}ed as asked" if case.preemptees else "nobody to ask"
        )


# ----------------------------------------------------------------------------------- parameters
def _k09(case: Case) -> Iterator[Check]:
    settings, setting = case.settings, path("guaranteed_preemption")
    end = lock_end(case.job, case.view)
    if end is not None and is_locked(case.job, case.view, case.now) and end > case.now:
        left = end - case.now
        yield _check(
            "K09", WARNING, f"it holds a lock for {left:g} s more and waits for its victims", setting
        )
    elif end is not None and settings.guaranteed_preemption:
        yield _check("K09", FAIL, f"its lock expired at {end:g} s; it may preempt afresh", setting)
    elif settings.guaranteed_preemption:
        yield _check("K09", PASS, "TRUE", setting)
    else:
        yield _check("K09", WARNING, "FALSE: freed nodes may go to somebody else", setting)


def _k10(case: Case) -> Iterator[Check]:
    policy, setting = case.settings.backfill_policy, path("backfill_policy")
    if case.settings.maui and policy == "PREEMPT":
        yield _check("K10", FAIL, "PREEMPT: Maui then preempts nobody (Q4)", setting)
    elif policy in ("FIRSTFIT", "PREEMPT"):
        yield _check("K10", PASS, policy, setting)
    else:
        yield _check("K10", WARNING, f"{policy}; the guide wants FIRSTFIT", setting)


def _k11(case: Case) -> Iterator[Check]:
    exact = case.settings.node_match_policy == "EXACTNODE"
    centric = case.settings.preemption_algorithm == "PREEMPTORCENTRIC"
    found = f"JOBNODEMATCHPOLICY {case.settings.node_match_policy or 'not set'}"
    if exact:
        found += f", PREEMPTIONALGORITHM {case.settings.preemption_algorithm or 'not set'}"
    bad = exact and not centric and not case.settings.maui
    yield _check("K11", FAIL if bad else PASS, found, path("node_match_policy"))


def _k12(case: Case) -> Iterator[Check]:
    policy = case.settings.node_access_policy
    verdict = PASS if policy == "SHARED" else WARNING
    yield _check("K12", verdict, policy, path("node_access_policy"))


def _vetoes(case: Case, code: str) -> list[str]:
    return [
        f"{job}: {why.removeprefix(code).strip()}"
        for job, why in case.verdicts.protected.items()
        if why.startswith(code)
    ]


def _from_vetoes(case: Case, code: str, setting: str, fine: str) -> Iterator[Check]:
    found = _vetoes(case, code)
    if not found:
        yield _check(code, PASS, fine, setting)
        return
    verdict = WARNING if case.verdicts.allowed else FAIL
    yield _check(code, verdict, _few(found), setting)


def _k13(case: Case) -> Iterator[Check]:
    longest = case.settings.max_active_time and not case.settings.min_active_time
    setting = path("max_active_time" if longest else "min_active_time")
    yield from _from_vetoes(case, "K13", setting, "nobody is protected by a throttle")


def _k14(case: Case) -> Iterator[Check]:
    yield from _from_vetoes(case, "K14", path("preempt_policy"), "no")


def _k15(case: Case) -> Iterator[Check]:
    plus = case.settings.node_set_plus
    bad = plus in ("SPANEVENLY", "DELAY")
    yield _check("K15", FAIL if bad else PASS, f"NODESETPLUS {plus or 'not set'}", path("node_set_plus"))


def _k16(case: Case) -> Iterator[Check]:
    parts = len(case.view.components(case.job))
    yield _check("K16", FAIL if parts > 1 else PASS, f"{parts} requirement{'s' if parts > 1 else ''}")


def _k17(case: Case) -> Iterator[Check]:
    weights = case.settings.weights
    written = "QOSWEIGHT" in case.settings.written or weights.qos is not None
    found = f"CREDWEIGHT {weights.cred:g}, QOSWEIGHT {weights.qos or 0:g}"
    found += "" if written else " (by default; nothing sets it)"
    name = qos_name(case.job, case.view)
    matters = bool(name) and any(each.priority for each in case.settings.qos.values())
    idle = not weights.cred or not weights.qos
    key = "cred" if not weights.cred else "qos"
    if idle and matters:
        yield _check("K17", FAIL, f"{found}: QoS priority has no effect", path("weights", key))
    else:
        yield _check("K17", PASS, found, path("weights", key))


def _k18(case: Case) -> Iterator[Check]:
    found = access(case.job, case.view)
    allowed = "any" if found.allowed is None else ", ".join(found.allowed) or "none"
    lists = []
    for kind, name in names_of(case.job).items():
        own = credential(case.settings, kind, name)
        if own.qlist or own.qdef:
            lists.append(f"{kind.replace('klass', 'class')} {name} ({own.mode.value})")
    text = f"requested {found.requested or 'none'}, got {found.qos or 'none'}: {found.because}; allowed: {allowed}"
    if lists:
        text += f"; lists of {_few(lists)}"
    yield _check("K18", FAIL if found.refused else PASS, text, found.setting)


def _k19(case: Case) -> Iterator[Check]:
    stopped = []
    for job in case.near:
        if job.state is JobState.SUSPENDED and job.suspended_at is not None:
            until = job.suspended_at + case.settings.hold_down
            stopped.append(
                f"{job.id} suspended since {job.suspended_at:g} s, resumes at {until:g} s at the earliest"
            )
    verdict = WARNING if stopped else PASS
    yield _check("K19", verdict, _few(stopped) if stopped else "no", path("min_admin_stime"))


def _k20(case: Case) -> Iterator[Check]:
    idle, freed, need = _idle(case), sum(_freed(case)), case.job.spec.cpus
    enough = idle + freed >= need
    found = f"{idle} idle and {freed} preemptible of {need} processors; {case.job.size} nodes wanted"
    yield _check("K20", PASS if enough else FAIL, found)


def _k21(case: Case) -> Iterator[Check]:
    found = slips(case.view.cluster, case.settings)
    if not found:
        yield _check("K21", PASS, "none found")
    for each in found:
        yield _check("K21", WARNING, each.message, each.where)


def _k22(case: Case) -> Iterator[Check]:
    asked = [job for job, chosen in case.verdicts.allowed if chosen.mode is PreemptMode.SUSPEND]
    wants = case.job.spec.memory_mb_per_cpu or case.job.spec.memory_mb_per_node
    if case.settings.maui or not asked or not wants:
        yield _check("K22", PASS, "memory is not what stands in the way")
        return
    held = []
    for job in asked:
        memory = job.allocation.memory_mb if job.allocation is not None else None
        if memory:
            held.append(f"{job.id} would keep {sum(memory)} MB")
    verdict = WARNING if held else PASS
    found = f"suspension frees none: {_few(held)}" if held else "no victim holds any"
    yield _check("K22", verdict, found, path("choices", "escalate_for_resources"))


_QUESTIONS = {
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
_STEPS: tuple[Callable[[Case], Iterator[Check]], ...] = (
    *(_k01, _k02, _k03, _k04, _k05, _k06, _k07, _k08, _k09, _k10, _k11),
    *(_k12, _k13, _k14, _k15, _k16, _k17, _k18, _k19, _k20, _k21, _k22),
)

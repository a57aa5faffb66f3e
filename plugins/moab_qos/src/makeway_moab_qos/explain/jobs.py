"""Answer the questions of the check list that are about jobs: preemptor and victims (moab 12.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from makeway.model import Check, ClusterView, Job, JobState, PreemptMode
from makeway_moab_qos.actions import asked_mode, lacks, method
from makeway_moab_qos.conditions import feasible_nodes, interactive, throttled
from makeway_moab_qos.credentials import (
    DEFAULT,
    access,
    credential,
    flags,
    names_of,
    origins,
    qos_name,
    qos_of,
)
from makeway_moab_qos.explain.case import FAIL, PASS, WARNING, Case, check, few
from makeway_moab_qos.fairshare import violation
from makeway_moab_qos.limits import violates
from makeway_moab_qos.priority import outranks_at, start_priority, terms
from makeway_moab_qos.settings import path
from makeway_moab_qos.tasks.suspended import kept_when_suspended
from makeway_moab_qos.victims import candidates, supply


def _given_by(job: Job, flag: str, view: ClusterView) -> tuple[str, str]:
    """Return who gives a job a flag, and where that is set."""
    if flag in job.spec.flags:
        return "the job itself", ""
    for who, setting, given in origins(job, view):
        if flag in given:
            return who, setting
    return "the scheduler", ""


def _freed(case: Case) -> list[int]:
    nodes = feasible_nodes(case.job, case.view)
    return [supply(job, case.job, nodes, case.view) for job, _ in case.verdicts.allowed]


def _idle(case: Case) -> int:
    nodes = feasible_nodes(case.job, case.view)
    total = sum(node.cpus for node in case.view.cluster.nodes if nodes >> node.index & 1)
    running = [job for job in case.view.active if job.state is JobState.RUNNING]
    return total - sum(supply(job, case.job, nodes, case.view) for job in running)


def _running(case: Case) -> list[Job]:
    return [job for job in case.preemptees if job.state is JobState.RUNNING]


def _throttled(case: Case) -> list[tuple[Job, str]]:
    """Return the preemptees that a throttle protects, and why."""
    found = [(job, throttled(job, case.right, case.view, case.now, [])) for job in _running(case)]
    return [(job, why.removeprefix("K13 ")) for job, why in found if why]


def _of_all(case: Case, code: str, setting: str, fine: str, found: Sequence[str]) -> Iterator[Check]:
    """Answer a question that is put to each preemptee, whatever else stands in the way."""
    if not found:
        yield check(code, PASS, fine, setting)
        return
    verdict = WARNING if case.verdicts.allowed else FAIL
    yield check(code, verdict, few(found), setting)


def k01(case: Case) -> Iterator[Check]:
    """Answer K01."""
    if case.right.ground == "preemptor":
        who, setting = _given_by(case.job, "PREEMPTOR", case.view)
        yield check("K01", PASS, f"yes: {case.right.why} ({who})", setting)
    elif case.right.ground:
        yield check("K01", PASS, case.right.why)
    else:
        qos = qos_name(case.job, case.view)
        setting = path("qos", qos, "flags") if qos is not None else ""
        own = ", ".join(sorted(flags(case.job, case.view))) or "none"
        yield check("K01", FAIL, f"no; its flags: {own}; QoS {qos}: add QFLAGS=PREEMPTOR", setting)


def k02(case: Case) -> Iterator[Check]:
    """Answer K02."""
    if case.preemptees:
        given = [_given_by(each, "PREEMPTEE", case.view) for each in case.preemptees]
        names = [f"{each.id} ({who})" for each, (who, _) in zip(case.preemptees, given, strict=True)]
        setting = next((where for _, where in given if where), "")
        yield check("K02", PASS, f"yes: {few(names)}", setting)
        return
    if case.verdicts.allowed:
        reasons = [f"{job.id} ({_context(job, case)})" for job, _ in case.verdicts.allowed]
        first = qos_name(case.verdicts.allowed[0][0], case.view)
        setting = path("qos", first, "flags") if first is not None else ""
        yield check(
            "K02", PASS, f"none is marked, but a rule makes some preemptible: {few(reasons)}", setting
        )
        return
    qos = sorted({qos_name(other, case.view) or "none" for other in case.near})
    setting = path("qos", qos[0], "flags") if qos else ""
    yield check(
        "K02", FAIL, f"none of {len(case.near)} jobs on feasible nodes; their QoS: {few(qos)}", setting
    )


def _context(job: Job, case: Case) -> str:
    """Say which rule makes a job preemptible that is not marked."""
    return violation(job, case.view) or violates(job, case.view) or "by the ground of the preemptor"


def k03(case: Case) -> Iterator[Check]:
    """Answer K03."""
    mine = start_priority(case.job, case.view, case.now)
    setting = _decided_priority(case)
    shown = ", ".join(
        f"{term.name} {term.value:g} x {term.weight:g}" for term in terms(case.job, case.view, case.now)
    )
    too_high = []
    for other in case.preemptees:
        theirs = start_priority(other, case.view, case.now)
        if theirs >= mine:
            too_high.append((theirs, other))
    if not case.preemptees:
        found = f"its priority is {mine} ({shown}); there is none to compare with"
        yield check("K03", PASS, found, setting)
    elif not too_high:
        yield check("K03", PASS, f"yes: {mine} ({shown})", setting)
    else:
        theirs, other = min(too_high, key=lambda each: each[0])
        at = outranks_at(case.job, theirs, case.view, case.now)
        soon = (
            "never by waiting" if at is None else f"in {(at - case.now) / 60:.1f} minutes if nothing changes"
        )
        verdict = FAIL if len(too_high) == len(case.preemptees) else WARNING
        found = f"{mine} ({shown}) against {theirs} of {other.id}, gap {mine - theirs}; eligible {soon}"
        yield check("K03", verdict, found, setting)


def _decided_priority(case: Case) -> str:
    """Return the setting that weighs most in the job's priority."""
    weights = case.settings.weights
    most = max(
        terms(case.job, case.view, case.now),
        key=lambda term: abs(term.value * term.weight * getattr(weights, term.component)),
        default=None,
    )
    if most is None:
        return path("weights")
    if most.name == "qos":
        name = qos_name(case.job, case.view)
        return path("qos", name, "priority") if name is not None else path("weights", "qos")
    if most.component == "cred":
        name = names_of(case.job)[most.name]
        return path(most.name, name or DEFAULT, "priority")
    return path("weights", most.name)


def k04(case: Case) -> Iterator[Check]:
    """Answer K04."""
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
        found += f"; preemptees elsewhere: {few(elsewhere)}"
    yield check("K04", PASS if nodes else FAIL, found)


def k05(case: Case) -> Iterator[Check]:
    """Answer K05."""
    most = case.settings.choices.max_preemptees
    if case.settings.maui or not most:
        yield check("K05", PASS, "there is no cap")
        return
    short, needed = case.job.spec.cpus - _idle(case), []
    found = candidates(case.job, case.view.active, case.view, case.now)
    nodes = feasible_nodes(case.job, case.view)
    for job in found.jobs:
        if short <= 0:
            break
        short -= supply(job, case.job, nodes, case.view)
        needed.append(job.id)
    verdict = FAIL if len(needed) > most else PASS
    text = f"{len(needed)} needed, {most} allowed"
    if needed:
        text += f"; in the order of cost: {few(needed)}"
    if short > 0:
        text = f"{len(needed)} could be displaced, which does not suffice (K20); {most} allowed"
    yield check("K05", verdict, text, path("choices", "max_preemptees"))


def k06(case: Case) -> Iterator[Check]:
    """Answer K06."""
    reason = case.job.reason
    kept_out = reason not in ("None", "Resources", "Priority")
    yield check("K06", FAIL if kept_out else PASS, f"it waits for {reason}" if kept_out else "no")


def k08(case: Case) -> Iterator[Check]:
    """Answer K08."""
    asked = asked_mode(case.settings)
    others = []
    for job in case.preemptees:
        chosen = method(job, case.view)
        if chosen.mode is not asked:
            lack = lacks(asked, job, case.view, skipped_suspend=False)
            others.append(f"{job.id}: {asked.value} -> {chosen.mode.value}: {lack or chosen.why}")
    if others:
        yield check("K08", WARNING, few(others), path("preempt_policy"))
    else:
        yield check(
            "K08",
            PASS,
            f"all can make way by {asked.value}, as asked" if case.preemptees else "no job to ask",
        )


def k13(case: Case) -> Iterator[Check]:
    """Answer K13."""
    found = _throttled(case)
    said = [f"{job}: {why}" for job, why in found]
    yield from _of_all(case, "K13", _throttle(case, found), "no job is protected by a throttle", said)


def _throttle(case: Case, found: Sequence[tuple[Job, str]]) -> str:
    """Return the setting of the throttle that protects a victim; the global minimum if none does."""
    for job, why in found[:1]:
        for word, key in (("MAXACTIVETIME", "max_active_time"), ("COMPLETIONTIME", "completion_time")):
            if word in why:
                return path(key)
        if qos_of(job, case.view).preempt_min_time is not None:
            return path("qos", qos_name(job, case.view) or DEFAULT, "preempt_min_time")
    return path("min_active_time")


def k14(case: Case) -> Iterator[Check]:
    """Answer K14."""
    asked = [(job, interactive(job, method(job, case.view), case.view)) for job in _running(case)]
    said = [f"{job}: {why.removeprefix('K14 ')}" for job, why in asked if why]
    yield from _of_all(case, "K14", path("preempt_policy"), "no", said)


def k18(case: Case) -> Iterator[Check]:
    """Answer K18."""
    found = access(case.job, case.view)
    allowed = "any" if found.allowed is None else ", ".join(found.allowed) or "none"
    lists = []
    for kind, name in names_of(case.job).items():
        own = credential(case.settings, kind, name)
        if own.qlist or own.qdef:
            lists.append(f"{kind.replace('klass', 'class')} {name} ({own.mode.value})")
    text = f"requested {found.requested or 'none'}, got {found.qos or 'none'}: {found.because}; allowed: {allowed}"
    if lists:
        text += f"; lists of {few(lists)}"
    yield check("K18", FAIL if found.refused else PASS, text, found.setting)


def k19(case: Case) -> Iterator[Check]:
    """Answer K19."""
    stopped = []
    for job in case.near:
        if job.state is JobState.SUSPENDED and job.suspended_at is not None:
            until = job.suspended_at + case.settings.hold_down
            stopped.append(
                f"{job.id} suspended since {job.suspended_at:g} s, resumes at {until:g} s at the earliest"
            )
    verdict = WARNING if stopped else PASS
    yield check("K19", verdict, few(stopped) if stopped else "no", path("min_admin_stime"))


def k20(case: Case) -> Iterator[Check]:
    """Answer K20."""
    idle, freed, need = _idle(case), sum(_freed(case)), case.job.spec.cpus
    enough = idle + freed >= need
    found = f"{idle} idle and {freed} preemptible of {need} processors; {case.job.size} nodes wanted"
    yield check("K20", PASS if enough else FAIL, found)


def k22(case: Case) -> Iterator[Check]:
    """Answer K22."""
    asked = [job for job, chosen in case.verdicts.allowed if chosen.mode is PreemptMode.SUSPEND]
    stuck = [job.id for job in asked if kept_when_suspended(job, case.settings).cores]
    if stuck:
        found = f"SUSPENDRESOURCES lets them keep their processors: {few(stuck)}"
        yield check("K22", FAIL, found, path("suspend_resources"))
        return
    wants = case.job.spec.memory_mb_per_cpu or case.job.spec.memory_mb_per_node
    if case.settings.maui or not asked or not wants:
        yield check("K22", PASS, "memory is not the obstacle")
        return
    held = []
    for job in asked:
        memory = job.allocation.memory_mb if job.allocation is not None else None
        if memory:
            held.append(f"{job.id} would keep {sum(memory)} MB")
    verdict = PASS if not held else WARNING if _memory_left(case, asked) else FAIL
    found = f"suspension frees none: {few(held)}" if held else "no victim holds any"
    yield check("K22", verdict, found, path("choices", "escalate_for_resources"))


def _memory_left(case: Case, stopped: Sequence[Job]) -> bool:
    """Whether on any feasible node there is memory for a task beside jobs that are suspended or stay."""
    spec = case.job.spec
    wanted = spec.memory_mb_per_node or (spec.memory_mb_per_cpu or 0) * spec.cpus_per_task
    leaving = {job.id for job, _ in case.verdicts.allowed} - {job.id for job in stopped}
    nodes = feasible_nodes(case.job, case.view)
    for node in case.view.cluster.nodes:
        if not nodes >> node.index & 1:
            continue
        left = node.usable_memory_mb
        for job in case.view.jobs_on(node.index):
            held = job.allocation
            if job.id not in leaving and held is not None and held.memory_mb is not None:
                left -= held.memory_mb[held.node_indices.index(node.index)]
        if left >= wanted:
            return True
    return False

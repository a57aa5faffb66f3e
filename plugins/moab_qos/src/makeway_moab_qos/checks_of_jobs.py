"""Answer the questions of the check list that are about jobs: preemptor and victims (spec moab 12.1)."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import Check, ClusterView, Job, JobState, PreemptMode
from makeway_moab_qos.checklist import FAIL, PASS, WARNING, Case, check, few
from makeway_moab_qos.conditions import feasible_nodes
from makeway_moab_qos.credentials import access, credential, flags, names_of, origins, qos_name
from makeway_moab_qos.methods import asked_mode, lacks, method
from makeway_moab_qos.priority import outranks_at, start_priority, terms
from makeway_moab_qos.settings import path
from makeway_moab_qos.victims import supply


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


def _vetoes(case: Case, code: str) -> list[str]:
    return [
        f"{job}: {why.removeprefix(code).strip()}"
        for job, why in case.verdicts.protected.items()
        if why.startswith(code)
    ]


def _from_vetoes(case: Case, code: str, setting: str, fine: str) -> Iterator[Check]:
    found = _vetoes(case, code)
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
        names = []
        for each in case.preemptees:
            who, _ = _given_by(each, "PREEMPTEE", case.view)
            names.append(f"{each.id} ({who})")
        yield check("K02", PASS, f"yes: {few(names)}")
        return
    if case.verdicts.allowed:
        yield check("K02", PASS, "none is marked, but a context rule makes some preemptible")
        return
    qos = sorted({qos_name(other, case.view) or "none" for other in case.near})
    setting = path("qos", qos[0], "flags") if qos else ""
    yield check(
        "K02", FAIL, f"none of {len(case.near)} jobs on feasible nodes; their QoS: {few(qos)}", setting
    )


def k03(case: Case) -> Iterator[Check]:
    """Answer K03."""
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
        yield check("K03", PASS, f"its priority is {mine} ({shown}); there is nobody to compare with")
    elif not too_high:
        yield check("K03", PASS, f"yes: {mine} ({shown})")
    else:
        theirs, other = min(too_high, key=lambda each: each[0])
        at = outranks_at(case.job, theirs, case.view, case.now)
        soon = (
            "never by waiting" if at is None else f"in {(at - case.now) / 60:.1f} minutes if nothing changes"
        )
        verdict = FAIL if len(too_high) == len(case.preemptees) else WARNING
        found = f"{mine} ({shown}) against {theirs} of {other.id}, gap {mine - theirs}; eligible {soon}"
        yield check("K03", verdict, found, path("weights"))


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
    short, needed = case.job.spec.cpus - _idle(case), 0
    for freed in sorted(_freed(case), reverse=True):
        if short <= 0:
            break
        short -= freed
        needed += 1
    verdict = FAIL if needed > most else PASS
    yield check(
        "K05", verdict, f"{needed} needed at the least, {most} allowed", path("choices", "max_preemptees")
    )


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
            "K08", PASS, f"all can be {asked.value}ed as asked" if case.preemptees else "nobody to ask"
        )


def k13(case: Case) -> Iterator[Check]:
    """Answer K13."""
    longest = case.settings.max_active_time and not case.settings.min_active_time
    setting = path("max_active_time" if longest else "min_active_time")
    yield from _from_vetoes(case, "K13", setting, "nobody is protected by a throttle")


def k14(case: Case) -> Iterator[Check]:
    """Answer K14."""
    yield from _from_vetoes(case, "K14", path("preempt_policy"), "no")


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
    wants = case.job.spec.memory_mb_per_cpu or case.job.spec.memory_mb_per_node
    if case.settings.maui or not asked or not wants:
        yield check("K22", PASS, "memory is not what stands in the way")
        return
    held = []
    for job in asked:
        memory = job.allocation.memory_mb if job.allocation is not None else None
        if memory:
            held.append(f"{job.id} would keep {sum(memory)} MB")
    verdict = WARNING if held else PASS
    found = f"suspension frees none: {few(held)}" if held else "no victim holds any"
    yield check("K22", verdict, found, path("choices", "escalate_for_resources"))

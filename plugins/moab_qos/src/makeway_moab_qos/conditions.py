"""Decide what a waiting job may displace (moab 3 and 6): three conditions, context rules, guards.

What a guard keeps out is protected with a reason that begins with the code of the check list (12.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.features import alternatives
from makeway.model import ClusterView, Job, PreemptMode, Seconds
from makeway_moab_qos.actions import Method, asked_mode, method
from makeway_moab_qos.credentials import flags, qos_of, settings_of
from makeway_moab_qos.fairshare import in_violation
from makeway_moab_qos.limits import any_limits, beyond_soft, violates
from makeway_moab_qos.preemptees import Preemptee, Protected, standing
from makeway_moab_qos.priority import outranks_at, queued, start_priority
from makeway_moab_qos.reservations import is_locked, lock_end, nodes_of, owner_reservations, owns
from makeway_moab_qos.settings import Settings, Standing


@attrs.frozen(kw_only=True)
class Right:
    """On what ground a job may displace others."""

    ground: str
    """preemptor, owner, backfill, class, restart; empty: it may not."""
    why: str
    owned: tuple[Standing, ...] = ()


@attrs.define
class Verdicts:
    """What came of looking at all active jobs."""

    allowed: list[tuple[Job, Method]] = attrs.field(factory=list)
    protected: Protected = attrs.field(factory=Protected)
    note: str = ""
    ask_again: list[Seconds] = attrs.field(factory=list)
    preemptees: int = 0
    """Jobs on feasible nodes that carry PREEMPTEE."""


# ---------------------------------------------------------------------------- C1 and its kin
def right_of(job: Job, view: ClusterView, now: Seconds) -> Right:
    """Return on what ground `job` may displace others (C1, X1, X4, X7, X10, X11)."""
    settings = settings_of(view)
    own = flags(job, view)
    qos = qos_of(job, view)
    if "PREEMPTOR" in own:
        return Right(ground="preemptor", why="it is marked PREEMPTOR")
    if not settings.maui:
        late = _service_level(job, view, now)
        if late:
            return Right(ground="preemptor", why=late)
        if "RUNNOW" in qos.flags:
            return Right(ground="preemptor", why="its QoS has RUNNOW")
    owned = owner_reservations(job, view)
    if owned:
        names = ", ".join(each.name for each in owned)
        return Right(ground="owner", why=f"its owner preempts in reservation {names}", owned=tuple(owned))
    if settings.optimistic and not settings.maui:
        return Right(ground="backfill", why="BACKFILLPOLICY PREEMPT: every job may displace backfilled ones")
    if _class_rule(settings) and not settings.choices.class_violation_needs_preemptor:
        return Right(
            ground="class", why="jobs of its class that break a target give way to one that does not"
        )
    if "RESTARTPREEMPT" in qos.flags and not settings.maui:
        return Right(ground="restart", why="its QoS has RESTARTPREEMPT")
    return Right(ground="", why="it is not marked PREEMPTOR")


def _class_rule(settings: Settings) -> bool:
    """X9: whether a site lets targets decide within a class."""
    return not settings.maui and (settings.fs_violation_preemption or settings.sp_violation_preemption)


def _service_level(job: Job, view: ClusterView, now: Seconds) -> str:
    """X1: its queue time or expansion factor has passed its QoS's threshold; empty: neither has."""
    qos = qos_of(job, view)
    if qos.preempt_qt_threshold is None and qos.preempt_xf_threshold is None:
        return ""
    waited = queued(job, view, now)
    threshold = qos.preempt_qt_threshold
    if threshold is not None and waited >= threshold:
        return f"it has waited {waited:g} s, PREEMPTQTTHRESHOLD is {threshold:g} s"
    factor = qos.preempt_xf_threshold
    limit = job.time_limit
    if factor is not None and limit:
        reached = (waited + limit) / max(settings_of(view).weights.xf_min_limit, limit)
        if reached >= factor:
            return f"its expansion factor is {reached:g}, PREEMPTXFTHRESHOLD is {factor:g}"
    return ""


def threshold_at(job: Job, view: ClusterView, now: Seconds) -> Seconds | None:
    """Return when X1 will make `job` a preemptor; None: never, or it has."""
    qos = qos_of(job, view)
    if qos.preempt_qt_threshold is None and qos.preempt_xf_threshold is None:
        return None
    waited = queued(job, view, now)
    left = []
    if qos.preempt_qt_threshold is not None:
        left.append(qos.preempt_qt_threshold - waited)
    if qos.preempt_xf_threshold is not None and job.time_limit:
        base = max(settings_of(view).weights.xf_min_limit, job.time_limit)
        left.append(qos.preempt_xf_threshold * base - job.time_limit - waited)
    future = [each for each in left if each > 0]
    return now + min(future) if future else None


def feasible_nodes(job: Job, view: ClusterView) -> NodeBits:
    """Return the nodes on which `job` could run, busy or not (G4, G5)."""
    nodes = job.partition.nodes & view.up & ~job.excluded
    if job.spec.features:
        nodes &= alternatives(job.spec.features, view.cluster)[-1].nodes
    return nodes


# ------------------------------------------------------------------------------------ verdicts
def judge(job: Job, active: Sequence[Job], view: ClusterView, now: Seconds) -> Verdicts:
    """Look at all active jobs."""
    settings = settings_of(view)
    found = Verdicts()
    right = right_of(job, view, now)
    found.note = _hindrance(job, right, view, settings, now)
    if found.note:
        again = threshold_at(job, view, now) if not right.ground else lock_end(job, view)
        if again is not None and again > now:
            found.ask_again.append(again)
        return found
    nodes = feasible_nodes(job, view)
    if right.owned:
        inside = 0
        for each in right.owned:
            inside |= nodes_of(each, view)
        nodes &= inside
    mine = start_priority(job, view, now)
    lowest: int | None = None
    for other in _preemptees(job, right, active, view, now):
        if not other.nodes & nodes:
            continue
        found.preemptees += 1
        if other.out:
            found.protected.add(other.job.id, other.out)
            continue
        theirs = other.priority
        if theirs is None:
            theirs = other.priority = start_priority(other.job, view, now)
        if not _outranks(mine, theirs, right, settings):
            found.protected.outranked(other.job.id, theirs, mine)
            lowest = theirs if lowest is None or theirs < lowest else lowest
            continue
        if other.method is None:
            other.method = method(other.job, view)
        veto = _veto(other.job, right, other.method, view, settings, now, found.ask_again)
        if veto:
            found.protected.add(other.job.id, veto)
        else:
            found.allowed.append((other.job, other.method))
    _next_questions(job, found, lowest, right, view, settings, now)
    return found


def _preemptees(
    job: Job, right: Right, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Iterable[Preemptee]:
    """Return who may be displaced at all by a job with such a right, in job-table order."""
    settings = settings_of(view)
    return (
        standing(other, settings)
        for other in active
        if other.spec.het_id is None and is_preemptee(other, job, right, view, now)
    )


def _hindrance(job: Job, right: Right, view: ClusterView, settings: Settings, now: Seconds) -> str:
    """Say what keeps `job` from preempting any other; empty: nothing."""
    if not right.ground:
        return f"K01 {right.why}"
    if settings.maui and settings.optimistic:
        return "K10 Maui preempts no job under BACKFILLPOLICY PREEMPT"
    if settings.maui and settings.preempt_policy == "OVERCOMMIT":
        return "K07 PREEMPTPOLICY OVERCOMMIT lists no job"
    if job.spec.het_id is not None:
        return "K16 a job of several requirements does not preempt"
    if not settings.maui and not settings.choices.preempt_again_while_locked:
        waits = settings.guaranteed_preemption and not settings.nowait_preemption
        if waits and is_locked(job, view, now):
            return f"K09 it has told others to leave and waits for them until {lock_end(job, view):g} s"
    if not settings.maui and settings.node_set_plus in ("SPANEVENLY", "DELAY"):
        return f"K15 NODESETPLUS {settings.node_set_plus} does not work with preemption"
    exact = settings.node_match_policy == "EXACTNODE"
    if exact and not settings.maui and settings.preemption_algorithm != "PREEMPTORCENTRIC":
        return "K11 JOBNODEMATCHPOLICY EXACTNODE breaks preemption without PREEMPTORCENTRIC"
    return ""


def is_preemptee(other: Job, job: Job, right: Right, view: ClusterView, now: Seconds) -> bool:
    """Whether `other` may be displaced at all by a job with such a right (C2, X2, X3, X4, X7, X9, X11)."""
    settings = settings_of(view)
    own = flags(other, view)
    if right.ground == "backfill":
        return "BACKFILL" in other.marks and "PREEMPTEE" in own
    if right.ground == "restart":
        return "RESTARTABLE" in own
    if right.ground == "class":
        return _within_class(other, job, own, view, settings)
    if right.ground == "owner" and any(owns(other, each, view) for each in right.owned):
        return False
    if "PREEMPTEE" in own:
        return True
    if right.ground == "owner" and not settings.choices.owner_requires_preemptee and not settings.maui:
        return True
    qos = qos_of(other, view)
    if "PREEMPTSPV" in qos.flags and _in_violation(other, view):
        return True
    if settings.maui:
        return False
    if "PREEMPTFSV" in qos.flags and in_violation(other, own, view):
        return True
    return _within_class(other, job, own, view, settings)


def _in_violation(other: Job, view: ClusterView) -> bool:
    """X2; Maui sees a violation in the pass after it began."""
    if settings_of(view).maui:
        return "SPVIOLATION" in other.marks
    return "SPVIOLATION" in other.spec.flags or bool(violates(other, view))


def _within_class(other: Job, job: Job, own: frozenset[str], view: ClusterView, settings: Settings) -> bool:
    """X9: of two jobs of one class the one that breaks a target gives way to the one that does not."""
    if other.partition.name != job.partition.name:
        return False
    if settings.fs_violation_preemption and in_violation(other, own, view):
        return not in_violation(job, flags(job, view), view)
    return settings.sp_violation_preemption and _in_violation(other, view) and not _beyond_soft(job, view)


def _beyond_soft(job: Job, view: ClusterView) -> bool:
    """Whether a waiting job would itself be beyond a soft limit."""
    return any_limits(view) and bool(beyond_soft(job, view))


def _outranks(mine: int, theirs: int, right: Right, settings: Settings) -> bool:
    """C3: strictly higher, except for owners and where it is switched off."""
    if right.ground == "owner" or (settings.ignore_preemptee_priority and not settings.maui):
        return True
    return mine > theirs if settings.choices.strict_priority or settings.maui else mine >= theirs


# ------------------------------------------------------------------------------------- guards
def _veto(
    other: Job,
    right: Right,
    chosen: Method,
    view: ClusterView,
    settings: Settings,
    now: Seconds,
    ask_again: list[Seconds],
) -> str:
    """Say why `other` is safe although the conditions hold; empty: it is not (G7, G9)."""
    if settings.maui:
        return ""
    return interactive(other, chosen, view) or throttled(other, right, view, now, ask_again)


def interactive(other: Job, chosen: Method, view: ClusterView) -> str:
    """Say why an interactive job is safe (G9); empty: it is not, or is none."""
    settings = settings_of(view)
    if "INTERACTIVE" not in flags(other, view) or not settings.choices.interactive_needs_cancel:
        return ""
    if chosen.mode is PreemptMode.CANCEL or settings.maui:
        return ""
    return f"K14 it is interactive; it would not be cancelled: {chosen.mode.value}"


def throttled(other: Job, right: Right, view: ClusterView, now: Seconds, ask_again: list[Seconds]) -> str:
    """Say which throttle protects `other` (G7, section 6); empty: none.

    :param ask_again: gets the instant at which the answer changes.
    """
    settings = settings_of(view)
    if settings.maui:
        return ""
    least = minimum(other, view)
    if right.ground == "owner" and not _owner_waits(right, settings):
        least = 0.0
    active = now - (other.resumed_at if other.resumed_at is not None else now)
    if active < least:
        ask_again.append(now + least - active)
        return f"K13 active for {active:g} s, least {least:g} s; eligible in {least - active:g} s"
    return _too_late(other, settings, now)


def _too_late(other: Job, settings: Settings, now: Seconds) -> str:
    ran = other.ran_until(now)
    if settings.choices.max_time_counts_suspended and other.started_at is not None:
        ran = now - other.started_at
    if settings.max_active_time and ran > settings.max_active_time:
        return f"K13 active for {ran:g} s, more than JOBPREEMPTMAXACTIVETIME ({settings.max_active_time:g} s)"
    if (
        settings.completion_time
        and other.end_at is not None
        and other.end_at - now <= settings.completion_time
    ):
        return f"K13 ends in {other.end_at - now:g} s, within JOBPREEMPTCOMPLETIONTIME"
    return ""


def minimum(other: Job, view: ClusterView) -> Seconds:
    """Return the least active time of a job before it is a victim: its own, its QoS's, or the global one."""
    own = other.spec.attributes.get("min_preempt_time")
    if own is not None:
        return float(own)
    of_qos = qos_of(other, view).preempt_min_time
    return of_qos if of_qos is not None else settings_of(view).min_active_time


def _owner_waits(right: Right, settings: Settings) -> bool:
    ignores = any("OWNERPREEMPTIGNOREMINTIME" in each.flags for each in right.owned)
    return settings.choices.owner_respects_min_time and not ignores


def _next_questions(
    job: Job,
    found: Verdicts,
    lowest: int | None,
    right: Right,
    view: ClusterView,
    settings: Settings,
    now: Seconds,
) -> None:
    """Note when the answer may change by waiting alone."""
    if lowest is not None and right.ground != "owner":
        at = outranks_at(job, lowest, view, now)
        if at is not None and at > now:
            found.ask_again.append(at)
    failing = any(chosen.fails for _, chosen in found.allowed)
    interval = view.settings(Clockwork).sched_interval
    if failing and interval:
        found.ask_again.append(now + interval)  # Maui tries again at every poll
    if not found.preemptees and not found.note:
        found.note = "K02 no job on a feasible node is marked PREEMPTEE"


__all__ = ["Right", "Verdicts", "asked_mode", "judge", "right_of"]

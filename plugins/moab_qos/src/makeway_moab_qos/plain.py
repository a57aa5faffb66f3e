"""Say for which jobs limits and room alone decide: those that displace none, and no reservation concerns."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import ClusterView, Job, JobState
from makeway_moab_qos.credentials import flags, qos_of, settings_of
from makeway_moab_qos.settings import Settings

_OF_QOS = frozenset(("RUNNOW", "RESTARTPREEMPT", "NOBF"))
"""Flags of a QoS that let its jobs displace others, or close nodes to them while others wait in front."""


def only_room_counts(settings: Settings) -> bool:
    """Whether no job holds a reservation at a site, and only marked ones displace others."""
    rights = settings.fs_violation_preemption or settings.sp_violation_preemption
    reserves = settings.depths or settings.reservation_policy == "HIGHEST" or settings.standing
    wants = settings.maui or settings.optimistic or settings.node_set_policy
    return not (wants or rights or reserves) and settings.backfills


def never_displaces(job: Job, view: ClusterView) -> bool:
    """Whether a waiting job displaces none, whatever is there, at a site where only room counts."""
    known: dict[tuple[str, str], bool] = settings_of(view).memo.setdefault("never_displaces", {})
    key = job.id, job.partition.name
    found = known.get(key)
    if found is None:
        found = known[key] = _never_displaces(job, view)
    return found


def _never_displaces(job: Job, view: ClusterView) -> bool:
    qos = qos_of(job, view)
    late = qos.preempt_qt_threshold is not None or qos.preempt_xf_threshold is not None
    allowed = "PREEMPTOR" in flags(job, view) or late or not _OF_QOS.isdisjoint(qos.flags)
    reserved = any(flag.startswith("USERESERVED") for flag in qos.flags)
    return only_room_counts(settings_of(view)) and not (allowed or reserved)


def comes_off_no_better(job: Job, view: ClusterView) -> bool:
    """Whether nothing but its place in the queue tells a job from others of its request that stood before it in a pass.

    Then at least as much is promised to those before it, and it outranks no more of the active jobs. A victim that is
    suspended may close its nodes to the preemptor, so that fewer victims may make more room.
    """
    settings, qos = settings_of(view), qos_of(job, view)
    rights = settings.fs_violation_preemption or settings.sp_violation_preemption
    own = rights or settings.reservation_policy == "HIGHEST" or settings.node_set_policy
    late = qos.preempt_qt_threshold is not None or qos.preempt_xf_threshold is not None
    closes = settings.check_suspended_job_priority and settings.preempt_policy == "SUSPEND"
    other = settings.maui or settings.optimistic or settings.search_depth is not None
    return not (own or late or closes or other)


def suspended(view: ClusterView) -> Sequence[Job]:
    """Return the suspended jobs; looked for once while no job starts, stops or goes on."""
    if view.made_way:
        gone = {id(job) for job in view.made_way}
        return [job for job in view.active if job.state is JobState.SUSPENDED and id(job) not in gone]
    memo = settings_of(view).memo
    known: tuple[int, list[Job]] | None = memo.get("suspended")
    if known is None or known[0] != view.version:
        found = [job for job in view.active if job.state is JobState.SUSPENDED]
        known = memo["suspended"] = (view.version, found)
    return known[1]

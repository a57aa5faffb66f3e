"""Say who may do what by hand (moab 2.1 and 11): the six of ``mjobctl``, and what else there is.

A manual action looks at no PREEMPTOR or PREEMPTEE, no priority and no throttle. It is carried out exactly
as asked or refused; it never escalates.
"""

from __future__ import annotations

from makeway.model import ClusterView, Job, JobState
from makeway_moab_qos.capabilities import supports
from makeway_moab_qos.credentials import flags, settings_of
from makeway_moab_qos.settings import Settings

OWNER = ("cancel", "suspend", "requeue", "checkpoint")
"""What owners may do to their jobs; Maui lets them resume too (Q11)."""
ADMINS = 2
"""Administrators up to this level may do everything; those of level 3 may only look."""
_NEEDS = {"suspend": "SUSPENDABLE", "requeue": "RESTARTABLE"}
_STATES = {
    "requeue": (JobState.RUNNING,),
    "checkpoint": (JobState.RUNNING,),
    "suspend": (JobState.RUNNING,),
    "resume": (JobState.SUSPENDED,),
    "start": (JobState.PENDING,),
}
_WORDS = {
    JobState.PENDING: "idle",
    JobState.RUNNING: "running",
    JobState.SUSPENDED: "suspended",
    JobState.COMPLETING: "ending",
}


def level(user: str | None, settings: Settings) -> int | None:
    """Return an administrator's level; None: the user is none."""
    if user is None:
        return 1
    for number, names in enumerate((settings.admin1, settings.admin2, settings.admin3), start=1):
        if user in names:
            return number
    return None


def refusal(command: str, job: Job, user: str | None, view: ClusterView) -> str | None:
    """Return why a command is refused; None: it is not. For the hook."""
    settings = settings_of(view)
    if not _permitted(command, job, user, settings):
        return _not_permitted(command, job, user, settings)
    allowed = _STATES.get(command)
    if allowed is not None and job.state not in allowed:
        wanted = " or ".join(_WORDS[state] for state in allowed)
        return f"the job is {_WORDS.get(job.state, job.state.value)}; {command} needs one that is {wanted}"
    if settings.maui:
        return None
    need = _NEEDS.get(command)
    if need is not None and need not in flags(job, view):
        return f"the job is not {need}, which {command} needs; nothing else is done in its place"
    if command in ("suspend", "requeue", "checkpoint") and not supports(settings, command):
        return f"the resource manager cannot {command}"
    return _taken(job, view) if command == "resume" else None


def _taken(job: Job, view: ClusterView) -> str | None:
    """Say who runs on the processors that a suspended job would go on with; None: they are free."""
    for index, wanted in processors_on(job, view):
        others = [other for other in view.jobs_on(index) if other.state is JobState.RUNNING]
        used = sum(count for other in others for at, count in processors_on(other, view) if at == index)
        node = view.cluster.nodes[index]
        if used + wanted > node.cpus:
            names = ", ".join(other.id for other in others)
            runs = "runs" if len(others) == 1 else "run"
            return f"{wanted} processors on {node.name} wanted, {max(0, node.cpus - used)} free: {names} {runs} there"
    return None


def processors_on(job: Job, view: ClusterView) -> list[tuple[int, int]]:
    """Return each node of an active job with the processors that it holds there."""
    held = job.allocation
    if held is None:
        return []
    cpus = held.cpus or [view.cluster.nodes[index].cpus for index in held.node_indices]
    return list(zip(held.node_indices, cpus, strict=True))


def _permitted(command: str, job: Job, user: str | None, settings: Settings) -> bool:
    rank = level(user, settings)
    if rank is not None and rank <= ADMINS:
        return True
    if user != job.user:
        return False
    return command in OWNER or (command == "resume" and settings.maui)


def _not_permitted(command: str, job: Job, user: str | None, settings: Settings) -> str:
    if level(user, settings) == 3:
        return f"{user} is an administrator of level 3, who may look but not {command}"
    if user == job.user:
        return f"its owner may not {command} a job; an administrator may"
    return f"{user} is neither the owner of the job nor an administrator"

"""Find the jobs that a person means: a name, a list, a regular expression, ``-w`` words (moab 2.1).

With USEJOBREGEX TRUE every expression is a regular expression that may match anywhere; otherwise it has to
match the whole name. Maui acts on the first match only (Q10). ``-w ATTR=VALUE`` goes with cancel; several are
joined by or.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from makeway.model import ClusterView, Job, JobState
from makeway_moab_qos.credentials import qos_name, settings_of

_WORD = re.compile(r"-w\s+([A-Za-z]+)=(\S+)")
_STATES = {"idle": JobState.PENDING, "running": JobState.RUNNING, "suspended": JobState.SUSPENDED}


def jobs_named(expression: str, command: str, _user: str | None, view: ClusterView) -> list[str] | None:
    """Return the ids of the jobs that `expression` names; None: it is one plain id. For the hook."""
    settings = settings_of(view)
    jobs = sorted((*view.pending, *view.active), key=lambda job: job.index)
    if expression.startswith("-w"):
        found = _described(expression, jobs, view) if command == "cancel" else []
    elif not settings.use_job_regex and view.job(expression) is not None:
        return None
    else:
        found = _matching(expression, jobs, anywhere=settings.use_job_regex)
        if not found and re.fullmatch(r"[\w.\-]+", expression):
            return None  # a plain id that no job has: the refusal says so
    return found[:1] if settings.maui else found


def _matching(expression: str, jobs: list[Job], *, anywhere: bool) -> list[str]:
    names = {job.id for job in jobs}
    listed = [word for word in expression.split(",") if word]
    if not anywhere and all(word in names for word in listed):
        return list(dict.fromkeys(listed))
    try:
        pattern = re.compile(expression if anywhere else "|".join(f"(?:{word})" for word in listed))
    except re.error:
        return []
    matches: Callable[[str], object] = pattern.search if anywhere else pattern.fullmatch
    return [job.id for job in jobs if matches(job.id)]


def _described(expression: str, jobs: list[Job], view: ClusterView) -> list[str]:
    words = _WORD.findall(expression)
    if _WORD.sub("", expression).strip() or not words:
        return []
    return [job.id for job in jobs if any(_fits(job, name.lower(), value, view) for name, value in words)]


def _fits(job: Job, name: str, value: str, view: ClusterView) -> bool:
    if name == "state":
        return job.state is _STATES.get(value.lower())
    known: Mapping[str, str | None] = {
        "user": job.user,
        "group": job.spec.group,
        "account": job.account,
        "acct": job.account,
        "class": job.partition.name,
        "qos": qos_name(job, view),
        "name": job.spec.name,
        "jobname": job.spec.name,
        "reservation": job.spec.reservation,
        "partition": job.partition.name,
    }
    return known.get(name) == value

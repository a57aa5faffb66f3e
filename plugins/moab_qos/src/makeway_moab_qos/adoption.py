"""Save what Moab remembers beside the jobs: usage, frozen priorities, reservations, who was passed by.

`Settings.memo` holds all of that, beside answers that are found out again. Times are seconds since the start of the
replay, usage is in processor-seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.model import ClusterView, JobState
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.fairshare import Usage, is_on, usage_of
from makeway_moab_qos.priority import frozen_as
from makeway_moab_qos.settings import Settings
from makeway_moab_qos.turns import Turns


def save(view: ClusterView) -> dict[str, Any] | None:
    """Return the memory in values that JSON has; None: there is none."""
    settings = settings_of(view)
    memo = settings.memo
    found: dict[str, Any] = {}
    if is_on(settings):
        found["fairshare"] = _usage_to_plain(usage_of(settings))
    found["frozen"] = _still_frozen(memo.get("frozen", {}), view)
    found["reserved"] = [job_id for job_id in memo.get("reserved", ()) if view.job(job_id) is not None]
    counts = memo.get("bypassed", {})
    found["bypassed"] = {job_id: count for job_id, count in counts.items() if view.job(job_id) is not None}
    if "order" in memo:
        made, ordered = memo["order"]
        named: Turns | None = memo.get("turns")
        if made is None and named is not None and (again := named.ordered(view.now)) is not None:
            made, ordered = view.now, again
        waiting = [job_id for job_id in ordered if _waits(job_id, view)]
        if made is not None and waiting:
            found["order"] = [made, waiting]
    if "monday" in memo.get("calendar", {}):
        found["monday"] = memo["calendar"]["monday"]
    return {key: value for key, value in found.items() if value not in ({}, [])} or None


def _waits(job_id: str, view: ClusterView) -> bool:
    job = view.job(job_id)
    return job is not None and job.state is JobState.PENDING


def _still_frozen(frozen: Mapping[str, Any], view: ClusterView) -> dict[str, Any]:
    """Return the priorities of active jobs; those of an earlier incarnation are stale and left out."""
    found = {}
    for job in view.active:
        state, value = frozen.get(job.id, (None, 0))
        if state == frozen_as(job):
            found[job.id] = [list(state), value]
    return found


def restore(memory: Mapping[str, Any], view: ClusterView) -> None:
    """Remember the same; what names jobs that are gone is harmless."""
    settings: Settings = settings_of(view)
    memo = settings.memo
    if "fairshare" in memory:
        memo["fairshare"] = _usage_of_plain(memory["fairshare"])
    memo["frozen"] = {
        job_id: ((state[0], state[1], state[2]), value)
        for job_id, (state, value) in memory.get("frozen", {}).items()
    }
    memo["reserved"] = dict.fromkeys(memory.get("reserved", ()))
    memo["bypassed"] = dict(memory.get("bypassed", {}))
    if "order" in memory:
        made, ordered = memory["order"]
        memo["order"] = (made, list(ordered))
    if "monday" in memory:
        memo["calendar"] = {"monday": memory["monday"]}


def _usage_to_plain(usage: Usage) -> dict[str, Any]:
    return {
        "last": usage.last,
        "running": [[processors, [list(each) for each in whose]] for processors, whose in usage.running],
        "used": [[kind, name, _windows_to_plain(table)] for (kind, name), table in usage.used.items()],
        "total": _windows_to_plain(usage.total),
    }


def _usage_of_plain(plain: Mapping[str, Any]) -> Usage:
    return Usage(
        last=plain["last"],
        running=[
            (processors, tuple((kind, name) for kind, name in whose))
            for processors, whose in plain["running"]
        ],
        used={(kind, name): _windows_of_plain(table) for kind, name, table in plain["used"]},
        total=_windows_of_plain(plain["total"]),
    )


def _windows_to_plain(table: Mapping[int, float]) -> dict[str, float]:
    return {str(window): amount for window, amount in table.items()}


def _windows_of_plain(plain: Mapping[str, float]) -> dict[int, float]:
    return {int(window): amount for window, amount in plain.items()}

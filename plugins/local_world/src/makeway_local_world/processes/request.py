"""Say to a keeper what it is to hold: one value, made of the job's submission and of what the engine gave it."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any

from makeway.model import Cluster
from makeway.worlds.events import Start
from makeway_local_world.keeping import proc, words
from makeway_local_world.processes.environment import environment_of
from makeway_local_world.processes.machine import Cgroups, Cores
from makeway_local_world.processes.settings import Settings
from makeway_local_world.submission import Names, Submission, file_name, paths


def names_of(submission: Submission, action: Start, node: str) -> Names:
    """Return what the fields of paths stand for in an incarnation."""
    spec = action.job.spec
    return Names(
        job_id=action.job.id,
        array_id=spec.array_id,
        array_task=spec.array_task if spec.array_id is not None else None,
        name=spec.name,
        user=submission.user,
        node=node,
        incarnation=action.incarnation,
    )


def groups_of(submission: Submission) -> list[int]:
    """Return the supplementary groups that a job starts with; user databases may take their time."""
    if submission.groups is not None:
        return sorted(submission.groups)
    if os.geteuid() != 0 and submission.uid == os.geteuid():
        return sorted(os.getgroups())
    return sorted(os.getgrouplist(submission.user, submission.gid))


def request_of(
    submission: Submission,
    action: Start,
    *,
    cluster: Cluster,
    settings: Settings,
    kill_wait: float,
    daemon: str,
    cores: Cores,
    cgroups: Cgroups,
    gpus: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the request for one incarnation."""
    job, allocation = action.job, action.allocation or action.job.allocation
    node = cluster.nodes[allocation.node_indices[0]].name if allocation is not None else socket.gethostname()
    out, err = paths(submission, names := names_of(submission, action, node))
    again = action.incarnation > 1 and "%I" not in submission.output
    return {
        "v": words.VERSION,
        "job": job.id,
        "incarnation": action.incarnation,
        "boot": proc.boot_id(),
        "monotonic": time.monotonic(),
        "wall": time.time(),
        "argv": list(submission.command),
        "script": submission.script,
        "cwd": submission.cwd,
        "environment": environment_of(submission, job, action.incarnation, allocation, cluster, daemon, gpus),
        "input": names.expand(submission.input) if submission.input else None,
        "output": out,
        "error": err,
        "append": submission.open_mode == "append" or again,
        "umask": submission.umask,
        "uid": submission.uid,
        "gid": submission.gid,
        "groups": groups_of(submission),
        "limits": {name: list(values) for name, values in submission.limits.items()},
        "nice": submission.nice,
        "oom_score_adj": settings.oom_score_adj,
        "cores": cores.of(allocation) if settings.bind else [],
        "cgroup": cgroups.path_of(f"{file_name(job.id)}.{action.incarnation}"),
        "cgroup_limits": _limits(action, cgroups),
        "gpus": list(gpus or ()),
        "tier": job.partition.priority_tier,
        "die_with_keeper": submission.requeueable,
        "stopped": action.stopped,
        "ahead": ahead_of(submission, action.job.time_limit),
        "kill_wait": kill_wait,
        "leftovers": settings.leftovers,
        "leftover_grace": settings.leftover_grace,
        "notice": submission.notice,
        "checkpoint": submission.checkpoint,
        "on_end": submission.on_end,
        "on_end_limit": settings.on_end_limit,
    }


def ahead_of(submission: Submission, limit: float | None) -> dict[str, Any] | None:
    """Return the signal that a job gets ahead of its time limit, in seconds of running; None: none."""
    number = getattr(signal, f"SIG{submission.signal}", None) if submission.signal else None
    if number is None or limit is None:
        return None
    after = max(0.0, limit - submission.signal_before)
    return {"signal": int(number), "after": after, "leader_only": submission.signal_leader_only}


def _limits(action: Start, cgroups: Cgroups) -> dict[str, str]:
    """Return what is written into the files of the cgroup."""
    allocation = action.allocation or action.job.allocation
    if "memory" not in cgroups.controllers or allocation is None or allocation.memory_mb is None:
        return {}
    limit = sum(allocation.memory_mb)
    return {"memory.max": str(limit << 20), "memory.oom.group": "0"} if limit else {}


def encode(request: dict[str, Any]) -> bytes:
    """Return a request as the keeper reads it."""
    return json.dumps(request, separators=(",", ":")).encode("ascii")


__all__ = ["ahead_of", "encode", "groups_of", "names_of", "request_of"]

"""Say what is to be held: made of the job's submission and of what the engine gave it, once, when it is accepted.

The mandate is what root does for a start; the request is what the owner's processes do, and root never reads it.
"""

from __future__ import annotations

import functools
import json
import os
import pwd
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from makeway.model import Cluster
from makeway.worlds.events import Start
from makeway_local_world.keeping import proc, words
from makeway_local_world.processes.environment import environment_of
from makeway_local_world.processes.machine import Cgroups, Cores
from makeway_local_world.processes.settings import Settings
from makeway_local_world.submission import Names, Submission, paths


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
    try:
        name = pwd.getpwuid(submission.uid).pw_name
    except KeyError:
        return [submission.gid]  # a number that has no name has no groups, even if a user is called like it
    return sorted(os.getgrouplist(name, submission.gid))


def mandate_of(
    submission: Submission,
    action: Start,
    *,
    settings: Settings,
    cores: Cores,
    cgroups: Cgroups,
    gpus: Sequence[str] | None,
    obstacle: str,
) -> dict[str, Any]:
    """Return what root does for one incarnation, before all rights are the owner's.

    :param obstacle: why it cannot be checkpointed; empty: it can be.
    """
    job = action.job
    return {
        "v": words.VERSION,
        "job": job.id,
        "incarnation": action.incarnation,
        "boot": _boot_id(),
        "monotonic": time.monotonic(),
        "wall": time.time(),
        "uid": submission.uid,
        "gid": submission.gid,
        "groups": groups_of(submission),
        "oom_score_adj": settings.oom_score_adj,
        "cgroup": cgroups.path_of(job.id, action.incarnation),
        "cgroup_limits": _limits(action, settings, cores, cgroups),
        "gpus": list(gpus or ()),
        "memory_mb": 0 if "memory" in cgroups.controllers else _memory_of(action),
        "tier": job.partition.priority_tier,
        "requeueable": submission.requeueable,
        "retries": submission.retries,
        "requeue_exit": list(submission.requeue_exit),
        "obstacle": obstacle,
        "dumped": not obstacle and submission.checkpoint is None,
        "watched": action.stopped
        or ahead_of(submission, action.job.time_limit) is not None
        or "begin" in submission.tell_at,
        "asks_at_end": bool(submission.on_end or submission.tell_at),
    }


def request_of(
    submission: Submission,
    action: Start,
    *,
    cluster: Cluster,
    settings: Settings,
    kill_wait: float,
    daemon: str,
    cores: Cores,
    gpus: Sequence[str] | None,
) -> dict[str, Any]:
    """Return what the owner's processes do in one incarnation."""
    job, allocation = action.job, action.allocation or action.job.allocation
    node = cluster.nodes[allocation.node_indices[0]].name if allocation is not None else socket.gethostname()
    out, err = paths(submission, names := names_of(submission, action, node))
    again = action.incarnation > 1 and "%I" not in submission.output
    return {
        "job": job.id,
        "argv": _argv(submission),
        "script": submission.script,
        "cwd": submission.cwd,
        "environment": environment_of(submission, job, action.incarnation, allocation, cluster, daemon, gpus),
        "input": names.expand(submission.input) if submission.input else None,
        "output": out,
        "error": err,
        "append": submission.open_mode == "append" or again,
        "umask": submission.umask,
        "limits": {name: list(values) for name, values in submission.limits.items()},
        "nice": submission.nice,
        "cores": cores.of(allocation) if settings.bind else [],
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
        "tell": submission.tell,
        "tell_at": list(submission.tell_at),
    }


def _argv(submission: Submission) -> list[str]:
    """Return what is executed: in the foreground, what lets the command meet its guest."""
    if submission.terminal is None:
        return list(submission.command)
    kind = "pty" if submission.pty else "streams"
    host = [sys.executable, "-I", "-m", "makeway_local_world.terminals.host"]
    return [*host, kind, submission.terminal, *submission.command]


@functools.cache
def _boot_id() -> str:
    """Return what names this boot of the machine, which this process does not outlive."""
    return proc.boot_id()


def ahead_of(submission: Submission, limit: float | None) -> dict[str, Any] | None:
    """Return the signal that a job gets ahead of its time limit, in seconds of running; None: none."""
    number = getattr(signal, f"SIG{submission.signal}", None) if submission.signal else None
    if number is None or limit is None:
        return None
    after = max(0.0, limit - submission.signal_before)
    return {"signal": int(number), "after": after, "leader_only": submission.signal_leader_only}


def _memory_of(action: Start) -> int:
    """Return the memory in MB that an incarnation was given, or asked for where no policy counts memory; 0: neither."""
    allocation, spec = action.allocation or action.job.allocation, action.job.spec
    if allocation is not None and allocation.memory_mb:
        return sum(allocation.memory_mb)
    return (spec.memory_mb_per_node or 0) * spec.min_nodes or (spec.memory_mb_per_cpu or 0) * spec.cpus


def _limits(action: Start, settings: Settings, cores: Cores, cgroups: Cgroups) -> dict[str, str]:
    """Return what is written into the files of the cgroup."""
    allocation = action.allocation or action.job.allocation
    cpus = sum(allocation.cpus or ()) if allocation is not None else 0
    bound = cores.of(allocation) if settings.bind else []
    return cgroups.limits(
        _memory_of(action), cpus or action.job.spec.cpus, bound, settings.max_processes, settings.swap_counts
    )


def encode(what: dict[str, Any]) -> bytes:
    """Return a mandate or a request as it is sent."""
    return json.dumps(what, separators=(",", ":")).encode("ascii")

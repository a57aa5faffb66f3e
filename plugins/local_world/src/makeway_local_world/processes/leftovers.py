"""Find and kill what is left of an incarnation whose keeper is dead (local-world 3).

The environment is a mark, not a proof: the user must match as well, and nothing older than the start is touched.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from makeway_local_world.keeping import proc, walk
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.proc import Process
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.environment import DAEMON, JOB, mark_of

_PAUSE = 0.005
_LOOKS = 200
"""Looks for what forks faster than it is killed."""


def marked(
    daemon: str, marks: Mapping[str, int], look: Callable[[int], Process | None] = proc.look
) -> list[Process]:
    """Return processes of the daemon's jobs.

    :param marks: value of MAKEWAY_JOB -> ticks at which its keeper began; what is older is left alone.
    """
    found = []
    for pid in proc.everybody():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = dict(word.partition(b"=")[::2] for word in file.read().split(b"\0") if word)
        except OSError:
            continue
        mark = words.get(JOB.encode(), b"").decode("utf-8", "surrogateescape")
        if mark not in marks or words.get(DAEMON.encode()) != daemon.encode():
            continue
        process = look(pid)
        if process is not None and process.state not in proc.ENDED and process.started >= marks[mark]:
            found.append(process)
    return found


def kill(started: Mapping[str, Any], daemon: str, uid: int | None, limit: float) -> list[Process]:
    """Kill what is left of an incarnation until two looks find nothing; return who is left after `limit` seconds.

    :param started: its file `started`.
    :param uid: whose processes they must be; None: unknown, the mark has to do.
    """
    cgroup = Cgroup(started["cgroup"]) if started.get("cgroup") else None
    mark = mark_of(started["job"], started["incarnation"])
    deadline = time.monotonic() + limit
    quiet = 0
    while True:
        if cgroup is not None and not cgroup.empty():
            cgroup.kill()
        found = [
            each
            for each in marked(daemon, {mark: started["ticks"]})
            if uid is None or _owner(each.pid) == uid
        ]
        for each in found:
            for below in (each, *proc.below(each.pid)):
                walk.send(below, 9)
        quiet = 0 if found or (cgroup is not None and not cgroup.empty()) else quiet + 1
        if quiet >= 2:
            if cgroup is not None:
                cgroup.remove()
            return []
        if time.monotonic() > deadline:
            return found
        if not quiet:
            time.sleep(_PAUSE)


def kill_all(case: Case, *, keeper: bool = True) -> None:
    """Kill what belongs to an incarnation whose keeper lives; last the keeper itself, unless it is spared."""
    if case.cgroup is not None and keeper:
        case.cgroup.kill()
    elif case.cgroup is not None:
        case.cgroup.kill_job()
    tree = walk.Tree(case.pid)
    for _ in range(_LOOKS):
        if case.handle < 0 or case.keeper_has_ended() or not tree.kill()[1]:
            break  # its number may be another's by now
    if keeper:
        case.signal_keeper(signal.SIGKILL)


def _owner(pid: int) -> int | None:
    """Return the real user of a process; None: it has gone."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"Uid:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None

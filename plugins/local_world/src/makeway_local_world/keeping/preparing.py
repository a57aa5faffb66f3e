"""Prepare a start in the child that is to become the job, so that its keeper need not touch what this takes.

Space for the end is taken, the cgroup is made, and the start is written down, in this order. The child holds the lock
as well until the job begins, and ends if its keeper has gone: whoever finds the lock free finds `started`, or nothing
was started.
"""

from __future__ import annotations

import os

from makeway_local_world.keeping import child, proc, words
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.files import read_open, write_all, write_durably
from makeway_local_world.keeping.lean import read_json, socket, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

PLAIN = b"+"
"""Said once the start is written down: all that the job asks of its keeper is to wait."""
WATCHED = b"!"
"""Said instead of a job that starts stopped, or that gets a signal after so much running time."""


def start(request_file: int, directory: int, line: socket.socket, failure: int, keeper: int) -> NoReturn:
    """Prepare the start, and become the job.

    :param failure: where it says that the start is written down, or why it failed; it closes when the job begins.
    :param keeper: pid of the parent.
    """
    try:
        request = read_json(read_open(request_file))
        if os.getppid() != keeper:
            os._exit(1)  # it was killed: nothing has been started, and nothing will be
        watched = request.get("stopped") or request.get("ahead") is not None
        cgroup = Cgroup(request["cgroup"]) if request.get("cgroup") else None
        try:
            _write_down(request, directory, line, cgroup, keeper)
            write_all(failure, WATCHED if watched else PLAIN)
        except BaseException:
            if cgroup is not None:
                cgroup.remove()
            raise
    except BaseException as error:
        number = getattr(error, "errno", None) or 0
        what = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        with suppress(OSError):  # the keeper has gone
            write_all(failure, f"keeper\0{number}\0{what[:500]}".encode("utf-8", "surrogateescape"))
        os._exit(1)
    child.become(request, failure, keeper)
    os._exit(1)


def _write_down(
    request: dict[str, Any], directory: int, line: socket.socket, cgroup: Cgroup | None, keeper: int
) -> None:
    """Make sure that the end can be written, then say that the job is about to start."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    handle = os.open(words.EXIT_TEMPORARY, flags, 0o600, dir_fd=directory)
    try:
        os.posix_fallocate(handle, 0, words.EXIT_SIZE)
    finally:
        os.close(handle)
    if cgroup is not None:
        refused = cgroup.make(request.get("cgroup_limits", {}))
        if refused:
            words.send(line, words.pack(say="unlimited", what=refused))
    started = _started(request, keeper)
    write_durably(directory, words.STARTED, words.pack(**started))
    words.send(line, words.pack(say="started", **started))


def _started(request: dict[str, Any], keeper: int) -> dict[str, Any]:
    """Return what names a keeper for certain."""
    found = proc.look(keeper)
    assert found is not None
    return {
        "job": request["job"],
        "incarnation": request["incarnation"],
        "pid": found.pid,
        "ticks": found.started,
        "boot": request["boot"],
        "monotonic": request["monotonic"],
        "wall": request["wall"],
        "cgroup": request.get("cgroup"),
        "gpus": request.get("gpus", []),
        "tier": request.get("tier", 0),
        "uid": request["uid"],
        "requeueable": bool(request.get("die_with_keeper")),
    }


__all__ = ["PLAIN", "WATCHED", "start"]

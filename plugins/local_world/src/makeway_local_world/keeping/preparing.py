"""Prepare a start in the child that is to become the job, so that its keeper need not touch what this takes.

Space for the end is taken, and the start is written down, in this order; with root's rights, by the mandate alone.
The child holds the lock as well until it has the owner's rights and the signal that ends it with its keeper: where the
lock is free, `started` is there, or nothing was started.
"""

from __future__ import annotations

import os

from makeway_local_world.keeping import child, proc, rights, words
from makeway_local_world.keeping.files import create_durably, write_all
from makeway_local_world.keeping.lean import socket, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

PLAIN = b"+"
"""Said once the start is written down: all that the job asks of its keeper is to wait."""
WATCHED = b"!"
"""Said instead of a job that starts stopped, or that gets a signal after so much running time."""


def start(
    mandate: Mapping[str, Any],
    request_file: int,
    directory: int,
    line: socket.socket,
    failure: int,
    report: int | None,
    keeper: int,
) -> NoReturn:
    """Prepare the start, and become the job.

    :param failure: where it says that the start is written down, or why it failed; it closes when the job begins.
    :param report: where the job itself says that it was saved; None: nothing saves it.
    :param keeper: pid of the parent.
    """
    try:
        if os.getppid() != keeper:
            os._exit(1)  # it was killed: nothing has been started, and nothing will be
        rights.check(mandate)
        _write_down(mandate, directory, line, keeper)
        write_all(failure, WATCHED if mandate.get("watched") else PLAIN)
    except BaseException as error:
        number = getattr(error, "errno", None) or 0
        what = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        step = "rights" if isinstance(error, rights.RightsError) else "keeper"
        with suppress(OSError):  # the keeper has gone
            write_all(failure, f"{step}\0{number}\0{what[:500]}".encode("utf-8", "surrogateescape"))
        os._exit(1)
    child.job(mandate, request_file, failure, report, keeper)


def _write_down(mandate: Mapping[str, Any], directory: int, line: socket.socket, keeper: int) -> None:
    """Make sure that the end can be written, then say that the job is about to start."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    for name, size in ((words.EXIT, words.EXIT_SIZE), (words.SAVED, words.SAVED_SIZE)):
        if name == words.EXIT or mandate.get("dumped"):
            handle = os.open(name, flags, 0o600, dir_fd=directory)
            try:
                os.posix_fallocate(handle, 0, size)
            finally:
                os.close(handle)
    create_durably(directory, {words.STARTED: words.pack(**started(mandate, keeper)) + b"\n"})
    words.send(line, words.pack(say="started"))


def started(mandate: Mapping[str, Any], keeper: int) -> dict[str, Any]:
    """Return what names a keeper for certain."""
    found = proc.look(keeper)
    assert found is not None
    return {
        "job": mandate["job"],
        "incarnation": mandate["incarnation"],
        "pid": found.pid,
        "ticks": found.started,
        "boot": mandate["boot"],
        "monotonic": mandate["monotonic"],
        "wall": mandate["wall"],
        "cgroup": mandate.get("cgroup"),
        "gpus": mandate.get("gpus", []),
        "memory_mb": mandate.get("memory_mb", 0),
        "tier": mandate.get("tier", 0),
        "uid": mandate["uid"],
        "requeueable": bool(mandate.get("requeueable")),
        "retries": mandate.get("retries", 0),
        "requeue_exit": mandate.get("requeue_exit", []),
        "obstacle": str(mandate.get("obstacle", "")),
        "dumped": bool(mandate.get("dumped")),
    }

"""Fork keepers: one process per daemon, small, with a single thread (local-world 1.1).

The daemon sends, for each start, a packet with what root is to do for it (the mandate) and four descriptors: the lock,
the request, the directory of the incarnation, and a line to talk over. Whatever is on its way when the nursery ends
goes with it, and frees its lock. It ends when the daemon has gone.
"""

from __future__ import annotations

import gc
import os
import sys

from makeway_local_world.keeping import linux, rehearsing, rights, words
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.keeper import Keeper
from makeway_local_world.keeping.lean import receive_descriptors, signal, socket
from makeway_local_world.keeping.post import Post, StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DESCRIPTORS = 4
_SPARED = -500
"""How much less than others the kernel takes the nursery when memory runs out."""


def main() -> None:
    """Serve the socket whose number is the first argument."""
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR)
    for handle in (0, 1, 2):  # keepers outlive the daemon: they must not keep a terminal or a pipe of it open
        os.dup2(null, handle)
    if null > 2:
        os.close(null)
    door = socket.socket(fileno=int(sys.argv[-1]))
    os.set_inheritable(door.fileno(), False)
    linux.call_me("makeway-nursery")
    rights.set_oom_score(_SPARED)
    os.nice(max(0, -os.nice(0)))  # a daemon that was raised raises no job
    os.umask(0o077)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers that end are collected by the kernel
    rehearsing.rehearse()
    gc.disable()
    gc.collect()
    set_aside = getattr(gc, "freeze", None)  # PyPy has none
    if set_aside is not None:
        set_aside()  # pages stay shared with the keepers
    while _serve(door):
        pass


def _serve(door: socket.socket) -> bool:
    """Fork one keeper; return whether the daemon is still there."""
    try:
        data, handles = receive_descriptors(door, words.LONGEST_MANDATE, DESCRIPTORS)
    except OSError:
        return False
    if not data:
        return False
    if len(handles) == DESCRIPTORS:
        _, request, directory, handle = handles  # the lock stays open for as long as the keeper lives
        line = socket.socket(fileno=handle)
        try:
            mandate = words.unpack(data)
            if linux.fork(_cgroup(mandate, line)) == 0:
                door.close()
                _keep(mandate, request, directory, line)
        except Exception as error:
            _say_failed(line, error)
        line.detach()
    for handle in handles:
        os.close(handle)
    return True


def _cgroup(mandate: dict[str, Any], line: socket.socket) -> str | None:
    """Make the cgroup of an incarnation; return the part in which its keeper lives. None: it gets none.

    :raises OSError: it cannot be made.
    """
    path = mandate.get("cgroup")
    if not path:
        return None
    cgroup = Cgroup(path)
    refused = cgroup.make(mandate.get("cgroup_limits", {}))
    if refused:
        words.send(line, words.pack(say="unlimited", what=refused))
    return cgroup.beside


def _say_failed(line: socket.socket, error: BaseException) -> None:
    """Say why there is no keeper."""
    known = isinstance(error, (OSError, StartError))
    what = str(error) if known else f"{type(error).__name__}: {error}"
    number, step = getattr(error, "errno", None) or 0, getattr(error, "step", "keeper")
    words.send(line, words.pack(say="failed", step=step, number=number, what=what[:500]))


def _keep(mandate: dict[str, Any], request_file: int, directory: int, line: socket.socket) -> None:
    """Be a keeper; never returns."""
    try:
        os.setsid()
        linux.adopt_orphans()
        linux.call_me("makeway-keeper")
        rights.set_oom_score(0)  # what the owner runs beside the job starts from here
        post = Post(mandate, request_file, directory, line)
        if not (post.start() and post.wait()):
            Keeper(post).live()
    except BaseException as error:
        _say_failed(line, error)
        os._exit(1)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()

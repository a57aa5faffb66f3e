"""Become the job: what happens between fork and exec, in the order that keeps rights apart (spec local-world 5).

New session, cgroup, limits and niceness and cores, groups and user, umask, directory, output, descriptors, signals,
exec. No path of the user's is touched before the rights are the user's.
"""

from __future__ import annotations

import os
import resource
import stat

from makeway_local_world.keeping import linux
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.files import write_all
from makeway_local_world.keeping.lean import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ChildError(Exception):
    """A step failed: which, on what, and why."""

    def __init__(self, step: str, what: str, error: OSError) -> None:
        super().__init__(step, what, error)
        self.step = step
        self.what = what
        self.number = error.errno or 0

    def encode(self) -> bytes:
        """Return it as the keeper reads it."""
        return f"{self.step}\0{self.number}\0{self.what}".encode("utf-8", "surrogateescape")[:4000]


def become(request: Mapping[str, Any], failure: int, keeper: int) -> None:
    """Turn this process into the job; never returns.

    :param failure: where a failure is written; it closes when the job begins.
    :param keeper: pid of the parent.
    """
    try:
        _enter(request)
        _drop_rights(request)
        if request.get("die_with_keeper"):
            linux.die_with_parent(signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)
        _step("umask", "", os.umask, request["umask"])
        _step("working directory", request["cwd"], os.chdir, request["cwd"])
        _open_standard(request)
        argv, kept = _program(request)
        _close_all_but(failure, *kept)
        _reset_signals()
        if request.get("stopped"):
            os.kill(os.getpid(), signal.SIGSTOP)
        environment = {str(key): str(value) for key, value in request["environment"].items()}
        _step("exec", argv[0], _exec, argv, environment)
    except ChildError as error:
        write_all(failure, error.encode())
    except BaseException as error:
        text = f"start\0{getattr(error, 'errno', 0) or 0}\0{type(error).__name__}: {error}"
        write_all(failure, text.encode("utf-8", "replace")[:4000])
    finally:
        os._exit(127)


def _step(name: str, what: str, call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except OSError as error:
        raise ChildError(name, what, error) from error


def _enter(request: Mapping[str, Any]) -> None:
    """Do what needs the keeper's rights."""
    os.setsid()
    if request.get("cgroup"):
        _step("cgroup", request["cgroup"], Cgroup(request["cgroup"]).enter)
    for name, values in request.get("limits", {}).items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            _step("limit", name, _limit, number, *values)
    if request.get("oom_score_adj") is not None:
        _raise_oom_score(int(request["oom_score_adj"]))
    if request.get("nice"):
        _step("nice", str(request["nice"]), os.nice, int(request["nice"]))
    if request.get("cores"):
        _step("cores", "", os.sched_setaffinity, 0, request["cores"])


def _limit(number: int, soft: int, hard: int) -> None:
    """Set a resource limit, never above the hard one that there is: a request gives nobody more than the site does."""
    _, most = resource.getrlimit(number)
    hard = _lower(hard, most)
    resource.setrlimit(number, (_lower(soft, hard), hard))


def _lower(one: int, other: int) -> int:
    if resource.RLIM_INFINITY in (one, other):
        return one if other == resource.RLIM_INFINITY else other
    return min(one, other)


def _raise_oom_score(value: int) -> None:
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(value))
    except OSError:
        pass  # lowering needs rights; the job runs as well without it


def _drop_rights(request: Mapping[str, Any]) -> None:
    """Take on groups, group and user, in this order; without root there is nothing to drop."""
    uid, gid, groups = request["uid"], request["gid"], request["groups"]
    if os.geteuid() != 0:
        if (uid, gid) != (os.geteuid(), os.getegid()):
            error = OSError(1, "only root runs jobs of others")
            raise ChildError("rights", str(uid), error)
        return
    _step("groups", "", os.setgroups, groups)
    _step("group", str(gid), os.setresgid, gid, gid, gid)
    _step("user", str(uid), os.setresuid, uid, uid, uid)


# ------------------------------------------------------------------------------------ output
def _open_standard(request: Mapping[str, Any]) -> None:
    """Open input, output and errors as their owner."""
    source = request.get("input") or "/dev/null"
    handle = _step("input", source, os.open, source, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    os.dup2(handle, 0)
    out = _step("output", request["output"], open_log, request["output"], bool(request.get("append")))
    os.dup2(out, 1)
    error_path = request.get("error") or request["output"]
    if error_path != request["output"]:
        out = _step("error output", error_path, open_log, error_path, bool(request.get("append")))
    os.dup2(out, 2)


def open_log(path: str, append: bool) -> int:
    """Open a file to write output to, never waiting for a FIFO's reader.

    It always appends, so that two descriptors of one file do not overwrite one another; `append` says whether what
    is there stays.

    :raises OSError: it cannot be opened, or it is a directory or a socket.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK
    handle = os.open(path, flags, 0o666)
    if stat.S_ISREG(os.fstat(handle).st_mode) and not append:
        os.ftruncate(handle, 0)
    os.set_blocking(handle, True)
    return handle


def _program(request: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """Return what to execute, and the descriptors that it needs."""
    script = request.get("script")
    if script is None:
        return list(request["argv"]), []
    handle = os.memfd_create(f"job-{request['job']}"[:200], 0)
    write_all(handle, script.encode("utf-8", "surrogateescape"))
    os.lseek(handle, 0, os.SEEK_SET)
    os.fchmod(handle, 0o500)
    first = script.partition("\n")[0]
    if not first.startswith("#!") or not first[2:].strip():
        raise ChildError("script", first, OSError(8, os.strerror(8)))
    words = first[2:].strip().split(None, 1)  # one argument at most, as the kernel reads it
    return [*words, f"/proc/self/fd/{handle}", *request["argv"]], [handle]


def _exec(argv: list[str], environment: Mapping[str, str]) -> None:
    """Execute a program, found by the PATH of its own environment; no shell takes over what is no program."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, environment)
    found: OSError = FileNotFoundError(2, os.strerror(2))
    for folder in environment.get("PATH", os.defpath).split(":"):
        try:
            os.execve(os.path.join(folder, argv[0]), argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            found = error
    raise found


def _close_all_but(*kept: int) -> None:
    below = 3
    for handle in sorted(kept):
        os.closerange(below, handle)
        below = handle + 1
    os.closerange(below, 1 << 20)


def _reset_signals() -> None:
    """Undo what Python ignores (SIGPIPE, SIGXFSZ) and what the keeper handles."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


__all__ = ["become", "open_log"]

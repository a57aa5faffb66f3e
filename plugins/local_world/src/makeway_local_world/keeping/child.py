"""Become the job: what happens between fork and exec, in the order that keeps rights apart (local-world 5).

`enter` is root's part: session, cgroup, what the kernel takes when memory runs out. Then the rights are the owner's,
and every descriptor but one is closed. Only then does `become` read the request, and open what it names.
"""

from __future__ import annotations

import os
import resource
import stat

from makeway_local_world.keeping import linux, rights
from makeway_local_world.keeping.files import read_open, write_all
from makeway_local_world.keeping.lean import read_json, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn


REPORT = "MAKEWAY_REPORT"
"""Environment variable that numbers the descriptor by which a job says that it was saved."""


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


def job(
    mandate: Mapping[str, Any], request_file: int, failure: int, report: int | None, keeper: int
) -> NoReturn:
    """Turn this process, which has root's rights if any process has, into the job.

    :param failure: where a failure is written; it closes when the job begins.
    :param report: what stays open for the job to say that it was saved, numbered by `REPORT`; None: nothing does.
    :param keeper: pid of the parent.
    """
    try:
        os.setsid()
        if mandate.get("oom_score_adj") is not None:
            rights.set_oom_score(int(mandate["oom_score_adj"]))
        _step("rights", str(mandate["uid"]), rights.take_on, mandate)
        linux.die_with_parent(signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)  # the job has not begun: the daemon that finds its mark may start it anew
        os.lseek(request_file, 0, os.SEEK_SET)
        request = read_json(read_open(request_file))
        _become(request, failure, report=report)
    except BaseException as error:
        _say(error, failure)
    finally:
        os._exit(127)


def rehearse(request: Mapping[str, Any]) -> None:
    """Go through what of it touches nothing."""
    _step("umask", "", os.umask, os.umask(0o077))
    os.close(_step("output", request["output"], open_log, request["output"], True))
    _program(request)


def helper(request: Mapping[str, Any], output: int) -> NoReturn:
    """Turn this process, which has the owner's rights, into a command beside the job.

    :param output: where its output and a failure are written.
    """
    try:
        os.setsid()
        linux.die_with_parent(signal.SIGKILL)
        _become(request, output, output=output)
    except BaseException as error:
        _say(error, output)
    finally:
        os._exit(127)


def _say(error: BaseException, failure: int) -> None:
    if not isinstance(error, ChildError):
        number = getattr(error, "errno", 0) or 0
        text = f"start\0{number}\0{type(error).__name__}: {error}"
        write_all(failure, text.encode("utf-8", "replace")[:4000])
    else:
        write_all(failure, error.encode())


def _become(
    request: Mapping[str, Any], failure: int, *, output: int | None = None, report: int | None = None
) -> None:
    """Open, limit and execute what the owner asked for, with the owner's rights."""
    reports = [] if report is None else [report]
    _close_all_but(failure, *reports)
    for name, values in request.get("limits", {}).items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            _step("limit", name, _limit, number, *values)
    if request.get("nice"):
        _step("niceness", str(request["nice"]), os.nice, int(request["nice"]))
    if request.get("cores"):
        _step("cores", "", os.sched_setaffinity, 0, request["cores"])
    _step("umask", "", os.umask, request["umask"])
    _step("working directory", request["cwd"], os.chdir, request["cwd"])
    _open_standard(request, output)
    argv, kept = _program(request)
    _close_all_but(failure, *kept, *reports)
    _reset_signals()
    if request.get("stopped"):
        os.kill(os.getpid(), signal.SIGSTOP)
    environment = {str(key): str(value) for key, value in request["environment"].items()}
    for handle in reports:
        os.set_inheritable(handle, True)
        environment[REPORT] = str(handle)
    if not request.get("die_with_keeper"):
        linux.die_with_parent(0)
    _step("exec", argv[0], _exec, argv, environment)


def _step(name: str, what: str, call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except OSError as error:
        raise ChildError(name, what, error) from error


def _limit(number: int, soft: int, hard: int) -> None:
    """Set a resource limit, never above the hard one that there is: a request gives no job more than the site does."""
    _, most = resource.getrlimit(number)
    hard = _lower(hard, most)
    resource.setrlimit(number, (_lower(soft, hard), hard))


def _lower(one: int, other: int) -> int:
    if resource.RLIM_INFINITY in (one, other):
        return one if other == resource.RLIM_INFINITY else other
    return min(one, other)


# ------------------------------------------------------------------------------------ output
def _open_standard(request: Mapping[str, Any], output: int | None) -> None:
    """Open input, output and errors; `output` is what they go to instead."""
    source = request.get("input") or "/dev/null"
    handle = _step("input", source, os.open, source, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    os.dup2(handle, 0)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
        return
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

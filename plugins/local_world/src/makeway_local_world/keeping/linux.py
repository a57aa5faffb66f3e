"""Ask the kernel for what Python's library has no word for; through ctypes, so that nothing is compiled."""

from __future__ import annotations

import ctypes
import errno
import os

from makeway_local_world.keeping.lean import signal, suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_KEYCTL_JOIN_SESSION_KEYRING = ctypes.c_long(1)
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
"""Number of the system call, which the C library has no name for."""

_C = ctypes.CDLL(None)
_PRCTL, _SYSCALL = _C.prctl, _C.syscall
_YES, _NOTHING = ctypes.c_ulong(1), ctypes.c_ulong(0)
_KEYS = _KEYCTL.get(os.uname().machine)
_CLONE3 = ctypes.c_long(435)
"""Number of the system call, the same on every machine."""
_INTO_CGROUP = 1 << 33
_HOLDING = getattr(ctypes, "PyDLL", ctypes.CDLL)(None, use_errno=True)
"""The C library, called with the interpreter's lock held, as a fork asks for."""


def _prctl(option: int, value: ctypes.c_ulong) -> None:
    if _PRCTL(option, value, _NOTHING, _NOTHING, _NOTHING) != 0:
        # Once more, with the number of the error: to keep it costs memory in every keeper.
        ctypes.CDLL(None, use_errno=True).prctl(option, value, _NOTHING, _NOTHING, _NOTHING)
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, _YES)


def let_nobody_trace() -> None:
    """Keep processes of the same user out of this one and of what it has open (PR_SET_DUMPABLE)."""
    _prctl(_PR_SET_DUMPABLE, _NOTHING)


def leave_keyring() -> None:
    """Leave the daemon's session keyring for an empty one: a process that has a keyring may use the keys in it."""
    if _KEYS is not None:
        _SYSCALL(ctypes.c_long(_KEYS), _KEYCTL_JOIN_SESSION_KEYRING, None)  # a kernel without keys refuses


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the parent ends, 0: none; a change of user takes that away, so it comes after it."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number))


def fork(cgroup: str | None = None) -> int:
    """Fork, with the child in a cgroup from its first step; 0 in the child.

    A move between cgroups waits until all processors have taken note, which may be 10 ms.

    :raises OSError: there is no such cgroup, or it takes nothing more.
    """
    if cgroup is None:
        return os.fork()
    handle = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ctypes.pythonapi.PyOS_BeforeFork()
        pid = _clone(handle)
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        else:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
    finally:
        os.close(handle)
    if pid < 0:
        raise OSError(-pid, os.strerror(-pid))
    return pid


def _clone(cgroup: int) -> int:
    """Return the child's number, 0 in the child; a number below zero is that of an error."""
    given = (ctypes.c_uint64 * 11)()
    given[0], given[4], given[10] = _INTO_CGROUP, signal.SIGCHLD, cgroup
    pid: int = _HOLDING.syscall(_CLONE3, given, ctypes.c_size_t(ctypes.sizeof(given)))
    return -ctypes.get_errno() if pid < 0 else pid


def can_fork_into_cgroups() -> bool:
    """Whether the kernel starts processes in cgroups (Linux 5.7), and this Python lets it."""
    nothing = (1 << 31) - 1
    return hasattr(ctypes, "pythonapi") and _clone(nothing) == -errno.EBADF


def call_me(name: str) -> None:
    """Set the name that ps and top show, if /proc takes it."""
    with suppress(OSError):
        handle = os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, name.encode()[:15])
        finally:
            os.close(handle)

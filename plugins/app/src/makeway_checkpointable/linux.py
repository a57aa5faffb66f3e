"""What the kernel is asked that Python has no word for: namespaces, mounts, capabilities."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWTIME = 0x00020000, 0x10000000, 0x20000000, 0x00000080
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_CAP_AMBIENT, _AMBIENT_RAISE = 1, 15, 47, 2
_CAPABILITY_VERSION = 0x20080522

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.unshare.argtypes = (ctypes.c_int,)
_LIBC.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_void_p)
_LIBC.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong)


def _done(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(flags: int) -> None:
    """Leave namespaces for new ones.

    :raises OSError: the kernel refuses.
    """
    _done(_LIBC.unshare(flags))


def write(path: str, text: str) -> None:
    """Write into a file of the kernel's.

    :raises OSError: the kernel refuses.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def be_alone() -> None:
    """Leave for a user namespace in which only this user exists, and have children born in a new pid namespace.

    :raises OSError: the kernel refuses.
    """
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER | CLONE_NEWPID)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{user} {user} 1")
    write("/proc/self/gid_map", f"{group} {group} 1")


def may_be_alone() -> bool:
    """Whether this user may have these namespaces, with a ``/proc`` of their own."""

    def inside(what: Callable[[], object]) -> bool:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = 0 if what() is not False else 1
            finally:
                os._exit(status)
        return os.waitpid(pid, 0)[1] == 0

    def alone() -> bool:
        be_alone()
        return inside(mount_proc)

    return inside(alone)


def mount_proc() -> None:
    """Show this pid namespace under ``/proc``, in a mount namespace of its own.

    :raises OSError: the kernel refuses.
    """
    unshare(CLONE_NEWNS)
    _done(_LIBC.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _done(_LIBC.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def die_with_parent(number: int) -> None:
    """Have the kernel send a signal when the parent is gone."""
    _done(_LIBC.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0))


def be_called(name: str) -> None:
    """Show a name in ps."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _done(_LIBC.prctl(_PR_SET_NAME, ctypes.addressof(buffer), 0, 0, 0))


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


FOR_CRIU = (8, 19, 40)
"""Capabilities that criu needs: SETPCAP, SYS_PTRACE, CHECKPOINT_RESTORE. With more it takes itself for root."""


def keep_capabilities() -> None:
    """Hand those of `FOR_CRIU` to the program that this process executes; else none would outlive that.

    They count in the user namespace of this process, and so for processes of its own user alone.

    :raises OSError: this process has none to hand on.
    """
    header = _Header(_CAPABILITY_VERSION, 0)
    sets = (_Sets * 2)()
    _done(_LIBC.capget(ctypes.byref(header), ctypes.byref(sets)))
    for each in sets:
        each.inheritable = each.permitted
    _done(_LIBC.capset(ctypes.byref(header), ctypes.byref(sets)))
    for number in FOR_CRIU:
        _done(_LIBC.prctl(_PR_CAP_AMBIENT, _AMBIENT_RAISE, number, 0, 0))


def dumped(pid: int) -> int:
    """Return about how many bytes a process has that no file on the disk holds; 0: it has gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return 0
    return sum(int(line[1]) for line in lines if line[0] in ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")) << 10

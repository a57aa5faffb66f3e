"""Ask the kernel for what Python's library has no word for; through ctypes, so that nothing is compiled."""

from __future__ import annotations

import ctypes
import os

from makeway_local_world.keeping.lean import suppress

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
    """Leave the daemon's session keyring for an empty one: whoever has a keyring may use the keys in it."""
    if _KEYS is not None:
        _SYSCALL(ctypes.c_long(_KEYS), _KEYCTL_JOIN_SESSION_KEYRING, None)  # a kernel without keys refuses


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the parent ends, 0: none; a change of user takes that away, so it comes after it."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number))


def call_me(name: str) -> None:
    """Set the name that ps and top show, if /proc takes it."""
    with suppress(OSError):
        handle = os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, name.encode()[:15])
        finally:
            os.close(handle)


__all__ = ["adopt_orphans", "call_me", "die_with_parent", "leave_keyring", "let_nobody_trace"]

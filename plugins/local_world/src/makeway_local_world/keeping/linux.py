"""Ask the kernel for what Python's library has no word for; through ctypes, so that nothing is compiled."""

from __future__ import annotations

import ctypes
import os

from makeway_local_world.keeping.lean import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_PRCTL = ctypes.CDLL(None).prctl
_YES, _NOTHING = ctypes.c_ulong(1), ctypes.c_ulong(0)


def _prctl(option: int, value: ctypes.c_ulong) -> None:
    if _PRCTL(option, value, _NOTHING, _NOTHING, _NOTHING) != 0:
        # Once more, with the number of the error: to keep it costs memory in every keeper.
        ctypes.CDLL(None, use_errno=True).prctl(option, value, _NOTHING, _NOTHING, _NOTHING)
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, _YES)


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the parent ends; a change of user takes that away, so it comes after it."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number))


def call_me(name: str) -> None:
    """Set the name that ps and top show, if /proc takes it."""
    with suppress(OSError):
        handle = os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, name.encode()[:15])
        finally:
            os.close(handle)


__all__ = ["adopt_orphans", "call_me", "die_with_parent"]

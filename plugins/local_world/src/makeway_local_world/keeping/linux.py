"""Ask the kernel for what Python's library has no word for; through ctypes, so that nothing is compiled."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_LIBC = ctypes.CDLL(None, use_errno=True)
_PRCTL = _LIBC.prctl
_PRCTL.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
_PRCTL.restype = ctypes.c_int
_NAME = ctypes.create_string_buffer(16)


def _prctl(option: int, value: int) -> None:
    if _PRCTL(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the parent ends; a change of user takes that away, so it comes after it."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def call_me(name: str) -> None:
    """Set the name that ps and top show."""
    _NAME.value = name.encode()[:15]
    _prctl(_PR_SET_NAME, ctypes.addressof(_NAME))


__all__ = ["adopt_orphans", "call_me", "die_with_parent"]

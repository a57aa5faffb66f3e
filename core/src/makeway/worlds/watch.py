"""Keep the code of plugins to a time limit: the only clock that looks at a decision, and it decides nothing.

The interpreter's alarm rings a few times per limit and looks at the call stack. A call from makeway into a
plugin that it finds again and again is broken off once it has lasted for the limit: a hook, or a method of
an object that a plugin built. Calls that end in time cost nothing, and their answers do not change.

What only C code does (a sort of a huge list, one multiplication of huge numbers) ends before it is broken off.
"""

from __future__ import annotations

import contextlib
import dis
import signal
import sys
import threading
from collections.abc import Iterator
from time import monotonic  # bound here: probes of plugins let the clock of `time` stand still
from types import FrameType
from typing import Any

from makeway.errors import ConfigError, OutOfTime, Problem
from makeway.registry.finding import is_core

_LOOKS = 4
"""Looks at the stack per limit."""
_LIBRARIES = sys.stdlib_module_names | {"", "attr", "attrs", "packaging", "pluggy"}
_SOONEST, _LATEST = 0.005, 1.0
"""Seconds between two looks."""


@contextlib.contextmanager
def time_limit(limit: float) -> Iterator[None]:
    """Raise `OutOfTime` in a call into a plugin that lasts longer than `limit` seconds; 0: nothing is done.

    :raises ConfigError: there is no alarm here: another system than POSIX, or not the main thread.
    """
    if not limit:
        yield
        return
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        text = "it needs the alarm of a POSIX system, in the main thread; leave it at 0 here"
        raise ConfigError("config", [Problem("policy.decision_time_limit", text)])
    watch = _Watch(limit)
    period = min(max(limit / _LOOKS, _SOONEST), _LATEST)
    before = signal.signal(signal.SIGALRM, watch.look)
    left = signal.setitimer(signal.ITIMER_REAL, period, period)
    try:
        yield
    finally:
        watch.over = True
        signal.setitimer(signal.ITIMER_REAL, *left)
        signal.signal(signal.SIGALRM, before)
        watch.forget()


class _Watch:
    """Remembers since when the same call into a plugin has been seen."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._call: tuple[FrameType, FrameType] | None = None
        self._since = 0.0
        self.over = False

    def forget(self) -> None:
        """Stop insisting."""
        self._call = None
        if sys.gettrace() == self._trace:
            sys.settrace(None)

    def look(self, _: int, frame: FrameType | None) -> None:
        """Look at what runs now."""
        if self.over:
            return
        call = _call_into_a_plugin(frame)
        now = monotonic()
        if (
            call is None
            or self._call is None
            or any(a is not b for a, b in zip(call, self._call, strict=True))
        ):
            self._call, self._since = call, now
        elif now - self._since >= self._limit:
            self._insist(frame, call[0])
            raise OutOfTime(self._limit)

    def _insist(self, frame: FrameType | None, first: FrameType) -> None:
        """Raise again where nothing catches it, should the plugin go on after any error (``except: pass``)."""
        sys.settrace(self._trace)
        while frame is not None:
            frame.f_trace = self._trace
            if frame is first:
                return
            frame = frame.f_back

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if self.over or self._call is None or not _is_below(frame, self._call[0]):
            sys.settrace(None)
            return None
        if event == "line" and not _is_caught(frame, self._call[0]):
            raise OutOfTime(self._limit)  # which ends the tracing too
        return self._trace


def _is_below(frame: FrameType | None, first: FrameType) -> bool:
    while frame is not None and frame is not first:
        frame = frame.f_back
    return frame is first


def _is_caught(frame: FrameType | None, first: FrameType) -> bool:
    """Whether `frame`, or one between it and `first`, is where an exception handler of its own would take over."""
    while frame is not None:
        code: Any = dis.Bytecode(frame.f_code)  # typeshed does not know the table of handlers
        handlers = code.exception_entries
        if any(entry.start <= frame.f_lasti < entry.end for entry in handlers):
            return True
        if frame is first:
            return False
        frame = frame.f_back
    return False


def _call_into_a_plugin(frame: FrameType | None) -> tuple[FrameType, FrameType] | None:
    """Return the outermost call of makeway's engine or registry that led into a plugin: callee and caller."""
    found = None
    in_plugin = False
    while frame is not None and frame.f_back is not None:
        core = _is_core(frame)
        in_plugin = in_plugin or not (core or _is_library(frame))
        if in_plugin and not core and _asks_plugins(frame.f_back):
            found = frame, frame.f_back
        frame = frame.f_back
    return found


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _asks_plugins(frame: FrameType) -> bool:
    return _module(frame).startswith(("makeway_engine.", "makeway.registry."))


def _is_library(frame: FrameType) -> bool:
    """Whether a frame belongs to Python's or makeway's own libraries, which a plugin may have called."""
    return _module(frame).partition(".")[0] in _LIBRARIES


def _is_core(frame: FrameType) -> bool:
    return is_core(_module(frame))

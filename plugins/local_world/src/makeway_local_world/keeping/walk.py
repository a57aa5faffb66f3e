"""Stop, continue and kill a whole tree of processes, from the keeper down (spec local-world 2.2, 3).

Nothing of it trusts process groups: what runs in a session of its own is found all the same.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable

from makeway_local_world.keeping import proc
from makeway_local_world.keeping.proc import ENDED, STOPPED, Process

Key = tuple[int, int]
"""A process for certain: pid and start time."""
_PAUSE = 0.0005
_STILL = STOPPED | ENDED | {"D"}
"""States in which a process that was told to stop counts as stopped. One in D gets the signal when it leaves it: a
shell that called vfork waits there for a child that may be stopped itself."""


class Tree:
    """All processes below one, but for helpers of its own."""

    def __init__(self, root: int, spared: Callable[[], Collection[int]] = tuple) -> None:
        self._root = root
        self._spared = spared
        self._below = proc.below if proc.has_children_files() else proc.below_by_looking_at_all
        self.stopped_by_us: set[Key] = set()

    def look(self) -> list[Process]:
        """Return what is there and has not ended."""
        return [each for each in self._below(self._root, self._spared()) if each.state not in ENDED]

    def stop(self, limit: float) -> list[Process]:
        """Stop everything; return who still runs after `limit` seconds, best nobody.

        Over once two looks in a row found nothing to do. Who was stopped already is none of ours.
        """
        told: set[Key] = set()
        deadline = time.monotonic() + limit
        quiet = 0
        while True:
            running: list[Process] = []
            news = False
            for each in self._below(self._root, self._spared()):
                key = each.pid, each.started
                if each.state in ENDED or (each.state in STOPPED and key not in told):
                    continue
                if key not in told or each.state not in _STILL:
                    news = news or key not in told
                    told.add(key)
                    send(each, signal.SIGSTOP)
                    if each.state != "D":
                        running.append(each)
            quiet = 0 if running or news else quiet + 1
            if quiet >= 2:
                break
            if time.monotonic() > deadline:
                self.stopped_by_us |= told
                return [each for each in self.look() if each.state not in _STILL]
            if quiet == 0:
                time.sleep(_PAUSE)
        self.stopped_by_us |= told
        return []

    def go_on(self, limit: float) -> list[Process]:
        """Continue whom `stop` stopped; return who still stands after `limit` seconds, best nobody."""
        deadline = time.monotonic() + limit
        while True:
            standing = []
            for each in self._below(self._root, self._spared()):
                if (each.pid, each.started) in self.stopped_by_us and each.state not in ENDED:
                    send(each, signal.SIGCONT)
                    standing.append(each)
            left = [each for each in standing if _stands(each)]
            if not left or time.monotonic() > deadline:
                if not left:
                    self.stopped_by_us.clear()
                return left
            time.sleep(_PAUSE)

    def send(self, number: int, *, catching_only: bool = False) -> int:
        """Send a signal to everything, top down; return to how many.

        :param catching_only: leave out those without a handler for it.
        """
        count = 0
        for each in self.look():
            if not catching_only or proc.catches(each.pid, number):
                count += send(each, number)
        return count

    def kill(self) -> list[Process]:
        """Send SIGKILL to everything once, top down; return what was found."""
        found = []
        for each in self._below(self._root, self._spared()):
            if each.state not in ENDED:
                send(each, signal.SIGKILL)
                found.append(each)
        return found


def _stands(process: Process) -> bool:
    now = proc.look(process.pid)
    return now is not None and now.started == process.started and now.state == "T"


def send(process: Process, number: int) -> int:
    """Send a signal to the process that was seen, never to one that got its number since; return whether it was.

    One that has gone is no error.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return 0
    try:
        now = proc.look(process.pid)
        if now is None or now.started != process.started:
            return 0
        signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        return 0
    finally:
        os.close(handle)
    return 1


def named(processes: Iterable[Process], most: int = 20) -> list[list[object]]:
    """Say who they are: pid, name and state of each."""
    return [[each.pid, each.name, each.state] for each in list(processes)[:most]]


__all__ = ["Key", "Tree", "named", "send"]

"""Stop, continue and kill a whole tree of processes, from the keeper down (local-world 2.2, 3).

Nothing of it trusts process groups: what runs in a session of its own is found all the same.
"""

from __future__ import annotations

import os
import time

from makeway_local_world.keeping import proc
from makeway_local_world.keeping.lean import signal
from makeway_local_world.keeping.proc import ENDED, STOPPED, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

Key = tuple[int, int]
"""A process for certain: pid and start time."""
_PAUSE = 0.0005
_LOOKS = 200
"""Looks in a row for one that comes and goes."""
_STILL = STOPPED | ENDED | {"D"}
"""States in which a process that was told to stop counts as stopped. One in D gets the signal when it leaves it: a
shell that called vfork waits there for a child that may be stopped itself."""
_LOOKS_AT_D = 50
"""Looks after which D without a stopped child counts: until then it may be a fork or an end that goes on."""


class Tree:
    """All processes below one, but for helpers of its own.

    One look may miss a process whose parent ends meanwhile, since it moves up behind the look. So a look that finds
    nothing says little if one came or went during it.
    """

    def __init__(
        self,
        root: int,
        spared: Callable[[], Collection[int]] = tuple,
        collect: Callable[[Process], None] = lambda ended: None,
    ) -> None:
        """Begin with none stopped.

        :param spared: who is left out, with all below.
        :param collect: called with each process that is seen to have ended.
        """
        self._root = root
        self._spared = spared
        self._collect = collect
        self._below = proc.below if proc.has_children_files() else proc.below_by_looking_at_all
        self._ended: set[Key] = set()
        self.stopped_by_us: set[Key] = set()

    def _walk(self, each_one: Callable[[Process], object]) -> tuple[list[Process], list[Process]]:
        """Go down once, calling `each_one` with each process that has not ended, when it is reached.

        Return those processes, and who ended since the last look or during this one.
        """
        there: list[Process] = []
        went: list[Process] = []
        ended: set[Key] = set()
        for each in self._below(self._root, self._spared()):
            if each.state not in ENDED:
                there.append(each)
                each_one(each)
                continue
            key = each.pid, each.started
            ended.add(key)
            if each.state == "X" or key not in self._ended:
                went.append(each)
            if each.state == "Z" and each.parent == self._root:
                self._collect(each)
        self._ended = ended
        return there, went

    def look(self) -> list[Process]:
        """Return what is there and has not ended; empty only if there is none for certain.

        Where one comes and goes too fast to be caught, it returns what went.
        """
        for _ in range(_LOOKS):
            there, went = self._walk(_leave)
            if there or not went:
                break
        return there or went

    def stop(self, limit: float) -> list[Process]:
        """Stop everything; return what still runs after `limit` seconds, best nothing.

        Over once two looks in a row found nothing to do, and none came or went. One in D counts as stopped while it
        waits for a stopped child, or once it has been there for a while. What was stopped already is none of ours.
        """
        told: set[Key] = set()
        running: list[Process] = []
        waits: dict[Key, int] = {}

        def tell(each: Process) -> None:
            key = each.pid, each.started
            if each.state in STOPPED if key not in told else each.state in _STILL:
                return
            if key not in told or each.state != "D":
                running.append(each)
            told.add(key)
            send(each, signal.SIGSTOP)

        deadline = time.monotonic() + limit
        quiet = 0
        while quiet < 2:
            running.clear()
            there, went = self._walk(tell)
            running += _in_passing(there, waits)
            quiet = 0 if running or went else quiet + 1
            if time.monotonic() > deadline and not quiet:
                self.stopped_by_us |= told
                return [each for each in self.look() if each.state not in _STILL]
            if running:
                time.sleep(_PAUSE)
        self.stopped_by_us |= told
        return []

    def go_on(self, limit: float) -> list[Process]:
        """Continue what `stop` stopped; return what still stands after `limit` seconds, best nothing.

        They are known one by one: a look would miss those that move up since their parents go on, and end.
        """
        deadline = time.monotonic() + limit
        while True:
            standing = [each for key in self.stopped_by_us if (each := _continue(key)) is not None]
            if not standing:
                self.stopped_by_us.clear()
            if not standing or time.monotonic() > deadline:
                return standing
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

    def kill(self) -> tuple[list[Process], bool]:
        """Send SIGKILL to everything once, top down; return what was found, and whether more may be there."""

        def kill(each: Process) -> None:
            send(each, signal.SIGKILL)

        there, went = self._walk(kill)
        return there, bool(there or went)


def _in_passing(there: Iterable[Process], waits: dict[Key, int]) -> list[Process]:
    """Return who is in D and may soon leave it by forking or ending: not yet for long, and no stopped child holds it.

    :param waits: how often each was seen so; counted on.
    """
    held = {each.parent for each in there if each.state in STOPPED}
    found = []
    for each in there:
        if each.state == "D" and each.pid not in held:
            key = each.pid, each.started
            waits[key] = waits.get(key, 0) + 1
            if waits[key] < _LOOKS_AT_D:
                found.append(each)
    return found


def _leave(process: Process) -> None:
    """Do nothing to it."""


def _continue(key: Key) -> Process | None:
    """Continue a process; return it if it stands all the same, None: it does not, or it has ended."""
    pid, started = key
    found = proc.look(pid)
    if found is None or found.started != started or found.state in ENDED:
        return None
    send(found, signal.SIGCONT)
    now = proc.look(pid)
    return now if now is not None and now.started == started and now.state == "T" else None


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

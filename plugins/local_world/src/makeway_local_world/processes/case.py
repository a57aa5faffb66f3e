"""One incarnation as the daemon sees it: a line to its keeper, and a handle that becomes ready when the keeper ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from typing import Any

import attrs

from makeway.worlds.events import Action, Start
from makeway_local_world.keeping import proc, words
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.processes.rundir import Key, RunDirectory


@attrs.define(eq=False, kw_only=True)
class Case:
    """What is known of an incarnation that has a keeper, or is about to."""

    key: Key
    place: RunDirectory
    line: socket.socket | None = None
    handle: int = -1
    """pidfd of the keeper; -1: none."""
    pid: int = 0
    """Of the keeper; 0: not known yet."""
    state: str = "starting"
    """starting, running, stopped, ending."""
    start: Start | None = None
    """The action that it stems from; None: it was there before this daemon."""
    tries: int = 0
    """How often a nursery was asked for its keeper."""
    requeueable: bool = True
    obstacle: str = ""
    """Why it cannot be checkpointed; empty: it can be."""
    cgroup: Cgroup | None = None
    """What holds its processes; None: nothing."""
    dumped: bool = False
    """Whether criu saves it when it is checkpointed."""
    gpus: tuple[str, ...] = ()
    asked: dict[int, Action] = attrs.field(factory=dict)
    """What the keeper has not answered yet, by serial."""
    failure: dict[str, Any] | None = None
    """Why the keeper could not begin."""
    killed: bool = False
    """Whether the daemon asked for its end."""
    gives_way: str = ""
    """Why it is killed instead of being stopped; empty: it is not."""
    forced: str = ""
    """Why the daemon killed it by itself, with its keeper; empty: it did not."""
    stopped_by_others: bool = False
    continued_by_others: int = 0
    """How often its user has continued it while it was to stand still."""
    memory_mb: int = 0
    """What it may have where the kernel does not see to that; 0: any."""
    tier: int = 0
    """Priority tier of its partition when it was started."""
    monotonic: float = 0.0
    """When it was started, on the kernel's monotonic clock."""

    def learn(self) -> None:
        """Take note of which process the keeper is, and hold on to it: a number may be used again, a handle not.

        Only what was written down before the job began says so: a keeper may be made to say anything.
        """
        told = self.place.started()
        if told is None:
            return
        self.pid = int(told["pid"])
        self.monotonic = float(told.get("monotonic", 0.0))
        self.gpus = tuple(told.get("gpus", ()))
        self.memory_mb = int(told.get("memory_mb", 0))
        self.tier = int(told.get("tier", 0))
        self.obstacle = self.obstacle or str(told.get("obstacle", ""))
        self.dumped = bool(told.get("dumped"))
        self.requeueable = bool(told.get("requeueable", True))
        self.cgroup = Cgroup(told["cgroup"]) if told.get("cgroup") else None
        if self.handle >= 0:
            return
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return  # it has ended already; the line and the files say so
        found = proc.look(self.pid)
        if found is None or found.started != told["ticks"]:
            os.close(handle)
        else:
            self.handle = handle

    def ask(self, do: str, **what: Any) -> bool:
        """Send a word to the keeper; return whether it is there to take it."""
        return self.line is not None and words.send(self.line, words.pack(do=do, **what))

    def hear(self) -> list[dict[str, Any]] | None:
        """Return what the keeper has said; None: it has hung up."""
        found: list[dict[str, Any]] = []
        while self.line is not None:
            try:
                data = words.receive(self.line)
            except BlockingIOError:
                return found
            if not data:
                return found or None
            with contextlib.suppress(words.WordError):
                found.append(words.unpack(data))
        return None

    def keeper_has_ended(self) -> bool:
        """Whether the handle says so; False without one."""
        if self.handle < 0:
            return False
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return bool(poll.poll(0))

    def signal_keeper(self, number: int) -> None:
        """Send a signal to the keeper, if it is known and has not ended."""
        if self.handle >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self.handle, number)

    def resident_mb(self) -> int:
        """Return the memory that its processes have now."""
        pages = sum(each.resident for each in proc.below(self.pid)) if self.pid else 0
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def own_memory_mb(self) -> int:
        """Return the memory that its processes have, what they share divided among those that share it (PSS)."""
        pages = os.sysconf("SC_PAGE_SIZE")
        total = 0
        for each in proc.below(self.pid) if self.pid else ():
            share = proc.proportional(each.pid)
            total += each.resident * pages if share is None else share
        return total >> 20

    def close(self) -> None:
        """Let go of line and handle."""
        if self.line is not None:
            self.line.close()
            self.line = None
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

"""Notice that a person uses this machine: by terminals, login sessions, input devices and GPUs.

Each source says when the machine was last used as far as it can see. None of them reads what a person types.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import select
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from makeway.config import USE_SOURCES
from makeway.model import Partition
from makeway_local_world.keeping import proc
from makeway_local_world.processes import news
from makeway_local_world.processes.gpus import NoGpus, Nvidia
from makeway_local_world.processes.holding import Holding

EVERY = 0.5
"""Seconds between two looks."""
Last = tuple[float, str]
"""Unix time of the last use, and what shows it."""
_NEVER: Last = (-math.inf, "")
_log = logging.getLogger("makeway")


class Absent(Exception):  # noqa: N818  # an answer, not a fault
    """A source cannot be had on this machine."""

    def __init__(self, why: str, help_: str = "") -> None:
        super().__init__(why)
        self.help = help_
        """What would mend it."""


class Source(Protocol):
    """Something that shows use by a person."""

    def last(self, now: float) -> Last:
        """Return when the machine was last used, at most `now`, and what shows it.

        :raises OSError: that cannot be seen at present.
        """

    def close(self) -> None:
        """Let go of what it holds open."""


class Jobs(Protocol):
    """Tells what belongs to jobs."""

    def processes(self) -> frozenset[int]:
        """Return the processes of all jobs."""


# ------------------------------------------------------------------------------------- terminals
class Terminals:
    """Terminals: the kernel notes when one last had input, to eight seconds."""

    _NAMES = re.compile(r"tty.*")

    def __init__(self, jobs: Jobs, directory: str = "/dev") -> None:
        """Watch the terminals in `directory`, other than those on which jobs run."""
        self._jobs = jobs
        self._directory = directory
        self._known: tuple[Sequence[tuple[float, str, int]], Last] = ((), _NEVER)

    def last(self, now: float) -> Last:
        """Return the latest input at a terminal of no job."""
        found = sorted(self._inputs(), reverse=True)
        if self._known[0] != found:
            theirs = self._of_jobs() if found else frozenset()
            mine = next((each for each in found if each[2] not in theirs), None)
            shown = _NEVER if mine is None else (mine[0], f"input at {mine[1]}")
            self._known = found, shown
        at, what = self._known[1]
        return min(at, now), what

    def _inputs(self) -> Iterator[tuple[float, str, int]]:
        for directory, names in (
            (self._directory, self._NAMES),
            (f"{self._directory}/pts", re.compile(r"\d+")),
        ):
            with contextlib.suppress(OSError), os.scandir(directory) as entries:
                for entry in entries:
                    if names.fullmatch(entry.name):
                        with contextlib.suppress(OSError):
                            found = entry.stat()
                            if stat.S_ISCHR(found.st_mode):
                                short = os.path.relpath(entry.path, self._directory)
                                yield found.st_atime, short, found.st_rdev

    def _of_jobs(self) -> frozenset[int]:
        """Return the terminals that jobs have made for themselves."""
        found = set()
        for pid in self._jobs.processes():
            number = proc.terminal(pid)
            if number:
                found.add(number)
        return frozenset(found)

    def close(self) -> None:
        """Nothing is held open."""


# ----------------------------------------------------------------------------------------- input
class Devices:
    """Keyboards and mice: something waits to be read from them. It is never read; they are opened anew instead."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Open devices.

        :raises OSError: one cannot be opened.
        """
        self._open: dict[str, int] = {}
        self._last = _NEVER
        try:
            for path in paths:
                self._open[path] = _device(path)
        except OSError:
            self.close()
            raise

    def last(self, now: float) -> Last:
        """Return the latest input."""
        poll = select.poll()  # not select, which knows the first thousand descriptors alone
        for number in self._open.values():
            poll.register(number, select.POLLIN)
        ready = {number for number, _ in poll.poll(0)}
        for path, number in list(self._open.items()):
            if number not in ready:
                continue
            self._last = now, f"input at {os.path.basename(path)}"
            os.close(self._open.pop(path))
            with contextlib.suppress(OSError):  # it was taken out
                self._open[path] = _device(path)
        return self._last

    def close(self) -> None:
        """Close them."""
        for number in self._open.values():
            os.close(number)
        self._open.clear()


def _device(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)


class Interrupts:
    """Interrupts of keyboard and mouse at the i8042, which all users may count; those at USB are not told apart."""

    def __init__(self, path: str = "/proc/interrupts") -> None:
        """Begin to count.

        :raises OSError: there are none.
        """
        self._path = path
        self._last = _NEVER
        self._count = self._read()

    def last(self, now: float) -> Last:
        """Return when there was last one more."""
        count = self._read()
        if count != self._count:
            self._count, self._last = count, (now, "input at keyboard or mouse")
        return self._last

    def _read(self) -> int:
        with open(self._path, encoding="ascii", errors="replace") as lines:
            found = [line.split() for line in lines if "i8042" in line]
        if not found:
            raise FileNotFoundError(f"{self._path} counts no interrupts of the i8042")
        return sum(int(cell) for line in found for cell in line[1:] if cell.isdigit())

    def close(self) -> None:
        """Nothing is held open."""


def keyboards_and_mice(path: str = "/proc/bus/input/devices") -> list[str]:
    """Return the devices that people type on or move.

    :raises OSError: the kernel does not list them.
    """
    with open(path, encoding="utf-8", errors="replace") as lines:
        handlers = [line.partition("Handlers=")[2].split() for line in lines if line.startswith("H:")]
    people = [each for each in handlers if any(re.fullmatch(r"kbd|mouse\d+|js\d+", word) for word in each)]
    return [f"/dev/input/{word}" for each in people for word in each if re.fullmatch(r"event\d+", word)]


def _input() -> Source:
    try:
        paths = keyboards_and_mice()
        if paths:
            return Devices(paths)
    except OSError:
        paths = []
    try:
        return Interrupts()
    except OSError as error:
        if paths:
            text = f"{paths[0]} cannot be read, and {error}"
            raise Absent(text, "run the daemon as root, or as a member of the group input") from None
        raise Absent("the kernel lists no keyboard and no mouse") from None


# ---------------------------------------------------------------------------------------- logind
_LOGIND = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_DRAWN = ("x11", "wayland", "mir")
_ANSWER = 5.0
"""Seconds that logind has to answer."""


class Logind:
    """Sessions of people, by D-Bus: one that is not idle is use."""

    def __init__(self) -> None:
        """Ask for the first time, and go on asking in a thread of its own.

        :raises Absent: there is nothing to ask.
        """
        self._last = _NEVER
        self._failed = ""
        self._over = threading.Event()
        self._asked = threading.Event()
        try:
            import dbus_fast  # noqa: F401
        except ImportError:
            raise Absent(
                "there is nothing to ask it with", "pip install 'makeway-local-world[desktop]'"
            ) from None
        self._thread = threading.Thread(target=self._run, name="makeway-logind", daemon=True)
        self._thread.start()
        self._asked.wait(2 * _ANSWER)
        if self._failed or not self._asked.is_set():
            self.close()
            raise Absent(self._failed or "it does not answer")

    def last(self, now: float) -> Last:
        """Return when a session was last not idle."""
        if self._failed:
            raise OSError(self._failed)
        at, what = self._last
        return min(at, now), what

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join(_ANSWER)

    def _run(self) -> None:
        import asyncio

        while not self._over.is_set():
            try:
                asyncio.run(self._watch())
            except OSError as error:
                self._failed = f"it cannot be asked: {error.strerror or error}"
            except Exception as error:  # of any library; it is asked again
                self._failed = f"it cannot be asked: {str(error) or type(error).__name__}"
            self._asked.set()
            self._over.wait(_ANSWER)

    async def _watch(self) -> None:
        import asyncio

        from dbus_fast import BusType
        from dbus_fast.aio import MessageBus

        bus = await asyncio.wait_for(MessageBus(bus_type=BusType.SYSTEM).connect(), _ANSWER)
        try:
            while not self._over.is_set():
                found = await asyncio.wait_for(_sessions(bus), _ANSWER)
                now = time.time()
                self._last = max((used_by(each, now) for each in found), default=_NEVER)
                self._failed = ""
                self._asked.set()
                await asyncio.sleep(EVERY)
        finally:
            bus.disconnect()


async def _sessions(bus: Any) -> list[dict[str, Any]]:
    """Return what logind says of each session."""
    listed = await _ask(bus, _PATH, f"{_LOGIND}.Manager", "ListSessions")
    found = []
    for *_, path in listed:
        told = await _ask(bus, path, "org.freedesktop.DBus.Properties", "GetAll", f"{_LOGIND}.Session")
        found.append({name: value.value for name, value in told.items()})
    return found


async def _ask(bus: Any, path: str, interface: str, member: str, *words: str) -> Any:
    from dbus_fast import Message, MessageType

    reply = await bus.call(
        Message(
            destination=_LOGIND,
            path=path,
            interface=interface,
            member=member,
            signature="s" * len(words),
            body=list(words),
        )
    )
    if reply.message_type is MessageType.ERROR:
        raise OSError(str(reply.body[0] if reply.body else reply.error_name))
    return reply.body[0]


def used_by(session: Mapping[str, Any], now: float) -> Last:
    """Return when a session of logind was last used.

    A session with a display says itself whether it is idle. Of others logind knows when their terminal had input.
    """
    if session.get("Class") != "user" or session.get("State") == "closing":
        return _NEVER
    what = f"session {session.get('Id', '')} of {session.get('Name', '')}"
    since = session.get("IdleSinceHint", 0) / 1e6
    if session.get("IdleHint"):
        return min(since, now) if since else -math.inf, what
    if session.get("Type") in _DRAWN or not since:
        return now, what
    return min(since, now), what


# ------------------------------------------------------------------------------------------ GPUs
class Computing:
    """GPUs on which a process computes that is no job; drawing on a screen does not count."""

    def __init__(self, jobs: Jobs, inventory: Any) -> None:
        """Look at the GPUs of `inventory`."""
        self._jobs, self._inventory = jobs, inventory
        self._last = _NEVER

    def last(self, now: float) -> Last:
        """Return when such a process was last there."""
        gpus = [gpu for gpu in self._inventory.look() if gpu.computing]
        if gpus:
            theirs = self._jobs.processes()
            for gpu in gpus:
                for pid in gpu.computing:
                    if pid not in theirs and (process := proc.look(pid)) is not None:
                        self._last = now, f"{process.name} ({pid}) on GPU {gpu.index}"
        return self._last

    def close(self) -> None:
        """Nothing is held open."""


def _gpus(jobs: Jobs, inventory: Any) -> Source:
    if isinstance(inventory, NoGpus):
        raise Absent(
            "no GPU is found (NVIDIA's library names them)", "pip install 'makeway-local-world[gpu]'"
        )
    return Computing(jobs, inventory)


# ----------------------------------------------------------------------------------------- watch
def find(name: str, jobs: Jobs, inventory: Any = None) -> Source:
    """Return a source by name.

    :param inventory: the GPUs; None: as NVIDIA's library shows them.
    :raises Absent: it cannot be had.
    """
    if name == "terminal":
        return Terminals(jobs)
    if name == "input":
        return _input()
    if name == "logind":
        return Logind()
    return _gpus(jobs, Nvidia.find() if inventory is None else inventory)


def absent(names: Collection[str]) -> dict[str, Absent]:
    """Return which of some sources cannot be had here, and why."""
    found = {}
    for name in USE_SOURCES:
        if name in names:
            try:
                find(name, _NoJobs()).close()
            except Absent as why:
                found[name] = why
    return found


class _NoJobs:
    def processes(self) -> frozenset[int]:
        """Return none."""
        return frozenset()


class Presence:
    """Tells for each partition that makes way for people when one comes, and when all has been quiet for long."""

    def __init__(
        self,
        hand: Holding,
        partitions: Sequence[Partition],
        sources: Mapping[str, Source] | None,
        inventory: Any,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Find the sources that `partitions` name.

        :param sources: those to use; None: as they are on this machine.
        :param wall: Unix time.
        """
        self._hand = hand
        self._partitions = [each for each in partitions if each.vacate_on_use]
        self._wall = wall
        self._told: dict[str, bool] = {}
        self._sources: dict[str, Source] = dict(sources or {})
        self._silent: set[str] = set()
        """Sources that cannot see anything at present."""
        wanted = {name for each in self._partitions for name in each.vacate_on_use}
        for name in sorted(wanted) if sources is None else ():
            try:
                self._sources[name] = find(name, self, inventory)
            except Absent as why:
                _log.warning("use of this machine is not seen by %s: %s", name, why)

    def processes(self) -> frozenset[int]:
        """Return the processes of all jobs."""
        return frozenset(
            each.pid for case in self._hand.cases.values() if case.pid for each in proc.below(case.pid)
        )

    def begin(self) -> None:
        """Look from now on, if any partition makes way."""
        if self._partitions:
            self._hand.later(0.0, self._look_again)

    def _look_again(self) -> None:
        self._hand.later(EVERY, self._look_again)
        self.look()

    def look(self) -> None:
        """Look once, and tell what has changed."""
        now = self._wall()
        seen = {name: self._last(name, source, now) for name, source in self._sources.items()}
        for partition in self._partitions:
            at, what = max((seen[name] for name in partition.vacate_on_use if name in seen), default=_NEVER)
            used = now - at < partition.quiet
            if used is not self._told.get(partition.name):
                self._told[partition.name] = used
                since = time.strftime("%F %T", time.localtime(at)) if used else ""
                why = f"since {since}: {what}" if used else ""
                self._hand.tell(news.Use(partition.name, used, why))

    def _last(self, name: str, source: Source, now: float) -> Last:
        try:
            found = source.last(now)
        except OSError as error:
            if name not in self._silent:
                _log.warning("use of this machine is not seen by %s: %s", name, error)
            self._silent.add(name)
            return _NEVER
        self._silent.discard(name)
        return found

    def close(self) -> None:
        """Let go of the sources."""
        for source in self._sources.values():
            source.close()

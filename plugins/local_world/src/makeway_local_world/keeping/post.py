"""Wait beside a job that runs undisturbed, and touch as little memory as can be.

A keeper shares its pages with the nursery until it writes to them, and Python writes to all that it uses. So what a
start asks for is done by the child that becomes the job. What a word asks for is done by a whole `Keeper`, which is
made from this post when the first one comes, or when the job leaves something at its end. Most keepers only wait, and
thousands of them may.

Once the start is written down, the keeper takes on its owner's rights for good. It keeps what root has opened for it:
the lock, the file for its end, the socket on which later daemons call.
"""

from __future__ import annotations

import os
import select
import sys
import time

from makeway_local_world.keeping import linux, preparing, rights, words
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.files import read_all, read_open
from makeway_local_world.keeping.lean import read_json, signal, socket, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from collections.abc import Mapping
    from typing import Any


_OF_EVERY_KIND = 0x40000000
"""Have a wait regard children that tell of their end by no signal, too (__WALL)."""

_BY_ITSELF: dict[str, Any] = {
    "failed": None,
    "killed": None,
    "ends_by": "",
    "then": None,
    "becomes": None,
    "left": [],
    "on_end": None,
    "untold": "",
}
"""What an end is told by that nothing asked for."""


class StartError(Exception):
    """The job could not be prepared."""

    def __init__(self, step: str, number: int, what: str) -> None:
        super().__init__(what)
        self.step = step
        self.errno = number


class Post:
    """What a keeper holds from its fork to its end."""

    def __init__(self, mandate: Mapping[str, Any], request: int, directory: int, line: socket.socket) -> None:
        """Hold open files: the request, the directory of the incarnation, the line to the daemon.

        :param mandate: what root is to do for it.
        """
        self.mandate = mandate
        self._request = request
        self._directory = directory
        self._daemon = os.geteuid()
        self._started = b""
        self.exit = -1
        """The file that says how the job ended, open."""
        self.lines = {line.fileno(): line}
        self.listener: socket.socket | None = None
        self.saved = -1
        """The file that says what of the job is saved, open; -1: nothing saves it."""
        self.report: socket.socket | None = None
        """Where the job says that it was saved; None: it does not."""
        self.leader = 0
        self.failure: socket.socket | None = None
        """Where the child says why it cannot become the job; it closes when it does. None: it has."""
        self.since: float | None = None
        """Since when the job runs, on the monotonic clock; None: its program has not begun."""
        self.told_to_end = False
        self.status: int | None = None
        """Wait status of the leader; None: it has not ended."""
        self.rusage: list[float] = []
        self.wake, self._woken = -1, -1

    # ------------------------------------------------------------------------------ the start
    def start(self) -> bool:
        """Fork the job and give up root's rights; return whether waiting is enough once the start is written down.

        :raises StartError: it could not be prepared.
        :raises OSError: no caller could reach it, or nothing could be forked.
        """
        self.wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake_up)
        signal.signal(signal.SIGTERM, self._be_told_to_end)
        self._listen()
        self.failure, its = socket.socketpair()  # no path leads to a socket, as one does to a pipe
        failure, report = its.detach(), None
        if self.mandate.get("dumped"):
            self.report, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            report = its.detach()
        keeper = os.getpid()
        cgroup = self.mandate.get("cgroup")
        self.leader = linux.fork(Cgroup(cgroup).job if cgroup else None)
        if self.leader == 0:
            line = next(iter(self.lines.values()))
            preparing.start(self.mandate, self._request, self._directory, line, failure, report, keeper)
        os.close(failure)
        if report is not None:
            os.close(report)
        mark = self.failure.recv(1)  # nothing else can be heard before: the job is not there yet
        if mark not in (preparing.PLAIN, preparing.WATCHED):
            said = (mark + self.failure.recv(4096)).decode("utf-8", "surrogateescape")
            os.waitpid(self.leader, 0)
            killed = "keeper", "0", "it was killed before it began"
            step, number, what = said.split("\0", 2) if said else killed
            raise StartError(step, int(number), what)
        self.failure.setblocking(False)
        self._take_on_rights()
        return mark == preparing.PLAIN

    def _take_on_rights(self) -> None:
        """Open what only root may open, and be root no more."""
        self._started = read_all(self._directory, words.STARTED) or b""
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        self.exit = os.open(words.EXIT, flags, dir_fd=self._directory)
        if self.report is not None:
            self.saved = os.open(words.SAVED, flags, dir_fd=self._directory)
        os.close(self._directory)
        rights.take_on(self.mandate)

    def _be_told_to_end(self, *_: object) -> None:
        self.told_to_end = True

    def _listen(self) -> None:
        """Let later daemons call; the path of a socket has to be short."""
        os.fchdir(self._directory)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with suppress(FileNotFoundError):
            os.unlink(words.SOCKET)
        self.listener.bind(words.SOCKET)
        self.listener.listen(8)
        self.listener.setblocking(False)
        os.chdir("/")

    # ---------------------------------------------------------------------------- the waiting
    def wait(self) -> bool:
        """Return whether the job has ended by itself, which is then written down.

        Else something has come that asks for a whole keeper: a word, a signal, a failure, an end at which more is to
        be done. It is left where it is, for the keeper to find.
        """
        while True:
            for handle, _ in self.poll().poll():
                if handle == self.wake:
                    return self.ends()
                if self.failure is not None and handle == self.failure.fileno():
                    if not self._begins():
                        return False
                elif self.report is not None and handle == self.report.fileno():
                    if not _hung_up(self.report):
                        return False
                    self.hear_no_reports()
                elif handle in self.lines:
                    if not _hung_up(self.lines[handle]):
                        return False
                    self.hang_up(handle)
                else:
                    self.accept("running", "", None)

    def _begins(self) -> bool:
        """Note that the child has become the job; return whether it has."""
        if self.failure is not None:
            if not _hung_up(self.failure):
                return False
            self.hear_no_more()
            self.runs("running")
        return True

    def ends(self) -> bool:
        """Write down the end of the job, if it has left nothing and nothing else is to be done; return whether it was.

        What loses its parent becomes a child of this process before that parent can be collected. So there is
        nothing left of the job once the kernel says that there are no children.
        """
        if (
            self.told_to_end
            or self.mandate.get("asks_at_end")
            or self.report is not None
            or not self._begins()
        ):
            return False
        try:
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG | _OF_EVERY_KIND)
                if pid == 0:
                    return False
                if pid == self.leader:
                    self.leader_ended(status, usage)
        except ChildProcessError:
            self.write_end()
        return True

    def leader_ended(self, status: int, usage: resource.struct_rusage) -> None:
        """Note how the first process of the job ended."""
        self.status = status
        self.rusage = [usage.ru_utime, usage.ru_stime, usage.ru_maxrss]

    def write_end(self, **how: Any) -> None:
        """Write `exit` into the space that was kept for it, tried again until it is written, and tell the daemon.

        :param how: what differs from an end of its own.
        """
        end = {
            "job": self.mandate["job"],
            "incarnation": self.mandate["incarnation"],
            "boot": self.mandate["boot"],
            "status": self.status,
            "rusage": self.rusage,
            "monotonic": time.monotonic(),
            "wall": time.time(),
            **_BY_ITSELF,
            **how,
        }
        data = words.pack(**end)
        if len(data) >= words.EXIT_SIZE:
            data = words.pack(**_shortened(end))
        pause = 0.01
        while True:
            try:
                self._write_once(data + b"\n")
                break
            except OSError:
                time.sleep(pause)  # the lock is held meanwhile: the job is not taken for lost
                pause = min(pause * 2, 5.0)
        self.say(say="ended")

    def _write_once(self, data: bytes) -> None:
        """Write over the zeros that keep the space: without the end of the line it is not written."""
        if os.pwrite(self.exit, data, 0) != len(data):
            raise OSError(28, "not all of it was written")
        os.fsync(self.exit)

    def poll(self) -> select.poll:
        """Return what waits for all that may come."""
        found = select.poll()
        for handle in (self.wake, *self.lines):
            found.register(handle, select.POLLIN)
        if self.listener is not None:
            found.register(self.listener.fileno(), select.POLLIN)
        for socket_ in (self.failure, self.report):
            if socket_ is not None:
                found.register(socket_.fileno(), select.POLLIN)
        return found

    def hear_no_reports(self) -> None:
        """The job will not say any more that it was saved."""
        assert self.report is not None
        self.report.close()
        self.report = None

    def hear_no_more(self) -> None:
        """The child has said all that it had to say: nothing, if it has become the job."""
        assert self.failure is not None
        self.failure.close()
        self.failure = None

    def runs(self, state: str) -> None:
        """Say that the child has become the job, or stands right before that."""
        self.since = time.monotonic()
        self._send(words.runs(self.leader, state))

    # ------------------------------------------------------------------------------ the lines
    def request(self) -> dict[str, Any]:
        """Read what the job is to be."""
        os.lseek(self._request, 0, os.SEEK_SET)
        found: dict[str, Any] = read_json(read_open(self._request))
        return found

    def say(self, **what: Any) -> None:
        """Tell the daemon, if there is one; a full or broken line is given up."""
        self._send(words.pack(**what))

    def _send(self, data: bytes) -> None:
        for handle, line in list(self.lines.items()):
            if not words.send(line, data):
                self.hang_up(handle)

    def hang_up(self, handle: int) -> None:
        """Close a line."""
        self.lines.pop(handle).close()

    def accept(self, state: str, ends_by: str, then: str | None) -> None:
        """Answer a caller: which job it is, and how it stands."""
        assert self.listener is not None
        try:
            handle, _ = self.listener._accept()  # type: ignore[attr-defined]  # what accept() wraps
        except OSError:
            return
        line = socket.socket(fileno=handle)
        peer = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) not in (0, self._daemon):
            line.close()
            return
        self.lines[line.fileno()] = line
        words.send(line, words.hello(self._started, self.leader, state, ends_by, then))


def _shortened(end: dict[str, Any]) -> dict[str, Any]:
    """Return an end that is too long to be written without what may be long."""
    failed, killed, then = end["failed"], end["killed"], end["then"]
    short: dict[str, Any] = {"left": [], "untold": "", "failed": failed and {**failed, "what": ""}}
    return {**end, **short, "killed": killed and killed[:200], "then": then and then[:200]}


def _hung_up(line: socket.socket) -> bool:
    """Whether the other end of a line has gone without a word."""
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:  # a reset line may still hold words
        return False


def _wake_up(*_: object) -> None:
    """Let a signal be heard by the descriptor that it wakes."""

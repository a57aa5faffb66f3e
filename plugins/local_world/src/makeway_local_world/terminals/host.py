"""Be the first process of a job in the foreground: ``python -I -m ... KIND PLACE COMMAND``.

KIND ``streams``: take the streams of the guest who comes, and become the command. KIND ``pty``: hold a terminal, run
the command in it, and let guests come and go; what was printed last is shown to each guest that comes.

It has the rights of the job's owner, as any command of a job.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios
import time

from makeway_local_world.terminals import meeting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

NOBODY_CAME = 60.0
"""Seconds for which a job without a terminal waits for its streams."""
KEPT = 64 << 10
"""Bytes of what was printed last that a guest is shown."""
AHEAD = 64 << 10
"""Bytes that wait for a guest before the job has to wait as well."""
STUCK = 10.0
"""Seconds after which a guest that takes nothing is sent away."""
LOOK = 0.1
"""Seconds between two looks whether a shell that is to end still runs something."""
SIZED = 2.0
"""Seconds for which the command waits for a guest to say how large the window is."""
LAST = 2.0
"""Seconds in which guests may still read what was printed before the end."""
CHUNK = 1 << 14
_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def main(arguments: Sequence[str]) -> NoReturn:
    """Run a command with the streams of a guest, or in a terminal."""
    kind, place, *command = arguments
    try:
        listener = meeting.listen(place)
    except (OSError, meeting.MeetingError):
        sys.exit(126)
    if kind == "streams":
        _with_streams(listener, place, command)
    status = Terminal(listener, command).serve()
    meeting.leave(place)
    _end_like(status)


def _become(command: Sequence[str]) -> NoReturn:
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        os.write(2, f"makeway: {command[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
    os._exit(127)


def _end_like(status: int) -> NoReturn:
    """End as the command did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


# ------------------------------------------------------------------------------------- streams
def _with_streams(listener: socket.socket, place: str, command: Sequence[str]) -> NoReturn:
    until = time.monotonic() + NOBODY_CAME
    handles: list[int] = []
    while len(handles) != 3 and (left := until - time.monotonic()) > 0:
        select.select([listener], [], [], left)
        guest = meeting.accept(listener)
        if guest is None:
            continue
        guest.settimeout(5.0)
        try:
            _, handles, _, _ = socket.recv_fds(guest, 1, 3)
        except OSError:
            handles = []
        guest.close()
    meeting.leave(place)
    if len(handles) != 3:
        os._exit(126)
    listener.close()
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        if handle > 2:
            os.close(handle)
    _become(command)


# ------------------------------------------------------------------------------------ terminal
class Guest:
    """One who sits at the terminal."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.came = bytearray()
        self.goes = bytearray()
        self.moved = time.monotonic()
        """When it last took something, or had nothing to take."""

    def send(self) -> None:
        """Send what it takes.

        :raises OSError: it has gone.
        """
        try:
            taken = self.line.send(self.goes)
        except BlockingIOError:
            return
        del self.goes[:taken]
        self.moved = time.monotonic()

    def receive(self) -> list[tuple[bytes, bytes]]:
        """Return what it sent.

        :raises OSError, MeetingError: it has gone, or sends no frames.
        """
        data = self.line.recv(CHUNK)
        if not data:
            raise ConnectionResetError
        self.came += data
        return meeting.frames(self.came)


class Terminal:
    """A terminal with a command in it."""

    def __init__(self, listener: socket.socket, command: Sequence[str]) -> None:
        self._listener = listener
        self._guests: list[Guest] = []
        self._typed = bytearray()
        self._kept = bytearray()
        self._sized = False
        """Whether a guest has said how large the window is."""
        self._wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)  # the command ends, then this does
        self._ending = False
        """Whether the job is to end."""
        signal.signal(signal.SIGTERM, self._be_told_to_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        begin, self._begin = os.pipe()
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            os.close(self._begin)
            os.read(begin, 1)  # it ends when the other end is closed
            _become(command)
        os.close(begin)
        os.set_blocking(self._master, False)

    def serve(self) -> int:
        """Let guests come and go until the command has ended; return its wait status."""
        until = time.monotonic() + SIZED
        while not self._sized and (left := until - time.monotonic()) > 0:
            self._turn(left)
        os.close(self._begin)
        while True:
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            if ended:
                break
            if self._ending and _is_idle_shell(self._pid):
                os.kill(self._pid, signal.SIGHUP)
            self._turn(LOOK if self._ending else None)
        while self._print():
            pass
        until = time.monotonic() + LAST
        while any(guest.goes for guest in self._guests) and time.monotonic() < until:
            waiting = [guest.line for guest in self._guests if guest.goes]
            _, ready, _ = select.select([], waiting, [], until - time.monotonic())
            self._let_out(ready)
        for guest in self._guests:
            guest.line.close()
        return status

    def _be_told_to_end(self, *_: object) -> None:
        self._ending = True

    def _turn(self, patience: float | None = None) -> None:
        """Do what can be done now, or wait for it."""
        reading: list[socket.socket | int] = [self._listener, self._wake]
        if all(len(guest.goes) < AHEAD for guest in self._guests):
            reading.append(self._master)
        if len(self._typed) < meeting.MOST:
            reading += [guest.line for guest in self._guests]
        writing: list[socket.socket | int] = [guest.line for guest in self._guests if guest.goes]
        if self._typed:
            writing.append(self._master)
        readable, writable, _ = select.select(reading, writing, [], STUCK if writing else patience)
        if self._wake in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 512)
        if self._listener in readable:
            self._welcome()
        for guest in [each for each in self._guests if each.line in readable]:
            self._heed(guest)
        if self._master in writable:
            self._type()
        if self._master in readable and not self._print():
            time.sleep(0.01)  # nothing holds its other end any more: the command is about to end
        self._let_out(writable)

    def _welcome(self) -> None:
        line = meeting.accept(self._listener)
        if line is not None:
            guest = Guest(line)
            guest.goes += self._kept
            self._guests.append(guest)

    def _heed(self, guest: Guest) -> None:
        try:
            found = guest.receive()
        except BlockingIOError:
            return
        except (OSError, meeting.MeetingError):
            self._send_away(guest)
            return
        for kind, data in found:
            if kind == meeting.TYPED:
                self._typed += data
            else:
                self._sized = True
                rows, columns = meeting.rows_and_columns(data)
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _type(self) -> None:
        try:
            taken = os.write(self._master, self._typed[: meeting.MOST])
        except BlockingIOError:
            return
        except OSError:
            taken = len(self._typed)  # nothing reads there any more
        del self._typed[:taken]

    def _print(self) -> bool:
        """Pass on what was printed; say whether there was anything."""
        try:
            data = os.read(self._master, CHUNK)
        except OSError:
            return False
        self._kept += data
        if len(self._kept) > KEPT:
            cut = self._kept.find(b"\n", len(self._kept) - KEPT)
            del self._kept[: len(self._kept) - KEPT if cut < 0 else cut + 1]
        for guest in self._guests:
            if not guest.goes:
                guest.moved = time.monotonic()
            guest.goes += data
        return bool(data)

    def _let_out(self, ready: Sequence[socket.socket | int]) -> None:
        """Send guests what waits for them; who takes nothing for long is sent away, and may come again."""
        for guest in list(self._guests):
            try:
                if guest.line in ready:
                    guest.send()
                elif guest.goes and time.monotonic() - guest.moved > STUCK:
                    raise TimeoutError
            except OSError:
                self._send_away(guest)

    def _send_away(self, guest: Guest) -> None:
        guest.line.close()
        self._guests.remove(guest)


def _is_idle_shell(pid: int) -> bool:
    """Whether a process does not heed SIGTERM, as interactive shells do, and runs nothing: then a hangup ends it.

    While it runs something, that has its grace: a shell would pass the hangup on.
    """
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            ignored = next(line.split()[1] for line in file if line.startswith("SigIgn:"))
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1) and not file.read().split()
    except (OSError, StopIteration):
        return False


if __name__ == "__main__":
    main(sys.argv[1:])

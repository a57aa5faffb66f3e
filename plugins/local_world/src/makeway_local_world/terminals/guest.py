"""Sit at the terminal of a job: hand it one's streams, or pass on keys, output and the size of the window."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import time
import tty

from makeway_local_world.commands import terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.output import exit_status
from makeway_local_world.terminals import meeting
from makeway_local_world.terminals.watching import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEAVE = 0x1C
"""The key that leaves a terminal and lets the job go on: Ctrl-\\."""
SILENT = 1.0
"""Seconds after which it is said that a job waits."""
KNOCK = 0.03
"""Seconds between two looks whether the job is there."""
INTERRUPTED = 130
_CHUNK = 1 << 14


class Guest:
    """The user of one job in the foreground."""

    def __init__(self, daemon: Daemon, job: str, place: str, *, pty: bool, attached: bool) -> None:
        """Make it.

        :param pty: whether the job has a terminal; else it gets the streams of this process.
        :param attached: whether the job was there before: then Ctrl-C while it waits leaves it alone.
        """
        self._daemon = daemon
        self._job = job
        self._place = place
        self._pty = pty
        self._ends_with_us = not attached
        self._watch = Watch(daemon, job)
        self._line: socket.socket | None = None
        self._standing: dict[str, Any] = {}
        self._began = time.monotonic()
        self._said_waits = attached
        self._mode: list[Any] | None = None
        """How the terminal was before it was made raw; None: it is not raw."""
        self._reads = True
        self._stopped = False
        self._caught: list[int] = []
        self._cancelled = False

    def sit(self) -> int:
        """Stay until the job has ended, or its user leaves; return the exit status."""
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        caught = (
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGWINCH,
            *([signal.SIGQUIT] * self._pty),
        )
        handlers = {number: signal.signal(number, self._catch) for number in caught}
        try:
            while True:
                status = self._turn(wake)
                if status is not None:
                    return status
        finally:
            self._cooked()
            if self._line is not None:
                self._line.close()
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(wake)
            os.close(woken)

    def _catch(self, number: int, frame: object) -> None:
        del frame
        self._caught.append(number)

    # ------------------------------------------------------------------------------- turning
    def _turn(self, wake: int) -> int | None:
        """Do what has come, or wait for it; return the exit status once all is over."""
        reading: list[Any] = [wake, self._watch.wake]
        if self._line is not None:
            reading.append(self._line)
            if self._reads and not self._stopped:
                reading.append(0)
        patience = None if self._line is not None else KNOCK
        readable, _, _ = select.select(reading, [], [], patience)
        if wake in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 512)
        while self._caught:
            status = self._obey(self._caught.pop(0))
            if status is not None:
                return status
        if self._line is not None and self._line in readable:
            self._show()
        if 0 in readable and self._line is not None and not self._pass_on():
            return self._left()
        for job in self._watch.news():
            self._tell(job)
        if self._standing.get("over") and self._line is None:
            meeting.leave(self._place)
            return INTERRUPTED if self._cancelled else exit_status(self._standing)
        if self._line is None:
            self._knock()
        if not self._said_waits and time.monotonic() - self._began > SILENT:
            self._said_waits = True
            if self._standing.get("state") == "PENDING":
                self._say(f"job {self._job} waits ({self._standing.get('reason')})")
        return None

    def _obey(self, number: int) -> int | None:
        """Do what a signal asks for."""
        if number == signal.SIGWINCH:
            self._send_size()
        elif number == signal.SIGINT:
            if self._cancelled or not self._ends_with_us:
                return INTERRUPTED
            self._cancel()
        elif self._pty:
            return self._left()
        else:
            self._cancel()
            return 128 + number
        return None

    def _cancel(self) -> None:
        self._cancelled = True
        self._daemon.post("/v1/commands", {"verb": "cancel", "jobs": [self._job]})

    def _left(self) -> int:
        """Leave the job to itself."""
        self._cooked()
        with contextlib.suppress(OSError):  # the terminal may have gone
            self._say(f"job {self._job} goes on; makeway attach {self._job} comes back to it")
        return 0

    # ------------------------------------------------------------------------------ the line
    def _knock(self) -> None:
        """Go to the job, if it is there."""
        if self._standing.get("over"):
            return
        line = meeting.call(self._place)
        if line is None:
            return
        if not self._pty:
            with line, contextlib.suppress(OSError):  # the job goes away once it has them
                socket.send_fds(line, [b"s"], [0, 1, 2])
            return
        self._line = line
        self._raw()
        self._send_size()

    def _show(self) -> None:
        """Print what the job has printed."""
        assert self._line is not None
        try:
            data = self._line.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            self._line.close()
            self._line = None
            self._cooked()
            return
        while data:
            data = data[os.write(1, data) :]

    def _pass_on(self) -> bool:
        """Pass on what was typed; say whether the user stays."""
        assert self._line is not None
        try:
            data = os.read(0, meeting.MOST)
        except OSError:
            data = b""  # the terminal has gone
        if self._mode is not None and (not data or LEAVE in data):
            return False
        if not data:
            self._reads = False
            data = b"\x04"
        with contextlib.suppress(OSError):  # what it said last is still to be read
            self._line.sendall(meeting.typed(data))
        return True

    def _send_size(self) -> None:
        if self._line is not None:
            columns, rows = os.get_terminal_size(1) if os.isatty(1) else (0, 0)
            with contextlib.suppress(OSError):
                self._line.sendall(meeting.size(rows, columns))

    # -------------------------------------------------------------------------- the terminal
    def _raw(self) -> None:
        """Have keys come as they are typed; what was typed before comes as well, as far as the kernel keeps it.

        While the job stands still, they wait there, and the keys that send signals are this process's own.
        """
        if not os.isatty(0):
            return
        if self._mode is None:
            self._mode = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSADRAIN)
        if self._stopped:
            mode = termios.tcgetattr(0)
            mode[1] |= termios.OPOST
            mode[3] |= termios.ISIG
            termios.tcsetattr(0, termios.TCSADRAIN, mode)

    def _cooked(self) -> None:
        if self._mode is not None:
            mode, self._mode = self._mode, None
            with contextlib.suppress(termios.error):  # the terminal may have gone
                termios.tcsetattr(0, termios.TCSADRAIN, mode)

    def _say(self, text: str) -> None:
        if self._line is not None and os.isatty(2):
            sys.stderr.write("\r\n")
        terminal.say(f"makeway: {text}", err=True)
        if self._mode is not None:
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _tell(self, job: dict[str, Any]) -> None:
        """Say on the terminal what has become of the job, if its user would wonder."""
        before, self._standing = self._standing, job
        state, was = job["state"], before.get("state")
        by = (job.get("displaced") or {}).get("by")
        if state == "SUSPENDED":
            self._stopped = True
            if self._line is not None:
                self._raw()
            if was != state:
                why = f"makes way for job {by}" if by else "is suspended"
                self._say(f"job {self._job} {why}; it goes on afterwards")
        elif self._stopped:
            self._stopped = False
            if self._line is not None:
                self._raw()
                self._send_size()
            if state == "RUNNING":
                self._say(f"job {self._job} goes on")
        if state == "PENDING" and was not in (None, "PENDING"):
            why = f"makes way for job {by}" if by else "was requeued"
            self._say(f"job {self._job} {why}; it waits to start again from the beginning")
        elif state == "RUNNING" and was == "PENDING" and self._said_waits:
            self._say(f"job {self._job} starts")
        elif was in ("RUNNING", "SUSPENDED") and job.get("incarnation") != before.get("incarnation"):
            self._say(f"job {self._job} was requeued, and has started again from the beginning")

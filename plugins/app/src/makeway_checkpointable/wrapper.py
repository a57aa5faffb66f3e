"""Run a program so that it can be saved: in the batch script's place, told by signals, with the warden as a child."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from makeway_checkpointable import criu, cuda, obstacles, slurm, warden
from makeway_checkpointable.criu import CriuError
from makeway_checkpointable.door import Door
from makeway_checkpointable.images import ImageError, Place
from makeway_checkpointable.report import Report

REFUSED = 2
LEFT = 128 + signal.SIGTERM
"""Exit status of a program that was saved and left: as of one that SIGTERM ended."""
_KILLED = 128 + signal.SIGKILL
_PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGWINCH,
)
_FIRST_LOOK = 5.0
"""Seconds after its start when a program is looked at: what cannot be saved is said before it matters."""
_ALMOST_AT_ONCE = 2.0
"""Seconds within which a signal to all processes of a job reaches this one after the program."""
_LEFT_ALONE = 120.0
"""Seconds after which a program that was saved by word of another goes on, if it was not ended."""


def run(
    command: Sequence[str],
    directory: Path,
    *,
    every: float | None = None,
    shield: bool = False,
    given_criu: str | None = None,
    given_cuda: str | None = None,
    here: bool = False,
    most: int | None = None,
) -> int:
    """Run a program, or go on with it; return its exit status.

    :param every: seconds of running between two saves; None: it is saved when it has to leave.
    :param most: MB that all that lies beside the directory may take; None: as much as there is room for.
    :param here: whether the program prints where this process does; what is said goes to ``DIR/log`` then.
    """
    report = Report()
    why = obstacles.of_command(command)
    if why is not None:
        return _refuse(why)
    gpus = cuda.find(given_cuda)
    if given_cuda is not None and gpus.why:
        return _refuse(gpus.why)
    gpus = gpus._replace(why=gpus.why or cuda.shared(cuda.visible()))
    try:
        found = criu.find(given_criu)
        place = Place(directory)
        door = Door(place.directory)
    except (CriuError, ImageError) as error:
        return _refuse(str(error))
    ended = _ended(place)
    if ended is not None:
        say(f"it has ended in this job before, with status {ended}: nothing is left to do")
        return ended
    signals = _Signals()
    try:
        pid, channel = warden.fork(
            warden.Order(command, place, found, gpus, shield=shield, here=here, most=most)
        )
    except OSError as error:
        return _refuse(f"{criu.NAMESPACES} ({error.strerror})")
    return _Wrapper(place, pid, channel, signals, door, report, every=every, quiet=here).serve()


def say(text: str) -> None:
    """Tell the user something, in the batch job's own output."""
    with contextlib.suppress(OSError):
        shown = "".join(
            each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
        )
        sys.stderr.write(f"makeway checkpointable: {shown}\n")
        sys.stderr.flush()


def _refuse(why: str) -> int:
    say(why)
    return REFUSED


class _Signals:
    """Collects what this process is sent, in the order in which it came."""

    def __init__(self) -> None:
        self.wake, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (*_PASSED_ON, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_PASSED_ON, signal.SIGTERM))

    def take(self) -> list[int]:
        with contextlib.suppress(BlockingIOError):
            return list(os.read(self.wake, 4096))
        return []


class _Wrapper:
    def __init__(
        self,
        place: Place,
        pid: int,
        channel: Any,
        signals: _Signals,
        door: Door,
        report: Report,
        *,
        every: float | None,
        quiet: bool,
    ) -> None:
        self._place = place
        self._pid = pid
        self._channel = channel
        self._signals = signals
        self._every = every
        self._door = door
        self._report = report
        self._quiet = quiet
        self._told_to_leave = False
        self._stands_until: float | None = None
        """When a program that was saved by word of another goes on, should it not be ended."""
        self._asked = False
        self._next_save: float | None = None
        self._next_look: float | None = None
        self._heard = b""
        self._status: int | None = None

    def serve(self) -> int:
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(self._signals.wake, selectors.EVENT_READ)
            selector.register(self._door, selectors.EVENT_READ)
            while self._status is None:
                for key, _ in selector.select(self._wait()):
                    if key.fileobj is self._channel:
                        self._hear()
                    elif key.fileobj is self._door:
                        self._open()
                    else:
                        self._obey()
                self._when_due()
        return self._status

    def _wait(self) -> float | None:
        due = [each for each in (self._next_save, self._next_look, self._stands_until) if each is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _when_due(self) -> None:
        now = time.monotonic()
        if self._next_look is not None and now >= self._next_look:
            self._next_look = None
            self._tell("look")
        if self._next_save is not None and now >= self._next_save:
            self._next_save = None
            self._tell("save")
        if self._stands_until is not None and now >= self._stands_until:
            self._stands_until, self._asked = None, False
            self._tell("go on")
            self._chat("it was saved, but nothing ended it: it goes on")
            self._report.saved()
            self._plan_save()

    def _open(self) -> None:
        """Let another process have the program saved; it stands still from then on.

        Where it stands still already, it is as it was saved, and what asks again hears that.
        """
        if not self._door.take():
            return
        if self._stands_until is not None:
            self._stands_until = time.monotonic() + _LEFT_ALONE
            self._door.answer(None)
        elif not self._asked:
            self._asked, self._next_save = True, None
            self._tell("leave")

    def _obey(self) -> None:
        for number in self._signals.take():
            if number == signal.SIGTERM:
                self._told_to_leave = True
                if self._stands_until is not None:
                    self._status = LEFT
                elif not self._asked:  # never two at once
                    self._asked, self._next_save = True, None
                    self._tell("leave")
            elif number in _PASSED_ON:
                self._tell(f"signal {number}")

    def _tell(self, words: str) -> None:
        with contextlib.suppress(OSError):
            self._channel.sendall(f"{words}\n".encode())

    def _hear(self) -> None:
        piece = self._channel.recv(65536)
        if not piece:
            os.waitpid(self._pid, 0)
            say("what holds the program was killed, and the program with it")
            self._status = 128 + signal.SIGKILL
            return
        *lines, self._heard = (self._heard + piece).split(b"\n")
        for line in lines:
            told = json.loads(line)
            getattr(self, "_on_" + told.pop("kind").replace(" ", "_"))(**told)

    def _chat(self, text: str) -> None:
        """Say what goes as it should."""
        if self._quiet:
            with contextlib.suppress(OSError), open(self._place.directory / "log", "a") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        else:
            say(text)

    def _runs(self) -> None:
        self._next_look = time.monotonic() + _FIRST_LOOK
        self._plan_save()

    def _plan_save(self) -> None:
        if self._every is not None:
            self._next_save = time.monotonic() + self._every

    # -------------------------------------------------------------------------------- what the warden says
    def _on_began(self, pid: int) -> None:
        self._chat(f"it begins, as process {pid} of its own; its output is in {self._place.directory}")
        self._runs()

    def _on_went_on(self, took: float, worked: float, saved: float, host: str) -> None:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(saved))
        self._chat(f"it goes on after {_clock(worked)} of work, as saved on {host} at {at} ({took:.2f} s)")
        self._report.saved()
        self._runs()

    def _on_lost(self, why: str, aside: str, image: str) -> None:
        say(f"{image} cannot be used: {why}; it is kept as {aside}, and the program begins anew")
        self._report.anew(f"{image}: {why}")

    def _on_saved(self, took: float, stood: float, worked: float, bytes: int) -> None:
        text = f"saved after {_clock(worked)} of work: {_size(bytes)} in {took:.2f} s"
        self._chat(f"{text}; it stood still for {stood:.2f} s")
        self._report.saved(took - stood)
        self._plan_save()

    def _on_left(self, took: float, worked: float, bytes: int) -> None:
        # The warden stays until this process ends, for no child of it can be born in a namespace without one.
        text = f"saved after {_clock(worked)} of work, to leave: {_size(bytes)} in {took:.2f} s"
        self._next_save = self._next_look = None
        if self._door.answer(None) and not self._told_to_leave:
            self._stands_until = time.monotonic() + _LEFT_ALONE
            self._chat(text)
            return
        self._chat(f"{text}; {slurm.requeue()}")
        self._status = LEFT

    def _on_not_saved(self, why: str) -> None:
        say(f"it cannot be saved: {why}; it runs on")
        self._door.answer(why)
        self._asked = False
        self._plan_save()

    def _on_stuck(self, why: str) -> None:
        say(f"it does not come back to its GPU: {why}; it is ended")

    def _on_seen(self, why: str | None) -> None:
        if why is not None:
            say(f"as it stands it could not be saved: {why}")

    def _on_unstarted(self, why: str, status: int) -> None:
        say(f"it cannot be started: {why}")
        self._status = status

    def _on_refused(self, why: str) -> None:
        self._status = _refuse(why)

    def _on_broken(self, why: str) -> None:
        say(f"internal error, please report it: {why}")
        self._status = 1

    def _on_ended(self, status: int) -> None:
        if self._stands_until is not None:  # ended while it stood still: what was saved is what counts
            self._status = LEFT
            return
        self._door.answer("it has ended")
        by_term = status in (-signal.SIGTERM, 128 + signal.SIGTERM)
        if by_term and not self._told_to_leave:
            select.select([self._signals.wake], [], [], _ALMOST_AT_ONCE)
            self._obey()
        if self._told_to_leave and (by_term or (self._asked and status)):  # it may have lost a child by it
            text = "the SIGTERM reached the program as well, and ended it before it was saved"
            say(f"{text}; with --shield it ignores that signal; {slurm.requeue()}")
            self._status = LEFT
            return
        self._status = 128 - status if status < 0 else status
        if self._status == _KILLED:  # no end of its own: memory ran out, or all of the job is killed
            say("the program was killed; what was saved of it stays")
            return
        try:
            self._place.clear()
            _note_end(self._place, self._status)
        except OSError as error:
            say(f"{error.filename or self._place.directory}: {error.strerror}")


def _ended(place: Place) -> int | None:
    """Return the status with which the program has ended before, in this very job of Slurm's; None: it has not."""
    path = place.directory / "ended"
    try:
        job, status = path.read_text().split()
    except (OSError, ValueError):
        return None
    if job == slurm.job_id() and status.isdecimal():
        return int(status)
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _note_end(place: Place, status: int) -> None:
    job = slurm.job_id()
    if job:
        (place.directory / "ended").write_text(f"{job} {status}\n")


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"


def _size(count: int) -> str:
    return f"{count / (1 << 20):.1f} MiB" if count < 1 << 30 else f"{count / (1 << 30):.2f} GiB"

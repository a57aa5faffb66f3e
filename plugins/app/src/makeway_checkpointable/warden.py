"""The first process of the program's own pid namespace: starts it or brings it back, saves it, and says how it ended.

It holds what criu needs, in a user namespace in which nothing is mapped but its own user: no right that the user has
not, over no process that is not the user's. The program has none of it.

It is told ``save``, ``leave``, ``go on``, ``look`` or ``signal N`` in lines, and answers in lines of JSON. A program
that was saved to leave stands still from then on. It ends, and
with it all that is in the namespace, when the other end is gone.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import socket
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from makeway_checkpointable import criu, cuda, images, linux, obstacles, outputs
from makeway_checkpointable.criu import Criu
from makeway_checkpointable.cuda import Cuda, CudaError
from makeway_checkpointable.images import ImageError, Place

_FIRST_PID = 1000
"""Where pids of the program begin: below are those of what saves it and brings it back, here and in the next one."""
_TRIES = 3
"""Restores whose criu may be killed before the image counts as unusable."""
_PAUSE = 0.002
_NANO = 1_000_000_000
_CLOCKS = {"monotonic": time.CLOCK_MONOTONIC, "boottime": time.CLOCK_BOOTTIME}
"""Clocks that begin anew with every boot."""
_NO_SUCH, _NOT_RUNNABLE = 127, 126
_DEFAULT = set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}


class Order:
    """What is to run, and where it is kept.

    :param shield: whether the program is to ignore SIGTERM.
    :param most: MB that all that lies beside the place may take; None: as much as there is room for.
    :param here: whether it reads and prints where this process does, as far as these are files.
    """

    def __init__(
        self,
        command: Sequence[str],
        place: Place,
        criu: Criu,
        cuda: Cuda,
        *,
        shield: bool,
        here: bool,
        most: int | None = None,
    ) -> None:
        self.command = list(command)
        self.place = place
        self.criu = criu
        self.cuda = cuda
        self.shield = shield
        self.here = here
        self.most = most


def fork(order: Order) -> tuple[int, socket.socket]:
    """Leave for a user and a pid namespace of one's own, and start the warden in it.

    :returns: its pid, and where to talk to it.
    :raises OSError: the kernel has no namespaces for this user.
    """
    here, there = socket.socketpair()
    image = order.place.newest()
    clocks = {} if image is None else images.clocks(image)
    linux.be_alone()
    with contextlib.suppress(OSError):  # a kernel without it
        _set_clocks(clocks)
    pid = os.fork()
    if pid:
        there.close()
        return pid, here
    here.close()
    status = 1
    try:
        linux.be_called(obstacles.WARDEN)
        Warden(order, there).run()
        status = 0
    except BrokenPipeError:
        pass
    except BaseException as error:
        with contextlib.suppress(OSError):
            _say(there, kind="broken", why=f"{type(error).__name__}: {error}")
    os._exit(status)


def _set_clocks(clocks: Mapping[str, float]) -> None:
    """Let the clocks that count from the boot go on where they were for children: deadlines of a program rest on them.

    :param clocks: what they showed; empty: they are left alone.
    :raises OSError: the kernel refuses.
    """
    if not clocks:
        return
    linux.unshare(linux.CLONE_NEWTIME)
    with open("/proc/self/timens_offsets") as file:
        ours = {words[0]: int(words[1]) * _NANO + int(words[2]) for words in map(str.split, file)}
    for name, shown in clocks.items():
        offset = ours[name] + round(shown * _NANO) - time.clock_gettime_ns(_CLOCKS[name])
        seconds, rest = divmod(offset, _NANO)
        linux.write("/proc/self/timens_offsets", f"{name} {seconds} {rest}")


class Warden:
    """See the module."""

    def __init__(self, order: Order, channel: socket.socket) -> None:
        self._order = order
        self._place = order.place
        self._channel = channel
        self._heard = b""
        self._pid = 0
        self._status: int | None = None
        self._since = 0.0
        self._worked = 0.0
        """Seconds of work that were saved before."""
        self._off: list[int] = []
        """Processes that were taken off their GPUs."""

    def run(self) -> None:
        """Serve until the program has ended."""
        wake = self._watch_children()
        try:
            linux.mount_proc()
        except OSError as error:
            self.say(kind="refused", why=f"a /proc of its own cannot be mounted: {error.strerror}")
            return
        linux.die_with_parent(signal.SIGKILL)
        if not self._go_on() and not self._begin():
            return
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            while True:
                self._reap()
                if self._status is not None:
                    self.say(kind="ended", status=self._status)
                    while self._channel.recv(
                        4096
                    ):  # without a first process here, the other end could fork no child
                        pass
                    return
                for key, _ in selector.select():
                    if key.fileobj is wake:
                        os.read(wake, 4096)
                    else:
                        self._hear()

    def say(self, **words: Any) -> None:
        """Tell the other end something."""
        _say(self._channel, **words)

    def _watch_children(self) -> int:
        for number in _DEFAULT:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        return read

    def _hear(self) -> None:
        piece = self._channel.recv(4096)
        if not piece:
            os._exit(1)  # the other end is gone, and all of this goes with it
        *lines, self._heard = (self._heard + piece).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["save"]:
                    self._save(leave=False)
                case ["leave"]:
                    self._save(leave=True)
                case ["go", "on"]:
                    self._continue()
                case ["look"]:
                    self.say(kind="seen", why=self._hindrance())
                case ["signal", number]:
                    with contextlib.suppress(OSError):
                        os.kill(self._pid, int(number))
                case _:
                    pass

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid, status = 0, 0
            if pid == 0:
                return
            if pid == self._pid:
                self._status = os.waitstatus_to_exitcode(status)

    # ------------------------------------------------------------------------------------------------ begin, go on
    def _begin(self) -> bool:
        """Start the program anew."""
        directory = self._place.directory
        for name in ("stdout", "stderr"):
            path = directory / name
            with contextlib.suppress(OSError):
                if path.stat().st_size:
                    path.rename(directory / f"{name}.old")
        linux.write("/proc/sys/kernel/ns_last_pid", str(_FIRST_PID - 1))
        read, write = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            self._be_the_program(write)
        os.close(write)
        with open(read, "rb") as file:
            why = file.read().decode()
        if why:
            os.waitpid(pid, 0)
            number, _, text = why.partition(" ")
            self.say(
                kind="unstarted", status=_NO_SUCH if int(number) == errno.ENOENT else _NOT_RUNNABLE, why=text
            )
            return False
        self._pid, self._status, self._since = pid, None, time.monotonic()
        self.say(kind="began", pid=pid)
        return True

    def _be_the_program(self, write: int) -> NoReturn:
        directory = self._place.directory
        what = self._order.command[0]
        try:
            os.setsid()
            made = os.O_CREAT | os.O_NOFOLLOW
            for number, (name, flags) in enumerate(
                (
                    ("stdin", os.O_RDONLY),
                    ("stdout", os.O_WRONLY | os.O_APPEND),
                    ("stderr", os.O_WRONLY | os.O_APPEND),
                )
            ):
                mine = _path_of(number) if self._order.here else None
                what = mine or str(directory / name)
                handle = os.open(what, flags if mine else flags | made, 0o600)
                os.dup2(handle, number, inheritable=True)
            what = self._order.command[0]
            for number in _DEFAULT:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
            if self._order.shield:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.closerange(3, write)
            os.closerange(write + 1, os.sysconf("SC_OPEN_MAX"))
            os.execvp(what, self._order.command)
        except OSError as error:
            os.write(write, f"{error.errno} {what}: {error.strerror}".encode())
        os._exit(_NO_SUCH)

    def _go_on(self) -> bool:
        """Bring the program back from where it was saved, if it was and that can be done; else say why not."""
        image = self._place.newest()
        if image is None:
            return False
        began = time.monotonic()
        try:
            known = images.read(image)
            why = images.misfit(known["where"], images.this_machine())
            if known["command"] != self._order.command:
                why = f"it is of another command, {' '.join(known['command']):.200}"
            self._pid = known["pid"]
            why = why or self._bring_back(image, known["written"], known["on_gpus"])
        except ImageError as refused:
            why = str(refused)
        except (KeyError, TypeError, ValueError):
            why = f"damaged: {images.MANIFEST} is not what was written"
        if why is not None:
            self.say(kind="lost", why=why, aside=str(self._place.set_aside(image)), image=image.name)
            return False
        self._since, self._worked = time.monotonic(), known["worked"]
        where = known["where"]["host"]
        self.say(
            kind="went on",
            took=time.monotonic() - began,
            worked=self._worked,
            saved=known["saved"],
            host=where,
        )
        return True

    def _bring_back(self, image: Path, written: list[list[Any]], on_gpus: list[int]) -> str | None:
        """Restore an image; return why that cannot be done. A criu that was killed says nothing of the image."""
        log = self._place.directory / "restore.log"
        for _ in range(_TRIES):
            self._status = None
            why = outputs.put_back(written)
            if why is not None:
                return why
            log.unlink(missing_ok=True)
            status = self._call(criu.restore_words(self._order.criu, image, self._place.directory))
            log.with_name("stats-restore").unlink(missing_ok=True)
            why = criu.reason(log) if status > 0 else None
            if status == 0:
                try:
                    cuda.put_back(self._order.cuda, on_gpus, self._ask)
                except CudaError as error:
                    why = str(error)
                else:
                    return None
            if _others():
                os.kill(-1, signal.SIGKILL)
            while _others():
                self._reap()
                time.sleep(_PAUSE)
            if why is not None:
                return why
        return f"criu was killed {_TRIES} times"

    # ------------------------------------------------------------------------------------------------ save
    def _save(self, *, leave: bool) -> None:
        """Save the program; it goes on afterwards, unless it is to leave."""
        why = self._hindrance()
        if why is not None:
            self.say(kind="not saved", why=why)
            return
        began = time.monotonic()
        stopped = False
        try:
            made = self._place.begin()
            self._off = cuda.users(_others())
            cuda.take_off(self._order.cuda, self._off, self._ask)
            too_much = self._beyond()
            if too_much is not None:
                raise ImageError(too_much)
            status = self._call(criu.dump_words(self._order.criu, self._pid, made))
            if self._status is not None:  # it has ended meanwhile
                self._place.sweep()
                return
            if status < 0:
                raise ImageError(f"criu was killed by signal {-status}")
            if status != 0:
                raise ImageError(self._why_full(made) or criu.reason(made / "dump.log"))
            stopped = True
            ending = obstacles.of_signals(_others())
            if ending is not None:
                raise ImageError(ending)
            worked = self._worked + began - self._since
            where = images.this_machine()
            manifest = {
                "command": self._order.command,
                "pid": self._pid,
                "saved": time.time(),
                "clocks": {name: time.clock_gettime(clock) for name, clock in _CLOCKS.items()},
                "worked": worked,
                "where": where if self._off else {**where, "gpus": []},
                "on_gpus": self._off,
                "written": outputs.written(made),
            }
            if not leave:  # what it does from now on is in no image: the rest need not be waited for
                stopped = False
                self._continue()
            stood = time.monotonic() - began
            image = self._place.finish(made, manifest)
        except (CudaError, ImageError, OSError) as error:
            text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            with contextlib.suppress(OSError):
                self._place.sweep()
            self._continue(stopped=stopped)
            self.say(kind="not saved", why=text)
            return
        took, size = time.monotonic() - began, images.size_of(image)
        if leave:
            self.say(kind="left", took=took, worked=worked, bytes=size)
        else:
            self.say(kind="saved", took=took, stood=stood, worked=worked, bytes=size)

    def _hindrance(self) -> str | None:
        """Say why the program cannot be saved, as far as it is seen; None: nothing is seen."""
        return obstacles.of_processes(_others(), gpus=self._order.cuda.why)

    def _continue(self, *, stopped: bool = True) -> None:
        """Let the program go on that was stopped, on its GPUs, too; one that cannot come back to them is ended."""
        if stopped:
            os.kill(-1, signal.SIGCONT)
        off, self._off = self._off, []
        try:
            cuda.put_back(self._order.cuda, off, self._ask)
        except CudaError as error:  # it would wait for them forever
            self.say(kind="stuck", why=str(error))
            os.kill(-1, signal.SIGKILL)

    def _beyond(self) -> str | None:
        """Say that what is saved would take more than is allowed; the image of before goes once there is a new one."""
        most, place = self._order.most, self._place
        if most is None:
            return None
        old = place.newest()
        others = images.all_below(place.directory.parent) - (images.size_of(old) if old is not None else 0)
        wanted = (others + sum(map(linux.dumped, _others()))) >> 20
        if wanted <= most:
            return None
        return f"{place.directory.parent} would hold {wanted} MiB; allowed: {most}"

    def _why_full(self, made: Path) -> str | None:
        """Say that the disk is full, if that is what went wrong: criu's words are of pages that it cannot write."""
        found = os.statvfs(made)
        if found.f_bavail * found.f_frsize < 1 << 20:
            return f"{self._place.directory}: {os.strerror(errno.ENOSPC)}"
        return None

    def _ask(self, words: list[str]) -> tuple[int, str]:
        """Run a command; return its exit status and what it printed."""
        said = os.memfd_create("said")
        try:
            return self._call(words, said), os.pread(said, 4096, 0).decode(errors="replace")
        finally:
            os.close(said)

    def _call(self, words: list[str], said: int | None = None) -> int:
        """Run a command with what criu needs; return its exit status.

        :param said: where it prints; None: nowhere.
        """
        pid = os.fork()
        if pid == 0:
            try:
                linux.keep_capabilities()
                nowhere = os.open(os.devnull, os.O_RDWR)
                for number, target in enumerate((nowhere, said or nowhere, said or nowhere)):
                    os.dup2(target, number)
                os.umask(0o077)
                os.execv(words[0], words)
            except OSError:
                pass
            os._exit(_NO_SUCH)
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == pid:
                return os.waitstatus_to_exitcode(status)
            if ended == self._pid:
                self._status = os.waitstatus_to_exitcode(status)


def _others() -> list[int]:
    """Return the processes of this namespace but the first."""
    return [int(each) for each in os.listdir("/proc") if each.isdigit() and each != "1"]


def _path_of(descriptor: int) -> str | None:
    """Return the path of a plain file that is open, to be opened anew under the mounts of this namespace.

    None: it is no plain file, or is not found by its name. /dev/null is none: it may be another one where the program
    goes on.
    """
    try:
        path, found = os.readlink(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor)
        same = os.path.samestat(os.stat(path), found)
    except OSError:
        return None
    return path if same and stat.S_ISREG(found.st_mode) else None


def _say(channel: socket.socket, **words: Any) -> None:
    channel.sendall(json.dumps(words).encode() + b"\n")

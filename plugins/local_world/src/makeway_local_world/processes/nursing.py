"""The daemon's end of the nursery: starts it, and another one should it die."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

from makeway_local_world.keeping.files import write_all

_PACKAGES = str(Path(__file__).parents[2])
_BEGIN = (
    "import sys; sys.path.append(sys.argv[1]);from makeway_local_world.keeping.nursery import main; main()"
)


class Nursery:
    """One process that forks keepers."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self.begun = 0
        """How many were started; all but one have died."""

    @property
    def pid(self) -> int:
        """Number of the process; 0: there is none."""
        return self._process.pid if self._process is not None else 0

    def start(self, lock: int, mandate: bytes, request: bytes, directory: int) -> socket.socket:
        """Have a keeper forked that owns `lock`; return the line to it.

        If the nursery dies before it has done so, the line is closed and the lock is free.

        :param mandate: what root is to do for it.
        :param request: what its owner's processes are to do; it cannot be changed any more.
        :raises OSError: no nursery can be started.
        """
        memory = sealed("request", request)
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            handles = [lock, memory, directory, its.fileno()]
            for again in (True, False):
                try:
                    socket.send_fds(self._open_door(), [mandate], handles)
                    return mine
                except (BrokenPipeError, ConnectionResetError):
                    self.close()
                    if not again:
                        raise
            raise AssertionError
        except BaseException:
            mine.close()
            raise
        finally:
            os.close(memory)
            its.close()

    def _open_door(self) -> socket.socket:
        if self._door is None:
            mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, "-I", "-S", "-c", _BEGIN, _PACKAGES, str(its.fileno())]
            try:
                self._process = subprocess.Popen(
                    command,
                    pass_fds=[its.fileno()],
                    env={"LC_ALL": "C.UTF-8"},  # no mark of any job
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except BaseException:
                mine.close()
                raise
            finally:
                its.close()
            self._door = mine
            self.begun += 1
        return self._door

    def warm_up(self) -> None:
        """Start it ahead of the first job."""
        self._open_door()

    def close(self) -> None:
        """Let it end; keepers go on."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
            if self._process.returncode is None:
                self._process.kill()
                self._process.wait()
            self._process = None


def sealed(name: str, data: bytes) -> int:
    """Return a file in memory that cannot be written to, shortened or lengthened; root alone can open it anew."""
    handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        write_all(handle, data)
        os.lseek(handle, 0, os.SEEK_SET)
        os.fchmod(handle, 0o400)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(handle)
        raise
    return handle

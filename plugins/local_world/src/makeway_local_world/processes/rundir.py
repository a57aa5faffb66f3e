"""Directories of incarnations: who is alive, who ended, who never started (local-world 1.2).

::

    STATE/run/JOB.INCARNATION/   0700
      lock      held by the keeper for as long as it lives
      started   written before the job exists
      exit      zeros; written when nothing of it is left
      saved     zeros; written when the job says that it was saved; only where it can be
      socket    on which the keeper can be called

Root alone may enter it. The keeper has the owner's rights, and holds what it needs of it as open files.

===== ========= ====== ==========================================
lock  `started` `exit` it is
===== ========= ====== ==========================================
held  any       any    alive, or about to be
free  no        any    never started, and never will be
free  yes       yes    ended
free  yes       no     lost: its keeper was killed, or the machine went down
===== ========= ====== ==========================================
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import attrs

from makeway_local_world.keeping import words
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.files import create_durably, open_directory, read_all
from makeway_local_world.submission import beside, directory_of, file_name

T = TypeVar("T")
Key = tuple[str, int]
"""Job and incarnation."""
_UNSUITABLE = ("nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs")


class Fate(enum.Enum):
    """What the files and the lock of an incarnation say."""

    ALIVE = "alive"
    NEVER = "never"
    ENDED = "ended"
    LOST = "lost"


class Found(NamedTuple):
    """One look at an incarnation."""

    key: Key
    fate: Fate
    started: dict[str, Any] | None
    exit: dict[str, Any] | None


class Saved(NamedTuple):
    """What is saved of an incarnation, as its keeper has written down."""

    ran: float | None
    """Seconds that it had run when it was saved last, or brought back; None: neither."""
    anew: str
    """Why it did not go on from what was saved before, but began anew; empty: it did."""


@attrs.frozen
class RunDirectory:
    """Where one incarnation lives."""

    state: Path
    key: Key
    path: Path = attrs.field(init=False)
    """The directory; it need not exist."""

    @path.default
    def _path(self) -> Path:
        return self.state / "run" / f"{file_name(self.key[0])}.{self.key[1]}"

    def make(self) -> int:
        """Make it, and return it opened.

        :raises OSError: it cannot be made.
        """
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
        return open_directory(self.path)

    def take_lock(self, directory: int) -> int | None:
        """Take the lock; None: another holds it.

        :raises OSError: it cannot be made.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(words.LOCK, flags, 0o600, dir_fd=directory)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    def look(self) -> Found:
        """See what became of it; the lock is looked at before the files, which are written before it is freed.

        :raises WordError: a file is damaged, or of a version that is not read.
        """
        try:
            directory = open_directory(self.path)
        except FileNotFoundError:
            return Found(self.key, Fate.NEVER, None, None)
        try:
            handle = self.take_lock(directory)
            if handle is not None:
                os.close(handle)
            started = self._started(directory)
            exit_ = self._read_exit(directory, started)
        finally:
            os.close(directory)
        if handle is None:
            fate = Fate.ALIVE
        elif started is None:
            fate = Fate.NEVER
        else:
            fate = Fate.LOST if exit_ is None else Fate.ENDED
        return Found(self.key, fate, started, exit_)

    @staticmethod
    def _started(directory: int) -> dict[str, Any] | None:
        told = words.written(read_all(directory, words.STARTED) or b"")
        return None if told is None else words.unpack(told)

    def _read_exit(self, directory: int, started: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return what the keeper wrote; None: nothing, or nothing that an end is told by.

        It has the owner's rights: what it writes is believed of that job alone, and only if it has the right shape.
        What its cgroup says comes from the kernel, and which GPUs it had is what the daemon gave it.
        """
        data = None if started is None else read_all(directory, words.EXIT)
        told = None if data is None else words.written(data[: words.EXIT_SIZE + 1])
        if told is None:
            return None
        try:
            found = words.unpack(told)
        except words.WordError:
            return None
        if not _is_end(found):
            return None
        assert started is not None
        found["gpus"] = started.get("gpus", [])
        cgroup = Cgroup(started["cgroup"]) if started.get("cgroup") else None
        found["oom"] = 0 if cgroup is None else cgroup.oom_kills()
        found["peak"] = 0 if cgroup is None else cgroup.memory_peak()
        return found

    def started(self) -> dict[str, Any] | None:
        """Return what was written down before the job began; None: it has not.

        :raises WordError, OSError: it cannot be read.
        """
        return self._opened(self._started)

    def end(self) -> dict[str, Any] | None:
        """Return how it ended; None: it has not, or that is not known.

        :raises WordError, OSError: it cannot be read.
        """
        return self._opened(lambda at: self._read_exit(at, self._started(at)))

    def saved(self) -> Saved:
        """Return what is saved of it; the keeper has the owner's rights, and is believed of that job alone."""
        try:
            data = self._opened(lambda at: read_all(at, words.SAVED))
            told = None if data is None else words.written(data[: words.SAVED_SIZE])
            found = {} if told is None else words.unpack(told)
        except (OSError, words.WordError):
            found = {}
        ran, anew = found.get("ran"), found.get("anew")
        return Saved(
            float(ran) if ran is not None and _are_numbers([ran], 1) else None,
            anew if isinstance(anew, str) else "",
        )

    def _opened(self, read: Callable[[int], T | None]) -> T | None:
        try:
            directory = open_directory(self.path)
        except FileNotFoundError:
            return None
        try:
            return read(directory)
        finally:
            os.close(directory)

    def call(self) -> socket.socket | None:
        """Call the keeper; None: it does not answer."""
        try:
            directory = open_directory(self.path)
        except OSError:
            return None
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            line.settimeout(2.0)
            line.connect(f"/proc/self/fd/{directory}/{words.SOCKET}")  # short, however long the path is
        except OSError:
            line.close()
            return None
        finally:
            os.close(directory)
        return line

    def close(self) -> None:
        """Take it away; it holds nothing but files."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path):
                os.unlink(self.path / name)
            os.rmdir(self.path)


def keep_ends(state: Path, ended: Mapping[Key, Mapping[str, Any]]) -> None:
    """Write down how jobs ended beside the submissions that are still there; those of an array together."""
    kept = defaultdict[Path, dict[str, bytes]](dict)
    for (job_id, incarnation), told in ended.items():
        said = words.pack(**{name: value for name, value in told.items() if name != "v"})
        kept[directory_of(state, job_id)][beside(job_id, "exit", incarnation)] = said
    for job, files in kept.items():
        with contextlib.suppress(
            OSError
        ):  # its submission has gone, or the disk is full: that must not keep them
            handle = open_directory(job)
            try:
                create_durably(handle, files)
            finally:
                os.close(handle)


def _is_end(told: dict[str, Any]) -> bool:
    """Whether an exit file has the shape of one; a process with the owner's rights might have written it."""
    status, usage, left, failed = (told.get(name) for name in ("status", "rusage", "left", "failed"))
    return (
        (status is None or (isinstance(status, int) and 0 <= status < 1 << 16))
        and all(
            told.get(name) is None or isinstance(told[name], str) for name in ("killed", "ends_by", "then")
        )
        and _are_numbers(usage or [0.0, 0.0, 0], 3)
        and _are_numbers([told.get("wall") or 0.0], 1)
        and isinstance(told.get("untold", ""), str)
        and (failed is None or (isinstance(failed, dict) and isinstance(failed.get("number", 0), int)))
        and all(isinstance(each, list) and len(each) == 3 for each in (left or ()))
    )


def _are_numbers(values: Any, count: int) -> bool:
    """Whether it is a list of so many numbers that are none too great."""
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(each, int | float) and 0 <= each < 1e15 for each in values)
    )


def all_keys(state: Path) -> Iterator[Key]:
    """Return the incarnations that have a directory, in order."""
    try:
        names = sorted(os.listdir(state / "run"))
    except FileNotFoundError:
        return
    for name in names:
        job, _, incarnation = name.rpartition(".")
        if job and incarnation.isdigit():
            yield unquote(job), int(incarnation)


def filesystem_of(path: Path) -> str:
    """Return the type of the file system that holds `path`; empty: unknown."""
    wanted = os.path.realpath(path)
    best, found = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                place = before.split()[4].replace("\\040", " ")
                inside = wanted == place or wanted.startswith(place.rstrip("/") + "/")
                if inside and len(place) >= len(best):
                    best, found = place, after.split()[0]
    except OSError:
        return ""
    return found


def unsuitable(path: Path) -> str | None:
    """Say why a state directory cannot be there; None: it can.

    Locks over a network are another mechanism, and may be lost.
    """
    kind = filesystem_of(path)
    if kind in _UNSUITABLE or kind.startswith("fuse"):
        return f"{path} is on {kind}; allowed: a file system of this machine, since locks and the journal need one"
    return None

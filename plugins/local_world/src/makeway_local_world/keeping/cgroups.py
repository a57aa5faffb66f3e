"""Hold the processes of an incarnation in a cgroup of their own (version 2), where that is allowed.

``cgroup.freeze`` and ``cgroup.kill`` need no controller. Limits need theirs, and hold for all of it::

    PATH/        limits, and where everything is killed
      job/       the job: what is frozen
      beside/    its keeper, and the commands that run beside it

All of it belongs to the daemon's user: a job can leave none of it, and change none of it.
"""

from __future__ import annotations

import os

from makeway_local_world.keeping import proc, walk
from makeway_local_world.keeping.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_JOB, _BESIDE = "job", "beside"


class Cgroup:
    """One directory of the hierarchy."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def job(self) -> str:
        """Where the job lives."""
        return os.path.join(self.path, _JOB)

    @property
    def beside(self) -> str:
        """Where its keeper lives."""
        return os.path.join(self.path, _BESIDE)

    def make(self, limits: Mapping[str, str]) -> list[str]:
        """Make it, and set limits (file -> value); return which of them could not be set.

        :raises OSError: it cannot be made.
        """
        for part in (self.job, self.beside):
            os.makedirs(part, mode=0o755, exist_ok=True)
        return self.limit(limits)

    def limit(self, limits: Mapping[str, str]) -> list[str]:
        """Set limits (file -> value); return which of them could not be set."""
        refused = []
        for name, value in limits.items():
            try:
                self._write(name, value)
            except OSError:
                refused.append(name)
        return refused

    def _write(self, name: str, value: str) -> None:
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(value)

    def _read(self, name: str) -> str:
        try:
            return read_file(os.path.join(self.path, name)).decode("ascii")
        except OSError:
            return ""

    def _event(self, file: str, name: str) -> int:
        for line in self._read(file).splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
        return 0

    def freeze(self) -> bool:
        """Have the job stopped; return whether that was taken."""
        return self._set_frozen("1")

    def thaw(self) -> bool:
        """Let the job go on; return whether that was taken."""
        return self._set_frozen("0")

    def _set_frozen(self, value: str) -> bool:
        try:
            self._write(f"{_JOB}/cgroup.freeze", value)
        except OSError:
            return False
        return True

    def frozen(self) -> bool:
        """Whether all of the job stands still; also if nothing of it is left."""
        events = f"{_JOB}/cgroup.events"
        return bool(self._event(events, "frozen")) or not self._event(events, "populated")

    def kill(self) -> None:
        """Send SIGKILL to everything in it, frozen or not; to the keeper as well."""
        for part in (".", _JOB, _BESIDE):
            self._kill(part)

    def kill_job(self) -> None:
        """Send SIGKILL to the job, frozen or not; its keeper lives."""
        self._kill(_JOB)

    def _kill(self, part: str) -> None:
        try:
            self._write(f"{part}/cgroup.kill", "1")
        except OSError:  # a kernel before 5.14
            for pid in self._members(part):
                seen = proc.look(int(pid))
                if seen is not None and pid in self._members(part):  # its number is still its own
                    walk.send(seen, 9)
            self.thaw()

    def _members(self, part: str) -> list[str]:
        return self._read(f"{part}/cgroup.procs").split()

    def empty(self) -> bool:
        """Whether no process is in it."""
        return not self._event("cgroup.events", "populated")

    def oom_kills(self) -> int:
        """Return how many processes the kernel killed in it because its memory limit was reached."""
        return self._event("memory.events", "oom_kill")

    def memory_peak(self) -> int:
        """Return the most memory that it had, in bytes; 0: unknown."""
        text = self._read("memory.peak").strip()
        return int(text) if text.isdigit() else 0

    def remove(self) -> bool:
        """Remove it, and what the job made below; return whether it is gone."""
        return all(map(_remove, (self.job, self.beside, self.path)))


def _remove(path: str) -> bool:
    """Remove a directory of the hierarchy and those below it; return whether it is gone."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        below = next(os.walk(path), (path, [], []))[1]
        return bool(below) and all(_remove(os.path.join(path, name)) for name in below) and _remove(path)
    return True

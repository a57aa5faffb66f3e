"""Hold the processes of an incarnation in a cgroup of their own (version 2), where that is allowed.

``cgroup.freeze`` and ``cgroup.kill`` need no controller. Limits need theirs.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PAUSE = 0.0005


class Cgroup:
    """One directory of the hierarchy."""

    def __init__(self, path: str) -> None:
        self.path = path

    def make(self, limits: Mapping[str, str]) -> list[str]:
        """Make it, and set limits (file -> value); return which of them could not be set.

        :raises OSError: it cannot be made.
        """
        os.makedirs(self.path, mode=0o755, exist_ok=True)
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
            with open(os.path.join(self.path, name), encoding="ascii") as file:
                return file.read()
        except OSError:
            return ""

    def _event(self, file: str, name: str) -> int:
        for line in self._read(file).splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
        return 0

    def enter(self) -> None:
        """Let the calling process live in it."""
        self._write("cgroup.procs", "0")

    def pids(self) -> list[int]:
        """Return who is in it."""
        return [int(pid) for pid in self._read("cgroup.procs").split()]

    def freeze(self, limit: float) -> bool:
        """Stop everything in it; return whether that was done within `limit` seconds."""
        return self._set_frozen("1", limit)

    def thaw(self, limit: float) -> bool:
        """Let everything in it go on; return whether that was done within `limit` seconds."""
        return self._set_frozen("0", limit)

    def _set_frozen(self, value: str, limit: float) -> bool:
        try:
            self._write("cgroup.freeze", value)
        except OSError:
            return False
        deadline = time.monotonic() + limit
        while str(self._event("cgroup.events", "frozen")) != value:
            if value == "1" and not self._event("cgroup.events", "populated"):
                return True  # nobody is left to freeze
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def kill(self) -> None:
        """Send SIGKILL to everything in it, frozen or not."""
        try:
            self._write("cgroup.kill", "1")
        except OSError:
            for pid in self.pids():
                try:
                    os.kill(pid, 9)
                except OSError:
                    continue
            self.thaw(0.0)

    def empty(self) -> bool:
        """Whether nobody is in it."""
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
        for folder, _, _ in os.walk(self.path, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


__all__ = ["Cgroup"]

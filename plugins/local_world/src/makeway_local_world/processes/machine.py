"""What this machine lets a daemon do: cores, memory, cgroups; found out once, said by name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from makeway.bitmap import CoreBits
from makeway.model import Allocation, Cluster
from makeway_local_world.submission import file_name


# --------------------------------------------------------------------------------------- cores
def threads_of_cores() -> list[list[int]]:
    """Return the logical CPUs of each core that this process may use, in order of the first one."""
    allowed = os.sched_getaffinity(0)
    cores: dict[tuple[int, ...], list[int]] = {}
    for cpu in sorted(allowed):
        place = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            siblings = tuple(sorted(_numbers(place.read_text().strip())))
        except (OSError, ValueError):
            siblings = (cpu,)
        cores.setdefault(siblings, []).append(cpu)
    return sorted(cores.values())


def _numbers(text: str) -> list[int]:
    """Read a list as the kernel writes it: ``0,4-5``."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


class Cores:
    """Which logical CPUs stand for the cores of the configuration."""

    def __init__(self, cluster: Cluster, threads: Sequence[Sequence[int]]) -> None:
        """Match the only node of `cluster` with `threads`, which this machine has; else nothing is bound."""
        self._of_core: Sequence[Sequence[int]] | None = None
        self.why_not = ""
        cpus = [cpu for core in threads for cpu in core]
        if len(cluster.nodes) != 1:
            self.why_not = f"the configuration has {len(cluster.nodes)} nodes, and this is one machine"
        elif cluster.nodes[0].cores == len(threads):
            self._of_core = threads
        elif cluster.nodes[0].cores == len(cpus):
            self._of_core = [[cpu] for cpu in cpus]
        else:
            mine = f"{len(threads)} cores and {len(cpus)} CPUs"
            self.why_not = f"the configuration has {cluster.nodes[0].cores} cores, this machine {mine}"

    def of(self, allocation: Allocation | None) -> list[int]:
        """Return the CPUs of an allocation; empty: it is not bound."""
        if self._of_core is None or allocation is None or allocation.cores is None:
            return []
        held: CoreBits = allocation.cores[0]
        return sorted(cpu for at, core in enumerate(self._of_core) if held >> at & 1 for cpu in core)


# -------------------------------------------------------------------------------------- memory
def memory_available(*, swap: bool = False) -> int:
    """Return the memory in MB that new programs can have without swapping (MemAvailable); with `swap`, that too."""
    wanted = {"MemAvailable", "SwapFree"} if swap else {"MemAvailable"}
    total = 0
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in wanted:
                total += int(rest.split()[0])
    return total // 1024


# ------------------------------------------------------------------------------------- cgroups
class Cgroups:
    """Where cgroups for jobs can be made (version 2); empty `base`: nowhere."""

    def __init__(self, base: str = "", controllers: frozenset[str] = frozenset(), why_not: str = "") -> None:
        self.base = base
        self.controllers = controllers
        self.why_not = why_not

    def path_of(self, job_id: str, incarnation: int) -> str | None:
        """Return the path of the cgroup of an incarnation; None: it gets none."""
        return os.path.join(self.base, f"{file_name(job_id)}.{incarnation}") if self.base else None

    @classmethod
    def find(cls, name: str) -> Cgroups:
        """Make a cgroup for all jobs of this daemon below its own, and turn on the controllers that it may use."""
        mount = _mount_of_cgroup2()
        if mount is None:
            return cls(why_not="no cgroups of version 2 are mounted")
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next((line[3:].strip() for line in file if line.startswith("0::")), "/")
        base = os.path.join(mount, own.lstrip("/"), f"makeway-{name}")
        try:
            os.makedirs(base, exist_ok=True)
            probe = os.path.join(base, "probe")
            os.makedirs(probe, exist_ok=True)
            usable = os.access(os.path.join(probe, "cgroup.freeze"), os.W_OK)
            os.rmdir(probe)
        except OSError as error:
            return cls(why_not=f"{base}: {error.strerror}")
        if not usable:
            return cls(why_not=f"{base}: the kernel has no freezer of version 2")
        return cls(base, frozenset(cls._turn_on(base, os.path.dirname(base))))

    @staticmethod
    def _turn_on(base: str, above: str) -> list[str]:
        found = []
        for name in ("memory", "pids", "cpu"):
            try:
                for folder in (above, base):
                    with open(os.path.join(folder, "cgroup.subtree_control"), "w", encoding="ascii") as file:
                        file.write(f"+{name}")
            except OSError:
                continue  # not there, or processes live in the cgroup above
            found.append(name)
        return found

    def remove(self) -> None:
        """Take away the cgroup of all jobs, if none is left in it."""
        if self.base:
            with contextlib.suppress(OSError):
                os.rmdir(self.base)


def _mount_of_cgroup2() -> str | None:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                if after.startswith("cgroup2 "):
                    return before.split()[4]
    except OSError:
        pass
    return None


__all__ = ["Cgroups", "Cores", "memory_available", "threads_of_cores"]

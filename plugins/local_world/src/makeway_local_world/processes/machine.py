"""What this machine lets a daemon do: cores, memory, cgroups; found out once, said by name."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from makeway.bitmap import CoreBits
from makeway.model import Allocation, Cluster
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.linux import can_fork_into_cgroups
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
CONTROLLERS = ("memory", "pids", "cpu", "cpuset")
"""What limits jobs, where this machine delegates it."""
SUBGROUP = "daemon"
"""Part of the unit's cgroup in which systemd starts the daemon (``DelegateSubgroup=``), beside the jobs."""
_SHARE_OF_PIDS = 0.75
"""Share of the machine's process numbers that all jobs together may have."""


class Cgroups:
    """Where cgroups for jobs can be made (version 2); empty `base`: nowhere."""

    def __init__(
        self,
        base: str = "",
        controllers: frozenset[str] = frozenset(),
        why_not: str = "",
        why_unlimited: Mapping[str, str] | None = None,
    ) -> None:
        self.base = base
        self.controllers = controllers
        self.why_not = why_not
        self.why_unlimited = dict(why_unlimited or {})
        """Controllers that are missing -> why."""

    def as_dict(self) -> dict[str, Any]:
        """Return what can be had and what cannot, as JSON has it."""
        return {
            "base": self.base,
            "controllers": sorted(self.controllers),
            "why_not": self.why_not,
            "why_unlimited": self.why_unlimited,
        }

    def path_of(self, job_id: str, incarnation: int) -> str | None:
        """Return the path of the cgroup of an incarnation; None: it gets none."""
        return os.path.join(self.base, f"{file_name(job_id)}.{incarnation}") if self.base else None

    @classmethod
    def find(cls, name: str) -> Cgroups:
        """Make a cgroup for all jobs of this daemon, and turn on the controllers that it may use.

        It lies below the daemon's own, or beside it where systemd has put the daemon into a part of its unit's.
        """
        mount = _mount_of_cgroup2()
        if mount is None:
            return cls(why_not="no cgroups of version 2 are mounted")
        if not can_fork_into_cgroups():
            return cls(why_not="nothing can be started in a cgroup (clone3, Linux 5.7)")
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next((line[3:].strip() for line in file if line.startswith("0::")), "/")
        place = os.path.join(mount, own.lstrip("/")).rstrip("/")
        if os.path.basename(place) == SUBGROUP:
            place = os.path.dirname(place)
        base = os.path.join(place, f"makeway-{name}")
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
        found, why = turn_on(base, place)
        return cls(base, frozenset(found), why_unlimited=why)

    def limits(
        self, memory_mb: int, cpus: int, cores: Sequence[int], processes: int, swap: bool
    ) -> dict[str, str]:
        """Return what is written into the files of a job's cgroup.

        :param memory_mb: what it was given; 0: no policy counts memory.
        :param cores: the CPUs that it is bound to; empty: it is not.
        :param swap: whether it may have swap beyond its memory.
        """
        found: dict[str, str] = {}
        if "memory" in self.controllers and memory_mb:
            found["memory.max"] = str(memory_mb << 20)
            if not swap:
                found["memory.swap.max"] = "0"
        if "pids" in self.controllers and processes:
            found["pids.max"] = str(processes)
        if "cpu" in self.controllers:
            found["cpu.weight"] = str(max(1, min(10_000, 100 * cpus)))
        return found | self.binding(cores)

    def binding(self, cores: Sequence[int]) -> dict[str, str]:
        """Return what binds a job to CPUs for good; empty: nothing does."""
        bound = bool(cores) and "cpuset" in self.controllers
        return {"cpuset.cpus": ",".join(map(str, cores))} if bound else {}

    def limit_all(self, memory_mb: int) -> None:
        """Let all jobs together leave some process numbers to others, and the memory that is not the node's."""
        limits = {}
        if "pids" in self.controllers:
            limits["pids.max"] = str(int(_most_pids() * _SHARE_OF_PIDS))
        if "memory" in self.controllers and memory_mb > 1:
            limits["memory.max"] = str(memory_mb << 20)
        if limits:
            Cgroup(self.base).limit(limits)

    def remove(self) -> None:
        """Take away the cgroup of all jobs, if none is left in it."""
        if self.base:
            with contextlib.suppress(OSError):
                os.rmdir(self.base)


def turn_on(base: str, above: str) -> tuple[list[str], dict[str, str]]:
    """Turn on controllers for what is below `base`; return them, and why others are missing."""
    found: list[str] = []
    why: dict[str, str] = {}
    try:
        there = Path(above, "cgroup.controllers").read_text(encoding="ascii").split()
    except OSError as error:
        return [], dict.fromkeys(CONTROLLERS, f"{above}: {error.strerror}")
    for name in CONTROLLERS:
        if name not in there:
            why[name] = "its controller is not delegated"
            continue
        try:
            for folder in (above, base):
                with open(os.path.join(folder, "cgroup.subtree_control"), "w", encoding="ascii") as file:
                    file.write(f"+{name}")
        except OSError as error:
            busy = f"processes live in {above}, where systemd before 254 starts the daemon"
            why[name] = busy if error.errno == errno.EBUSY else f"{above}: {error.strerror}"
        else:
            found.append(name)
    return found, why


def _most_pids() -> int:
    return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))


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

"""GPUs by UUID, and who else uses them (local-world 4)."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import attrs

from makeway_local_world.keeping import proc

_HARMLESS_MB = 512
"""Memory in use without any process that we can see; more: a process is there, in another container perhaps."""
_KINDS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
"""What names the processes on a GPU, those that compute first."""


@attrs.frozen(kw_only=True)
class Gpu:
    """One look at a GPU."""

    uuid: str
    index: int
    name: str = ""
    memory_mb: int = 0
    used_mb: int = 0
    pids: tuple[int, ...] = ()
    """Processes that have memory on it."""
    computing: tuple[int, ...] = ()
    """Those of them that do not only draw."""


class Inventory(Protocol):
    """Says which GPUs there are."""

    def look(self) -> Sequence[Gpu]:
        """Return all GPUs as they are now, in the order of their bus ids; empty: there are none."""


class NoGpus:
    """A machine without GPUs."""

    def look(self) -> Sequence[Gpu]:
        """Return none."""
        return ()


class Nvidia:
    """GPUs as NVIDIA's library shows them."""

    def __init__(self, library: Any) -> None:
        """Use `library`, the module pynvml, which is initialised."""
        self._library = library

    @classmethod
    def find(cls) -> Inventory:
        """Return what there is; without nvidia-ml-py, or without a driver, that is nothing, and no error."""
        try:
            pynvml: Any = importlib.import_module("pynvml")
        except ImportError:
            return NoGpus()
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return NoGpus()
        return cls(pynvml)

    def look(self) -> Sequence[Gpu]:
        """Return all GPUs as they are now."""
        lib = self._library
        found = []
        try:
            for index in range(lib.nvmlDeviceGetCount()):
                handle = lib.nvmlDeviceGetHandleByIndex(index)
                memory = lib.nvmlDeviceGetMemoryInfo(handle)
                found.append(
                    Gpu(
                        uuid=_text(lib.nvmlDeviceGetUUID(handle)),
                        index=index,
                        name=_text(lib.nvmlDeviceGetName(handle)),
                        memory_mb=memory.total >> 20,
                        used_mb=memory.used >> 20,
                        pids=self._pids(handle, *_KINDS),
                        computing=self._pids(handle, _KINDS[0]),
                    )
                )
        except lib.NVMLError:
            return found
        return found

    def _pids(self, handle: Any, *kinds: str) -> tuple[int, ...]:
        lib = self._library
        found: set[int] = set()
        for kind in kinds:
            try:
                found.update(process.pid for process in getattr(lib, kind)(handle))
            except lib.NVMLError:
                continue  # not supported by every device
        return tuple(sorted(found))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class Strangers:
    """Gives GPUs to jobs, and sets those aside that a process of no job uses."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._indices: dict[str, int] = {}

    def look(self) -> Sequence[Gpu]:
        """Return all GPUs as they are now."""
        gpus = self._inventory.look()
        self._indices = {gpu.uuid: gpu.index for gpu in gpus}
        return gpus

    def named(self, uuids: Collection[str]) -> list[dict[str, Any]]:
        """Return GPUs by index and UUID, as of the last look."""
        return [
            {"index": self._indices.get(uuid), "uuid": uuid}
            for uuid in sorted(uuids, key=lambda each: (self._indices.get(each, 0), each))
        ]

    def choose(self, count: int, taken: Collection[str]) -> list[str] | None:
        """Return the UUIDs of `count` GPUs that are free; None: the job gets none, and there are none.

        :param taken: those of other jobs.
        :raises LookupError: there are not so many; it says who has them. A KeyError: there never will be.
        """
        gpus = self.look()
        if not count:
            return [] if gpus else None
        if count > len(gpus):
            raise KeyError(f"{count} GPUs are wanted, this machine has {len(gpus)}")
        aside = {gpu.uuid: why for gpu in gpus if gpu.uuid not in taken and (why := stranger_on(gpu))}
        free = [gpu.uuid for gpu in gpus if gpu.uuid not in taken and gpu.uuid not in aside]
        if len(free) < count:
            reasons = "; ".join(aside.values()) or "the others belong to jobs"
            raise LookupError(f"{count} GPUs are wanted, {len(free)} are free: {reasons}")
        return free[:count]


def stranger_on(gpu: Gpu) -> str:
    """Say who uses a GPU that no job has; empty: none."""
    for pid in gpu.pids:
        process = proc.look(pid)
        if process is not None:
            return f"GPU {gpu.index} is used by {process.name} ({pid}), which is no job"
    if gpu.pids or gpu.used_mb > _HARMLESS_MB:
        return f"GPU {gpu.index} has {gpu.used_mb} MB in use by a process that cannot be seen from here"
    return ""

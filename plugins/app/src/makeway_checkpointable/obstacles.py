"""Say what of a program cannot be saved: ranks of MPI, GPUs, connections, terminals, tracers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from makeway_checkpointable import cuda

LAUNCHERS = frozenset(
    "aprun charmrun hydra_bstrap_proxy hydra_pmi_proxy jsrun mpiexec mpiexec.hydra mpirun orted orterun prte prted"
    " prterun prun srun".split()
)
"""Programs that start others where a checkpoint does not reach."""
_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
WARDEN = "makeway-warden"
"""Name of the process whose children save a program and bring it back."""
_BEFORE = frozenset("env exec nice nohup stdbuf time timeout".split())
"""Programs that execute what follows them."""
_MPI = re.compile(r"/lib(?:mpi|mpich|mpi_cxx|pmix|pmi2?)(?:-[a-z0-9]+)?\.so")
_ESTABLISHED = "01"
_MASKS = ("SigPnd", "ShdPnd", "SigBlk")


def of_command(command: Sequence[str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Say why a command cannot be saved, as far as its words and its surroundings tell; None: nothing is seen."""
    for word in command:
        name = os.path.basename(word)
        if name in LAUNCHERS:
            return f"{name} starts its processes by MPI or in steps of Slurm, which no checkpoint here holds"
        if name not in _BEFORE and "=" not in word and not word.startswith("-"):
            break
    for each in _RANKS:
        count = environ.get(each, "")
        if count.isdecimal() and int(count) > 1:
            return f"this is one of {count} ranks of MPI ({each}), which no checkpoint here holds"
    return None


def of_processes(pids: Iterable[int], proc: Path = Path("/proc"), *, gpus: str = "") -> str | None:
    """Say why processes cannot be saved, as far as can be seen beforehand; None: nothing is seen.

    :param gpus: why nothing on a GPU of NVIDIA's can be saved; empty: it can be.
    """
    connections = dict(_connections(proc))
    for pid in pids:
        for why in _of_process(proc / str(pid), connections, gpus):
            return f"process {pid} ({_name(proc / str(pid))}) {why}"
    return None


def of_signals(pids: Iterable[int], proc: Path = Path("/proc")) -> str | None:
    """Say which of some processes that stand still has a SIGTERM waiting, which would end it in every restore.

    One that is blocked waits for the program, and does no harm.
    """
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            lines = (proc / str(pid) / "status").read_text(errors="replace").splitlines()
            masks = {
                name: int(mask, 16)
                for name, _, mask in (line.partition(":") for line in lines)
                if name in _MASKS
            }
            waiting = (masks.get("SigPnd", 0) | masks.get("ShdPnd", 0)) & ~masks.get("SigBlk", 0)
            if waiting >> (signal.SIGTERM - 1) & 1:
                return f"process {pid} ({_name(proc / str(pid))}) has just been sent SIGTERM"
    return None


def _of_process(process: Path, connections: Mapping[str, str], gpus: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        if os.path.basename(os.readlink(process / "exe")) in LAUNCHERS:
            yield "starts others by MPI or in steps of Slurm"
    with contextlib.suppress(OSError):
        maps = (process / "maps").read_text(errors="replace")
        if found := _MPI.search(maps):
            yield f"uses MPI ({found[0].lstrip('/')})"
    with contextlib.suppress(OSError):
        for each in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield from _of_file(os.readlink(each), connections, gpus)
    with contextlib.suppress(OSError):
        for line in (process / "status").read_text(errors="replace").splitlines():
            if line.startswith("TracerPid:") and line.split()[1] != "0":
                tracer = line.split()[1]
                if not _is_a_save(process.parent, tracer):
                    yield f"is traced by process {tracer}"


def _is_a_save(proc: Path, tracer: str) -> bool:
    """Whether a tracer is the criu of a warden, which saves the process right now or brings it back."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        parent = (proc / tracer / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
        return _name(proc / parent) == WARDEN
    return False


def _of_file(target: str, connections: Mapping[str, str], gpus: str) -> Iterator[str]:
    if cuda.is_gpu(target):
        if gpus:
            yield f"uses a GPU ({target}): {gpus}"
    elif target == "/dev/kfd":
        yield f"uses a GPU ({target}), whose memory no checkpoint holds"
    elif target.startswith(("/dev/pts/", "/dev/tty")):
        yield f"has a terminal ({target})"
    elif target.startswith("socket:[") and target[8:-1] in connections:
        yield f"is connected to {connections[target[8:-1]]}"


def _connections(proc: Path) -> Iterator[tuple[str, str]]:
    """Yield inode and other end of each TCP connection."""
    for family in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / "self/net" / family).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _ESTABLISHED:
                    address, _, port = words[2].partition(":")
                    yield words[9], f"{_address(address)}, port {int(port, 16)}"


def _address(text: str) -> str:
    if len(text) != 8:
        return "a host by IPv6"
    return ".".join(str(each) for each in reversed(bytes.fromhex(text)))


def _name(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "comm").read_text(errors="replace").strip()
    return "?"

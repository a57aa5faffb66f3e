"""Take a program off NVIDIA's GPUs before criu saves it, and put it back on them: by NVIDIA's ``cuda-checkpoint``.

It moves what a process has on GPUs into the process's own memory, which criu then saves. criu's own plugin for it
needs more rights than a plain user has (PTRACE_O_SUSPEND_SECCOMP), so it is called around criu instead, and no plugin
is loaded.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

VARIABLE = "MAKEWAY_CUDA_CHECKPOINT"
"""Environment variable that names a cuda-checkpoint which is not on the PATH."""
LEAST = 570
"""Driver from which on locking is a step of its own, and programs that use NVML, such as PyTorch, can be saved."""
_SOURCE = "https://github.com/NVIDIA/cuda-checkpoint has it"
_DRIVER = Path("/sys/module/nvidia/version")
_GPUS = Path("/proc/driver/nvidia/gpus")
_MODEL = re.compile(r"^Model:\s*(.*\S)", re.MULTILINE)
_LOCK_LIMIT = 60_000
"""Milliseconds in which work that was handed to a GPU has to end."""

Call = Callable[[list[str]], tuple[int, str]]
"""Runs a command; returns its exit status and what it printed."""


class CudaError(Exception):
    """Why a program did not leave its GPUs, or did not come back to them."""


class Cuda(NamedTuple):
    """A cuda-checkpoint, or why there is none that can be used."""

    path: str
    why: str = ""
    """Why nothing on a GPU can be saved; empty: it can be."""


def find(given: str | None = None, environ: Mapping[str, str] = os.environ, driver: Path = _DRIVER) -> Cuda:
    """Look for cuda-checkpoint and the driver that it needs.

    :param given: its path; None: as the variable says, else the one on the PATH.
    :param driver: holds the version of the driver.
    """
    named = given or environ.get(VARIABLE)
    path = shutil.which(named or "cuda-checkpoint", path=f"{environ.get('PATH', os.defpath)}:/usr/local/bin")
    if path is None:
        where = f"cuda-checkpoint: {named} is no program" if named else "cuda-checkpoint is not installed"
        return Cuda("", f"{where}; {_SOURCE}")
    with contextlib.suppress(OSError, ValueError):
        version = driver.read_text().strip()
        if int(version.partition(".")[0]) < LEAST:
            return Cuda("", f"NVIDIA's driver is version {version}; {LEAST} or newer is needed")
    try:
        said = subprocess.run(
            [path, "--help"], capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Cuda("", f"cuda-checkpoint: {path} does not run: {error}")
    if not {"--action", "--get-state"} <= set(re.findall(r"--[a-z-]+", said.stdout + said.stderr)):
        return Cuda("", f"cuda-checkpoint: {path} is too old, it has no --action; {_SOURCE}")
    return Cuda(os.path.abspath(path))


def shared(given: int) -> str:
    """Say why a job with some of the machine's GPUs cannot be saved; empty: it has all of them, or there are none."""
    there = len(models())
    if not 0 < given < there:
        return ""
    return f"it has {given} of {there} GPUs, and would go on on the same ones, which may be another's by then"


def visible(environ: Mapping[str, str] = os.environ) -> int:
    """Return how many GPUs a job was given; 0: none, or it is not said."""
    return len([each for each in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()])


def models() -> list[str]:
    """Return what kinds of GPUs this machine has, in the order of their bus ids."""
    found = []
    with contextlib.suppress(OSError):
        for each in sorted(_GPUS.iterdir()):
            with contextlib.suppress(OSError):
                match = _MODEL.search((each / "information").read_text(errors="replace"))
                found.append(match[1] if match else "?")
    return found


def users(pids: Iterable[int], proc: Path = Path("/proc")) -> list[int]:
    """Return which processes use a GPU of NVIDIA's."""
    return [pid for pid in pids if any(map(is_gpu, _open_files(proc / str(pid) / "fd")))]


def is_gpu(target: str) -> bool:
    """Whether an open file is a GPU of NVIDIA's, or what belongs to one."""
    return target.startswith("/dev/nvidia")


def _open_files(folder: Path) -> Iterable[str]:
    with contextlib.suppress(OSError):
        for each in folder.iterdir():
            with contextlib.suppress(OSError):
                yield os.readlink(each)


def take_off(cuda: Cuda, pids: Sequence[int], call: Call) -> None:
    """Move what processes have on GPUs into their memory; they wait when they use a GPU from then on.

    :raises CudaError: one of them did not leave; `put_back` is to be called all the same.
    """
    for pid in pids:  # all stand still before any leaves
        _act(cuda, call, pid, "--action", "lock", "--timeout", str(_LOCK_LIMIT))
    for pid in pids:
        _act(cuda, call, pid, "--action", "checkpoint")


def put_back(cuda: Cuda, pids: Sequence[int], call: Call) -> None:
    """Let processes use their GPUs again, as far as they had left them.

    :raises CudaError: one of them cannot go on. One that has ended need not.
    """
    for pid in pids:
        try:
            _put_back(cuda, pid, call)
        except CudaError:
            if _lives(pid):
                raise


def _put_back(cuda: Cuda, pid: int, call: Call) -> None:
    state = _act(cuda, call, pid, "--get-state").strip()
    if state == "checkpointed":
        _act(cuda, call, pid, "--action", "restore")
        state = "locked"
    if state == "locked":
        _act(cuda, call, pid, "--action", "unlock")
    elif state != "running":
        raise CudaError(f"cuda-checkpoint says {state!r:.40} of process {pid}")


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2][:1] != "Z"
    return False


def _act(cuda: Cuda, call: Call, pid: int, *words: str) -> str:
    """Ask for one thing; return what was printed."""
    status, said = call([cuda.path, *words, "--pid", str(pid)])
    if status != 0:
        why = " ".join(said.split())[:300] or f"ended with status {status}"
        raise CudaError(f"cuda-checkpoint {' '.join(words[:2])}: {why}")
    return said

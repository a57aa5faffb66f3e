"""Find out what this machine lets a daemon do, and say it in words for users (local-world 7)."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.config import USE_SOURCES
from makeway_checkpointable import criu, cuda
from makeway_checkpointable.measuring import MeasureError, measure
from makeway_local_world import default
from makeway_local_world.places import check_file_system
from makeway_local_world.processes.machine import Cgroups
from makeway_local_world.processes.presence import absent
from makeway_local_world.reach import PlaceError

_MEASURED_MB = 256
"""Memory of the program that is saved to measure."""
LEAST_FREE = 64 << 20
"""Bytes that should be free where the state is."""


@attrs.frozen
class Finding:
    """One thing that was found out."""

    level: str
    """ok, note (something cannot be had), or bad (something is broken)."""
    about: str
    text: str
    help: str = ""
    """What would mend it."""

    def as_dict(self) -> dict[str, str]:
        """Return it as JSON has it."""
        return attrs.asdict(self)


def examine(daemon: Mapping[str, Any] | None) -> list[Finding]:
    """Look at the machine, and at the daemon if there is one.

    :param daemon: what it says of itself; None: there is none.
    """
    root = os.geteuid() == 0 if daemon is None else daemon["system"] or daemon["user"] == "root"
    shared = bool(daemon and daemon["system"])
    return [
        *_machine(),
        *_people(root=root, system=shared),
        *_children(),
        *_cgroups(daemon, shared=shared),
        *_python(shared=shared),
        *_gpus(),
        *_use(daemon),
        *_criu(),
        *_logins(root=root),
        *_state(daemon),
        *_others(daemon),
    ]


def _machine() -> Iterator[Finding]:
    machine = default.this_machine()
    gpus = f", {machine.gpus} GPUs" if machine.gpus else ""
    yield Finding(
        "ok", "machine", f"{machine.name}: {machine.cpus} CPUs, {machine.memory_mb / 1024:.1f} GiB{gpus}"
    )


def _people(*, root: bool, system: bool) -> Iterator[Finding]:
    name = pwd.getpwuid(os.geteuid()).pw_name
    if system:
        yield Finding(
            "ok", "people", "runs jobs of all people of this machine, each with rights of their own"
        )
    elif root:
        yield Finding("note", "people", "runs jobs of root only", "makeway up --system serves all people")
    else:
        yield Finding("note", "people", f"runs jobs of {name} only; others on this machine are not seen")


def _children() -> Iterator[Finding]:
    if Path(f"/proc/self/task/{os.getpid()}/children").exists():
        yield Finding(
            "ok", "processes", "the kernel lists the children of a process: jobs are stopped as a whole"
        )
    else:
        text = (
            "the kernel does not list children (CONFIG_PROC_CHILDREN): all of /proc is looked through instead"
        )
        yield Finding("note", "processes", f"{text}; a job that forks all the time may escape a stop")


def _cgroups(daemon: Mapping[str, Any] | None, *, shared: bool) -> Iterator[Finding]:
    """Say what the kernel enforces; of the daemon, or of what would be one started from here.

    :param shared: whether jobs are of several people.
    """
    if daemon is None:
        found = Cgroups.find(f"doctor-{os.getpid()}")
        found.remove()
        known = found.as_dict()
    else:
        known = daemon["cgroups"]
    help_ = "run under systemd 254 or newer with the unit that makeway up --print-unit prints"
    level = "bad" if shared else "note"
    if not known["base"]:
        text = f"none: {known['why_not']}; memory is watched every second; cores are bound, not enforced"
        if shared:
            text += "; a job that kills its keeper may leave processes that are not found"
        yield Finding(level, "cgroups", text, help_)
        return
    yield Finding("ok", "cgroups", "jobs are frozen and killed as a whole, and cannot leave their cgroup")
    for name, on, off in _ENFORCED:
        if name in known["controllers"]:
            yield Finding("ok", name, on)
        else:
            yield Finding("note", name, f"{off}: {known['why_unlimited'].get(name, '')}", help_)


_ENFORCED = (
    ("memory", "a job has no more than it was given, else it ends OUT_OF_MEMORY", "watched every second"),
    ("pids", "a job has no more processes than max_processes", "one job may take all process numbers"),
    ("cpu", "jobs get CPU time by the CPUs that they were given", "jobs share CPU time as the kernel likes"),
    ("cpuset", "a job cannot leave its cores", "a job that is bound to cores may leave them"),
)


def _python(*, shared: bool) -> Iterator[Finding]:
    """Say whether others may read the Python of a daemon for all, and whether others may change it."""
    if not shared:
        return
    for what, path in (("Python", Path(sys.executable).resolve()), ("makeway", Path(__file__))):
        closed = [each for each in path.parents if not each.stat().st_mode & stat.S_IXOTH]
        if closed or not path.stat().st_mode & stat.S_IROTH:
            text = f"not everybody may read {what} ({closed[0] if closed else path}): others cannot ask the daemon"
            yield Finding("note", "installation", text, "install it where all may read it, as in /opt")
        writable = [each for each in (path, *path.parents) if _is_others(each)]
        if writable:
            text = f"others than root may change {writable[0]}, and so what the daemon runs"
            yield Finding("bad", "installation", text, f"chown root {writable[0]}, chmod go-w {writable[0]}")


def _is_others(path: Path) -> bool:
    found = path.stat()
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return found.st_uid != 0 or (bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not sticky)


def _gpus() -> Iterator[Finding]:
    try:
        import pynvml  # noqa: F401
    except ImportError:
        if Path("/proc/driver/nvidia").exists():
            text = "there is a driver of NVIDIA, and nothing to ask it with"
            yield Finding("note", "GPUs", text, "pip install 'makeway-local-world[gpu]'")
        else:
            yield Finding("ok", "GPUs", "none")
        return
    count = default.count_gpus()
    if count:
        text = f"{count}; a suspended job keeps the memory of its GPUs, so it is requeued instead"
        yield Finding("ok", "GPUs", text)
        found = cuda.find()
        if found.why:
            why, _, help_ = found.why.partition("; ")
            yield Finding("note", "checkpoints on GPUs", why, help_)
        else:
            text = f"a job that has all GPUs takes what is on them along, by {found.path}"
            yield Finding("ok", "checkpoints on GPUs", text)
    else:
        yield Finding("ok", "GPUs", "none")


def _use(daemon: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Say what would show that a person uses the machine: of a daemon, what its partitions name."""
    wanted = USE_SOURCES if daemon is None else tuple(daemon.get("use", {}).get("sources", ()))
    lacking = absent(wanted)
    seen = [name for name in wanted if name not in lacking]
    if seen:
        yield Finding("ok", "use", f"a person at this machine is seen by {', '.join(seen)}")
    for name, why in lacking.items():
        yield Finding("note", "use", f"a person at this machine is not seen by {name}: {why}", why.help)


def _criu() -> Iterator[Finding]:
    """Say whether jobs can be saved with all their memory."""
    try:
        found = criu.ready()
    except criu.CriuError as error:
        text, _, help_ = str(error).rpartition("; ")
        yield Finding("note", "checkpoints", text, help_)
    else:
        yield Finding("ok", "checkpoints", f"criu {found.version} ({found.path})")


def measured() -> Iterator[Finding]:
    """Save a program where jobs are saved and bring it back; say how long a GiB takes."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local/state")
    try:
        found = measure(criu.find(), Path(state) / "makeway-saved", _MEASURED_MB)
    except (criu.CriuError, MeasureError, OSError) as error:
        yield Finding("note", "cost of checkpoints", f"not measured: {error}")
        return
    save, restore, write = (found.per_gib(each) for each in (found.save, found.restore, found.write))
    text = f"{save:.2f} s a GiB to save, {restore:.2f} s to bring back; a plain write takes {write:.2f} s"
    yield Finding("ok", "cost of checkpoints", text)


def _logins(*, root: bool) -> Iterator[Finding]:
    """Say whether jobs of a plain user outlive the last session."""
    if root or not Path("/run/systemd/system").exists() or shutil.which("loginctl") is None:
        return
    name = pwd.getpwuid(os.geteuid()).pw_name
    try:
        shown = subprocess.run(
            ["loginctl", "show-user", name, "--property=Linger", "--value"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if shown.stdout.strip() == "yes":
        yield Finding("ok", "logins", "your jobs outlive your last session")
    else:
        yield Finding(
            "note", "logins", "your jobs may end with your last session", f"loginctl enable-linger {name}"
        )


def _state(daemon: Mapping[str, Any] | None) -> Iterator[Finding]:
    if daemon is None:
        return
    state = Path(str(daemon["state"]))
    try:
        check_file_system(state)
        free = shutil.disk_usage(state).free
    except (PlaceError, OSError) as error:
        yield Finding("bad", "state", str(error))
        return
    if free < LEAST_FREE:
        yield Finding("bad", "state", f"{free >> 20} MiB are free on the disk of {state}", "free some space")
    else:
        yield Finding("ok", "state", f"{state}, {free >> 30} GiB free")


def _others(daemon: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Name daemons of others: two do not know of each other's jobs."""
    mine = None if daemon is None else daemon["pid"]
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in (mine, os.getpid()):
            continue
        with contextlib.suppress(OSError, KeyError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"makeway_local_world.daemon" in words and entry.stat().st_uid != os.geteuid():
                user = pwd.getpwuid(entry.stat().st_uid).pw_name
                text = f"process {entry.name} of {user}: two daemons share the machine and do not know of each other"
                yield Finding("note", "other daemons", text)

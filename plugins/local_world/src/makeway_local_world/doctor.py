"""Find out what this machine lets a daemon do, and say it in words for users (spec local-world 7)."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway_local_world import default
from makeway_local_world.places import PlaceError, check_file_system

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
    return [
        *_machine(),
        *_people(root=root, system=bool(daemon and daemon["system"])),
        *_children(),
        *_cgroups(),
        *_gpus(),
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


def cgroup_place() -> Path | None:
    """Return where this process could make cgroups of version 2; None: nowhere."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                    place = Path(root + line[3:].rstrip("/"))
                    if (place / "cgroup.procs").exists() and os.access(place, os.W_OK):
                        return place
    return None


def _cgroups() -> Iterator[Finding]:
    place = cgroup_place()
    if place is None:
        text = "none that may be used: memory is watched, not limited; cores are bound, not enforced"
        yield Finding("note", "cgroups", text, "run under systemd with Delegate=yes: makeway up --print-unit")
        return
    controllers: list[str] = []
    with contextlib.suppress(OSError):
        controllers = (place / "cgroup.controllers").read_text().split()
    freezer = "jobs are frozen and killed as a whole"
    if "memory" in controllers:
        yield Finding("ok", "cgroups", f"version 2, with memory: {freezer}, memory can be limited")
    else:
        yield Finding(
            "note", "cgroups", f"version 2, without memory: {freezer}; memory is watched, not limited"
        )


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
        yield Finding(
            "ok", "GPUs", f"{count}; a suspended job keeps the memory of its GPUs, so it is requeued instead"
        )
    else:
        yield Finding("ok", "GPUs", "none")


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


__all__ = ["Finding", "cgroup_place", "examine"]

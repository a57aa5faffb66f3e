"""Find criu, and call it: checkpoint and restore in user space."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from makeway_checkpointable import linux

VARIABLE = "MAKEWAY_CRIU"
"""Environment variable that names a criu which is not on the PATH."""
LEAST = (4, 0)
"""Older ones fail on today's kernels."""
INSTALL = "install criu 4.0 or newer: Debian 13 and later have it, and ppa:criu/ppa has it for Ubuntu"
NAMESPACES = (
    "user namespaces are needed, and this machine has none for plain users; ask for"
    " user.max_user_namespaces > 0, kernel.unprivileged_userns_clone = 1,"
    " kernel.apparmor_restrict_unprivileged_userns = 0, where they exist"
)
_VERSION = re.compile(r"^Version: ([0-9]+)\.([0-9]+)(\S*)", re.MULTILINE)
_ERROR = re.compile(r"Error \([^)]*\): (.*)")
_TOLD_BY_OTHERS = ("Dumping FAILED", "Restoring FAILED", "Unexpected error", "for self", "Can't dump task")
_MOST_LOG = 4 << 20

_NO_PLUGINS = str(Path(__file__).parent)
"""A directory without any."""
COMMON = (
    *("--unprivileged", "--manage-cgroups=ignore", "--file-locks", "--ghost-limit", str(1 << 30)),
    *("--libdir", _NO_PLUGINS, "-v2"),
)


class CriuError(Exception):
    """Why there is no criu, or what it said."""


class Criu(NamedTuple):
    """A criu that can be used."""

    path: str
    version: str


def find(given: str | None = None, environ: Mapping[str, str] = os.environ) -> Criu:
    """Look for criu.

    :param given: its path; None: as the variable says, else the one on the PATH.
    :raises CriuError: there is none, or it is too old; with what to install.
    """
    named = given or environ.get(VARIABLE)
    usual = f"{environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
    path = shutil.which(named or "criu", path=usual)
    if path is None:
        where = f"criu: {named} is no program" if named else "criu is not installed"
        raise CriuError(f"{where}; {INSTALL}")
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CriuError(f"criu: {path} does not run: {error}; {INSTALL}") from None
    found = _VERSION.search(said.stdout)
    if found is None:
        words = (said.stderr or said.stdout).strip().splitlines()
        raise CriuError(
            f"criu: {path} does not say its version ({words[-1] if words else 'nothing'}); {INSTALL}"
        )
    version = f"{found[1]}.{found[2]}{found[3]}"
    if (int(found[1]), int(found[2])) < LEAST:
        raise CriuError(f"criu: {path} is version {version}, which is too old; {INSTALL}")
    return Criu(os.path.abspath(path), version)


def ready() -> Criu:
    """Look for criu, and see whether it can do its work here.

    :raises CriuError: nothing can be saved here, with what to do about it.
    """
    found = find()
    if not linux.may_be_alone():
        raise CriuError(NAMESPACES)
    return found


def dump_words(criu: Criu, pid: int, images: Path) -> list[str]:
    """Return the command that saves a process with all below it, and leaves them stopped."""
    return [
        criu.path,
        "dump",
        *COMMON,
        "--leave-stopped",
        "-t",
        str(pid),
        "-D",
        str(images),
        "-o",
        "dump.log",
    ]


def restore_words(criu: Criu, images: Path, logs: Path) -> list[str]:
    """Return the command that brings saved processes back and leaves them to its parent.

    :param logs: where criu says what it did; it writes nothing into an image, which may be needed again.
    """
    return [criu.path, "restore", *COMMON, "-d", "-D", str(images), "-W", str(logs), "-o", "restore.log"]


def reason(log: Path) -> str:
    """Return what criu's log says went wrong."""
    with contextlib.suppress(OSError), open(log, errors="replace") as file:
        found = [match[1] for match in map(_ERROR.search, file.read(_MOST_LOG).splitlines()) if match]
        telling = [text for text in found if not any(each in text for each in _TOLD_BY_OTHERS)]
        if telling or found:
            return (telling or found)[0].strip()
    return "criu does not say why"

"""Keep what was saved: no other user's, whole or not there at all, and known to be as it was written.

``DIR/image.N`` holds the files that criu wrote, and ``manifest.json``, which is written last: an image without one
was never finished. A new image is made beside the old one, which goes when the new one is there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from makeway_checkpointable import cuda

MANIFEST = "manifest.json"
FORM = 1
"""Version of the manifest."""
_IMAGE = re.compile(r"image\.([0-9]{1,9})")
_MAKING, REFUSED = "making", "refused"
_MOST_MANIFEST = 32 << 20
_PIECE = 1 << 20
_AT_ONCE = 32
"""Files of an image that are brought to the disk at the same time."""
_UNSEALED = (MANIFEST, "dump.log", "stats-dump")


class ImageError(Exception):
    """Why a directory or an image cannot be used."""


class Place:
    """The directory of one program's images; locked as long as the object lives.

    :raises ImageError: it is not this user's own, or in use.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ImageError(f"{self.directory}: {error.strerror}") from None
        _check_owner(self.directory)
        self._lock = self._take()

    def _take(self) -> int:
        path = self.directory / "lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(path, flags, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise ImageError(
                f"{self.directory} is in use by {who}; give each program a --dir of its own"
            ) from None
        except OSError as error:
            raise ImageError(f"{path}: {error.strerror}") from None
        with contextlib.suppress(OSError):  # a full disk: it says who, no more
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
        return handle

    def newest(self) -> Path | None:
        """Return the image that was finished last; None: there is none."""
        found = self._numbered()
        return found[-1][1] if found else None

    def begin(self) -> Path:
        """Return an empty directory for a new image."""
        self.sweep()
        made = self.directory / _MAKING
        made.mkdir(mode=0o700)
        return made

    def finish(self, made: Path, manifest: dict[str, Any]) -> Path:
        """Seal a new image and let it take the place of the old one.

        :raises OSError: it cannot be written; the old one is as it was.
        """
        found = sorted(each for each in made.iterdir() if each.name not in _UNSEALED)
        with ThreadPoolExecutor(_AT_ONCE) as beside:  # the disk takes many at once as one
            synced = [beside.submit(_sync, each) for each in found]
            files = {each.name: [each.stat().st_size, _digest(each)] for each in found}
            for on_disk in synced:
                on_disk.result()
        text = json.dumps({"form": FORM, **manifest, "files": files})
        handle = os.open(made / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _sync(made)
        old = self._numbered()
        image = self.directory / f"image.{old[-1][0] + 1 if old else 1}"
        made.rename(image)
        _sync(self.directory)
        for _, each in old:
            (each / MANIFEST).unlink()  # it is none any more, however far the rest comes
            _remove(each)
        return image

    def sweep(self) -> None:
        """Remove what was never finished, and what was not removed to its end."""
        _remove(self.directory / _MAKING)
        for each in self.directory.iterdir():
            if _IMAGE.fullmatch(each.name) and not (each / MANIFEST).exists():
                _remove(each)

    def set_aside(self, image: Path) -> Path:
        """Keep an image that cannot be used where it is not taken for one."""
        aside = self.directory / REFUSED
        _remove(aside)
        image.rename(aside)
        return aside

    def clear(self) -> None:
        """Remove all images: the program has ended."""
        for _, each in self._numbered():
            (each / MANIFEST).unlink()
        self.sweep()
        _remove(self.directory / REFUSED)

    def _numbered(self) -> list[tuple[int, Path]]:
        found = []
        for each in self.directory.iterdir():
            match = _IMAGE.fullmatch(each.name)
            if match and (each / MANIFEST).exists():
                found.append((int(match[1]), each))
        return sorted(found)


def read(image: Path) -> dict[str, Any]:
    """Return the manifest of an image that is as it was written.

    :raises ImageError: it is damaged, or another user could have written it.
    """
    _check_owner(image, closed=True)
    try:
        known = _manifest(image)
        listed = known["files"].items()
        for name, (size, digest) in listed:
            path = image / name
            if "/" in name or name in _UNSEALED:
                raise ValueError("a name that no image has")
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise ImageError(f"{name} is not a file of this user's")
            if found.st_size != size:
                raise ImageError(f"damaged: {name} has {found.st_size} bytes instead of {size}")
            if _digest(path) != digest:
                raise ImageError(f"damaged: {name} is not what was written")
    except FileNotFoundError as error:
        raise ImageError(f"damaged: {Path(error.filename).name} is gone") from None
    except OSError as error:
        raise ImageError(f"{error.filename or image}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ImageError(f"damaged: {MANIFEST} is not what was written") from None
    extra = {each.name for each in image.iterdir()} - known["files"].keys() - set(_UNSEALED)
    if extra:
        raise ImageError(f"damaged: {min(extra)} does not belong to it")
    return known


def clocks(image: Path) -> dict[str, float]:
    """Return what the clocks of an image's program showed when it was saved; empty: that is not known.

    Nothing is checked: `read` does that before the image is used.
    """
    try:
        found = _manifest(image)["clocks"]
        return {name: float(found[name]) for name in ("monotonic", "boottime")}
    except (ImageError, OSError, ValueError, TypeError, KeyError):
        return {}


def _manifest(image: Path) -> dict[str, Any]:
    handle = os.open(image / MANIFEST, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        known = json.loads(file.read(_MOST_MANIFEST))
    if known["form"] != FORM:
        raise ImageError(f"its form is {known['form']!r:.20}, and this version reads {FORM}")
    found: dict[str, Any] = known
    return found


def this_machine() -> dict[str, Any]:
    """Return what an image has to find again where it is to go on."""
    flags: list[str] = []
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        line = next((line for line in file if line.startswith(("flags", "Features"))), "")
        flags = sorted(line.partition(":")[2].split())
    return {
        "host": platform.node(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "cpu": flags,
        "user": os.getuid(),
        "gpus": cuda.models(),
    }


def misfit(known: dict[str, Any], here: dict[str, Any]) -> str | None:
    """Say why an image of another machine cannot go on here; None: it may.

    :param known: `this_machine` where it was saved; without GPUs if it used none.
    """
    if known["user"] != here["user"]:
        return f"it was saved by user {known['user']}, and this is user {here['user']}"
    if known["machine"] != here["machine"]:
        return f"it was saved on a machine of type {known['machine']}, and this one is {here['machine']}"
    if _release(known["kernel"]) > _release(here["kernel"]):
        return f"it was saved under kernel {known['kernel']}, and {here['kernel']} here is older"
    missing = sorted(set(known["cpu"]) - set(here["cpu"]))
    if missing:
        words = " ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
        return f"the CPU of {known['host']}, where it was saved, has what this one lacks: {words}"
    if known["gpus"] and known["gpus"] != here["gpus"]:
        has = ", ".join(here["gpus"]) or "none"
        return f"it was saved on a machine with the GPUs {', '.join(known['gpus'])}; this one has {has}"
    return None


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", text)[:2]))


def _check_owner(path: Path, *, closed: bool = False) -> None:
    """Refuse a directory that another user could have filled.

    :param closed: whether others may not even read it.
    """
    try:
        found = os.lstat(path) if closed else os.stat(path)
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise ImageError(f"{path} is not a directory")
    if found.st_uid != os.geteuid():
        raise ImageError(f"{path} belongs to user {found.st_uid}, and images are their owner's alone")
    if found.st_mode & (0o077 if closed else 0o022):
        what, mend = ("use", "go=") if closed else ("write to", "go-w")
        raise ImageError(
            f"others may {what} {path}, where images are their owner's alone: chmod {mend} {path}"
        )


def _pieces(handle: int) -> Iterator[bytes]:
    while piece := os.read(handle, _PIECE):
        yield piece


def _digest(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = hashlib.sha256()
        for piece in _pieces(handle):
            found.update(piece)
    finally:
        os.close(handle)
    return found.hexdigest()


def _sync(path: Path) -> None:
    """Bring a file or a directory to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without it
            raise
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def size_of(image: Path) -> int:
    """Return the bytes of an image."""
    return sum(each.stat().st_size for each in image.iterdir())


def all_below(directory: Path) -> int:
    """Return the bytes of all files below a directory; what goes meanwhile is left out."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total

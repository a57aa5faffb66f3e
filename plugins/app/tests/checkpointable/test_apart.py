"""What needs no criu: images and their owner, machines, what cannot be saved, and what is said of bad input."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_checkpointable import criu, images, obstacles, outputs, slurm
from makeway_checkpointable.command import checkpointable
from makeway_checkpointable.images import ImageError, Place

HERE = {
    "host": "here",
    "machine": "x86_64",
    "kernel": "6.1.0-18",
    "cpu": ["avx", "sse"],
    "user": 1000,
    "gpus": ["H200"],
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "saved")


@pytest.fixture
def image(place: Place) -> Path:
    made = place.begin()
    (made / "pages-1.img").write_bytes(b"p" * 5000)
    (made / "pstree.img").write_bytes(b"t")
    return place.finish(made, {"pid": 1000})


def test_a_new_image_takes_the_place_of_the_old_one(place: Place, image: Path) -> None:
    assert place.newest() == image
    assert image.name == "image.1"
    assert images.read(image)["pid"] == 1000
    made = place.begin()
    (made / "pstree.img").touch()
    assert place.newest() == image  # until the new one is whole
    assert place.finish(made, {}).name == "image.2"
    assert [each.name for each in place.directory.glob("image.*")] == ["image.2"]
    assert place.directory.stat().st_mode & 0o777 == 0o700
    (place.directory / "image.1").mkdir()  # what a kill has left of an image that was being removed
    place.begin()
    assert not (place.directory / "image.1").exists()
    place.clear()
    assert place.newest() is None
    assert not list(place.directory.glob("image.*"))


def _cut(image: Path) -> None:
    os.truncate(image / "pages-1.img", 4096)


def _flip(image: Path) -> None:
    (image / "pages-1.img").write_bytes(b"p" * 4999 + b"q")


def _form(image: Path) -> None:
    known = json.loads((image / "manifest.json").read_text())
    (image / "manifest.json").write_text(json.dumps({**known, "form": 99}))


def _outside(image: Path) -> None:
    known = json.loads((image / "manifest.json").read_text())
    known["files"]["../lock"] = [0, ""]
    (image / "manifest.json").write_text(json.dumps(known))


def _link(image: Path) -> None:
    (image / "pages-1.img").rename(image.parent / "elsewhere")
    (image / "pages-1.img").symlink_to(image.parent / "elsewhere")


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_cut, "damaged: pages-1.img has 4096 bytes instead of 5000"),
        (_flip, "damaged: pages-1.img is not what was written"),
        (lambda image: (image / "pages-1.img").unlink(), "damaged: pages-1.img is gone"),
        (lambda image: (image / "core-7.img").touch(), "damaged: core-7.img does not belong to it"),
        (
            lambda image: (image / "manifest.json").write_text("{"),
            "damaged: manifest.json is not what was written",
        ),
        (
            lambda image: (image / "manifest.json").write_text("[]"),
            "damaged: manifest.json is not what was written",
        ),
        (_outside, "damaged: manifest.json is not what was written"),
        (_form, "its form is 99, and this version reads 1"),
        (_link, "pages-1.img is not a file of this user's"),
        (lambda image: image.chmod(0o710), "others may use "),
    ],
)
def test_an_image_is_read_only_as_it_was_written(image: Path, harm: Callable[[Path], Any], why: str) -> None:
    harm(image)
    with pytest.raises(ImageError) as refused:
        images.read(image)
    assert str(refused.value).startswith(why)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_image_of_another_user_is_not_read(image: Path) -> None:
    os.chown(image, 1234, 1234)
    with pytest.raises(ImageError, match="belongs to user 1234"):
        images.read(image)


def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with pytest.raises(ImageError, match=f"others may write to {tmp_path}, .*: chmod go-w {tmp_path}"):
        Place(tmp_path)


def test_one_directory_has_one_holder(place: Place) -> None:
    with pytest.raises(ImageError, match=f"is in use by process {os.getpid()} on "):
        Place(place.directory)


@pytest.mark.parametrize(
    ("saved", "why"),
    [
        ({}, None),
        ({"kernel": "6.0.9"}, None),
        ({"cpu": ["sse"]}, None),
        ({"kernel": "6.2.0"}, "it was saved under kernel 6.2.0, and 6.1.0-18 here is older"),
        (
            {"cpu": ["avx", "avx512f", "sse"]},
            "the CPU of here, where it was saved, has what this one lacks: avx512f",
        ),
        ({"machine": "aarch64"}, "it was saved on a machine of type aarch64, and this one is x86_64"),
        ({"user": 1}, "it was saved by user 1, and this is user 1000"),
        ({"gpus": []}, None),
        ({"gpus": ["A40", "A40"]}, "it was saved on a machine with the GPUs A40, A40; this one has H200"),
    ],
)
def test_an_image_of_another_machine_goes_on_where_it_can(saved: dict[str, Any], why: str | None) -> None:
    assert images.misfit({**HERE, **saved}, HERE) == why


@pytest.mark.parametrize(
    ("command", "environ", "why"),
    [
        (["mpirun", "-n", "4", "solve"], {}, "mpirun starts its processes by MPI"),
        (["env", "A=1", "/opt/slurm/bin/srun", "solve"], {}, "srun starts its processes by MPI"),
        (["solve"], {"PMI_SIZE": "8"}, "this is one of 8 ranks of MPI (PMI_SIZE)"),
        (["solve"], {"SLURM_STEP_NUM_TASKS": "2"}, "this is one of 2 ranks of MPI (SLURM_STEP_NUM_TASKS)"),
        (["solve", "mpirun"], {"PMI_SIZE": "1", "SLURM_NTASKS": "8"}, None),
    ],
)
def test_mpi_is_refused_by_name(command: list[str], environ: dict[str, str], why: str | None) -> None:
    found = obstacles.of_command(command, environ)
    assert found == why if why is None or found is None else found.startswith(why)


def _process(proc: Path, **files: str) -> None:
    (proc / "7/fd").mkdir(parents=True)
    (proc / "7/comm").write_text("solve\n")
    for name, text in files.items():
        if name.startswith("fd"):
            (proc / f"7/fd/{name[2:]}").symlink_to(text)
        elif name == "exe":
            (proc / "7/exe").symlink_to(text)
        else:
            (proc / "7" / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"fd3": "/dev/nvidia0"}, "uses a GPU (/dev/nvidia0): no tool"),
        ({"fd3": "/dev/kfd"}, "uses a GPU (/dev/kfd), whose memory no checkpoint holds"),
        ({"fd0": "/dev/pts/4"}, "has a terminal (/dev/pts/4)"),
        ({"fd3": "socket:[99]"}, "is connected to 10.0.0.7, port 443"),
        ({"fd3": "socket:[98]"}, None),
        ({"maps": "7f00-7f01 r-xp 0 08:01 5 /usr/lib/libmpi.so.40.30\n"}, "uses MPI (libmpi.so)"),
        ({"maps": "7f00-7f01 r-xp 0 08:01 5 /usr/lib/libmpiricalc.so\n"}, None),
        ({"exe": "/usr/bin/orted"}, "starts others by MPI or in steps of Slurm"),
        ({"status": "Name:\tsolve\nTracerPid:\t12\n"}, "is traced by process 12"),
        ({"status": "Name:\tsolve\nTracerPid:\t0\n", "fd1": "/home/ann/out"}, None),
    ],
)
def test_what_cannot_be_saved_is_seen_beforehand(
    tmp_path: Path, files: dict[str, str], why: str | None
) -> None:
    _process(tmp_path, **files)
    (tmp_path / "self/net").mkdir(parents=True)
    (tmp_path / "self/net/tcp").write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100000A:B5D4 0700000A:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 99 1\n"
        "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 98 1\n"
    )
    assert obstacles.of_processes([7], tmp_path, gpus="no tool") == (why and f"process 7 (solve) {why}")


@pytest.mark.parametrize(
    ("waiting", "blocked", "ends"), [(1 << 14, 0, True), (1 << 14, 1 << 14, False), (2, 0, False)]
)
def test_a_sigterm_that_waits_is_not_saved(tmp_path: Path, waiting: int, blocked: int, ends: bool) -> None:
    """It would end the program in every restore."""
    masks = f"SigPnd:\t{0:016x}\nShdPnd:\t{waiting:016x}\nSigBlk:\t{blocked:016x}\n"
    _process(tmp_path, status=f"Name:\tsolve\n{masks}")
    assert (obstacles.of_signals([7], tmp_path) is not None) is ends


def test_a_save_that_is_under_way_keeps_nothing_from_being_saved(tmp_path: Path) -> None:
    """Its criu traces the program for a moment."""
    _process(tmp_path, status="Name:\tsolve\nTracerPid:\t12\n")
    (tmp_path / "12").mkdir()
    (tmp_path / "12/stat").write_text("12 (criu (4.1)) S 11 12 12 0 -1 4194560")
    (tmp_path / "11").mkdir()
    (tmp_path / "11/comm").write_text("bash\n")
    assert obstacles.of_processes([7], tmp_path) == "process 7 (solve) is traced by process 12"
    (tmp_path / "11/comm").write_text("makeway-warden\n")
    assert obstacles.of_processes([7], tmp_path) is None


def _number(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def _open_file(name: Path, flags: int) -> bytes:
    """Return one entry of criu's list of open files: type 1 (regular), its number, and flags (2) and name (6) in it."""
    path = os.fsencode(name)
    inner = b"\x08\x01\x10" + _number(flags) + b"\x32" + _number(len(path)) + path
    entry = b"\x08\x01\x10\x01\x1a" + _number(len(inner)) + inner
    return struct.pack("<I", len(entry)) + entry


def test_only_what_is_written_to_is_cut(tmp_path: Path) -> None:
    grows, is_read = tmp_path / "grows", tmp_path / "is_read"
    for each in (grows, is_read):
        each.write_text("12345")
    listed = _open_file(grows, os.O_WRONLY | os.O_APPEND) + _open_file(is_read, os.O_RDONLY)
    listed += _open_file(tmp_path / "deleted", os.O_RDWR)
    (tmp_path / "files.img").write_bytes(b"headings" + listed)
    files = outputs.written(tmp_path)
    assert files == [[str(grows), 5]]
    for each in (grows, is_read):
        each.write_text("123456789")
    assert outputs.put_back(files) is None
    assert (grows.read_text(), is_read.read_text()) == ("12345", "123456789")
    grows.write_text("123")
    why = outputs.put_back(files)
    assert why == f"{grows}, which it writes to, had 5 bytes when it was saved, and has 3"
    grows.unlink()
    assert outputs.put_back(files) == f"{grows}, which it writes to: No such file or directory"


def _fake_criu(tmp_path: Path, said: str) -> str:
    path = tmp_path / "criu"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    return str(path)


def test_criu_is_found_by_key_by_variable_and_on_the_path(tmp_path: Path) -> None:
    path = _fake_criu(tmp_path, "Version: 4.1.1")
    for given, environ in ((path, {}), (None, {"MAKEWAY_CRIU": path}), (None, {"PATH": str(tmp_path)})):
        assert criu.find(given, environ) == criu.Criu(path, "4.1.1")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Version: 3.17.1", "is version 3.17.1, which is too old; install criu 4.0 or newer"),
        ("hello", "does not say its version (hello); install criu 4.0 or newer"),
    ],
)
def test_a_criu_that_is_no_use_says_what_to_install(tmp_path: Path, said: str, why: str) -> None:
    with pytest.raises(criu.CriuError) as error:
        criu.find(_fake_criu(tmp_path, said))
    assert why in str(error.value)


def test_without_criu_the_command_says_what_to_install(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--dir", str(tmp_path / "x"), "--criu", str(tmp_path / "none"), "--", "true"]
    assert CliRunner().invoke(checkpointable, words).exit_code == 2
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("text", ["soon", "0", "0.5", "-3", "1h30"])
def test_a_wrong_time_is_named(tmp_path: Path, text: str) -> None:
    words = ["--dir", str(tmp_path / "x"), f"--every={text}", "--", "true"]
    done = CliRunner().invoke(checkpointable, words)
    assert done.exit_code == 2
    assert f"got '{text}'; allowed: a number of seconds, or a length of time such as 2h" in done.output


def test_outside_of_slurm_people_start_it_again() -> None:
    assert slurm.requeue({}) == "start it again to go on"

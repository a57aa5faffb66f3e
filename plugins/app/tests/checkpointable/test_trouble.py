"""What goes wrong around a save: it is named, nothing that was saved before is lost, and the program runs on."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest


def test_a_kill_in_the_middle_of_a_dump_leaves_the_last_image(place: Any) -> None:
    real = place.environ["MAKEWAY_CRIU"]
    slow = place.directory / "criu"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = dump ] && [ -e {place.directory}/halting ] &&'
        f' {{ echo half >making; touch {place.directory}/halted; sleep 100; }}\nexec {real} "$@"\n'
    )
    slow.chmod(0o755)
    command = place.counts(0)
    first = place.start(*command, every=1.0, given_criu=str(slow))
    place.until("a save", lambda: "saved after" in place.said())
    (place.directory / "halting").touch()
    first.send_signal(signal.SIGTERM)
    place.until("the next dump", lambda: (place.images / "making").exists())
    first.kill()
    first.wait()
    assert place.image().name == "image.1"
    assert place.finish(*command) == 0
    assert place.counted()


def test_a_program_that_is_killed_goes_on_from_its_last_save(place: Any) -> None:
    """As when memory runs out, or when a job is killed process by process."""
    command = place.counts(3)
    first = place.start(*command, every=1.0)
    place.until("a save", lambda: "saved after" in place.said())
    (program,) = (each for each in children(first.pid) if name_of(each).startswith("python"))
    os.kill(program, signal.SIGKILL)
    assert first.wait(60) == 137
    assert "the program was killed" in place.said()
    assert place.finish(*command) == 3
    assert "it goes on" in place.said()
    assert place.counted()


def test_a_damaged_image_is_named_and_the_program_begins_anew(place: Any) -> None:
    command = place.counts(0)
    first = place.start(*command)
    place.until("the tenth line", lambda: len(place.printed()) > 10)
    assert place.leaves(first) == 143
    pages = place.image() / "pages-1.img"
    content = bytearray(pages.read_bytes())
    content[5000] ^= 1
    pages.write_bytes(content)
    before = place.printed()
    assert place.finish(*command) == 0
    assert "image.1 cannot be used: damaged: pages-1.img is not what was written" in place.said()
    assert f"it is kept as {place.images}/refused, and the program begins anew" in place.said()
    assert place.counted()
    assert (place.images / "stdout.old").read_text().split() == before


def test_a_program_that_changed_on_disk_begins_anew(place: Any) -> None:
    program = place.directory / "sleeper"
    shutil.copy("/bin/sleep", program)
    program.chmod(0o755)
    first = place.start(str(program), "1000")
    place.until("its start", lambda: "it begins" in place.said())
    assert place.leaves(first) == 143
    program.unlink()
    shutil.copy("/bin/true", program)
    program.chmod(0o755)
    assert place.start(str(program), "1000").wait(60) == 0
    assert "cannot be used" in place.said()
    assert "sleeper" in place.said().split("cannot be used")[1]


def test_two_never_hold_one_directory(place: Any) -> None:
    command = place.counts(0)
    first = place.start(*command)
    place.until("its start", lambda: place.printed())
    assert place.start(*command).wait(60) == 2
    assert f"is in use by process {first.pid} on {socket.gethostname()}" in place.said()
    (place.directory / "finish").touch()
    assert first.wait(60) == 0
    assert place.counted()


def test_a_connection_is_named_and_the_program_runs_on(place: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"import socket; held = socket.create_connection(('127.0.0.1', {port}))\n"
        started = place.start(*place.counts(3, text))
        place.until("its start", lambda: place.printed())
        started.send_signal(signal.SIGTERM)
        place.until("what is said", lambda: "it cannot be saved" in place.said())
        (place.directory / "finish").touch()
        assert started.wait(60) == 3
    assert f"is connected to 127.0.0.1, port {port}; it runs on" in place.said()
    assert place.counted()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_full_directory_is_named_and_the_image_before_it_stays(place: Any) -> None:
    place.images.mkdir()
    owner = place.directory.stat().st_uid
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=16m,mode=0700,uid={owner}", "none", place.images], check=True
    )
    try:
        command = place.counts(0, "kept = bytearray(8 << 20)\n")
        first = place.start(*command, every=1.0)
        place.until("a save", lambda: "saved after" in place.said())
        place.until("no more", lambda: "it cannot be saved" in place.said())
        assert f"it cannot be saved: {place.images}: No space left on device; it runs on" in place.said()
        first.kill()
        first.wait()
        assert place.image().name == "image.1"
        assert place.finish(*command) == 0
        assert place.counted()
    finally:
        place.end()
        subprocess.run(["umount", "-l", place.images], check=True)


def test_a_shield_keeps_a_signal_for_all_from_the_program(place: Any) -> None:
    command = place.counts(0)
    for shield, said in ((False, "the SIGTERM reached the program as well"), (True, "to leave")):
        first = place.start(*command, shield=shield)
        place.until("its start", lambda shield=shield: place.said().count("it begins") == 1 + shield)
        place.until("the tenth line", lambda: len(place.printed()) > 10)
        inside = children(first.pid)
        for pid in [*inside, first.pid]:
            os.kill(pid, signal.SIGTERM)
        assert first.wait(60) == 143
        assert said in place.said()
    assert place.finish(*command) == 0
    assert place.counted()


def name_of(pid: int) -> str:
    """Return the name of a process."""
    return Path(f"/proc/{pid}/comm").read_text()


def children(pid: int) -> list[int]:
    """Return all processes below one."""
    found = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*found, *(below for each in found for below in children(each))]

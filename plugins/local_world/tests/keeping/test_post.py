"""Starts that end before the job is there, and keepers that only wait."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from makeway_local_world.keeping import proc, words
from makeway_local_world.keeping.post import Post
from makeway_local_world.processes.rundir import Fate, RunDirectory

SPACE = words.EXIT
"""What is written before a start counts; a test that is in its way keeps the start from going on."""
OF_ITS_OWN = ("job", "rusage", "monotonic", "wall", "peak")
"""What differs between two ends that are alike."""


def _place(house: Any, job: str) -> RunDirectory:
    """Return the directory of a job that is to be started, made ahead."""
    place = RunDirectory(house.folder, (job, 1))
    os.close(place.make())
    return place


def _below(pid: int) -> int:
    """Return the one child of a process; 0: there is none."""
    found = [each for each in proc.below(pid) if each.parent == pid and each.state not in proc.ENDED]
    return found[0].pid if len(found) == 1 else 0


def test_a_start_that_cannot_be_written_down_is_none(house: Any, short: Path) -> None:
    """No file for the start, no job: the keeper says why, and the same incarnation may start again."""
    place = _place(house, "1")
    (place.path / SPACE).mkdir()
    held = house.start("touch", str(short / "ran"), job="1")
    failed = held.hear("failed")
    assert (failed["step"], failed["number"]) == ("keeper", 21)
    assert "Is a directory" in failed["what"]
    found = held.end()
    assert found.fate is Fate.NEVER
    assert not (short / "ran").exists()
    (place.path / SPACE).rmdir()
    again = house.start("touch", str(short / "ran"), job="1").runs()
    assert again.end().exit["status"] == 0
    assert (short / "ran").exists()


def test_a_child_killed_before_its_start_is_written_down(house: Any, short: Path) -> None:
    """It waits where the start is written down, and is killed there."""
    place = _place(house, "1")
    os.mkfifo(place.path / SPACE)
    held = house.start("touch", str(short / "ran"), job="1")
    keeper = held.until(lambda: _below(house.nursery.pid))
    os.kill(held.until(lambda: _below(keeper)), signal.SIGKILL)
    assert "killed before it began" in held.hear("failed")["what"]
    assert held.end().fate is Fate.NEVER
    assert not (short / "ran").exists()


def test_a_keeper_killed_before_its_start_is_written_down(house: Any, short: Path) -> None:
    """Its child never becomes the job, wherever it is when that happens."""
    place = _place(house, "1")
    os.mkfifo(place.path / SPACE)
    held = house.start("touch", str(short / "ran"), job="1")
    keeper = held.until(lambda: _below(house.nursery.pid))
    held.until(lambda: _below(keeper))
    os.kill(keeper, signal.SIGKILL)
    held.until(lambda: (found := proc.look(keeper)) is None or found.state in proc.ENDED)
    reader = os.open(place.path / SPACE, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert held.end().fate is Fate.NEVER
    finally:
        os.close(reader)
    assert not (short / "ran").exists()


def test_a_start_that_is_written_down_in_part_is_none(house: Any) -> None:
    """What is cut off is no damage: the machine went down before the job was there."""
    place = _place(house, "1")
    for told in (b"", b'{"v":1,"job":"1"', b"\0" * 50):
        (place.path / words.STARTED).write_bytes(told)
        assert place.look().fate is Fate.NEVER
        assert place.started() is None


def test_who_waits_answers_whoever_calls(house: Any) -> None:
    """Daemons come and go; what a keeper says first is the same before and after its first word."""
    held = house.start("sleep", "1000", job="1").runs()
    hellos = []
    for asks in (False, True, False):
        line = held.place.call()
        assert line is not None
        line.settimeout(60.0)
        hellos.append(words.unpack(line.recv(words.LONGEST)))
        if asks:
            words.send(line, words.pack(do="look", id=7))
            answer = words.unpack(line.recv(words.LONGEST))
            assert (answer["say"], answer["id"], answer["processes"]) == ("looked", 7, 1)
        line.close()
    assert hellos[0] == hellos[1] == hellos[2]
    assert (hellos[0]["say"], hellos[0]["state"], hellos[0]["pid"]) == ("hello", "running", held.keeper)
    assert hellos[0]["leader"] == held.tree()[0].pid
    held.kill()


def test_the_begin_of_a_job_asks_for_no_whole_keeper() -> None:
    """A keeper that waits says by itself that the job runs, and goes on waiting until there is a word."""
    line, daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    post = Post({}, -1, -1, line)
    post.wake, wakes = os.pipe()
    post.failure, child = socket.socketpair()
    heard: list[bytes] = []

    def talk() -> None:
        heard.append(daemon.recv(words.LONGEST))
        daemon.send(b"a word")

    talks = threading.Thread(target=talk)
    talks.start()
    child.close()  # as the kernel does when the job's program begins
    post.wait()
    line.shutdown(socket.SHUT_RDWR)
    talks.join()
    for handle in (post.wake, wakes):
        os.close(handle)
    line.close()
    daemon.close()
    assert heard == [words.runs(0, "running")]
    assert post.failure is None


def test_who_waits_ends_its_job_when_it_is_told_to(house: Any) -> None:
    """SIGTERM reaches a keeper that has not heard a word yet."""
    held = house.start("sleep", "1000", job="1").runs()
    os.kill(held.keeper, signal.SIGTERM)
    found = held.end()
    assert found.exit["killed"] == "SIGTERM to its keeper"
    assert os.WTERMSIG(found.exit["status"]) == signal.SIGTERM


def test_an_end_reads_the_same_whatever_has_waited_for_it(house: Any) -> None:
    """A keeper that has never been asked for anything writes what one writes that has."""
    told = []
    for asks in (False, True):
        gate = house.folder / f"gate{asks}"
        os.mkfifo(gate)
        held = house.start("sh", "-c", f"read line < {gate}; exit 3", job=f"a{asks}").runs()
        if asks:
            held.ask("look")
            assert held.hear("looked")["processes"] == 1
        gate.write_text("go\n")
        found = held.end()
        assert found.fate is Fate.ENDED
        told.append({key: value for key, value in found.exit.items() if key not in OF_ITS_OWN})
    assert told[0] == told[1]
    assert os.WEXITSTATUS(told[0]["status"]) == 3


BESIDE_ME = """
import ctypes, signal, time
given = (ctypes.c_uint64 * 11)()
given[0] = 0x8000  # CLONE_PARENT: a child of the keeper, which tells of its end by no signal of its own
if ctypes.CDLL(None).syscall(ctypes.c_long(435), given, ctypes.c_size_t(88)) == 0:
    time.sleep(1000)
"""


def test_a_job_that_leaves_a_sibling_has_not_ended(house: Any) -> None:
    """Its first process started another child of its keeper, which is killed before the end is written."""
    found = house.python(BESIDE_ME).end()
    assert found.fate is Fate.ENDED
    assert [state for _, _, state in found.exit["left"]] == ["S"]
    assert found.exit["status"] == 0


REHEARSED = """
import os, sys
from makeway_local_world.keeping.rehearsing import rehearse
def state():
    mask = os.umask(0)
    os.umask(mask)
    return sorted(os.listdir("/proc/self/fd")), os.getcwd(), mask, os.geteuid()
out = os.dup(1)
before = state()
rehearse()
os.write(out, repr(state() == before).encode())
"""


def test_a_rehearsal_leaves_nothing_behind() -> None:
    """The nursery has the same descriptors after it, and is where it was."""
    command = [sys.executable, "-c", REHEARSED]
    found = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (found.stdout, found.stderr, found.returncode) == ("True", "", 0)

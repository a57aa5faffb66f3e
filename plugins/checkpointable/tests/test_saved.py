"""Programs that are saved and go on where they were: nothing lost, nothing twice."""

from __future__ import annotations

import signal
import stat
from typing import Any

COUNT = """
import time
for number in range(1, {last} + 1):
    print(number, flush=True)
    time.sleep(0.02)
raise SystemExit({status})
"""
BUSY = """
import fcntl, hashlib, mmap, multiprocessing, os, tempfile, threading, time

shared = mmap.mmap(-1, 4096)            # memory that two processes share
gone = tempfile.TemporaryFile()         # a file without a name
gone.write(b"kept" * 1000); gone.flush()
locked = open("locked", "w"); fcntl.flock(locked, fcntl.LOCK_EX)
results = open("results", "w")          # a file that grows
read, write = os.pipe()
child = os.fork()
if child == 0:
    while piece := os.read(read, 8):
        shared[:8] = (int.from_bytes(shared[:8], "little") + int.from_bytes(piece, "little")).to_bytes(8, "little")
        results.write(f"{int.from_bytes(piece, 'little')}\\n"); results.flush()
        if int.from_bytes(piece, "little") == 80:
            os._exit(0)
turns = 0
def turn():
    global turns
    while turns < 80:
        turns += 1
        time.sleep(0.02)
thread = threading.Thread(target=turn); thread.start()
for number in range(1, 81):
    os.write(write, number.to_bytes(8, "little"))
    print(number, os.getpid(), flush=True)
    time.sleep(0.02)
os.waitpid(child, 0); thread.join()
gone.seek(0); assert gone.read() == b"kept" * 1000
print("sum", int.from_bytes(shared[:8], "little"), turns)
"""


def numbers(count: int) -> list[str]:
    return [str(each) for each in range(1, count + 1)]


def test_a_tree_with_threads_pipes_and_files_goes_on_in_the_next_start(place: Any) -> None:
    command = place.program(BUSY)
    first = place.start(*command)
    place.until("the tenth line", lambda: len(place.printed()) > 10)
    assert place.leaves(first) == 128 + signal.SIGTERM
    assert 10 < len(place.printed()) < 80
    assert stat.S_IMODE(place.image().stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in place.image().iterdir()} == {0o600}
    second = place.start(*command)
    place.until("ten lines more", lambda: len(place.printed()) > 40)
    assert place.leaves(second) == 128 + signal.SIGTERM
    assert place.start(*command).wait(60) == 0
    *counted, last = place.printed()
    assert [line.split()[0] for line in counted] == numbers(80)
    assert len({line.split()[1] for line in counted}) == 1  # the same pid in all three
    assert last == "sum 3240 80"  # 1 + 2 + ... + 80
    assert (place.directory / "results").read_text().split() == numbers(80)
    assert not list(place.images.glob("image.*"))
    assert (place.images / "stderr").read_text() == ""


def test_what_was_written_after_the_last_save_is_not_there_twice(place: Any) -> None:
    command = place.program(COUNT.format(last=100, status=7))
    first = place.start(*command, every=1.0)
    place.until("a save", lambda: "saved after" in place.said())
    at_save = len(place.printed())
    place.until("more output", lambda: len(place.printed()) > at_save + 5)
    first.kill()
    first.wait()
    last = len(place.printed())
    again = place.start(*command)
    assert again.wait(60) == 7
    assert place.printed() == numbers(100)
    assert "it goes on after 0:00:01 of work" in place.said()
    assert at_save < last


def test_in_a_job_of_slurms_it_is_requeued_once_and_never_after_a_cancel(place: Any) -> None:
    scontrol = place.directory / "scontrol"
    asked = place.directory / "asked"
    scontrol.write_text(f'#!/bin/sh\necho "$@" >>{asked}\ncat {place.directory}/state\n')
    scontrol.chmod(0o755)
    place.environ |= {"SLURM_JOB_ID": "17", "PATH": f"{place.directory}:{place.environ['PATH']}"}
    command = place.program(COUNT.format(last=40, status=5))
    for state, words in (("RUNNING", ["show job -o 17", "requeue 17"]), ("CANCELLED", ["show job -o 17"])):
        asked.unlink(missing_ok=True)
        (place.directory / "state").write_text(f"JobId=17 JobName=x JobState={state} Reason=None\n")
        count = len(place.printed())
        started = place.start(*command)
        place.until("five lines", lambda count=count: len(place.printed()) > count + 5)
        assert place.leaves(started) == 143
        assert asked.read_text().splitlines() == words
    assert "job 17 is requeued, and goes on when it starts" in place.said()
    assert "job 17 is CANCELLED, so it is not requeued from here" in place.said()
    assert place.start(*command).wait(60) == 5
    assert place.start(*command).wait(60) == 5  # requeued once more, its script begins again
    assert "it has ended in this job before, with status 5: nothing is left to do" in place.said()
    assert place.printed() == numbers(40)

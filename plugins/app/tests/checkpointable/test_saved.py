"""Programs that are saved and go on where they were: nothing lost, nothing twice."""

from __future__ import annotations

import signal
import stat
from typing import Any

BUSY = """
import fcntl, mmap, os, tempfile, threading, time

shared = mmap.mmap(-1, 4096)            # memory that two processes share
gone = tempfile.TemporaryFile()         # a file without a name
gone.write(b"kept" * 1000); gone.flush()
locked = open("locked", "w"); fcntl.flock(locked, fcntl.LOCK_EX)
results = open("results", "w")          # a file that grows
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(write)
    while piece := os.read(read, 8):
        shared[:8] = (int.from_bytes(shared[:8], "little") + int.from_bytes(piece, "little")).to_bytes(8, "little")
        results.write(f"{int.from_bytes(piece, 'little')}\\n"); results.flush()
    os._exit(0)
ready, over, turns = threading.Semaphore(0), False, 0
def turn():
    global turns
    while ready.acquire() and not over:
        turns += 1
thread = threading.Thread(target=turn); thread.start()
number = 0
while not os.path.exists("finish"):
    number += 1
    os.write(write, number.to_bytes(8, "little")); ready.release()
    print(number, os.getpid(), flush=True)
    time.sleep(0.02)
os.close(write); os.waitpid(child, 0)
while turns < number:
    time.sleep(0.01)
over = True; ready.release(); thread.join()
gone.seek(0); assert gone.read() == b"kept" * 1000
print("sum", int.from_bytes(shared[:8], "little"), turns)
"""


def test_a_tree_with_threads_pipes_and_files_goes_on_in_the_next_start(place: Any) -> None:
    command = place.program(BUSY)
    first = place.start(*command)
    place.until("the tenth line", lambda: len(place.printed()) > 10)
    assert place.leaves(first) == 128 + signal.SIGTERM
    assert stat.S_IMODE(place.image().stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in place.image().iterdir()} == {0o600}
    second = place.start(*command)
    before = len(place.printed())
    place.until("ten lines more", lambda: len(place.printed()) > before + 10)
    assert place.leaves(second) == 128 + signal.SIGTERM
    assert place.finish(*command) == 0
    *counted, last = place.printed()
    assert [line.split()[0] for line in counted] == [str(each + 1) for each in range(len(counted))]
    assert len({line.split()[1] for line in counted}) == 1  # the same pid in all three
    count = len(counted)
    assert last == f"sum {count * (count + 1) // 2} {count}"
    assert (place.directory / "results").read_text().split() == [
        str(each + 1) for each in range(len(counted))
    ]
    assert not list(place.images.glob("image.*"))
    assert (place.images / "stderr").read_text() == ""


def test_what_was_written_after_the_last_save_is_not_there_twice(place: Any) -> None:
    command = place.counts(7)
    first = place.start(*command, every=1.0)
    place.until("a save", lambda: "saved after" in place.said())
    at_save = len(place.printed())
    place.until("more output", lambda: len(place.printed()) > at_save + 5)
    first.kill()
    first.wait()
    last = len(place.printed())
    assert place.finish(*command) == 7
    assert place.counted()
    assert "it goes on after 0:00:01 of work" in place.said()
    assert at_save < last


def test_in_a_job_of_slurms_it_is_requeued_once_and_never_after_a_cancel(place: Any) -> None:
    scontrol = place.directory / "scontrol"
    asked = place.directory / "asked"
    scontrol.write_text(f'#!/bin/sh\necho "$@" >>{asked}\ncat {place.directory}/state\n')
    scontrol.chmod(0o755)
    place.environ |= {"SLURM_JOB_ID": "17", "PATH": f"{place.directory}:{place.environ['PATH']}"}
    command = place.counts(5)
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
    assert place.finish(*command) == 5
    assert place.start(*command).wait(60) == 5  # requeued once more, its script begins again
    assert "it has ended in this job before, with status 5: nothing is left to do" in place.said()
    assert place.counted()


def test_a_program_is_saved_by_word_of_another_and_stands_still_until_it_is_ended(place: Any) -> None:
    command = place.counts(0)
    first = place.start(*command)
    place.until("the tenth line", lambda: len(place.printed()) > 10)
    assert place.save() == (0, "")
    stood, image = place.printed(), place.image()
    assert place.save() == (0, "")  # who asks again hears the same, and nothing is saved twice
    assert place.image() == image
    assert first.poll() is None
    assert place.printed() == stood
    assert place.leaves(first) == 143
    assert place.save() == (1, f"makeway checkpointable: nothing runs with {place.images}\n")
    assert place.finish(*command) == 0
    assert place.counted()


def test_deadlines_hold_after_a_boot(place: Any) -> None:
    """Clocks that count from the boot begin anew with the next one, or are others on another machine."""
    before = ("unshare", "--user", "--map-current-user", "--time", "--monotonic=99999", "--boottime=99999")
    command = place.counts(3)
    first = place.start(*command, within=before)
    place.until("its start", lambda: len(place.printed()) > 10)
    assert place.leaves(first) == 143
    counted = len(place.printed())
    second = place.start(*command)
    place.until("more", lambda: len(place.printed()) > counted + 10)
    assert place.leaves(second) == 143
    assert place.finish(*command) == 3
    assert place.counted()


def test_an_image_is_good_for_more_than_one_restore(place: Any) -> None:
    """What was restored and killed before it was saved again goes back to the same image."""
    command = place.counts(0)
    first = place.start(*command)
    place.until("the tenth line", lambda: len(place.printed()) > 10)
    assert place.leaves(first) == 143
    for times in (1, 2):
        again = place.start(*command)
        place.until("a restore", lambda times=times: place.said().count("it goes on after") == times)
        again.kill()
        again.wait()
    assert place.finish(*command) == 0
    assert place.counted()
    assert "cannot be used" not in place.said()


def test_a_program_prints_where_its_command_prints(place: Any) -> None:
    command = place.counts(4)
    said = place.directory / "said"
    first = place.start(*command, here=True)
    place.until("the tenth line", lambda: len(place.said().split()) > 10)
    assert place.save() == (0, "")
    assert place.leaves(first) == 143
    with open(said, "a") as file:
        file.write("what came after the save\n")
    assert place.finish(*command, here=True) == 4
    numbers = said.read_text().split()
    assert numbers == [str(each + 1) for each in range(len(numbers))]
    assert "it goes on after" in (place.images / "log").read_text()

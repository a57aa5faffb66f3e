"""What goes wrong with processes, keepers and nurseries, and what follows (local-world 8)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from makeway.model import JobState
from makeway.worlds.events import Command
from makeway_live.views import UNWRITTEN, Displacers, Shown
from makeway_local_world.keeping import proc, walk, words
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.processes import leftovers, verbs
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.ends import End, end_of
from makeway_local_world.processes.gpus import Gpu
from makeway_local_world.processes.machine import Cgroups
from makeway_local_world.processes.rundir import Fate, RunDirectory


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    found = proc.look(pid)
    return found is not None and found.state not in proc.ENDED


def test_a_keeper_ends_whose_run_directory_is_gone(house: Any) -> None:
    """Nothing is left that could read how the job ended; it tried to write that for ever."""
    held = house.start("sleep", "1000").runs()
    leader = held.tree()[0].pid
    shutil.rmtree(held.place.path)
    os.kill(leader, signal.SIGKILL)
    held.until(lambda: not alive(held.keeper))


# ------------------------------------------------------------------------------- the good case
def test_an_urgent_job_stops_a_normal_one(rig: Any, short: Path) -> None:
    """It goes on afterwards, and both end well."""
    text = f"while [ ! -e {short}/end ]; do sleep 0.01; done"
    rig.submit("1", "sh", "-c", text)
    rig.until_runs("1")
    leader = proc.children(rig.keeper("1"))[0]
    rig.submit("2", "sh", "-c", f"while [ ! -e {short}/go ]; do sleep 0.01; done", partition="urgent")
    rig.until(j1="SUSPENDED", j2="RUNNING")
    rig.until_runs("2")
    stopped = proc.look(leader)
    assert stopped is not None
    assert stopped.state in "TD"
    (short / "go").touch()
    rig.until(j1="RUNNING", j2="GONE")
    (short / "end").touch()
    rig.until(j1="GONE")
    assert rig.ended_as("1")[1:] == ["RUNNING", "SUSPENDED", "RUNNING", "COMPLETED"]
    assert rig.ended_as("2")[1:] == ["RUNNING", "COMPLETED"]


def test_the_end_is_kept(rig: Any) -> None:
    """Code and signal as Slurm shows them, beside what was to be run."""
    rig.submit("1", "sh", "-c", "exit 3")
    rig.submit("2", "sh", "-c", "kill -9 $$")
    rig.until(j1="GONE", j2="GONE")
    first = rig.turn(lambda: end_of(rig.folder, "1", 1))
    second = rig.turn(lambda: end_of(rig.folder, "2", 1))
    assert (first.text, first.state, first.why) == ("3:0", JobState.FAILED, "exit code 3")
    assert (second.text, second.state, second.why) == ("0:9", JobState.FAILED, "ended by SIGKILL")
    rig.turn(lambda: not list((rig.folder / "run").iterdir()))


def test_ends_read_both_ways() -> None:
    """What a shell reports for a signal is no signal: both readings are shown."""
    assert End(status=137 << 8).why == "exit code 137, which a shell also reports for SIGKILL"
    assert End(status=9, oom_kills=1).why.startswith("OUT_OF_MEMORY: the kernel killed 1")
    assert End(status=0).why == ""


# ------------------------------------------------------------------------------ daemon and keepers
def test_a_daemon_that_is_back_finds_its_jobs(rig: Any, short: Path) -> None:
    """Running, suspended and ended ones; nothing is started again."""
    rig.submit("1", "sh", "-c", f"echo $$ >>{short}/starts; exec sleep 1000")
    rig.until_runs("1")
    rig.turn(lambda: (short / "starts").exists())
    rig.submit("2", "sleep", "1000", partition="urgent", spec={"tasks": 3})
    rig.until(j1="SUSPENDED", j2="RUNNING")
    rig.until_runs("2")
    rig.submit(
        "3",
        "sh",
        "-c",
        f"until [ -e {short}/go ]; do sleep 0.01; done",
        partition="urgent",
        spec={"tasks": 1},
    )
    rig.until_runs("3")
    keepers = {job_id: rig.keeper(job_id) for job_id in ("1", "2", "3")}
    rig.leave()
    (short / "go").touch()
    place = RunDirectory(rig.folder, ("3", 1))
    deadline = time.monotonic() + 60
    while place.look().fate is not Fate.ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert rig.states() == {"1": ("SUSPENDED", "None"), "2": ("RUNNING", "None"), "3": ("RUNNING", "None")}
    rig.until(j3="GONE")
    assert {job_id: rig.keeper(job_id) for job_id in ("1", "2")} == {"1": keepers["1"], "2": keepers["2"]}
    rig.live.feed(Command("cancel", "2"))
    rig.until(j1="RUNNING", j2="GONE")
    assert len((short / "starts").read_text().split()) == 1
    rig.turn(lambda: not alive(keepers["2"]))


@pytest.mark.parametrize(("rule", "state"), [("requeue", "PENDING"), ("fail", "FAILED"), ("hold", "PENDING")])
def test_keeper_killed(rig: Any, short: Path, rule: str, state: str) -> None:
    """The leader dies with it, the rest by their mark; what follows is a rule."""
    rig.settings["keeper_lost"] = rule
    rig.submit("1", "sh", "-c", f"setsid sleep 1000 & echo $$ $! >>{short}/pids; exec sleep 1001")
    rig.turn(lambda: (short / "pids").exists() and (short / "pids").read_text().endswith("\n"))
    leader, child = map(int, (short / "pids").read_text().split())
    rig.until_runs("1")
    os.kill(rig.keeper("1"), signal.SIGKILL)
    rig.turn(lambda: rig.notes("noticed", "1"))
    (noticed,) = rig.notes("noticed", "1")
    assert noticed["state"] == state
    assert noticed["by"] == "its keeper was killed"
    rig.turn(lambda: not alive(leader))
    rig.turn(lambda: not alive(child))
    if rule == "requeue":
        rig.turn(lambda: rig.live.engine.ledger.jobs["1"].starts == 2)
        rig.turn(lambda: len((short / "pids").read_text().splitlines()) == 2)
    elif rule == "hold":
        rig.turn(lambda: rig.held("1"))


def test_keeper_killed_before_it_says_that_the_job_runs(
    rig: Any, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job may have begun, so that this incarnation is over; it is never started once more."""
    hand = rig.world._hand
    monkeypatch.setattr(hand, "_began", lambda case, action: None)
    rig.submit("1", "sh", "-c", f"echo $MAKEWAY_INCARNATION >>{short}/starts; exec sleep 1000")
    rig.turn(lambda: (short / "starts").exists() and (short / "starts").read_text() == "1\n")
    keeper = rig.turn(lambda: rig.world.processes()["1"]["keeper"])
    monkeypatch.undo()
    os.kill(keeper, signal.SIGKILL)
    rig.turn(lambda: len((short / "starts").read_text().split()) == 2)
    assert (short / "starts").read_text().split() == ["1", "2"]
    assert rig.notes("noticed", "1")[0]["by"] == "its keeper was killed"


def test_keeper_killed_without_a_daemon(rig: Any) -> None:
    """The next daemon finds out, and does the same."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    keeper = rig.keeper("1")
    leader = proc.children(keeper)[0]
    rig.leave()
    os.kill(keeper, signal.SIGKILL)
    rig.turn(lambda: rig.live.engine.ledger.jobs["1"].starts == 2)
    rig.turn(lambda: not alive(leader))
    assert rig.notes("noticed", "1")[0]["by"] == "its keeper was killed"


def test_a_stopped_job_whose_keeper_is_killed(rig: Any) -> None:
    """Nothing is left standing forever."""
    rig.submit("1", "sh", "-c", "setsid sleep 1000 & sleep 1001")
    rig.until_runs("1")
    rig.turn(lambda: len(list(proc.below(rig.keeper("1")))) >= 3)
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="SUSPENDED", j2="RUNNING")
    tree = [each.pid for each in proc.below(rig.keeper("1"))]
    os.kill(rig.keeper("1"), signal.SIGKILL)
    rig.until(j1="PENDING")
    assert len(tree) >= 2
    rig.turn(lambda: not [pid for pid in tree if alive(pid)])


def test_nursery_killed(rig: Any) -> None:
    """Another one takes its place; jobs go on, and none is started twice."""
    rig.submit("1", "sleep", "1000", spec={"tasks": 1})
    rig.until_runs("1")
    nursery = rig.world._hand.nursery
    os.kill(nursery.pid, signal.SIGKILL)
    for at in range(2, 5):
        rig.submit(str(at), "sleep", "1000", spec={"tasks": 1})
    rig.until(j2="RUNNING", j3="RUNNING", j4="RUNNING")
    for at in range(1, 5):
        rig.until_runs(str(at))
    assert nursery.begun == 2
    assert {job.starts for job in rig.live.engine.ledger.jobs.values()} == {1}


def test_a_nursery_that_dies_with_a_request(rig: Any) -> None:
    """The start goes with it, and is performed again in the same incarnation."""
    rig.submit("1", "sleep", "1000", spec={"tasks": 1})
    rig.until_runs("1")
    nursery = rig.world._hand.nursery
    os.kill(nursery.pid, signal.SIGSTOP)
    rig.submit("2", "sleep", "1000", spec={"tasks": 1})
    rig.turn(lambda: rig.state("2") == "RUNNING" and ("2", 1) in rig.world._hand.cases)
    rig.turn(lambda: rig.world._hand.cases[("2", 1)].line is not None)
    os.kill(nursery.pid, signal.SIGKILL)
    rig.until_runs("2")
    assert rig.live.engine.ledger.jobs["2"].starts == 1


# ------------------------------------------------------------------------------------- starting
FAILING = (
    "no program",
    "no interpreter",
    "no executable",
    "no directory",
    "log in no directory",
    "log is a FIFO that is not read",
    "log is a directory",
)


def starts_that_fail(short: Path) -> dict[str, tuple[dict[str, Any], str]]:
    """Return what is submitted, and what the queue says."""
    (short / "data").write_text("no program")
    (short / "data").chmod(0o755)
    os.mkfifo(short / "fifo")
    return {
        "no program": (
            {"command": ("nowhere",)},
            "it cannot be executed: nowhere: No such file or directory",
        ),
        "no interpreter": (
            {"command": (), "script": "#!/no/sh\n"},
            "it cannot be executed: /no/sh: No such file",
        ),
        "no executable": ({"command": (str(short / "data"),)}, "Exec format error"),
        "no directory": ({"cwd": str(short / "gone")}, "it cannot enter its directory"),
        "log in no directory": ({"output": str(short / "gone/log")}, "its output cannot be opened"),
        "log is a FIFO that is not read": ({"output": str(short / "fifo")}, "No such device or address"),
        "log is a directory": ({"output": str(short)}, "Is a directory"),
    }


@pytest.mark.parametrize("what", FAILING)
def test_a_start_that_fails(rig: Any, short: Path, what: str) -> None:
    """The queue says why; after three times the job is held. It is never a silent 127."""
    keys, why = starts_that_fail(short)[what]
    command = keys.pop("command", ("true",))
    rig.submit("1", *command, **keys)
    rig.turn(lambda: rig.held("1"))
    state, reason = rig.states()["1"]
    assert state == "PENDING"
    assert reason.startswith("StartFailed: ")
    assert why in reason
    assert len(rig.notes("failed", "1")) == 3
    assert not list((rig.folder / "run").iterdir())


def test_a_job_that_nobody_submitted(rig: Any) -> None:
    """Where submissions are taken, a job without one is not run, whatever its workload says."""
    rig.submit("1", "true")
    (rig.folder / "jobs/1/submission.json").unlink()
    rig.turn(lambda: rig.held("1"))
    assert "nothing is known of what to run for job 1" in rig.states()["1"][1]


# -------------------------------------------------------------------------------- what others do
def test_stopped_and_continued_by_its_user(rig: Any) -> None:
    """It keeps its CPUs, as a STOPPED job does in Slurm (squeue(1), JOB STATE CODES); no other job starts beside it."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    leader = proc.children(rig.keeper("1"))[0]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        os.kill(leader, number)
        stopped = number == signal.SIGSTOP
        rig.turn(lambda stopped=stopped: rig.world.stopped_by_a_signal("1") == stopped)
        assert rig.state("1") == "RUNNING"
    rig.live.feed(Command("signal", "1", None, "STOP"))
    rig.turn(lambda: rig.world.stopped_by_a_signal("1"))
    rig.submit("2", "true")
    for _ in range(20):
        rig.live.turn(0.01)
    assert (rig.state("1"), rig.state("2")) == ("RUNNING", "PENDING")
    assert not rig.notes("noticed", "1")
    rig.live.feed(Command("signal", "1", None, "CONT"))
    rig.turn(lambda: not rig.world.stopped_by_a_signal("1"))


def test_a_victim_continued_by_its_owner(rig: Any) -> None:
    """It is stopped again, and the preemptor is left alone."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    leader = proc.children(rig.keeper("1"))[0]
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="SUSPENDED", j2="RUNNING")
    rig.until_runs("2")
    os.kill(leader, signal.SIGCONT)
    rig.turn(lambda: rig.notes("restopped", "1"))
    assert rig.world.settled(60)
    found = proc.look(leader)
    assert found is not None
    assert found.state == "T"
    assert rig.state("1") == "SUSPENDED"


def test_a_victim_continued_again(rig: Any) -> None:
    """The second time it goes back to the queue, and that is said."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    leader = proc.children(rig.keeper("1"))[0]
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="SUSPENDED", j2="RUNNING")
    rig.until_runs("2")
    os.kill(leader, signal.SIGCONT)
    rig.turn(lambda: rig.notes("restopped", "1"))
    assert rig.world.settled(60)
    os.kill(leader, signal.SIGCONT)
    rig.until(j1="PENDING")
    by = rig.notes("noticed", "1")[-1]["by"]
    assert by == "requeued: its user continued it again while others run in its place"
    rig.turn(lambda: not alive(leader))


# ------------------------------------------------------------------------- limits and checkpoints
def test_a_time_limit_with_a_signal_ahead(rig: Any, short: Path) -> None:
    """The signal comes first, then the end; a limit that is changed moves both. The record says TIMEOUT."""
    text = f"trap 'echo warned >{short}/warned' USR1; : >{short}/on; while :; do sleep 0.01; done"
    rig.submit("1", "sh", "-c", text, spec={"time_limit": 1000.0}, signal="USR1", signal_before=1.0)
    rig.until_runs("1")
    rig.turn(lambda: (short / "on").exists())
    limit = int(rig.live.engine.ledger.jobs["1"].ran_until(rig.live.clock.now())) + 3
    rig.live.feed(Command("change", "1", None, f"time_limit={limit}"))
    rig.world.limit("1", float(limit))
    rig.turn(lambda: (short / "warned").exists())
    rig.until(j1="GONE")
    assert (short / "warned").read_text() == "warned\n"
    assert rig.ended_as("1")[-1] == "TIMEOUT"


@pytest.mark.parametrize(("command", "saved"), [("touch saved", True), ("echo disk full; exit 2", False)])
def test_a_victim_that_is_checkpointed(rig: Any, command: str, saved: bool) -> None:
    """It goes on from there, or from the beginning where its command failed; the record says why."""
    rig.config = rig.checkpointing
    rig.submit("1", "sleep", "1000", checkpoint=command)
    rig.until_runs("1")
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="PENDING", j2="RUNNING")
    rig.until_runs("2")
    rig.live.feed(Command("cancel", "2"))
    rig.until(j1="RUNNING", j2="GONE")
    assert (rig.folder / "saved").exists() is saved
    assert (rig.live.engine.ledger.jobs["1"].begun_with > 0) is saved
    whys = [each["why"] for each in rig.notes("failed", "1")]
    assert whys == ([] if saved else ["checkpoint command: exit status 2: disk full"])


# ---------------------------------------------------------------------------------- suspensions
class Puppet:
    """The line to a keeper, held by the test."""

    def __init__(self, rig: Any, job_id: str) -> None:
        self.case = rig.world._hand.cases[(job_id, 1)]
        self.real = self.case.line
        self.case.line, self.mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.case.line.setblocking(False)
        self.hand = rig.world._hand
        self.hand.do(self._watch)
        self.mine.settimeout(60)

    def _watch(self) -> None:
        self.hand._selector.unregister(self.real)
        self.hand._selector.register(self.case.line, 1, lambda: self.hand._hear(self.case))

    def close(self) -> None:
        """Let go."""
        self.mine.close()
        self.real.close()

    def asked(self) -> dict[str, Any]:
        """Return what the keeper was asked for."""
        found: dict[str, Any] = json.loads(self.mine.recv(words.LONGEST))
        return found

    def say(self, **what: Any) -> None:
        """Answer."""
        self.mine.send(words.pack(**what))


def test_a_victim_that_does_not_stop(rig: Any) -> None:
    """The preemptor waits, and the record says which jobs still run."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    puppet = Puppet(rig, "1")
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.turn(lambda: rig.state("2") == "RUNNING" and rig.world._hand.orders.under_way("1"))
    asked = puppet.asked()
    assert asked["do"] == "stop"
    puppet.say(say="stopped", id=asked["id"], ok=False, left=[[7, "python", "R"]], took=2.0)
    rig.until(j1="RUNNING", j2="PENDING")
    assert rig.notes("failed", "1")[0]["why"] == "still running after 2 s: python (7)"
    assert "job 1 could not be suspended" in rig.states()["2"][1]
    puppet.close()


def test_a_victim_that_ends_while_it_is_stopped(rig: Any, short: Path) -> None:
    """Its end wins, and the preemptor starts."""
    rig.settings["stop_delay"] = 50.0
    text = "import signal, time, os\nsignal.signal(20, lambda *_: os._exit(0))\n"
    text += f"open('{short}/on', 'w')\ntime.sleep(1000)"
    rig.submit("1", sys.executable, "-I", "-S", "-c", text)
    rig.turn(lambda: (short / "on").exists())
    rig.until_runs("1")
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="GONE", j2="RUNNING")
    rig.until_runs("2")
    assert rig.ended_as("1")[-1] == "COMPLETED"


def test_who_runs_on_is_reported(monkeypatch: pytest.MonkeyPatch, house: Any) -> None:
    """A walk ends after its limit, with the names of those that it could not stop."""
    held = house.start("sleep", "1000").runs()
    monkeypatch.setattr(walk, "send", lambda process, number: 0)
    left = walk.Tree(held.keeper).stop(0.05)
    assert [each.name for each in left] == ["sleep"]


def test_memory_that_does_not_fit(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A victim keeps its memory while it stands still: it is requeued instead, and that is said."""
    monkeypatch.setattr("makeway_local_world.processes.verbs.memory_available", lambda swap: 1000)
    rig.submit("1", "sleep", "1000", spec={"memory_mb_per_node": 100})
    rig.until_runs("1")
    first = proc.children(rig.keeper("1"))[0]
    rig.submit("2", "sleep", "1000", partition="urgent", spec={"memory_mb_per_node": 4000})
    rig.until(j1="PENDING", j2="RUNNING")
    rig.until_runs("2")
    rig.turn(lambda: not alive(first))
    by = rig.notes("noticed", "1")[0]["by"]
    assert by.startswith("requeued instead of suspended: it keeps ")
    assert by.endswith("4000 MB are wanted, 1000 MB are free")


def test_memory_that_does_not_fit_may_be_refused(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By setting: then the preemptor waits."""
    monkeypatch.setattr("makeway_local_world.processes.verbs.memory_available", lambda swap: 1000)
    rig.settings["memory_short"] = "refuse"
    rig.submit("1", "sleep", "1000", spec={"memory_mb_per_node": 100})
    rig.until_runs("1")
    rig.submit("2", "sleep", "1000", partition="urgent", spec={"memory_mb_per_node": 4000})
    rig.turn(lambda: rig.notes("failed", "1"))
    rig.until(j1="RUNNING", j2="PENDING")
    assert "4000 MB are wanted, 1000 MB are free" in rig.states()["2"][1]


def test_memory_runs_short(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The youngest job of the lowest tier goes back to the queue, before the kernel kills any job."""
    rig.settings["memory_floor"] = 500
    free = [9000]
    monkeypatch.setattr("makeway_local_world.processes.memory.memory_available", lambda: free[0])
    monkeypatch.setattr("makeway_local_world.processes.memory.EVERY", 0.05)
    for job_id, partition in (("1", "normal"), ("2", "normal"), ("3", "urgent")):
        rig.submit(job_id, "sleep", "1000", partition=partition, spec={"tasks": 1})
        rig.until_runs(job_id)
    free[0] = 100
    rig.turn(lambda: rig.notes("noticed", "2"))
    free[0] = 9000
    assert rig.notes("noticed", "2")[0]["by"].startswith(
        "requeued: memory ran short: 100 MB were free; it had "
    )
    assert not rig.notes("noticed", "1") + rig.notes("noticed", "3")
    rig.turn(lambda: rig.live.engine.ledger.jobs["2"].starts == 2)


@pytest.mark.parametrize(("factor", "state"), [(1.0, JobState.OUT_OF_MEMORY), (50.0, JobState.COMPLETED)])
def test_a_job_over_its_memory_where_the_kernel_sets_no_limit(
    rig: Any, monkeypatch: pytest.MonkeyPatch, factor: float, state: JobState
) -> None:
    """It asked for 100 MB and has 300: it is ended within seconds, unless so many times that is allowed."""
    rig.settings |= {"memory_floor": 0, "memory_factor": factor}
    monkeypatch.setattr("makeway_local_world.processes.memory.EVERY", 0.05)
    hog = "import os, time\nheld = bytearray(300 << 20)\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
    rig.submit("1", sys.executable, "-S", "-c", hog, spec={"memory_mb_per_node": 100}, cwd=str(rig.folder))
    rig.until_runs("1")
    if state is JobState.COMPLETED:
        time.sleep(0.5)
        (rig.folder / "go").touch()
    rig.until(j1="GONE")
    found = rig.turn(lambda: end_of(rig.folder, "1", 1))
    assert (rig.ended_as("1")[-1], found.state) == (state.value, state)
    assert found.why.endswith("MB; allowed: 100 MB") is (state is JobState.OUT_OF_MEMORY)


def test_what_the_kernel_says_of_memory(tmp_path: Path) -> None:
    """It counts the processes that it killed at the limit of the cgroup, where there is a memory controller."""
    assert Cgroup(str(tmp_path)).oom_kills() == 0
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n")
    assert Cgroup(str(tmp_path)).oom_kills() == 2


def test_a_job_that_the_kernel_killed_at_its_memory_limit(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ran out of memory: no person killed it, and it is not put back to be killed again."""
    rig.settings["cgroups"] = "auto"
    if not Cgroups.find(f"test-{rig.folder.parent.name}").base:
        pytest.skip("no cgroups here")
    monkeypatch.setattr(Cgroup, "oom_kills", lambda cgroup: 1)
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    leader = proc.children(rig.keeper("1"))[0]
    rig.leave()
    os.kill(leader, signal.SIGKILL)
    place = RunDirectory(rig.folder, ("1", 1))
    deadline = time.monotonic() + 60
    while place.look().fate is not Fate.ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    rig.until(j1="GONE")
    found = rig.turn(lambda: end_of(rig.folder, "1", 1))
    assert (found.text, found.state) == ("0:9", JobState.OUT_OF_MEMORY)
    assert found.why == "OUT_OF_MEMORY: the kernel killed 1 of its processes at its memory limit"
    assert rig.ended_as("1")[-1] == "OUT_OF_MEMORY"


def test_a_kill_that_does_not_help(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes stay taken, the record names its processes, the kill is asked for again, and the daemon helps."""
    helped: list[Case] = []
    monkeypatch.setattr(leftovers, "kill_all", lambda case, **_: helped.append(case))
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    puppet = Puppet(rig, "1")
    rig.live.feed(Command("cancel", "1"))
    rig.turn(lambda: rig.world._hand.orders.under_way("1"))
    assert puppet.asked()["forced"] is False
    puppet.say(say="stuck", left=[[7, "dd", "D"]], since=3.0)
    rig.turn(lambda: rig.notes("failed", "1"))
    assert rig.notes("failed", "1")[0]["why"] == (
        "cannot be killed: dd (7), 1 of them waiting for a device (D)"
    )
    rig.submit("2", "true")
    rig.turn(lambda: rig.world._hand.orders.under_way("1"))
    assert rig.state("2") == "PENDING"
    assert puppet.asked()["do"] == "kill"
    words.send(puppet.real, words.pack(do="kill", id=0, forced=True))
    rig.until(j2="GONE")
    assert [case.key for case in helped] == [("1", 1)]
    puppet.close()


def test_a_keeper_that_its_owner_stopped(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is continued once what it was asked for is overdue, and does it."""
    monkeypatch.setattr(verbs, "ANSWER", 0.2)
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    os.kill(rig.keeper("1"), signal.SIGSTOP)
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="SUSPENDED", j2="RUNNING")
    rig.until_runs("2")


def test_a_keeper_that_is_stopped_again_and_again(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon kills it with all of its job: others get their turn, and the rule for a lost keeper follows."""
    monkeypatch.setattr(verbs, "ANSWER", 0.2)
    rig.submit("1", "sh", "-c", "setsid sleep 1000 & wait")
    rig.until_runs("1")
    keeper = rig.keeper("1")
    rig.turn(lambda: len(list(proc.below(keeper))) == 2)
    there = [each.pid for each in proc.below(keeper)]
    os.kill(keeper, signal.SIGSTOP)
    monkeypatch.setattr(Case, "signal_keeper", _only_kills)
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="PENDING", j2="RUNNING")
    rig.until_runs("2")
    assert rig.notes("noticed", "1")[-1]["by"] == "its keeper did not answer"
    assert not any(map(alive, there))


def _only_kills(case: Case, number: int) -> None:
    if number == signal.SIGKILL:
        os.kill(case.pid, number)


def test_a_stopped_keeper_and_the_time_limit(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds all the same, also where the keeper never said that its job runs."""
    monkeypatch.setattr(verbs, "ANSWER", 0.2)
    monkeypatch.setattr(verbs, "START_LIMIT", 1.0)
    monkeypatch.setattr(Case, "signal_keeper", _only_kills)
    rig.settings |= {"on_end_limit": 0.1}
    rig.submit("1", "sleep", "1000", spec={"time_limit": 1.0})
    rig.turn(lambda: rig.world.processes().get("1", {}).get("keeper"))
    os.kill(rig.keeper("1"), signal.SIGSTOP)
    rig.until(j1="GONE")
    assert rig.ended_as("1")[-1] == "TIMEOUT"


# ----------------------------------------------------------------------------------- the journal
class Broken:
    """A database whose disk fails."""

    def __init__(self, inner: sqlite3.Connection) -> None:
        self.inner = inner

    def execute(self, *_: object) -> None:
        """Fail."""
        raise sqlite3.OperationalError("disk I/O error")

    executemany = execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("fault", "why"),
    [("full", "the disk is full"), ("read-only", "is read-only"), ("EIO", "disk I/O error")],
)
def test_a_journal_that_cannot_be_written(rig: Any, short: Path, fault: str, why: str) -> None:
    """Nothing is started, jobs go on, and no end is lost: all is as it should be once it can be written again."""
    rig.submit("1", "sh", "-c", f"while [ ! -e {short}/go ]; do sleep 0.01; done", spec={"tasks": 1})
    rig.until_runs("1")
    journal = rig.live.journal
    database = journal._database
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    undo = {"full": "PRAGMA max_page_count = 1073741823", "read-only": "PRAGMA query_only = 0"}.get(fault)
    if fault == "full":
        database.execute(f"PRAGMA max_page_count = {pages}")
    elif fault == "read-only":
        database.execute("PRAGMA query_only = 1")
    else:
        journal._database = Broken(database)
    made = 1
    while rig.live.unwritten is None:
        made += 1
        assert made < 1000, "the disk never failed"
        starts = f"echo {made} >>{short}/starts"
        rig.submit(str(made), "sh", "-c", starts, spec={"tasks": 4, "begin_at": None})
        rig.live.turn(0.0)
    (short / "go").touch()
    place = RunDirectory(rig.folder, ("1", 1))
    rig.turn(lambda: place.look().fate is Fate.ENDED)
    for _ in range(3):
        rig.live.turn(0.0)
    assert why in rig.live.why_unwritten
    assert not (short / "starts").exists()
    if undo is None:
        journal._database = database
    else:
        database.execute(undo)
    rig.turn(lambda: not rig.live.engine.ledger.jobs)
    assert rig.ended_as("1")[-1] == "COMPLETED"
    assert sorted(map(int, (short / "starts").read_text().split())) == list(range(2, made + 1))


def test_what_could_not_be_written_down_is_not_shown_as_done(rig: Any) -> None:
    """A start that is only decided shows as a job that waits, a suspension as a job that runs."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    journal = rig.live.journal
    database, journal._database = journal._database, Broken(journal._database)
    rig.submit("2", "sleep", "1000", partition="urgent")
    while rig.live.unwritten is None:
        rig.live.turn(0.0)
    now = rig.live.clock.now()
    shown = {job["id"]: job for job in Shown(rig.live.engine, Displacers(), 0.0, now).jobs()}
    assert [shown[at]["state"] for at in "12"] == ["SUSPENDED", "RUNNING"]
    held = Shown(rig.live.engine, Displacers(), 0.0, now, rig.live.unwritten).jobs()
    shown = {job["id"]: job for job in held}
    assert [shown[at]["state"] for at in "12"] == ["RUNNING", "PENDING"]
    assert shown["2"]["reason"] == UNWRITTEN
    assert (shown["2"]["nodes"], shown["2"]["started_at"], shown["2"]["incarnation"]) == ("", None, 0)
    journal._database = database
    rig.until_runs("2")


# --------------------------------------------------------------------------------------- GPUs
class Gpus:
    """Two GPUs."""

    def __init__(self) -> None:
        self.pids: list[tuple[int, ...]] = [(), ()]

    def look(self) -> list[Gpu]:
        """Return them."""
        return [Gpu(uuid=f"GPU-{at}", index=at, name="fake", pids=pids) for at, pids in enumerate(self.pids)]


def test_gpus_by_uuid(rig: Any, short: Path) -> None:
    """Each job sees its own; one without sees none."""
    rig.inventory = Gpus()
    script = f"echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES >{short}/%s; sleep 1000"
    for job_id, gres in (("1", {"gpu": 1}), ("2", {"gpu": 1}), ("3", {})):
        rig.submit(job_id, "sh", "-c", script % job_id, spec={"tasks": 1, "gres": gres})
        rig.turn(lambda job_id=job_id: (short / job_id).exists() and (short / job_id).read_text())
    assert [(short / at).read_text().strip() for at in "123"] == [
        "PCI_BUS_ID GPU-0",
        "PCI_BUS_ID GPU-1",
        "PCI_BUS_ID",
    ]
    rig.again()
    rig.live.turn(0.0)
    assert rig.world.processes()["2"]["gpus"] == ["GPU-1"]


def test_a_gpu_taken_by_a_stranger(rig: Any) -> None:
    """It is set aside, with the name of what has it, and looked at again."""
    rig.inventory = Gpus()
    rig.inventory.pids = [(os.getpid(),), ()]
    rig.submit("1", "sleep", "1000", spec={"tasks": 1, "gres": {"gpu": 2}})
    rig.turn(lambda: rig.notes("failed", "1"))
    why = rig.notes("failed", "1")[0]["why"]
    me = proc.look(os.getpid())
    assert me is not None
    assert why == f"2 GPUs are wanted, 1 are free: GPU 0 is used by {me.name} ({me.pid}), which is no job"
    rig.submit("2", "sleep", "1000", spec={"tasks": 1, "gres": {"gpu": 1}})
    rig.until_runs("2")
    assert rig.world.processes()["2"]["gpus"] == ["GPU-1"]


def test_suspend_frees_no_gpu(rig: Any) -> None:
    """A victim with GPUs is requeued, as the settings say."""
    rig.inventory = Gpus()
    rig.submit("1", "sleep", "1000", spec={"gres": {"gpu": 1}})
    rig.until_runs("1")
    rig.submit("2", "sleep", "1000", partition="urgent")
    rig.until(j1="PENDING", j2="RUNNING")
    assert rig.notes("noticed", "1")[0]["by"] == (
        "requeued instead of suspended: suspend frees no GPU; use requeue or checkpoint"
    )


# --------------------------------------------------------------------------- reboots and upgrades
def change_started(rig: Any, job_id: str, **keys: Any) -> None:
    """Write other things into the file that a keeper left."""
    path = RunDirectory(rig.folder, (job_id, 1)).path / words.STARTED
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}) + "\n")


@pytest.mark.parametrize(("rule", "state"), [("requeue", "PENDING"), ("fail", "FAILED")])
def test_reboot(rig: Any, rule: str, state: str) -> None:
    """All incarnations of another boot are over; nothing is killed by numbers of that time."""
    rig.settings["reboot"] = rule
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    keeper = rig.keeper("1")
    rig.leave()
    os.kill(keeper, signal.SIGKILL)
    place = RunDirectory(rig.folder, ("1", 1))
    deadline = time.monotonic() + 60
    while place.look().fate is not Fate.LOST:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    change_started(rig, "1", boot="another")
    rig.turn(lambda: rig.notes("noticed", "1"))
    assert rig.notes("noticed", "1")[0] == {"was": "RUNNING", "state": state, "by": "the machine went down"}


def test_files_of_a_later_version_are_left_alone(rig: Any) -> None:
    """What cannot be read is not killed, and not taken for gone silently."""
    rig.submit("1", "sleep", "1000")
    rig.until_runs("1")
    leader = proc.children(rig.keeper("1"))[0]
    rig.leave()
    change_started(rig, "1", v=99)
    for _ in range(3):
        rig.live.turn(0.0)
    assert alive(leader)
    assert rig.state("1") == "RUNNING"
    rig.leave()
    change_started(rig, "1", v=words.VERSION)


def test_a_keeper_does_not_know_a_word(house: Any) -> None:
    """It says so, and goes on."""
    held = house.start("sleep", "1000").runs()
    held.ask("dance")
    assert held.hear("unknown")["why"] == "no such verb: dance"
    held.line.send(b'{"v": 99, "do": "kill"}')
    assert "got version 99" in held.hear("unknown")["why"]
    held.line.send(b"\xff")
    assert "damaged" in held.hear("unknown")["why"]
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]


def test_a_word_is_heard_though_its_sender_hangs_up(house: Any) -> None:
    """Without having read what the keeper said: the kernel then reports a broken line first."""
    held = house.start("sleep", "1000").runs()
    line = held.place.call()
    words.send(line, words.pack(do="kill", id=7, forced=True))
    line.close()
    assert held.end().fate is Fate.ENDED


@pytest.mark.parametrize("again", [False, True], ids=["one daemon", "two daemons"])
def test_the_journal_keeps_what_a_killed_job_has_run(rig: Any, again: bool) -> None:
    """Another policy can be tried on it: its work is not forgotten while it is cleaned up."""
    rig.submit("1", "sh", "-c", "trap 'sleep 0.3; exit 1' TERM; while :; do sleep 0.01; done")
    rig.until_runs("1")
    rig.submit("2", "sleep", "0.1", partition="urgent")
    rig.until(j1="SUSPENDED")
    rig.until(j1="RUNNING", j2="GONE")
    if again:
        rig.again()
    began = rig.live.clock.now()
    rig.turn(lambda: rig.live.clock.now() > began + 0.5)
    rig.live.feed(Command("cancel", "1"))
    rig.turn(lambda: rig.state("1") not in ("RUNNING", "SUSPENDED"))
    rig.submit("3", "true")
    rig.until(j3="PENDING")
    rig.until(j1="GONE", j3="GONE")
    with contextlib.closing(sqlite3.connect(rig.folder / "journal.db")) as journal:
        (worked,) = journal.execute("SELECT worked FROM jobs WHERE id = '1'").fetchone()
    assert worked >= 0.5

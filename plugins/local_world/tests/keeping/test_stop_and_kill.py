"""Whole trees stop, go on and die, whatever they do to get away (local-world 2 and 3)."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world.keeping import proc, walk
from makeway_local_world.keeping.ahead import Notice
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.keeping.proc import Process
from makeway_local_world.processes.machine import Cgroups
from makeway_local_world.processes.rundir import Fate

_HOP = """
import os, time
while True:
    pid = os.fork()
    if pid:
        time.sleep({pause})
        os._exit(0)
    os.setsid()
"""
TREES: dict[str, tuple[str, str]] = {
    "group": ("sh", "sleep 1000 & sleep 1000 & wait"),
    "setsid": ("sh", "setsid sleep 1000 & wait"),
    "double fork": (
        "python",
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(1000)\n"
        "    os._exit(0)\n"
        "time.sleep(1000)",
    ),
    "make": (
        "python",
        "import os, time\n"
        "while True:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(0.005)\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)",
    ),
    "hop 1 ms": ("python", _HOP.format(pause=0.001)),
    "hop 100 us": ("python", _HOP.format(pause=0.0001)),
    "hop at once": ("python", _HOP.format(pause=0)),
    "vfork": ("sh", "while :; do /bin/true; done"),
    "threads": (
        "python",
        "import os, threading, time\n"
        "def work():\n"
        "    if os.fork() == 0:\n"
        "        os.execlp('sleep', 'sleep', '1000')\n"
        "    time.sleep(1000)\n"
        "for _ in range(5):\n"
        "    threading.Thread(target=work).start()\n",
    ),
}
ROUNDS = 3


def begin(house: Any, name: str, **request: Any) -> Any:
    """Start a tree, with leftovers waited for: some trees have no leader for long."""
    kind, text = TREES[name]
    request = {"leftovers": "wait", **request}
    held = house.start("sh", "-c", text, **request) if kind == "sh" else house.python(text, **request)
    return held.runs()


def snapshot(held: Any) -> set[tuple[int, int]]:
    """Return what is there, for certain."""
    return {(each.pid, each.started) for each in held.tree()}


def check_still(held: Any) -> None:
    """See that nothing runs, and nothing is born; one that waited in D for its end may have ended."""
    before = snapshot(held)
    assert before
    # One that came out of D since is not yet stopped if it found no CPU.
    held.until(lambda: {each.state for each in held.tree()} <= {"T", "t", "D"})
    time.sleep(0.01)
    after = held.tree()
    assert after
    assert {(each.pid, each.started) for each in after} <= before, after


@pytest.mark.parametrize("name", TREES)
def test_walk(house: Any, name: str) -> None:
    """Every process of the tree stops and goes on, again and again."""
    held = begin(house, name)
    for _ in range(ROUNDS):
        held.ask("stop", limit=20.0)
        told = held.hear("stopped")
        assert told["ok"], told
        check_still(held)
        held.ask("continue")
        held.hear("continued")
        assert not [each for each in held.tree() if each.state == "T"]
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]
    held.ask("kill", forced=True)
    found = held.end()
    assert found.fate is Fate.ENDED
    assert not list(proc.below(held.keeper))


@pytest.mark.parametrize("name", TREES)
def test_freezer(house: Any, cgroups: Cgroups, name: str) -> None:
    """The same with a cgroup; a frozen process looks as if it slept."""
    path = str(cgroups.path_of("job", 1))
    held = begin(house, name, cgroup=path)
    cgroup = Cgroup(path)
    for _ in range(ROUNDS):
        freeze(held, cgroup)
        before = snapshot(held)
        assert before
        time.sleep(0.01)
        assert snapshot(held) == before
        assert cgroup.thaw()
        held.ask("continue")
        held.hear("continued")
        held.until(lambda: "frozen 0" in Path(path, "job/cgroup.events").read_text())
    freeze(held, cgroup)
    assert held.kill().fate is Fate.ENDED
    held.until(cgroup.empty)
    assert cgroup.remove()
    assert not Path(path).exists()


def test_job_and_keeper_begin_in_their_cgroup(house: Any, cgroups: Cgroups) -> None:
    """Each in its part from its first step on, and so are its children."""
    path = str(cgroups.path_of("job", 1))
    held = house.start("sh", "-c", "sleep 1000; true", cgroup=path).runs()
    held.until(lambda: len(held.tree()) == 2)
    for pid, part in ((held.keeper, "beside"), *((each.pid, "job") for each in held.tree())):
        own = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        assert next(line for line in own if line.startswith("0::")).endswith(f"{path[-20:]}/{part}")
    assert held.kill().fate is Fate.ENDED
    held.until(Cgroup(path).empty)
    assert Cgroup(path).remove()


def test_a_cgroup_that_cannot_be_made_is_said(house: Any, cgroups: Cgroups) -> None:
    """Nothing is started, and the nursery goes on."""
    held = house.start("true", cgroup=f"{cgroups.base}/cgroup.procs/1.1")
    failed = held.hear("failed")
    assert (failed["step"], failed["number"]) == ("keeper", 20)
    assert held.end().fate is Fate.NEVER
    assert house.start("true", job="2").runs().end().exit["status"] == 0


def freeze(held: Any, cgroup: Cgroup) -> None:
    """Stop a job as the daemon does: its keeper gives notice, and the kernel's freezer stops it."""
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]
    assert cgroup.freeze()
    held.until(cgroup.frozen)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("how", ["runs", "stopped"])
def test_kill(house: Any, name: str, how: str) -> None:
    """SIGTERM with SIGCONT, then SIGKILL; nothing is left when the keeper says so."""
    held = begin(house, name)
    if how == "stopped":
        held.ask("stop", limit=20.0)
        assert held.hear("stopped")["ok"]
    held.ask("kill", grace=0.2, why="test")
    found = held.end()
    assert found.fate is Fate.ENDED
    assert found.exit is not None
    assert found.exit["killed"] == "test"
    assert found.exit["ends_by"] == "daemon"
    assert not list(proc.below(held.keeper))


IGNORES = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(1000)"
)


def ready(path: Path) -> None:
    """Wait until a program has written its line."""
    deadline = time.monotonic() + 60.0
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_who_ignores_term_is_killed_after_the_grace(house: Any, short: Path) -> None:
    """Not before it, and then for certain."""
    held = house.python(IGNORES, output=str(short / "out")).runs()
    ready(short / "out")
    began = time.monotonic()
    held.ask("kill", grace=0.3)
    found = held.end()
    assert time.monotonic() - began >= 0.3
    assert found.exit is not None
    assert os.WTERMSIG(found.exit["status"]) == signal.SIGKILL


def test_a_stopped_job_handles_term(house: Any, short: Path) -> None:
    """It is continued for that, and ends in its own way."""
    text = f"trap 'echo bye >{short}/bye; exit 7' TERM; echo; while :; do sleep 0.01; done"
    held = house.start("sh", "-c", text, output=str(short / "out")).runs()
    ready(short / "out")
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]
    held.ask("kill", grace=50.0)
    found = held.end()
    assert (short / "bye").read_text() == "bye\n"
    assert found.exit is not None
    assert os.WEXITSTATUS(found.exit["status"]) == 7


def test_what_is_left_is_named_and_killed(house: Any) -> None:
    """When the leader has ended: those in sessions of their own, and without any environment."""
    held = house.start(
        "sh", "-c", "env -i setsid sleep 1000 & nohup sleep 1001 >/dev/null 2>&1 & sleep 0.1"
    ).runs()
    found = held.end()
    assert found.exit is not None
    assert found.exit["status"] == 0
    assert sorted(name for _, name, _ in found.exit["left"]) == ["sleep", "sleep"]
    assert not list(proc.below(held.keeper))


def test_what_is_left_may_be_waited_for(house: Any, short: Path) -> None:
    """By setting."""
    text = f"(sleep 0.2; echo done >{short}/done) & exit 3"
    found = house.start("sh", "-c", text, leftovers="wait").end()
    assert (short / "done").exists()
    assert os.WEXITSTATUS(found.exit["status"]) == 3


def test_only_who_was_stopped_by_us_goes_on(house: Any) -> None:
    """A child that its user has stopped stays so."""
    held = house.start("sh", "-c", "sleep 1000 & kill -STOP $!; sleep 1001 & wait").runs()
    deadline = time.monotonic() + 60
    while [each.state == "T" for each in held.tree()].count(True) != 1 or len(held.tree()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    (theirs,) = [each.pid for each in held.tree() if each.state == "T"]
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]
    check_still(held)
    held.ask("continue")
    held.hear("continued")
    assert [each.pid for each in held.tree() if each.state == "T"] == [theirs]


def test_who_moves_up_goes_on(house: Any) -> None:
    """Children of one that ends belong to another process; that they were stopped is not forgotten."""
    held = house.start("sh", "-c", "sleep 1000 & sleep 1001 & wait", leftovers="wait").runs()
    leader = held.until(lambda: held.tree()[0] if len(held.tree()) == 3 else None)
    tree = walk.Tree(leader.pid)
    held.until(lambda: [each.name for each in tree.look()] == ["sleep", "sleep"])
    assert not tree.stop(20.0)
    os.kill(leader.pid, signal.SIGKILL)
    held.until(lambda: len(held.tree()) == 2)
    assert {each.state for each in held.tree()} == {"T"}
    assert not tree.go_on(20.0)
    assert "T" not in {each.state for each in held.tree()}


def test_a_look_that_misses_somebody_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hops is caught in the end: while others come and go, none is taken for gone or stopped."""

    def seen(pid: int, state: str) -> Process:
        return Process(pid, "", "X", 0, 0, 0) if state == "X" else Process(pid, "hop", state, 1, pid, 0)

    hops = [[seen(1, "X")], [seen(1, "Z")], [seen(1, "Z"), seen(2, "Z")], [seen(3, "X")], [seen(4, "R")]]
    tree = walk.Tree(1)
    told = []
    monkeypatch.setattr(walk, "send", lambda process, number: told.append((process.pid, number)))

    looks = iter(hops)
    monkeypatch.setattr(tree, "_below", lambda root, spared: next(looks))
    assert [each.pid for each in tree.look()] == [4]
    looks = iter([*hops, [seen(4, "T")], [seen(4, "T")]])
    assert tree.stop(20.0) == []
    assert told == [(4, signal.SIGSTOP)]
    assert tree.stopped_by_us == {(4, 4)}
    looks = iter([*hops, [seen(4, "Z")], [seen(4, "Z")]])
    assert [tree.kill()[1] for _ in range(7)] == [True] * 6 + [False]
    monkeypatch.setattr(tree, "_below", lambda root, spared: [seen(9, "X")])
    assert [each.pid for each in tree.look()] == [9]


def test_one_in_d_that_nobody_holds_may_fork_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as stopped while a stopped child holds it, as after vfork, or once it stays so for long."""

    def seen(pid: int, state: str, parent: int = 1) -> Process:
        return Process(pid, "p", state, parent, pid, 0)

    tree = walk.Tree(1)
    told: list[int] = []
    monkeypatch.setattr(walk, "send", lambda process, number: told.append(process.pid))
    forks = [seen(2, "D")], [seen(2, "D")], [seen(2, "T"), seen(3, "R", 2)], [seen(2, "T"), seen(3, "T", 2)]
    looks = iter([[seen(2, "R")], *forks, forks[-1]])
    monkeypatch.setattr(tree, "_below", lambda root, spared: next(looks))
    assert tree.stop(20.0) == []
    assert 3 in told
    assert next(looks, None) is None
    vforked = [seen(2, "D"), seen(3, "T", 2)]
    looks = iter([[seen(2, "R")], [seen(2, "D"), seen(3, "R", 2)], vforked, vforked])
    assert tree.stop(20.0) == []
    assert next(looks, None) is None
    monkeypatch.setattr(tree, "_below", lambda root, spared: [seen(4, "D")])
    assert tree.stop(20.0) == []


def test_notice_before_the_stop(house: Any, short: Path) -> None:
    """SIGTSTP reaches those that catch it; the stop comes after the delay."""
    text = (
        "import signal, time\n"
        f"signal.signal(signal.SIGTSTP, lambda *_: open('{short}/noticed', 'w').close())\n"
        "print(flush=True)\n"
        "while True: time.sleep(0.01)"
    )
    held = house.python(text, output=str(short / "out")).runs()
    ready(short / "out")
    held.ask("stop", delay=0.5, limit=20.0)
    assert held.hear("stopped")["ok"]
    assert (short / "noticed").exists()
    check_still(held)


def test_a_notice_may_be_a_command(house: Any, short: Path) -> None:
    """It runs as the job's user, and has the delay to end."""
    notice = f"echo $MAKEWAY_LEADER >{short}/noticed"
    held = house.start("sleep", "1000", notice=notice).runs()
    held.ask("stop", delay=30.0, limit=20.0)
    assert held.hear("stopped")["ok"]
    assert int((short / "noticed").read_text()) == held.tree()[0].pid
    check_still(held)


def test_started_stopped(house: Any, short: Path) -> None:
    """Its program begins when it is continued."""
    held = house.start("sh", "-c", f"echo >{short}/began; sleep 1000", stopped=True)
    held.begins()
    assert held.hear("runs")["state"] == "stopped"
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]
    check_still(held)
    assert not (short / "began").exists()
    held.ask("continue")
    held.hear("continued")
    ready(short / "began")


@pytest.mark.parametrize(
    ("command", "ok", "why"), [("echo saved", True, ""), ("echo bad; exit 3", False, "exit status 3")]
)
def test_checkpoint(house: Any, command: str, ok: bool, why: str) -> None:
    """Its output is kept."""
    held = house.start("sleep", "1000", checkpoint=command).runs()
    held.ask("checkpoint", limit=50.0)
    told = held.hear("checkpointed")
    assert told["ok"] is ok
    assert told["output"] == command.split()[1].rstrip(";")
    assert why in told["why"]


def test_a_checkpoint_that_hangs(house: Any) -> None:
    """Is killed after its time, and the job runs on."""
    held = house.start("sleep", "1000", checkpoint="echo begun; sleep 1000").runs()
    held.ask("checkpoint", limit=0.3)
    told = held.hear("checkpointed")
    assert not told["ok"]
    assert told["why"] == "it took too long"
    held.until(lambda: [each.name for each in held.tree()] == ["sleep"])


def test_signals(house: Any, short: Path) -> None:
    """To the whole tree, or to the first process only."""
    loop = "while :; do sleep 0.01; done"
    mine, its = (f"trap 'echo {who} >>{short}/got' USR1" for who in ("parent", "child"))
    text = f"{mine}; ({its}; echo; {loop}) & {loop}"
    held = house.start("sh", "-c", text, output=str(short / "out")).runs()
    ready(short / "out")
    held.ask("signal", signal=int(signal.SIGUSR1), leader_only=True)
    assert held.hear("signalled")["sent"] == 1
    ready(short / "got")
    assert (short / "got").read_text() == "parent\n"


def test_the_time_that_stands_still_does_not_count() -> None:
    """A notice ahead of the time limit comes when the job has run for so long."""
    notice = Notice({"signal": 10, "after": 100.0, "leader_only": False})
    dues = [notice.due]
    notice.runs(1000.0)
    dues.append(notice.due)
    notice.stands(1060.0)
    dues.append(notice.due)
    assert dues == [None, 1100.0, None]
    assert notice.take(5000.0) is None
    notice.runs(6000.0)
    notice.runs(6010.0)
    assert notice.take(6039.0) is None
    assert notice.take(6040.0) == {"signal": 10, "after": 100.0, "leader_only": False}
    assert notice.take(9000.0) is None
    assert Notice(None).due is None


def test_another_limit_moves_the_notice() -> None:
    """It counts what the job has run; one that was sent is sent again only ahead of a later limit."""
    notice = Notice({"signal": 10, "after": 100.0})
    notice.runs(0.0)
    notice.stands(30.0)
    notice.runs(1000.0)
    dues = []
    notice.move({"signal": 10, "after": 50.0}, 1010.0)
    dues.append(notice.due)
    assert notice.take(1020.0) == {"signal": 10, "after": 50.0}
    for another in ({"signal": 10, "after": 20.0}, {"signal": 10, "after": 80.0}, None):
        notice.move(another, 1030.0)
        dues.append(notice.due)
    assert dues == [1020.0, None, 1050.0, None]
    late = Notice(None)
    late.runs(5.0)
    late.move({"signal": 10, "after": 7.0}, 6.0)
    assert late.due == 12.0


def test_the_limits_of_a_job(house: Any, short: Path) -> None:
    """It gets what its user asks for, but never more than there is."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    core = resource.getrlimit(resource.RLIMIT_CORE)[1]
    asked = {"NOFILE": [77, resource.RLIM_INFINITY], "CORE": [0, 0], "NPROC": [-1, -1], "NONESUCH": [1, 1]}
    text = "ulimit -Sn; ulimit -Hn; ulimit -Sc; ulimit -Hc"
    held = house.start("sh", "-c", text, output=str(short / "out"), limits=asked)
    found = held.end()
    assert found.exit["status"] == 0
    unlimited = "unlimited" if most == resource.RLIM_INFINITY else str(most)
    assert (short / "out").read_text().split() == ["77", unlimited, "0", "0"]
    assert resource.getrlimit(resource.RLIMIT_CORE)[1] == core


def test_a_first_thread_that_ended_hides_no_other(house: Any) -> None:
    """Such a process looks ended in /proc, though its other threads run; it is stopped and killed as any."""
    held = house.python(
        "import ctypes, platform, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "ctypes.CDLL(None).syscall({'aarch64': 93}.get(platform.machine(), 60), 0)  # exit of this thread alone\n"
    ).runs()
    pid = held.tree()[0].pid

    def states() -> list[str]:
        stats = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
        return sorted(text[text.rindex(")") + 2] for text in stats)

    held.until(lambda: states() == ["S", "Z"])
    held.ask("stop", limit=20.0)
    assert held.hear("stopped")["ok"]
    assert states() == ["T", "Z"]
    assert [each.state for each in held.tree()] == ["T"]
    held.ask("continue")
    held.hear("continued")
    assert "T" not in states()
    held.ask("kill", forced=True)
    assert held.end().fate is Fate.ENDED


def test_on_end(house: Any, short: Path) -> None:
    """A command hears how it ended, once nothing of the job is left."""
    on_end = f'echo "$MAKEWAY_EXIT $MAKEWAY_KILLED" >{short}/ended'
    house.start("sh", "-c", "exit 4", on_end=on_end).end()
    assert (short / "ended").read_text() == "4:0 \n"


def test_a_keeper_told_to_end_takes_its_job_along(house: Any) -> None:
    """As when the machine shuts down: the end is written all the same."""
    held = house.start("sleep", "1000").runs()
    os.kill(held.keeper, signal.SIGTERM)
    found = held.end()
    assert found.exit is not None
    assert found.exit["killed"] == "SIGTERM to its keeper"
    assert found.exit["ends_by"] == ""


def test_a_removed_cgroup_is_no_trouble(tmp_path: Path) -> None:
    """What is not there is empty, and cannot be frozen."""
    gone = Cgroup(str(tmp_path / "gone"))
    assert gone.empty()
    gone.kill()
    assert not gone.freeze()
    assert gone.remove()


@pytest.mark.nightly
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("how", ["walk", "freezer"])
def test_fifty_stops(request: pytest.FixtureRequest, house: Any, short: Path, name: str, how: str) -> None:
    """All of them stop everything, most in less than 20 ms; the 95th percentile is printed, for idle machines."""
    path = None
    if how == "freezer":
        path = str(request.getfixturevalue("cgroups").path_of("job", 1))
    took = []
    held = begin(house, name, cgroup=path)
    for _ in range(50):
        began = time.monotonic()
        if path is not None:
            freeze(held, Cgroup(path))
            took.append(time.monotonic() - began)
            Cgroup(path).thaw()
        else:
            held.ask("stop", limit=20.0)
            told = held.hear("stopped")
            assert told["ok"], told
            took.append(told["took"])
        held.ask("continue")
        held.hear("continued")
    took.sort()
    sys.stderr.write(f"\n{name}, {how}: median {took[25] * 1e3:.1f} ms, p95 {took[47] * 1e3:.1f} ms\n")
    assert took[25] < 0.02

"""Jobs that make way for a person at the machine, and what shows that one is there."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from makeway.worlds.events import Command
from makeway_local_world.processes import presence
from makeway_local_world.processes.gpus import Gpu
from makeway_local_world.processes.presence import Absent, Terminals, used_by
from makeway_local_world.screen import sentence

CONFIG = """
node = [{{ name = "n1", cpus = 4 }}]
partition = [
  {{ name = "normal", default = true }},
  {{ name = "scavenge", preempt_mode = ["{mode}"], vacate_on_use = ["terminal", "input"], quiet = 10 }},
]
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core"]
[scheduler]
clockwork = {{ kill_wait = 2.0 }}
[world]
name = "world/local"
"""


class Fake:
    """A source that says what the test says."""

    def __init__(self) -> None:
        self.at = 0.0

    def last(self, now: float) -> tuple[float, str]:
        """Return the last use."""
        return min(self.at, now), "input at tty1"

    def close(self) -> None:
        """Nothing is held open."""


class NoJobs:
    """Nothing belongs to jobs but what the test says."""

    def __init__(self, *pids: int) -> None:
        self.pids = pids

    def processes(self) -> frozenset[int]:
        """Return the processes of jobs."""
        return frozenset(self.pids)


def _begin(rig: Any, mode: str) -> Fake:
    rig.config = CONFIG.format(mode=mode)
    source = Fake()
    rig.sources = {"terminal": source}
    rig.submit("1", "sleep", "1000", partition="scavenge", spec={"tasks": 1})
    rig.submit("2", "sleep", "1000", spec={"tasks": 1})
    rig.until_runs("1")
    rig.until_runs("2")
    return source


def _now(source: Fake) -> None:
    source.at = time.time()


def test_a_job_stands_still_while_a_person_uses_the_machine(rig: Any) -> None:
    """It goes on where it was once all is quiet; jobs of other partitions run on."""
    source = _begin(rig, "suspend")
    _now(source)
    rig.until(j1="SUSPENDED", j2="RUNNING")
    job = rig.live.engine.ledger.jobs["1"]
    (stay,) = rig.live.engine.stays(job)
    assert stay.why.startswith("n1 is in use since 2")
    assert stay.why.endswith(": input at tty1")
    assert stay.setting == "partition.scavenge.quiet"
    rig.live.feed(Command("resume", "1", "ada"))
    rig.turn(lambda: rig.live.engine.recorder.refusals)
    assert "n1 is in use since" in rig.live.engine.recorder.refusals[0][2]
    source.at = 0.0
    rig.until(j1="RUNNING")
    assert [(each["mode"], each["preemptor"]) for each in rig.notes("preempt", "1")] == [("suspend", None)]
    assert [(each["state"], each["partition"]) for each in rig.notes("use", "")] == [
        ("used", "scavenge"),
        ("quiet", "scavenge"),
    ]


def test_a_job_waits_again_and_starts_once_all_is_quiet(rig: Any) -> None:
    """By requeue; nothing of its partition starts meanwhile, and the reason says so."""
    source = _begin(rig, "requeue")
    _now(source)
    rig.until(j1="PENDING", j2="RUNNING")
    rig.turn(lambda: rig.states()["1"] == ("PENDING", "NodesInUse"))
    source.at = 0.0
    rig.until(j1="RUNNING")


def test_another_daemon_knows_what_was_stopped_for_a_person(rig: Any) -> None:
    """Whether the machine has become quiet meanwhile, or not."""
    source = _begin(rig, "suspend")
    _now(source)
    rig.until(j1="SUSPENDED")
    rig.again()
    for _ in range(20):
        rig.live.turn(0.05)
    assert rig.state("1") == "SUSPENDED"
    rig.leave()
    source.at = 0.0
    rig.until(j1="RUNNING")


def test_what_a_person_suspends_meanwhile_stays_suspended(rig: Any) -> None:
    """The quiet is not that person's word."""
    source = _begin(rig, "suspend")
    _now(source)
    rig.until(j1="SUSPENDED")
    rig.live.feed(Command("suspend", "1"))
    rig.turn(lambda: not rig.live.engine.in_use.stopped)
    source.at = 0.0
    rig.turn(lambda: len(rig.notes("use", "")) == 2)
    rig.live.turn(0.1)
    assert rig.state("1") == "SUSPENDED"
    rig.live.feed(Command("resume", "1"))
    rig.until(j1="RUNNING")


def test_a_key_at_a_terminal_stops_a_job_within_a_second_or_so(rig: Any, tmp_path: Path) -> None:
    """A real terminal, whose last input is long ago until somebody types."""
    master, slave = pty.openpty()
    try:
        device = os.ttyname(slave)
        os.utime(device, (1.0, 1.0))
        (tmp_path / "pts").mkdir()
        (tmp_path / "pts" / "7").symlink_to(device)
        rig.config = CONFIG.format(mode="suspend")
        rig.sources = {"terminal": Terminals(NoJobs(), str(tmp_path))}
        rig.submit("1", "sleep", "1000", partition="scavenge", spec={"tasks": 1})
        rig.until_runs("1")
        os.write(slave, b"what a program prints is no use\n")
        os.read(master, 100)
        rig.live.turn(2 * presence.EVERY)
        assert rig.state("1") == "RUNNING"
        os.write(master, b"\n")
        os.read(slave, 1)
        rig.until(j1="SUSPENDED")
        assert rig.notes("use", "")[-1]["why"].endswith(": input at pts/7")
        os.utime(device, (1.0, 1.0))
        rig.until(j1="RUNNING")
    finally:
        os.close(master)
        os.close(slave)


# --------------------------------------------------------------------------------------- sources
def test_the_terminal_of_a_job_is_no_persons(tmp_path: Path) -> None:
    """A program that runs others on a terminal of its own, as expect does."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("cat", ["cat"])
    try:
        os.write(master, b"x\n")
        said = b""
        while said.count(b"x") < 2:  # the terminal's echo, and what cat has read
            said += os.read(master, 100)
        device = os.readlink(f"/proc/{pid}/fd/0")
        (tmp_path / "tty1").symlink_to(device)
        at, what = Terminals(NoJobs(), str(tmp_path)).last(time.time())
        assert time.time() - at < 60
        assert what == "input at tty1"
        assert Terminals(NoJobs(pid), str(tmp_path)).last(time.time())[1] == ""
    finally:
        os.close(master)
        os.waitpid(pid, 0)


HOUR = 3600.0
NOW = 100 * HOUR


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ({"Type": "wayland", "IdleHint": False, "IdleSinceHint": 0}, NOW),
        ({"Type": "wayland", "IdleHint": False, "IdleSinceHint": int((NOW - HOUR) * 1e6)}, NOW),
        ({"Type": "x11", "IdleHint": True, "IdleSinceHint": int((NOW - HOUR) * 1e6)}, NOW - HOUR),
        ({"Type": "tty", "IdleHint": False, "IdleSinceHint": int((NOW - 60) * 1e6)}, NOW - 60),
        ({"Type": "tty", "IdleHint": True, "IdleSinceHint": int((NOW - HOUR) * 1e6)}, NOW - HOUR),
        ({"Type": "x11", "IdleHint": False, "IdleSinceHint": 0, "Class": "greeter"}, float("-inf")),
        ({"Type": "tty", "IdleHint": False, "IdleSinceHint": 0, "State": "closing"}, float("-inf")),
    ],
)
def test_a_session_of_logind(told: Mapping[str, Any], at: float) -> None:
    """As sd-login and org.freedesktop.login1(5) describe the hints: microseconds since 1970."""
    assert used_by({"Class": "user", "State": "active", "Id": "3", "Name": "ann", **told}, NOW)[0] == at


def test_interrupts_of_keyboard_and_mouse(tmp_path: Path) -> None:
    """In the form of proc(5): a count for each processor, then the device."""
    rows = "        CPU0 CPU1\n  1: {} 3 IO-APIC 1-edge i8042\n  8: 0 1 IO-APIC 8-edge rtc0\n"
    text = rows + " 12: 5 0 IO-APIC 12-edge i8042\n"
    path = tmp_path / "interrupts"
    path.write_text(text.format(7))
    found = presence.Interrupts(str(path))
    assert found.last(10.0)[0] < 0
    path.write_text(text.format(8))
    assert found.last(20.0) == (20.0, "input at keyboard or mouse")
    assert found.last(30.0)[0] == 20.0
    path.write_text("        CPU0\n  8:  0  IO-APIC 8-edge rtc0\n")
    with pytest.raises(OSError, match="i8042"):
        presence.Interrupts(str(path))


def test_devices_that_people_type_on(tmp_path: Path) -> None:
    """As the kernel lists them; something to read is use, and nobody reads it."""
    path = tmp_path / "devices"
    path.write_text(
        'I: Bus=0011\nN: Name="AT keyboard"\nH: Handlers=sysrq kbd event3 leds\nB: EV=120013\n\n'
        'N: Name="Mouse"\nH: Handlers=mouse0 event5\n\nN: Name="Speaker"\nH: Handlers=event6\n'
    )
    assert presence.keyboards_and_mice(str(path)) == ["/dev/input/event3", "/dev/input/event5"]
    device = tmp_path / "event3"
    os.mkfifo(device)
    found = presence.Devices([str(device)])
    assert found.last(10.0)[0] < 0
    writer = os.open(device, os.O_WRONLY)
    os.write(writer, b"k")
    assert found.last(20.0) == (20.0, "input at event3")
    os.close(writer)
    found.close()


def test_a_gpu_on_which_a_stranger_computes() -> None:
    """What only draws is the desktop itself, and a job's own process is no person."""

    class Gpus:
        def look(self) -> list[Gpu]:
            """Return one GPU on which two processes compute and another one draws."""
            pids = (1, os.getpid())
            return [Gpu(uuid="GPU-0", index=0, pids=(*pids, 999_999), computing=pids)]

    at, what = presence.Computing(NoJobs(1), Gpus()).last(5.0)
    assert at == 5.0
    assert what.endswith(f"({os.getpid()}) on GPU 0")
    assert presence.Computing(NoJobs(1, os.getpid()), Gpus()).last(5.0)[0] < 0


BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path={}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
</policy></busconfig>
"""


@contextlib.contextmanager
def _logind() -> Iterator[threading.Event]:
    """Let a stand-in of logind have one session, which is idle once the event is set."""
    import asyncio

    from dbus_fast import BusType, Message, Variant
    from dbus_fast.aio import MessageBus

    idle, over, ready = threading.Event(), threading.Event(), threading.Event()

    def answer(message: Any) -> Any:
        if message.member == "ListSessions":
            session = ["3", 1000, "ann", "seat0", "/org/freedesktop/login1/session/_33"]
            return Message.new_method_return(message, "a(susso)", [[session]])
        if message.member == "GetAll":
            words = {"Id": "3", "Name": "ann", "Class": "user", "State": "active", "Type": "wayland"}
            told = {name: Variant("s", word) for name, word in words.items()}
            told |= {"IdleHint": Variant("b", idle.is_set()), "IdleSinceHint": Variant("t", 5_000_000)}
            return Message.new_method_return(message, "a{sv}", [told])
        return None

    async def serve() -> None:
        bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        bus.add_message_handler(answer)
        await bus.request_name("org.freedesktop.login1")
        ready.set()
        while not over.is_set():
            await asyncio.sleep(0.02)
        bus.disconnect()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield idle
    finally:
        over.set()
        thread.join(30)


def test_logind_is_asked_over_dbus(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real bus with a stand-in of logind; without it, and without a bus, the source is absent and says why."""
    pytest.importorskip("dbus_fast")
    if shutil.which("dbus-daemon") is None:
        pytest.skip("needs dbus-daemon")
    (short / "bus.conf").write_text(BUS.format(short / "bus"))
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={short / 'bus'}")
    with pytest.raises(Absent, match="cannot be asked"):
        presence.find("logind", NoJobs())
    daemon = subprocess.Popen(
        ["dbus-daemon", f"--config-file={short / 'bus.conf'}", "--nofork", "--nopidfile"]
    )
    try:
        deadline = time.monotonic() + 60
        while not (short / "bus").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with _logind() as idle:
            source = presence.find("logind", NoJobs())
            now = time.time()
            assert source.last(now)[1] == "session 3 of ann"
            assert now - source.last(now)[0] < 30
            idle.set()
            while source.last(now)[0] != 5.0 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert source.last(now)[0] == 5.0
            source.close()
    finally:
        daemon.terminate()
        daemon.wait()


def test_a_source_that_is_absent_says_what_would_bring_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dbus-fast."""
    monkeypatch.setitem(sys.modules, "dbus_fast", None)
    found = presence.absent(["logind", "terminal"])
    assert list(found) == ["logind"]
    assert found["logind"].help == "pip install 'makeway-local-world[desktop]'"


def test_the_screen_says_that_a_person_came() -> None:
    """And that all is quiet."""
    line = {
        "kind": "use",
        "state": "used",
        "nodes": "n1",
        "partition": "low",
        "why": "since 1: input at tty1",
    }
    assert sentence(line, 0.0)[9:] == "n1 is in use since 1: input at tty1 (partition low)"
    assert sentence({**line, "state": "quiet"}, 0.0)[9:] == "n1 is quiet (partition low)"

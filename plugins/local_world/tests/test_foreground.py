"""Jobs in the foreground: streams, terminals, what is said when they make way, and who may come near."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moments import at_each

from makeway_local_world.commands.client import Refused
from makeway_local_world.requests import Request, check
from makeway_local_world.terminals import meeting
from makeway_local_world.terminals.guest import Guest

Site = Any
MAKEWAY = [sys.executable, "-m", "makeway"]


class Screen:
    """A terminal of our own, with a command of makeway in it."""

    def __init__(self, site: Site, *arguments: str) -> None:
        self.shown = b""
        self._pid, self._handle = pty.fork()
        if self._pid == 0:
            os.chdir(site.directory)
            os.execve(MAKEWAY[0], [*MAKEWAY, *arguments], site.environ)
        self._site = site
        self.resize(24, 80)

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size."""
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._handle, text.encode())

    def see(self, text: str) -> None:
        """Wait until something is shown; what was shown up to there is forgotten."""
        wanted = text.encode()
        self._site.until(lambda: self._read() and wanted in self.shown, repr(text))
        self.shown = self.shown.partition(wanted)[2]

    def _read(self) -> bool:
        if select.select([self._handle], [], [], 0.05)[0]:
            try:
                self.shown += os.read(self._handle, 65536)
            except OSError:
                time.sleep(0.05)  # the command has ended
        return True

    def end(self) -> int:
        """Wait for the end of the command; return its exit status."""
        self._site.until(
            lambda: self._read() and os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        )
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._handle)
        os.waitpid(self._pid, 0)


def _job(site: Site) -> str:
    """Return the only job that has not ended."""
    return str(site.until(lambda: next(iter(site.jobs()), None)))


def test_streams_and_exit_status(shared: Site) -> None:
    """What is piped in comes back, on the stream where it was written; nothing else is said."""
    command = [*MAKEWAY, "run", "sh", "-c", "cat; echo wrong >&2; exit 7"]
    told = subprocess.run(
        command, env=shared.environ, input="in\n", capture_output=True, text=True, check=False, timeout=300
    )
    assert (told.stdout, told.stderr, told.returncode) == ("in\n", "wrong\n", 7)
    told = subprocess.run(
        [*MAKEWAY, "run", "--", "no-such-program"],
        env=shared.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (told.stderr, told.returncode) == ("makeway: no-such-program: No such file or directory\n", 127)


def test_ctrl_c_ends_the_job(shared: Site) -> None:
    """It runs in another session, which the key does not reach by itself."""
    screen = Screen(shared, "run", "sh", "-c", "echo begun; sleep 1000")
    screen.see("begun")
    job = _job(shared)
    screen.type("\x03")
    assert screen.end() == 130
    assert shared.until(lambda: [each["state"] for each in shared.ended() if each["id"] == job]) == [
        "CANCELLED"
    ]


def test_a_terminal_of_its_own(shared: Site) -> None:
    """It is as large as the window, and follows it; Ctrl-C goes to the program, and the status comes back."""
    loop = "while :; do sleep 0.1; done"
    program = f"trap 'echo caught; exit 5' INT; tty; read x; stty size; {loop}"
    screen = Screen(shared, "run", "--pty", "sh", "-c", program)
    screen.see("/dev/pts/")
    screen.resize(33, 101)
    screen.type("go\n")
    screen.see("33 101")
    screen.type("\x03")
    screen.see("caught")
    assert screen.end() == 5


def test_who_makes_way_is_told_and_goes_on(shared: Site) -> None:
    """A job of 2 CPUs is suspended for an urgent one; it is where it was, and then starts again by a person's word."""
    screen = Screen(shared, "run", "--pty", "-n", "2", "sh", "-c", "echo begun; read x; echo got $x; read y")
    screen.see("begun")
    job = _job(shared)
    urgent = shared.submit("-p", "urgent", "-n", "2", "--", "sleep", "1000")
    screen.see(f"makeway: job {job} makes way for job {urgent}; it goes on afterwards")
    screen.type("early ")
    shared.ok("cancel", urgent)
    screen.see(f"makeway: job {job} goes on")
    screen.type("keys\n")
    screen.see("got early keys")
    shared.ok("requeue", job)
    screen.see("begun")
    screen.type("a\nb\n")
    assert screen.end() == 0


def test_the_keys_of_a_job_that_stands_still(shared: Site) -> None:
    """Ctrl-backslash leaves it, who comes back may type ahead, and Ctrl-C forgets that and leaves it, too."""
    screen = Screen(shared, "run", "--pty", "sh", "-c", "echo begun; read x; echo got $x; exit 3")
    screen.see("begun")
    job = _job(shared)
    shared.ok("suspend", job)
    screen.see(f"makeway: job {job} is suspended; it goes on afterwards")
    screen.type("never\x1c")
    screen.see(f"makeway: job {job} goes on; makeway attach {job} comes back to it")
    assert screen.end() == 0
    again = Screen(shared, "attach")
    again.see(f"makeway: job {job} is suspended; it goes on afterwards")
    again.type("never\x03")
    assert again.end() == 130
    last = Screen(shared, "attach")
    last.see("is suspended")
    last.type("ahead\n")
    shared.ok("resume", job)
    last.see("got ahead")
    assert last.end() == 3


def test_leave_and_come_back(shared: Site) -> None:
    """Ctrl-backslash leaves it, and so does a window that is closed; what it printed is shown again."""
    screen = Screen(shared, "run", "--pty", "sh", "-c", "echo begun; read x; echo got $x; read y; exit 4")
    screen.see("begun")
    job = _job(shared)
    screen.type("\x1c")
    screen.see(f"makeway: job {job} goes on; makeway attach {job} comes back to it")
    assert screen.end() == 0
    again = Screen(shared, "attach", job)
    again.see("begun")
    again.type("one\n")
    again.see("got one")
    again.hang_up()
    assert shared.state_of(job) == "RUNNING"
    last = Screen(shared, "attach", job)
    last.see("got one")
    last.type("two\n")
    assert last.end() == 4
    refused = shared.run("attach", job)
    assert (refused.exit_code, refused.stderr) == (1, f"makeway: job {job} has ended\n")


def test_jobs_without_a_terminal_have_none_to_sit_at(shared: Site) -> None:
    """What to do is said; and it is not started anew without a guest."""
    job = shared.submit("--hold", "--", "true")
    for named, what in ((job, f"job {job} has no terminal"), ("", "no job of yours has a terminal now")):
        refused = shared.run("attach", *named.split())
        assert (refused.exit_code, refused.stderr) == (
            1,
            f"makeway: {what}; makeway run --pty gives one\n",
        )
    shared.ok("cancel", job)


def test_what_cannot_be_in_the_foreground() -> None:
    """A request names a terminal for one command only."""
    for more, where in (
        ({"script": "#!/bin/sh\n", "terminal": "/x"}, "terminal"),
        ({"array": "0-1", "terminal": "/x"}, "terminal"),
        ({"pty": True}, "pty"),
    ):
        (problem,) = check(Request(command=("true",), **more))
        assert problem.where == where


def test_an_idle_shell_ends_by_a_word_that_it_does_not_heed() -> None:
    """Interactive shells ignore SIGTERM; without a hangup they would use up the whole grace of their job."""
    place = meeting.new_place()
    command = [sys.executable, "-I", "-m", "makeway_local_world.terminals.host", "pty", place]
    shell = "trap '' TERM; echo begun; while :; do read x || exit 3; done"
    with subprocess.Popen([*command, "sh", "-c", shell]) as host:
        while (line := meeting.call(place)) is None:
            time.sleep(0.02)
        with line:
            line.sendall(meeting.size(24, 80))
            said = b""
            while b"begun" not in said:
                said += line.recv(100)
            host.terminate()
            assert host.wait(300) == -signal.SIGHUP
    assert not os.path.exists(place)


# ------------------------------------------------------------------------------- who may come
@pytest.fixture
def place() -> Iterator[Path]:
    """Return a place where a job and its user meet."""
    made = Path(meeting.new_place())
    yield made
    made.chmod(0o700)
    for each in made.iterdir():
        each.unlink()
    made.rmdir()


def test_a_place_is_closed_to_others(place: Path) -> None:
    """Nobody else reaches the socket; a place that others can enter, or that is a link, is not used."""
    listener = meeting.listen(str(place))
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "socket").stat().st_mode & 0o077 == 0
    listener.close()
    place.chmod(0o750)
    with pytest.raises(meeting.MeetingError, match="this user's alone"):
        meeting.listen(str(place))
    with pytest.raises(meeting.MeetingError, match="this user's alone"):
        meeting.call(str(place))
    link = place.with_name(f"{place.name}-link")
    link.symlink_to(place)
    try:
        place.chmod(0o700)
        with pytest.raises(meeting.MeetingError, match="this user's alone"):
            meeting.call(str(link))
    finally:
        link.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_no_guest_and_no_host(place: Path) -> None:
    """Even where the owner has opened the place to everybody: the kernel says who it is."""
    listener = meeting.listen(str(place))
    path = str(place / "socket")
    assert _as_another(lambda line: line.connect(path)) == "PermissionError"
    place.chmod(0o777)
    os.chmod(path, 0o777)
    assert _as_another(lambda line: line.connect(path)) == ""
    listener.setblocking(True)
    assert meeting.accept(listener) is None
    listener.close()
    os.chown(place, 12345, 12345)
    place.chmod(0o700)
    with pytest.raises(meeting.MeetingError, match="this user's alone"):
        meeting.call(str(place))
    os.chown(place, 0, 0)


def _as_another(what: Any) -> str:
    """Do something with a socket as another user; return the name of what it raises."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        name = ""
        try:
            os.setgroups([])
            os.setresgid(12345, 12345, 12345)
            os.setresuid(12345, 12345, 12345)
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(30.0)
                what(line)
        except BaseException as error:
            name = type(error).__name__
        finally:
            os.write(writing, name.encode())
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as told:
        name = told.read().decode()
    os.waitpid(pid, 0)
    return name


def test_what_is_no_frame_is_refused() -> None:
    """A guest that sends anything else is sent away."""
    whole = bytearray(meeting.typed(b"x" * 5000) + meeting.size(40, 100))
    kinds = [(kind, len(data)) for kind, data in meeting.frames(whole)]
    assert kinds == [(b"d", 4096), (b"d", 904), (b"w", 4)]
    assert not whole
    part = bytearray(meeting.size(40, 100)[:-1])
    assert meeting.frames(part) == []
    for wrong in (b"GET / HTTP/1.0", b"d\xff\xff", b"w\x00\x02ab"):
        with pytest.raises(meeting.MeetingError):
            meeting.frames(bytearray(wrong))


def test_a_signal_ends_it_as_it_ended_the_command(shared: Site) -> None:
    """128 + n, as a shell has it."""
    screen = Screen(shared, "run", "--pty", "sh", "-c", "kill -USR1 $$")
    assert screen.end() == 128 + signal.SIGUSR1


@pytest.mark.parametrize("pty", [False, True])
def test_the_job_goes_away_while_somebody_knocks(pty: bool) -> None:
    """Whenever it does, its guest finds no place, or a line that says no more; that is no error of the guest's."""

    class Gone:
        def get(self, route: str, **query: Any) -> Any:
            raise Refused("it is not asked here", 404, {})

    place = meeting.new_place()
    guest = Guest(Gone(), "1", place, pty=pty, attached=False)  # type: ignore[arg-type]

    def knock(listener: socket.socket) -> None:
        guest._knock()
        listener.close()
        if guest._line is not None:
            guest._show()

    def leave(listener: socket.socket) -> None:
        listener.close()
        meeting.leave(place)

    moments = sum(1 for _ in at_each(lambda: meeting.listen(place), knock, leave))
    meeting.leave(place)
    assert moments > 10

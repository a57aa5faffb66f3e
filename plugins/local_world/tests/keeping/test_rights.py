"""A job has its user's rights and nothing of the daemon's, and no path of a user's is touched before (section 5)."""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world import keeping
from makeway_local_world.keeping import proc
from makeway_local_world.processes.ends import end_of_plain

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs jobs of others")


@pytest.fixture
def home(short: Path) -> Path:
    """A directory of nobody's."""
    found = short / "home"
    found.mkdir()
    if os.geteuid() == 0:
        os.chown(found, NOBODY, NOBODY)
    return found


def as_nobody(home: Path, **more: Any) -> dict[str, Any]:
    """Return what makes a request nobody's."""
    own = {"uid": NOBODY, "gid": NOBODY, "groups": [NOBODY, 12345]} if os.geteuid() == 0 else {}
    return {**own, "cwd": str(home), "output": str(home / "log"), **more}


def said(house: Any, home: Path, text: str, **more: Any) -> list[str]:
    """Run a shell command as nobody, and return what it wrote."""
    found = house.start("sh", "-c", text, **as_nobody(home, **more)).end()
    assert found.exit is not None
    assert found.exit["failed"] is None, found.exit
    return (home / "log").read_text().splitlines()


@root_only
def test_a_daemon_that_was_raised_raises_no_job(house: Any, home: Path) -> None:
    """Niceness below zero is root's: jobs and what runs beside them begin at 0."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    try:
        assert said(house, home, "nice") == ["0"]
        assert said(house, home, "nice", nice=7) == ["7"]
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


@root_only
def test_rights_are_dropped(house: Any, home: Path) -> None:
    """User, group and groups, for good; the directory and the log are the user's."""
    text = "id -u; id -g; id -G; umask; pwd; grep -c . /etc/shadow 2>/dev/null || echo none"
    assert said(house, home, text, umask=0o027) == [
        "65534",
        "65534",
        "65534 12345",
        "0027",
        str(home),
        "none",
    ]
    found = (home / "log").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (NOBODY, NOBODY, 0o640)


@root_only
def test_rights_do_not_come_back(house: Any, home: Path) -> None:
    """All three user ids and group ids are the user's."""
    lines = said(house, home, "grep -E '^(Uid|Gid):' /proc/self/status")
    assert [line.split()[1:] for line in lines] == [["65534"] * 4] * 2


def test_a_clean_slate(house: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No signal is ignored or blocked, no descriptor is open, nothing of the daemon's environment is there."""
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "x")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    text = "grep -E '^Sig(Ign|Blk):' /proc/self/status; ls /proc/self/fd | wc -l; env | sort"
    lines = said(house, home, text, environment={"PATH": os.defpath})
    assert [line.split()[1] for line in lines[:2]] == ["0" * 16] * 2
    assert int(lines[2]) == 4  # and the one by which ls reads them
    assert {line.partition("=")[0] for line in lines[3:]} <= {"PATH", "PWD", "SHLVL", "_", "OLDPWD"}


def test_sigpipe_ends_who_writes_to_nobody(house: Any, home: Path) -> None:
    """Python ignores it, and children would inherit that."""
    assert said(house, home, "yes | head -1") == ["y"]


def test_keepers_hold_nothing_of_the_daemon(house: Any) -> None:
    """They outlive it: standard descriptors are /dev/null, and the environment is bare."""
    held = house.start("sleep", "1000").runs()
    for at in (0, 1, 2):
        assert os.readlink(f"/proc/{held.keeper}/fd/{at}") == "/dev/null"
    assert Path(f"/proc/{held.keeper}/environ").read_bytes() == b"LC_ALL=C.UTF-8\0"
    me = proc.look(held.keeper)
    assert me is not None
    assert me.name == "makeway-keeper"


def refusal(house: Any, home: Path, **more: Any) -> str:
    """Run something that cannot start, and return why."""
    found = house.start("sh", "-c", "echo written", **as_nobody(home, **more)).end()
    assert found.exit is not None
    end = end_of_plain(found.exit)
    assert end.failed is not None
    return end.failed


@root_only
@pytest.mark.parametrize("kind", ["symlink", "hard link", "symlink in the way"])
def test_logs_that_lead_to_files_of_others(house: Any, short: Path, home: Path, kind: str) -> None:
    """They are opened with the user's rights: what the user may not write stays as it is."""
    closed = short / "closed"
    closed.mkdir(mode=0o700)
    secret = (closed if kind == "symlink in the way" else short) / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    log = home / "log"
    if kind == "symlink":
        log.symlink_to(secret)
    elif kind == "hard link":
        os.link(secret, log)
    else:
        (home / "way").symlink_to(closed)
        log = home / "way/secret"
    why = refusal(house, home, output=str(log))
    assert why == f"its output cannot be opened: {log}: Permission denied"
    assert secret.read_text() == "root's"


@pytest.mark.parametrize("place", ["output", "error", "input"])
def test_a_fifo_does_not_block(house: Any, home: Path, place: str) -> None:
    """Nobody reads it: the start fails at once. As input it is one that nobody writes to."""
    os.mkfifo(home / "fifo")
    os.chmod(home / "fifo", 0o666)
    if place == "input":
        assert said(house, home, "cat; echo end", input=str(home / "fifo")) == ["end"]
    else:
        assert "No such device or address" in refusal(house, home, **{place: str(home / "fifo")})


def test_a_fifo_that_is_read_works(house: Any, home: Path) -> None:
    """As any other file."""
    os.mkfifo(home / "fifo")
    os.chmod(home / "fifo", 0o666)
    reader = os.open(home / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    house.start("sh", "-c", "echo there", **as_nobody(home, output=str(home / "fifo"))).end()
    assert os.read(reader, 100) == b"there\n"
    os.close(reader)


@pytest.mark.parametrize(("append", "text"), [(True, "old\nnew\n"), (False, "new\n")])
def test_append_or_truncate(house: Any, home: Path, append: bool, text: str) -> None:
    """As the submission says."""
    (home / "log").write_text("old\n")
    (home / "log").chmod(0o666)
    house.start("echo", "new", **as_nobody(home, append=append)).end()
    assert (home / "log").read_text() == text


def test_output_and_errors_share_a_file(house: Any, home: Path) -> None:
    """Neither overwrites the other."""
    assert said(house, home, "echo a; echo b >&2; echo c") == ["a", "b", "c"]


def test_errors_apart(house: Any, home: Path) -> None:
    """In a file of their own."""
    assert said(house, home, "echo a; echo b >&2", error=str(home / "errors")) == ["a"]
    assert (home / "errors").read_text() == "b\n"


def test_a_script(house: Any, home: Path) -> None:
    """It is run by its interpreter, with arguments; nobody can change it after its submission."""
    script = "#!/bin/sh -e\necho $1 $2\nfalse\necho never\n"
    held = house.start("a", "b", script=script, **as_nobody(home))
    found = held.end()
    assert found.exit is not None
    assert os.WEXITSTATUS(found.exit["status"]) == 1
    assert (home / "log").read_text() == "a b\n"


def test_limits_niceness_and_cores(house: Any, home: Path) -> None:
    """Resource limits are soft and hard values; cores are those that were given."""
    core = min(os.sched_getaffinity(0))
    text = (
        "ulimit -Sn; ulimit -Hn; nice; grep Cpus_allowed_list /proc/self/status; cat /proc/self/oom_score_adj"
    )
    lines = said(house, home, text, limits={"NOFILE": [100, 200]}, nice=3, cores=[core], oom_score_adj=500)
    assert lines[:2] == ["100", "200"]
    assert int(lines[2]) == min(19, os.nice(0) + 3)
    assert lines[3].split()[1] == str(core)
    assert int(lines[4]) >= 500  # more, where this process has more and may not lower it


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do that")
def test_others_jobs_need_root(house: Any, home: Path) -> None:
    """A daemon without root says so, and does not run them as itself."""
    assert "only root runs jobs of others" not in refusal(house, home, uid=0, gid=0)
    assert refusal(house, home, uid=0, gid=0).startswith("its user's rights cannot be had")


def test_the_leader_dies_with_its_keeper(house: Any, home: Path) -> None:
    """Also after a change of user, which takes the kernel's note of it away: it is set again."""
    held = house.start("sleep", "1000", **as_nobody(home)).runs()
    (leader,) = held.tree()
    os.kill(held.keeper, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (found := proc.look(leader.pid)) is not None and found.state not in proc.ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_keepers_need_the_standard_library_only() -> None:
    """They are as old as their jobs, and outlive upgrades: nothing else may be missing one day."""
    allowed = sys.stdlib_module_names | {"makeway_local_world"}
    for path in Path(keeping.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{path.name} imports {name}"
                if name.startswith("makeway_local_world"):
                    assert name.startswith("makeway_local_world.keeping"), f"{path.name} imports {name}"


@root_only
@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_loses_no_end(house: Any, short: Path, kind: str) -> None:
    """The space for the end is taken at the start; what starts later fails and leaves nothing."""
    place = short / "state/run"
    place.mkdir(parents=True)
    if not _mounted(kind, short / "disk", place):
        pytest.skip(f"no {kind} can be mounted here")
    try:
        held = house.start("sh", "-c", f"while [ ! -e {short}/go ]; do sleep 0.01; done; exit 5").runs()
        (place / "2.1").mkdir(mode=0o700)  # even that takes space on some
        _fill(place)
        late = house.start("true")
        told = late.hear("failed")
        assert "No space left on device" in told["what"]
        assert late.end().exit is None
        (short / "go").touch()
        found = held.end()
        assert found.exit is not None
        assert os.WEXITSTATUS(found.exit["status"]) == 5
    finally:
        house.empty()
        subprocess.run(["umount", "-l", place], check=True)


def _mounted(kind: str, image: Path, place: Path) -> bool:
    """Mount a small file system of a kind; return whether that could be done."""
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    else:
        image.write_bytes(b"\0" * (2 << 20))
        try:
            made = subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image], capture_output=True)
        except FileNotFoundError:
            return False
        if made.returncode:
            return False
        command = ["mount", "-o", "loop", str(image), str(place)]
    return subprocess.run(command, capture_output=True).returncode == 0


def _fill(place: Path) -> None:
    with open(place / "filler", "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue

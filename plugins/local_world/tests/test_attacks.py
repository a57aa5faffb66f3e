"""What a user of a shared machine may try against the daemon of all, really tried as that user.

What a user can reach with a job is the user's own: nothing that root does, and nothing of anybody else.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks import ANN, BEN, as_user

from makeway_local_world.keeping import proc
from makeway_local_world.processes.rundir import RunDirectory

Site = Any
PYTHON = "/usr/bin/python3"
"""One that every user may run; that of the tests may lie in root's home."""
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people"),
    pytest.mark.skipif(not os.path.exists(PYTHON), reason=f"the attackers' programs need {PYTHON}"),
]


@pytest.fixture(scope="module")
def system(made: Callable[[], contextlib.AbstractContextManager[Site]]) -> Iterator[Site]:
    """Return a site whose daemon serves all people of the machine."""
    with made() as site:
        site.directory.chmod(0o755)
        text = site.config.read_text().replace("cpus = 2", "cpus = 8")
        site.config.write_text(text + "settings = { bind = false, on_end_limit = 2.0 }\n")
        site.environ["MAKEWAY_SOCKET"] = str(site.directory / "r/socket")
        site.up("--system")
        yield site


@pytest.fixture
def home(system: Site, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return a directory of the attacker's."""
    found: Path = system.directory / f"home-{abs(hash(request.node.name)) % 10**8}"
    found.mkdir()
    os.chown(found, ANN, pwd.getpwuid(ANN).pw_gid)
    yield found
    system.ask(0, "post", "/v1/commands", {"verb": "cancel", "all": True})
    system.until(lambda: not system.jobs(), "the end of all jobs")


def submit(site: Site, home: Path, *command: str, uid: int = ANN, **keys: Any) -> str:
    """Submit a job as a user; return its id."""
    body = {"command": list(command), "cwd": str(home), "output": str(home / "log"), **keys}
    body.setdefault("environment", {"PATH": "/usr/bin:/bin", "HOME": str(home)})
    answer = site.ask(uid, "post", "/v1/jobs", body)
    assert isinstance(answer, dict), answer
    return str(answer["id"])


def ended(site: Site, job: str) -> dict[str, Any]:
    """Wait until a job has ended, or is held since it cannot start; return how it stands."""

    def look() -> dict[str, Any] | None:
        seen = site.ask(0, "get", f"/v1/jobs/{job}")
        over = seen["state"] not in ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")
        refused = seen["state"] == "PENDING" and "StartFailed" in str(seen["reason"])
        return seen if over or refused else None

    return site.until(look, f"the end of job {job}")  # type: ignore[no-any-return]


def runs(site: Site, job: str) -> dict[str, Any]:
    """Wait until a job's program runs; return what was written down of its start."""
    site.until(lambda: site.state_of(job) == "RUNNING", f"job {job}")
    place = RunDirectory(site.state, (job, 1))
    return site.until(place.started, "its start")  # type: ignore[no-any-return]


def look_into(path: Path) -> str:
    """Wait for a file and return what is in it."""
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline, path
        time.sleep(0.01)
    return path.read_text()


# ----------------------------------------------------------------------- paths that lead to root
SPY = r"""
import json, os, sys
found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        found[name] = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        pass
def peek(number):
    try:
        handle = os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
        return os.read(handle, 100000).decode("latin1")
    except OSError as error:
        return error.strerror
told = {"uid": os.getresuid(), "fds": found, "peek": [peek(at) for at in (0, 1, 2)]}
open("spied.tmp", "w").write(json.dumps(told))
os.rename("spied.tmp", "spied")
for number in (1, 2):
    try:
        data = json.loads(open(f"/proc/self/fd/{number}").read())
        data.update(uid=0, gid=0, groups=[0], on_end="id > who; chmod 666 who")
        os.ftruncate(number, 0)
        os.write(number, json.dumps(data).encode())
    except (OSError, ValueError):
        pass
"""
FORBIDDEN = ("memfd:request", "/run/", "socket:", "pipe:", "/lock", "/exit", "journal")
NUMBERS = range(3, 16)


@pytest.mark.parametrize(
    ("way", "mode"),
    [*((way, mode) for way in ("output", "error") for mode in ("append", "truncate")), ("input", "append")],
)
@pytest.mark.parametrize(
    "root", ["/proc/self/fd", "/dev/fd", "/proc/thread-self/fd", "/proc/self/task/../fd"]
)
def test_open_files_of_keepers_are_not_reached(
    system: Site, home: Path, way: str, mode: str, root: str
) -> None:
    """A job whose input or output is a descriptor of its keeper's does not start, or got nothing by it."""
    jobs = []
    for number in NUMBERS:
        own = home / str(number)
        own.mkdir()
        os.chown(own, ANN, -1)
        paths: dict[str, Any] = {"output": "log", way: f"{root}/{number}"}
        jobs.append(submit(system, own, PYTHON, "-c", SPY, open_mode=mode, **paths))
    for number, job in zip(NUMBERS, jobs, strict=True):
        seen = ended(system, job)
        spied = home / str(number) / "spied"
        if seen["state"] == "PENDING":
            assert "cannot be opened" in seen["reason"], seen
            assert not spied.exists()
            continue
        told = json.loads(spied.read_text())
        assert told["uid"] == [ANN] * 3
        for link in told["fds"].values():
            assert not any(word in link for word in FORBIDDEN), (number, told)
        assert not any('"argv"' in text for text in told["peek"]), (number, told)
    assert not list(home.rglob("who"))


ROOTS_ALONE = (
    *(
        "/etc/shadow",
        "/var/cache/ldconfig/x",
        "/proc/1/mem",
        "/proc/1/environ",
        "/dev/mem",
        "/proc/sysrq-trigger",
    ),
    *("{state}/journal.db", "{state}/jobs", "{state}/run/1.1/exit", "{daemon}/fd/3", "{daemon}/mem"),
    *("{keeper}/mem", "{keeper}/fd/3", "{keeper}/fd/5", "{keeper}/environ"),
)


@pytest.mark.parametrize(
    ("way", "path"),
    [
        *((way, path) for way in ("output", "input") for path in ROOTS_ALONE),
        ("output", "{keeper}/oom_score_adj"),  # everybody may read it
    ],
)
def test_paths_that_only_root_may_open(system: Site, home: Path, way: str, path: str) -> None:
    """They are opened with the owner's rights, so the start fails."""
    other = submit(system, home, "sleep", "600", output="/dev/null")
    keeper = runs(system, other)["pid"]
    daemon = system.processes[0].pid
    where = path.format(state=system.state, keeper=f"/proc/{keeper}", daemon=f"/proc/{daemon}")
    keys: dict[str, Any] = {way: where}
    job = submit(system, home, "sh", "-c", "cat >stolen", open_mode="append", **keys)
    seen = ended(system, job)
    assert seen["state"] == "PENDING", seen
    assert "cannot be opened" in seen["reason"]
    assert not (home / "stolen").exists()


@pytest.mark.parametrize("what", ["output", "error", "input", "cwd"])
def test_a_path_that_changes_between_accept_and_start(system: Site, home: Path, what: str) -> None:
    """It is followed when the job starts, with the owner's rights."""
    secret = system.directory / f"secret-{what}"
    secret.mkdir(mode=0o700)
    (secret / "file").write_text("root's\n")
    (secret / "file").chmod(0o600)
    place = home / "place"
    place.mkdir()
    os.chown(place, ANN, -1)
    keys: dict[str, Any] = {what: str(place) if what == "cwd" else str(place / "file")}
    job = submit(system, home, "sh", "-c", "cat; echo mine", hold=True, **keys)
    place.rmdir()
    place.symlink_to(secret)
    system.ask(ANN, "post", "/v1/commands", {"verb": "release", "jobs": [job]})
    seen = ended(system, job)
    assert seen["state"] == "PENDING", seen
    assert "Permission denied" in seen["reason"]
    assert (secret / "file").read_text() == "root's\n"


# --------------------------------------------------------------------------- who runs what, as whom
def status_of(pid: int) -> dict[str, str]:
    """Return what /proc says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_keepers_are_their_owners(system: Site, home: Path) -> None:
    """User, group and groups are the owner's for good, and no capability is left."""
    keeper = runs(system, submit(system, home, "sleep", "600"))["pid"]
    gid = str(pwd.getpwuid(ANN).pw_gid)
    system.until(lambda: status_of(keeper)["Uid"].split() == [str(ANN)] * 4, "the owner's rights")
    found = status_of(keeper)
    assert found["Gid"].split() == [gid] * 4
    assert "0" not in found["Groups"].split()
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        assert int(found[name], 16) == 0, name


INTRUDER = r"""
import ctypes, os, sys
keeper, libc, got = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True), []
for name in ("mem", "maps", "environ", "fd/3", "fd/4", "fd/5", "cwd", "root"):
    try:
        os.open(f"/proc/{keeper}/{name}", os.O_RDWR if name == "mem" else os.O_RDONLY)
        got.append(name)
    except OSError:
        pass
try:
    got += os.listdir(f"/proc/{keeper}/fd")
except OSError:
    pass
if libc.ptrace(16, keeper, 0, 0) == 0:
    got.append("ptrace")
if libc.ptrace(0x4206, keeper, 0, 0) == 0:
    got.append("seize")
handle = os.pidfd_open(keeper)
for number in range(16):
    if libc.syscall(438, handle, number, 0) >= 0:
        got.append(f"pidfd_getfd {number}")
class Part(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
mine = ctypes.create_string_buffer(8)
if libc.process_vm_readv(keeper, ctypes.byref(Part(ctypes.addressof(mine), 8)), 1,
                         ctypes.byref(Part(4096, 8)), 1, 0) >= 0 or ctypes.get_errno() != 1:
    got.append("memory")
try:
    open(f"/proc/{keeper}/oom_score_adj", "w").write("1000")
    got.append("oom")
except OSError:
    pass
print(got)
"""


def test_a_job_gets_nothing_of_its_keeper(system: Site, home: Path) -> None:
    """Neither its memory nor its open files, though it has the same user; gid and groups are the same as well."""
    job = submit(system, home, "sh", "-c", f'{PYTHON} -c "$SPY" $PPID; sleep 600', environment={
        "PATH": "/usr/bin:/bin", "SPY": INTRUDER,
    })  # fmt: skip
    runs(system, job)
    assert look_into(home / "log") == "[]\n"


@pytest.mark.parametrize("what", ["on_end", "notice", "checkpoint"])
def test_commands_beside_a_job_are_the_owners(system: Site, home: Path, what: str) -> None:
    """Rights, descriptors and what the kernel takes first; LD_* and PYTHON* reach nothing of root's."""
    (home / "sitecustomize.py").write_text(f"import os\nopen('{home}/py', 'a').write(str(os.getuid()))\n")
    says = (
        "id -u; id -G; ls /proc/self/fd | wc -w; grep CapEff /proc/self/status; cat /proc/self/oom_score_adj"
    )
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(home),
        "PYTHONHOME": "/nowhere",
        "PYTHONSTARTUP": str(home / "sitecustomize.py"),
        "LD_PRELOAD": str(home / "evil.so"),
        "LD_LIBRARY_PATH": str(home),
        "BASH_ENV": str(home / "env"),
        "ENV": str(home / "env"),
    }
    command: dict[str, Any] = {what: f"({says}) >said.tmp 2>/dev/null; mv said.tmp said"}
    job = submit(system, home, "sleep", "600", environment=environment, **command)
    keeper = runs(system, job)["pid"]
    found = Path(f"/proc/{keeper}/environ").read_bytes()
    assert found == b"LC_ALL=C.UTF-8\0"
    verb = {"on_end": "cancel", "notice": "suspend", "checkpoint": "checkpoint"}[what]
    system.ask(ANN, "post", "/v1/commands", {"verb": verb, "jobs": [job]})
    lines = look_into(home / "said").splitlines()
    assert lines[0] == str(ANN)
    assert lines[1] == str(pwd.getpwuid(ANN).pw_gid)
    assert lines[2] == "4"
    assert int(lines[3].split()[1], 16) == 0
    assert int(lines[4]) >= 0
    assert not (home / "py").exists()


@pytest.mark.parametrize("value", [-1, -10, -20])
def test_niceness_below_zero_is_roots(system: Site, home: Path, value: int) -> None:
    """It is refused; and were it not, the kernel would: it is set with the owner's rights."""
    body = {"command": ["true"], "cwd": str(home), "output": "/dev/null", "process_nice": value}
    answer = system.ask(ANN, "post", "/v1/jobs", body)
    assert answer == "409 only root may lower the niceness of processes (a negative --process-nice)"
    job = submit(system, home, "sh", "-c", "nice", process_nice=5)
    ended(system, job)
    assert int((home / "log").read_text()) >= 5


def test_limits_are_never_raised(system: Site, home: Path) -> None:
    """Whatever is asked for: no limit is above what the daemon has."""
    import resource

    most = 2**40
    names = ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK")
    text = (
        "import resource, json; print(json.dumps({n: resource.getrlimit(getattr(resource, 'RLIMIT_' + n)) "
        "for n in " + repr(names) + "}))"
    )
    job = submit(system, home, PYTHON, "-c", text, limits={name: [most, -1] for name in names})
    seen = ended(system, job)
    assert seen["state"] == "COMPLETED", seen
    found = json.loads((home / "log").read_text())
    for name in names:
        hard = resource.prlimit(system.processes[0].pid, getattr(resource, f"RLIMIT_{name}"))[1]
        assert hard == -1 or -1 < found[name][1] <= hard, name


def test_a_job_that_stops_itself_keeps_its_cpus(system: Site, home: Path) -> None:
    """No other job starts on them meanwhile, and the queue says why it does not go on."""
    job = submit(system, home, "sleep", "600", tasks=8)
    runs(system, job)
    order = {"verb": "signal", "value": "STOP", "jobs": [job]}
    assert system.ask(ANN, "post", "/v1/commands", order)["done"] == [job]
    system.until(lambda: "stopped by a signal" in system.jobs()[job]["reason"])
    other = submit(system, home, "true", uid=BEN, output="/dev/null", cwd="/")
    time.sleep(0.5)
    assert (system.state_of(job), system.state_of(other)) == ("RUNNING", "PENDING")
    system.ask(ANN, "post", "/v1/commands", {**order, "value": "CONT"})
    system.until(lambda: "stopped" not in system.jobs()[job]["reason"])


def test_the_least_oom_score_is_roots(system: Site, home: Path) -> None:
    """A job cannot make the kernel take others first."""
    mine = "/proc/self/oom_score_adj"
    text = f"cat {mine}; echo -1000 >{mine}; echo 0 >{mine}; cat {mine}"
    ended(system, submit(system, home, "sh", "-c", text, error="/dev/null"))
    first, second = map(int, (home / "log").read_text().split())
    resource_rights = (
        int(status_of(os.getpid())["CapEff"], 16) >> 24 & 1
    )  # a container may lack CAP_SYS_RESOURCE
    assert first == 500
    assert second == (500 if resource_rights else 0)


# ----------------------------------------------------------------------------- running away
AWAY = {
    "setsid": "setsid sleep 7431 & wait",
    "double fork": f"{PYTHON} -c 'import os,time\nos.fork() or (os.setsid(), os.fork() or time.sleep(7431))'",
    "bare environment": "env -i setsid /bin/sleep 7431 & sleep 0.2",
    "untraceable": f"{PYTHON} -c 'import os,time,ctypes\nif os.fork() == 0:\n ctypes.CDLL(None).prctl(4,0,0,0,0)\n"
    " os.setsid(); time.sleep(7431)'",
    "stopped": 'setsid sh -c "kill -STOP \\$\\$; sleep 7431" & sleep 0.2',
}


def sleepers(home: Path) -> list[int]:
    """Return the processes of the attacker's that are left where the job was, but for keepers."""
    found = []
    for pid in proc.everybody():
        with contextlib.suppress(OSError):
            theirs = os.stat(f"/proc/{pid}").st_uid in (0, ANN) and status_of(pid)["Uid"].split()[0] == str(
                ANN
            )
            if theirs and os.readlink(f"/proc/{pid}/cwd") == str(home.resolve()):
                found.append(pid)
    return found


@pytest.mark.parametrize("name", AWAY)
@pytest.mark.parametrize("keeper_dies", [False, True])
def test_what_runs_away_is_killed(system: Site, home: Path, name: str, keeper_dies: bool) -> None:
    """Also where the job kills its own keeper; without cgroups that hides what has cleared its environment."""
    if (
        keeper_dies
        and name == "bare environment"
        and not system.ask(0, "get", "/v1/daemon")["cgroups"]["base"]
    ):
        pytest.skip("no cgroups here")
    text = f"exec 2>/dev/null; {AWAY[name]}; touch away; sleep 600"
    if name == "setsid":
        text = f"({AWAY[name]}) & sleep 0.2; touch away; sleep 600"
    job = submit(system, home, "sh", "-c", text)
    keeper = runs(system, job)["pid"]
    system.until((home / "away").exists, "its flight")
    assert sleepers(home)
    if keeper_dies:
        system.ask(ANN, "post", "/v1/commands", {"verb": "update", "jobs": [job], "changes": {"nice": "5"}})
        assert as_user(ANN, lambda: os.kill(keeper, signal.SIGKILL)) is None
        system.until(lambda: proc.look(keeper) is None, "the end of its keeper")
        system.until(lambda: not RunDirectory(system.state, (job, 1)).path.exists(), "the next incarnation")
    system.ask(ANN, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})
    ended(system, job)
    system.until(lambda: not sleepers(home), f"the end of {sleepers(home)}")


def test_a_cgroup_is_not_its_jobs(system: Site, home: Path) -> None:
    """Nobody but root moves out of it, thaws it, raises its limits, or makes one below."""
    started = runs(system, submit(system, home, "sleep", "600"))
    if not started["cgroup"]:
        pytest.skip("no cgroups here")
    for part in ("", "/job", "/beside"):
        for name in (
            "cgroup.procs",
            "cgroup.freeze",
            "cgroup.kill",
            "cgroup.threads",
            "memory.max",
            "pids.max",
        ):
            path = f"{started['cgroup']}{part}/{name}"
            if os.path.exists(path):
                assert as_user(ANN, lambda path=path: open(path, "w").close()) == "Permission denied"  # type: ignore[misc]
    below = f"{started['cgroup']}/job/mine"
    assert as_user(ANN, lambda: os.mkdir(below)) == "Permission denied"


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGUSR1, signal.SIGSEGV]
)
def test_signals_to_its_keeper_hurt_its_own_job_alone(system: Site, home: Path, number: int) -> None:
    """Jobs of others run on, and the daemon answers."""
    other = submit(system, home, "sleep", "600", uid=BEN, output="/dev/null", cwd="/")
    keeper_of_other = runs(system, other)["pid"]
    keeper = runs(system, submit(system, home, "sleep", "600"))["pid"]
    system.until(lambda: status_of(keeper)["Uid"].split()[0] == str(ANN))
    assert as_user(ANN, lambda: os.kill(keeper, number)) is None
    assert as_user(ANN, lambda: os.kill(keeper_of_other, number)) == "Operation not permitted"
    assert as_user(ANN, lambda: os.kill(system.processes[0].pid, number)) == "Operation not permitted"
    time.sleep(0.2)
    assert system.state_of(other) == "RUNNING"
    if number == signal.SIGSTOP:
        os.kill(keeper, signal.SIGCONT)


def test_a_setuid_program_is_killed_with_its_job(system: Site, home: Path) -> None:
    """Its owner has no right to do that, and so no keeper: the daemon helps."""
    program = system.directory / "sleeps"
    shutil.copy("/bin/sleep", program)
    program.chmod(0o4755)
    job = submit(system, home, "sh", "-c", f"{program} 7432")
    runs(system, job)
    found = system.until(
        lambda: [pid for pid in proc.everybody() if (seen := proc.look(pid)) and seen.name == "sleeps"]
    )
    assert status_of(found[0])["Uid"].split()[:2] == [str(ANN), "0"]
    system.ask(ANN, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})
    ended(system, job)
    assert proc.look(found[0]) is None


# ------------------------------------------------------------------------------- the state
def test_nobody_calls_a_keeper(system: Site, home: Path) -> None:
    """Its socket lies where only root may go, and has no other name."""
    job = submit(system, home, "sleep", "600")
    runs(system, job)
    place = RunDirectory(system.state, (job, 1))
    assert as_user(ANN, lambda: os.listdir(place.path)) == "Permission denied"
    assert as_user(ANN, lambda: place.call() is None) in (True, "Permission denied")
    for line in Path("/proc/net/unix").read_text().splitlines():
        assert "@makeway" not in line


def test_requests_are_sealed() -> None:
    """Nobody writes to one, and nobody but root opens it anew."""
    from makeway_local_world.processes.nursing import sealed

    handle = sealed("request", b"x" * 100)
    path = f"/proc/{os.getpid()}/fd/{handle}"
    for attempt in (
        lambda: os.pwrite(handle, b"y", 0),
        lambda: os.ftruncate(handle, 1),
        lambda: os.ftruncate(handle, 1000),
        lambda: os.write(os.open(path, os.O_WRONLY), b"y"),
    ):
        with pytest.raises(OSError, match="not permitted"):
            attempt()
    assert os.fstat(handle).st_mode & 0o777 == 0o400
    assert os.pread(handle, 1000, 0) == b"x" * 100
    os.close(handle)

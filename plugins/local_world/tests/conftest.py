"""Start real daemons in directories of their own, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from attacks import as_user
from click.testing import CliRunner, Result

from makeway_app.cli import cli
from makeway_local_world.commands.client import Daemon

PATIENCE = 300.0
"""Seconds after which a test gives up, on whatever machine."""
CONFIG = """
node = [{ name = "here", cpus = 2, memory_mb = 4000 }]
partition = [
  { name = "normal", default = true },
  { name = "urgent", priority_tier = 2, preempt_mode = ["off"] },
]
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core"]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
[scheduler]
type = "easy"
clockwork = { kill_wait = 1.0 }
[world]
name = "world/local"
"""
"""Two CPUs, whatever the machine has; jobs of ``urgent`` suspend those of ``normal``."""


@attrs.define
class Site:
    """A state directory, and the daemon that has it."""

    directory: Path
    config: Path
    environ: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = attrs.field(factory=list)

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.directory / "s"

    def up(
        self,
        *arguments: str,
        wait: bool = True,
        descriptors: int | None = None,
        within: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start the daemon as ``makeway up --foreground`` does; return once it answers.

        :param descriptors: how many it may have; None: as many as this process.
        :param within: a command that executes what follows it.
        """
        command = [
            *within,
            sys.executable,
            "-m",
            "makeway",
            "up",
            "--foreground",
            *arguments,
            str(self.config),
        ]
        if descriptors is not None:
            command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
        with open(self.directory / "daemon.log", "ab") as log:
            process = subprocess.Popen(
                command, env=self.environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.processes.append(process)
        if wait:
            self.until(lambda: process.poll() is not None or self.run("queue").exit_code == 0)
            assert process.poll() is None, (self.directory / "daemon.log").read_text()
        return process

    def run(self, *arguments: str, input: str | None = None) -> Result:
        """Run a command of makeway in this process."""
        with _environ(self.environ), contextlib.chdir(self.directory):
            return CliRunner().invoke(cli, list(arguments), input=input, prog_name="makeway")

    def ok(self, *arguments: str) -> str:
        """Run a command that has to succeed; return what it prints."""
        result = self.run(*arguments)
        assert result.exit_code == 0, f"{arguments}: {result.exit_code}\n{result.output}"
        return result.stdout

    def submit(self, *arguments: str) -> str:
        """Submit a job; return its id."""
        return self.ok("submit", "--parsable", *arguments).strip()

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return the live jobs by id."""
        return {job["id"]: job for job in json.loads(self.ok("queue", "--json"))["jobs"]}

    def ended(self) -> list[dict[str, Any]]:
        """Return the jobs that have ended."""
        return list(json.loads(self.ok("history", "--json"))["jobs"])

    def until(self, true: Callable[[], Any], what: str = "") -> Any:
        """Wait until something is so; fail if it is not for long."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := true():
                return found
            time.sleep(0.02)
        raise AssertionError(f"{what or 'it'} did not come about; the log says\n{self.log()}")

    def log(self) -> str:
        """Return what the daemons said."""
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / "daemon.log").read_text()
        return ""

    def state_of(self, job: str) -> str:
        """Return the state of a live job; empty: it is not live."""
        return str(self.jobs().get(job, {}).get("state", ""))

    def ask(self, uid: int, method: str, *values: Any, **query: Any) -> Any:
        """Ask the daemon as a user; a refusal comes back as its status and its text."""
        socket = Path(self.environ.get("MAKEWAY_SOCKET", self.state / "socket"))
        return as_user(uid, lambda: getattr(Daemon(socket), method)(*values, **query))

    def left(self) -> list[int]:
        """Return all processes of this site: daemons, keepers and jobs."""
        return list(marked(str(self.directory)))

    def close(self) -> None:
        """End all that was started."""
        if any(process.poll() is None for process in self.processes):
            with contextlib.suppress(Exception):
                self.run("down", "--kill", "--timeout", "20")
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            if process.poll() is None:
                process.kill()
            process.wait(10.0)
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)


def marked(directory: str) -> Iterator[int]:
    """Yield the processes whose environment bears the mark of a test's directory."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"MAKEWAY_TEST={directory}\0".encode() in (entry / "environ").read_bytes() + b"\0":
                    yield int(entry.name)


@contextlib.contextmanager
def _environ(values: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def site() -> Iterator[Site]:
    """Return a site whose daemon is not yet up."""
    with _made() as made:
        yield made


@contextlib.contextmanager
def _made() -> Iterator[Site]:
    directory = Path(tempfile.mkdtemp(prefix="mw-", dir="/tmp"))
    config = directory / "cluster.toml"
    config.write_text(CONFIG)
    dropped = ("MAKEWAY_SOCKET", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "NOTIFY_SOCKET")
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    environ |= {"MAKEWAY_STATE": str(directory / "s"), "MAKEWAY_TEST": str(directory)}
    made = Site(directory, config, environ)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def made() -> Callable[[], contextlib.AbstractContextManager[Site]]:
    """Return what makes a site whose daemon is not yet up."""
    return _made


@pytest.fixture(scope="module")
def shared() -> Iterator[Site]:
    """Return a site whose daemon is up, for all tests of a module that leave nothing behind."""
    with _made() as made:
        made.up()
        yield made


@pytest.fixture
def up(site: Site) -> Site:
    """Return a site whose daemon is up."""
    site.up()
    return site


@pytest.fixture
def system(site: Site) -> Site:
    """Return a site whose daemon serves all people of the machine, with private queues; for root."""
    site.directory.chmod(0o755)
    site.config.write_text(site.config.read_text() + "settings = { private = true }\n")
    site.environ["MAKEWAY_SOCKET"] = str(site.directory / "r/socket")
    site.up("--system")
    return site


@pytest.fixture(scope="module")
def crowded() -> Iterator[Site]:
    """Return a site whose daemon serves all people, with as many descriptors as systemd gives; for root."""
    if os.geteuid() != 0:
        pytest.skip("only root serves several people")
    with _made() as made:
        made.directory.chmod(0o755)
        made.environ["MAKEWAY_SOCKET"] = str(made.directory / "r/socket")
        made.config.write_text(
            made.config.read_text() + "settings = { user_jobs = 2000, user_storage = 10 }\n"
        )
        made.up("--system", descriptors=1024)
        yield made

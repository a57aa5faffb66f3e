"""A house of real keepers, which is empty again after each test."""

from __future__ import annotations

import getpass
import os
import select
import shutil
import socket
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import parse_toml
from makeway.hookspecs import hookimpl
from makeway.model import Cluster, JobSpec
from makeway.record import Line
from makeway.worlds.api import State
from makeway.worlds.events import Submitted
from makeway_live.drive import Live
from makeway_live.recovery import live_of
from makeway_local_world import plugin
from makeway_local_world.keeping import proc, words
from makeway_local_world.keeping.proc import Process
from makeway_local_world.processes.machine import Cgroups
from makeway_local_world.processes.nursing import Nursery
from makeway_local_world.processes.request import encode
from makeway_local_world.processes.rundir import Fate, Found, RunDirectory, all_keys
from makeway_local_world.processes.world import LocalWorld
from makeway_local_world.submission import Submission, store
from makeway_testing.policies import lower_tiers

MANDATE = ("uid", "gid", "groups", "cgroup", "cgroup_limits", "oom_score_adj")
"""Keys that a test gives with a request, and that are root's."""
LIMIT = 300.0
"""Seconds after which a test gives up; how long a loaded machine takes is no finding."""


def until(what: Any, limit: float = LIMIT) -> Any:
    """Wait until `what()` is true, and return it."""
    deadline = time.monotonic() + limit
    while not (found := what()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)
    return found


class Held:
    """One incarnation in its keeper's hands."""

    def __init__(self, place: RunDirectory, line: socket.socket) -> None:
        self.place = place
        self.line = line
        self.said: list[dict[str, Any]] = []
        self.keeper = 0

    def hear(self, say: str, limit: float = LIMIT) -> dict[str, Any]:
        """Wait for a word of the keeper."""
        deadline = time.monotonic() + limit
        while True:
            for at, told in enumerate(self.said):
                if told["say"] == say:
                    return self.said.pop(at)
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.line], [], [], max(0.0, left))
            assert ready, f"no word {say!r}; it said {self.said}"
            data = self.line.recv(words.LONGEST)
            assert data, f"it hung up before it said {say!r}; it said {self.said}"
            self.said.append(words.unpack(data))

    def ask(self, do: str, **what: Any) -> None:
        """Ask the keeper for something."""
        assert words.send(self.line, words.pack(do=do, id=1, **what))

    def begins(self) -> Held:
        """Wait until the start is written down."""
        self.hear("started")
        started = self.place.started()
        assert started is not None
        self.keeper = started["pid"]
        return self

    def runs(self) -> Held:
        """Wait until the job runs."""
        self.begins()
        self.hear("runs")
        return self

    def tree(self) -> list[Process]:
        """Return the job's processes that have not ended."""
        return [each for each in proc.below(self.keeper) if each.state not in proc.ENDED]

    until = staticmethod(until)

    def end(self) -> Found:
        """Wait until the keeper has ended; return what it left."""
        return until(lambda: found if (found := self.place.look()).fate is not Fate.ALIVE else None)  # type: ignore[no-any-return]

    def kill(self) -> Found:
        """Have it killed at once, and wait for that."""
        self.ask("kill", forced=True)
        return self.end()


class House:
    """Starts keepers as a daemon does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nursery = Nursery()
        self.held: list[Held] = []

    def start(self, *argv: str, job: str = "", **request: Any) -> Held:
        """Have a job started."""
        job = job or str(len(self.held) + 1)
        place = RunDirectory(self.folder, (job, 1))
        directory = place.make()
        lock = place.take_lock(directory)
        assert lock is not None
        asked = {
            "job": job,
            "argv": list(argv),
            "script": None,
            "cwd": "/",
            "environment": {"PATH": os.environ.get("PATH", os.defpath)},
            "input": None,
            "output": "/dev/null",
            "error": None,
            "append": False,
            "umask": 0o022,
            "die_with_keeper": True,
            "kill_wait": 5.0,
            **request,
        }
        mandate = {
            "v": words.VERSION,
            "job": job,
            "incarnation": 1,
            "boot": proc.boot_id(),
            "monotonic": time.monotonic(),
            "wall": time.time(),
            "uid": os.geteuid(),
            "gid": os.getegid(),
            "groups": sorted(os.getgroups()),
            "watched": bool(request.get("stopped") or request.get("ahead")),
            "asks_at_end": bool(request.get("on_end") or request.get("tell_at")),
            **{name: asked.pop(name) for name in MANDATE if name in asked},
        }
        line = self.nursery.start(lock, encode(mandate), encode(asked), directory)
        os.close(lock)
        os.close(directory)
        held = Held(place, line)
        self.held.append(held)
        return held

    def python(self, code: str, **request: Any) -> Held:
        """Have a Python program started."""
        return self.start(sys.executable, "-I", "-S", "-c", code, **request)

    def empty(self) -> None:
        """Kill all that is left; a keeper that does not end is a finding."""
        stuck = []
        for held in self.held:
            if held.place.look().fate is Fate.ALIVE:
                try:
                    held.kill()
                except AssertionError:
                    stuck.append((held.place.key, held.keeper, held.said, held.tree()))
            held.line.close()
        self.nursery.close()
        assert not stuck, stuck


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder that every user may enter, under a short name: sockets have short paths."""
    folder = Path(tempfile.mkdtemp(prefix="mw-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def house(short: Path) -> Iterator[House]:
    """Keepers, and none left afterwards."""
    found = House(short / "state")
    found.folder.mkdir()
    yield found
    found.empty()


@pytest.fixture
def cgroups(short: Path) -> Iterator[Cgroups]:
    """Where cgroups may be made; the test is skipped where they may not."""
    found = Cgroups.find(f"test-{short.name}")
    if not found.base:
        pytest.skip(f"no cgroups here: {found.why_not}")
    yield found
    found.remove()


CHECKPOINTING = """
node = [{ name = "n1", cpus = 4 }]
partition = [{ name = "normal", default = true }, { name = "urgent", priority_tier = 2 }]
[policy]
preempt = "testing/lower_tiers"
preempt_mode = ["checkpoint"]
[scheduler]
clockwork = { kill_wait = 2.0 }
[world]
name = "world/local"
"""
CONFIG = """
node = [{ name = "n1", cpus = 4, memory_mb = 8000, gres = { gpu = 2 } }]
partition = [
  { name = "normal", default = true },
  { name = "urgent", priority_tier = 2, preempt_mode = ["off"] },
]
[cluster]
def_mem_per_cpu = 10
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core_Memory"]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
[scheduler]
type = "backfill"
clockwork = { kill_wait = 2.0 }
[world]
name = "world/local"
failures = { start_wait = 0.05, suspend_wait = 0.2, kill_again = 0.5, resume_again = 0.1 }
"""


class Rig:
    """An engine, a journal and the local world, turned by the test; it may crash and begin again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {"bind": False, "cgroups": "off", "memory_floor": 0}
        self.lines: list[Line] = []
        self.inventory: Any = None
        self.sources: Any = None
        self.config = CONFIG
        self.checkpointing = CHECKPOINTING
        self._live: Live | None = None

    @property
    def live(self) -> Live:
        """The loop; begun when it is first asked for."""
        if self._live is None:
            config = parse_toml(self.config, "test")
            config = attrs.evolve(config, world=attrs.evolve(config.world, settings=self.settings))
            self._live = live_of(config, self.folder, plugins=self._plugins(), sink=self.lines.append)
        return self._live

    def _plugins(self) -> dict[str, Any]:
        def factory(cluster: Cluster, settings: Any, state: State) -> LocalWorld:
            return LocalWorld(cluster, settings, state, self.inventory, self.sources)

        module = types.ModuleType("local")
        module.makeway_world = hookimpl(lambda: factory, specname="makeway_world")  # type: ignore[attr-defined]
        module.makeway_settings = plugin.makeway_settings  # type: ignore[attr-defined]
        return {"world/local": module, lower_tiers.NAME: lower_tiers}

    @property
    def world(self) -> LocalWorld:
        """The world."""
        world = self.live.world
        assert isinstance(world, LocalWorld)
        return world

    def submit(
        self, job_id: str, *argv: str, partition: str = "normal", spec: Any = None, **keys: Any
    ) -> None:
        """Have a job run; `keys` are of its submission."""
        submission = Submission(
            job_id=job_id,
            user=getpass.getuser(),
            uid=os.geteuid(),
            gid=os.getegid(),
            command=argv,
            **{"output": "/dev/null", "cwd": str(self.folder), **keys},
        )
        store(self.folder, submission)
        self.live.feed(
            Submitted(
                JobSpec(
                    **{
                        "id": job_id,
                        "partitions": (partition,),
                        "tasks": 4,
                        "submit_at": self.live.clock.now(),
                    }
                    | (spec or {})
                )
            )
        )

    def turn(self, what: Any, limit: float = LIMIT) -> Any:
        """Turn the loop until `what()` is true, and return it."""
        deadline = time.monotonic() + limit
        while not (found := what()):
            assert time.monotonic() < deadline, f"it never came; {self.states()}; {self.lines[-5:]}"
            self.live.turn(0.02)
        return found

    def states(self) -> dict[str, tuple[str, str]]:
        """Return state and reason of all jobs that have not ended."""
        return {job.id: (job.state.value, job.reason) for job in self.live.engine.ledger.jobs.values()}

    def state(self, job_id: str) -> str:
        """Return the state of a job; GONE once it has ended."""
        return self.states().get(job_id, ("GONE", ""))[0]

    def until(self, **states: str) -> None:
        """Turn until jobs have these states; ids have a ``j`` before them."""
        wanted = {name.removeprefix("j"): state for name, state in states.items()}
        self.turn(lambda: all(self.state(job_id) == state for job_id, state in wanted.items()))

    def until_runs(self, job_id: str) -> None:
        """Turn until a job's program has begun."""
        self.turn(lambda: self.world.processes().get(job_id, {}).get("state") == "running")

    def held(self, job_id: str) -> bool:
        """Whether a job is there and held."""
        job = self.live.engine.ledger.jobs.get(job_id)
        return job is not None and job.held

    def ended_as(self, job_id: str) -> list[str]:
        """Return the states of its record, in order."""
        return [line.data["state"] for line in self.lines if line.kind == "state" and line.job == job_id]

    def notes(self, kind: str, job_id: str) -> list[dict[str, Any]]:
        """Return lines of the record."""
        return [dict(line.data) for line in self.lines if line.kind == kind and line.job == job_id]

    def keeper(self, job_id: str) -> int:
        """Return the keeper's number."""
        return int(self.world.processes()[job_id]["keeper"])

    def again(self) -> None:
        """End the daemon, jobs go on, and begin another one."""
        self.leave()
        _ = self.live

    def leave(self) -> None:
        """End the daemon; what it had not written is lost."""
        if self._live is not None:
            self._live.close()
            journal: Any = self._live.journal
            journal.close()
            self._live = None

    def empty(self) -> None:
        """Kill all that is left."""
        self.leave()
        for key in all_keys(self.folder):
            place = RunDirectory(self.folder, key)
            line = place.call()
            if line is not None:
                words.send(line, words.pack(do="kill", id=0, forced=True))
                deadline = time.monotonic() + LIMIT
                while place.look().fate is Fate.ALIVE and time.monotonic() < deadline:
                    time.sleep(0.005)
                line.close()


@pytest.fixture
def rig(short: Path) -> Iterator[Rig]:
    """A daemon without its socket."""
    found = Rig(short / "state")
    found.folder.mkdir()
    yield found
    found.empty()

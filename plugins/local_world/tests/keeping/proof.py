"""Kill the daemon again and again under a load that preempts, and look for what got lost.

Run it by itself for more than CI does::

    python plugins/local_world/tests/keeping/proof.py --kills 1000 --seed 1
    python plugins/local_world/tests/keeping/proof.py --kills 1000 --seed 1 --user nobody

A client hands in jobs under keys of its own, and repeats each until it is acknowledged. Every second daemon is killed
at a random instant, every other one kills itself at a point between transaction and deed. Keepers and nurseries are
killed as well. It prints one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import parse_toml
from makeway.model import JobSpec, Seconds
from makeway.worlds.api import Step
from makeway.worlds.events import Action, Submitted
from makeway_live.recovery import live_of
from makeway_local_world.keeping import proc, words
from makeway_local_world.processes.leftovers import marked
from makeway_local_world.processes.rundir import Fate, RunDirectory, all_keys
from makeway_local_world.submission import Submission, store

CONFIG = """
node = [{ name = "n1", cpus = 4, memory_mb = 8000 }]
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
clockwork = { kill_wait = 1.0 }
[world]
name = "world/local"
survey = 1.0
failures = { start_wait = 0.05, start_hold_after = 0 }
"""
POINTS = ("before the transaction", "after the transaction", "amid the actions", "after the actions")
OPEN = 12
"""Jobs that the client has under way at a time."""


# ------------------------------------------------------------------------------------- the daemon
class Doomed:
    """A world or journal whose daemon kills itself at a point of a step."""

    def __init__(self, inner: Any, point: str, count: int) -> None:
        self._inner = inner
        self._point = point
        self._count = count

    def _reach(self, point: str) -> None:
        if point == self._point:
            self._count -= 1
            if self._count <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def write(self, step: Step) -> None:
        """Write a step; points count only where something is to be done."""
        if step.actions:
            self._reach("before the transaction")
        self._inner.write(step)
        if step.actions:
            self._reach("after the transaction")

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Perform actions one by one."""
        for action in actions:
            self._inner.perform([action], now)
            self._reach("amid the actions")
        self._reach("after the actions")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def serve(state: Path, cgroups: str, point: str, count: int) -> None:
    """Be a daemon: take jobs from the inbox, acknowledge them once the journal has them; never returns."""
    config = parse_toml(CONFIG, "proof")
    world = attrs.evolve(config.world, settings={"bind": False, "cgroups": cgroups, "oom_score_adj": 0})
    live = live_of(attrs.evolve(config, world=world), state)
    if point:
        live.journal = Doomed(live.journal, point, count)
        live.world = Doomed(live.world, point, count)
    reading = sqlite3.connect(f"file:{state / 'journal.db'}?mode=ro", uri=True)
    fed: set[str] = set()
    (state / "up").touch()
    while True:
        for path in sorted((state / "inbox").glob("*.json")):
            key = path.stem
            if reading.execute("SELECT 1 FROM jobs WHERE id = ?", (key,)).fetchone():
                (state / "acks" / key).touch()
                path.unlink(missing_ok=True)
            elif key not in fed:
                fed.add(key)
                _take(live, state, key, json.loads(path.read_text()))
        live.turn(0.01)


def _take(live: Any, state: Path, key: str, asked: dict[str, Any]) -> None:
    store(
        state,
        Submission(
            job_id=key,
            user=pwd.getpwuid(os.geteuid()).pw_name,
            uid=os.geteuid(),
            gid=os.getegid(),
            command=("sh", "-c", asked["text"]),
            output="/dev/null",
            cwd=str(state),
        ),
    )
    spec = JobSpec(
        id=key,
        partitions=(asked["partition"],),
        tasks=asked["tasks"],
        submit_at=live.clock.now(),
        requeue=True,
    )
    live.feed(Submitted(spec))


# ------------------------------------------------------------------------------------- the client
class Proof:
    """One run: daemons, a client, and somebody who kills."""

    def __init__(self, state: Path, kills: int, seed: int, cgroups: str) -> None:
        self.state = state
        self.kills = kills
        self.cgroups = cgroups
        self.rng = random.Random(seed)
        self.made = 0
        self.daemon = 0
        self.killed: Counter[str] = Counter()
        for name in ("inbox", "acks", "evidence"):
            (state / name).mkdir()

    def run(self) -> dict[str, Any]:
        """Kill, let the last daemon finish, and look at what is left."""
        began = time.monotonic()
        for kill in range(self.kills):
            self._begin(self.rng.choice(POINTS) if kill % 2 else "", self.rng.choice((1, 1, 2, 3, 5, 8)))
            self._until_killed(self.rng.uniform(0.05, 0.35) if kill % 2 == 0 else 5.0)
        self._begin("", 0)
        keys = [f"k{at}" for at in range(1, self.made + 1)]
        deadline = time.monotonic() + 240
        while (open_keys := self._open(keys)) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(self.daemon, signal.SIGKILL)
        os.waitpid(self.daemon, 0)
        return {**self._found(keys, open_keys), "seconds": round(time.monotonic() - began, 1)}

    def _begin(self, point: str, count: int) -> None:
        (self.state / "up").unlink(missing_ok=True)
        self.daemon = os.fork()
        if self.daemon == 0:
            try:
                with open(self.state / "daemon.log", "a") as log:
                    os.dup2(log.fileno(), 2)
                serve(self.state, self.cgroups, point, count)
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        while not (self.state / "up").exists():
            assert os.waitpid(self.daemon, os.WNOHANG) == (0, 0), (self.state / "daemon.log").read_text()
            time.sleep(0.002)

    def _until_killed(self, patience: float) -> None:
        """Hand jobs in until the daemon kills itself, or is killed after `patience` seconds."""
        deadline = time.monotonic() + patience
        victim_at = time.monotonic() + self.rng.uniform(0.0, 0.15)
        while os.waitpid(self.daemon, os.WNOHANG) == (0, 0):
            now = time.monotonic()
            if now >= victim_at:
                self._kill_another()
                victim_at = now + self.rng.uniform(0.05, 0.2)
            if now >= deadline:
                os.kill(self.daemon, signal.SIGKILL)
                os.waitpid(self.daemon, 0)
                break
            self._hand_in()
            time.sleep(0.004)
        self.killed["daemon"] += 1

    def _kill_another(self) -> None:
        """Now and then kill a keeper or the nursery."""
        what = self.rng.choice(("keeper", "keeper", "nursery", "nobody"))
        mine = [each for pid in proc.children(self.daemon) if (each := proc.look(pid)) is not None]
        nurseries = [each.pid for each in mine if each.name == "makeway-nursery"]
        keepers = [pid for key in all_keys(self.state) if (pid := self._keeper(key))]
        chosen = {"keeper": keepers, "nursery": nurseries}.get(what, [])
        if chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(chosen), signal.SIGKILL)
                self.killed[what] += 1

    def _keeper(self, key: Any) -> int:
        try:
            look = RunDirectory(self.state, key).look()
        except (OSError, words.WordError):
            return 0
        return int(look.started["pid"]) if look.fate is Fate.ALIVE and look.started else 0

    def _hand_in(self) -> None:
        """Put another job into the inbox, unless enough are under way."""
        acked = len(os.listdir(self.state / "acks"))
        ended = len(list((self.state / "evidence").glob("end.*")))
        if self.made - min(acked, ended) >= OPEN:
            return
        self.made += 1
        key = f"k{self.made}"
        urgent = self.made % 3 == 0
        status = 3 if self.made % 7 == 0 else 0
        seconds = self.rng.uniform(0.01, 0.1)
        evidence = self.state / "evidence"
        text = (
            f"exec 9>{evidence}/lock.{key}; flock -n 9 || echo {key} >>{evidence}/overlaps; "
            f"echo {key} $MAKEWAY_INCARNATION >>{evidence}/starts; "
            f"sleep {seconds:.3f}; : >{evidence}/end.{key}; exit {status}"
        )
        asked = {
            "text": text,
            "partition": "urgent" if urgent else "normal",
            "tasks": self.rng.choice((1, 2, 4)),
        }
        temporary = self.state / "inbox" / f"{key}.tmp"
        temporary.write_text(json.dumps(asked))
        temporary.rename(self.state / "inbox" / f"{key}.json")

    # ----------------------------------------------------------------------------- the findings
    @contextlib.contextmanager
    def _journal(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.state / "journal.db", timeout=30)
        try:
            yield connection
        finally:
            connection.close()

    def _open(self, keys: list[str]) -> list[str]:
        with self._journal() as journal:
            ended = {row[0] for row in journal.execute("SELECT id FROM jobs WHERE standing IS NULL")}
        return [key for key in keys if key not in ended]

    def _found(self, keys: list[str], still_open: list[str]) -> dict[str, Any]:
        with self._journal() as journal:
            states = dict(journal.execute("SELECT id, state FROM jobs").fetchall())
            suspensions = journal.execute(
                "SELECT count(*) FROM lines WHERE kind = 'state' AND json_extract(data, '$.state') = 'SUSPENDED'"
            ).fetchone()[0]
        starts = Counter((self.state / "evidence/starts").read_text().splitlines())
        started = {line.split()[0] for line in starts}
        overlaps = self.state / "evidence/overlaps"
        wrong = [
            key
            for key in keys
            if states.get(key) != ("FAILED" if int(key[1:]) % 7 == 0 else "COMPLETED")
            and key not in still_open
        ]
        place = os.stat(self.state)
        daemon = f"{place.st_dev:x}-{place.st_ino:x}"
        marks = {line.replace(" ", "."): 0 for line in starts}
        return {
            "kills": dict(self.killed),
            "acknowledged": len(os.listdir(self.state / "acks")),
            "handed_in": len(keys),
            "starts": sum(starts.values()),
            "suspensions": suspensions,
            "lost": sorted(still_open) + sorted(set(keys) - started),
            "started_twice": sorted(line for line, count in starts.items() if count > 1),
            "wrong_end": [(key, states.get(key)) for key in wrong],
            "overlapping": overlaps.read_text().split() if overlaps.exists() else [],
            "left": [(each.pid, each.name, each.state) for each in marked(daemon, marks)],
        }


def main() -> None:
    """Read the command line, and run as it says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--user", default="", help="run as this user; needs root")
    parser.add_argument("--cgroups", choices=("auto", "off"), default="off")
    parser.add_argument("--keep", action="store_true", help="keep the state directory")
    options = parser.parse_args()
    state = Path(tempfile.mkdtemp(prefix="mw-proof-"))
    if options.user:
        entry = pwd.getpwnam(options.user)
        os.chown(state, entry.pw_uid, entry.pw_gid)
        os.setgroups([])
        os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
        os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
        os.chdir("/")
    proof = Proof(state, options.kills, options.seed, options.cgroups)
    try:
        sys.stdout.write(json.dumps(proof.run()) + "\n")
    finally:
        _clean_up(proof)
        if not options.keep:
            shutil.rmtree(state, ignore_errors=True)


def _clean_up(proof: Proof) -> None:
    """Leave no daemon and no job behind, whatever happened."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(proof.daemon, signal.SIGKILL)
        os.waitpid(proof.daemon, 0)
    for key in all_keys(proof.state):
        line = RunDirectory(proof.state, key).call()
        if line is not None:
            words.send(line, words.pack(do="kill", id=0, forced=True))
            line.close()


__all__ = ["Proof", "main", "serve"]

if __name__ == "__main__":
    main()

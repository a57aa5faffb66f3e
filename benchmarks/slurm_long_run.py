"""Let makeway drive a real Slurm for some minutes, and hold what happened against a simulated replay of the same jobs.

    python benchmarks/slurm_long_run.py lsf|moab|POLICY.toml [--jobs 300] [--nodes 8] [--seed 1] [--out DIR]

Needs root and Debian's slurmctld, slurmd and slurm-client. It says three things:

- whether each decision of the live run is the one that the policy takes offline, told the same events again;
- how far starts and displacements differ from those of a replay that knows only the jobs: there, nothing takes time,
  and one second more or less at one end changes who comes next;
- whether two jobs ever ran on one CPU, and whether all was handed back.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config, parse_toml
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway.settings import structure
from makeway.worlds.encoding import action_to_plain, event_of_plain
from makeway.worlds.events import Submitted
from makeway_app.replay import Options, replay
from makeway_live.journal import Journal
from makeway_live.journal_file import connect
from makeway_live.reader import JournalReader
from makeway_live.recovery import recover
from makeway_slurm_world.driving.eyes import overlap
from makeway_slurm_world.reading.jobs import Zone, live_jobs
from makeway_slurm_world.reading.records import job_lines, job_record

TRIAL = Path(__file__).parents[1] / "examples" / "slurm-trial"
POLICIES = {"lsf": TRIAL / "lsf.toml", "moab": TRIAL / "moab.toml"}
JOURNAL = "journal.db"
NEAR = 3.0
"""Seconds by which a start may differ and still count as the same."""
PATIENCE = 900.0
"""Seconds after the last submission within which everything has to be over."""


# ------------------------------------------------------------------------------------- workload
@attrs.frozen(kw_only=True)
class Work:
    """One job to be submitted."""

    at: float
    partition: str
    nodes: int
    cpus: int
    seconds: int

    def arguments(self) -> list[str]:
        """Return how it is submitted; work is counted in steps of a second, which stop when the job is stopped."""
        loop = f"i=0; while [ $i -lt {self.seconds} ]; do sleep 1; i=$((i+1)); done"
        return [
            *("sbatch", "--parsable", "-o", "/dev/null", "-t", "5", "-p", self.partition),
            *(f"-N{self.nodes}-{self.nodes}", f"-n{self.cpus}", "--wrap", loop),
        ]


def workload(jobs: int, nodes: int, seed: int) -> list[Work]:
    """Return jobs that keep nodes of four CPUs about nine tenths busy; one in five is urgent."""
    draw = random.Random(seed)
    made: list[Work] = []
    at = 0.0
    for _ in range(jobs):
        count, cpus = draw.choices([(1, 4), (1, 2), (2, 8)], [60, 25, 15])[0]
        seconds = draw.randint(4, 18)
        high = draw.random() < 0.2
        at += seconds * cpus / 4 / nodes / 0.9
        made.append(Work(at=at, partition="high" if high else "low", nodes=count, cpus=cpus, seconds=seconds))
    return made


# ------------------------------------------------------------------------------------- stories
@attrs.define
class Story:
    """Which job started where and when, and which made way for which."""

    starts: dict[str, list[tuple[float, str]]] = attrs.field(factory=dict)
    """Job -> its starts: instant, nodes. Going on after a suspension is none."""
    ends: dict[str, tuple[float, str]] = attrs.field(factory=dict)
    displaced: list[tuple[str, str, str]] = attrs.field(factory=list)
    """Preemptor, victim, mode."""

    _state: dict[str, str] = attrs.field(factory=dict)

    def tell(self, at: float, kind: str, job: str, data: Mapping[str, Any]) -> None:
        """Take in a line of a record."""
        if kind == "preempt":
            self.displaced.append((str(data.get("preemptor")), job, str(data.get("mode"))))
        if kind != "state":
            return
        state = str(data["state"])
        if state == "RUNNING" and self._state.get(job) != "SUSPENDED":
            self.starts.setdefault(job, []).append((at, str(data.get("nodes"))))
        elif state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"):
            self.ends[job] = at, state
        self._state[job] = state


def told_by(journal: Path) -> Story:
    """Return what a journal tells."""
    story = Story()
    database = connect(journal, write=False)
    try:
        for at, kind, job, data in database.execute(
            "SELECT at, kind, job, data FROM lines ORDER BY step, place"
        ):
            story.tell(float(at), kind, job, json.loads(data))
    finally:
        database.close()
    return story


def config_of(journal: Path) -> Config:
    """Return the configuration that was driven with."""
    database = connect(journal, write=False)
    try:
        (text,) = database.execute("SELECT config FROM configs ORDER BY rowid DESC LIMIT 1").fetchone()
    finally:
        database.close()
    return parse_toml(text, str(journal))


def simulated(journal: Path, config: Config) -> Story:
    """Replay the jobs of a journal in the simulated world, with a pass each second: as often as the live one looks."""
    found = JournalReader().read(journal, ReadOptions(config=config))
    assert not isinstance(config.scheduler.clockwork, str)
    clockwork = {**config.scheduler.clockwork, "sched_interval": 1.0, "pass_on_submit": False}
    plain = attrs.evolve(
        config,
        world=attrs.evolve(config.world, name="world/simulated", settings={}),
        scheduler=attrs.evolve(config.scheduler, clockwork=clockwork),
    )
    story = Story()
    replay(
        plain, found.jobs, (), Options(sink=lambda line: story.tell(line.at, line.kind, line.job, line.data))
    )
    return story


# ------------------------------------------------------------------------------- same decisions
def decided_again(journal: Path, config: Config, folder: Path) -> tuple[int, list[str]]:
    """Tell a new engine the events of a journal; return how many actions there are, and where they differ.

    The journal has to begin with an empty cluster: it does not keep how jobs stood that were there before.
    """
    fresh = Journal(folder / "again.db")
    engine = recover(config, fresh).engine
    cluster = engine.ledger.cluster
    database = connect(journal, write=False)
    actions, wrong = 0, []
    try:
        specs = {
            name: structure(json.loads(text), JobSpec, str(journal))
            for name, text in database.execute("SELECT id, spec FROM jobs")
        }
        rows = database.execute("SELECT step, at, events FROM steps ORDER BY step").fetchall()
        for step, at, text in rows:
            wanted = [
                json.loads(row[0])
                for row in database.execute(
                    "SELECT action FROM actions WHERE step = ? ORDER BY serial", (step,)
                )
            ]
            events = [
                Submitted(specs[plain["job"]])
                if plain["event"] == "Submitted"
                else event_of_plain(plain, cluster, str(journal))
                for plain in json.loads(text)
            ]
            got = json.loads(json.dumps([action_to_plain(each, cluster) for each in engine.step(at, events)]))
            actions += len(wanted)
            if got != wanted:
                wrong.append(f"step {step} at {at:.1f}: {wanted} was done, {got} is decided")
    finally:
        database.close()
        fresh.close()
    return actions, wrong


# ----------------------------------------------------------------------------------- comparison
def compared(
    real: Story, other: Story, urgent: Iterable[str], submitted: Mapping[str, float]
) -> dict[str, Any]:
    """Return figures of both stories, and how far they agree."""
    both = sorted(real.starts.keys() & other.starts.keys())
    apart = sorted(abs(real.starts[job][0][0] - other.starts[job][0][0]) for job in both)
    last = sorted(
        abs(real.ends[job][0] - other.ends[job][0]) for job in both if job in real.ends and job in other.ends
    )
    pairs = Counter(each[:2] for each in real.displaced) & Counter(each[:2] for each in other.displaced)
    quick = set(urgent)

    def waits(story: Story, *, high: bool) -> float:
        found = [story.starts[job][0][0] - submitted[job] for job in both if (job in quick) is high]
        return round(statistics.fmean(found), 1) if found else 0.0

    return {
        "jobs": len(submitted),
        "completed": [sum(each[1] == "COMPLETED" for each in story.ends.values()) for story in (real, other)],
        "displacements": [len(real.displaced), len(other.displaced)],
        "the same pair": sum(pairs.values()),
        "starts": [sum(map(len, story.starts.values())) for story in (real, other)],
        "first start on the same nodes": sum(
            real.starts[job][0][1] == other.starts[job][0][1] for job in both
        ),
        f"first start within {NEAR:g} s": sum(each <= NEAR for each in apart),
        "first start apart, median and 90%": [round(_at(apart, 0.5), 1), round(_at(apart, 0.9), 1)],
        "end apart, median and 90%": [round(_at(last, 0.5), 1), round(_at(last, 0.9), 1)],
        "mean wait of urgent jobs": [waits(real, high=True), waits(other, high=True)],
        "mean wait of others": [waits(real, high=False), waits(other, high=False)],
        "last end": [
            round(max((each[0] for each in story.ends.values()), default=0.0), 1) for story in (real, other)
        ],
    }


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


# --------------------------------------------------------------------------------------- playing
def trial() -> Any:
    """Return the module that starts clusters."""
    spec = importlib.util.spec_from_file_location("makeway_trial_cluster", TRIAL / "cluster.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(policy: Path, works: list[Work], nodes: int, folder: Path) -> tuple[dict[str, Work], set[str]]:
    """Play a workload on a real Slurm under makeway; return the jobs by id, and pairs that ran on one CPU.

    :raises RuntimeError: makeway ended, or not everything was over in time.
    """
    cluster = trial().Cluster(folder / "cluster")
    driver = None
    jobs: dict[str, Work] = {}
    clashes: set[str] = set()
    try:
        cluster.start(nodes)
        log = folder / "drive.log"
        words = ["slurm", "drive", str(policy), "--nodes", f"n[1-{nodes}]", "--state", str(folder / "state")]
        with open(log, "wb") as stream:
            driver = subprocess.Popen(
                [sys.executable, "-m", "makeway", *words], env=cluster.env, stdout=stream, stderr=stream
            )
        _until(120.0, "makeway drives", lambda: "driving" in log.read_text(), driver)
        begun = time.monotonic()
        looked = begun
        waiting = list(works)
        while time.monotonic() < begun + works[-1].at + PATIENCE:
            now = time.monotonic()
            if waiting and now >= begun + waiting[0].at:
                work = waiting.pop(0)
                done = cluster.run(*work.arguments())
                if done.returncode:
                    raise RuntimeError(f"sbatch: {done.stderr}")
                jobs[done.stdout.strip()] = work
            elif now >= looked + 2.0:
                looked = now
                clashes |= _clashes(cluster)
                if driver.poll() is not None:
                    raise RuntimeError(f"makeway ended:\n{log.read_text()[-4000:]}")
                if not waiting and not cluster.run("squeue", "-h", "-o", "%A").stdout.strip():
                    break
            else:
                time.sleep(0.1)
        else:
            raise RuntimeError(f"not over in time:\n{cluster.run('squeue').stdout}")
        time.sleep(3.0)  # the last end is still to be seen
        driver.send_signal(signal.SIGTERM)
        if driver.wait(120.0) != 0 or "No reservations" not in cluster.run("scontrol", "show", "res").stdout:
            raise RuntimeError(f"not handed back:\n{log.read_text()[-4000:]}")
    finally:
        if driver is not None and driver.poll() is None:
            driver.kill()
            driver.wait()
        cluster.stop()
    return jobs, clashes


def _until(limit: float, what: str, holds: Any, driver: Any) -> None:
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() > end or driver.poll() is not None:
            raise RuntimeError(f"{what}: not within {limit:g} s")
        time.sleep(0.2)


def _clashes(cluster: Any) -> set[str]:
    there = []
    for line in job_lines(cluster.run("scontrol", "-d", "-o", "show", "job").stdout):
        there += [job for job in live_jobs(job_record(line), Zone(wall=0.0), 0.0) if job.word == "RUNNING"]
    return {
        f"{one.id} and {other.id}"
        for at, one in enumerate(there)
        for other in there[:at]
        if overlap(one, other)
    }


def main() -> int:
    """Play, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("policy")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep journal and logs here")
    given = parser.parse_args()
    if os.geteuid():
        parser.error("only root can start a cluster")
    policy = POLICIES.get(given.policy, Path(given.policy))
    if not policy.exists():
        parser.error(f"got {given.policy}; allowed: {', '.join(POLICIES)}, or a file")
    with tempfile.TemporaryDirectory(prefix="makeway-long-") as scratch:
        folder = given.out or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        jobs, clashes = play(policy, workload(given.jobs, given.nodes, given.seed), given.nodes, folder)
        journal = next((folder / "state").glob("*.db"))
        config = config_of(journal)
        real = told_by(journal)
        other = simulated(journal, config)
        submitted = {
            spec.id: spec.submit_at for spec in JournalReader().read(journal, ReadOptions(config=config)).jobs
        }
        urgent = [job for job, each in jobs.items() if each.partition == "high"]
        actions, wrong = decided_again(journal, config, Path(scratch))
        figures = compared(real, other, urgent, submitted)
        figures["decisions taken again"] = f"{actions} actions, {len(wrong)} steps differ"
        figures["two jobs on one CPU"] = sorted(clashes)
        print(f"{policy.name}, seed {given.seed}: on Slurm, and simulated")
        for name, value in figures.items():
            print(f"{name}: {' | '.join(map(str, value)) if isinstance(value, list) else value}")
        for text in wrong[:10]:
            print(text)
    bad = clashes or wrong or figures["completed"][0] != len(jobs)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())

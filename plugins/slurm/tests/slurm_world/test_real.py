"""Drive a real Slurm: four emulated nodes of four CPUs, of which makeway has two.

Needs Debian's slurmctld, slurmd and slurm-client, and root; set MAKEWAY_REAL_SLURM=1 to play them, as CI does.
R1 to R13 are the numbers of its tests.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from makeway_slurm_world.driving import orders
from makeway_slurm_world.driving.eyes import overlap
from makeway_slurm_world.reading.jobs import LiveJob, Zone, live_jobs
from makeway_slurm_world.reading.records import job_lines, job_record

TRIAL = Path(__file__).parents[4] / "examples" / "slurm-trial"
LIMIT = 90.0
"""Seconds after which something that has to happen counts as not happening."""
QUIET = os.environ.get("MAKEWAY_QUIET") == "1"
"""Whether nothing else runs here, so that seconds count; else only the order of things does."""
APART = 3.0
"""Seconds by which instants may differ from those of a replay."""
SUSPEND_WAIT = 2.0
"""Seconds from a suspension to a start in its place, which a replay does not know (slurm-live 2.2)."""
DRIVE = (sys.executable, "-m", "makeway", "slurm", "drive")
SUSPEND = """\
[policy]
select = "select/cons_tres"
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
"""

pytestmark = [
    pytest.mark.real_slurm,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("MAKEWAY_REAL_SLURM") != "1", reason="MAKEWAY_REAL_SLURM=1 plays on real daemons"
    ),
]


def _script(*where: str) -> Any:
    """Return a script of the repository as a module."""
    path = TRIAL.parents[1].joinpath(*where)
    spec = importlib.util.spec_from_file_location(f"makeway_script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _trial() -> Any:
    return _script("examples", "slurm-trial", "cluster.py")


class Site:
    """A cluster with a makeway that drives n1 and n2."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.driver: subprocess.Popen[bytes] | None = None
        self.clashes: list[str] = []
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._observe, daemon=True)
        self._watch.start()

    # ---------------------------------------------------------------------------------- Slurm
    def slurm(self, *words: str) -> str:
        """Run a command of Slurm's."""
        done = self.cluster.run(*words)
        assert done.returncode == 0, (words, done.stderr)
        return str(done.stdout).strip()

    def submit(self, *words: str, seconds: int = 600) -> str:
        """Submit a job that sleeps; return its id."""
        return self.slurm("sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", f"sleep {seconds}")

    def jobs(self) -> dict[str, LiveJob]:
        """Return the jobs that have not ended."""
        found: dict[str, LiveJob] = {}
        for line in job_lines(self.cluster.run("scontrol", "-d", "-o", "show", "job").stdout):
            found |= {job.id: job for job in live_jobs(job_record(line), Zone(wall=0.0), 0.0)}
        return found

    def word(self, job: str) -> str:
        """Return the state of a job in Slurm's words; empty: Slurm does not know it."""
        for line in job_lines(self.cluster.run("scontrol", "-d", "-o", "show", "job", job).stdout):
            return job_record(line).state
        return ""

    def kept(self, job: str) -> None:
        """Wait until the controller has written down all that it knows now.

        It writes seconds later, and forgets what it has not written when it is killed: it then gives the same number
        to another job.
        """
        self.slurm("scontrol", "update", f"JobId={job}", "Comment=written-down")
        file = self.cluster.directory / "state" / "job_state"
        self.until("the state is written", lambda: file.exists() and b"written-down" in file.read_bytes())

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.2)
        log = "\n".join(path.read_text() for path in sorted(self.folder.glob("drive*.log")))
        queue = self.cluster.run("squeue").stdout
        pytest.fail(f"{what}: not within {LIMIT:g} s\n{queue}\n{log[-6000:]}")

    def runs(self, job: str) -> None:
        """Wait until a job runs."""
        self.until(f"job {job} runs", lambda: self.word(job) == "RUNNING")

    def node_fails(self, name: str) -> None:
        """Let a node go down with all that runs on it, and stay so: while its daemon lives, it comes back by itself."""
        there = [job.number for job in self.jobs().values() if name in job.nodes]
        self.cluster.end(name, signal.SIGKILL)
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and self._is_of(process, there):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process.name), signal.SIGKILL)
        self.slurm("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test")

    def _is_of(self, process: Path, jobs: list[int]) -> bool:
        """Whether a process belongs to one of these jobs of this cluster: its steps first of all."""
        try:
            line, environ = (
                (process / "cmdline").read_bytes(),
                (process / "environ").read_bytes().split(b"\0"),
            )
        except OSError:
            return False
        if f"SLURM_CONF={self.cluster.conf}".encode() not in environ:
            return False
        return any(
            f"slurmstepd: [{job}.".encode() in line or f"SLURM_JOB_ID={job}".encode() in environ
            for job in jobs
        )

    def node_is_mended(self, name: str) -> None:
        """Let it come back."""
        self.cluster.begin(name)

    # -------------------------------------------------------------------------------- makeway
    def drive(self, policy: str | None = None, *more: str, nodes: str = "n[1-2]") -> None:
        """Start makeway, and wait until it drives."""
        config = TRIAL / "youngest.toml"
        if policy is not None:
            config = self.folder / "policy.toml"
            config.write_text(policy, encoding="utf-8")
        log = self.folder / f"drive{len(list(self.folder.glob('drive*.log')))}.log"
        words = [
            "slurm",
            "drive",
            str(config),
            "--nodes",
            nodes,
            "--state",
            str(self.folder / "state"),
            *more,
        ]
        with open(log, "wb") as stream:
            self.driver = subprocess.Popen(
                [sys.executable, "-m", "makeway", *words], env=self.cluster.env, stdout=stream, stderr=stream
            )
        driver = self.driver

        def drives() -> bool:
            assert driver.poll() is None, log.read_text()
            return "driving" in log.read_text()

        self.until("makeway drives", drives)

    def makeway(self, *words: str) -> str:
        """Ask the makeway that drives, as its users do."""
        done = subprocess.run(
            [sys.executable, "-m", "makeway", *words],
            env={**self.cluster.env, "MAKEWAY_SOCKET": str(self.folder / "state" / "socket")},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self, number: int) -> int:
        """End makeway by a signal; return its exit status."""
        assert self.driver is not None
        driver, self.driver = self.driver, None
        driver.send_signal(number)
        return driver.wait(LIMIT)

    def given_back(self) -> None:
        """Hold Slurm to what a hand-back promises (R8)."""
        assert "No reservations" in self.cluster.run("scontrol", "show", "res").stdout
        for job in self.jobs().values():
            assert job.word != "SUSPENDED", job.id
            assert not (job.word == "PENDING" and job.priority == 0), job.id
            assert not (job.word == "PENDING" and job.fields.get("ReqNodeList")), job.id

    # -------------------------------------------------------------------------------- watching
    def _observe(self) -> None:
        """Write down whenever two jobs run on one CPU (R11)."""
        while not self._over.wait(0.5):
            try:
                there = [job for job in self.jobs().values() if job.word == "RUNNING"]
            except (OSError, subprocess.SubprocessError):
                continue
            for at, one in enumerate(there):
                self.clashes += [f"{one.id} and {other.id}" for other in there[:at] if overlap(one, other)]

    def close(self) -> None:
        """End everything."""
        self._over.set()
        self._watch.join(LIMIT)
        if self.driver is not None:
            self.driver.kill()
            self.driver.wait(LIMIT)
        self.cluster.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Start a cluster; afterwards no two jobs may have run on one CPU."""
    folder = tmp_path
    cluster = _trial().Cluster(folder / "cluster")
    try:
        cluster.start()
        made = Site(cluster, folder)
        try:
            yield made
        finally:
            made.close()
    finally:
        cluster.stop()
    assert made.clashes == []


def _fill(site: Site, *, nodes: str = "n[1-4]") -> list[str]:
    """Fill nodes with jobs of the lower tier, one a node, each younger than the one before."""
    jobs = []
    for name in site.slurm("scontrol", "show", "hostnames", nodes).split():
        jobs.append(site.submit("-p", "low", "-N1", "-n4", "-w", name))
        site.runs(jobs[-1])
        time.sleep(1.1)  # Slurm counts starts in whole seconds
    return jobs


def test_jobs_start_on_exactly_the_planned_nodes_and_no_other_does(site: Site) -> None:
    """R1, R2, R10: one, two, a range of nodes, an array; what waits outside stays out, whatever its user tries."""
    site.drive()
    two = site.submit("-p", "low", "-N2", "-n8", "-w", "n[1-2]")
    site.runs(two)
    assert site.jobs()[two].nodes == ("n1", "n2")
    fields = site.jobs()[two].fields
    site.until("it has left the lease", lambda: "Reservation" not in site.jobs()[two].fields)
    assert fields["ReqNodeList"] == "n[1-2]"
    waiting = [site.submit("-p", "low", "-N1", "-n4", "-w", "n1") for _ in range(20)]
    trick = waiting[-1]
    site.slurm("scontrol", "update", f"JobId={trick}", "ReservationName=makeway")
    site.until("the trick is undone", lambda: "Reservation" not in site.jobs()[trick].fields)
    assert {site.word(job) for job in waiting} == {"PENDING"}
    site.slurm("scancel", *waiting, two)
    ranged = site.submit("-p", "low", "-N1-2", "-n6", "-w", "n1")
    site.runs(ranged)
    assert set(site.jobs()[ranged].nodes) == {"n1", "n2"}
    site.slurm("scancel", ranged)
    array = site.submit("-p", "low", "-N1", "-n4", "--array=0-1", "-w", "n2", seconds=2)
    site.until("both tasks are done", lambda: not [key for key in site.jobs() if key.startswith(array)])
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_the_youngest_is_requeued_and_starts_again(site: Site) -> None:
    """R3, R8: of the two nodes that makeway has, the younger job is on n2."""
    _, young, *_ = _fill(site)
    site.drive()
    urgent = site.submit("-p", "high", "-N1", "-n4", seconds=30)
    site.runs(urgent)
    assert site.jobs()[urgent].nodes == ("n2",)
    assert site.word(young) == "PENDING"
    assert f"(requeued for {urgent})" in site.makeway("queue")
    assert f"it was requeued for job {urgent}" in site.makeway("why", young)
    site.runs(young)
    assert site.jobs()[young].restarts == 1
    assert site.word(urgent) == "COMPLETED"
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_a_victim_is_stopped_and_goes_on_though_makeway_is_killed(site: Site) -> None:
    """R3, R4, R8: by suspension; kill -9 in between."""
    _fill(site)
    site.drive(SUSPEND)
    urgent = site.submit("-p", "high", "-N2", "-n8", "-w", "n[1-2]", seconds=12)
    site.runs(urgent)
    stopped = [job.id for job in site.jobs().values() if job.word == "SUSPENDED"]
    assert len(stopped) == 2
    site.end(signal.SIGKILL)
    site.drive(SUSPEND)
    for job in stopped:
        site.runs(job)
    assert site.word(urgent) == "COMPLETED"
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


@pytest.mark.parametrize("after", [0.0, 0.8])
def test_makeway_is_killed_while_it_displaces(site: Site, after: float) -> None:
    """R4: wherever the blow falls, the next makeway ends what was begun, once."""
    _, young, *_ = _fill(site)
    site.drive()
    urgent = site.submit("-p", "high", "-N1", "-n4", seconds=6)
    site.until("it is noticed", lambda: site.word(young) != "RUNNING" or site.word(urgent) == "RUNNING")
    time.sleep(after)
    site.end(signal.SIGKILL)
    site.drive()
    site.until("the urgent job is done", lambda: site.word(urgent) == "COMPLETED")
    site.runs(young)
    assert site.jobs()[young].restarts == 1
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_a_heterogeneous_job_starts_and_makes_way_as_one(site: Site) -> None:
    """R1, R4, R8: both components on makeway's nodes though another is free, also over a kill -9."""
    low = _fill(site)
    site.drive()
    words = ["-p", "high", "-N1", "-n4", "-x", "n4", ":", "-p", "high", "-N1", "-n4"]
    urgent = site.submit(*words, seconds=15)
    site.slurm("scancel", low[2])
    site.until("a job makes way", lambda: "PENDING" in {site.word(job) for job in low[:2]})
    site.end(signal.SIGKILL)
    site.drive()
    site.runs(urgent)
    parts = [job for job in site.jobs().values() if job.spec.het_id == urgent]
    assert sorted(job.nodes for job in parts) == [("n1",), ("n2",)]
    site.slurm("scontrol", "requeue", "Incomplete", urgent)
    site.until("its user's list is back", lambda: site.jobs()[f"{urgent}+0"].fields["ExcNodeList"] == "n4")
    site.runs(urgent)
    assert [job.restarts for job in site.jobs().values() if job.spec.het_id == urgent] == [1, 1]
    site.until("the urgent job is done", lambda: site.word(urgent) == "COMPLETED")
    for job in low[:2]:
        site.runs(job)
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "restarted"])
def test_the_controller_goes_and_comes_back(site: Site, number: int) -> None:
    """R5: what was asked meanwhile is done afterwards, and nothing twice."""
    old, young, *others = _fill(site)
    site.kept(others[-1])
    site.drive()
    site.cluster.end("slurmctld", number)
    time.sleep(2.0)
    site.cluster.begin("slurmctld")
    site.until("the controller answers", lambda: site.cluster.run("scontrol", "ping").returncode == 0)
    urgent = site.submit("-p", "high", "-N1", "-n4", seconds=5)
    site.until("the urgent job is done", lambda: site.word(urgent) == "COMPLETED")
    site.runs(young)
    assert (site.jobs()[old].restarts, site.jobs()[young].restarts) == (0, 1)
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_a_node_goes_down_and_comes_back(site: Site) -> None:
    """R6: its jobs are requeued by Slurm; makeway places no job there until it is back."""
    site.drive()
    site.slurm("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test")
    first = site.submit("-p", "low", "-N1", "-n4", "-w", "n1")
    site.runs(first)
    second = site.submit("-p", "low", "-N1", "-n4", "-w", "n2")
    time.sleep(4.0)
    assert site.word(second) == "PENDING"
    site.slurm("scontrol", "update", "NodeName=n2", "State=RESUME")
    site.runs(second)
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_a_node_goes_down_between_displacing_and_start(site: Site) -> None:
    """R6, in the middle: the plan is dropped, the start goes elsewhere, and the stopped victim is not left held.

    The wait after a suspension is made long, so that there is a middle.
    """
    _fill(site)
    site.drive(SUSPEND + "[world.settings]\nsuspend_wait = 15.0\n")
    urgent = site.submit("-p", "high", "-N1", "-n4", seconds=5)
    stopped: list[LiveJob] = []

    def is_stopped() -> bool:
        stopped[:] = [job for job in site.jobs().values() if job.word == "SUSPENDED"]
        return bool(stopped)

    site.until("a job is stopped", is_stopped)
    (victim,) = stopped
    (down,) = victim.nodes
    assert site.word(urgent) == "PENDING"
    site.node_fails(down)
    site.runs(urgent)
    (other,) = site.jobs()[urgent].nodes
    assert other in {"n1", "n2"} - {down}
    site.node_is_mended(down)
    site.runs(victim.id)
    assert site.jobs()[victim.id].restarts == 1
    site.until("the urgent job is done", lambda: site.word(urgent) == "COMPLETED")
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_a_node_goes_down_under_a_job_that_makeway_started(site: Site) -> None:
    """R6, afterwards: Slurm requeues it, makeway starts it elsewhere, and nothing binds it to the node."""
    old, *_ = _fill(site)
    site.drive()
    urgent = site.submit("-p", "high", "-N1", "-n4", seconds=8)
    site.runs(urgent)
    assert site.jobs()[urgent].nodes == ("n2",)
    site.node_fails("n2")
    site.until("it starts again", lambda: urgent in site.jobs() and site.jobs()[urgent].nodes == ("n1",))
    assert site.jobs()[urgent].restarts == 1
    site.node_is_mended("n2")
    site.until("the urgent job is done", lambda: site.word(urgent) == "COMPLETED")
    site.runs(old)
    assert site.end(signal.SIGTERM) == 0
    site.given_back()


def test_finished_work_is_not_done_again(site: Site) -> None:
    """R7: the order that displaces does nothing to a job that has ended meanwhile."""
    done = site.submit("-p", "low", "-N1", "-n4", seconds=0)
    site.until("it is done", lambda: site.word(done) == "COMPLETED")
    site.slurm(*orders.requeue(done).words)
    follower = site.submit("-p", "low", "-N1", "-n4", "-w", "n1", seconds=0)
    site.until("the job that came later is done", lambda: site.word(follower) == "COMPLETED")
    assert site.word(done) == "COMPLETED"


def _on_nodes(story: Any) -> dict[str, list[str]]:
    """Return for each node in which order jobs started and ended there."""
    found = [(at, f"{job} starts", nodes) for job, starts in story.starts.items() for at, nodes in starts] + [
        (at, f"{job} ends", story.starts[job][-1][1]) for job, (at, _) in story.ends.items()
    ]
    order: dict[str, list[str]] = {}
    for _, what, nodes in sorted(found):
        order.setdefault(nodes, []).append(what)
    return order


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_it_is_as_in_the_simulated_world(site: Site, mode: str) -> None:
    """R3: the same victims, the same nodes, the same order on each node, and each decision told the same events.

    At night, when nothing else runs, also the same instants: within 3 s, and the wait after a suspension.
    """
    site.drive(None if mode == "requeue" else SUSPEND)
    loop = "i=0; while [ $i -lt {0} ]; do sleep 1; i=$((i+1)); done"
    jobs: list[str] = []
    for partition, seconds in (("low", 30), ("low", 12), ("high", 3)):
        jobs.append(
            site.slurm(
                "sbatch",
                "--parsable",
                "-o",
                "/dev/null",
                "-p",
                partition,
                "-x",
                "n[3-4]",
                "-N1",
                "-n4",
                "--wrap",
                loop.format(seconds),
            )
        )
        site.runs(jobs[-1])
        time.sleep(1.1)  # Slurm counts starts in whole seconds
    for job in jobs:
        site.until(f"job {job} is done", lambda job=job: site.word(job) == "COMPLETED")  # type: ignore[misc]
    assert site.end(signal.SIGTERM) == 0
    site.given_back()
    run = _script("benchmarks", "slurm_long_run.py")
    journal = site.folder / "state" / "journal.db"
    config = run.config_of(journal)
    real, simulated = run.told_by(journal), run.simulated(journal, config)
    assert real.displaced == simulated.displaced
    assert len(real.displaced) == 1
    assert _on_nodes(real) == _on_nodes(simulated)
    for job in jobs if QUIET else ():
        ours, theirs = real.starts[job], simulated.starts[job]
        apart = [abs(one[0] - other[0]) for one, other in zip(ours, theirs, strict=True)]
        apart.append(abs(real.ends[job][0] - simulated.ends[job][0]))
        assert max(apart) <= APART + (SUSPEND_WAIT if mode == "suspend" else 0.0), (job, apart)
    assert run.decided_again(journal, config, site.folder)[1] == []


def test_fifty_requeues_with_credentials(tmp_path: Path) -> None:
    """R12: with munge, on the same node, and none fails; a revoked credential would end a job for good."""
    munge = _script("examples", "slurm-trial", "munge.py").Munge(tmp_path / "munge")
    cluster = _trial().Cluster(tmp_path / "cluster")
    site = None
    try:
        munge.start()
        cluster.start(1, cpus=10, extra=munge.settings())
        site = Site(cluster, tmp_path)
        site.drive(None, nodes="n1")
        jobs = [site.submit("-p", "low", "-N1", "-n1") for _ in range(10)]
        for restarts in range(6):
            for job in jobs:
                site.until(
                    f"job {job} runs for the {restarts + 1}. time",
                    lambda job=job, restarts=restarts: (  # type: ignore[misc]
                        (found := site.jobs().get(job)) is not None
                        and found.word == "RUNNING"
                        and found.restarts == restarts
                    ),
                )
            if restarts < 5:
                site.slurm("scontrol", "requeue", "Incomplete", ",".join(jobs))
        assert {site.word(job) for job in jobs} == {"RUNNING"}
        site.slurm("scancel", *jobs)
        assert site.end(signal.SIGTERM) == 0
        site.given_back()
        assert site.clashes == []
    finally:
        if site is not None:
            site.close()
        cluster.stop()
        munge.stop()


def test_a_hook_script_nudges_makeway(tmp_path: Path) -> None:
    """A job ends, EpilogSlurmctld touches a file, and the next one starts; a look by itself comes after minutes.

    The node is clean seconds after that.
    """
    hook, slow, nudge = tmp_path / "hook", tmp_path / "slow", tmp_path / "nudge"
    hook.write_text(f"#!/bin/sh\necho >>{nudge}\n", encoding="utf-8")
    slow.write_text("#!/bin/sh\nsleep 4\n", encoding="utf-8")
    for script in (hook, slow):
        script.chmod(0o755)
    cluster = _trial().Cluster(tmp_path / "cluster")
    site = None
    try:
        cluster.start(1, extra=f"PrologSlurmctld={hook}\nEpilogSlurmctld={hook}\nEpilog={slow}\n")
        site = Site(cluster, tmp_path)
        first = site.submit("-p", "low", "-N1", "-n4")
        site.runs(first)
        second = site.submit("-p", "low", "-N1", "-n4")
        policy = (TRIAL / "youngest.toml").read_text(encoding="utf-8")
        settings = f'[world.settings]\npoll = 600.0\nnudge = "{nudge}"\n'
        site.drive(policy + settings, "--lease", "1800", nodes="n1")
        assert site.word(second) == "PENDING"
        site.slurm("scancel", first)
        site.runs(second)
        assert site.end(signal.SIGTERM) == 0
        site.given_back()
    finally:
        if site is not None:
            site.close()
        cluster.stop()


def test_when_makeway_is_dead_the_lease_ends_and_slurm_goes_on(site: Site) -> None:
    """R9: no job starts before, and what makeway left open is mended by `release`."""
    site.drive(None, "--lease", "12")
    site.end(signal.SIGKILL)
    late = site.submit("-p", "low", "-N1", "-n4", "-w", "n1")
    time.sleep(3.0)
    assert site.word(late) == "PENDING"
    site.runs(late)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "makeway",
            "slurm",
            "release",
            "--state",
            str(site.folder / "state"),
            "--timeout",
            "60",
        ],
        env=site.cluster.env,
        capture_output=True,
        text=True,
        timeout=LIMIT + 60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site.given_back()


def test_a_site_that_displaces_by_itself_is_refused(tmp_path: Path) -> None:
    """Each refusal says what to change, and nothing was done."""
    cluster = _trial().Cluster(tmp_path / "cluster")
    try:
        cluster.start(2, extra="PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n")
        done = subprocess.run(
            [*DRIVE, str(TRIAL / "youngest.toml"), "--nodes", "n1", "--state", str(tmp_path / "state")],
            env=cluster.env,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 2
        assert "take GANG away" in done.stderr
        assert "set PreemptMode=OFF" in done.stderr
        assert "No reservations" in cluster.run("scontrol", "show", "res").stdout
    finally:
        cluster.stop()


def test_the_trial_runs_through() -> None:
    """`sh examples/slurm-trial/run.sh`, as anybody would."""
    done = subprocess.run(
        ["sh", str(TRIAL / "run.sh")],
        env={
            **os.environ,
            "PYTHON": sys.executable,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    saved = 4 if shutil.which("criu") else 0
    assert f"{14 + saved} checks passed" in done.stdout

"""Killed before or after any command, the next makeway ends what was begun: once, and with nothing left behind."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from makeway.config import Config, build_cluster, parse_toml
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.record import Line, Recorder
from makeway.worlds.api import State
from makeway.worlds.clock import FakeClock
from makeway_live.drive import Live
from makeway_live.journal import Journal
from makeway_live.recovery import perform_again, recover
from makeway_slurm_world.driving.handback import HandBack
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.driving.settings import Settings
from makeway_slurm_world.driving.world import SlurmWorld
from makeway_slurm_world.talking.runner import Answer, Hand
from makeway_slurm_world.talking.words import Order, Question

# The fake is made of the rules (slurm-live 1 to 4): it starts, suspends, requeues and prints. Two jobs that run
# on one node, or a requeue of finished work, are errors of what drives it.
CPUS = 4
REQUEUE_DELAY = 121.0
"""Seconds until a requeued job is eligible again, by default (slurm-live 2.1)."""


class Killed(BaseException):
    """The daemon was killed, right before or after a command."""


@attrs.define
class FakeJob:
    """One job, which takes whole nodes."""

    number: int
    partition: str
    count: int
    seconds: float
    submitted: float
    state: str = "PENDING"
    nodes: list[str] = attrs.field(factory=list)
    required: str = ""
    least: int = 1
    most: int = 1
    lease: str = ""
    begin: float = 0.0
    priority: int = 1000
    restarts: int = 0
    started: float = 0.0
    ran: float = 0.0
    since: float = 0.0
    excluded: str = ""
    het: int = 0
    """Number of the leader; 0: an ordinary job."""

    @property
    def name(self) -> str:
        """Its id as people see it."""
        return f"{self.het}+{self.number - self.het}" if self.het else str(self.number)

    @property
    def there(self) -> bool:
        """Whether it holds nodes."""
        return self.state in ("RUNNING", "SUSPENDED", "COMPLETING")


class FakeSlurm(Hand):
    """Answers questions and obeys orders, by a clock that a test moves."""

    def __init__(self, clock: FakeClock, nodes: list[str]) -> None:
        super().__init__({})
        self.clock = clock
        self.node_names = nodes
        self.down: set[str] = set()
        self.jobs: dict[int, FakeJob] = {}
        self.leases: dict[str, tuple[list[str], float]] = {}
        self.orders: list[str] = []
        self.kill_at: set[tuple[int, str]] = set()
        """Number of an order, and whether the daemon dies before or after it."""
        self.slow = 0.0
        """Seconds from an order to start until the job starts."""

    # ------------------------------------------------------------------------------------- time
    def submit(self, partition: str, seconds: float, count: int = 1) -> FakeJob:
        """Submit a job."""
        number = len(self.jobs) + 1
        job = FakeJob(number, partition, count, seconds, self.clock.wall(), least=count, most=count)
        job.priority = 100_000 - number
        self.jobs[number] = job
        return job

    def submit_het(self, partition: str, seconds: float, parts: int, excluded: str = "") -> list[FakeJob]:
        """Submit a heterogeneous job of components of one node each; its user keeps the leader from nodes."""
        jobs = [self.submit(partition, seconds) for _ in range(parts)]
        for job in jobs:
            job.het = jobs[0].number
        jobs[0].excluded = excluded
        return jobs

    def parts(self, job: FakeJob) -> list[FakeJob]:
        """Return all components of a job."""
        return [each for each in self.jobs.values() if each.het == job.het] if job.het else [job]

    def advance(self) -> None:
        """Let happen what has happened by now: ends first, then starts, the highest priority first."""
        now = self.clock.wall()
        self.leases = {name: each for name, each in self.leases.items() if each[1] > now}
        for job in self.jobs.values():
            if job.state == "RUNNING":
                job.ran += now - job.since
                job.since = now
                if job.ran >= job.seconds:
                    job.state = "COMPLETED"
        for job in sorted(self.jobs.values(), key=lambda job: -job.priority):
            if job.state == "PENDING" and job.het in (0, job.number):
                self._try(self.parts(job), now)
        self._check()

    def _try(self, parts: list[FakeJob], now: float) -> None:
        """Start all components or none."""
        if any(job.state != "PENDING" or not job.priority or job.begin > now for job in parts):
            return
        places: list[list[str]] = []
        for job in parts:
            found = self._place(job, {name for place in places for name in place})
            if found is None:
                return
            places.append(found)
        for job, place in zip(parts, places, strict=True):
            job.nodes = place
            job.state, job.started, job.since, job.ran = "RUNNING", now, now, 0.0

    def _place(self, job: FakeJob, taken: set[str]) -> list[str] | None:
        """Return where a job could start; with a lease that is FLEX, outside of it, too."""
        leased = {name for nodes, _ in self.leases.values() for name in nodes}
        if job.lease and job.lease not in self.leases:
            return None
        mine = set(self.leases[job.lease][0]) if job.lease else set()
        allowed = (set(self.node_names) - leased | mine) - set(expand_hostlist(job.excluded)) - taken
        wanted = set(expand_hostlist(job.required))
        busy = {
            name
            for other in self.jobs.values()
            if other.there and other.state != "SUSPENDED"
            for name in other.nodes
        }
        free = [name for name in self.node_names if name in allowed and name not in busy | self.down]
        if not wanted <= set(free) or len(wanted) > job.most or len(free) < job.least:
            return None
        rest = [name for name in free if name not in wanted]
        return sorted([*wanted, *rest[: job.least - len(wanted)]])

    def _check(self) -> None:
        seen: dict[str, int] = {}
        for job in self.jobs.values():
            for name in job.nodes if job.state == "RUNNING" else ():
                assert name not in seen, f"jobs {seen[name]} and {job.number} both run on {name}"
                seen[name] = job.number

    # -------------------------------------------------------------------------------- questions
    def ask(self, question: Question, *, may_fail: bool = False) -> Answer:
        """Print what Slurm would."""
        self.advance()
        words = [word for word in question.words if not word.startswith("-")]
        if words[0] == "squeue":
            return self._say("".join(self._row(job) for job in self._live()))
        if words[0] == "sinfo" and "%N|%T" in question.words:
            states = ((name, "down" if name in self.down else "idle") for name in self.node_names)
            return self._say("".join(f"{name}|{state}\n" for name, state in states))
        if words[0] == "sinfo":
            return self._say("\n".join(self.node_names))
        if words[1:3] == ["show", "res"]:
            return self._say("".join(self._reservation(name) for name in self.leases))
        assert words[1:3] == ["show", "job"], words
        chosen = [
            job
            for job in self.jobs.values()
            if len(words) == 3 or words[3] in (str(job.number), str(job.het))
        ]
        return self._say("".join(self._record(job) for job in chosen))

    def _say(self, text: str) -> Answer:
        return Answer(code=0, out=text, err="")

    def _live(self) -> list[FakeJob]:
        return [job for job in self.jobs.values() if job.state != "COMPLETED"]

    def _row(self, job: FakeJob) -> str:
        nodes, start = (
            fold_hostlist(job.nodes if job.there else []),
            _time(job.started) if job.there else "N/A",
        )
        return f"{job.number}|{job.state}|{self._reason(job)}|{nodes}|{start}|{job.name}\n"

    def _reason(self, job: FakeJob) -> str:
        if job.state != "PENDING":
            return "None"
        if not job.priority:
            return "JobHeldAdmin"
        return "BeginTime" if job.begin > self.clock.wall() else "Resources"

    def _reservation(self, name: str) -> str:
        nodes, end = self.leases[name]
        return f"ReservationName={name} EndTime={_time(end)} Nodes={fold_hostlist(nodes)} State=ACTIVE\n"

    def _record(self, job: FakeJob) -> str:
        there = job.state != "PENDING"
        count = str(len(job.nodes)) if there else f"{job.least}-{job.most}"
        cpus = CPUS * (len(job.nodes) if there else job.least)
        held = (
            "".join(f"  Nodes={name} CPU_IDs=0-3 Mem=400 GRES= " for name in job.nodes) if job.there else ""
        )
        lease = f"Reservation={job.lease} " if job.lease else ""
        het, whole = "", ""
        if job.het:
            het = f"HetJobId={job.het} HetJobOffset={job.number - job.het} "
            whole = f"HetJobIdSet={job.het}-{max(each.number for each in self.parts(job))} "
        return (
            f"JobId={job.number} {het}JobName=wrap {whole}UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A "
            f"Priority={job.priority} Nice=0 Account=(null) QOS=(null) JobState={job.state} "
            f"Reason={self._reason(job)} Dependency=(null) Requeue=1 Restarts={job.restarts} BatchFlag=1 "
            f"RunTime={int(job.ran) // 60:02}:{int(job.ran) % 60:02} TimeLimit=UNLIMITED "
            f"SubmitTime={_time(job.submitted)} EligibleTime={_time(max(job.begin, job.submitted))} "
            f"StartTime={_time(job.started) if there else 'Unknown'} Partition={job.partition} {lease}"
            f"ReqNodeList={job.required or '(null)'} ExcNodeList={job.excluded or '(null)'} "
            f"NodeList={fold_hostlist(job.nodes) if there else ''} NumNodes={count} NumCPUs={cpus} NumTasks={cpus} "
            f"CPUs/Task=1 {held}MinCPUsNode=1 MinMemoryCPU=100M Features=(null) OverSubscribe=OK Command=(null)\n"
        )

    # ----------------------------------------------------------------------------------- orders
    def tell(self, order: Order) -> Answer:
        """Obey, unless the daemon dies here."""
        at = len(self.orders)
        if (at, "before") in self.kill_at:
            self.kill_at.discard((at, "before"))
            raise Killed
        self.orders.append(str(order))
        self.advance()
        why = self._obey(list(order.words))
        self.advance()
        if (at, "after") in self.kill_at:
            self.kill_at.discard((at, "after"))
            raise Killed
        return Answer(code=1 if why else 0, out="", err=why)

    def _obey(self, words: list[str]) -> str:
        """Do it; return what Slurm says against it."""
        options = dict(word.split("=", 1) for word in words if "=" in word)
        if words[1] in ("create", "delete") or ("JobId" not in options and words[1] == "update"):
            return self._lease(words[1], options)
        if words[1] == "update":
            return self._update(options.pop("JobId"), options)
        job = self._named(words[-1])
        if words[1] == "requeue":
            assert words[2] == "Incomplete", "finished work would run again (slurm-live 2.1)"
            return self._requeue(job)
        if words[1] == "release":
            job.priority = 100_000 - job.number
            return ""
        if job.het not in (0, job.number):
            return "Operation not permitted on individual component of heterogeneous job"
        if words[1] == "suspend":
            if job.state != "RUNNING":
                return "Job is not running"
            for part in self.parts(job):
                part.state = "SUSPENDED"
        elif words[1] == "resume":
            if job.state != "SUSPENDED":
                return "Job is not suspended"
            for part in self.parts(job):
                part.state, part.since = "RUNNING", self.clock.wall()
        else:
            raise AssertionError(words)
        return ""

    def _named(self, name: str) -> FakeJob:
        leader, _, offset = name.partition("+")
        return self.jobs[int(leader) + int(offset or 0)]

    def _lease(self, verb: str, options: dict[str, str]) -> str:
        if verb == "delete":
            name = options["reservation"]
            if any(job.lease == name and job.state == "PENDING" for job in self.jobs.values()):
                return "Requested reservation is in use"
            return "" if self.leases.pop(name, None) else "Requested reservation is invalid"
        name = options["ReservationName"]
        if verb == "update" and name not in self.leases:
            return "Requested reservation is invalid"
        nodes, end = self.leases.get(name, ([], 0.0))
        if "Nodes" in options:
            nodes = expand_hostlist(options["Nodes"])
        if "EndTime" in options:
            end = self.clock.wall() + float(options["EndTime"].removeprefix("now+"))
        self.leases[name] = nodes, end
        return ""

    def _update(self, name: str, options: dict[str, str]) -> str:
        first = self._named(name)
        binds = "ReqNodeList" in options or "NumNodes" in options
        if binds and "+" in name:
            return f"Invalid job ID {name}"
        if binds and first.het == first.number:
            return "Job resizing not supported for job arrays"
        whole = first.het == first.number and "+" not in name
        jobs = self.parts(first) if whole else [first]
        if all(job.state == "COMPLETED" for job in jobs):
            return "Job/step already completing or completed"
        if binds and first.state != "PENDING":
            return "Invalid node name specified"  # slurm-live 1.3: it cannot be cleared while the job runs
        if "ExcNodeList" in options and first.state != "PENDING":
            return "Job is no longer pending execution"
        for job in jobs:
            job.lease = options.get("ReservationName", job.lease)
            job.required = options.get("ReqNodeList", job.required)
            job.excluded = options.get("ExcNodeList", job.excluded)
            if "NumNodes" in options:
                least, _, most = options["NumNodes"].partition("-")
                job.least, job.most = int(least), int(most or least)
            if "StartTime" in options:
                job.begin = self.clock.wall() + self.slow
        return ""

    def fail(self, node: str) -> None:
        """Let a node go down: its jobs are requeued, a stopped one is held then (slurm-live 2.2)."""
        self.advance()
        self.down.add(node)
        for job in self.jobs.values():
            if job.there and node in job.nodes:
                self._requeue(self.parts(job)[0])

    def _requeue(self, job: FakeJob) -> str:
        if job.het not in (0, job.number):
            return "Job not heterogeneous job leader"
        for part in self.parts(job):
            if part.there:
                if part.state == "SUSPENDED":
                    part.priority = 0  # slurm-live 2.1: JobHeldAdmin
                part.state, part.nodes = "PENDING", []
                part.restarts += 1
                part.submitted = self.clock.wall()
                part.begin = self.clock.wall() + REQUEUE_DELAY
        return ""


def _time(wall: float) -> str:
    return datetime.fromtimestamp(int(wall), UTC).strftime("%Y-%m-%dT%H:%M:%S")


CONFIG = """
node = [{{ name = "n[1-2]", cpus = 4, memory_mb = 4000 }}]
partition = [{{ name = "low", default = true }}, {{ name = "high", priority_tier = 10 }}]

[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core_Memory"]
preempt = "preempt/partition_prio"
preempt_mode = [{modes}]

[policy.preemption]
youngest_first = true

[scheduler]
clockwork = {{ preset = "ideal", requeue_delay = 10.0 }}

[world]
name = "world/slurm"
"""
MODES = {"requeue": '"requeue"', "suspend": '"suspend", "gang"'}
MOST_ORDERS = 40


class Run:
    """One run of makeway over a fake Slurm, over any number of its deaths."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.clock = FakeClock()
        self.slurm = FakeSlurm(self.clock, ["n1", "n2", "n3"])
        self.config: Config = parse_toml(CONFIG.format(modes=MODES[mode]), "test")
        self.folder = folder
        self.settings = Settings(nodes="n[1-2]")
        self.sink: Callable[[Line], None] | None = None
        self.live: Live | None = None
        self.journal: Journal | None = None

    def begin(self) -> None:
        """Start a daemon."""
        self.journal = Journal(self.folder / "journal.db", self.config.world.journal)
        recorder = Recorder(build_cluster(self.config), self.sink, keep=False)
        engine = recover(self.config, self.journal, recorder).engine
        state = State(directory=self.folder, clock=self.clock, clockwork=engine.clockwork)
        world = SlurmWorld(build_cluster(self.config), self.settings, state, self.slurm)
        self.live = Live(engine, world, self.clock, journal=self.journal)
        perform_again(engine, world)

    def end(self) -> None:
        """Let go of it, as its death would."""
        if self.journal is not None:
            self.journal.close()
        self.live = self.journal = None

    def until(self, seconds: float) -> None:
        """Go on for so long; what was killed is started again after 5 s."""
        until = self.clock.now() + seconds
        while self.clock.now() < until:
            try:
                if self.live is None:
                    self.begin()
                assert self.live is not None
                self.live.turn()
            except Killed:
                self.end()
                self.clock.advance(5.0)

    def hand_back(self, kills: set[tuple[int, str]] | None = None) -> None:
        """Give everything back; what is killed meanwhile begins again."""
        self.end()
        self.slurm.kill_at = kills or set()
        back = None
        for _ in range(100):
            back = back or HandBack(self.slurm, Notebook(self.folder), "makeway", lambda _: None)
            try:
                if back.step(self.clock.now()):
                    return
            except Killed:
                back = None
            self.clock.advance(2.0)
        raise AssertionError("not everything was given back")


def _played(folder: Path, mode: str, kills: set[tuple[int, str]]) -> tuple[Run, FakeJob, list[FakeJob]]:
    """Two jobs run when makeway comes; an urgent one arrives 3 s later."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, mode)
    slurm = run.slurm
    slurm.down = {"n3"}
    victims = [slurm.submit("low", 60.0)]
    slurm.advance()
    run.clock.advance(2.0)
    victims.append(slurm.submit("low", 60.0))
    slurm.advance()
    run.clock.advance(2.0)
    slurm.kill_at = kills
    run.until(3.0)
    urgent = slurm.submit("high", 20.0)
    run.until(170.0)
    return run, urgent, victims


def _holds(run: Run, mode: str, urgent: FakeJob, victims: list[FakeJob]) -> None:
    assert [job.state for job in (urgent, *victims)] == ["COMPLETED"] * 3
    assert victims[0].restarts == 0
    assert victims[1].restarts == (1 if mode == "requeue" else 0)
    assert urgent.restarts == 0
    run.hand_back()
    assert run.slurm.leases == {}
    assert not any(job.lease for job in run.slurm.jobs.values() if job.state == "PENDING")


@pytest.mark.parametrize(
    ("mode", "node", "order"),
    [
        pytest.param("requeue", "n2", "scontrol requeue Incomplete 2", id="requeue: the youngest"),
        pytest.param(
            "suspend", "n1", "scontrol suspend 1", id="suspend: the first node of the lower tier's jobs"
        ),
    ],
)
def test_who_makes_way(tmp_path: Path, mode: str, node: str, order: str) -> None:
    """Without any death: job 2 on n2 is younger than job 1 on n1; gang's shadow falls on the first node."""
    run, urgent, victims = _played(tmp_path, mode, set())
    assert urgent.nodes == [node]
    _holds(run, mode, urgent, victims)
    assert [each for each in run.slurm.orders if "requeue" in each or "suspend" in each] == [order]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mode", MODES)
def test_death_at_any_command(tmp_path: Path, mode: str, when: str) -> None:
    """Every command of the run without death is a point at which makeway dies once."""
    plain, _, _ = _played(tmp_path / "plain", mode, set())
    plain.end()
    assert 5 <= len(plain.slurm.orders) <= MOST_ORDERS
    for at in range(len(plain.slurm.orders)):
        run, urgent, victims = _played(tmp_path / f"{at}", mode, {(at, when)})
        try:
            _holds(run, mode, urgent, victims)
        except AssertionError as error:
            raise AssertionError(f"killed {when} order {at}:\n" + "\n".join(run.slurm.orders)) from error


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mode", MODES)
def test_several_deaths_in_a_row(tmp_path: Path, mode: str, seed: int) -> None:
    """Five deaths at drawn commands; the daemon that recovers may die while it recovers."""
    draw = random.Random(f"{mode} {seed}")
    first = draw.randrange(12)
    points = [first, first + 1, first + draw.randint(2, 3), *draw.sample(range(30), 2)]
    kills = {(at, draw.choice(("before", "after"))) for at in points}
    run, urgent, victims = _played(tmp_path, mode, kills)
    _holds(run, mode, urgent, victims)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mode", MODES)
def test_death_during_the_hand_back(tmp_path: Path, mode: str, when: str) -> None:
    """What is killed while giving back begins again, and nothing is left behind."""
    for at in range(MOST_ORDERS):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        run = Run(folder, mode)
        slurm = run.slurm
        slurm.down = {"n3"}
        jobs = [slurm.submit("low", 60.0), slurm.submit("low", 60.0)]
        slurm.advance()
        run.clock.advance(2.0)
        jobs.append(slurm.submit("high", 20.0))
        run.until(4.0)
        begun = len(slurm.orders)
        kills = {(begun + at, when), (begun + at + 1, when)}
        run.hand_back(kills)
        assert slurm.leases == {}
        assert not [job for job in jobs if job.state == "SUSPENDED" or job.lease]
        assert not [job for job in jobs if job.state == "PENDING" and (job.required or not job.priority)]
        for _ in range(200):
            run.clock.advance(2.0)
            slurm.advance()
        assert {job.state for job in jobs} == {"COMPLETED"}, slurm.orders
        if len(slurm.kill_at) == len(kills):
            return  # the hand-back has no such command any more
    raise AssertionError("the hand-back has more commands than were tried")


# ------------------------------------------------------------------------- what others do meanwhile
class Meddled(FakeSlurm):
    """A Slurm in which something happens right before or after an order of a kind, once."""

    meddle: Callable[[Meddled], None] | None = None
    verb = ""
    late = False

    def tell(self, order: Order) -> Answer:
        """Obey."""
        now = self.meddle is not None and self.verb in str(order)
        happens, self.meddle = (self.meddle, None) if now else (None, self.meddle)
        if happens is not None and not self.late:
            happens(self)
        answer = super().tell(order)
        if happens is not None and self.late:
            happens(self)
        return answer


def _meddled(
    folder: Path, mode: str, verb: str, meddle: Callable[[Meddled], None], *, late: bool = False
) -> tuple[Run, list[FakeJob]]:
    run = Run(folder, mode)
    run.slurm = slurm = Meddled(run.clock, ["n1", "n2", "n3"])
    slurm.down = {"n3"}
    jobs = [slurm.submit("low", 60.0)]
    slurm.advance()
    run.clock.advance(2.0)
    jobs.append(slurm.submit("low", 60.0))
    slurm.advance()
    run.clock.advance(2.0)
    run.until(3.0)
    slurm.meddle, slurm.verb, slurm.late = meddle, verb, late
    jobs.append(slurm.submit("high", 20.0))
    run.until(170.0)
    return run, jobs


@pytest.mark.parametrize("mode", MODES)
def test_the_victim_has_just_ended_by_itself(tmp_path: Path, mode: str) -> None:
    """R7: it is not done again, and what wanted its place gets it."""

    def end(slurm: Meddled) -> None:
        for job in slurm.jobs.values():
            if job.number == victim:
                job.state = "COMPLETED"

    victim, verb = (2, "requeue") if mode == "requeue" else (1, "suspend")
    run, jobs = _meddled(tmp_path, mode, verb, end)
    assert [job.state for job in jobs] == ["COMPLETED"] * 3
    assert [job.restarts for job in jobs] == [0, 0, 0]
    run.hand_back()


def test_the_node_of_a_stopped_victim_fails_at_once(tmp_path: Path) -> None:
    """R6: the suspension never ends well; the urgent job goes elsewhere, the victim is not left held."""
    run, jobs = _meddled(tmp_path, "suspend", "suspend", lambda slurm: slurm.fail("n1"), late=True)
    assert [job.state for job in (jobs[1], jobs[2])] == ["COMPLETED"] * 2
    assert jobs[2].nodes == ["n2"]
    run.slurm.down.clear()
    run.until(200.0)
    assert (jobs[0].state, jobs[0].restarts) == ("COMPLETED", 1)
    run.hand_back()


def test_a_start_that_was_undone_before_it_was_seen(tmp_path: Path) -> None:
    """R6: it ran and was requeued between two looks; it starts elsewhere, not after the limit of starts."""
    run, jobs = _meddled(tmp_path, "requeue", "ReqNodeList=n2", lambda slurm: slurm.fail("n2"), late=True)
    urgent = jobs[2]
    assert (urgent.state, urgent.restarts, urgent.nodes) == ("COMPLETED", 1, ["n1"])
    taken_back = [
        each
        for each in run.slurm.orders
        if each.endswith("JobId=3 ReservationName= ReqNodeList= NumNodes=1-1")
    ]
    assert taken_back == []
    run.hand_back()


@pytest.mark.parametrize("ran", [False, True], ids=["it waited", "it ran"])
@pytest.mark.parametrize("dies", [False, True], ids=["one daemon", "then makeway dies"])
@pytest.mark.parametrize("noticed", [False, True], ids=["at once", "after it was seen to be gone"])
def test_slurm_gives_the_number_of_a_job_that_it_lost_to_another(
    tmp_path: Path, ran: bool, dies: bool, noticed: bool
) -> None:
    """slurm-live 4.2: what it took right before it was killed is lost. The other job starts as it asks for itself."""
    run = Run(tmp_path, "requeue")
    slurm = run.slurm
    slurm.down = {"n3"}
    first, second = slurm.submit("low", 60.0), slurm.submit("low", 60.0)
    third = slurm.submit("low", 20.0)
    run.until(5.0)
    assert [job.state for job in (first, second, third)] == ["RUNNING", "RUNNING", "PENDING"]
    lost = second if ran else third
    if noticed:
        del slurm.jobs[lost.number]
        run.until(2.0 * Settings(nodes="n1").full_look)
    other = FakeJob(lost.number, "low", 2, 30.0, run.clock.wall(), least=2, most=2)
    other.priority = 100_000 - other.number
    slurm.jobs[other.number] = other
    if dies:
        run.until(2.0 * Settings(nodes="n1").full_look)
        run.end()
    run.until(300.0)
    assert (other.state, other.nodes, other.restarts) == ("COMPLETED", ["n1", "n2"], 0)
    assert [job.state for job in slurm.jobs.values()] == ["COMPLETED"] * 3
    run.hand_back()


def test_the_lease_lasts_though_looks_are_rare(tmp_path: Path) -> None:
    """A site whose hooks nudge makeway looks once in some minutes; nothing else may start meanwhile."""
    run = Run(tmp_path, "requeue")
    run.settings = Settings(nodes="n[1-2]", poll=300.0, lease=60.0)
    run.until(400.0)
    assert [order for order in run.slurm.orders if "create reservation" in order] == run.slurm.orders[:1]
    assert len(run.slurm.orders) > 400.0 / 60.0
    run.hand_back()


class Timetable(FakeClock):
    """A clock at which things happen while something waits."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[tuple[float, Callable[[], None]]] = []

    def wait(self, until: float | None) -> None:
        """Let time pass."""
        super().wait(until)
        while self.due and self.due[0][0] <= self.now():
            self.due.pop(0)[1]()


@pytest.mark.parametrize("lasts", [0.5, 3.0, 100.0])
def test_a_hint_comes_while_the_job_is_completing(tmp_path: Path, lasts: float) -> None:
    """EpilogSlurmctld runs before the nodes are free, and nothing says when they are: looks follow, ever rarer ones."""
    run = Run(tmp_path, "requeue")
    run.clock = clock = Timetable()
    run.slurm = slurm = FakeSlurm(clock, ["n1"])
    hint = tmp_path / "nudge"
    run.settings = Settings(nodes="n1", poll=600.0, lease=1800.0, nudge=str(hint))
    first, second = slurm.submit("low", 10_000.0), slurm.submit("low", 20.0)

    def end() -> None:
        first.state = "COMPLETING"
        hint.touch()

    clock.due = [(10.0, end), (10.0 + lasts, lambda: setattr(first, "state", "COMPLETED"))]
    begin = clock.wall()
    run.until(250.0)
    assert (first.state, second.state) == ("COMPLETED", "COMPLETED")
    assert 10.0 + lasts <= second.started - begin < 10.0 + 2.0 * lasts + 2.0
    run.hand_back()


@pytest.mark.parametrize("starts", [False, True], ids=["it waits still", "it starts just then"])
def test_a_job_that_has_to_leave_before_it_was_seen_to_start(tmp_path: Path, starts: bool) -> None:
    """Its start is taken back; where Slurm was quicker, it is requeued. Never do two jobs want one node at once."""
    run = Run(tmp_path, "requeue")
    run.slurm = slurm = Meddled(run.clock, ["n1", "n2"])
    slurm.down = {"n2"}
    run.until(2.0)
    slurm.slow = 3.0
    first = slurm.submit("low", 20.0)
    run.until(2.0)
    assert "JobId=1 ReservationName=makeway ReqNodeList=n1" in slurm.orders[-1]
    assert first.state == "PENDING"
    if starts:
        slurm.meddle, slurm.verb = (
            lambda _: setattr(first, "begin", 0.0),
            "JobId=1 ReservationName= ReqNodeList=",
        )
    urgent = slurm.submit("high", 10.0)
    run.until(2.0)
    assert (first.state, first.restarts) == ("PENDING", 1 if starts else 0)
    run.until(60.0)
    assert [job.state for job in (first, urgent)] == ["COMPLETED"] * 2
    assert urgent.started < first.started
    run.hand_back()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_handed_back_at_any_moment(tmp_path: Path, mode: str) -> None:
    """Killed for good after any command: `release` leaves nothing behind, and all jobs complete under Slurm."""
    plain, _, _ = _played(tmp_path / "plain", mode, set())
    plain.end()
    for at in range(len(plain.slurm.orders)):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        run = Run(folder, mode)
        slurm = run.slurm
        jobs = [slurm.submit("low", 60.0), slurm.submit("low", 60.0)]
        slurm.down = {"n3"}
        slurm.advance()
        run.clock.advance(2.0)
        slurm.kill_at = {(at, "after")}
        jobs.append(slurm.submit("high", 20.0))
        try:
            run.begin()
            assert run.live is not None
            while run.clock.now() < 200.0:
                run.live.turn()
        except Killed:
            pass
        run.hand_back()
        assert slurm.leases == {}
        assert not [
            job for job in jobs if job.state == "SUSPENDED" or (job.state == "PENDING" and not job.priority)
        ]
        assert not [job for job in jobs if job.state == "PENDING" and (job.required or job.lease)]
        for _ in range(200):
            run.clock.advance(2.0)
            slurm.advance()
        assert {job.state for job in jobs} == {"COMPLETED"}, slurm.orders


# ---------------------------------------------------------------------------- heterogeneous jobs
def _het(folder: Path, mode: str, kills: set[tuple[int, str]]) -> tuple[Run, list[FakeJob], list[FakeJob]]:
    """An urgent heterogeneous job takes both nodes of two others, while n3 becomes free for one of its halves."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, mode)
    run.slurm = slurm = FakeSlurm(run.clock, ["n1", "n2", "n3", "n4"])
    slurm.down = {"n4"}
    victims = [slurm.submit("low", 20.0), slurm.submit("low", 20.0)]
    slurm.submit("low", 5.0)
    slurm.advance()
    run.clock.advance(2.0)
    slurm.kill_at = kills
    run.until(3.0)
    urgent = slurm.submit_het("high", 8.0, 2, excluded="n4")
    run.until(70.0)
    return run, urgent, victims


def _het_holds(run: Run, mode: str, urgent: list[FakeJob], victims: list[FakeJob]) -> None:
    assert [job.state for job in (*urgent, *victims)] == ["COMPLETED"] * 4
    assert sorted(job.nodes for job in urgent) == [["n1"], ["n2"]]
    assert [job.restarts for job in urgent] == [0, 0]
    assert [job.restarts for job in victims] == ([1, 1] if mode == "requeue" else [0, 0])
    run.hand_back()
    assert run.slurm.leases == {}


@pytest.mark.parametrize("mode", MODES)
def test_a_heterogeneous_job_displaces_and_starts_as_one(tmp_path: Path, mode: str) -> None:
    """Each component is bound first, the leader by all nodes but its own; then one call starts both."""
    run, urgent, victims = _het(tmp_path, mode, set())
    _het_holds(run, mode, urgent, victims)
    leader = urgent[0].nodes[0]
    others = fold_hostlist([name for name in run.slurm.node_names if name != leader])
    at = run.slurm.orders.index(f"scontrol update JobId=4+0 ExcNodeList={others}")
    assert run.slurm.orders[at + 1 : at + 3] == [
        f"scontrol update JobId=5 ReqNodeList={urgent[1].nodes[0]} NumNodes=1-1",
        "scontrol update JobId=4 ReservationName=makeway StartTime=now",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mode", MODES)
def test_death_between_the_calls_for_components(tmp_path: Path, mode: str, when: str) -> None:
    """No half ever starts, neither here nor on n3, and the job starts once."""
    plain, _, _ = _het(tmp_path / "plain", mode, set())
    plain.end()
    for at in range(len(plain.slurm.orders)):
        run, urgent, victims = _het(tmp_path / f"{at}", mode, {(at, when)})
        try:
            _het_holds(run, mode, urgent, victims)
        except AssertionError as error:
            raise AssertionError(f"killed {when} order {at}:\n" + "\n".join(run.slurm.orders)) from error


def _het_victim(folder: Path, kills: set[tuple[int, str]]) -> tuple[Run, list[FakeJob], FakeJob]:
    """A heterogeneous job that makeway started makes way, and starts again."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, "requeue")
    run.slurm = slurm = FakeSlurm(run.clock, ["n1", "n2", "n3", "n4"])
    slurm.down = {"n3", "n4"}
    slurm.kill_at = kills
    run.until(2.0)
    victim = slurm.submit_het("low", 15.0, 2, excluded="n[3-4]")
    run.until(8.0)
    urgent = slurm.submit("high", 5.0)
    run.until(60.0)
    return run, victim, urgent


def test_a_heterogeneous_job_makes_way_as_one(tmp_path: Path) -> None:
    """Its leader is told, once; both wait again, and its user's list of nodes is back before it starts again."""
    run, victim, urgent = _het_victim(tmp_path, set())
    assert [job.state for job in (*victim, urgent)] == ["COMPLETED"] * 3
    assert [job.restarts for job in victim] == [1, 1]
    orders = run.slurm.orders
    at = orders.index("scontrol requeue Incomplete 1")
    assert [each for each in orders if "requeue" in each] == [orders[at]]
    assert "scontrol update JobId=1+0 ExcNodeList=n[3-4]" in orders[at:]
    assert [each for each in orders if each.endswith("ReservationName=makeway StartTime=now")] == [
        "scontrol update JobId=1 ReservationName=makeway StartTime=now"
    ] * 2
    run.hand_back()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_death_while_a_heterogeneous_job_makes_way(tmp_path: Path, when: str) -> None:
    """Both components wait again, and start again together."""
    plain, _, _ = _het_victim(tmp_path / "plain", set())
    plain.end()
    for at in range(len(plain.slurm.orders)):
        run, victim, urgent = _het_victim(tmp_path / f"{at}", {(at, when)})
        told = f"killed {when} order {at}:\n" + "\n".join(run.slurm.orders)
        assert [job.state for job in (*victim, urgent)] == ["COMPLETED"] * 3, told
        assert [job.restarts for job in victim] == [1, 1], told
        run.hand_back()


@pytest.mark.slow
def test_components_are_handed_back_as_they_were(tmp_path: Path) -> None:
    """Killed for good at any command: a job that waits has the user's own list, and no nodes of makeway's."""
    plain, _, _ = _het_victim(tmp_path / "plain", set())
    plain.end()
    for at in range(len(plain.slurm.orders)):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        run = Run(folder, "requeue")
        run.slurm = slurm = FakeSlurm(run.clock, ["n1", "n2", "n3", "n4"])
        slurm.down = {"n3", "n4"}
        slurm.kill_at = {(at, "after")}
        parts: list[FakeJob] = []
        try:
            run.begin()
            assert run.live is not None
            parts = slurm.submit_het("low", 15.0, 2, excluded="n[3-4]")
            while run.clock.now() < 8.0:
                run.live.turn()
            slurm.submit("high", 5.0)
            while run.clock.now() < 50.0:
                run.live.turn()
        except Killed:
            pass
        run.hand_back()
        told = f"killed after order {at}:\n" + "\n".join(slurm.orders)
        assert slurm.leases == {}, told
        if parts and parts[0].state == "PENDING":
            assert [(job.excluded, job.required, job.lease) for job in parts] == [
                ("n[3-4]", "", ""),
                ("", "", ""),
            ], told
        for _ in range(100):
            run.clock.advance(3.0)
            slurm.advance()
        assert {job.state for job in slurm.jobs.values()} <= {"COMPLETED"}, told


def test_a_refused_component_takes_the_others_back(tmp_path: Path) -> None:
    """Slurm takes no node list for the second component: the first is as it was, and nothing has started."""

    class Refusing(FakeSlurm):
        def _update(self, name: str, options: dict[str, str]) -> str:
            if name == "2" and options.get("ReqNodeList"):
                return "Requested node configuration is not available"
            return super()._update(name, options)

    run = Run(tmp_path, "requeue")
    run.slurm = slurm = Refusing(run.clock, ["n1", "n2", "n3", "n4"])
    slurm.down = {"n3", "n4"}
    run.until(2.0)
    parts = slurm.submit_het("low", 30.0, 2, excluded="n[3-4]")
    run.until(5.0)
    assert [job.state for job in parts] == ["PENDING", "PENDING"]
    first = slurm.orders.index("scontrol update JobId=2 ReqNodeList=n2 NumNodes=1-1")
    assert slurm.orders[first + 1 : first + 3] == [
        "scontrol update JobId=1 ReservationName=",
        "scontrol update JobId=1+0 ExcNodeList=n[3-4]",
    ]
    assert not any("JobId=1 ReservationName=makeway" in order for order in slurm.orders)
    run.hand_back()
    assert [(job.excluded, job.required) for job in parts] == [("n[3-4]", ""), ("", "")]

"""The journal of a live run: what it keeps, what it says when it cannot, and runs that go on after a crash."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import (
    Config,
    JournalTable,
    NodeTable,
    PartitionTable,
    PolicyTable,
    SchedulerTable,
    build_cluster,
    dump_toml,
)
from makeway.errors import ConfigError, JournalError
from makeway.model import JobSpec, JobState
from makeway.readers.api import ReadOptions
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.worlds.api import Step
from makeway.worlds.events import (
    Action,
    Command,
    Event,
    Finished,
    Kill,
    NodesDown,
    Performed,
    Started,
    Submitted,
)
from makeway_app.replay import Options, replay
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_live import journal_file, journal_schema
from makeway_live.differences import differences
from makeway_live.journal import Journal
from makeway_live.journal_file import is_journal
from makeway_live.reader import JournalReader, commands_in
from makeway_live.recovery import perform_again, recover
from makeway_testing.command_line import Run

CONFIG = Config(
    node=(NodeTable(name="n[1-4]", cpus=4, sockets=1, cores_per_socket=4),),
    partition=(PartitionTable(name="low", default=True), PartitionTable(name="high", priority_tier=2)),
    policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("requeue",)),
    scheduler=SchedulerTable(type="easy"),
)
GANG = attrs.evolve(CONFIG, policy=attrs.evolve(CONFIG.policy, preempt_mode=("suspend", "gang")))
SPECS = tuple(
    JobSpec(
        id=str(at),
        submit_at=at * 7.0,
        run_time=20.0 + at % 5 * 9,
        time_limit=900.0,
        min_nodes=1 + at % 3,
        partitions=("high" if at % 4 == 3 else "low",),
    )
    for at in range(1, 15)
)


class Crash(Exception):  # noqa: N818  # no error, a test
    """The daemon is gone."""


class Daemon:
    """An engine, a journal and a world, joined as `makeway_live.drive` joins them, on the world's own time."""

    def __init__(
        self, config: Config, path: Path, world: SimulatedWorld, lines: list[Line] | None = None
    ) -> None:
        self.lines = lines if lines is not None else []
        self.journal = Journal(path)
        found = recover(config, self.journal, Recorder(build_cluster(config), self.lines.append, keep=False))
        self.engine, self.world = found.engine, world
        self.now = found.at
        perform_again(self.engine, world)
        self.step(self.now, differences(self.engine, world.survey()))

    def step(self, now: float, events: Sequence[Event], crash: str = "") -> None:
        """Let the engine decide, write, perform."""
        seen = len(self.lines)
        actions = self.engine.step(now, events)
        if crash == "before":
            raise Crash
        self.journal.write(
            Step(now=now, wall=1e9 + now, events=events, actions=actions, lines=self.lines[seen:])
        )
        if crash == "between":
            raise Crash
        self.world.perform(actions, now)
        if crash == "after":
            raise Crash

    def run(self, crash_at: int | None = None, crash: str = "") -> None:
        """Go on until nothing happens any more."""
        steps = 0
        while (moment := self.world.wait(self.engine.next_wake)) is not None:
            steps += 1
            self.now, events = moment
            self.step(self.now, events, crash if steps == crash_at else "")


@pytest.fixture(autouse=True)
def _journals_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what tests left open, as the end of their process would."""
    with ExitStack() as stack:

        def connect(path: Path, *, write: bool) -> sqlite3.Connection:
            return stack.enter_context(closing(journal_file.connect(path, write=write)))

        monkeypatch.setattr("makeway_live.journal.connect", connect)
        yield


def world_of(config: Config, specs: Sequence[JobSpec] = SPECS) -> SimulatedWorld:
    """Return the world in which the jobs run; it outlives daemons."""
    clockwork = Engine(config, Recorder(build_cluster(config)), Policies(config)).clockwork
    return SimulatedWorld(specs, clockwork)


def kill(daemon: Daemon) -> None:
    """Leave everything as kill -9 does."""
    daemon.journal._database.close()


def ends(path: Path) -> dict[str, str]:
    """Return how each job ended, by the journal."""
    with closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT id, state FROM jobs WHERE ended_at IS NOT NULL ORDER BY place"))


# ------------------------------------------------------------------------------------- recovery
@pytest.mark.parametrize("config", [CONFIG, GANG], ids=["requeue", "gang"])
@pytest.mark.parametrize("crash", ["between", "after"])
def test_a_run_survives_a_crash_at_any_step(tmp_path: Path, config: Config, crash: str) -> None:
    """Whether or not the actions were performed: every job ends once, as it would have, none is lost."""
    world = world_of(config)
    steps = 0
    path = tmp_path / "journal.db"
    daemon = Daemon(config, path, world)
    for _ in range(500):
        steps += 1
        try:
            daemon.run(1 + steps % 3, crash)
            break
        except Crash:
            kill(daemon)
            daemon = Daemon(config, path, world)
    daemon.journal.close()
    assert steps > 10
    assert ends(path) == {spec.id: "COMPLETED" for spec in SPECS}
    with closing(sqlite3.connect(path)) as database:
        serials = [row[0] for row in database.execute("SELECT serial FROM actions ORDER BY serial")]
        started = database.execute(
            "SELECT job, json_extract(action, '$.incarnation') FROM actions"
            " WHERE json_extract(action, '$.action') = 'Start'"
        ).fetchall()
    assert len(serials) == len(set(serials))
    assert len(started) == len(set(started)), "no incarnation is started twice"


@pytest.mark.parametrize("config", [CONFIG, GANG], ids=["requeue", "gang"])
def test_a_daemon_that_ended_well_goes_on_exactly(tmp_path: Path, config: Config) -> None:
    """Closed and opened again after every few steps, the run leaves the record of one that was never stopped."""
    plain: list[Line] = []
    Daemon(config, tmp_path / "plain.db", world_of(config), plain).run()
    world, lines = world_of(config), list[Line]()
    for _ in range(500):
        daemon = Daemon(config, tmp_path / "journal.db", world, lines)
        try:
            daemon.run(3, "after")
            break
        except Crash:
            daemon.journal.close()
    wanted = [line.as_dict() for line in plain if line.kind in ("state", "preempt")]
    assert [line.as_dict() for line in lines if line.kind in ("state", "preempt")] == wanted


def test_a_step_that_was_not_written_was_not_made(tmp_path: Path) -> None:
    """A crash before the transaction: the world still has the events, or shows what is there."""
    world, path = world_of(CONFIG, SPECS[:1]), tmp_path / "journal.db"
    daemon = Daemon(CONFIG, path, world)
    with pytest.raises(Crash):
        daemon.run(1, "before")
    kill(daemon)
    again = Daemon(CONFIG, path, world)
    assert not again.engine.ledger.jobs
    again.engine.step(8.0, [Submitted(SPECS[0])])
    assert [job.id for job in again.engine.ledger.active] == ["1"]


def test_another_configuration_adopts_what_there_is(tmp_path: Path) -> None:
    """Jobs go on under another policy; one that has lost its partition is named, and the journal stays as it was."""
    path, world = tmp_path / "journal.db", world_of(CONFIG)
    daemon = Daemon(CONFIG, path, world)
    with pytest.raises(Crash):
        daemon.run(6, "after")
    kill(daemon)
    fewer = attrs.evolve(CONFIG, partition=CONFIG.partition[1:])
    with pytest.raises(ConfigError, match="no partition named 'low'"):
        Daemon(fewer, path, world)
    other = attrs.evolve(CONFIG, policy=PolicyTable(preempt="preempt/none", select="select/cons_tres"))
    Daemon(other, path, world).run()
    assert ends(path) == {spec.id: "COMPLETED" for spec in SPECS}


def test_the_clock_goes_on_while_no_daemon_runs(tmp_path: Path) -> None:
    """By the wall clock."""
    daemon = Daemon(CONFIG, tmp_path / "journal.db", world_of(CONFIG))
    daemon.step(50.0, [])
    assert daemon.journal.clock_at(1e9 + 80.0) == 80.0
    assert daemon.journal.clock_at(1e9 + 10.0) == 50.0


@pytest.mark.parametrize("jump", [5 * 3600.0, -5 * 3600.0, 0.0])
def test_a_clock_that_is_set_between_two_daemons_moves_no_limit(tmp_path: Path, jump: float) -> None:
    """Within one boot the clock that cannot be set counts; after another one only the wall clock is left."""
    daemon = Daemon(CONFIG, tmp_path / "journal.db", world_of(CONFIG))
    step = Step(now=50.0, wall=1e9 + 50.0, events=(), actions=(), lines=(), uptime=("this", 700.0))
    daemon.journal.write(step)
    assert daemon.journal.clock_at(1e9 + 53.0 + jump, ("this", 703.0)) == 53.0
    assert daemon.journal.clock_at(1e9 + 53.0 + jump, ("another", 3.0)) == 50.0 + max(0.0, 3.0 + jump)
    assert daemon.journal.zero() == 1e9


def test_a_job_refused_at_submission_is_written_down(tmp_path: Path) -> None:
    """It was never live after any step."""
    path = tmp_path / "journal.db"
    daemon = Daemon(CONFIG, path, world_of(CONFIG, ()))
    daemon.step(1.0, [Submitted(JobSpec(id="big", submit_at=1.0, min_nodes=99))])
    daemon.journal.close()
    assert ends(path) == {"big": "REFUSED"}


# ---------------------------------------------------------------------------------- compaction
def test_older_entries_are_dropped_by_age_and_count(tmp_path: Path) -> None:
    """Steps first; of jobs the request and the end stay for longer."""
    path = tmp_path / "journal.db"
    daemon = Daemon(CONFIG, path, world_of(CONFIG))
    daemon.run()
    steps, journal = daemon.journal.step, daemon.journal
    journal._table = JournalTable(keep_steps=5)
    assert journal.compact(daemon.now) == (steps - 5, 0)
    journal._table = JournalTable(keep_jobs=4)
    assert journal.compact(daemon.now) == (0, len(SPECS) - 4)
    journal._table = JournalTable(keep_steps_for=0.0, keep_jobs_for=0.0)
    dropped = journal.compact(daemon.now + 1.0)
    assert dropped == (4, 4)
    assert journal.clock_at(1e9 + daemon.now) == daemon.now, "the last step tells the time"
    journal.close()


# ------------------------------------------------------------------------------ earlier versions
_VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (step INTEGER PRIMARY KEY, at REAL NOT NULL, wall REAL NOT NULL, events TEXT NOT NULL);
CREATE TABLE actions (
  serial INTEGER PRIMARY KEY, step INTEGER NOT NULL, job TEXT NOT NULL, action TEXT NOT NULL
);
CREATE INDEX actions_step ON actions (step);
CREATE TABLE lines (
  step INTEGER NOT NULL, place INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, job TEXT NOT NULL,
  data TEXT NOT NULL, PRIMARY KEY (step, place)
) WITHOUT ROWID;
CREATE INDEX lines_job ON lines (job);
CREATE TABLE jobs (
  id TEXT PRIMARY KEY, place INTEGER NOT NULL, spec TEXT NOT NULL, standing TEXT, state TEXT NOT NULL,
  submitted_at REAL NOT NULL, ended_at REAL, worked REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_live ON jobs (place) WHERE standing IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE memory (part TEXT PRIMARY KEY, step INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE configs (step INTEGER NOT NULL, at REAL NOT NULL, config TEXT NOT NULL);
INSERT INTO steps VALUES (1, 5.0, 1000000005.0,
  '[{"event":"Submitted","job":"7"},{"event":"Command","name":"hold","job_id":"7"}]');
INSERT INTO jobs VALUES ('7', 1, '{"id":"7","submit_at":5.0,"run_time":30.0}',
  '{"index":1,"state":"RUNNING","started_at":5.0,"starts":1,"allocation":{"nodes":"n2"}}', 'RUNNING', 5.0, NULL, 0);
INSERT INTO actions VALUES (1, 1, '7', '{"action":"Start","job":"7","serial":1,"incarnation":1}');
"""


def old_journal(path: Path) -> Path:
    """Write a journal as the first version did."""
    with sqlite3.connect(path) as database:
        database.executescript(_VERSION_1)
        database.execute(f"PRAGMA application_id = {journal_schema.APPLICATION}")
        database.execute("PRAGMA user_version = 1")
    database.close()
    return path


def test_a_journal_of_the_version_before_opens(tmp_path: Path) -> None:
    """Its jobs go on, and what people did stands in a table of its own."""
    journal = Journal(old_journal(tmp_path / "journal.db"))
    engine = recover(CONFIG, journal).engine
    assert [(job.id, job.nodes) for job in engine.ledger.active] == [("7", 0b10)]
    engine.step(35.0, [Finished("7", JobState.COMPLETED, cleaned=True, incarnation=1)])
    with closing(sqlite3.connect(journal.path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (journal_schema.VERSION,)
        assert database.execute("SELECT step, at FROM commands").fetchall() == [(1, 5.0)]
    journal.close()


def test_every_version_has_a_way_to_the_next() -> None:
    """And a fresh journal has the same tables as one that was brought up to date."""
    assert sorted(journal_schema.MIGRATIONS) == list(range(1, journal_schema.VERSION))


def test_old_and_new_journals_have_the_same_tables(tmp_path: Path) -> None:
    """Column by column."""
    Journal(old_journal(tmp_path / "old.db")).close()
    Journal(tmp_path / "new.db").close()

    def columns(name: str) -> dict[str, set[str]]:
        with closing(sqlite3.connect(tmp_path / name)) as database:
            tables = [
                row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            ]
            return {
                each: {row[1] for row in database.execute(f"PRAGMA table_info({each})")} for each in tables
            }

    assert columns("old.db") == columns("new.db")


def test_a_journal_of_a_later_makeway_is_left_alone(tmp_path: Path) -> None:
    """It says which version it is."""
    path = old_journal(tmp_path / "journal.db")
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"written by a later makeway .version 99"):
        Journal(path)
    assert path.read_bytes() == before


# ------------------------------------------------------------------------------------- mishaps
def written(path: Path) -> Daemon:
    """Return a daemon with some steps behind it."""
    daemon = Daemon(CONFIG, path, world_of(CONFIG))
    with pytest.raises(Crash):
        daemon.run(8, "after")
    return daemon


def test_steps_go_to_the_disk_at_once_unless_the_world_can_tell_them_again(tmp_path: Path) -> None:
    """Starts that were intended and have come about may wait for the next step; nothing else may."""
    daemon = written(tmp_path / "journal.db")
    job, level = next(iter(daemon.engine.ledger.jobs.values())), 2  # FULL
    cases: tuple[tuple[Sequence[Event], tuple[Action, ...], int], ...] = (
        ([Started("1")], (), level - 1),
        ([Performed(1)], (), level - 1),
        ([Started("1"), Finished("2", JobState.COMPLETED)], (), level),
        ([Command("hold", "3")], (), level),
        ([Submitted(JobSpec(id="new"))], (), level),
        ([Started("1")], (Kill(job, "test", serial=10_000),), level),
    )
    for events, actions, expected in cases:
        daemon.journal.write(Step(now=daemon.now, wall=0.0, events=events, actions=actions, lines=()))
        assert daemon.journal._database.execute("PRAGMA synchronous").fetchone() == (expected,), events


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """The step is refused, what was stored is there, and once there is room the same step is written."""
    daemon = written(tmp_path / "journal.db")
    database, step = daemon.journal._database, daemon.journal.step
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    big = JobSpec(id="big", submit_at=daemon.now, attributes={"text": "x" * 200_000})
    events = [Submitted(big)]
    actions = daemon.engine.step(daemon.now, events)
    refused = Step(now=daemon.now, wall=0.0, events=events, actions=actions, lines=())
    with pytest.raises(
        JournalError, match="the disk is full; what it holds already is kept, free some space on"
    ):
        daemon.journal.write(refused)
    assert daemon.journal.step == step
    assert database.execute("SELECT max(step) FROM steps").fetchone() == (step,)
    database.execute("PRAGMA max_page_count = 1000000")
    daemon.journal.write(refused)
    assert database.execute("SELECT count(*) FROM jobs WHERE id = 'big'").fetchone() == (1,)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_file_is_named(tmp_path: Path) -> None:
    """With what to do."""
    path = tmp_path / "journal.db"
    written(path).journal.close()
    path.chmod(0o400)
    with pytest.raises(
        JournalError, match="read-only; what it holds already is kept, allow this user to write"
    ):
        Journal(path)


def test_a_file_that_became_read_only_refuses_steps(tmp_path: Path) -> None:
    """As a file system does that was remounted."""
    daemon = written(tmp_path / "journal.db")
    daemon.journal._database.execute("PRAGMA query_only = ON")
    step = Step(now=daemon.now, wall=0.0, events=(), actions=(), lines=())
    with pytest.raises(JournalError, match="is read-only; what it holds already is kept"):
        daemon.journal.write(step)


def test_a_locked_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some patience; then the step can be written."""
    monkeypatch.setattr("makeway_live.journal_file.PATIENCE", 0.05)
    daemon = written(tmp_path / "journal.db")
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    step = Step(now=daemon.now, wall=0.0, events=(), actions=(), lines=())
    with pytest.raises(JournalError, match="another process has locked it for more than"):
        daemon.journal.write(step)
    other.execute("ROLLBACK")
    other.close()
    daemon.journal.write(step)


def test_a_damaged_page_is_found_when_the_file_is_opened(tmp_path: Path) -> None:
    """Nothing is changed; the way to save what can be read is named."""
    path = tmp_path / "journal.db"
    written(path).journal.close()
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 8] = b"\xa5" * (4096 * 6)
    path.write_bytes(data)
    with pytest.raises(JournalError, match=r"damaged .*nothing was changed: .*\.recover"):
        Journal(path)
    assert path.read_bytes() == bytes(data)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"hello, world\n" * 100, "it is no journal: another kind of file", id="text"),
        pytest.param(None, "it is a database, but no journal of makeway", id="another database"),
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, content: bytes | None, problem: str) -> None:
    """It is not taken for a new journal."""
    path = tmp_path / "journal.db"
    if content is None:
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE mine (x)")
        database.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=problem):
        Journal(path)
    assert path.read_bytes() == before


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    """SQLite says only that it cannot open the file."""
    with pytest.raises(JournalError, match="cannot be opened; see whether its directory is there"):
        Journal(tmp_path / "nowhere" / "journal.db")


def test_steps_need_an_engine(tmp_path: Path) -> None:
    """A journal that follows none has no jobs to write."""
    journal = Journal(tmp_path / "journal.db")
    with pytest.raises(JournalError, match="no engine is followed"):
        journal.write(
            Step(now=0.0, wall=0.0, events=(NodesDown(1), Command("hold", "1")), actions=(), lines=())
        )


def test_jobs_that_could_not_be_written_at_first_are_written_later(tmp_path: Path) -> None:
    """The journal did not take over a running engine; the steps that follow make up for it."""
    engine = Engine(CONFIG, Recorder(build_cluster(CONFIG), keep=False), Policies(CONFIG))
    engine.step(100.0, [Submitted(spec) for spec in SPECS[:3]])
    journal = Journal(tmp_path / "journal.db")
    journal._database.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON jobs WHEN NEW.id = '2' BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(JournalError, match="full"):
        journal.follow(engine)
    journal._database.execute("DROP TRIGGER full")
    journal.write(Step(now=100.0, wall=0.0, events=(), actions=(), lines=()))
    journal.close()
    state = Journal(tmp_path / "journal.db").state()
    assert state is not None
    assert {each.spec.id for each in state.jobs} == {"1", "2", "3"}


def test_a_new_journal_is_known_as_one_while_a_daemon_writes(tmp_path: Path) -> None:
    """Its mark is in the file from the beginning, not only in the write-ahead log."""
    path = tmp_path / "journal.db"
    journal = Journal(path)
    try:
        assert is_journal(path)
    finally:
        journal.close()


def test_a_copy_of_the_file_is_a_journal(tmp_path: Path) -> None:
    """Once it was closed: nothing is left in files beside it."""
    path = tmp_path / "journal.db"
    written(path).journal.close()
    shutil.copy(path, tmp_path / "copy.db")
    copied = Journal(tmp_path / "copy.db").state()
    here: Any = Journal(path).state()
    assert copied == here


# ---------------------------------------------------------------------------------- a workload
def test_a_journal_is_a_workload(tmp_path: Path) -> None:
    """The same submissions under the same configuration: the same decisions; what people did is part of it."""
    path, lines = tmp_path / "journal.db", list[Line]()
    clockwork = world_of(CONFIG)._clockwork
    held: list[tuple[float, Event]] = [
        (30.0, Command("hold", "9")),
        (90.0, Command("release", "9")),
        (40.0, NodesDown(0b1000)),
    ]
    world = SimulatedWorld(SPECS, clockwork, held)
    daemon = Daemon(CONFIG, path, world, lines)
    daemon.run()
    daemon.journal.close()
    workload = JournalReader().read(path, ReadOptions(config=CONFIG))
    again: list[Line] = []
    replay(CONFIG, workload.jobs, commands_in(path, build_cluster(CONFIG)), Options(sink=again.append))
    kinds = ("state", "preempt")
    wanted = [line.as_dict() for line in lines if line.kind in kinds]
    assert [line.as_dict() for line in again if line.kind in kinds] == wanted


def test_how_long_jobs_ran_is_their_work(tmp_path: Path) -> None:
    """Where nothing said it before: up to the end that the world reported, suspensions left out."""
    path = tmp_path / "journal.db"
    daemon = Daemon(GANG, path, world_of(GANG, ()))
    daemon.step(0.0, [Submitted(JobSpec(id="low", time_limit=900.0, min_nodes=4))])
    daemon.step(10.0, [Submitted(JobSpec(id="high", submit_at=10.0, time_limit=900.0, partitions=("high",)))])
    daemon.step(40.0, [Finished("high", JobState.FAILED, cleaned=True)])
    daemon.step(60.0, [Finished("low", JobState.COMPLETED, cleaned=True)])
    daemon.step(70.0, [Submitted(JobSpec(id="stays", submit_at=70.0, time_limit=50.0))])
    daemon.journal.close()
    workload = JournalReader().read(path, ReadOptions(config=GANG))
    found = {
        spec.id: (spec.submit_at, spec.run_time, spec.attributes.get("ends_as")) for spec in workload.jobs
    }
    assert found == {"low": (0.0, 30.0, None), "high": (10.0, 30.0, "FAILED"), "stays": (70.0, None, None)}
    assert workload.notes == [
        "1 job has not ended yet; it runs on until its time limit, or to the end of the replay without one"
    ]


def test_a_job_without_a_limit_that_still_runs_is_not_cut(tmp_path: Path) -> None:
    """It runs since 0 and has not ended: what comes at 10 s displaces it in the replay as in the run."""
    path = tmp_path / "journal.db"
    daemon = Daemon(GANG, path, world_of(GANG, ()))
    daemon.step(0.0, [Submitted(JobSpec(id="low", min_nodes=4))])
    daemon.step(10.0, [Submitted(JobSpec(id="high", submit_at=10.0, time_limit=900.0, partitions=("high",)))])
    daemon.step(40.0, [Finished("high", JobState.COMPLETED, cleaned=True)])
    daemon.journal.close()
    workload = JournalReader().read(path, ReadOptions(config=GANG))
    run = replay(GANG, workload.jobs, commands_in(path, build_cluster(GANG)))
    assert [(each.at, each.victim) for each in run.recorder.preemptions] == [(10.0, "low")]
    assert run.recorder.histories["low"].state is JobState.RUNNING
    assert run.recorder.histories["low"].final_state is None


def test_a_job_that_was_cancelled_while_it_waited_displaces_no_other(tmp_path: Path) -> None:
    """It was cancelled at 20 s; under a policy that would start it at once, it waits until then as well."""
    path = tmp_path / "journal.db"
    daemon = Daemon(GANG, path, world_of(GANG, ()))
    daemon.step(0.0, [Submitted(JobSpec(id="low", min_nodes=4, time_limit=900.0))])
    daemon.step(10.0, [Submitted(JobSpec(id="later", submit_at=10.0, time_limit=90.0, min_nodes=4))])
    daemon.step(20.0, [Command("cancel", "later")])
    daemon.step(60.0, [Finished("low", JobState.COMPLETED, cleaned=True)])
    daemon.journal.close()
    workload = JournalReader().read(path, ReadOptions(config=GANG))
    run = replay(GANG, workload.jobs, commands_in(path, build_cluster(GANG)))
    later = run.recorder.histories["later"]
    assert (later.first_start, later.ended_at, later.final_state) == (None, 20.0, JobState.CANCELLED)
    assert run.recorder.refusals == []


@pytest.mark.parametrize("command", ["replay", "explain"])
def test_commands_read_journals(run: Run, tmp_path: Path, command: str) -> None:
    """By their mark, whatever they are called."""
    path, config = tmp_path / "yesterday", tmp_path / "site.toml"
    daemon = Daemon(CONFIG, path, world_of(CONFIG))
    daemon.run()
    daemon.journal.close()
    config.write_text(dump_toml(CONFIG))
    asked = ("--compare", "policy.preempt=preempt/none") if command == "replay" else ("--job", "3")
    done = run(command, config, path, *asked)
    assert done.status == 0, done.err
    assert "preempt/none" in done.out if command == "replay" else "job 3" in done.out


def test_a_damaged_journal_is_no_traceback(run: Run, tmp_path: Path) -> None:
    """One line with what helps."""
    path, config = tmp_path / "journal.db", tmp_path / "site.toml"
    written(path).journal.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    config.write_text(dump_toml(CONFIG))
    done = run("replay", config, path)
    assert done.status not in (0, 3)
    assert "damaged" in done.err


def test_an_error_of_the_disk_on_a_full_one_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite maps a file into memory; where that finds no room, it speaks of an error of the disk."""
    found = sqlite3.OperationalError("disk I/O error")
    found.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"  # type: ignore[attr-defined, unused-ignore]
    path = tmp_path / "journal.db"

    def told(room: int) -> str:
        real = os.statvfs(tmp_path)
        fields = (*real[:4], room, *real[5:])
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
        try:
            with pytest.raises(JournalError) as caught, journal_file.telling(path):
                raise found
        finally:
            monkeypatch.undo()
        return str(caught.value)

    assert f"{path}: the disk is full" in told(0)
    assert "the disk does not do what it is told (disk I/O error)" in told(1 << 20)

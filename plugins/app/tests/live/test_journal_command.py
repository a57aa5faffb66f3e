"""``makeway journal``: what a journal holds, and what is dropped from it by hand."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import attrs
import pytest

from makeway.config import (
    Config,
    JournalTable,
    NodeTable,
    PartitionTable,
    PolicyTable,
    build_cluster,
)
from makeway.model import JobSpec
from makeway.record import Line, Recorder
from makeway.registry import Policies
from makeway.worlds.api import Step
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_live import journal_schema
from makeway_live.journal import Journal
from makeway_testing.command_line import Run

CONFIG = Config(
    node=(NodeTable(name="n1", cpus=4),),
    partition=(PartitionTable(name="low", default=True), PartitionTable(name="high", priority_tier=2)),
    policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("cancel",)),
)
FIRST_WALL = 1e9
"""Unix time of the first step: long ago."""
YOUNG = ("--keep-steps-for", "1e12", "--keep-jobs-for", "1e12")
"""Nothing is too old."""
JOBS = (
    JobSpec(id="1", submit_at=0.0, run_time=500.0, min_nodes=1, partitions=("low",)),
    JobSpec(id="2", submit_at=10.0, run_time=20.0, min_nodes=1, partitions=("high",)),
    JobSpec(id="3", submit_at=60.0, run_time=1000.0, min_nodes=1, partitions=("low",)),
)


def written(path: Path, config: Config = CONFIG) -> Journal:
    """Return a journal: job 2 displaced job 1 and is done, job 3 runs."""
    lines: list[Line] = []
    journal = Journal(path, config.world.journal)
    engine = Engine(config, Recorder(build_cluster(config), lines.append, keep=False), Policies(config))
    journal.follow(engine)
    world = SimulatedWorld(JOBS, engine.clockwork)
    while (moment := world.wait(engine.next_wake)) is not None and moment[0] < 100.0:
        now, events = moment
        seen = len(lines)
        actions = engine.step(now, events)
        journal.write(
            Step(now=now, wall=FIRST_WALL + now, events=events, actions=actions, lines=lines[seen:])
        )
        world.perform(actions, now)
    return journal


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    written(path).close()
    return path


def _steps(path: Path) -> list[int]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT step FROM steps ORDER BY step")]


# ------------------------------------------------------------------------------------------- show
def test_it_says_what_a_journal_holds(run: Run, journal: Path) -> None:
    done = run("journal", "show", journal)
    assert done.status == 0
    head, *rest = done.out.splitlines()
    assert head.startswith(f"{journal}: ")
    assert f"policy: {CONFIG.policy.select}, preempt/partition_prio (cancel)" in rest
    assert (
        "jobs: 1 CANCELLED, 1 COMPLETED, 1 RUNNING" in rest
        or "jobs: 1 COMPLETED, 1 PREEMPTED, 1 RUNNING" in rest
    )
    assert any("job 1 preempt" in line and "preemptor=2" in line for line in rest)


def test_lines_about_one_job(run: Run, journal: Path) -> None:
    """Those in which it displaced another are about it, too."""
    told = json.loads(run("journal", "show", journal, "--job", "2", "--json").out)["lines"]
    assert {line["job"] for line in told} == {"1", "2"}
    assert [line["kind"] for line in told if line["job"] == "1"] == ["preempt"]
    assert told[-1]["state"] == "COMPLETED"
    assert FIRST_WALL + 10.0 <= told[-1]["at"] <= FIRST_WALL + 60.0
    only = run("journal", "show", journal, "--last", "1").out.splitlines()
    none = run("journal", "show", journal, "--last", "0").out.splitlines()
    assert only[:-1] == none


def test_a_journal_that_is_being_written_can_be_shown(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    writer = written(path)
    first = json.loads(run("journal", "show", path, "--json").out)
    writer.write(Step(now=200.0, wall=FIRST_WALL + 200.0, events=(), actions=(), lines=()))
    then = json.loads(run("journal", "show", path, "--json").out)
    assert then["last_step"] == first["last_step"] + 1
    assert then["last_at"] == FIRST_WALL + 200.0
    writer.close()


def test_a_journal_in_which_nothing_was_written(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Journal(path).close()
    assert run("journal", "show", path).out.splitlines()[-1] == "nothing was ever written"
    assert run("journal", "compact", path).out.startswith("dropped 0 steps and 0 jobs")


@pytest.mark.parametrize("command", ["show", "compact"])
def test_what_is_no_journal_is_refused(run: Run, tmp_path: Path, command: str) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database, only words\n" * 100)
    before = text.read_bytes()
    for path, why in ((text, "no journal"), (tmp_path / "none.db", "no such file")):
        done = run("journal", command, path)
        assert done.status != 0
        assert str(path) in done.err
        assert why in done.err
        assert "Traceback" not in done.err
    assert text.read_bytes() == before
    assert not (tmp_path / "none.db").exists()


# ---------------------------------------------------------------------------------------- compact
def test_old_steps_and_jobs_are_dropped(run: Run, journal: Path) -> None:
    """The job that runs stays; the journal goes on afterwards."""
    steps = _steps(journal)
    tried = run("journal", "compact", journal, "--keep-steps", "2", "--keep-jobs", "1", *YOUNG, "--dry-run")
    assert tried.status == 0, tried.err
    assert tried.out == f"would drop {len(steps) - 2} steps and 1 job\n"
    assert _steps(journal) == steps
    done = run("journal", "compact", journal, "--keep-steps", "2", "--keep-jobs", "1", *YOUNG)
    assert done.out.splitlines()[0] == f"dropped {len(steps) - 2} steps and 1 job"
    assert _steps(journal) == steps[-2:]
    again = Journal(journal)
    assert again.step == steps[-1]
    state = again.state()
    assert state is not None
    assert [job.spec.id for job in state.jobs] == ["3"]
    again.close()


def test_the_rule_is_that_of_the_configuration_in_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    rule = JournalTable(keep_steps=3, keep_jobs_for=1e12, keep_steps_for=1e12, compact_every=0.0)
    config = attrs.evolve(CONFIG, world=attrs.evolve(CONFIG.world, journal=rule))
    written(path, config).close()
    steps = _steps(path)
    assert run("journal", "compact", path).out.startswith(f"dropped {len(steps) - 3} steps and 0 jobs\n")
    assert _steps(path) == steps[-3:]


def test_a_journal_in_use_is_not_compacted(run: Run, tmp_path: Path) -> None:
    """Neither while it is written nor while it is read."""
    path = tmp_path / "journal.db"
    writer = written(path)
    steps = writer.step
    done = run("journal", "compact", path, "--keep-steps", "1")
    assert done.status != 0
    assert f"{path}: it is in use" in done.err
    writer.write(Step(now=200.0, wall=FIRST_WALL + 200.0, events=(), actions=(), lines=()))
    writer.close()
    assert len(_steps(path)) == steps + 1


def test_a_journal_of_an_earlier_version_is_brought_up_to_date(run: Run, journal: Path) -> None:
    with contextlib.closing(sqlite3.connect(journal, isolation_level=None)) as database:
        database.execute("DROP TABLE commands")
        database.execute("DROP INDEX actions_open")
        database.execute("ALTER TABLE actions DROP COLUMN open")
        database.execute("ALTER TABLE jobs DROP COLUMN lost")
        database.execute("PRAGMA user_version = 1")
    assert "version 1" in run("journal", "show", journal).out
    assert run("journal", "compact", journal, "--dry-run").status == 0
    assert "version 1" in run("journal", "show", journal).out
    assert run("journal", "compact", journal).status == 0
    assert f"version {journal_schema.VERSION}" in run("journal", "show", journal).out


def test_an_option_that_makes_no_sense(run: Run, journal: Path) -> None:
    before = journal.read_bytes()
    done = run("journal", "compact", journal, "--keep-steps", "0")
    assert done.status == 2
    assert "--keep-steps" in done.err
    assert journal.read_bytes() == before

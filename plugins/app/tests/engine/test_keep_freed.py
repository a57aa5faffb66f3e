"""What victims leave is kept for the job that they leave for, if ``keep_freed`` says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway.hookspecs import hookimpl
from makeway.model import Candidates, ClusterView, Job, PreemptMode
from makeway.vendors import clockworks
from makeway_app.cli import cli
from makeway_testing import TableRun, cluster, replay_table

TABLE = """
job  submit  nodes  run_time  user  priority
a         0      1       100  ann       100
b         1      1       100  ann       100
c         2      1       100  ann       100
h        10      1        10  eve        50
"""


class Quota:
    """A user with more than two jobs may lose the youngest."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, view: ClusterView) -> Candidates:
        """Name one for each user."""
        usage = view.usage("user")
        youngest = {
            job.user: job for job in sorted(view.active, key=lambda job: (job.started_at or 0.0, job.index))
        }
        over = [job for user, job in youngest.items() if usage[user].jobs > 2 and user != preemptor.user]
        return Candidates(jobs=tuple(over), modes=(PreemptMode.REQUEUE,) * len(over))


def played(scheduler: str, table: str, **clocks: Any) -> TableRun:
    """Replay ann's jobs, three of which run, one more than her quota, and one of eve's, on three nodes."""
    return replay_table(
        table,
        cluster=cluster(3, cpus=1),
        config={"preempt": "mine", "scheduler": scheduler, "clockwork": clocks},
        plugins={"mine": Quota()},
    )


WAITS = "w         5      1        30  ann       100\n"


@pytest.mark.parametrize("scheduler", ["backfill", "greedy"])
def test_the_preemptor_gets_what_was_freed(scheduler: str) -> None:
    """Though w stands before it: h runs from 10 to 20 s, then w, then c, which made way once."""
    run = played(scheduler, TABLE + WAITS)
    assert run.victims == ("c",)
    assert (run.starts("h"), run.starts("w"), run.starts("c")) == ((10.0,), (20.0,), (2.0, 50.0))


@pytest.mark.parametrize("scheduler", ["backfill", "greedy"])
def test_without_it_who_stands_first_takes_it(scheduler: str) -> None:
    """w takes what c left for h, and has to make way in the very second."""
    run = played(scheduler, TABLE + WAITS, keep_freed=False)
    assert run.victims[:2] == ("c", "w")


def test_nodes_are_kept_while_a_victim_takes_its_time() -> None:
    """Leaving takes 5 s: a short job that comes meanwhile does not slip in, and h starts at 15 s."""
    table = TABLE + "s        12      1         2  bob  200\n"
    run = replay_table(
        table,
        cluster=cluster(3, cpus=1),
        config={"preempt": "mine", "scheduler": "greedy", "clockwork": {"completing_time": 5.0}},
        plugins={"mine": Quota()},
    )
    assert run.starts("h") == (15.0,)
    assert run.starts("s")[0] > 15.0


def test_a_preemptor_that_is_cancelled_keeps_nothing() -> None:
    """Its nodes are open to all at once: s starts when the victim has left."""
    table = TABLE + "s        12      1         2  bob  200\n"
    run = replay_table(
        table,
        cluster=cluster(3, cpus=1),
        config={
            "preempt": "mine",
            "scheduler": "greedy",
            "clockwork": {"completing_time": 5.0, "requeue_delay": 50.0},
        },
        commands="13 cancel h",
        plugins={"mine": Quota()},
    )
    assert run.starts("h") == ()
    assert run.starts("s") == (15.0,)


def test_slurm_s_preset_keeps_nothing() -> None:
    """There the job that stands first takes it."""
    assert clockworks()["ideal"].keep_freed
    assert not clockworks()["slurm"].keep_freed


def test_victims_that_had_just_started_are_counted() -> None:
    """c had run for 8 s at 10 s; w, which took its node, for none."""
    kept = played("greedy", TABLE + WAITS).run.summary()["metrics"]
    assert "young_victims" not in kept
    taken = played("greedy", TABLE + WAITS, keep_freed=False).run.summary()["metrics"]
    assert taken["young_victims"] >= 1


def test_the_summary_warns_of_them(tmp_path: Path) -> None:
    """With counts, the age, and what helps."""
    site = tmp_path / "site.toml"
    site.write_text(
        '[[node]]\nname = "n1"\n[[partition]]\nname = "low"\ndefault = true\n'
        '[[partition]]\nname = "hi"\npriority_tier = 2\n'
        '[policy]\npreempt = "preempt/partition_prio"\npreempt_mode = ["requeue"]\n'
        '[scheduler]\nclockwork = {preset = "ideal", keep_freed = false}\n'
        '[[job]]\nid = "a"\nrun_time = 50\n[[job]]\nid = "b"\nsubmit = 4\npartition = "hi"\nrun_time = 5\n'
    )
    told = CliRunner().invoke(cli, ["replay", str(site), "--set", "scheduler.young_victim_age=10"]).output
    shown = " ".join(told.split())
    assert "1 of 1 preemption hit jobs that had started less than 10 s before" in shown
    assert "keep_freed = true keeps" in shown
    quiet = CliRunner().invoke(cli, ["replay", str(site), "--set", "scheduler.young_victim_age=3"]).output
    assert "had started" not in quiet

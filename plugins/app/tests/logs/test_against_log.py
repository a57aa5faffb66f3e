"""A replay held against its log: figures by hand, and what people are told."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from makeway_logs.against.figures import (
    counts_by,
    counts_of,
    figures_of,
    moving_error,
    priorities,
    reasons,
)
from makeway_logs.against.row import Count
from makeway_logs.against.rows import Row
from makeway_logs.against.telling import _counts, _waits
from makeway_testing.command_line import Run

CONFIG = """
[[node]]
name = "n1"
cpus = 4

[[partition]]
name = "main"
default = true

[policy]
select = "select/whole_nodes"
"""
SITE = """
[[node]]
name = "n1"
cpus = 4
[[partition]]
name = "low"
[[partition]]
name = "high"
priority_tier = 2
[policy]
preempt = "preempt/partition_prio"
preempt_mode = ["requeue"]
"""
LOG = """\
JobID|User|Account|Partition|Submit|Start|End|State|NNodes|NCPUS|Timelimit|Priority|Reason|Restarts
1|ada|physics|main|2024-05-01T00:00:00|2024-05-01T00:00:00|2024-05-01T00:10:00|COMPLETED|1|4|01:00:00|7|None|0
2|ada|physics|main|2024-05-01T00:01:00|2024-05-01T00:10:00|2024-05-01T00:20:00|COMPLETED|1|4|01:00:00|5|Resources|0
3|eve|biology|main|2024-05-01T00:02:00|2024-05-01T02:00:00|2024-05-01T02:10:00|COMPLETED|1|4|01:00:00|5|JobHeldUser|2
4|eve|biology|main|2024-05-01T00:03:00|Unknown|2024-05-01T00:04:00|CANCELLED|1|4|01:00:00|0|Priority|0
"""


def row(submit: float = 0.0, recorded: float = 0.0, replayed: float = 0.0, **more: Any) -> Row:
    """Return one job."""
    given = {"partition": "p", "qos": "q", "account": "a", "priorities": None, "reasons": None, **more}
    return Row(submit=submit, recorded=recorded, replayed=replayed, **given)


def test_figures_by_hand() -> None:
    """Gaps of 0, 60, 61 and 4000 s: within a minute two of four, within ten three, within the hour three."""
    rows = [row(recorded=100.0, replayed=100.0 + gap) for gap in (0.0, -60.0, 61.0, 4000.0)]
    found = figures_of(rows)
    assert found.within == {"1_min": 0.5, "10_min": 0.75, "60_min": 0.75}
    assert found.median == (100.0, (100.0 + 161.0) / 2)
    assert found.mean == (100.0, (100.0 + 40.0 + 161.0 + 4100.0) / 4)


def test_the_moving_average_by_hand() -> None:
    """Days 0 and 1: averages 10 and (10+30)/2 = 20, replayed 20 and (20+30)/2 = 25: 100 % and 25 % off."""
    day = 86400.0
    rows = [row(0.0, 10.0, 20.0), row(day, 30.0, 30.0)]
    off, days = moving_error(rows)
    assert days == 2
    assert off == pytest.approx((1.0 + 0.25) / 2)


def test_the_window_is_two_weeks() -> None:
    """A job of day 0 counts up to day 13, and no longer on day 14."""
    day = 86400.0
    rows = [row(0.0, 100.0, 200.0), row(14 * day, 50.0, 50.0)]
    # days 0 to 13: 100 % off; day 14: the second job alone, 0 % off
    off, days = moving_error(rows)
    assert days == 15
    assert off == pytest.approx(14 / 15)


def test_no_job_waited() -> None:
    """A percentage of nothing is none."""
    assert moving_error([row()]) == (None, 0)
    assert moving_error([]) == (None, 0)


def test_priorities_and_reasons() -> None:
    """Equal, within 1 % and farther off; spelling of reasons does not count."""
    rows = [
        row(priorities=(100, 100), reasons=("Resources", "Resources")),
        row(priorities=(1000, 1009), reasons=("ReqNodeNotAvail, May be", "ReqNodeNotAvail,_May_be")),
        row(priorities=(100, 150), reasons=("Priority", "AssocGrpCpuLimit")),
    ]
    found = priorities(rows)
    assert found is not None
    assert (found.compared, found.equal, found.close, found.median_off) == (3, 1, 2, 0.009)
    why = reasons(rows)
    assert why is not None
    assert (why.compared, why.equal) == (3, 2)
    assert priorities([row()]) is None
    assert reasons([row()]) is None


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write one node and a log of four jobs; the third was held, the fourth never started."""
    config, log = tmp_path / "cluster.toml", tmp_path / "may.sacct"
    config.write_text(CONFIG)
    log.write_text(LOG)
    return config, log


def test_a_replay_against_its_log(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Two starts agree to the second, the held one does not: its recorded wait is 118 min, here 18 min."""
    out = tmp_path / "out.json"
    done = run("replay", *files, "--against-log", "--json", out, "--allow-unusable")
    assert done.status == 0, done.err
    found = json.loads(out.read_text())["against_log"]
    assert found["jobs_compared"] == 3
    assert found["all"]["starts_within"] == {
        "1_min": pytest.approx(2 / 3),
        "10_min": pytest.approx(2 / 3),
        "60_min": pytest.approx(2 / 3),
    }
    assert found["by_account"]["physics"]["mean_wait"] == {"recorded": 270.0, "replayed": 270.0}
    assert found["by_account"]["biology"]["median_wait"] == {"recorded": 7080.0, "replayed": 1080.0}
    mean = (540.0 + 7080.0, 540.0 + 1080.0)
    assert found["all"]["moving_average"]["mape"] == pytest.approx((mean[0] - mean[1]) / mean[0])
    assert found["reason"]["compared"] == 2
    assert found["priority"]["compared"] == 3
    held = {why: number for why, number in found["left_out"].items() if "held" in why or "requeued" in why}
    assert list(held.values()) == [1, 1]


def test_what_people_are_told(run: Run, files: tuple[Path, Path]) -> None:
    """A table for each kind of group, what may be concluded, and the causes that are known."""
    done = run("replay", *files, "--against-log", "--allow-unusable")
    assert done.status == 0, done.err
    assert "against the log: 3 jobs compared" in done.out
    for heading in ("how far it can be trusted here", "known causes of differences"):
        assert heading in done.out
    assert "waits here are not those of the site" in done.out
    assert "1 job: it was requeued: the log shows its last start only" in done.out
    assert "physics" in done.out
    assert "(all)" in done.out


def test_compared_runs_are_each_held_against_it(run: Run, files: tuple[Path, Path]) -> None:
    """With --compare there is a section for each run, under its name."""
    done = run("replay", *files, "--against-log", "--allow-unusable", "--compare", "scheduler.type=builtin")
    assert done.status == 0, done.err
    assert done.out.count("how far it can be trusted here") == 2
    assert "B: scheduler.type=builtin" in done.out


def test_runs_are_held_against_runs(run: Run, tmp_path: Path) -> None:
    """Job low runs 100 of its 600 s, makes way for 200 s and runs again; in the log it made way twice.

    Log: waits of 0, 50 and 250 s; 100 s and 40 s lost on 4 CPUs. Replay: it makes way at 100 s, waits 200 s, and
    loses 100 s on 4 CPUs. The second runs alone are compared; the third has no match.
    """
    config = tmp_path / "site.toml"
    config.write_text(
        SITE
        + """
[[job]]
id = 1
user = "ann"
partition = "low"
run_time = 600
tasks = 4
[job.attributes]
wait = 0
state = "COMPLETED"
restarts = 2
[[job.attributes.runs]]
wait = 0
ran = 100
state = "PREEMPTED"
[[job.attributes.runs]]
wait = 50
ran = 40
state = "PREEMPTED"
[[job.attributes.runs]]
wait = 250
ran = 600
state = "COMPLETED"
[[job]]
id = 2
user = "ben"
partition = "high"
submit = 100
run_time = 200
tasks = 4
[job.attributes]
wait = 0
state = "COMPLETED"
restarts = 0
"""
    )
    out = tmp_path / "out.json"
    done = run("replay", config, "--against-log", "--json", out)
    assert done.status == 0, done.err
    found = json.loads(out.read_text())["against_log"]
    assert found["counts"]["by_user"]["ann"] == {
        "jobs": 1,
        "requeues": {"recorded": 2, "replayed": 1},
        "preemptions": {"recorded": 2, "replayed": 1},
        "core_seconds_lost": {"recorded": 560.0, "replayed": 400.0},
    }
    assert found["counts"]["by_partition"]["high"]["requeues"] == {"recorded": 0, "replayed": 0}
    assert found["all"]["starts_within"]["1_min"] == 1.0
    assert found["later_runs"] == {"compared": 1, "mean_wait": {"recorded": 50.0, "replayed": 200.0}}
    assert (
        "requeues: 1 here, 2 in the log, so a forecast for another policy is too low, too; "
        "only differences of more than 50% say anything"
    ) in done.out
    assert "runs after a requeue: 1 compared, mean wait 50 s in the log, 0:03:20 here" in done.out


def test_tables_fit_80_columns() -> None:
    """No name of a group and no figure is cut off: columns that do not fit stand below, beside the jobs again."""
    rows = [
        row(recorded=100_000.0, replayed=90_000.0, user=f"user-{at}", partition="scavenger")
        for at in range(3)
    ]
    counts = [Count("scavenger", each.user, (3, 4), (5, 6), (7 * 3600.0, 8 * 3600.0)) for each in rows]
    stream = io.StringIO()
    console = Console(file=stream, width=80, color_system=None)
    shown = [_waits("partition", {"scavenger": figures_of(rows)}, figures_of(rows))]
    shown += [_counts("user", counts_by(counts, "user"), counts_of(counts))]
    for each in shown:
        console.print(each, crop=False)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line.startswith(("scavenger", "user-"))] == [
        *("scavenger", "scavenger"),
        *("user-0", "user-1", "user-2") * 2,
    ]
    assert stream.getvalue().count("1-03:46:40") == stream.getvalue().count("1-01:00:00") == 4
    assert "7.0" in lines[-1]
    assert "8.0" in lines[-1]


def test_rows_of_sacct_d_are_runs(run: Run, tmp_path: Path) -> None:
    """Job 2 displaces job 1 after 600 s, in the log and here: one requeue, 600 s on 4 CPUs lost, waits alike."""
    config, log = tmp_path / "site.toml", tmp_path / "may.sacct"
    config.write_text(SITE)
    log.write_text(
        """\
JobID|User|Partition|Submit|Start|End|Elapsed|State|NNodes|NCPUS|Timelimit|Restarts
1|ada|low|2024-05-01T00:00:00|2024-05-01T00:00:00|2024-05-01T00:10:00|00:10:00|PREEMPTED|1|4|02:00:00|0
1|ada|low|2024-05-01T00:10:00|2024-05-01T00:15:00|2024-05-01T01:15:00|01:00:00|COMPLETED|1|4|02:00:00|1
2|eve|high|2024-05-01T00:10:00|2024-05-01T00:10:00|2024-05-01T00:15:00|00:05:00|COMPLETED|1|4|01:00:00|0
"""
    )
    out = tmp_path / "out.json"
    done = run("replay", config, log, "--against-log", "--json", out)
    assert done.status == 0, done.err
    found = json.loads(out.read_text())["against_log"]
    assert found["counts"]["by_user"]["ada"] == {
        "jobs": 1,
        "requeues": {"recorded": 1, "replayed": 1},
        "preemptions": {"recorded": 1, "replayed": 1},
        "core_seconds_lost": {"recorded": 2400.0, "replayed": 2400.0},
    }
    assert found["all"]["mean_wait"] == {"recorded": 0.0, "replayed": 0.0}
    assert found["later_runs"] == {"compared": 1, "mean_wait": {"recorded": 300.0, "replayed": 300.0}}


def test_the_last_start_is_held_against_the_last(run: Run, tmp_path: Path) -> None:
    """A log without the runs says that job 1 was requeued once and last started 300 s after its submission: so here."""
    config = tmp_path / "site.toml"
    config.write_text(
        SITE
        + """
[[job]]
id = 1
partition = "low"
run_time = 600
attributes = { wait = 300, state = "COMPLETED", restarts = 1 }
[[job]]
id = 2
partition = "high"
submit = 100
run_time = 200
attributes = { wait = 0, state = "COMPLETED", restarts = 0 }
"""
    )
    out = tmp_path / "out.json"
    done = run("replay", config, "--against-log", "--json", out)
    assert done.status == 0, done.err
    found = json.loads(out.read_text())["against_log"]
    assert found["by_partition"]["low"]["mean_wait"] == {"recorded": 300.0, "replayed": 300.0}
    assert found["counts"]["all"]["core_seconds_lost"]["recorded"] is None
    assert (
        "core-hours lost: the log does not say how many; sacct -D has a row for each run of a job" in done.out
    )
    assert "requeues: 1 here, 1 in the log; a forecast for another policy can be taken as it is" in done.out


def test_a_workload_without_history(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Jobs of one's own have no recorded waits: that is said, and nothing else fails."""
    jobs = tmp_path / "jobs.toml"
    jobs.write_text("[[job]]\nid = 1\nnodes = 1\nrun_time = 5\n")
    done = run("replay", files[0], jobs, "--against-log")
    assert done.status == 0, done.err
    assert "against the log: 0 jobs compared" in done.out
    assert "1 job left out: the log does not say when it started" in done.out

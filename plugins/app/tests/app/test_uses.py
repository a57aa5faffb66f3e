"""Nodes that people use during a replay: jobs of partitions that make way for them come back after a quiet time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway_testing.command_fixtures import recorded, states_of

Run = Callable[..., Any]

SITE = """
[[node]]
name = "n[1-2]"
cpus = 4

[[partition]]
name = "scavenge"
vacate_on_use = ["terminal"]
quiet = 60
preempt_mode = ["{mode}"]

[[partition]]
name = "normal"
priority_tier = 2

[[job]]
id = 1
user = "ada"
partition = "scavenge"
nodes = 1
run_time = 100
"""
USE = '[[outage]]\nstate = "use"\nnodes = "n1"\nat = 50\nlasts = 40\n'
"""Quiet from 90 s on: jobs come back at 150 s."""
OTHER = '[[job]]\nid = {}\nuser = "bob"\npartition = "{}"\nnodes = {}\nsubmit = {}\nrun_time = {}\n'


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a site of two nodes whose job 1 makes way by a mode, and more below."""

    def write(more: str = USE, mode: str = "suspend") -> Path:
        path = tmp_path / "site.toml"
        path.write_text(SITE.format(mode=mode) + more)
        return path

    return write


@pytest.mark.parametrize(
    ("mode", "states"),
    [
        ("suspend", [("RUNNING", 0, 50), ("SUSPENDED", 50, 150), ("RUNNING", 150, 200)]),
        ("off", [("RUNNING", 0, 50), ("SUSPENDED", 50, 150), ("RUNNING", 150, 200)]),
        ("cancel", [("RUNNING", 0, 50)]),
        ("requeue", [("RUNNING", 0, 50), ("RUNNING", 50, 150)]),
        ("checkpoint", [("RUNNING", 0, 50), ("RUNNING", 50, 100)]),
    ],
)
def test_a_job_makes_way_in_the_mode_of_its_partition(run: Run, site: Any, mode: str, states: Any) -> None:
    """What leaves its node starts on the other one; one that would not make way for a job stands still."""
    record = recorded(run, site(mode=mode))
    assert states_of(record, "1") == states
    (preemption,) = record["preemptions"]
    assert (preemption["preemptor"], preemption["at"]) == (None, 50)
    assert preemption["why"] == "n1 is in use since 0:00:50"


def test_no_job_of_the_partition_starts_meanwhile_and_others_do(run: Run, site: Any) -> None:
    """Job 2 wants both nodes and holds up none: job 3 of the other partition starts on the node in use."""
    more = USE + OTHER.format(2, "scavenge", 2, 10, 20) + OTHER.format(3, "normal", 1, 60, 30)
    record = recorded(run, site(more, "requeue"))
    assert states_of(record, "3") == [("RUNNING", 60, 90)]
    assert states_of(record, "1") == [("RUNNING", 0, 50), ("RUNNING", 50, 150)]
    assert states_of(record, "2") == [("PENDING", 10, 150), ("RUNNING", 150, 170)]
    alone = recorded(run, site(USE + OTHER.format(2, "scavenge", 2, 60, 20), "cancel"))
    assert alone["jobs"]["2"]["waits"][-1]["reason"] == "NodesInUse"


def test_a_quiet_that_is_too_short_is_none(run: Run, site: Any) -> None:
    """In use from 50 to 60 s, and again 50 s later until 130 s: quiet at 190 s."""
    more = "".join(
        f'[[outage]]\nstate = "use"\nnodes = "n1"\nat = {at}\nuntil = {until}\n'
        for at, until in ((110, 130), (50, 60))
    )
    record = recorded(run, site(more))
    assert states_of(record, "1") == [("RUNNING", 0, 50), ("SUSPENDED", 50, 190), ("RUNNING", 190, 240)]
    assert len(record["preemptions"]) == 1


def test_a_victim_of_another_job_stays_suspended_until_all_is_quiet(run: Run, site: Any) -> None:
    """Job 2 takes both nodes from 10 to 60 s, and runs on although another comes at 50 s; job 1 waits for 150 s."""
    path = site(USE + OTHER.format(2, "normal", 2, 10, 50))
    gang = ("policy.preempt=preempt/partition_prio", "policy.preempt_mode=suspend,gang")
    record = recorded(run, path, *(word for each in gang for word in ("--set", each)))
    assert states_of(record, "2") == [("RUNNING", 10, 60)]
    assert states_of(record, "1") == [("RUNNING", 0, 10), ("SUSPENDED", 10, 150), ("RUNNING", 150, 240)]


def test_grace_time_holds_for_people_too(run: Run, site: Any) -> None:
    """Told at 50 s, gone at 53 s."""
    asked = ("preempt=preempt/partition_prio", "preempt_mode=requeue")
    words = [word for each in asked for word in ("--set", f"policy.{each}")]
    record = recorded(run, site(mode="requeue"), *words, "--set", "partition.scavenge.grace_time=3")
    assert states_of(record, "1")[0] == ("RUNNING", 0, 53)


def test_a_run_goes_on_from_a_state_in_which_a_job_was_stopped(run: Run, site: Any, tmp_path: Path) -> None:
    """Saved at 100 s, while the node is in use: what comes after is as in the whole run."""
    path, state = site(), tmp_path / "state.json"
    assert run("replay", path, "--state-at", "100", state).status == 0
    record = recorded(run, path, "--from", state)
    assert states_of(record, "1")[-1] == ("RUNNING", 150, 200)


TABLE = "node,begin,end\nn1,50,90\n"
LAST = """\
ann      tty1         :0               Fri Jan  2 00:00:50 1970 - Fri Jan  2 00:01:30 1970  (00:00)
reboot   system boot  6.1.0-13-amd64   Fri Jan  2 00:00:00 1970   still running

wtmp begins Fri Jan  2 00:00:00 1970
"""
ISO = """\
ann      pts/0        10.0.0.5         1970-01-02T01:00:50+01:00 - 1970-01-02T01:01:30+01:00  (00:00)
bob      pts/1        10.0.0.6         1970-01-02T00:00:40+00:00   gone - no logout
"""
SWF = "; UnixStartTime: 86400\n1 0 0 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 1 -1 -1\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [("uses.csv", TABLE), ("n1.txt", LAST), ("n1", ISO), ("n1.csv", TABLE.replace(",", ", "))],
)
def test_tables_of_times_of_use(run: Run, site: Any, tmp_path: Path, name: str, text: str) -> None:
    """A CSV, and both forms of last that have the year; dates count from the start of the workload."""
    jobs, uses = tmp_path / "jobs.swf", tmp_path / name
    jobs.write_text(SWF)
    uses.write_text(text)
    record = recorded(
        run,
        site("").rename(tmp_path / "s.toml"),
        jobs,
        "--outages",
        uses,
        "--set",
        "workload.partition=scavenge",
    )
    assert states_of(record, "1") == [("RUNNING", 0, 50), ("SUSPENDED", 50, 150), ("RUNNING", 150, 200)]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("u.csv", "node,begin,end\nn1,soon,90\n", "line 2: got 'soon'; allowed: a number of seconds"),
        ("u.csv", "node,begin,end\nn1,50\n", "line 2: got 2 cells; allowed: one for each column"),
        ("n11", LAST, "allowed: a file named after it; did you mean 'n1'?"),
        (
            "n1",
            "ann  tty1  Thu Jan  2 00:50 - 00:90  (00:40)\n",
            "allowed: what last -F or last --time-format",
        ),
        ("u.csv", "node,begin,end\nn1,90,50\n", "outage[0].until: got 50.0; allowed: later than at"),
    ],
)
def test_a_wrong_table_is_told(run: Run, site: Any, tmp_path: Path, name: str, text: str, told: str) -> None:
    """Place, value, what is allowed."""
    (tmp_path / name).write_text(text)
    done = run("replay", site(""), "--outages", tmp_path / name)
    assert done.status == 2
    assert told in done.err


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (
            'vacate_on_use = ["terminals"]',
            "got 'terminals'; allowed: terminal, logind, input, gpu; did you mean",
        ),
        ("quiet = 5", "quiet: got 5; allowed: 10 or more"),
        ("", "got 'use', and no partition makes way for people; allowed: down or drain, or a partition with"),
    ],
)
def test_wrong_keys_are_told(run: Run, tmp_path: Path, key: str, told: str) -> None:
    """At the door."""
    path = tmp_path / "site.toml"
    path.write_text(
        f'[[node]]\nname = "n1"\n[[partition]]\nname = "p"\n{key}\n{USE}{OTHER.format(1, "p", 1, 0, 1)}'
    )
    done = run("replay", path)
    assert done.status == 2
    assert told in done.err

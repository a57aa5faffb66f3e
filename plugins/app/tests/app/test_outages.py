"""Nodes that are lost during a replay, and nodes that are switched off."""

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
{node}

[[partition]]
name = "all"

[[job]]
id = 1
user = "ada"
nodes = 1
run_time = 100

[[job]]
id = 2
user = "bob"
nodes = 1
run_time = 100
requeue = false
"""


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a site of two nodes with a job on each, and more below."""

    def write(more: str = "", node: str = "") -> Path:
        path = tmp_path / "site.toml"
        path.write_text(SITE.format(node=node) + more)
        return path

    return write


def test_a_job_waits_again_when_its_node_fails_or_ends_if_it_may_not(run: Run, site: Any) -> None:
    """N1 fails at 50 s, n2 at 60 s; n2 is back at 70 s, and job 1 runs its 100 s there. Both runs are lost."""
    outages = '[[outage]]\nnodes = "n1"\nat = 50\n[[outage]]\nnodes = "n2"\nat = 60\nlasts = 10\n'
    record = recorded(run, site(outages))
    assert states_of(record, "1") == [
        ("RUNNING", 0, 50),
        ("PENDING", 50, 70),
        ("RUNNING", 70, 170),
    ]
    assert record["jobs"]["2"]["final_state"] == "NODE_FAIL"
    assert record["metrics"]["core_seconds_lost"] == 4 * 50 + 4 * 60
    assert record["metrics"]["node_failures"] == 2
    assert record["node_failures"] == [
        {"at": 50, "job": "1", "nodes": "n1", "requeued": True},
        {"at": 60, "job": "2", "nodes": "n2", "requeued": False},
    ]
    assert record["outages"] == [
        {"start": 50, "end": 170, "state": "down", "nodes": "n1"},
        {"start": 60, "end": 70, "state": "down", "nodes": "n2"},
    ]


def test_a_drained_node_lets_its_job_go_on_and_takes_no_other(run: Run, site: Any) -> None:
    """Job 3 would start on n1 at 100 s, when job 1 ends; n1 is back at 150 s, n2 not before the end."""
    more = (
        '[[job]]\nid = 3\nuser = "cem"\nnodes = 1\nrun_time = 10\n'
        '[[outage]]\nnodes = "n1"\nstate = "drain"\nat = 50\nuntil = 150\n'
        '[[outage]]\nnodes = "n2"\nstate = "drain"\nat = 50\n'
    )
    record = recorded(run, site(more))
    assert states_of(record, "1") == [("RUNNING", 0, 100)]
    assert states_of(record, "3") == [("PENDING", 0, 150), ("RUNNING", 150, 160)]


def test_the_worst_of_several_outages_holds(run: Run, site: Any) -> None:
    """Drained from 10 to 90 s and down from 20 to 30 s: down in between, then drained again, then back."""
    more = (
        '[[outage]]\nnodes = "n1"\nstate = "drain"\nat = 10\nuntil = 90\n'
        '[[outage]]\nnodes = "n1"\nat = 20\nuntil = 30\n'
    )
    record = recorded(run, site(more))
    assert [(each["state"], each["start"], each["end"]) for each in record["outages"]] == [
        ("drained", 10, 20),
        ("down", 20, 30),
        ("drained", 30, 90),
    ]
    assert states_of(record, "1") == [("RUNNING", 0, 20), ("PENDING", 20, 90), ("RUNNING", 90, 190)]


def test_reclaimed_nodes_are_drawn_alike_by_one_seed(run: Run, site: Any) -> None:
    """Each node by itself, after a mean time in service; the run is over with its jobs."""
    table = '[[outage]]\nnodes = "ALL"\nevery = "1h"\nlasts = "1min"\nnotice = 30\nseed = {}\n'
    more = "".join(
        f'[[job]]\nid = {at}\nuser = "ada"\nnodes = 1\nrun_time = 1000\nsubmit = {at * 1000}\n'
        for at in range(10, 70)
    )
    first, again, other = (recorded(run, site(more + table.format(seed))) for seed in (1, 1, 2))
    assert first == again
    assert first["outages"] != other["outages"]
    lost = [each for each in first["outages"] if each["state"] == "down"]
    # Twenty hours or so on two nodes that last an hour on average: 40 are expected, their standard deviation is 6.
    assert 15 < len(lost) < 70
    assert all(60 - 1e-3 < each["end"] - each["start"] < 60 + 1e-3 for each in lost[:-2])


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            'nodes = "n1"\nstate = "dwon"',
            "outage[0].state: got 'dwon'; allowed: down, drain, use; did you mean 'down'?",
        ),
        ('nodes = "n11"', "outage[0].nodes: no node named 'n11'; did you mean 'n1'?"),
        ('nodes = "n1"\nat = 5\nuntil = 5', "outage[0].until: got 5.0; allowed: later than at"),
        (
            'nodes = "n1"\nlasts = 5\nuntil = 9',
            "outage[0].lasts: until says when the nodes are back; leave one",
        ),
        ('nodes = "n1"\nevery = 5', "outage[0].lasts: is missing"),
        ('nodes = "n1"\nat = "soon"', "outage[0].at: got 'soon'; allowed: a number of seconds"),
        ('nodes = "n1"\nat = "2026-01-01"', "outage[0].at: got '2026-01-01', but the workload has no dates"),
    ],
)
def test_a_wrong_outage_is_told(run: Run, site: Any, table: str, told: str) -> None:
    """Place, value, what is allowed."""
    done = run("replay", site(f"[[outage]]\n{table}\n"))
    assert done.status == 2
    assert told in done.err


def test_what_a_job_lost_to_its_nodes_is_explained(run: Run, site: Any) -> None:
    """With what became of it."""
    done = run("explain", site('[[outage]]\nnodes = "n1"\nat = 50\nlasts = 10\n'), "--job", "1")
    assert "which of its nodes failed\n  50 s: n1; it waits again" in done.out


def test_a_job_begins_once_its_node_has_booted(run: Run, site: Any) -> None:
    """Booted in 30 s; off again after 60 s without a job, so that job 3 at 300 s waits, and job 4 at 450 s does not."""
    more = "".join(
        f'[[job]]\nid = {job}\nuser = "ada"\nnodes = 1\nsubmit = {at}\nrun_time = 100\ntime_limit = 120\n'
        for job, at in ((3, 300), (4, 450))
    )
    record = recorded(run, site(more, "off = true\nboot_time = 30\noff_after = 60"))
    assert states_of(record, "1") == [("PENDING", 0, 30), ("RUNNING", 30, 130)]
    assert states_of(record, "3") == [("PENDING", 300, 330), ("RUNNING", 330, 430)]
    assert states_of(record, "4") == [("RUNNING", 450, 550)]
    assert record["metrics"]["mean_wait"] == 22.5
    assert [record["jobs"][job]["final_state"] for job in "1234"] == ["COMPLETED"] * 4


FEW = '[[stay_on]]\nnodes = "n[1-2]"\ncount = 1\n'
LATER = "".join(
    f'[[job]]\nid = {job}\nuser = "ada"\nnodes = 1\nsubmit = {at}\nrun_time = 100\n'
    for job, at in ((3, 300), (4, 310))
)


def test_a_few_idle_nodes_stay_on(run: Run, site: Any) -> None:
    """Both are idle from 100 s; n1 stays on, n2 is off from 160 s, so that job 3 begins at once and job 4 in 30 s.

    Kept is none while n1 has a job: at 410 s, when both are idle again, n1 is the one, and n2 goes off at 500 s.
    """
    more = LATER + '[[job]]\nid = 5\nuser = "ada"\nnodes = 2\nsubmit = 600\nrun_time = 10\n'
    record = recorded(run, site(FEW + more, "boot_time = 30\noff_after = 60"))
    assert states_of(record, "3") == [("RUNNING", 300, 400)]
    assert states_of(record, "4") == [("PENDING", 310, 340), ("RUNNING", 340, 440)]
    assert states_of(record, "5") == [("PENDING", 600, 630), ("RUNNING", 630, 640)]


def test_nodes_out_of_service_are_none_of_the_few(run: Run, site: Any) -> None:
    """N1 is lost while both are idle: n2 stays on in its place, and job 3 begins there at once."""
    lost = '[[outage]]\nnodes = "n1"\nat = 120\n'
    record = recorded(run, site(FEW + lost + LATER, "boot_time = 30\noff_after = 60"))
    assert states_of(record, "3") == [("RUNNING", 300, 400)]
    assert states_of(record, "4") == [("PENDING", 310, 400), ("RUNNING", 400, 500)]


def test_of_wrong_nodes_none_stays_on(run: Run, site: Any) -> None:
    """Place, value, what is allowed."""
    done = run("replay", site('[[stay_on]]\nnodes = "n9"\ncount = -1\n'))
    assert done.status == 2
    assert "stay_on[0].nodes: no node named 'n9'" in done.err
    assert "stay_on[0].count: got -1; allowed: 0 or more" in done.err


def test_a_node_that_fails_while_it_boots_lets_its_job_wait_again(run: Run, site: Any) -> None:
    """Lost at 10 s, back at 40 s, and on by then."""
    more = '[[outage]]\nnodes = "n1"\nat = 10\nuntil = 40\n'
    record = recorded(run, site(more, "off = true\nboot_time = 30"))
    assert record["jobs"]["1"]["restarts"] == 1
    assert states_of(record, "1")[-1] == ("RUNNING", 40, 140)

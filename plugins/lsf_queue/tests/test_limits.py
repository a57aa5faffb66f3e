"""Count what each kind of limit counts (lsf 5.1), and name limit and count where one keeps a job out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"


def _limit(*lines: str) -> dict[str, str]:
    return {"lsb.resources": "\n".join(["Begin Limit", "NAME = it", *lines, "End Limit", ""])}


# ------------------------------------------------------------------------------- queue limits
def test_user_limit_of_a_queue_counts_suspended_jobs(lsf: Lsf) -> None:
    """UJOB_LIMIT counts R + S, each user by himself."""
    site = lsf("high 80 {PREEMPTIVE}; low 20 {} UJOB_LIMIT = 1", "h1(1) h2(2)")
    run = site.run(
        "L1 low user=u host=h1; H1 high host=h1 start=1; L2 low user=u start=2; L3 low user=v start=3",
        until=4,
    )
    assert run.at(3) == {"L1": "SSUSP", "H1": "RUN", "L2": "PEND", "L3": "RUN"}
    assert "(304)" in run.reason("L2")


def test_host_limit_of_a_queue(lsf: Lsf) -> None:
    """HJOB_LIMIT = 1 lets one slot of the queue be used on each host."""
    run = lsf("low 20 {} HJOB_LIMIT = 1; high 80 {PREEMPTIVE}", "h1(2) h2(2)").run(
        "L1 low; L2 low; L3 low start=1; H1 high start=1", until=2
    )
    assert run.at(1) == {"L1": "RUN", "L2": "RUN", "L3": "PEND", "H1": "RUN"}
    assert {run.host("L1"), run.host("L2")} == {"h1", "h2"}
    assert "(1307)" in run.reason("L3")


def test_processor_limit_of_a_queue_rounds_up(lsf: Lsf) -> None:
    """PJOB_LIMIT = 0.5 on three processors is two slots."""
    run = lsf("low 20 {} PJOB_LIMIT = 0.5; high 80 {PREEMPTIVE}", "h1(3)").run(
        "L1 low; L2 low; L3 low start=1; H1 high start=1", until=2
    )
    assert run.at(1) == {"L1": "RUN", "L2": "RUN", "L3": "PEND", "H1": "RUN"}
    assert "(1306)" in run.reason("L3")


# ------------------------------------------------------------------------------ lsb.resources
@pytest.mark.parametrize(
    ("lines", "waits", "reason"),
    [
        pytest.param(["QUEUES = low", "SLOTS = 2"], {"L3"}, "(303)", id="slots of a queue"),
        pytest.param(["PER_QUEUE = all", "SLOTS = 2"], {"L3"}, "(303)", id="slots per queue"),
        pytest.param(["PER_USER = all", "SLOTS = 1"], {"L2"}, "(601)", id="slots per user: u has two jobs"),
        pytest.param(["USERS = u", "SLOTS = 1"], {"L2"}, "(601)", id="slots of one user"),
        pytest.param(
            ["USERS = all ~v", "SLOTS = 1"], {"L2"}, "(601)", id="slots of all users but one, together"
        ),
        pytest.param(["HOSTS = h1", "SLOTS = 2"], {"L3"}, "(1305)", id="slots of a host"),
        pytest.param(["QUEUES = low", "JOBS = 2"], {"L3"}, "(4701)", id="jobs of a queue"),
        pytest.param(["PER_HOST = all", "USERS = u", "SLOTS = 1"], {"L2"}, "(1309)", id="of a user per host"),
        pytest.param(
            ["PER_HOST = all", "USERS = u", "SLOTS_PER_PROCESSOR = 0.25"],
            {"L2"},
            "(1308)",
            id="per processor",
        ),
        pytest.param(["QUEUES = low", "MEM = 2500"], {"L3"}, "memory", id="memory of a queue"),
    ],
)
def test_limit_sections(lsf: Lsf, lines: list[str], waits: set[str], reason: str) -> None:
    """Three jobs of one slot and 1000 MB on a host of four slots: u's L1 and L2, v's L3; which has to wait."""
    site = lsf(
        PAIR,
        "h1(4)",
        files=_limit(*lines),
        nodes={"h1": {"memory_mb": 8000}},
        policy={"select_parameters": ("CR_Core_Memory",)},
    )
    run = site.run("L1 low user=u mem=1000; L2 low user=u mem=1000; L3 low user=v mem=1000", until=1)
    assert {job for job, state in run.at(0.5).items() if state == "PEND"} == waits
    assert all(reason in run.reason(job) for job in waits)


def test_total_of_a_host_counts_running_jobs_only(lsf: Lsf) -> None:
    """SLOTS with HOSTS is lifted by itself: a slot is free, and the limit is met by suspending."""
    run = lsf(PAIR, "h1(2)", files=_limit("HOSTS = h1", "SLOTS = 1")).run("L1 low; H1 high start=5", until=6)
    assert run.at(5) == {"L1": "SSUSP", "H1": "RUN"}


@pytest.mark.parametrize(("resources", "state"), [("", "PEND"), ("PREEMPTABLE_RESOURCES = mem", "RUN")])
def test_suspended_jobs_keep_their_memory(lsf: Lsf, resources: str, state: str) -> None:
    """A limit on memory counts them, unless memory is preemptable (8.2)."""
    site = lsf(
        PAIR,
        "h1(2)",
        resources,
        files=_limit("HOSTS = h1", "MEM = 1000"),
        nodes={"h1": {"memory_mb": 8000}},
        policy={"select_parameters": ("CR_Core_Memory",)},
    )
    run = site.run("L1 low mem=1000; H1 high mem=1000 start=5", until=6)
    assert run.at(5)["H1"] == state


@pytest.mark.parametrize(
    ("queues", "state"),
    [("low 20 {}; high 80 {}", "PEND"), (PAIR, "RUN")],
    ids=["preemption off: running and suspended", "preemption on: running only"],
)
@pytest.mark.parametrize("files", ["users", "resources"])
def test_totals_count_suspended_jobs_while_preemption_is_off(
    lsf: Lsf, queues: str, state: str, files: str
) -> None:
    """1.1: the total of a user, MAX_JOBS or SLOTS, with a job that a person has suspended."""
    users = {"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu 1\nEnd User\n"}
    site = lsf(queues, "h1(2)", files=users if files == "users" else _limit("USERS = u", "SLOTS = 1"))
    run = site.run("L1 low user=u; L2 low user=u start=2", until=3, commands="60 suspend L1")
    assert run.at(2)["L2"] == state


# ------------------------------------------------------------------------------ reserved slots
def test_a_job_at_its_own_limit_reserves_nothing(lsf: Lsf) -> None:
    """R1 and X1 together are over QJOB_LIMIT = 2, so R1 collects nothing, and R2 may start beside X1."""
    site = lsf(
        "R 80 {PREEMPTIVE} SLOT_RESERVE = MAX_RESERVE_TIME[1000] | QJOB_LIMIT = 2", "h1(1) h2(1) h3(1)"
    )
    jobs = "X1 R host=h2 run=60; R1 R n=2 host=h1,h2 start=1 run=10; R2 R start=2 run=10"
    run = site.run(jobs, until=3)
    assert "(314)" in run.reason("R1")  # one slot is left of its limit, which is not enough (section 10)
    assert run.at(2) == {"X1": "RUN", "R1": "PEND", "R2": "RUN"}


def test_reserved_slots_count_against_those_behind(lsf: Lsf) -> None:
    """R1 holds on to one slot of user u, who may have three: X1, that one, and L1; L2 waits."""
    site = lsf(
        "R 80 {PREEMPTIVE} SLOT_RESERVE = MAX_RESERVE_TIME[1000]; low 20 {}",
        "h1(1) h2(1) h3(2)",
        files={"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu 3\nEnd User\n"},
    )
    jobs = (
        "X1 R user=u host=h2 run=60; R1 R user=u n=2 host=h1,h2 start=1 run=10; L1 low user=u start=2 host=h3"
    )
    run = site.run(jobs + "; L2 low user=u start=3 host=h3; L3 low start=4 host=h3", until=5)
    assert run.at(4) == {"X1": "RUN", "R1": "PEND", "L1": "RUN", "L2": "PEND", "L3": "RUN"}
    assert "(601)" in run.reason("L2")


@pytest.mark.parametrize(("reserving", "state"), [("R1 R n=3 start=1 run=10;", "RUN"), ("", "PEND")])
def test_backfilling_jobs_do_not_count_per_host(lsf: Lsf, reserving: str, state: str) -> None:
    """JL/U = 1 on h1: u's first job there backfills, so that it does not count; without R1 it does."""
    site = lsf(
        "R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000]; B 50 {} BACKFILL = Y",
        "h1(2) h2(1)",
        host_columns={"h1": {"JL/U": "1"}},
    )
    jobs = "X1 R host=h2 run=60 limit=60;" + reserving + "B1 B user=u host=h1 start=2 limit=30 run=30;"
    run = site.run(jobs + "B2 B user=u host=h1 start=3 limit=30 run=30", until=4)
    assert run.at(3)["B1"] == "RUN"
    assert run.at(3)["B2"] == state


# ------------------------------------------------------------------------------------ explain
def _explained(folder: Path, job: str, jobs: list[dict[str, Any]]) -> str:
    workload = folder / "jobs.jsonl"
    workload.write_text("\n".join(json.dumps(each) for each in jobs))
    result = CliRunner().invoke(cli, ["explain", str(folder / "lsb.queues"), str(workload), "--job", job])
    assert result.exit_code == 0, result.output
    return result.output


def test_explain_names_the_limit_that_preempting_would_break(lsf: Lsf, tmp_path: Path) -> None:
    """S39: the group has one slot, in use by a job that would count suspended too."""
    groups = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\ng (u1 u2)\nEnd UserGroup\n"
    users = "Begin User\nUSER_NAME MAX_JOBS\ng 1\nEnd User\n"
    lsf(PAIR, "h1(2)", files={"lsb.users": users + groups})
    told = _explained(
        tmp_path,
        "H1",
        [
            {"id": "L1", "partition": "low", "user": "u1", "run_time": 100},
            {"id": "H1", "partition": "high", "user": "u2", "submit": 5, "run_time": 50},
        ],
    )
    count = "1; 1 in use, 1 wanted; suspended jobs count too, unless PREEMPT_FOR has GROUP_MAX"
    assert (
        f"(602): the user group has reached a slot limit: MAX_JOBS of group g in lsb.users is {count}" in told
    )
    assert "removing all candidates would not make room" in told
    assert f"Q4 fail    is there room under MAX_JOBS of group g in lsb.users? {count} [lsb.users:3]" in told


def test_explain_names_the_host_that_is_nearest_to_having_room(lsf: Lsf, tmp_path: Path) -> None:
    """A limit per host: two in use on h1, one on h2, of which one is suspended."""
    lsf(PAIR + " HJOB_LIMIT = 1", "h1(2) h2(1)")
    told = _explained(
        tmp_path,
        "L3",
        [
            {"id": "L1", "partition": "low", "run_time": 100, "required_nodes": "h1"},
            {"id": "L2", "partition": "low", "run_time": 100, "required_nodes": "h2"},
            {"id": "H1", "partition": "high", "submit": 5, "run_time": 50, "required_nodes": "h2"},
            {"id": "L3", "partition": "low", "submit": 6, "run_time": 5},
        ],
    )
    assert "HJOB_LIMIT of queue low is 1 on h1; 1 in use, 1 wanted; suspended jobs count too" in told


def test_explain_goes_through_the_list(lsf: Lsf, tmp_path: Path) -> None:
    """The right to preempt, the preemptor's wait, its kind, limits on some hosts only, resources."""
    lsf(
        "high 80 {PREEMPTIVE} PREEMPT_DELAY = 600; low 20 {}",
        "h1(1) h2(1)",
        host_columns={"h1": {"JL/U": "0"}},
    )
    told = _explained(
        tmp_path,
        "H1",
        [
            {"id": "L1", "partition": "low", "run_time": 100, "required_nodes": "h2"},
            {"id": "H1", "partition": "high", "submit": 5, "run_time": 50, "exclusive": True},
        ],
    )
    assert "Q1 pass    may queue high preempt others? yes: low" in told
    assert "Q2 fail    is PREEMPT_DELAY over? not for another 600 s" in told
    assert "Q3 fail    may an exclusive job preempt? no: that takes PREEMPT_JOBTYPE=EXCLUSIVE" in told
    assert "Q4 warning is there room under JL/U in lsb.hosts? 0 on h1; 0 in use, 1 wanted" in told


@pytest.mark.parametrize(
    ("queue", "users", "slots", "number"),
    [
        pytest.param("QJOB_LIMIT = 3", "", 1, "303", id="queue: reached"),
        pytest.param("QJOB_LIMIT = 3", "", 2, "314", id="queue: too few left"),
        pytest.param("UJOB_LIMIT = 3", "", 1, "304", id="user of a queue: reached"),
        pytest.param("UJOB_LIMIT = 3", "", 2, "305", id="user of a queue: too few left"),
        pytest.param("", "u 3", 1, "601", id="user: reached"),
        pytest.param("", "u 3", 2, "603", id="user: too few left"),
        pytest.param("", "g 3", 1, "602", id="group: reached"),
        pytest.param("", "g 3", 2, "604", id="group: too few left"),
    ],
)
def test_a_limit_that_leaves_too_few_for_a_parallel_job(
    lsf: Lsf, queue: str, users: str, slots: int, number: str
) -> None:
    """10: a limit that is reached has one number, one with some room left for a smaller job another."""
    groups = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\ng (u)\nEnd UserGroup\n"
    table = f"Begin User\nUSER_NAME MAX_JOBS\n{users}\nEnd User\n" if users else ""
    site = lsf(f"q 20 {{}} {queue}", "h1(8)", files={"lsb.users": groups + table})
    running = 3 if slots == 1 else 2
    run = site.run(f"A q n={running} user=u; B q n={slots} start=1 user=u", until=2)
    assert f"({number})" in run.reason("B")


@pytest.mark.parametrize(
    ("reserving", "rows", "state"),
    [
        pytest.param(
            "R1 R n=3 start=1 run=10;", "HOSTS = h1", "RUN", id="the hosts' slots: it does not count"
        ),
        pytest.param("", "HOSTS = h1", "PEND", id="nothing is reserved: it counts"),
        pytest.param("R1 R n=3 start=1 run=10;", "USERS = u", "PEND", id="the user's slots: it counts"),
    ],
)
def test_backfilling_jobs_and_limit_sections(lsf: Lsf, reserving: str, rows: str, state: str) -> None:
    """5.1: a backfilling job counts for queue and user limits, not for those of hosts."""
    limit = f"Begin Limit\nNAME = few\n{rows}\nSLOTS = 1\nEnd Limit\n"
    queues = "R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000]; B 50 {} BACKFILL = Y"
    site = lsf(queues, "h1(2) h2(1)", files={"lsb.resources": limit})
    jobs = "X1 R host=h2 run=60 limit=60;" + reserving + "B1 B user=u host=h1 start=2 limit=30 run=30;"
    run = site.run(jobs + "B2 B user=u host=h1 start=3 limit=30 run=30", until=4)
    assert (run.at(3)["B1"], run.at(3)["B2"]) == ("RUN", state)


def test_explain_names_the_hosts_that_a_limit_closes(lsf: Lsf, tmp_path: Path) -> None:
    """JL/P 0.5: one slot of h1's two is not enough for two tasks, and h2 has one slot only."""
    users = "Begin User\nUSER_NAME JL/P\nu 0.5\nEnd User\n"
    lsf("low 20 {}", "h1(2) h2(1)", files={"lsb.users": users})
    told = _explained(
        tmp_path, "A", [{"id": "A", "partition": "low", "user": "u", "run_time": 50, "cpus": 2}]
    )
    line = next(line for line in told.splitlines() if "room under JL/P" in line)
    assert "Q4 warning" in line
    assert "closed to it: h1 [" in line

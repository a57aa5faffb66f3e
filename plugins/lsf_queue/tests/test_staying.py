"""Why suspended jobs stay suspended, from when to when (lsf 6.3); and JOBS limits that keep them so for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway.config import build_cluster
from makeway.settings import structure
from makeway_app.cli import cli
from makeway_lsf_queue.check import findings
from makeway_lsf_queue.settings import Settings

Lsf = Callable[..., Any]
TIERS = "high 90 {PREEMPTIVE}; mid 50 {PREEMPTIVE PREEMPTABLE}; low 10 {}"
CHAIN = "L low run=100; M mid start=10 run=100; H high start=20 run=10"


def jobs_limit(count: int, more: str = "") -> dict[str, str]:
    """Return lsb.resources with a limit on the number of jobs."""
    return {"lsb.resources": f"Begin Limit\nNAME = few\nJOBS = {count}\n{more}End Limit\n"}


# ------------------------------------------------------------------------------------- the reasons
def test_who_uses_the_slots(lsf: Lsf) -> None:
    """L lies under M, then under H as well; M goes on before it, and it when M has ended."""
    site = lsf(TIERS)
    assert site.stays(CHAIN, "L") == [
        (10, 20, "others use the slots of its hosts", ("M",)),
        (20, 30, "others use the slots of its hosts", ("H",)),
        (30, 120, "others use the slots of its hosts", ("M",)),
    ]
    assert site.stays(CHAIN, "M") == [(20, 30, "others use the slots of its hosts", ("H",))]


def test_the_run_window(lsf: Lsf) -> None:
    """It closes at minute 60 of the Sunday, and opens a day later."""
    site = lsf("low 10 {} RUN_WINDOW = 0:00-1:00")
    (reason,) = site.stays("L low run=70", "L")
    assert reason[2:] == ("SUSP_QUEUE_WINDOW", ())
    assert reason[:2] == pytest.approx((60, 24 * 60), abs=1e-3)


def test_the_preemptor(lsf: Lsf) -> None:
    """resume = preemptor: L2 ends and leaves its slot, and L1 waits for H all the same."""
    site = lsf("high 90 {PREEMPTIVE}; low 10 {}", "h1(2)", options={"resume": "preemptor"})
    found = site.stays("L2 low run=30; L1 low start=1 run=60; H high start=10 run=50", "L1")
    assert (10, 60, "it waits for the end of its preemptor", ("H",)) in found
    assert (10, 30, "others use the slots of its hosts", ("L2", "H")) in found


# ------------------------------------------------------------------------------------- JOBS
@pytest.mark.parametrize(
    ("hosts", "jobs", "limit", "others"),
    [
        pytest.param("h1(1)", CHAIN, 1, ("M",), id="one job"),
        pytest.param(
            "h1(2)",
            "L low run=100; L2 low run=100; M mid n=2 start=10 run=100; H high n=2 start=20 run=10",
            2,
            ("L2", "M"),
            id="two jobs on two slots",
        ),
    ],
)
def test_jobs_keeps_suspended_jobs_for_good(
    lsf: Lsf, hosts: str, jobs: str, limit: int, others: tuple[str, ...]
) -> None:
    """By the letter (5.1: RUN, SSUSP and USUSP jobs count) more are suspended than may run on an idle host."""
    site = lsf(TIERS, hosts, files=jobs_limit(limit))
    run = site.run(jobs)
    assert {run.at(1000)[job] for job in ("L", "M")} == {"SSUSP"}
    assert site.stays(jobs, "L")[-1][1:] == (30, "PEND_GENERAL_LIMIT_JOBS", others)
    warned = "\n".join(map(str, findings_of(site)))
    assert (
        "where high takes jobs of mid that have taken jobs of low, more are suspended than it allows"
        in warned
    )


@pytest.mark.parametrize(
    ("reading", "status", "left"),
    [
        pytest.param("all", 3, [("L", "M"), ("M", "L")], id="they stay"),
        pytest.param("running", 0, [], id="they end"),
    ],
)
def test_the_summary_names_who_is_left_suspended(
    lsf: Lsf, tmp_path: Path, reading: str, status: int, left: list[tuple[str, str]]
) -> None:
    """With the limit and the others that it counts; the exit status says that not all was done."""
    lsf(TIERS, files=jobs_limit(1), options={"jobs_limit_on_resume": reading})
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text(
        '{"id": "L", "partition": "low", "submit": 0, "run_time": 6000}\n'
        '{"id": "M", "partition": "mid", "submit": 600, "run_time": 6000}\n'
        '{"id": "H", "partition": "high", "submit": 1200, "run_time": 600}\n'
    )
    key = f'policy.settings."lsf/queue".jobs_limit_on_resume={reading}'
    words = ["replay", str(tmp_path / "lsb.queues"), str(jobs), "--set", key]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == status, done.output
    _, title, told = done.stdout.partition("2 jobs that are still suspended when nothing happens any more\n")
    assert bool(title) is bool(left)
    lines = [line.strip() for line in told.split("\n\n")[0].splitlines()]
    assert [(line.partition(": ")[0], line.rpartition(": ")[2]) for line in lines] == left
    assert [line for line in lines if ": PEND_GENERAL_LIMIT_JOBS: JOBS of limit few" not in line] == []


def test_jobs_may_count_running_jobs_when_one_goes_on(lsf: Lsf) -> None:
    """The other reading: M has 90 min left at minute 30, and L 90 when M has ended."""
    site = lsf(TIERS, files=jobs_limit(1), options={"jobs_limit_on_resume": "running"})
    run = site.run(CHAIN)
    assert run.history("M").ended_at == 60 * 120
    assert run.history("L").ended_at == 60 * 210
    assert not any("JOBS counts" in str(each) for each in findings_of(site))


@pytest.mark.parametrize("reading", ["all", "running"])
def test_a_limit_that_running_jobs_use_up_holds_in_both_readings(lsf: Lsf, reading: str) -> None:
    """JOBS = 1 over two hosts: M runs on, so that L waits for its end although its own host is free from 15 on."""
    site = lsf(
        "high 90 {PREEMPTIVE}; mid 50 {}; low 10 {}",
        "h1(1) h2(1)",
        files=jobs_limit(1, "QUEUES = low mid\n"),
        options={"jobs_limit_on_resume": reading},
    )
    run = site.run("L low run=30 host=h1; H high start=10 run=5 host=h1; M mid start=11 run=60 host=h2")
    assert run.starts("L") == [0]
    assert run.history("L").ended_at == 60 * 35  # 15 + 20 left: M came when L counted, and waited for it
    assert run.starts("M") == [35]


@pytest.mark.parametrize(
    "more",
    [pytest.param("QUEUES = mid\n", id="one of the queues"), pytest.param("PER_QUEUE = all\n", id="each")],
)
def test_no_warning_where_no_two_queues_share_the_limit(lsf: Lsf, more: str) -> None:
    """Jobs of the queue in the middle alone are never suspended for one another."""
    assert not any("JOBS counts" in str(each) for each in findings_of(lsf(TIERS, files=jobs_limit(1, more))))


def findings_of(site: Any) -> list[Any]:
    """Return what ``makeway check`` finds about a site."""
    config = site.config
    settings = structure(config.policy.settings["lsf/queue"], Settings, "test")
    return findings(build_cluster(config), settings)

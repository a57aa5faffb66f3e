"""Scenarios S18 to S36: parallel victims, protections, backfill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"
FOUR = "L1 low; L2 low; L3 low; L4 low; "


def test_s18_several_victims(lsf: Lsf) -> None:
    """Three go, the fourth runs on (3.1 no. 4, 3.4)."""
    run = lsf(PAIR, "h1(4)").run(FOUR + "H1 high n=3 start=5", until=6)
    assert sorted(run.at(5).values()) == ["RUN", "RUN", "SSUSP", "SSUSP", "SSUSP"]
    assert run.at(5)["H1"] == "RUN"


def test_s19_all_or_nothing(lsf: Lsf) -> None:
    """Two of four are protected, so none is touched."""
    site = lsf(PAIR, "h1(4)", "NO_PREEMPT_RUN_TIME = 10")
    run = site.run("L1 low; L2 low; L3 low start=5; L4 low start=5; H1 high n=3 start=11", until=12)
    assert run.victims == []
    assert run.at(11)["H1"] == "PEND"


@pytest.mark.parametrize(
    ("params", "allowed"),
    [
        pytest.param("PREEMPT_FOR = MINI_JOB", [{"LA"}, {"LB", "LC"}], id="S20 MINI_JOB: none too many"),
        pytest.param(
            "PREEMPT_FOR = OPTIMAL_MINI_JOB | PARALLEL_SCHED_BY_SLOT = Y",
            [{"LA"}],
            id="S21 OPTIMAL_MINI_JOB: the fewest",
        ),
    ],
)
@pytest.mark.parametrize("loaded", ["h1", "h2"])
def test_parallel_victims(lsf: Lsf, params: str, allowed: list[set[str]], loaded: str) -> None:
    """3.4, whichever host is looked at first."""
    site = lsf(PAIR, "h1(4) h2(4)", params, nodes={loaded: {"load": 1.0}})
    run = site.run(
        "LA low n=4 host=h1; LB low n=2 host=h2; LC low n=2 host=h2 start=1; H1 high n=4 start=5", until=6
    )
    assert set(run.victims) in allowed
    assert run.at(5)["H1"] == "RUN"


@pytest.mark.parametrize(
    ("params", "taken"),
    [
        pytest.param("LEAST_RUN_TIME", ["A", "B"], id="default: A frees two slots, and stays taken"),
        pytest.param("LEAST_RUN_TIME MINI_JOB", ["B"], id="MINI_JOB: B alone is enough"),
    ],
)
def test_the_default_may_take_more(lsf: Lsf, params: str, taken: list[str]) -> None:
    """3.4: parallel victims on a chosen host stay taken; MINI_JOB gives them back, as other keywords do not."""
    site = lsf(PAIR, "h1(6)", f"PREEMPT_FOR = {params}")
    run = site.run("B low n=4; A low n=2 start=1; H1 high n=4 start=5", until=6)
    assert run.victims == taken
    assert run.at(5)["H1"] == "RUN"


def test_no_job_is_taken_on_hosts_that_are_not_chosen(lsf: Lsf) -> None:
    """3.4: A is met first, but a job of four slots on one host has no use for its two."""
    site = lsf(PAIR, "h1(2) h2(4)", "PREEMPT_FOR = LEAST_RUN_TIME")
    jobs = "B low n=4 host=h2; A low n=2 host=h1 start=1; H1 high n=4 start=5"
    assert site.run(jobs, until=6, H1={"max_nodes": 1}).victims == ["B"]


@pytest.mark.parametrize("params", ["LEAST_RUN_TIME", "LEAST_RUN_TIME MINI_JOB"])
def test_mini_job_is_about_parallel_jobs(lsf: Lsf, params: str) -> None:
    """3.4: no effect on one-slot jobs, neither as victims nor as preemptors."""
    site = lsf(PAIR, "h1(2) h2(4)", f"PREEMPT_FOR = {params}")
    run = site.run(
        "B low n=4 host=h2; A low n=1 host=h1 start=1; C low n=1 host=h1 start=2; H1 high start=5", until=6
    )
    assert run.victims == ["C"]


@pytest.mark.parametrize(
    ("params", "job", "preemptor", "state"),
    [
        pytest.param("NO_PREEMPT_RUN_TIME = 10", "L1 low", 9.9, "SSUSP", id="S22 at 9.9 min: preempted"),
        pytest.param("NO_PREEMPT_RUN_TIME = 10", "L1 low", 10, "RUN", id="S22 at 10 min: spared"),
        pytest.param(
            "NO_PREEMPT_RUN_TIME = 50%", "L1 low limit=60", 29, "SSUSP", id="S23 at 29 of 60: preempted"
        ),
        pytest.param("NO_PREEMPT_RUN_TIME = 50%", "L1 low limit=60", 30, "RUN", id="S23 at 30 of 60: spared"),
        pytest.param("NO_PREEMPT_RUN_TIME = 50%", "L1 low", 500, "SSUSP", id="S23 no limit: preempted"),
        pytest.param(
            "NO_PREEMPT_FINISH_TIME = 10%", "L1 low limit=60", 53, "SSUSP", id="S24 at 53 of 60: preempted"
        ),
        pytest.param(
            "NO_PREEMPT_FINISH_TIME = 10%", "L1 low limit=60", 54, "RUN", id="S24 at 54 of 60: spared"
        ),
        pytest.param(
            "NO_PREEMPT_FINISH_TIME = 5", "L1 low limit=60", 56, "RUN", id="S25 at 56 of 60: spared"
        ),
        pytest.param("NO_PREEMPT_FINISH_TIME = 5", "L1 low", 56, "SSUSP", id="S25 no limit: preempted"),
    ],
)
def test_run_and_finish_time(lsf: Lsf, params: str, job: str, preemptor: float, state: str) -> None:
    """4.3."""
    run = lsf(PAIR, "h1(1)", params).run(f"{job}; H1 high start={preemptor} run=1", until=preemptor + 0.5)
    assert run.at(preemptor)["L1"] == state


def test_s26_s27_application_over_queue_over_cluster(lsf: Lsf) -> None:
    """MAX_JOB_PREEMPT: 4.1."""
    queues = "high 80 {PREEMPTIVE}; low 20 {} MAX_JOB_PREEMPT = 1"
    attempts = "H1 high start=5 run=5; H2 high start=20 run=5; H3 high start=40 run=5"
    site = lsf(queues, "h1(1)", "MAX_JOB_PREEMPT = 3")
    assert site.run("L1 low run=100; " + attempts, until=60).victims == ["L1"]
    text = "Begin Application\nNAME = often\nMAX_JOB_PREEMPT = 2\nEnd Application\n"
    site = lsf(queues, "h1(1)", "MAX_JOB_PREEMPT = 3", files={"lsb.applications": text})
    run = site.run("L1 low run=100 app=often; " + attempts, until=60)
    assert run.victims == ["L1", "L1"]
    assert run.at(41) == {"L1": "RUN", "H1": "DONE", "H2": "DONE", "H3": "PEND"}


def test_s28_uninterrupted_run_time(lsf: Lsf) -> None:
    """NO_PREEMPT_INTERVAL: 4.3; the attempt is repeated when the interval is over."""
    site = lsf("high 80 {PREEMPTIVE}; low 20 {} NO_PREEMPT_INTERVAL = 5")
    run = site.run("L1 low run=500; H1 high start=90 run=10; H2 high start=103 run=10", until=120)
    assert run.at(100)["L1"] == "RUN"
    assert run.at(104.9) == {"L1": "RUN", "H1": "DONE", "H2": "PEND"}
    assert run.starts("H2") == [pytest.approx(105, abs=0.01)]


def test_s29_grace_allows_ordinary_dispatch(lsf: Lsf) -> None:
    """PREEMPT_DELAY: 4.7."""
    site = lsf("high 80 {PREEMPTIVE} PREEMPT_DELAY = 60; low 20 {}")
    run = site.run(f"L1 low run={1 + 50 / 60}; H1 high start=1 run=1")
    assert run.victims == []
    assert run.starts("H1") == [pytest.approx(1 + 50 / 60, abs=0.001)]


def test_s30_grace_over(lsf: Lsf) -> None:
    """PREEMPT_DELAY: 4.7; the preemptor says 6701 while it waits."""
    site = lsf("high 80 {PREEMPTIVE} PREEMPT_DELAY = 60; low 20 {}")
    waiting = site.run("L1 low; H1 high start=1", until=1.5)
    assert waiting.reason("H1").startswith("6701")
    run = site.run("L1 low; H1 high start=1 run=1", until=5)
    assert run.starts("H1") == [2.0]
    assert run.victims == ["L1"]


@pytest.mark.parametrize(
    ("jobtype", "unlocked", "preempts"),
    [(False, False, False), (True, True, True), (True, False, False), (False, True, False)],
)
def test_s31_exclusive(lsf: Lsf, jobtype: bool, unlocked: bool, preempts: bool) -> None:
    """4.4."""
    params = "PREEMPT_JOBTYPE = EXCLUSIVE" if jobtype else ""
    files = {"lsf.conf": "LSB_DISABLE_LIMLOCK_EXCL=Y\n"} if unlocked else {}
    site = lsf("low 20 {PREEMPTABLE} EXCLUSIVE = Y; high 80 {}", "h1(2)", params, files=files)
    run = site.run("L1 low -x; H1 high start=5", until=6)
    if preempts:
        assert run.at(5) == {"L1": "SSUSP", "H1": "RUN"}
    else:
        assert run.at(5) == {"L1": "RUN", "H1": "PEND"}
        assert "(1322)" in run.reason("H1")


@pytest.mark.parametrize(("params", "preempts"), [("", False), ("PREEMPT_JOBTYPE = BACKFILL", True)])
def test_s32_backfill_queue(lsf: Lsf, params: str, preempts: bool) -> None:
    """7.1: also a job that runs as a normal one."""
    site = lsf("B 50 {PREEMPTABLE} BACKFILL = Y; P 75 {PREEMPTIVE}", "h1(1)", params)
    run = site.run("B1 B limit=30 run=20; P1 P start=5", until=6)
    assert run.at(5) == {"B1": "SSUSP" if preempts else "RUN", "P1": "RUN" if preempts else "PEND"}


THREE = "R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000]; B 50 {PREEMPTABLE} BACKFILL = Y; P %d {PREEMPTIVE}"
RESERVED = (
    "X1 R n=1 host=h2 run=60 limit=60; R1 R n=2 start=1 run=10;"
    "B1 B start=2 limit=30 run=30; P1 P start=5 run=20"
)


@pytest.mark.parametrize(
    ("priority", "guard", "preempts"),
    [
        pytest.param(75, "10.1", True, id="S33 10.1: yes"),
        pytest.param(75, "7.3", False, id="S33 7.3: no"),
        pytest.param(85, "10.1", True, id="S34 10.1"),
        pytest.param(85, "7.3", True, id="S34 7.3"),
    ],
)
def test_three_queues(lsf: Lsf, priority: int, guard: str, preempts: bool) -> None:
    """7.2: whether queueP takes queueB's job out of queueR's reserved slots."""
    site = lsf(
        THREE % priority, "h1(1) h2(1)", "PREEMPT_JOBTYPE = BACKFILL", options={"backfill_guard": guard}
    )
    assert ("jobs of R may start late" in site.warnings) == (priority < 80)
    run = site.run(RESERVED, until=6)
    assert run.at(4)["B1"] == "RUN", "backfilled"
    assert run.at(5)["B1"] == ("SSUSP" if preempts else "RUN")
    assert run.at(5)["P1"] == ("RUN" if preempts else "PEND")
    # P1 runs for 20 min and B1 for 30: without P1 all is over when X1 is, at 60; P1 alone does not change that.
    assert site.run(RESERVED).starts("R1") == [60.0]
    late = site.run(RESERVED.replace("run=20", "run=80"))
    assert late.starts("R1") == [85.0 if preempts else 60.0], "R1 may start late"


def test_slots_are_reserved(lsf: Lsf) -> None:
    """7.1: without BACKFILL, or with a run that is too long, no job takes the reserved slot."""
    jobs = "X1 R n=1 host=h2 run=60 limit=60; R1 R n=2 start=1 run=10; "
    plain = lsf(THREE.replace("BACKFILL = Y", "") % 85, "h1(1) h2(1)")
    assert plain.run(jobs + "B1 B start=2 limit=30 run=30").starts("R1") == [60.0]
    backfill = lsf(THREE % 85, "h1(1) h2(1)")
    long = backfill.run(jobs + "B1 B start=2 limit=90 run=90")
    assert (long.starts("R1"), long.starts("B1")) == ([60.0], [70.0])
    short = backfill.run(jobs + "B1 B start=2 limit=30 run=30")
    assert (short.starts("R1"), short.starts("B1")) == ([60.0], [2.0])


def test_s35_brun(lsf: Lsf) -> None:
    """4.6."""
    site = lsf("low 20 {PREEMPTABLE}; high 80 {PREEMPTIVE}")
    run = site.run("L1 low; H1 high start=5", until=6, L1={"flags": frozenset({"brun"})})
    assert run.at(5) == {"L1": "RUN", "H1": "PEND"}


@pytest.mark.parametrize(("ignore", "state"), [("", "RUN"), (" SLA_GUARANTEES_IGNORE = Y", "SSUSP")])
def test_s36_service_class(lsf: Lsf, ignore: str, state: str) -> None:
    """4.6."""
    site = lsf(f"low 20 {{PREEMPTABLE}}; high 80 {{PREEMPTIVE}}{ignore}")
    run = site.run("L1 low; H1 high start=5", until=6, L1={"attributes": {"service_class": "gold"}})
    assert run.at(5)["L1"] == state


INTERRUPTIBLE = (
    "R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000];"
    "I 50 {PREEMPTABLE} BACKFILL = Y | RUNLIMIT = 300 | INTERRUPTIBLE_BACKFILL = %d%s; P 85 {PREEMPTIVE}"
)
GAP = "X1 R n=1 host=h2 run=60 limit=60; R1 R n=2 start=1 run=10; I1 I start=2 run=200"


@pytest.mark.parametrize(
    ("slice_", "more", "starts", "state"),
    [
        pytest.param(600, "", [2.0], "EXIT (TERM_PREEMPT)", id="killed when the gap is over"),
        pytest.param(
            600, " | REQUEUE_EXIT_VALUES = 130", [2.0, 70.0], "RUN", id="requeued by its exit value"
        ),
        pytest.param(7200, "", [70.0], "RUN", id="the gap is too short"),
    ],
)
def test_interruptible_backfill(lsf: Lsf, slice_: int, more: str, starts: list[float], state: str) -> None:
    """7.1: a slice of a gap is used, and the reservation is kept."""
    run = lsf(INTERRUPTIBLE % (slice_, more), "h1(1) h2(1)").run(GAP, until=100)
    assert run.starts("R1") == [60.0]
    assert run.starts("I1") == starts
    assert run.at(99)["I1"] == state


def test_a_gap_that_is_used_as_soon_as_it_is_reserved(lsf: Lsf) -> None:
    """7.1: I1 comes with R1, takes the gap in the same instant, and is gone when R1 can start."""
    run = lsf(INTERRUPTIBLE % (600, ""), "h1(1) h2(1)").run(GAP.replace("start=2", "start=1"), until=100)
    assert run.starts("I1") == [1.0]
    assert run.starts("R1") == [60.0]
    assert run.at(99)["I1"] == "EXIT (TERM_PREEMPT)"


@pytest.mark.parametrize(
    ("more", "state"), [("", "SSUSP"), (" | TERMINATE_WHEN = PREEMPT", "EXIT (TERM_PREEMPT)")]
)
def test_interruptible_jobs_are_suspended(lsf: Lsf, more: str, state: str) -> None:
    """7.1: on preemption, to keep the promised least run time; unless TERMINATE_WHEN says otherwise."""
    site = lsf(INTERRUPTIBLE % (600, more), "h1(1) h2(1)", "PREEMPT_JOBTYPE = BACKFILL")
    run = site.run(GAP + "; P1 P start=5 run=20", until=7)
    assert run.at(6)["I1"] == state

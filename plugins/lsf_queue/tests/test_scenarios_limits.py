"""Scenarios S37 to S53: limits, actions, going on, resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"


def _users(rows: str, groups: str = "") -> dict[str, str]:
    text = f"Begin User\nUSER_NAME MAX_JOBS JL/P\n{rows}\nEnd User\n"
    if groups:
        text += f"Begin UserGroup\nGROUP_NAME GROUP_MEMBER\n{groups}\nEnd UserGroup\n"
    return {"lsb.users": text}


def test_s37_queue_limits_count_suspended_jobs(lsf: Lsf) -> None:
    """5.1: QJOB_LIMIT is never lifted."""
    site = lsf("low 20 {} QJOB_LIMIT = 1; high 80 {PREEMPTIVE}", "h1(1) h2(1)")
    run = site.run("L1 low host=h1; H1 high host=h1 start=5; L2 low start=6", until=7)
    assert run.at(6) == {"L1": "SSUSP", "H1": "RUN", "L2": "PEND"}
    assert "(303)" in run.reason("L2")


def test_s38_the_users_total_counts_running_jobs_only(lsf: Lsf) -> None:
    """5.1: a slot is free, yet a job of the same user has to make way."""
    site = lsf(PAIR, "h1(2)", files=_users("u 1 -"))
    run = site.run("L1 low user=u; H1 high user=u start=5 run=10", until=30)
    assert run.at(5) == {"L1": "SSUSP", "H1": "RUN"}
    assert run.at(15) == {"L1": "RUN", "H1": "DONE"}


def test_s38_victims_are_chosen_against_the_limit_that_binds(lsf: Lsf) -> None:
    """Jobs of others would come first in the order, and do not help."""
    site = lsf(PAIR, "h1(4)", files=_users("u 1 -"))
    run = site.run("L1 low user=u; L2 low start=1; L3 low start=2; H1 high user=u start=5", until=6)
    assert run.victims == ["L1"]


@pytest.mark.parametrize(("params", "preempts"), [("", False), ("PREEMPT_FOR = GROUP_MAX", True)])
def test_s39_group_total(lsf: Lsf, params: str, preempts: bool) -> None:
    """5.1, and 5.4: no job is suspended in vain."""
    site = lsf(PAIR, "h1(2)", params, files=_users("g 1 -", "g (u1 u2)"))
    run = site.run("L1 low user=u1; H1 high user=u2 start=5", until=6)
    if preempts:
        assert run.at(5) == {"L1": "SSUSP", "H1": "RUN"}
    else:
        assert run.at(5) == {"L1": "RUN", "H1": "PEND"}
        assert "(602)" in run.reason("H1")


@pytest.mark.parametrize(("params", "preempts"), [("", False), ("PREEMPT_FOR = HOST_JLU", True)])
def test_s40_host_limit_per_user(lsf: Lsf, params: str, preempts: bool) -> None:
    """5.1."""
    site = lsf(PAIR, "h1(2) h2(2)", params, host_columns={"h1": {"JL/U": "1"}})
    run = site.run("L1 low user=u host=h1; H1 high user=u host=h1 start=5", until=6)
    assert run.at(5)["H1"] == ("RUN" if preempts else "PEND")
    assert run.at(5)["L1"] == ("SSUSP" if preempts else "RUN")
    if not preempts:
        assert "(1309)" in run.reason("H1")


@pytest.mark.parametrize(
    ("files", "params", "reason"),
    [
        pytest.param(_users("u - 1"), "", "(1308)", id="user: no"),
        pytest.param(_users("u - 1"), "PREEMPT_FOR = USER_JLP", "", id="user: USER_JLP"),
        pytest.param(_users("g - 1", "g (u v)"), "", "(1324)", id="group: no"),
        pytest.param(_users("g - 1", "g (u v)"), "PREEMPT_FOR = GROUP_JLP", "", id="group: GROUP_JLP"),
    ],
)
def test_s41_limits_per_processor(lsf: Lsf, files: dict[str, str], params: str, reason: str) -> None:
    """5.1: one processor, two slots."""
    site = lsf(PAIR, "h1(2)", params, files=files, nodes={"h1": {"attributes": {"CPUS": 1}}})
    run = site.run("L1 low user=u; H1 high user=u start=5", until=6)
    assert run.at(5)["H1"] == ("PEND" if reason else "RUN")
    if reason:
        assert reason in run.reason("H1")


def test_s42_a_limit_on_jobs_does_not_block(lsf: Lsf) -> None:
    """5.1: JOBS."""
    limit = "Begin Limit\nNAME = two\nHOSTS = h1\nJOBS = 2\nEnd Limit\n"
    site = lsf("low 20 {PREEMPTABLE}; high 80 {}", "h1(2)", files={"lsb.resources": limit})
    run = site.run("L1 low; L2 low; H1 high start=5", until=6)
    assert sorted(run.at(5).values()) == ["RUN", "RUN", "SSUSP"]
    assert run.at(5)["H1"] == "RUN"


def test_s43_terminate_when_preempt(lsf: Lsf) -> None:
    """6.1."""
    run = lsf("high 80 {PREEMPTIVE}; low 20 {} TERMINATE_WHEN = PREEMPT").run(
        "L1 low; H1 high start=5 run=10", until=30
    )
    assert run.at(5)["H1"] == "RUN"
    assert run.at(20) == {"L1": "EXIT (TERM_PREEMPT)", "H1": "DONE"}
    assert "TERM_PREEMPT" in run.table.run.recorder.preemptions[0].why


def test_s44_brequeue(lsf: Lsf) -> None:
    """6.1: it waits behind the jobs of its priority, and its work is lost."""
    queues = "high 80 {PREEMPTIVE}; low 20 {} JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]"
    run = lsf(queues).run("L1 low run=60; L0 low start=10 run=5; H1 high start=30 run=10")
    assert run.at(30) == {"L1": "PEND", "L0": "PEND", "H1": "RUN"}
    assert (run.starts("L0"), run.starts("L1")) == ([40.0], [0.0, 45.0])
    assert run.history("L1").lost == 30 * 60


def test_s45_migration(lsf: Lsf) -> None:
    """6.1: suspended for more than MIG minutes, it goes where there is room."""
    site = lsf("high 80 {PREEMPTIVE}; low 20 {} RERUNNABLE = y | MIG = 10", "h1(1) h2(1)")
    run = site.run("X low host=h2 run=5; L1 low run=100; H1 high host=h1 start=1 run=500", until=30)
    assert run.at(10.9)["L1"] == "SSUSP"
    assert run.at(11.1)["L1"] == "RUN"
    assert run.host("L1") == "h2"
    assert run.victims == ["L1"]


def test_s46_the_victim_goes_before_its_peers(lsf: Lsf) -> None:
    """6.3."""
    run = lsf(PAIR).run("L1 low; H1 high start=5 run=10; L2 low start=6", until=20)
    assert run.at(15) == {"L1": "RUN", "H1": "DONE", "L2": "PEND"}


def test_s47_need_not_wait_for_the_preemptor(lsf: Lsf) -> None:
    """6.3: another slot of its host is enough; an option makes it wait for the preemptor."""
    jobs = "L2 low run=20; L1 low start=1; H1 high start=5 run=100"
    run = lsf(PAIR, "h1(2)").run(jobs, until=30)
    assert run.victims == ["L1"]
    assert run.at(20) == {"L1": "RUN", "L2": "DONE", "H1": "RUN"}
    strict = lsf(PAIR, "h1(2)", options={"resume": "preemptor"}).run(jobs)
    assert strict.at(20)["L1"] == "SSUSP"
    assert strict.at(105)["L1"] == "RUN"


def test_s48_the_gap_is_for_related_queues_only(lsf: Lsf) -> None:
    """5.3."""
    site = lsf(PAIR, "h1(2)")
    run = site.run("L1 low n=2; H1 high start=5; L3 low start=6; H2 high start=7", until=8)
    assert run.at(6) == {"L1": "SSUSP", "H1": "RUN", "L3": "PEND"}
    assert run.at(7)["H2"] == "RUN"
    assert "(1003)" in run.reason("L3")


def test_s49_three_generations(lsf: Lsf) -> None:
    """6.3: the order of going on."""
    site = lsf("high 80 {PREEMPTIVE}; mid 50 {PREEMPTIVE}; low 20 {}")
    run = site.run("L1 low run=30; M1 mid start=5 run=20; H1 high start=10 run=10")
    assert run.at(10) == {"L1": "SSUSP", "M1": "SSUSP", "H1": "RUN"}
    assert run.at(20) == {"L1": "SSUSP", "M1": "RUN", "H1": "DONE"}
    assert run.at(35) == {"L1": "RUN", "M1": "DONE", "H1": "DONE"}


def test_s50_a_licence_is_worth_a_victim(lsf: Lsf) -> None:
    """8.1: although slots are free."""
    options = {"resources": {"lic": {"total": 1}}}
    site = lsf(PAIR, "h1(4)", "PREEMPTABLE_RESOURCES = lic", options=options)
    holds = {"attributes": {"rusage": {"lic": 1}}}
    run = site.run("L1 low; H1 high start=5 run=10", until=20, L1=holds, H1=holds)
    assert run.at(5) == {"L1": "SSUSP", "H1": "RUN"}
    assert run.at(15)["L1"] == "RUN"
    without = site.run("L1 low; H1 high start=5", until=6, L1=holds)
    assert without.at(5) == {"L1": "RUN", "H1": "RUN"}


@pytest.mark.parametrize(("used", "state"), [(8000, "PEND"), (4000, "RUN")])
def test_s51_only_what_was_reserved_comes_back(lsf: Lsf, used: int, state: str) -> None:
    """8.2: host 8 GB, the victim reserved 4."""
    site = lsf(
        PAIR,
        "h1(4)",
        "PREEMPTABLE_RESOURCES = mem",
        nodes={"h1": {"memory_mb": 8000}},
        policy={"select_parameters": ("CR_Core_Memory",)},
        checked=False,
    )
    run = site.run(f"L1 low mem=4000 used={used}; H1 high mem=8000 start=5 run=10", until=6)
    assert run.at(5)["H1"] == state
    assert run.at(5)["L1"] == ("SSUSP" if state == "RUN" else "RUN")


@pytest.mark.parametrize(
    ("rest", "gpu", "preempts"),
    [
        ("", True, False),
        (" MIG = 5 | RERUNNABLE = y", True, True),
        (" MIG = 5 | RERUNNABLE = y", False, False),
    ],
    ids=["not set up to migrate: no", "set up: yes", "a job without GPUs: no"],
)
def test_s52_gpus(lsf: Lsf, rest: str, gpu: bool, preempts: bool) -> None:
    """8.3."""
    site = lsf(
        f"high 80 {{PREEMPTIVE}}; low 20 {{}}{rest}",
        "h1(1)",
        "PREEMPTABLE_RESOURCES = ngpus_physical",
        files={"lsf.conf": "LSB_GPU_NEW_SYNTAX=extend\n"},
        nodes={"h1": {"gres": {"gpu": 1}}},
    )
    asked = {"gres": {"gpu": 1}}
    run = site.run("L1 low; H1 high start=5", until=6, L1=asked, H1=asked if gpu else {})
    assert run.at(5)["H1"] == ("RUN" if preempts else "PEND")


def test_s53_no_shared_host(lsf: Lsf) -> None:
    """9.3, HOSTS."""
    site = lsf("high 80 {PREEMPTIVE} HOSTS = h1; low 20 {}", "h1(1) h2(1)")
    run = site.run("B high; L1 low start=1; H1 high start=5", until=6)
    assert run.host("L1") == "h2"
    assert run.at(5) == {"B": "RUN", "L1": "RUN", "H1": "PEND"}

"""Scenarios S01 to S17: which job preempts which, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway.config import build_cluster
from makeway_lsf_queue.compiling import build_site
from makeway_lsf_queue.settings import Settings

Lsf = Callable[..., Any]
SAME = "L1 low; H1 high start=5 run=10"


@pytest.mark.parametrize(
    ("queues", "preempts"),
    [
        pytest.param("high 80 {}; low 20 {}", False, id="S01 row 1: off"),
        pytest.param("high 80 {PREEMPTIVE}; low 20 {}", True, id="S02 row 4: an unmarked victim"),
        pytest.param("high 80 {}; low 20 {PREEMPTABLE}", True, id="S03 row 2: an unmarked preemptor"),
    ],
)
def test_marks(lsf: Lsf, queues: str, preempts: bool) -> None:
    """lsf 1, rows 1, 2 and 4."""
    run = lsf(queues).run(SAME, until=6)
    if preempts:
        assert run.at(5) == {"L1": "SSUSP", "H1": "RUN"}
    else:
        assert run.at(5) == {"L1": "RUN", "H1": "PEND"}
        assert "(1305)" in run.reason("H1")


def test_s04_only_the_named_queues(lsf: Lsf) -> None:
    """Row 3."""
    site = lsf("qb 90 {}; qa 50 {}; low 20 {PREEMPTABLE[qa]}")
    run = site.run("L1 low; X1 qb start=5; Y1 qa start=6", until=7)
    assert run.at(5) == {"L1": "RUN", "X1": "PEND"}
    assert run.at(6) == {"L1": "SSUSP", "X1": "PEND", "Y1": "RUN"}


@pytest.mark.parametrize(("option", "state"), [("exclusive", "PEND"), ("union", "RUN")])
def test_s05_conflict_of_lists(lsf: Lsf, option: str, state: str) -> None:
    """2.2 step 5: an option decides, and loading warns."""
    site = lsf("qb 90 {PREEMPTIVE}; low 20 {PREEMPTABLE[qa]}; qa 50 {}", options={"preemptable_list": option})
    assert "PREEMPTABLE of low does not list it" in site.warnings
    assert site.run("L1 low; X1 qb start=5", until=6).at(5)["X1"] == state


@pytest.mark.parametrize(
    ("low", "high", "preempts"),
    [("C", "A", False), ("C", "B", True), ("B", "A", True)],
    ids=["S06a A over C: no", "S06b B over C: yes", "S06c A over B: yes"],
)
def test_s06_not_transitive(lsf: Lsf, low: str, high: str, preempts: bool) -> None:
    """2.3, the seed's A, B and C."""
    run = lsf("A 60 {}; B 40 {PREEMPTIVE PREEMPTABLE}; C 1 {}").run(f"1 {low}; 2 {high} start=5", until=6)
    assert run.at(5)["2"] == ("RUN" if preempts else "PEND")


def test_s07_four_queues(lsf: Lsf) -> None:
    """2.3, the manual's four queues, all 12 pairs."""
    config = lsf(
        "high 99 {PREEMPTIVE}; medium 10 {PREEMPTIVE[normal low+1]};"
        "normal 5 {PREEMPTIVE[low] PREEMPTABLE[high medium]}; low 1 {}"
    ).config
    site = build_site(build_cluster(config), Settings())
    allowed = {(a, b) for a, targets in site.targets.items() for b in targets}
    assert allowed == {
        *(("high", b) for b in ("medium", "normal", "low")),
        *(("medium", b) for b in ("normal", "low")),
        ("normal", "low"),
    }
    assert sorted(site.targets["medium"], key=site.targets["medium"].__getitem__) == ["low", "normal"]


@pytest.mark.parametrize("line", ["PREEMPTIVE", "PREEMPTIVE[qb]"])
def test_s08_equal_priority(lsf: Lsf, line: str) -> None:
    """2.2 step 2."""
    run = lsf(f"qa 50 {{{line}}}; qb 50 {{PREEMPTABLE}}").run("B1 qb; A1 qa start=5", until=6)
    assert run.at(5) == {"B1": "RUN", "A1": "PEND"}


def test_s09_same_queue(lsf: Lsf) -> None:
    """2.2 step 1: not even a job of higher user priority."""
    run = lsf("high 80 {PREEMPTIVE}").run(
        "H1 high; H2 high start=5", until=6, H2={"priority": 10**6}, H1={"priority": 1}
    )
    assert run.at(5) == {"H1": "RUN", "H2": "PEND"}


def test_s10_a_listed_queue_that_is_not_lower(lsf: Lsf) -> None:
    """2.2 step 2, with a warning."""
    site = lsf("low 20 {PREEMPTIVE[high]}; high 80 {}")
    assert "lists 'high', whose priority is not lower" in site.warnings
    assert site.run("H1 high; L1 low start=5", until=6).at(5) == {"H1": "RUN", "L1": "PEND"}


def test_s11_preference_beats_host_load(lsf: Lsf) -> None:
    """Row 6a."""
    site = lsf(
        "medium 10 {PREEMPTIVE[normal low+1]}; normal 5 {}; low 1 {}",
        "h1(1) h2(1)",
        nodes={"h1": {"load": 0.1}, "h2": {"load": 0.9}},
    )
    run = site.run("N1 normal host=h1; W1 low host=h2; M1 medium start=5", until=6)
    assert run.victims == ["W1"]


@pytest.mark.parametrize(
    ("queues", "order"),
    [
        pytest.param(
            "top 90 {PREEMPTIVE[q1+2 q2+5 q3]}; q1 30 {}; q2 40 {}; q3 10 {}",
            ["q2", "q1", "q3"],
            id="S12 row 6a, 6b",
        ),
        pytest.param(
            "top 90 {PREEMPTIVE[q1+1 q2+1 q3]}; q1 30 {}; q2 20 {}; q3 10 {}",
            ["q2", "q1", "q3"],
            id="S13 row 6c",
        ),
        pytest.param(
            "top 90 {PREEMPTIVE[q1 q2 q3+1]}; q1 30 {}; q2 20 {}; q3 25 {}",
            ["q3", "q2", "q1"],
            id="S14 row 6d",
        ),
    ],
)
def test_order_of_queues(lsf: Lsf, queues: str, order: list[str]) -> None:
    """Row 6: the regime of preference numbers."""
    run = lsf(queues, "h1(1) h2(1) h3(1)").run(
        "q1 q1 host=h1; q2 q2 host=h2; q3 q3 host=h3; T1 top start=5; T2 top start=6; T3 top start=7", until=8
    )
    assert run.victims == order


@pytest.mark.parametrize(
    ("params", "victim"),
    [
        pytest.param("", "L2", id="S15 row 4: the least loaded host"),
        pytest.param("PREEMPT_FOR = LEAST_RUN_TIME", "L1", id="S16 row 7: the shortest run"),
    ],
)
def test_host_or_run_time(lsf: Lsf, params: str, victim: str) -> None:
    """The criterion is the host, and with LEAST_RUN_TIME the run time instead of it."""
    loads = {"h1": {"load": 0.9}, "h2": {"load": 0.1}}
    site = lsf("high 80 {PREEMPTIVE}; low 20 {}", "h1(1) h2(1)", params, nodes=loads)
    run = site.run("L2 low host=h2; L1 low host=h1 start=50; H1 high start=60", until=61)
    assert run.victims == [victim]


def test_s17_preference_before_run_time(lsf: Lsf) -> None:
    """3.3."""
    site = lsf(
        "top 90 {PREEMPTIVE[q1+2 q2]}; q1 30 {}; q2 20 {}", "h1(1) h2(1)", "PREEMPT_FOR = LEAST_RUN_TIME"
    )
    run = site.run("one q1 host=h1; two q2 host=h2 start=50; T1 top start=60", until=61)
    assert run.victims == ["one"]

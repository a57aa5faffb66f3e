"""Work with select/linear and select/cons_tres: where a host has one slot they are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"
LINEAR = {"select": "select/linear", "select_parameters": ()}
CONS_TRES = {"select": "select/cons_tres", "select_parameters": ("CR_Core",)}
both = pytest.mark.parametrize("policy", [LINEAR, CONS_TRES], ids=["linear", "cons_tres"])


@both
@pytest.mark.parametrize(
    ("queues", "hosts", "params", "jobs", "expected"),
    [
        pytest.param(
            PAIR, "h1(1)", "", "L low; H high start=5", {5: {"L": "SSUSP", "H": "RUN"}}, id="as S02"
        ),
        pytest.param(
            "medium 10 {PREEMPTIVE[normal low+1]}; normal 5 {}; low 1 {}",
            "h1(1) h2(1)",
            "",
            "N normal host=h1; W low host=h2; M medium start=5",
            {5: {"N": "RUN", "W": "SSUSP", "M": "RUN"}},
            id="as S11",
        ),
        pytest.param(
            PAIR,
            "h1(1) h2(1)",
            "NO_PREEMPT_RUN_TIME = 10",
            "A low; B low start=8; H high n=2 start=12",
            {12: {"A": "RUN", "B": "RUN", "H": "PEND"}},
            id="as S19",
        ),
        pytest.param(
            "high 80 {PREEMPTIVE}; low 20 {} TERMINATE_WHEN = PREEMPT",
            "h1(1)",
            "",
            "L low; H high start=5 run=10",
            {16: {"L": "EXIT (TERM_PREEMPT)", "H": "DONE"}},
            id="as S43",
        ),
        pytest.param(
            PAIR,
            "h1(1)",
            "",
            "L1 low; H high start=5 run=10; L2 low start=6",
            {6: {"L1": "SSUSP", "H": "RUN", "L2": "PEND"}, 15: {"L1": "RUN", "H": "DONE", "L2": "PEND"}},
            id="as S46",
        ),
        pytest.param(
            "high 80 {PREEMPTIVE}; mid 50 {PREEMPTIVE}; low 20 {}",
            "h1(1)",
            "",
            "L low run=30; M mid start=5 run=20; H high start=10 run=10",
            {10: {"L": "SSUSP", "M": "SSUSP", "H": "RUN"}, 20: {"L": "SSUSP", "M": "RUN", "H": "DONE"}},
            id="as S49",
        ),
        pytest.param(
            PAIR,
            "h1(1) h2(1)",
            "PREEMPT_FOR = MINI_JOB LEAST_RUN_TIME",
            "B low n=2; H high n=2 start=5 run=10",
            {5: {"B": "SSUSP", "H": "RUN"}, 15: {"B": "RUN", "H": "DONE"}},
            id="parallel",
        ),
    ],
)
def test_one_slot_per_host(
    lsf: Lsf,
    policy: dict[str, object],
    queues: str,
    hosts: str,
    params: str,
    jobs: str,
    expected: dict[float, dict[str, str]],
) -> None:
    """The same states at the same instants."""
    run = lsf(queues, hosts, params, policy=policy).run(jobs, until=50)
    assert {minute: run.at(minute) for minute in expected} == expected


@pytest.mark.parametrize(
    ("policy", "state"),
    [(LINEAR, "SSUSP"), (CONS_TRES, "RUN")],
    ids=["linear: the whole host", "cons_tres: a slot"],
)
def test_hosts_with_several_slots(lsf: Lsf, policy: dict[str, object], state: str) -> None:
    """Under select/linear a job holds all four slots; else the preemptor starts beside it."""
    run = lsf(PAIR, "h1(4)", policy=policy).run("L low; H high start=5", until=6)
    assert run.at(5) == {"L": state, "H": "RUN"}

"""Wait for JOB_ACCEPT_INTERVAL turns of MBD_SLEEP_TIME before a host is given another job (lsf 9.3); minutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"


@pytest.mark.parametrize(
    ("params", "starts"),
    [
        pytest.param("MBD_SLEEP_TIME = 60", [0.0, 0.0, 0.0], id="not set"),
        pytest.param("JOB_ACCEPT_INTERVAL = 0", [0.0, 0.0, 0.0], id="0: any number at once"),
        pytest.param("JOB_ACCEPT_INTERVAL = 2", [0.0, 2.0, 4.0], id="2 turns of 60 s"),
        pytest.param("JOB_ACCEPT_INTERVAL = 2 | MBD_SLEEP_TIME = 90", [0.0, 3.0, 6.0], id="2 turns of 90 s"),
    ],
)
def test_one_job_at_a_time(lsf: Lsf, params: str, starts: list[float]) -> None:
    """Three jobs for a host of four slots; a parallel one may start on several hosts at once."""
    run = lsf("low 20 {}", "h1(4)", params).run("A low; B low; C low", until=30)
    assert sorted(run.starts("A") + run.starts("B") + run.starts("C")) == starts
    wide = lsf("low 20 {}", "h1(2) h2(2)", params).run("W low n=4", until=30)
    assert wide.starts("W") == [0.0]


def test_another_host_may_be_given_a_job(lsf: Lsf) -> None:
    """The wait is the host's, not the queue's."""
    run = lsf("low 20 {}", "h1(2) h2(2)", "JOB_ACCEPT_INTERVAL = 5").run(
        "A low; B low start=1; C low start=2"
    )
    assert (run.starts("B"), run.starts("C")) == ([1.0], [5.0])
    assert run.host("A") != run.host("B")


def test_a_preemptor_waits_as_well(lsf: Lsf) -> None:
    """No job is stopped for one that could not start; the reason says why."""
    site = lsf(PAIR, params="JOB_ACCEPT_INTERVAL = 5")
    run = site.run("L low; H high start=1", until=20)
    assert [run.at(minute)["L"] for minute in (1, 4.9, 5)] == ["RUN", "RUN", "SSUSP"]
    assert run.starts("H") == [5.0]
    assert "PEND_HOST_ACCPT_ONE" in site.run("L low; H high start=1", until=3).reason("H")


def test_the_victims_on_the_way_do_not_open_their_host(lsf: Lsf) -> None:
    """A victim that is killed was dispatched all the same."""
    run = lsf(
        "high 80 {PREEMPTIVE}; low 20 {} TERMINATE_WHEN = PREEMPT", params="JOB_ACCEPT_INTERVAL = 5"
    ).run("L low; H high start=1", until=20)
    assert run.starts("H") == [5.0]


def test_the_queue_says_before_the_cluster(lsf: Lsf) -> None:
    """The queue of the job that is to be dispatched."""
    site = lsf(
        "high 80 {PREEMPTIVE} JOB_ACCEPT_INTERVAL = 0; low 20 {}", "h1(4)", params="JOB_ACCEPT_INTERVAL = 5"
    )
    run = site.run("L low; M low start=1; H high start=2", until=20)
    assert run.starts("H") == [2.0]
    assert run.starts("M") == [7.0]  # 5 turns after H


def test_going_on_is_no_dispatch(lsf: Lsf) -> None:
    """The victim goes on at once, though its host was given a job a minute ago; and opens the host to the next."""
    run = lsf(PAIR, params="JOB_ACCEPT_INTERVAL = 5").run(
        "L low; H high start=5 run=1; N high start=8", until=20
    )
    assert [run.at(minute)["L"] for minute in (5, 6, 8)] == ["SSUSP", "RUN", "SSUSP"]


# -------------------------------------------------------------------- what has no effect, and why
@pytest.mark.parametrize(
    ("site", "said"),
    [
        (
            {"params": "PREEMPTION_WAIT_TIME = 300"},
            "no effect here: PREEMPTION_WAIT_TIME (lsb.params); License Scheduler's; what victims give back is there",
        ),
        (
            {"params": "SBD_SLEEP_TIME = 30"},
            "no effect here: SBD_SLEEP_TIME (lsb.params); jobs stop and go on at the instant at which that is decided",
        ),
        (
            {"host_columns": {"h1": {"r1m": "3.5/4.5"}}, "queues": "low 20 {} STOP_COND = r1m>3 | PG = 4/15"},
            "no effect here: STOP_COND PG (lsb.queues) R1M (lsb.hosts); a replay has no load indices",
        ),
        (
            {"queues": "low 20 {} TERMINATE_WHEN = LOAD"},
            "lsb.queues:4: LOAD has no effect: a replay has no load indices",
        ),
    ],
)
def test_why_there_is_no_effect(lsf: Lsf, site: dict[str, Any], said: str) -> None:
    """Named when the files are read, with the reason."""
    assert said in lsf(**{"queues": "low 20 {}", **site}).warnings.replace("), ", ") ")

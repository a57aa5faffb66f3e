"""What ``makeway explain`` and the readers say of limits, and of jobs that are out of reach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

Lsf = Callable[..., Any]


def told(folder: Path, wanted: str, *jobs: tuple[str, str, int]) -> str:
    """Return what explain says of a job; `jobs` are id, queue and second of submission."""
    tables = [
        f'[[job]]\nid = "{name}"\nuser = "u_{name}"\npartition = "{queue}"\nsubmit = {at}\nrun_time = 600\n'
        for name, queue, at in jobs
    ]
    (folder / "jobs.toml").write_text("\n".join(tables))
    done = CliRunner().invoke(
        cli, ["explain", str(folder / "lsb.queues"), str(folder / "jobs.toml"), "--job", wanted]
    )
    assert done.exit_code in (0, 3), done.output
    return done.output


@pytest.mark.parametrize(
    ("queues", "running", "line"),
    [
        pytest.param(
            "high 80 {PREEMPTIVE}; low 20 {PREEMPTABLE[mid]}; mid 50 {}",
            "low",
            "PREEMPTABLE of low lists mid, not high (preemptable_list = 'exclusive': PREEMPTIVE does not help); "
            "running: R [lsb.queues:10]",
            id="a PREEMPTABLE list without it",
        ),
        pytest.param(
            "high 80 {PREEMPTIVE[mid]}; low 20 {}; mid 50 {}",
            "low",
            "PREEMPTIVE of high lists mid, not low; running: R [lsb.queues:4]",
            id="a PREEMPTIVE list without that queue",
        ),
        pytest.param(
            "high 80 {}; low 20 {}; mid 50 {PREEMPTABLE}",
            "low",
            "high is not PREEMPTIVE, and low is not PREEMPTABLE; running: R",
            id="neither",
        ),
        pytest.param(
            "high 80 {PREEMPTIVE}; low 20 {}; top 90 {}",
            "top",
            "its PRIORITY 90 is not lower than 80; running: R [lsb.queues:14]",
            id="a higher queue",
        ),
        pytest.param(
            "high 80 {PREEMPTIVE}; low 20 {}",
            "high",
            "jobs of one queue never preempt each other; running: R",
            id="its own queue",
        ),
    ],
)
def test_running_jobs_out_of_reach_are_named(
    lsf: Lsf, tmp_path: Path, queues: str, running: str, line: str
) -> None:
    """2.2: the rule, and the line of the file that decided it."""
    lsf(queues)
    text = told(tmp_path, "H", ("R", running, 0), ("H", "high", 10))
    assert f"Q6 warning may it take jobs of queue {running}? no: {line}" in text


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        pytest.param("u_H 0 -\ndefault 5 -\n", "lsb.users:3", id="the user's row"),
        pytest.param("ann 3 -\ndefault 0 -\n", "lsb.users:4", id="the row default"),
    ],
)
def test_max_jobs_cites_the_row(lsf: Lsf, tmp_path: Path, rows: str, place: str) -> None:
    """5.1: the line of lsb.users that sets it for this user."""
    users = f"Begin User\nUSER_NAME MAX_JOBS JL/P\n{rows}End User\n"
    lsf("high 80 {PREEMPTIVE}; low 20 {}", files={"lsb.users": users})
    text = told(tmp_path, "H", ("H", "high", 10))
    (line,) = [each for each in text.splitlines() if "MAX_JOBS" in each and "Q4" in each]
    assert line.endswith(f"[{place}]")


def test_jlu_cites_the_host(lsf: Lsf, tmp_path: Path) -> None:
    """5.1: the row of lsb.hosts."""
    lsf("high 80 {PREEMPTIVE}; low 20 {}", "h1(2)", host_columns={"h1": {"JL/U": "1"}})
    text = told(tmp_path, "H", ("R", "high", 0), ("R2", "high", 0), ("H", "high", 10))
    (line,) = [each for each in text.splitlines() if "JL/U" in each and "Q4" in each]
    assert line.endswith("[lsb.hosts:3]")


def test_columns_that_no_row_sets_are_not_named(lsf: Lsf) -> None:
    """``()`` is not set (9.2 no. 7)."""
    empty = lsf("low 20 {}", host_columns={"h1": {"r1m": "()", "pg": "-"}})
    assert "no effect here" not in empty.warnings
    filled = lsf("low 20 {}", host_columns={"h1": {"r1m": "3.5", "pg": "()"}})
    assert "no effect here: R1M (lsb.hosts)" in filled.warnings


@pytest.mark.parametrize(
    ("keyword", "files"),
    [
        ("NO_PREEMPT_RUN_TIME = 10", "lsb.params or lsb.applications"),
        ("NO_PREEMPT_FINISH_TIME = 10", "lsb.params or lsb.applications"),
        ("PREEMPT_FOR = MINI_JOB", "lsb.params"),
        ("MAX_JOBS = 3", "lsb.users"),
    ],
)
def test_a_keyword_of_another_file_is_sent_there(lsf: Lsf, keyword: str, files: str) -> None:
    """4.1 and 9.3; another keyword that looks alike is not suggested."""
    said = lsf(f"low 20 {{}} {keyword}").warnings
    assert f"{keyword.split()[0]} belongs in {files}, not in lsb.queues; the line is ignored" in said
    assert "did you mean" not in said


def test_a_keyword_of_queues_in_lsb_params_is_sent_there(lsf: Lsf) -> None:
    """2.1: PREEMPTION is a line of a queue."""
    said = lsf("low 20 {}", params="PREEMPTION = PREEMPTIVE").warnings
    assert "PREEMPTION belongs in lsb.queues, not in lsb.params" in said

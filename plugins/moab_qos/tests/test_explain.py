"""What ``makeway explain`` says of jobs under a moab.cfg."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli
from makeway_moab_qos.explain.jobs import k06

SITE = """
PREEMPTPOLICY REQUEUE
GUARANTEEDPREEMPTION TRUE
QOSWEIGHT 1
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000
QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=100 JOBFLAGS=RESTARTABLE
"""


@pytest.fixture(name="explain")
def _explain(tmp_path: Path) -> Any:
    def explain(job: str, jobs: Mapping[str, Mapping[str, Any]], more: str = "", **clock: float) -> str:
        """Return the story of one job on a node of four processors.

        :param jobs: id -> keys of its ``[[job]]`` table.
        :param clock: values of the clockwork.
        """
        text = ['[[node]]\nname = "n1"\ncpus = 4', "[scheduler.clockwork]\npreset = 'ideal'"]
        text += [f"{key} = {value}" for key, value in clock.items()]
        for name, keys in jobs.items():
            table = {"user": f"u_{name}", "tasks": 4, "run_time": 1000, "time_limit": 1000, **keys}
            text += ["[[job]]", f'id = "{name}"', *(f"{key} = {value!r}" for key, value in table.items())]
        (tmp_path / "nodes.toml").write_text("\n".join(text))
        (tmp_path / "moab.cfg").write_text(SITE + more)
        words = ["explain", tmp_path / "moab.cfg", "--nodes", tmp_path / "nodes.toml", "--job", job]
        done = CliRunner().invoke(cli, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    return explain


def codes(text: str) -> list[str]:
    """Return the codes of the check list, in order."""
    return [line.split()[0] for line in text.splitlines() if line.startswith("  K")]


PAIR = {"L": {"qos": "low", "submit": 0}, "H": {"qos": "high", "submit": 10}}


def test_who_has_preempted_is_not_asked_why_it_did_not(explain: Any) -> None:
    """The list is about jobs that should have preempted and did not (12.1); H waits for L to leave."""
    later = {"N": {"qos": "low", "submit": 20}}  # a pass while H waits
    text = explain("H", {**PAIR, **later}, completing_time=100.0)
    assert "job L (" in text
    assert codes(text) == []


def test_the_list_is_as_of_the_attempt(explain: Any) -> None:
    """Two processors are idle when H is tried; K, which takes one of them in the same pass, comes after it."""
    jobs = {
        "L": {"qos": "low", "submit": 0, "tasks": 2, "time_limit": 2000, "run_time": 2000},
        "H": {"qos": "high", "submit": 10},
        "K": {"submit": 10, "tasks": 1, "time_limit": 1990, "run_time": 1990},
    }
    text = explain("H", jobs, "QOSCFG[high] PRIORITY=50")
    assert "check list, as of 10 s" in text
    assert "K20 fail    would all victims together suffice? 2 idle and 0 preemptible of 4 processors" in text
    assert "gap -50" in text


def test_a_job_that_may_not_preempt_is_asked_only_why_not(explain: Any) -> None:
    """By its flags, K01, and its QoS, K18."""
    text = explain("L", {"B": {"qos": "high", "submit": 0}, "L": {"qos": "low", "submit": 10}})
    assert codes(text) == ["K01", "K18"]
    assert "K01 fail" in text


def stayed(text: str) -> list[str]:
    """Return the lines that say why a job stayed suspended."""
    if "why it stayed suspended" not in text:
        return []
    paragraph = text[text.index("why it stayed suspended") :].split("\n\n")[0]
    return [line.strip() for line in paragraph.splitlines()[1:]]


SUSPEND = "PREEMPTPOLICY SUSPEND\nQOSCFG[low] JOBFLAGS=SUSPENDABLE\n"


@pytest.mark.parametrize(
    ("runs", "more", "lines"),
    [
        pytest.param(
            100,
            "",
            [
                "10 s to 70 s: hold-down of 60 s after its suspension "
                '[policy.settings."moab/qos".min_admin_stime]',
                "10 s to 110 s: others run on its processors: H",
            ],
            id="the holder outlasts the hold-down",
        ),
        pytest.param(
            20,
            "MINADMINSTIME 00:05:00\n",
            [
                "10 s to 310 s: hold-down of 300 s after its suspension [moab.cfg:9]",
                "10 s to 30 s: others run on its processors: H",
            ],
            id="the hold-down outlasts the holder",
        ),
    ],
)
def test_why_a_suspended_job_stays_suspended(explain: Any, runs: int, more: str, lines: list[str]) -> None:
    """7.4: the hold-down of 60 s or MINADMINSTIME, and what runs on its processors, each from when to when."""
    jobs = {"L": {"qos": "low", "submit": 0}, "H": {"qos": "high", "submit": 10, "run_time": runs}}
    assert stayed(explain("L", jobs, SUSPEND + more)) == lines


# ----------------------------------------------------------------------------------- Moab's words
def test_explain_speaks_moab(explain: Any) -> None:
    """Class, not partition; Idle and Suspended, not PENDING and SUSPENDED (12.2)."""
    text = explain("L", {"L": {"qos": "low", "submit": 0}, "H": {"qos": "high", "submit": 10}}, SUSPEND)
    assert "class batch, QoS low, submitted" in text
    assert "10 s to 1,010 s: Suspended on n1" in text
    assert "Completed at" in text
    assert "partition" not in text
    waits = explain("H", {"L": {"submit": 0}, "H": {"qos": "high", "submit": 10}})
    assert "10 s to 1,000 s: too few resources are available" in waits


def test_showq(explain: Any, tmp_path: Path) -> None:
    """Active jobs with the least time left first, eligible ones by priority, and those held; each with its mark."""
    jobs = {
        "L": {"qos": "low", "submit": 0, "tasks": 2, "time_limit": 2000},
        "S": {"submit": 0, "tasks": 2, "time_limit": 1000},
        "W": {"submit": 10, "tasks": 4, "time_limit": 100000},
        "V": {"qos": "low", "submit": 20, "tasks": 4, "time_limit": 600},
        "B": {"submit": 30, "priority": 0},
    }
    explain("W", jobs)
    words = ["replay", tmp_path / "moab.cfg", "--nodes", tmp_path / "nodes.toml"]
    for option in ("--queue-at", "--showq-at"):
        done = CliRunner().invoke(cli, [*map(str, words), option, "40"])
        shown = done.output[done.output.index("showq at 40 s") : done.output.index("Total jobs:")]
        rows = [line.split() for line in shown.splitlines() if line[:1] in tuple("LSWVB")]
        assert rows == [
            ["S", "u_S", "Running", "2", "0:16:00", "0", "s"],
            ["L-", "u_L", "Running", "2", "0:32:40", "0", "s"],
            ["V", "u_V", "Idle", "4", "0:10:00", "20", "s"],  # QoS low: 100 and 0 minutes; W has 0
            ["W", "u_W", "Idle", "4", "1:03:46:40", "10", "s"],
            ["B", "u_B", "Hold", "4", "0:16:40", "30", "s"],
        ]
        assert "4 of 4 processors in use (100.00%)" in shown


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [("Resources", "pass"), ("Priority", "pass"), ("None", "pass"), ("BeginTime", "fail")],
)
def test_k06_asks_what_the_job_waits_for(reason: str, verdict: str) -> None:
    """A job that waits for something else than room is kept out by that."""
    case: Any = SimpleNamespace(job=SimpleNamespace(reason=reason))
    (found,) = k06(case)
    assert (found.code, found.verdict) == ("K06", verdict)
    assert (reason in found.found) is (verdict == "fail")

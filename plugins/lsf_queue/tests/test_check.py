"""What ``makeway check`` finds in LSF configurations, and what people see in LSF's words."""

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


def found(site: Any) -> list[str]:
    """Return the messages of all findings."""
    config = site.config
    settings = structure(config.policy.settings["lsf/queue"], Settings, "test")
    return [finding.message for finding in findings(build_cluster(config), settings)]


@pytest.mark.parametrize(
    ("queues", "params", "files", "text"),
    [
        pytest.param("a 1 {}", "", {}, "preemption is off: no queue", id="off"),
        pytest.param("a 1 {PREEMPTIVE}; b 1 {}", "", {}, "none is higher than another", id="none is lower"),
        pytest.param(
            "a 1 {PREEMPTIVE}; b 5 {PREEMPTIVE}", "", {}, "a is PREEMPTIVE but finds no queue", id="lowest"
        ),
        pytest.param(
            "a 9 {PREEMPTABLE}; b 5 {PREEMPTABLE}", "", {}, "a is PREEMPTABLE but no queue may", id="highest"
        ),
        pytest.param(
            "a 9 {PREEMPTIVE[b c]}; b 5 {}", "", {}, "'c', which does not exist", id="unknown queue"
        ),
        pytest.param(
            "a 9 {PREEMPTIVE[b]}; b 9 {}",
            "",
            {},
            "lists 'b', whose priority is not lower",
            id="equal targets",
        ),
        pytest.param(
            "a 9 {PREEMPTABLE[b]}; b 9 {}", "", {}, "lists 'b', whose priority is not higher", id="equal ones"
        ),
        pytest.param("a 9 {PREEMPTIVE[]}; b 5 {}", "", {}, "names no queue", id="empty brackets"),
        pytest.param("a 9 {PREEMPTIVE[b+0]}; b 5 {}", "", {}, "positive whole number", id="bad preference"),
        pytest.param(
            "a 9 {PREEMPTIVE}; b 5 {PREEMPTABLE[c]}; c 7 {}", "", {}, "does not list it", id="conflict"
        ),
        pytest.param(
            "r 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[5]; p 75 {PREEMPTIVE}; b 50 {PREEMPTABLE} BACKFILL = Y",
            "PREEMPT_JOBTYPE = BACKFILL",
            {},
            "jobs of r may start late",
            id="three queues",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 50 {PREEMPTABLE} BACKFILL = Y",
            "",
            {},
            "PREEMPT_JOBTYPE lacks",
            id="backfill is safe",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 50 {} INTERRUPTIBLE_BACKFILL = 60", "", {}, "it is off", id="interruptible"
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {}",
            "PREEMPT_JOBTYPE = EXCLUSIVE",
            {},
            "LSB_DISABLE_LIMLOCK",
            id="exclusive",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {}",
            "PREEMPT_FOR = OPTIMAL_MINI_JOB",
            {},
            "PARALLEL_SCHED_BY_SLOT",
            id="optimal",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {}",
            "",
            {"lsb.users": "Begin User\nUSER_NAME JL/P\nu 1\nEnd User\n"},
            "PREEMPT_FOR=USER_JLP",
            id="a limit that stays",
        ),
        pytest.param("p 75 {PREEMPTIVE}; b 5 {} MIG = 5", "", {}, "neither rerunnable", id="MIG alone"),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {} JOB_CONTROLS = SUSPEND[do_it.sh]",
            "",
            {},
            "not known here",
            id="a command",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {}", "PREEMPTABLE_RESOURCES = ut", {}, "load index", id="load index"
        ),
        pytest.param("p 75 {PREEMPTIVE}; b 5 {}", "MAX_PREEMPT_JOBS = 5", {}, "OpenLava's", id="OpenLava"),
        pytest.param("p 75 {PREEMPTIVE}; b 5 {}", "", {}, "takes jobs of b too", id="takes unmarked queues"),
        pytest.param("p 75 {PREEMPTIVE}; b 5 {}", "", {}, "again and again", id="for ever"),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {} TERMINATE_WHEN = PREEMPT | JOB_CONTROLS = TERMINATE[bkill $LSB_JOBID]",
            "",
            {},
            "a deadlock",
            id="the terminate action kills",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {}",
            "PREEMPTABLE_RESOURCES = ngpus_physical",
            {},
            "without LSB_GPU_NEW_SYNTAX",
            id="old GPU syntax",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {} RERUNNABLE = y",
            "PREEMPTABLE_RESOURCES = ngpus_physical",
            {"lsf.conf": "LSB_GPU_NEW_SYNTAX=extend\n"},
            "GPU jobs of b are safe unless",
            id="GPU victims cannot migrate",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {PREEMPTABLE} BACKFILL = Y | RUNLIMIT = 60 | INTERRUPTIBLE_BACKFILL = 60",
            "PREEMPT_JOBTYPE = BACKFILL",
            {},
            "are lost without REQUEUE_EXIT_VALUES",
            id="interruptible, not requeued",
        ),
        pytest.param(
            "p 75 {PREEMPTIVE}; b 5 {PREEMPTABLE} BACKFILL = Y | RUNLIMIT = 60 | INTERRUPTIBLE_BACKFILL = 60"
            " | TERMINATE_WHEN = PREEMPT",
            "PREEMPT_JOBTYPE = BACKFILL",
            {},
            "the promised least run time is not kept",
            id="interruptible, killed",
        ),
    ],
)
def test_findings(lsf: Lsf, queues: str, params: str, files: dict[str, str], text: str) -> None:
    """Each configuration that the documentation warns of."""
    messages = found(lsf(queues, "h1(1)", params, files=files))
    assert any(text in message for message in messages), messages


def test_explain_speaks_lsf(lsf: Lsf, tmp_path: Path) -> None:
    """States, reasons with their numbers, the limit and the count."""
    lsf("high 80 {PREEMPTIVE}; low 20 {} QJOB_LIMIT = 1", "h1(1) h2(1)")
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text(
        '{"id": "L1", "partition": "low", "submit": 0, "run_time": 100, "required_nodes": "h1"}\n'
        '{"id": "H1", "partition": "high", "submit": 5, "run_time": 50, "required_nodes": "h1"}\n'
        '{"id": "L2", "partition": "low", "submit": 6, "run_time": 5}\n'
    )

    def told(job: str) -> str:
        arguments = ["explain", str(tmp_path / "lsb.queues"), str(jobs), "--job", job]
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
        return result.output

    assert "5 s to 55 s: SSUSP on h1" in told("L1")
    assert "SUSP_MBD_PREEMPT (0x00000080)" in told("L1")
    waits = told("L2")
    assert "PEND_QUE_JOB_LIMIT (303)" in waits
    assert "QJOB_LIMIT of queue low is 1; 1 in use (1 suspended), 1 wanted; suspended jobs count too" in waits
    assert "queue low" in waits
    assert "could displace, in this order: L1 (suspend)" in told("H1")


def test_explain_tells_slots_of_suspended_jobs_from_victims(lsf: Lsf, tmp_path: Path) -> None:
    """A queue that preempts none may use the slots of a suspended job; none is displaced by that (5.3)."""
    lsf("top 90 {PREEMPTIVE[mid]}; mid 50 {PREEMPTIVE[low]}; low 20 {}", "h1(2)")
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text(
        '{"id": "M", "partition": "mid", "submit": 0, "run_time": 90, "cpus": 2}\n'
        '{"id": "T", "partition": "top", "submit": 5, "run_time": 50}\n'
        '{"id": "A", "partition": "low", "submit": 10, "run_time": 5}\n'
        '{"id": "B", "partition": "low", "submit": 11, "run_time": 5, "cpus": 2}\n'
    )

    def told(job: str) -> str:
        arguments = ["explain", str(tmp_path / "lsb.queues"), str(jobs), "--job", job]
        return CliRunner().invoke(cli, arguments).output

    starts, waits = told("A"), told("B")
    assert "10 s: starts on h1 in queue low: uses what suspended jobs hold: M" in starts
    assert "could use what these hold, which are suspended: M" in waits
    assert "what suspended jobs hold would not be enough" in waits
    for text in (starts, waits):
        assert "may queue low preempt others? no" in text or text is starts
        assert "could displace" not in text
        assert "takes" not in text
        assert "which it displaced: none" in text
    assert "could displace, in this order: M (suspend)" in told("T")


def test_check_is_about_lsf_alone(lsf: Lsf, tmp_path: Path) -> None:
    """Slurm's rules have no say, and nothing is said twice."""
    lsf("a 9 {PREEMPTIVE}; b 5 {PREEMPTABLE[c]}; c 7 {}")
    result = CliRunner().invoke(cli, ["check", str(tmp_path / "lsb.queues")])
    assert result.exit_code == 0, result.output
    assert result.output.count("does not list it") == 1
    assert "slurm" not in result.output.lower()


def test_a_queue_that_lists_a_higher_one_is_sound(lsf: Lsf) -> None:
    """It is said of others that their priority is not higher."""
    site = lsf("a 9 {PREEMPTIVE}; b 5 {PREEMPTABLE[a]}", "h1(4)")
    assert not [text for text in found(site) if "whose priority" in text]

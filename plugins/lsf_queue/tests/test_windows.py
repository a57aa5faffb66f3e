"""Keep jobs out, and stop them, by RUN_WINDOW and DISPATCH_WINDOW (lsf 6.1, 9.2 no. 12, 9.3, 10).

Without a wall clock the replay begins at midnight between Saturday and Sunday; minutes of the tests are counted from
there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli
from makeway_lsf_queue.values import WrongValueError
from makeway_lsf_queue.vocabulary import WORDS
from makeway_lsf_queue.windows import Clock, is_open, next_change, time_windows

Lsf = Callable[..., Any]
HOUR = 60


@pytest.mark.parametrize(
    ("text", "at", "opened", "changes_in"),
    [
        pytest.param("8-17", Clock.at(8), True, 9 * HOUR, id="opens on the hour"),
        pytest.param("8-17", Clock.at(17), False, 15 * HOUR, id="closes on the hour"),
        pytest.param("8:30-17:15", Clock.at(8, 29, day=3), False, 1, id="minutes, any day"),
        pytest.param(
            "20-6", Clock.at(23, day=6), True, 7 * HOUR, id="over midnight, and over the week's end"
        ),
        pytest.param("20-6", Clock.at(6, day=2), False, 14 * HOUR, id="over midnight, closed by day"),
        pytest.param(
            "5:18:00-1:8:00", Clock.at(12, day=0), True, 20 * HOUR, id="weekend, over the week's end"
        ),
        pytest.param("5:18:00-1:8:00", Clock.at(8, day=1), False, 106 * HOUR, id="weekend, from Monday on"),
        pytest.param("8-12 12-17", Clock.at(9), True, 8 * HOUR, id="adjoining windows are one"),
        pytest.param("1-2 4-5", Clock.at(3), False, HOUR, id="several"),
        pytest.param("0-24", Clock.at(3), True, None, id="always"),
    ],
)
def test_a_window(text: str, at: Clock, opened: bool, changes_in: int | None) -> None:
    """Whether it is open, and in how many minutes that changes: counted by hand."""
    windows = time_windows(text)
    assert is_open(windows, at) is opened
    found = next_change(windows, 60.0 * at.minute)
    assert found == (None if changes_in is None else 60.0 * changes_in)


@pytest.mark.parametrize("text", ["8", "8-17:30", "25-3", "7:8:00-1:8:00", "8-17,18-20", "9-9", "8:75-9:00"])
def test_what_is_no_window(lsf: Lsf, text: str) -> None:
    """The line is ignored with a message that names it, and the queue is open all the time."""
    with pytest.raises(WrongValueError, match="allowed: begin-end"):
        time_windows(text)
    site = lsf(f"q 20 {{}} RUN_WINDOW = {text}")
    assert "RUN_WINDOW: got" in site.warnings
    assert site.run("A q run=5").starts("A") == [0.0]


def test_dispatch_window_keeps_out(lsf: Lsf) -> None:
    """No job starts before it opens or after it closes; what runs goes on (9.3)."""
    site = lsf("q 20 {} DISPATCH_WINDOW = 1-2", "h1(2)")
    assert "no effect" not in site.warnings
    run = site.run("A q run=100; B q start=130 run=5", until=30 * HOUR)
    assert run.starts("A") == [60.0]
    assert run.at(150) == {"A": "RUN", "B": "PEND"}
    assert run.starts("B") == [25 * 60.0]
    assert "PEND_QUE_WINDOW" in site.run("A q", until=10).reason("A")


def test_a_closed_queue_takes_no_job(lsf: Lsf) -> None:
    """A preemptor begins to preempt when its window opens."""
    run = lsf("high 80 {PREEMPTIVE} DISPATCH_WINDOW = 1-2; low 20 {}").run("L low; H high start=5", until=90)
    assert (run.at(59), run.at(60)) == ({"L": "RUN", "H": "PEND"}, {"L": "SSUSP", "H": "RUN"})


def test_run_window_stops_and_resumes(lsf: Lsf) -> None:
    """Open from 0:00 to 1:00 and from 3:00 to 4:00: a job of 90 minutes ends at 3:30, and was not preempted."""
    run = lsf("q 20 {} RUN_WINDOW = 0-1 3-4").run("A q run=90; B q start=61 run=5 host=h1", until=300)
    assert [run.at(minute)["A"] for minute in (59, 60, 179, 180, 209, 210)] == [
        *("RUN", "SSUSP", "SSUSP", "RUN", "RUN", "DONE")
    ]
    assert run.victims == []
    assert run.history("A").job.preemptions == 0
    assert run.starts("B") == [210.0]  # A keeps its slots (6.2), and its place


def test_why_it_is_stopped(lsf: Lsf) -> None:
    """SUSP_QUEUE_WINDOW is 0x8, and not the bit of preemption (section 10)."""
    table = lsf("q 20 {} RUN_WINDOW = 0-1; high 80 {PREEMPTIVE}; low 20 {}", "h1(1) h2(1)").run(
        "A q host=h2; L low host=h1; H high start=5 host=h1", until=70
    )
    said = {}
    for name in "AL":
        job = table.history(name).job
        said[name] = WORDS.suspension(job.state, job.suspended_by, job.marks)
    assert said["A"].startswith("SUSP_QUEUE_WINDOW (0x00000008)")
    assert said["L"].startswith("SUSP_MBD_PREEMPT (0x00000080)")


def test_a_victim_waits_for_its_window(lsf: Lsf) -> None:
    """Preempted while open, slots free while closed: it goes on when the window opens."""
    run = lsf("high 80 {PREEMPTIVE}; low 20 {} RUN_WINDOW = 0-1 3-4").run(
        "L low run=100; H high start=30 run=60", until=400
    )
    assert [run.at(minute)["L"] for minute in (31, 95, 179, 180)] == ["SSUSP", "SSUSP", "SSUSP", "RUN"]


@pytest.mark.parametrize(
    ("queue", "ends"),
    [
        pytest.param("TERMINATE_WHEN = WINDOW", "EXIT", id="terminated"),
        pytest.param("TERMINATE_WHEN = PREEMPT", "SSUSP", id="only when preempted"),
        pytest.param(
            "TERMINATE_WHEN = WINDOW | REQUEUE_EXIT_VALUES = 130", "PEND", id="its exit value requeues"
        ),
        pytest.param("JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]", "PEND", id="the suspend action requeues"),
    ],
)
def test_what_closing_does(lsf: Lsf, queue: str, ends: str) -> None:
    """The suspend action, or the terminate action where TERMINATE_WHEN has WINDOW (6.1)."""
    run = lsf(f"q 20 {{}} RUN_WINDOW = 0-1 | {queue}").run("A q run=90", until=100)
    assert run.at(61)["A"] == ends
    assert run.history("A").job.preemptions == 0


@pytest.mark.parametrize(
    ("queue", "state", "ends", "lost"),
    [
        pytest.param("JOB_CONTROLS = SUSPEND[SIGTSTP]", "SSUSP", 24.5, 0, id="a signal that stops"),
        pytest.param("JOB_CONTROLS = SUSPEND[CHKPNT] | CHKPNT = /c", "SSUSP", 24.5, 0, id="CHKPNT"),
        pytest.param("JOB_CONTROLS = SUSPEND[/site/stop.sh]", "SSUSP", 24.5, 0, id="a command"),
        pytest.param(
            "JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID] | CHKPNT = /c", "PEND", 25.5, 60, id="brequeue"
        ),
        pytest.param("JOB_CONTROLS = SUSPEND[bmig $LSB_JOBID]", "PEND", 25.5, 60, id="bmig from nothing"),
        pytest.param(
            "JOB_CONTROLS = SUSPEND[bmig $LSB_JOBID] | CHKPNT = /c", "PEND", 24.5, 0, id="bmig with its work"
        ),
        pytest.param("JOB_CONTROLS = SUSPEND[bkill $LSB_JOBID]", "EXIT", 2, 0, id="bkill"),
        pytest.param("JOB_CONTROLS = SUSPEND[SIGKILL]", "EXIT", 2, 0, id="a deadly signal"),
        pytest.param("JOB_CONTROLS = SUSPEND[15]", "EXIT", 2, 0, id="a deadly signal by number"),
        pytest.param("TERMINATE_WHEN = WINDOW | REQUEUE_EXIT_VALUES = 130", "PEND", 25.5, 60, id="by value"),
        pytest.param(
            "TERMINATE_WHEN = WINDOW | JOB_CONTROLS = TERMINATE[CHKPNT]", "EXIT", 2, 0, id="terminated"
        ),
    ],
)
def test_actions_at_a_closing_window(lsf: Lsf, queue: str, state: str, ends: float, lost: float) -> None:
    """A job of 90 minutes starts at 1:00, the window closes at 2:00 and opens a day later; no preemption (6.1).

    What requeues throw away is lost; a job that ends, as at its run limit, has done what it could.
    """
    site = lsf(f"q 20 {{}} RUN_WINDOW = 0-2 | MAX_JOB_PREEMPT = 1 | {queue}")
    run = site.run("A q start=60 run=90", until=28 * HOUR)
    assert run.at(2 * HOUR - 1)["A"] == "RUN"
    assert run.at(2 * HOUR)["A"] == state
    assert run.history("A").ended_at == ends * HOUR * 60
    assert run.history("A").lost == lost * 60
    assert (run.victims, run.history("A").job.preemptions) == ([], 0)


def test_interactive_jobs_are_stopped_at_a_closing_window(lsf: Lsf) -> None:
    """brequeue does not work on them (6.1)."""
    site = lsf("q 20 {} RUN_WINDOW = 0-1 | JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]")
    assert site.run("A q run=90", until=70, A={"batch": False}).at(61)["A"] == "SSUSP"


def test_no_migration(lsf: Lsf) -> None:
    """MIG is never for run-window suspensions (6.1)."""
    queue = "q 20 {} RUN_WINDOW = 0-1 3-4 | MIG = 5 | RERUNNABLE = y"
    run = lsf(queue, "h1(1) h2(1)").run("A q run=90", until=200)
    assert [run.at(minute)["A"] for minute in (61, 70, 170, 185)] == ["SSUSP", "SSUSP", "SSUSP", "RUN"]


def test_its_host_stays_open(lsf: Lsf) -> None:
    """SSUSP closes the host to queues of the same priority, except when the run window did it (5.3)."""
    run = lsf("q 20 {} RUN_WINDOW = 0-1; other 20 {}", "h1(2)").run("A q; B other start=65 run=5", until=80)
    assert run.starts("B") == [65.0]


def test_reservations_wait_too(lsf: Lsf) -> None:
    """A job that may not be dispatched collects no slots (7.1)."""
    queues = "R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000] | DISPATCH_WINDOW = 5-6; low 20 {}"
    run = lsf(queues, "h1(1) h2(1)").run(
        "X low host=h2 run=60; R1 R n=2 start=1 run=10; L low start=3 run=70 host=h1", until=100
    )
    assert run.starts("L") == [3.0]


def test_the_wall_clock_of_the_workload(lsf: Lsf) -> None:
    """Submitted on Monday 2026-03-02 at 7:30 UTC; the window is Monday from 8:00 on."""
    more = {"A": {"wall_submit": 1772436600.0}}  # date -u -d '2026-03-02 07:30' +%s
    run = lsf("q 20 {} DISPATCH_WINDOW = 1:8:00-1:9:00").run("A q start=10 run=5", until=100, **more)
    assert run.starts("A") == [40.0]


def test_people_are_told(lsf: Lsf, tmp_path: Path) -> None:
    """``makeway explain`` and the table of jobs name the window, with LSF's numbers; a later preemption its own."""
    lsf("high 80 {PREEMPTIVE}; low 20 {} RUN_WINDOW = 0-1 3-9")
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text(
        '{"id": "A", "partition": "low", "submit": 0, "run_time": 9000}\n'
        '{"id": "B", "partition": "low", "submit": 3660, "run_time": 5}\n'
        '{"id": "H", "partition": "high", "submit": 12000, "run_time": 600}\n'
    )
    files = [str(tmp_path / "lsb.queues"), str(jobs)]

    def told(*arguments: str) -> str:
        result = CliRunner().invoke(cli, list(arguments))
        assert result.exit_code == 0, result.output
        return result.output

    lines = told("explain", *files, "--job", "A").splitlines()
    reasons = [line.partition("SUSP_")[2].partition(" ")[0] for line in lines if "SSUSP on" in line]
    assert reasons == ["QUEUE_WINDOW", "MBD_PREEMPT"]
    assert "PEND_QUE_WINDOW (302)" in told("explain", *files, "--job", "B")
    assert "SUSP_QUEUE_WINDOW (0x00000008)" in told("replay", *files, "--bjobs-at", "4000")

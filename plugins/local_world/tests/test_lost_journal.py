"""A journal that is damaged or gone: nothing is forgotten, and nothing starts until a person decides."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

Site = Any


def everything(state: Path) -> set[str]:
    """Return the names of what is in a state directory, but for what each attempt writes."""
    left = ("daemon.log", "lock", "journal.db-wal", "journal.db-shm", "reserve")
    return {str(each.relative_to(state)) for each in state.rglob("*") if each.name not in left}


def kill(site: Site) -> None:
    """End the daemon as a crash does."""
    site.processes[-1].send_signal(signal.SIGKILL)
    site.processes[-1].wait()


def lose(state: Path, how: str) -> None:
    """Lose the journal, or its log alone, in which the last steps are."""
    journal = state / "journal.db"
    if how == "content":
        with sqlite3.connect(journal) as database:
            database.execute("UPDATE jobs SET spec = 'x' WHERE standing IS NOT NULL")
        database.close()
        return
    for name in ("journal.db-wal", "journal.db-shm"):
        (state / name).unlink(missing_ok=True)
    if how == "gone":
        journal.unlink()
    elif how == "empty":
        os.truncate(journal, 0)
    elif how == "noise":
        journal.write_bytes(os.urandom(8192))


def ends(site: Site) -> dict[str, tuple[str, int]]:
    """Return how each job ended; the new daemon learns of the last ones from what their keepers left."""
    return {row["id"]: (row["state"], row["exit_code"]) for row in site.ended()}


@pytest.mark.parametrize("how", ["gone", "empty", "noise", "content", "log"])
def test_a_lost_journal_is_named_and_a_person_decides(site: Site, how: str) -> None:
    """Jobs that the copy does not know are found again, once each; ends that it missed are in the history."""
    site.up()
    before = site.submit(
        "-n", "1", "--", "sh", "-c", "echo x >> before; while [ ! -e go ]; do sleep 0.1; done"
    )
    site.until(lambda: site.state_of(before) == "RUNNING")
    kill(site)
    site.up()  # which makes the copy
    after = site.submit(
        "-n", "1", "--", "sh", "-c", "echo x >> after; while [ ! -e go ]; do sleep 0.1; done; exit 3"
    )
    site.until(lambda: (site.directory / "after").exists())
    ended = site.submit("-p", "urgent", "-n", "1", "--", "sh", "-c", "echo x >> ended; exit 4")
    assert site.run("wait", ended).exit_code == 4
    waits = site.submit("-n", "2", "--", "sh", "-c", "echo x >> waits")
    site.until(lambda: not (site.state / f"run/{ended}.1").exists())
    kill(site)
    lose(site.state, how)
    there = everything(site.state)

    daemon = site.up(wait=False)
    assert daemon.wait(60) == 1
    assert str(site.state / "journal.db") in site.log()
    assert "makeway up --recover" in site.log()
    assert everything(site.state) >= there

    site.up("--recover")
    site.until(lambda: ends(site).get(ended) == ("FAILED", 4))
    jobs = site.jobs()
    assert {job: each["state"] for job, each in jobs.items()} == {
        before: "RUNNING", after: "RUNNING", waits: "PENDING",
    }  # fmt: skip
    assert everything(site.state) >= there
    assert "the journal was recovered" in site.ok("why", waits)
    (site.directory / "go").touch()
    assert site.run("wait", after).exit_code == 3
    site.ok("undrain")
    assert site.run("wait", waits, before).exit_code == 0
    for name in ("before", "after", "ended", "waits"):
        assert (site.directory / name).read_text() == "x\n", name
    assert int(site.submit("--", "true")) == int(waits) + 1


def test_the_first_daemon_of_a_machine_left_no_copy(site: Site) -> None:
    """What lies beside the journal is enough, also where a job's directory was being taken away."""
    site.up()
    runs = site.submit("--", "sh", "-c", "while [ ! -e go ]; do sleep 0.1; done; exit 5")
    site.until(lambda: site.state_of(runs) == "RUNNING")
    array = site.submit("--array", "0-1", "--", "sh", "-c", "exit $SLURM_ARRAY_TASK_ID")
    assert site.run("wait", array).exit_code == 1
    (site.state / "journal.backup.db").unlink(missing_ok=True)
    half = site.state / "run" / f"{array}_1.1"
    site.until(lambda: not half.exists())
    kill(site)
    half.mkdir()  # half taken away
    lose(site.state, "empty")
    assert site.up(wait=False).wait(60) == 1
    site.up("--recover")
    site.until(lambda: site.state_of(runs) == "RUNNING")
    both = {f"{array}_0": ("COMPLETED", 0), f"{array}_1": ("FAILED", 1)}
    site.until(lambda: ends(site) == both)
    (site.directory / "go").touch()
    assert site.run("wait", runs).exit_code == 5

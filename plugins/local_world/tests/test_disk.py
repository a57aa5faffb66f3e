"""What the daemon does when its disk is full or its journal is damaged."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world.commands.client import Daemon
from makeway_local_world.daemon import backup
from makeway_local_world.daemon.reserve import Reserve

Site = Any


@pytest.fixture
def full(site: Site) -> Iterator[Site]:
    """Return a site whose state is on a small disk of its own."""
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount")
    small = site.directory / "d"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    site.environ["MAKEWAY_STATE"] = str(small / "s")
    try:
        yield site
    finally:
        site.run("down", "--kill", "--timeout", "20")
        for process in site.processes:
            process.kill()
            process.wait(10.0)
        subprocess.run(["umount", "-l", str(small)], check=False)


@pytest.mark.nightly
def test_a_full_disk_loses_no_end_and_starts_nothing(full: Site) -> None:
    """Every command says so; once there is room again, jobs start by themselves.

    Nightly: on a busy machine the filler may also take the room that the daemon gives back while it still fills.
    """
    full.up()
    job = full.submit("--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    full.until(lambda: full.state_of(job) == "RUNNING")
    waits = full.submit("-n", "2", "--", "true")
    filler = full.directory / "d/filler"
    with open(filler, "wb", buffering=0) as stream, contextlib.suppress(OSError):
        while stream.write(bytes(1 << 16)):
            pass
    (full.directory / "go").touch()
    full.until(lambda: job not in full.jobs(), "the end, in the journal")
    result = full.until(lambda: r if (r := full.run("queue")).stderr else None)
    assert "nothing is started now" in result.stderr
    assert "the disk is full" in result.stderr
    refused = full.run("submit", "--", "true")
    assert refused.exit_code == 1
    assert "nothing can be stored" in refused.stderr
    assert full.state_of(waits) == "PENDING"
    filler.unlink()
    assert full.run("wait", waits, "--timeout", "60").exit_code == 0
    assert full.run("wait", job).exit_code == 0


def test_a_disk_that_takes_nothing(up: Site) -> None:
    """The kernel refuses the daemon every byte: no end is lost, nothing starts, and every command says so."""
    job = up.submit("--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    up.until(lambda: up.state_of(job) == "RUNNING")
    waits = up.submit("-n", "2", "--", "true")
    daemon = int(Daemon(up.state / "socket").get("/v1/daemon")["pid"])
    before = resource.prlimit(daemon, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    (up.directory / "go").touch()
    result = up.until(lambda: r if (r := up.run("queue")).stderr else None)
    assert "nothing is started now" in result.stderr
    refused = up.run("submit", "--", "true")
    assert refused.exit_code == 1
    assert "nothing can be stored" in refused.stderr
    assert up.run("update", waits, "nice=1").exit_code == 1
    assert up.state_of(waits) == "PENDING"
    resource.prlimit(daemon, resource.RLIMIT_FSIZE, before)
    assert up.run("wait", waits, "--timeout", "60").exit_code == 0
    assert up.run("wait", job).exit_code == 0
    up.until(lambda: not up.run("queue").stderr)


def test_a_reserve_is_taken_given_and_taken_again(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, size=1 << 16, margin=0)
    assert reserve.path.stat().st_size == 1 << 16
    assert reserve.give("full")
    assert reserve.why == "full"
    assert not reserve.give("full")
    assert reserve.take()
    assert reserve.why == ""
    too_much = Reserve(tmp_path / "none", size=1 << 62, margin=0)
    assert "MiB are free" in too_much.why


def test_a_journal_is_whole_in_one_file_once_its_daemon_has_ended(site: Site) -> None:
    """So that a copy of it is one, whatever was read meanwhile."""
    site.up()
    job = site.submit("--", "true")
    site.ok("wait", job)
    site.ok("history")
    site.ok("down")
    assert site.processes[-1].wait(60) == 0
    assert not (site.state / "journal.db-wal").exists()
    assert not (site.state / "socket").exists()


def _stopped_with_a_copy(site: Site) -> str:
    """Stop a daemon whose journal has a copy; return the job that both know of."""
    site.up()
    job: str = site.submit("--hold", "--", "true")
    for _ in range(2):  # a copy is made at the start: the second one knows of the job
        site.ok("down")
        assert site.processes[-1].wait(60) == 0
        site.up()
    site.ok("down")
    site.processes[-1].wait(60)
    return job


def test_a_damaged_journal_is_never_replaced(site: Site) -> None:
    """The daemon refuses to start, and names the copy of its last start, which can be opened."""
    job = _stopped_with_a_copy(site)
    journal = site.state / "journal.db"
    with open(journal, "r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (journal.stat().st_size - 4096))
    damaged = journal.read_bytes()
    assert site.up(wait=False).wait(60) == 1
    assert f"{site.state / backup.NAME} is as it was when a daemon last started" in site.log()
    assert journal.read_bytes() == damaged
    copy = sqlite3.connect(site.state / backup.NAME)
    try:
        assert copy.execute("SELECT id FROM jobs").fetchall() == [(job,)]
    finally:
        copy.close()


def test_an_empty_journal_is_not_begun_anew_where_a_daemon_has_run(site: Site) -> None:
    """A full disk or a crash leaves a file of no bytes, and SQLite takes it for a new database."""
    job = _stopped_with_a_copy(site)
    journal = site.state / "journal.db"
    journal.write_bytes(b"")
    assert site.up(wait=False).wait(60) == 1
    there = f"but {backup.NAME} and next-id and jobs are there; nothing was changed"
    assert f"{journal}: it is empty, {there}" in site.log()
    assert f"{site.state / backup.NAME} is as it was when a daemon last started" in site.log()
    assert journal.read_bytes() == b""
    journal.unlink()
    assert site.up(wait=False).wait(60) == 1
    assert f"{journal}: it is gone, {there}" in site.log()
    assert not journal.exists()
    with contextlib.closing(sqlite3.connect(site.state / backup.NAME)) as copy:
        assert copy.execute("SELECT id FROM jobs").fetchall() == [(job,)]

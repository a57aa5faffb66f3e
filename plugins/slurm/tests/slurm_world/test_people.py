"""What people without rights are told: over the socket, in the file, by the commands of any world."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import queue
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway.config import dump_toml
from makeway.errors import JournalError
from makeway_app.cli import cli
from makeway_slurm_world.people import board as boards
from makeway_slurm_world.people.board import Board
from makeway_slurm_world.people.service import Service, SocketError


def _fake() -> Any:
    """Return the module with the fake Slurm; files of tests are no packages."""
    spec = importlib.util.spec_from_file_location(
        "makeway_fake_slurm", Path(__file__).with_name("test_death.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Driven:
    """A run over a fake Slurm, with a board."""

    def __init__(self, folder: Path, file: Path | None = None) -> None:
        self.run = _fake().Run(folder, "requeue")
        self.slurm, self.clock, self.config = self.run.slurm, self.run.clock, self.run.config
        self.slurm.down = {"n3"}
        self.board = Board(folder / "journal.db", file)
        self.run.sink = self.board.heard

    def turn_for(self, seconds: float) -> None:
        """Go on for so long, the board after each turn."""
        if self.run.live is None:
            self.run.begin()
        until = self.clock.now() + seconds
        while self.clock.now() < until:
            self.run.live.turn()
            self.pin()

    def pin(self) -> None:
        """Pin up."""
        live = self.run.live
        self.board.turned(live.engine, live.steps, self.clock.now(), self.clock.wall(), live.unwritten)


def _displaced(folder: Path, file: Path | None = None) -> tuple[Driven, list[Any]]:
    """Jobs 1 and 2 run, the urgent job 3 has just displaced job 2."""
    run = Driven(folder, file)
    jobs = [run.slurm.submit("low", 60.0)]
    run.slurm.advance()
    run.clock.advance(2.0)
    jobs.append(run.slurm.submit("low", 60.0))
    run.slurm.advance()
    run.turn_for(3.0)
    jobs.append(run.slurm.submit("high", 20.0))
    run.turn_for(6.0)
    assert [job.state for job in jobs] == ["RUNNING", "PENDING", "RUNNING"]
    return run, jobs


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    run, _ = _displaced(tmp_path)
    run.board.wake = run.pin  # what asks here is the loop itself
    yield run
    run.board.close()
    run.run.end()


# ---------------------------------------------------------------------------------------- board
def test_what_could_not_be_written_down_is_not_shown_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that is only decided shows as a job that waits, without a place."""
    run = Driven(tmp_path)
    run.turn_for(2.0)
    with monkeypatch.context() as broken:

        def write(_: object) -> None:
            raise JournalError("journal.db: No space left on device")

        broken.setattr(run.run.journal, "write", write)
        run.slurm.submit("low", 60.0)
        run.turn_for(3.0)
        run.board.wake = run.pin
        (row,) = run.board.queue()["jobs"]
        assert (row["state"], row["reason"], row["nodes"]) == ("PENDING", "JournalUnwritten", "")
        assert run.slurm.orders == [each for each in run.slurm.orders if "JobId=1" not in each]
    run.turn_for(3.0)
    (row,) = run.board.queue()["jobs"]
    assert (row["state"], row["nodes"]) == ("RUNNING", "n1")
    run.board.close()
    run.run.end()


def test_the_queue_says_which_job_makes_way_for_which(driven: Driven) -> None:
    rows = {job["id"]: job for job in driven.board.queue()["jobs"]}
    assert {job_id: row["state"] for job_id, row in rows.items()} == {
        "1": "RUNNING",
        "2": "PENDING",
        "3": "RUNNING",
    }
    assert rows["3"]["nodes"] == "n2"
    assert (rows["2"]["displaced"]["by"], rows["2"]["displaced"]["how"]) == ("3", "requeue")
    assert driven.board.queue("nobody")["jobs"] == []


def test_why_a_job_waits_in_sentences(driven: Driven) -> None:
    told = driven.board.why("2")
    assert told is not None
    assert told[0] == "job 2 (wrap) of alice: pending, partition low"
    assert any(line.startswith("it made way for job 3 since ") for line in told)
    assert any(
        "was requeued for job 3: mode of partition low [preempt/partition_prio]" in line for line in told
    )
    other = driven.board.why("3")
    assert other is not None
    assert any("it displaced job 2 by requeue" in line for line in other)
    assert driven.board.why("99") is None


def test_ended_jobs_are_history(driven: Driven) -> None:
    driven.turn_for(30.0)
    ended = driven.board.history(0.0, driven.clock.wall(), None, 100)["jobs"]
    assert [(job["id"], job["state"], job["nodes"]) for job in ended] == [("3", "COMPLETED", "n2")]
    assert driven.board.history(0.0, driven.clock.wall(), "bob", 100)["jobs"] == []


def test_who_asks_while_the_loop_is_busy_gets_the_last_queue(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(driven.board.queue()["jobs"]) == 3
    monkeypatch.setattr(boards, "PATIENCE", 0.05)
    driven.board.wake = lambda: None
    found = driven.board.queue()
    assert found["stale"]
    assert len(found["jobs"]) == 3


def test_everybody_may_read_the_file(tmp_path: Path) -> None:
    file = tmp_path / "public" / "queue.json"
    file.parent.mkdir()
    (tmp_path / "state").mkdir()
    run, _ = _displaced(tmp_path / "state", file)
    run.turn_for(30.0)
    run.board.close()
    run.run.end()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert {job["id"] for job in found["jobs"]} >= {"1", "2"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [path.name for path in file.parent.iterdir()] == ["queue.json"]


def test_a_file_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And again when it is well; nothing stops for it."""
    caplog.set_level("WARNING", logger="makeway")
    folder = tmp_path / "public"
    board = Board(tmp_path / "journal.db", folder / "queue.json")
    for _ in range(3):
        board._write({"jobs": []})
    folder.mkdir()
    for _ in range(3):
        board._write({"jobs": []})
    told = [record.getMessage() for record in caplog.records if record.name == "makeway"]
    assert told == [
        f"{folder / 'queue.json'} is not written, and will be tried again: No such file or directory",
        f"{folder / 'queue.json'} is written again",
    ]


# --------------------------------------------------------------------------------------- socket
@pytest.fixture
def served(driven: Driven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driven]:
    """Serve a board that is pinned up, whatever asks: the loop of a test turns in no thread."""
    pinned = driven.board.queue()
    monkeypatch.setattr(driven.board, "queue", lambda user=None: _only(pinned, user))
    path = tmp_path / ("deep" * 30) / "socket"
    service = Service(path, driven.board)
    monkeypatch.setenv("MAKEWAY_SOCKET", str(path))
    yield driven
    service.close()
    assert not path.exists()


def _only(pinned: dict[str, Any], user: str | None) -> dict[str, Any]:
    return {**pinned, "jobs": [job for job in pinned["jobs"] if user is None or job["user"] == user]}


def _run(*words: str) -> str:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_commands_of_any_world_speak_of_slurm(served: Driven) -> None:
    pytest.importorskip("makeway_local_world")
    table = _run("queue").splitlines()
    assert table[0].split()[:2] == ["JOBID", "PARTITION"]
    assert len(table) == 4
    assert "(requeued for 3)" in next(line for line in table if line.split()[0] == "2")
    assert json.loads(_run("queue", "--json"))["jobs"][0]["id"] == "1"
    assert "was requeued for job 3" in _run("why", "2")
    assert _run("history").splitlines()[0].split()[0] == "JOBID"
    unknown = CliRunner().invoke(cli, ["why", "99"])
    assert unknown.exit_code == 1
    assert "knows no job '99'" in unknown.output
    refused = CliRunner().invoke(cli, ["cancel", "2"])
    assert refused.exit_code != 0
    assert "scancel" in refused.output


def test_the_queue_is_shown_again_whenever_something_was_decided(served: Driven) -> None:
    """`queue -w` learns of each step over the socket, and asks again."""
    pytest.importorskip("makeway_local_world")
    words = [sys.executable, "-m", "makeway", "queue", "-w", "--json"]
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watcher:
        stream = watcher.stdout
        assert stream is not None

        def listen() -> None:
            for line in stream:
                if '"jobs"' in line:
                    heard.put(line)

        threading.Thread(target=listen, daemon=True).start()
        try:
            heard.get(timeout=120.0)
            again, more = None, 0
            live = served.run.live
            while again is None and more < 240:  # it may not listen yet when the first step is made
                more += 1
                served.board.turned(live.engine, live.steps + more, served.clock.now(), served.clock.wall())
                with contextlib.suppress(queue.Empty):
                    again = heard.get(timeout=0.5)
        finally:
            watcher.kill()
    assert again is not None


def test_a_socket_that_is_in_use_is_refused(served: Driven, tmp_path: Path) -> None:
    path = next(tmp_path.glob("deep*/socket"))
    with pytest.raises(SocketError, match="--socket"):
        Service(path, served.board)
    assert "JOBID" in _run("history") if _has_local() else True


def _has_local() -> bool:
    try:
        import makeway_local_world  # noqa: F401
    except ImportError:
        return False
    return True


def test_a_socket_that_nobody_answers_is_taken_over(driven: Driven, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    first = Service(path, driven.board)
    first._server.over.set()
    first._server.shutdown()
    first._server.server_close()  # as a crash leaves it: the file is there
    assert path.is_socket()
    second = Service(path, driven.board)
    second.close()


def test_a_board_that_is_asked_by_many(driven: Driven) -> None:
    """Each thread has its own connection to the journal."""
    told: list[Any] = []
    threads = [
        threading.Thread(target=lambda: told.append(driven.board.past.lines_of("2"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert len(told) == 4
    assert all(each == told[0] for each in told)


# -------------------------------------------------------------------------------------- explain
def test_explain_reads_configuration_and_journal_of_the_state_directory(
    driven: Driven, tmp_path: Path
) -> None:
    driven.turn_for(120.0)
    config = tmp_path / "config.toml"
    config.write_text(dump_toml(driven.config), encoding="utf-8")
    text = _run("explain", str(config), str(tmp_path / "journal.db"), "--job", "2")
    assert "2" in text

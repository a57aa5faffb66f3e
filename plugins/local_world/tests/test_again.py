"""Jobs are submitted again, tried again after they have failed, and given another command while they wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway_local_world.commands.client import Daemon
from makeway_local_world.requests import Request, Who, check, parse_codes, specs, submission_of
from makeway_local_world.submission import MOST_KEPT, SubmissionError, forget, kept, load, rewrite, store

ANN = Who(user="ann", uid=1000, gid=100)


def stored(tmp_path: Path, request: Request) -> None:
    """Store what a request asks for as job 7."""
    made = specs(request, ANN, "7", 0.0, 0.0)
    store(tmp_path, submission_of(request, ANN, made[0], requeueable=True))


def test_what_is_kept_after_the_end(tmp_path: Path) -> None:
    """Command and options, but neither the environment nor what the first one waited for."""
    request = Request(
        command=("train", "--lr", "2"),
        cwd="/home/ann",
        environment={"TOKEN": "s3cret"},
        export="NONE,TOKEN=x",
        name="n",
        partitions=("normal",),
        memory_mb=5,
        array="0-3%2",
        begin=9.0,
        hold=True,
        dependency="afterok:3",
    )
    stored(tmp_path, request)
    forget(tmp_path, "7")
    found = kept(tmp_path, "7_2")
    wanted = attrs.evolve(request, environment={}, begin=None, hold=False, dependency=None)
    assert attrs.evolve(Request(**_plain(found.asked)), command=found.command) == wanted
    assert (found.user, found.uid) == ("ann", 1000)
    assert b"s3cret" not in (tmp_path / "jobs/7/submission.json").read_bytes()
    with pytest.raises(SubmissionError, match="has ended"):
        load(tmp_path, "7")


def _plain(asked: Any) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}


def test_a_large_script_is_not_kept(tmp_path: Path) -> None:
    """What is kept of ended jobs stays small, and the refusal says so."""
    stored(tmp_path, Request(script="#!/bin/sh\n" + "#" * MOST_KEPT, cwd="/"))
    forget(tmp_path, "7")
    with pytest.raises(SubmissionError, match="64 KiB"):
        kept(tmp_path, "7")


def test_another_command_leaves_the_rest(tmp_path: Path) -> None:
    """A script makes way for it as well; the environment stays."""
    stored(tmp_path, Request(script="#!/bin/sh\n", command=("x",), cwd="/", environment={"A": "1"}, name="n"))
    before = load(tmp_path, "7")
    rewrite(tmp_path, "7", ("true", "2"))
    assert load(tmp_path, "7") == attrs.evolve(before, command=("true", "2"), script=None)
    assert kept(tmp_path, "7").command == ("true", "2")


@pytest.mark.parametrize(
    ("text", "wanted"), [("75", (75,)), ("99-101,75", (75, 99, 100, 101)), ("137", (137,))]
)
def test_exit_codes(text: str, wanted: tuple[int, ...]) -> None:
    """Numbers and ranges of them."""
    assert parse_codes(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "256", "5-3", "EXCLUDE(20)", "1,,2"])
def test_no_exit_codes(text: str) -> None:
    """What no process can end with, and what is no number, is refused with what is allowed."""
    (problem,) = check(Request(command=("true",), requeue_exit=text))
    assert problem.where == "requeue_exit"
    assert "from 1 to 255" in problem.message


def test_a_job_that_may_not_start_again_is_not_tried_again() -> None:
    """The two contradict each other."""
    (problem,) = check(Request(command=("true",), requeue=False, retries=2))
    assert (problem.where, problem.message) == ("retries", "the job may not start again (--no-requeue)")


# ------------------------------------------------------------------------------- with a daemon
def test_again_retries_and_another_command(up: Any) -> None:
    """One daemon for all of it, since each takes a second to start."""
    text = 'test "$SLURM_ARRAY_TASK_ID" != 1 && echo "$GIVEN"'
    first = up.submit("--array", "0-2", "--export", "ALL", "-J", "three", "--", "sh", "-c", text)
    assert up.run("wait", first).exit_code == 1

    up.environ["GIVEN"] = "anew"
    again = up.ok("again", first, "--failed", "--json")
    made = json.loads(again)
    assert made["jobs"] == [f"{made['id']}_1"]
    up.run("wait", made["id"])
    whole = up.ok("again", first, "--parsable").strip()
    up.run("wait", whole)
    assert up.ok("logs", f"{whole}_2") == "anew\n"
    (row,) = [job for job in up.ended() if job["id"] == f"{whole}_2"]
    assert row["name"] == "three"
    refused = up.run("again", f"{whole}_2", "--failed")
    assert refused.exit_code == 1
    assert refused.stderr == f"makeway: job {whole}_2: nothing of it has failed\n"

    # It fails twice, with a code that counts, and then ends well: three starts.
    text = "echo x >> tries; test $(wc -l < tries) = 3 || exit 75"
    tried = up.submit("--requeue-exit", "70-79", "--", "sh", "-c", text)
    assert up.run("wait", tried).exit_code == 0
    (row,) = [job for job in up.ended() if job["id"] == tried]
    assert row["incarnation"] == 3
    told = json.dumps(list(Daemon(up.state / "socket").events(after=0, follow=False)))
    assert "exit code 75; retry 2 of 5" in told

    # Another code does not count; and after two retries it has failed.
    other = up.submit("--requeue-exit", "70-79", "--", "sh", "-c", "exit 9")
    assert up.run("wait", other).exit_code == 9
    bound = up.submit("--retries", "2", "--", "sh", "-c", "echo x >> bound; exit 9")
    assert up.run("wait", bound).exit_code == 9
    assert (up.directory / "bound").read_text() == "x\n" * 3

    # While it waits, it is given another command; of an array all tasks are.
    held = up.submit("--hold", "--", "false")
    up.ok("update", held, "--", "sh", "-c", "echo other")
    assert up.jobs()[held]["command"] == "sh -c echo other"
    up.ok("release", held)
    assert up.run("wait", held).exit_code == 0
    assert up.ok("logs", held) == "other\n"
    array = up.submit("--hold", "--array", "0-1", "--", "false")
    refused = up.run("update", f"{array}_0", "--", "true")
    assert refused.stderr.endswith(f"name the array: {array}\n")
    up.ok("update", array, "--", "true")
    up.ok("release", array)
    assert up.run("wait", array).exit_code == 0

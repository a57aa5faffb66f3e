"""Submissions are stored whole, for their owner only, and read back as they were."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import attrs
import pytest

from makeway_local_world.submission import (
    FILE,
    Names,
    Submission,
    SubmissionError,
    delete,
    directory_of,
    forget,
    load,
    paths,
    rewrite,
    store,
    where,
)

PLAIN = Submission(job_id="7", user="ann", uid=1000, gid=100, command=("true",), cwd="/home/ann")
FULL = attrs.evolve(
    PLAIN,
    job_id="12_3",
    groups=(100, 27),
    script="#!/bin/sh\necho $1\n",
    environment={"LANG": "C", "ODD": "\udcff"},
    output="%x-%j.%I",
    open_mode="append",
    limits={"NOFILE": (1024, -1)},
    signal="USR1",
)


@pytest.mark.parametrize("given", [PLAIN, FULL], ids=["plain", "full"])
def test_what_is_stored_is_read(tmp_path: Path, given: Submission) -> None:
    """Every field, bytes in the environment that are no text too."""
    store(tmp_path, given)
    assert load(tmp_path, given.job_id) == given
    place = directory_of(tmp_path, given.job_id)
    assert stat.S_IMODE((place / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert os.listdir(place) == [FILE]


def test_all_of_a_submission_survives_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file, its directory, and those above that got a new name; each is brought to safety after what it names."""
    done: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: done.append(os.readlink(f"/proc/self/fd/{handle}")))
    store(tmp_path, PLAIN)
    place = directory_of(tmp_path, PLAIN.job_id)
    assert done == [str(place / FILE), str(place), str(place.parent), str(tmp_path)]
    done.clear()
    store(tmp_path, attrs.evolve(PLAIN, job_id="8"))
    assert done[1:] == [str(place.parent / "8"), str(place.parent)]


def test_the_story_of_an_array_is_short(tmp_path: Path) -> None:
    """The first line is kept after the end; it grows with what was asked for, not with the number of tasks."""
    one = attrs.evolve(PLAIN, job_id="9", array="0-9999")
    store(tmp_path, one)
    forget(tmp_path, "9")
    assert where(tmp_path, "9_77").array == "0-9999"
    assert (directory_of(tmp_path, "9") / FILE).stat().st_size < 200


def test_storing_again_replaces(tmp_path: Path) -> None:
    """An update is a store."""
    store(tmp_path, PLAIN)
    store(tmp_path, attrs.evolve(PLAIN, nice=5))
    assert load(tmp_path, "7").nice == 5


def test_deleting(tmp_path: Path) -> None:
    """Twice is once."""
    store(tmp_path, PLAIN)
    delete(tmp_path, "7")
    delete(tmp_path, "7")
    with pytest.raises(SubmissionError, match="nothing is known of what to run for job 7"):
        load(tmp_path, "7")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("{", "cannot be read", id="damaged"),
        pytest.param("", "got version None", id="empty"),
        pytest.param("[" * 100_000, "nested too deeply", id="nested"),
        pytest.param(
            "[]", "got version None; allowed: 2; cancel the job and submit it again", id="no object"
        ),
        pytest.param('{"makeway_submission": 99}', "got version 99", id="of a later makeway"),
        pytest.param(
            '{"makeway_submission": 2}\n{"uid": "0"}\n{}', "uid: got '0'; allowed: a whole number", id="type"
        ),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str, why: str) -> None:
    """With the name of the file."""
    store(tmp_path, PLAIN)
    path = directory_of(tmp_path, "7") / FILE
    path.write_text(text)
    with pytest.raises(SubmissionError, match=why) as caught:
        load(tmp_path, "7")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("job_id", ["..", ".", "../../etc", "a/b", ".hidden", "7+1", "12_3", "ä"])
def test_ids_lead_nowhere_else(tmp_path: Path, job_id: str) -> None:
    """Every id has a directory of its own, right below ``jobs``."""
    place = directory_of(tmp_path, job_id)
    assert place.resolve().parent == (tmp_path / "jobs").resolve()
    store(tmp_path, attrs.evolve(PLAIN, job_id=job_id))
    assert load(tmp_path, job_id).job_id == job_id


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nobody makes the daemon write elsewhere by a link under the name, or under the temporary one."""
    store(tmp_path, PLAIN)
    other = tmp_path / "other"
    other.write_text("mine")
    place = directory_of(tmp_path, "7")
    (place / f"{FILE}.tmp").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        rewrite(tmp_path, "7", ("true",))
    assert load(tmp_path, "7") == PLAIN
    (place / FILE).unlink()
    (place / FILE).symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        store(tmp_path, PLAIN)
    assert other.read_text() == "mine"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("out", "out"),
        ("%x-%j.out", "train_a-12_3.out"),
        ("%A_%4a", "12_0003"),
        ("%u@%N.%I", "ann@box.2"),
        ("100%%-%q", "100%-%q"),
    ],
)
def test_fields_of_paths(pattern: str, path: str) -> None:
    """As sbatch has them, and %I."""
    names = Names(
        job_id="12_3", array_id="12", array_task=3, name="train/a", user="ann", node="box", incarnation=2
    )
    assert names.expand(pattern) == path


def test_paths_are_absolute() -> None:
    """Relative to the working directory; errors go with the output unless said otherwise."""
    names = Names(job_id="7")
    assert paths(PLAIN, names) == ("/home/ann/makeway-7.out",) * 2
    assert paths(attrs.evolve(PLAIN, error="/tmp/e"), names) == ("/home/ann/makeway-7.out", "/tmp/e")


def test_the_file_says_its_version(tmp_path: Path) -> None:
    """So that a later makeway knows what it reads."""
    store(tmp_path, PLAIN)
    first = (directory_of(tmp_path, "7") / FILE).read_text().splitlines()[0]
    assert json.loads(first)["makeway_submission"] == 2


def test_tasks_of_an_array_share_one(tmp_path: Path) -> None:
    """And ids that only look like tasks, as those of a workload, do not."""
    store(tmp_path, attrs.evolve(PLAIN, job_id="12"))
    assert load(tmp_path, "12_3") == load(tmp_path, "12_4") == attrs.evolve(PLAIN, job_id="12")
    with pytest.raises(SubmissionError, match="nothing is known"):
        load(tmp_path, "a_3")


def test_what_was_run_is_forgotten_after_the_end(tmp_path: Path) -> None:
    """Where the output went stays known, and the file is small."""
    full = attrs.evolve(PLAIN, environment={"SECRET": "x" * 1000}, output="out")
    store(tmp_path, full)
    forget(tmp_path, "7")
    forget(tmp_path, "7")
    forget(tmp_path, "8")
    found = where(tmp_path, "7")
    assert paths(found, Names(job_id="7")) == paths(full, Names(job_id="7"))
    with pytest.raises(SubmissionError, match="is forgotten, since the job has ended"):
        load(tmp_path, "7")
    assert "SECRET" not in (directory_of(tmp_path, "7") / FILE).read_text()

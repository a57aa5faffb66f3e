"""A command that changes something is no question, and a reader runs questions alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway_slurm_world.talking.runner import Away, Reader, SlurmError
from makeway_slurm_world.talking.words import QUEUE, Order, Question, show, show_jobs, would_start


@pytest.mark.parametrize(
    "words",
    [
        "scontrol update JobId=1 Priority=0",
        "scontrol -o update JobId=1",
        "scontrol requeue 1",
        "scontrol",
        "scancel 1",
        "sbatch job.sh",
        "sbatch --wrap true --test-only",
        "sacctmgr -i delete user eve",
        "sdiag --reset",
        "sdiag -r",
        "rm show",
        "",
    ],
)
def test_what_changes_something_is_no_question(words: str) -> None:
    with pytest.raises(ValueError, match="no command that only asks"):
        Question(tuple(words.split()))


def test_questions_are_made_of_what_asks() -> None:
    assert show("config").words[-2:] == ("show", "config")
    assert show_jobs("7").words[-1] == "7"
    assert QUEUE.words[0] == "squeue"
    assert would_start(("-n4",)).words[:2] == ("sbatch", "--test-only")


def test_a_reader_runs_no_order() -> None:
    order: object = Order(("scontrol", "show", "config"))
    with pytest.raises(TypeError, match="only questions"):
        Reader().ask(order)  # type: ignore[arg-type]


def test_a_controller_that_is_away_is_told_from_a_command_that_fails(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    program = tmp_path / "squeue"
    program.write_text(
        '#!/bin/sh\necho "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(Away, match="Unable to contact"):
        Reader().ask(QUEUE)
    program.write_text('#!/bin/sh\necho "squeue: error: Invalid user: eve" >&2\nexit 1\n')
    with pytest.raises(SlurmError, match="Invalid user") as caught:
        Reader().ask(QUEUE)
    assert not isinstance(caught.value, Away)
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match="is Slurm installed"):
        Reader().ask(QUEUE)


def test_peoples_settings_do_not_change_what_is_printed() -> None:
    given = {
        "SQUEUE_FORMAT": "%u",
        "SLURM_TIME_FORMAT": "relative",
        "TZ": "Asia/Tokyo",
        "SLURM_CONF": "/etc/x",
    }
    found = Reader(given).environment
    assert "SQUEUE_FORMAT" not in found
    assert (found["TZ"], found["SLURM_TIME_FORMAT"], found["SLURM_CONF"]) == ("UTC", "standard", "/etc/x")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            'echo "scontrol: error: s_p_parse_file: unable to read" >&2; echo "slurm_load_ctl_conf error" >&2; exit 1',
            "scontrol -a -o show config: scontrol: error: s_p_parse_file: unable to read; slurm_load_ctl_conf error",
        ),
        ('echo "Invalid job id specified"; exit 1', "scontrol -a -o show config: Invalid job id specified"),
        ("exit 3", "scontrol -a -o show config: exit status 3, and no word of why"),
    ],
    ids=["all lines", "on standard output", "silent"],
)
def test_an_error_says_what_was_asked_and_what_was_answered(
    script: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scontrol"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SlurmError) as caught:
        Reader().ask(show("config"))
    assert str(caught.value) == expected

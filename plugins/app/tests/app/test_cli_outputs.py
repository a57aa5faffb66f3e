"""Files appear whole or not at all, and what cannot be written is found out at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway.errors import ConfigError
from makeway_app.cli.outputs import Output, check_names

Run = Callable[..., Any]


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    """Not before, and with the permissions of any new file."""
    target = tmp_path / "out"
    with Output(str(target)) as output:
        output.write("text")
        assert not target.exists()
    assert target.read_text() == "text"
    other = tmp_path / "other"
    other.touch()
    assert target.stat().st_mode == other.stat().st_mode
    assert sorted(tmp_path.iterdir()) == [other, target]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing beside it."""
    target = tmp_path / "out"
    target.write_text("old")
    output = Output(str(target))
    output.write("new")
    error = RuntimeError()
    output.__exit__(RuntimeError, error, None)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_are_kept(tmp_path: Path) -> None:
    """Of a file that is replaced."""
    target = tmp_path / "out"
    target.touch()
    target.chmod(0o640)
    with Output(str(target)):
        pass
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_links_are_followed(tmp_path: Path) -> None:
    """The file behind a link is replaced, not the link."""
    target, link = tmp_path / "out", tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    with Output(str(link)) as output:
        output.write("text")
    assert link.is_symlink()
    assert target.read_text() == "text"


def test_devices_are_written_to_not_replaced(run: Run, with_jobs: Path) -> None:
    """Two options may share one."""
    done = run("replay", with_jobs, "--json", os.devnull, "--log", os.devnull)
    assert done.status == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("option", ["--json", "--log", "--rejected"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("{tmp}", "cannot be written: it is a directory", id="folder"),
        pytest.param("{tmp}/no/file", "cannot be written: No such file", id="no folder"),
        pytest.param("{config}/file", "cannot be written: Not a directory", id="below a file"),
        pytest.param("{config}", "is the input", id="input"),
        pytest.param("{tmp}/" + "x" * 300, "cannot be written: File name too long", id="long"),
    ],
)
def test_bad_places_are_told_before_the_replay(
    run: Run, with_jobs: Path, tmp_path: Path, option: str, name: str, message: str
) -> None:
    """Nothing is replayed, nothing is left behind."""
    before = sorted(tmp_path.iterdir())
    done = run("replay", with_jobs, option, name.format(tmp=tmp_path, config=with_jobs))
    assert done.status == 2
    assert done.out == ""
    assert message in done.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folders_that_may_not_be_written(tmp_path: Path) -> None:
    """Named, with the reason."""
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied"):
        Output(str(tmp_path / "out"))
    tmp_path.chmod(0o700)


def test_no_two_outputs_in_one_place() -> None:
    """However they are spelled."""
    with pytest.raises(ConfigError, match=r"--log: \./x is the file of --json already"):
        check_names([("--json", "x"), ("--log", "./x")], [])
    with pytest.raises(ConfigError, match="--log: - is the file of --json already"):
        check_names([("--json", "-"), ("--log", "-")], [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_full_disk_names_the_file(size: int) -> None:
    """Whether it is found out while writing or at the end."""
    with pytest.raises(OSError, match="No space left") as caught, Output("/dev/full") as output:
        output.write("x" * size)
    assert caught.value.filename == "/dev/full"

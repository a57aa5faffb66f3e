"""How a job ended is known at each moment: while it is copied to the submission, and once it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from moments import at_each

from makeway_local_world.keeping import words
from makeway_local_world.processes.ends import End, end_of
from makeway_local_world.processes.rundir import RunDirectory, keep_ends
from makeway_local_world.submission import directory_of


@pytest.mark.parametrize("asked_meanwhile", [True, False])
def test_it_is_known_while_its_directory_is_taken_away(tmp_path: Path, asked_meanwhile: bool) -> None:
    """Whichever of the two waits in the middle of a line for the other to be done."""
    place = RunDirectory(tmp_path, ("1", 1))
    job = directory_of(tmp_path, "1")
    job.mkdir(parents=True)
    found: list[End | None] = []

    def ended() -> None:
        for each in job.iterdir():
            each.unlink()
        directory = place.make()
        started = words.pack(gpus=["GPU-1"])
        for name, told in ((words.STARTED, started), (words.EXIT, words.pack(status=10, wall=7.0))):
            (place.path / name).write_bytes(told + b"\n")
        os.close(directory)

    def take_away() -> None:
        told = place.end()
        assert told is not None
        keep_ends(tmp_path, {place.key: told})
        place.close()

    def ask() -> None:
        found.append(end_of(tmp_path, "1", 1))

    work, meanwhile = (take_away, ask) if asked_meanwhile else (ask, take_away)
    moments = sum(1 for _ in at_each(ended, lambda _: work(), lambda _: meanwhile()))
    assert moments > 20
    assert len(found) >= moments - 1
    assert set(found) == {End(status=10, wall=7.0, gpus=("GPU-1",))}

"""Recorded texts of real daemons: Slurm 22.05.8 with four emulated nodes of four CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway_slurm_world.reading.look import Texts

DATA = Path(__file__).parent / "data"
TAKEN = 1795364821.0
"""When the texts were printed: 2026-11-22T16:27:01 UTC."""


def recorded(release: str, what: str) -> str:
    """Return what a command printed."""
    return (DATA / release / f"{what}.txt").read_text(encoding="utf-8")


@pytest.fixture
def texts() -> Texts:
    """A cluster at work: jobs that run, wait, are held or suspended, an array, a heterogeneous job."""
    return Texts(
        wall=TAKEN,
        config=recorded("22.05", "config"),
        partitions=recorded("22.05", "part"),
        nodes=recorded("22.05", "node"),
        reservations=recorded("22.05", "res"),
        licences=recorded("22.05", "lic"),
        jobs=recorded("22.05", "job"),
    )


FAKE = """\
#!/bin/sh
# Answers what only asks, from recorded texts; writes down and fails whatever else it is asked.
echo "${0##*/} $*" >>"$FAKE_LOG"
for word in "$@"; do
  case $word in -*) continue ;; esac
  verb="$verb $word"
done
case "${0##*/}$verb" in
  "scontrol show config") exec cat "$FAKE_DATA/config.txt" ;;
  "scontrol show part") exec cat "$FAKE_DATA/part.txt" ;;
  "scontrol show node") exec cat "$FAKE_DATA/node.txt" ;;
  "scontrol show res") exec cat "$FAKE_DATA/res.txt" ;;
  "scontrol show lic") exec cat "$FAKE_DATA/lic.txt" ;;
  "scontrol show job") exec cat "$FAKE_DATA/job.txt" ;;
esac
case "${0##*/} $1" in
  "sbatch --test-only")
    echo "sbatch: Job 19 to start at 2026-11-22T16:28:00 using 4 processors on nodes n1 in partition high" >&2
    echo "  Preempts: 3,10" >&2
    exit 0 ;;
esac
echo "forbidden: ${0##*/} $*" >>"$FAKE_LOG"
exit 99
"""


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put commands into PATH that answer questions and fail on every other verb; return the log of their calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("scontrol", "squeue", "sbatch", "scancel", "sacctmgr", "sdiag", "sinfo"):
        (folder / name).write_text(FAKE, encoding="utf-8")
        (folder / name).chmod(0o755)
    log = tmp_path / "calls"
    log.touch()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.setenv("FAKE_DATA", str(DATA / "22.05"))
    return log

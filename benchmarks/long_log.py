"""Replay a log of a million jobs in a process of its own: how much memory does it take, with and without records?

The log is made here: jobs of one to eight nodes that keep 100 nodes 94 percent busy, under EASY.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

NODES = 100
CONFIG = f"""\
[[node]]
name = "n[1-{NODES}]"

[[partition]]
name = "all"
default = true

[scheduler]
type = "easy"
"""
MEGABYTE = 1 << 10
"""In the kilobytes in which the peak of a process is counted."""
_SEED = 19961001


def write(path: Path, jobs: int) -> None:
    """Write a log in the standard workload format."""
    chance, at = Random(_SEED), 0.0
    with path.open("w") as log:
        for number in range(1, jobs + 1):
            at += chance.expovariate(1 / 9.0)
            run, nodes = chance.randint(1, 600), chance.choice((1, 1, 1, 2, 4, 8))
            fields = (number, int(at), 0, run, nodes, -1, -1, nodes, 2 * run, -1, 1, chance.randrange(50))
            print(*fields, *([1] * 4), -1, -1, file=log)


def peak(folder: Path, log: Path, *, records: bool) -> float:
    """Return the most megabytes that ``makeway replay`` takes.

    :param records: whether they are written to a file meanwhile, as lines of JSON.
    """
    config = folder / "cluster.toml"
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "makeway", "replay", str(config), str(log)]
    if records:
        command += ["--json", str(folder / "records.json")]
    watched = [sys.executable, str(Path(__file__).resolve()), "--watch", *command]
    done = subprocess.run(watched, check=True, capture_output=True, text=True, timeout=3600)
    return float(done.stdout)


def _watch(command: list[str]) -> None:
    """Run a command, and print its peak in megabytes: of this process it is the only child."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / MEGABYTE)


def measure(jobs: int, *, records: bool) -> float:
    """Return the most megabytes that a replay of so many jobs takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "long.swf", jobs)
        return peak(folder, folder / "long.swf", records=records)


def main() -> None:
    """Print both figures."""
    if sys.argv[1:2] == ["--watch"]:
        _watch(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    given = parser.parse_args()
    for records in (False, True):
        found = measure(given.jobs, records=records)
        print(
            f"{given.jobs:,} jobs, {'--json to a file' if records else 'no records'}: {found:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()

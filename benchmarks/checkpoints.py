"""What a checkpoint of a program costs: to save it, to bring it back, and to write as many bytes plainly.

python benchmarks/checkpoints.py --megabytes 1024 --rounds 3 [--dir DIR]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from makeway_checkpointable import criu
from makeway_checkpointable.measuring import Cost, measure


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    found: list[Cost] = [measure(criu.find(), given.dir, given.megabytes) for _ in range(given.rounds)]

    def median(name: str) -> float:
        return float(statistics.median(getattr(each, name) for each in found))

    save, restore, write = median("save"), median("restore"), median("write")
    print(f"{given.megabytes} MB, {given.rounds} rounds, {median('image') / (1 << 20):,.0f} MiB of images")
    print(f"| save | {save:.2f} s | {save / write:.2f} times a plain write |")
    print(f"| restore | {restore:.2f} s | {restore / write:.2f} times a plain write |")
    print(f"| plain write | {write:.2f} s | |")


if __name__ == "__main__":
    main()

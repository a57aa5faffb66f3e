"""Play random scenarios about priorities, limits and fair share on a real Slurm, and hold the replays against it.

    python tests/oracle/fuzz_priorities.py OUT [--seeds 1-100] [--at-once 4] [--tables] [--root DIR --suite trixie]

Scenarios and recordings go to OUT (those there already are not played again). What differs is played a second time and
counts only if both runs differ. Usage depends on the very second in which a job ends, so that rows of sprio and sshare
count with --tables only. Needs what run_priority.py needs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import fuzz
import random_priorities
import roots

from makeway_slurm.recordings.priority.judge import verdict
from makeway_verify.verdicts import Difference, Outcome, Verdict

RUNNER = Path(__file__).parent / "run_priority.py"
_OF_TABLES = ("sprio ", "sshare ")


def judge(
    table: fuzz.Table, folder: Path, slurm: roots.Slurm, *, tables: bool
) -> tuple[Verdict, list[Difference]]:
    """Play a scenario, once more if the replay differs; return what counts of the run that differs less."""
    again = folder / "again"
    again.mkdir(exist_ok=True)
    results = [place / f"{table['name']}.json" for place in (folder, again)]
    found = [_judged(result, tables=tables) for result in results if result.exists()]
    for result in results[len(found) :]:
        if found and not found[-1][1]:
            break
        found.append(_judged(fuzz.record(table, result.parent, slurm)[1], tables=tables))
    return min(found, key=lambda told: len(told[1]))


def _judged(result: Path, *, tables: bool) -> tuple[Verdict, list[Difference]]:
    found = verdict(result, skip_missing=False)
    counting = [
        each
        for each in found.comparison.differences
        if tables or not any(word in f" {each}" for word in _OF_TABLES)
    ]
    return found, counting


def main() -> int:
    """Return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=fuzz.seeds, default=range(1, 101))
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--tables", action="store_true")
    fuzz.add_root(parser)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    worse = 0
    with (
        roots.slurm(RUNNER, given.root, given.suite, given.out) as slurm,
        concurrent.futures.ThreadPoolExecutor(given.at_once) as pool,
    ):
        scenarios = [random_priorities.scenario(seed) for seed in given.seeds]
        waiting = {
            pool.submit(judge, each, given.out, slurm, tables=given.tables): each for each in scenarios
        }
        for done in concurrent.futures.as_completed(waiting):
            name = waiting[done]["name"]
            try:
                found, counting = done.result()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{name}: not played: {error}", flush=True)  # noqa: T201
                continue
            differs = bool(counting) or found.outcome is Outcome.FAILED
            worse += differs
            shown = "".join(f"\n    {each}" for each in counting)
            print(f"{name}: {'differs' if differs else 'agrees'} {found.why}{shown}", flush=True)  # noqa: T201
    print(f"{worse} of {len(scenarios)} differ")  # noqa: T201
    return int(worse > 0)


if __name__ == "__main__":
    raise SystemExit(main())

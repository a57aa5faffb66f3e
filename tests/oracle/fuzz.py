"""Play random scenarios on a real Slurm, hold the replays against it, and reduce what differs.

    python tests/oracle/fuzz.py OUT [--seeds 1-100] [--exotic] [--at-once 6] [--reduce 20] [--root DIR --suite trixie]

Scenarios and recordings go to OUT (those there already are not played again). What differs is played a second time and
counts only if both runs differ; with --reduce it is reduced and becomes a case, OUT/cases/NAME. Needs what
run_oracle.py needs, or, with --root, mmdebstrap alone: the Slurm is then that of another Debian (roots.py).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import random_scenarios
import roots

from makeway_slurm.recordings.play import play as replay
from makeway_slurm.recordings.verify import verify_one
from makeway_verify.verdicts import Outcome, Verdict, score

RUNNER = Path(__file__).parent / "run_oracle.py"
_AGREE = frozenset((Outcome.AGREES, Outcome.SKIPPED))

Table = dict[str, Any]
Differs = Callable[[Table], bool]


def record(table: Table, folder: Path, slurm: roots.Slurm) -> tuple[Path, Path]:
    """Play a scenario on a real Slurm; return the files of scenario and recording.

    :raises RuntimeError: the runner failed, twice.
    """
    path = folder / f"{table['name']}.toml"
    path.write_text(random_scenarios.write(table), encoding="utf-8")
    result = path.with_suffix(".json")
    told = slurm.play(path, result) and slurm.play(path, result)
    if told:
        raise RuntimeError(f"{path.name}: {told}")
    return path, result


def judge(table: Table, folder: Path, slurm: roots.Slurm) -> Verdict:
    """Play a scenario, once more if the replay differs, and compare; what was played before is not again."""
    path, again = folder / f"{table['name']}.toml", folder / "again"
    again.mkdir(exist_ok=True)
    found = [
        verify_one(path, place / f"{table['name']}.json", replay)
        for place in (folder, again)
        if (place / f"{table['name']}.json").exists()
    ]
    for place in (folder, again)[len(found) :]:
        if found and found[-1].outcome in _AGREE:
            break
        found.append(verify_one(*record(table, place, slurm), replay))
    return next((each for each in found if each.outcome in _AGREE), found[0])


def reduced(table: Table, differs: Differs, plays: int) -> Table:
    """Leave out jobs, commands and words for as long as the difference stays.

    :param plays: how often Slurm may be asked.
    """
    again = True
    while again:
        again = False
        for smaller in list(_smaller(table)):
            if plays <= 0:
                return table
            plays -= 1
            if differs(smaller):
                table, again = smaller, True
                break
    return table


def _smaller(table: Table) -> Iterator[Table]:
    """Yield the scenario without one of its parts, large parts first."""
    for key in ("job", "action"):
        for at in reversed(range(len(table.get(key, ())))):
            smaller = copy.deepcopy(table)
            gone = smaller[key].pop(at)
            if smaller["job"] and not (key == "job" and _is_named(smaller, gone["name"], at)):
                yield smaller
    for number, job in enumerate(table["job"]):
        for at, word in enumerate(job["args"]):
            if word.startswith("--"):
                smaller = copy.deepcopy(table)
                del smaller["job"][number]["args"][at]
                yield smaller
    lines = table["cluster"]["slurm_conf"].splitlines()
    for at, line in enumerate(lines):
        if line.startswith(("PreemptExempt", "DefMem", "Priority")):
            smaller = copy.deepcopy(table)
            smaller["cluster"]["slurm_conf"] = "\n".join(lines[:at] + lines[at + 1 :])
            yield smaller


def _is_named(table: Table, name: str, at: int) -> bool:
    """Whether a command names the job, or others depend on a job by a number that would change."""
    if any(f"<{name}>" in action["command"] for action in table.get("action", ())):
        return True
    return any(word.startswith("--dependency") for job in table["job"][at:] for word in job["args"])


def make_case(folder: Path, table: Table, plays: int, slurm: roots.Slurm) -> None:
    """Reduce what differs, and write it to a folder of its own with its recording and what makes the difference."""
    folder.mkdir(parents=True, exist_ok=True)
    tried = 0
    told = ""

    def differs(smaller: Table) -> bool:
        nonlocal tried, told
        tried += 1
        smaller["name"] = f"{table['name']}_{tried}"
        found = verify_one(*record(smaller, folder, slurm), replay)
        if found.outcome in _AGREE:
            return False
        told = _told(found)
        return True

    small = reduced(table, differs, plays)
    for path in folder.glob(f"{table['name']}_*"):
        if path.stem != small["name"]:
            path.unlink()
    name = small["name"]
    (folder / "expect.md").write_text(
        f"`makeway verify {name}.toml --recorded {name}.json` should agree; it prints:\n\n    {told}\n",
        encoding="utf-8",
    )


def seeds(text: str) -> range:
    """Read ``1-100`` or ``7``."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _told(verdict: Verdict) -> str:
    differences = "".join(f"\n    {each}" for each in verdict.comparison.differences)
    return f"{verdict.name}: {verdict.outcome.value} {verdict.why}{differences}"


def run(
    folder: Path, seeds: range, slurm: roots.Slurm, *, exotic: bool, at_once: int, plays: int
) -> list[Verdict]:
    """Play the scenarios of `seeds`, some at once, and tell of each as it comes."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [random_scenarios.scenario(seed, exotic=exotic) for seed in seeds]
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        waiting = {pool.submit(judge, table, folder, slurm): table for table in tables}
        for done in concurrent.futures.as_completed(waiting):
            try:
                verdict = done.result()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                verdict = Verdict(name=waiting[done]["name"], outcome=Outcome.SKIPPED, why=str(error))
            verdicts.append(verdict)
            print(_told(verdict), flush=True)  # noqa: T201
    worse = {verdict.name for verdict in verdicts if verdict.outcome not in _AGREE}
    for table in tables if plays else ():
        if table["name"] in worse:
            make_case(folder / "cases" / table["name"], table, plays, slurm)
    return verdicts


def add_root(parser: argparse.ArgumentParser) -> None:
    """Let the command line name a root."""
    parser.add_argument("--root", type=Path, help="play in the Slurm of this root, made if missing")
    parser.add_argument("--suite", default="trixie", help="Debian suite of a root that is made")


def main() -> int:
    """Return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=seeds, default=range(1, 101))
    parser.add_argument("--exotic", action="store_true")
    parser.add_argument("--at-once", type=int, default=6)
    add_root(parser)
    parser.add_argument(
        "--reduce", type=int, default=0, metavar="PLAYS", help="most plays to reduce one difference"
    )
    given = parser.parse_args()
    with roots.slurm(RUNNER, given.root, given.suite, given.out) as slurm:
        verdicts = run(
            given.out, given.seeds, slurm, exotic=given.exotic, at_once=given.at_once, plays=given.reduce
        )
    print(score(verdicts))  # noqa: T201
    return int(any(verdict.outcome not in _AGREE for verdict in verdicts))


if __name__ == "__main__":
    raise SystemExit(main())

"""Measure what makeway promises about its speed: figure, target, peer and ratio, as a table or as JSON.

Figures are CPU time or the peak of memory, the least of several rounds. Machines are noisy, so each figure that has a
peer is measured beside it, and two commits are compared in turns: ``python -m benchmarks --against COMMIT`` runs both
sides of each figure one after the other. A figure that misses its target is marked; the exit status stays 0.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import bench_decision
import counting_loop
import deep_queue
import gang_row
import long_log
import month

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, replay

ROOT = Path(__file__).parents[1]
LOG = ROOT / "examples/kth/kth-sp2-1500.swf.gz"
NODES_OF_KTH = 100


@attrs.frozen
class Measured:
    """What one run of a figure came to."""

    value: float
    peer: float | None = None
    """The same of the peer, in the same unit."""


@attrs.frozen
class Figure:
    """Something that is measured, and what is to be reached."""

    unit: str
    run: Callable[[], Measured]
    target: float | None = None
    """For the value, or for the ratio to the peer where there is one; None: none is set."""
    peer: str = ""
    more_is_better: bool = False

    def shown(self, found: Measured) -> float:
        """Return what the target is about."""
        return found.value if found.peer is None else found.value / found.peer

    def misses(self, found: Measured) -> bool:
        """Whether the target is not reached."""
        if self.target is None:
            return False
        reached = self.shown(found)
        return reached < self.target if self.more_is_better else reached > self.target


# ------------------------------------------------------------------------------------- measuring
def _cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a piece of work in this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _cpu_of(*command: str) -> float:
    """Return the CPU milliseconds of a command; bytecode is written before."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    used = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120, env=environment, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return 1e3 * min(used)


def _start(*arguments: str) -> Measured:
    python = sys.executable
    return Measured(_cpu_of(python, "-m", "makeway", *arguments), _cpu_of(python, "-c", "pass"))


def _deep(name: str, depth: int, shallow: int = 500) -> Measured:
    case = deep_queue.CASES[name]
    deep_queue.cost(case, 50)  # what is imported once
    return Measured(1e6 * deep_queue.cost(case, depth), 1e6 * deep_queue.cost(case, shallow))


def _rate(name: str, depth: int) -> Measured:
    case = deep_queue.CASES[name]
    deep_queue.cost(case, 50)
    return Measured(1.0 / deep_queue.cost(case, depth))


def _easy() -> Measured:
    config = Config(
        node=(NodeTable(name=f"n[1-{NODES_OF_KTH}]"),),
        partition=(PartitionTable(name="all", default=True),),
        scheduler=SchedulerTable(type="easy"),
    )
    jobs = list(open_workload(LOG, ReadOptions(config=config)).jobs)
    counted = counting_loop.read_swf(LOG)
    ours = _cpu(lambda: replay(config, jobs, (), Options(keep=False)))
    loop = _cpu(lambda: counting_loop.simulate(counted, NODES_OF_KTH, "easy"))
    return Measured(1e6 * ours / len(jobs), 1e6 * loop / len(jobs))


def _read() -> Measured:
    lines = [
        "\t".join(map(str, (at, at * 10, 0, 60, 4, -1, -1, 4, 120, -1, 1, 1, 1, 1, 1, -1, -1, -1)))
        for at in range(20_000)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.swf"
        path.write_text("\n".join(lines) + "\n")
        config = Config(
            node=(NodeTable(name="n[1-10]"),), partition=(PartitionTable(name="all", default=True),)
        )
        ours = _cpu(lambda: sum(1 for _ in open_workload(path, ReadOptions(config=config)).jobs))
        split = _cpu(lambda: [line.split() for line in path.read_text().splitlines()])
    return Measured(1e6 * ours / len(lines), 1e6 * split / len(lines))


def _decision(select: str, size: int) -> Measured:
    engine = bench_decision.full_cluster(size, select)
    return Measured(1e3 * min(bench_decision.decide(engine, size)[0] for _ in range(3)))


def _many_nodes(select: str) -> Measured:
    """Return what each job costs once the cluster stands."""
    jobs = [
        JobSpec(id=str(at), submit_at=float(at), min_nodes=1 + at % 4, max_nodes=1 + at % 4, run_time=300.0)
        for at in range(20_000)
    ]

    def since_it_stands(config: Config) -> float:
        began: list[float] = []
        options = Options(keep=False, started=lambda engine: began.append(time.process_time()))
        replay(config, jobs, (), options)
        return time.process_time() - began[0]

    def cost(size: int) -> float:
        config = Config(
            node=(NodeTable(name=f"n[1-{size}]", cpus=8),),
            partition=(PartitionTable(name="all", default=True),),
            policy=PolicyTable(select=select),
        )
        return 1e6 * min(since_it_stands(config) for _ in range(3)) / len(jobs)

    return Measured(cost(100_000), cost(1_000))


def _row(which: int) -> Measured:
    """Return what a tick costs (0), or an end (1), where most jobs wait for their turn."""
    return Measured(1e3 * gang_row.measure(10_000, 8)[which])


def _month(jobs: int, nodes: int) -> Measured:
    return Measured(month.measure(jobs, nodes)[0])


def _memory(*, records: bool) -> Measured:
    return Measured(long_log.measure(1_000_000, records=records))


PASS, SHALLOW, FEW_NODES = "python -c pass", "500 waiting", "1,000 nodes"
FIGURES: Mapping[str, Figure] = {
    "month: 2,500 jobs, 200 nodes, backfill, requeue": Figure("s", lambda: _month(2_500, 200)),
    "start: --help": Figure("ms", lambda: _start("--help"), 10.0, PASS),
    "start: replay of six jobs": Figure(
        "ms", lambda: Measured(_start("replay", "examples/seed/cluster.toml").value), 250.0
    ),
    **{
        f"deep queue: {name}": Figure("us a job", lambda name=name: _deep(name, 8_000), 1.5, SHALLOW)  # type: ignore[misc]
        for name in (
            f"{scheduler}, {select}"
            for scheduler in ("builtin", "easy", "greedy")
            for select in ("linear", "cons_tres")
        )
    },
    "deep queue: backfill, linear, 100 jobs": Figure(
        "jobs/s", lambda: _rate("backfill, linear", 100), 3_000.0, more_is_better=True
    ),
    "deep queue: lsf with all limits, 5,000 jobs": Figure(
        "jobs/s", lambda: _rate("lsf", 5000), 3_000.0, more_is_better=True
    ),
    "deep queue: moab with all limits, 5,000 jobs": Figure(
        "jobs/s", lambda: _rate("moab", 5000), 3_000.0, more_is_better=True
    ),
    "gang: a tick, 80,000 jobs on 10,000 nodes": Figure("ms", lambda: _row(0), 150.0),
    "gang: an end, 80,000 jobs on 10,000 nodes": Figure("ms", lambda: _row(1), 1.0),
    "deep queue: backfill and gang, 200 jobs": Figure(
        "jobs/s", lambda: _rate("backfill and gang", 200), 1_500.0, more_is_better=True
    ),
    "deep queue: backfill, 1,000 nodes, 5,000 jobs": Figure(
        "jobs/s", lambda: _rate("backfill, 1,000 nodes", 5_000), 3_000.0, more_is_better=True
    ),
    "easy on 1,500 jobs of KTH-SP2": Figure("us a job", _easy, None, "a loop that counts nodes"),
    "read SWF": Figure("us a job", _read, 5.0, "str.split"),
    "memory: a million jobs, no records": Figure("MB", lambda: _memory(records=False), 80.0),
    "memory: a million jobs, --json": Figure("MB", lambda: _memory(records=True), 150.0),
    "decision: linear, 10,000 nodes": Figure("ms", lambda: _decision("select/linear", 10_000), 12.0),
    "decision: cons_tres, 10,000 nodes": Figure("ms", lambda: _decision("select/cons_tres", 10_000), 35.0),
    "decision: linear, 100,000 nodes": Figure("ms", lambda: _decision("select/linear", 100_000), 130.0),
    "decision: cons_tres, 100,000 nodes": Figure("ms", lambda: _decision("select/cons_tres", 100_000), 400.0),
    "small jobs on 100,000 nodes: linear": Figure(
        "us a job", lambda: _many_nodes("select/linear"), 2.0, FEW_NODES
    ),
    "small jobs on 100,000 nodes: cons_tres": Figure(
        "us a job", lambda: _many_nodes("select/cons_tres"), 2.0, FEW_NODES
    ),
}


# --------------------------------------------------------------------------------------- printing
def table(found: Mapping[str, Measured]) -> str:
    """Return the figures as a table that Markdown understands."""
    lines = ["| figure | value | peer | ratio | target |", "|---|---|---|---|---|"]
    for name, each in found.items():
        figure = FIGURES[name]
        peer = "" if each.peer is None else f"{figure.peer}: {_number(each.peer)} {figure.unit}"
        ratio = "" if each.peer is None else _number(each.value / each.peer)
        target = (
            ""
            if figure.target is None
            else _number(figure.target) + (" times" if each.peer is not None else "")
        )
        missed = ", missed" if figure.misses(each) else ""
        lines.append(
            f"| {name} | {_number(each.value)} {figure.unit} | {peer} | {ratio} | {target}{missed} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# ------------------------------------------------------------------------------------- two commits
@contextlib.contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ("git", "-C", str(ROOT))
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True)


def _elsewhere(tree: Path, name: str) -> Measured | None:
    """Measure one figure in a process of its own with the sources of `tree`; None: it cannot be measured there."""
    sources = [tree / "core/src", *sorted(tree.glob("plugins/*/src"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}
    command = [sys.executable, "-m", "benchmarks", "--only", name, "--rounds", "1", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    if done.returncode:
        return None
    return Measured(**json.loads(done.stdout)[name])


def compare(names: list[str], commit: str, rounds: int) -> str:
    """Return a table of the figures of a commit and of these files, measured in turns."""
    lines = ["| figure | before | now | now / before |", "|---|---|---|---|"]
    with _checked_out(commit) as tree:
        for name in names:
            sides: dict[Path, list[float]] = {tree: [], ROOT: []}
            for _ in range(rounds):
                for side, values in sides.items():
                    found = _elsewhere(side, name)
                    if found is not None:
                        values.append(found.value)
            best = max if FIGURES[name].more_is_better else min
            before, now = (best(values, default=float("nan")) for values in sides.values())
            unit = FIGURES[name].unit
            lines.append(
                f"| {name} | {_number(before)} {unit} | {_number(now)} {unit} | {now / before:.2f} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def _best(figure: Figure, rounds: int) -> Measured:
    found = [figure.run() for _ in range(rounds)]
    best = max if figure.more_is_better else min
    peers = [each.peer for each in found if each.peer is not None]
    return Measured(best(each.value for each in found), min(peers) if peers else None)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", default="*", metavar="GLOB", help="only figures so named: 'deep queue: easy*'"
    )
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is taken")
    parser.add_argument(
        "--json", metavar="FILE", help="write them as JSON, too; -: only that, on standard output"
    )
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare with the sources of another commit, in turns"
    )
    given = parser.parse_args()
    names = [name for name in FIGURES if name == given.only or fnmatch.fnmatchcase(name, given.only)]
    if not names:
        parser.error(f"--only: no figure is like {given.only!r}; there are: {'; '.join(FIGURES)}")
    if given.against:
        print(compare(names, given.against, given.rounds))
        return
    found = {name: _best(FIGURES[name], given.rounds) for name in names}
    text = json.dumps({name: attrs.asdict(each) for name, each in found.items()}, indent=1)
    if given.json == "-":
        print(text)
        return
    if given.json:
        Path(given.json).write_text(text + "\n")
    print(table(found))


if __name__ == "__main__":
    main()

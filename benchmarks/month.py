"""Replay a busy fortnight of a cluster of nodes with 64 cores: ``python benchmarks/month.py 20000 200``.

Jobs come alone and in bursts of alike ones, of 1 to 512 cores, with limits of 30 minutes to two days, which they use by
a third on average. Three fifths go to a partition whose jobs others requeue. The offered work is `--load` times what
the cluster can do, so that at 1.0 thousands wait. Scheduler and clocks are as slurm.conf has them by default
(sched/backfill, select/cons_tres with CR_Core_Memory, preempt/partition_prio); `--under` names another scheduler for
the same site, or the same partitions as queues of LSF or classes of Moab. `--first` ends with so many of the jobs.
Prints CPU time and the peak of memory.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from makeway.config import Config
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway.readers.mapping import parse_map_flag
from makeway_app.cli.inputs import load_config
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, Run, replay

CORES = 64
SIZES = {1: 30, 2: 10, 4: 12, 8: 10, 16: 10, 32: 8, 64: 10, 128: 5, 256: 3, 512: 2}
"""Cores of a job -> how often, of a hundred."""
LIMITS = (30, 60, 120, 240, 480, 720, 1440, 2880)
"""Minutes."""
SLURM = """\
ClusterName=month
SlurmctldHost=ctl
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
DefMemPerCPU=3000
NodeName=n[0001-{nodes:04}] CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=256000
PartitionName=scavenge Nodes=ALL PriorityTier=1 Default=YES MaxTime=UNLIMITED
PartitionName=normal Nodes=ALL PriorityTier=10 MaxTime=UNLIMITED
"""
LSF = """\
Begin Queue
QUEUE_NAME = scavenge
PRIORITY = 10
PREEMPTION = PREEMPTABLE
RERUNNABLE = yes
End Queue
Begin Queue
QUEUE_NAME = normal
PRIORITY = 40
PREEMPTION = PREEMPTIVE[scavenge]
End Queue
"""
MOAB = """\
RMCFG[base] TYPE=PBS
BACKFILLPOLICY FIRSTFIT
RESERVATIONPOLICY CURRENTHIGHEST
RESERVATIONDEPTH 4
PREEMPTPOLICY REQUEUE
CREDWEIGHT 1
QOSWEIGHT 1
QUEUETIMEWEIGHT 1
CLASSCFG[scavenge] QDEF=low
CLASSCFG[normal] QDEF=high
QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=0 JOBFLAGS=RESTARTABLE
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=100000
"""
UNDER = ("backfill", "builtin", "easy", "greedy", "lsf", "moab")


def site(folder: Path, nodes: int, under: str) -> Config:
    """Write the files of the site, and return what they say."""
    names = [f"n{number:04}" for number in range(1, nodes + 1)]
    if under == "lsf":
        hosts = "".join(f"{name} {CORES}\n" for name in names)
        (folder / "lsb.hosts").write_text(f"Begin Host\nHOST_NAME MXJ\n{hosts}End Host\n")
        path, text = folder / "lsb.queues", LSF
    elif under == "moab":
        listed = "".join(f"NODECFG[{name}] PROCS={CORES} MEMORY=256000\n" for name in names)
        path, text = folder / "moab.cfg", MOAB + listed
    else:
        path, text = folder / "slurm.conf", SLURM.format(nodes=nodes)
    path.write_text(text)
    config = load_config(path).config
    if under in ("builtin", "easy", "greedy"):
        config = attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, type=under))
    rules = tuple(map(parse_map_flag, ("queue=1:scavenge", "queue=2:normal")))
    return attrs.evolve(config, workload=attrs.evolve(config.workload, map=rules))


def _kinds(chance: random.Random, nodes: int) -> Iterator[tuple[int, int, int, str]]:
    """Yield for each job its cores, limit in seconds, user and partition; a burst is alike."""
    while True:
        size = min(chance.choices(list(SIZES), list(SIZES.values()))[0], nodes * CORES // 4)
        limit = chance.choice(LIMITS) * 60
        kind = size, limit, chance.randint(1, 80), "scavenge" if chance.random() < 0.6 else "normal"
        yield from [kind] * (1 if chance.random() < 0.8 else chance.randint(5, 80))


def write(path: Path, jobs: int, nodes: int, load: float = 1.0, seed: int = 1) -> None:
    """Write the jobs as SWF; queue 1 is the partition scavenge, queue 2 is normal."""
    chance = random.Random(seed)
    kinds = _kinds(chance, nodes)
    rows = [(*next(kinds), chance.betavariate(0.6, 1.2)) for _ in range(jobs)]
    runs = [max(10, int(limit * part)) for _, limit, _, _, part in rows]
    span = sum(run * row[0] for run, row in zip(runs, rows, strict=True)) / (nodes * CORES * load)
    begins = sorted(chance.random() * span for _ in rows)
    lines, at, last = [f"; MaxNodes: {nodes}", f"; MaxProcs: {nodes * CORES}", "; UnixStartTime: 0"], 0, None
    for number, (row, run, begin) in enumerate(zip(rows, runs, begins, strict=True), 1):
        if row[:4] != last:
            at, last = int(begin), row[:4]
        size, limit, user, partition, _ = row
        queue = 1 if partition == "scavenge" else 2
        lines.append(
            f"{number} {at} -1 {run} {size} -1 -1 {size} {limit} -1 1 {user} 1 1 {queue} {queue} -1 -1"
        )
    path.write_text("\n".join(lines) + "\n")


def read(
    jobs: int, nodes: int, load: float = 1.0, seed: int = 1, under: str = "backfill"
) -> tuple[Config, Sequence[JobSpec]]:
    """Return such a site, as its own files say, and its jobs."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "month.swf"
        write(log, jobs, nodes, load, seed)
        config = site(Path(folder), nodes, under)
        return config, list(open_workload(log, ReadOptions(config=config)).jobs)


def measure(
    jobs: int,
    nodes: int,
    load: float = 1.0,
    seed: int = 1,
    *,
    under: str = "backfill",
    first: int | None = None,
) -> tuple[float, Run]:
    """Return the CPU seconds of a replay without reading, and the run.

    :param first: so many of the jobs are replayed; None: all.
    """
    config, specs = read(jobs, nodes, load, seed, under)
    began = time.process_time()
    run = replay(config, specs[:first], (), Options(keep=False))
    return time.process_time() - began, run


def main() -> None:
    """Print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=int, nargs="?", default=20_000)
    parser.add_argument("nodes", type=int, nargs="?", default=200)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--under", nargs="+", choices=UNDER, default=["backfill"])
    parser.add_argument("--first", type=int, help="replay so many of the jobs")
    parser.add_argument("--write", type=Path, metavar="SWF", help="write the jobs there, and replay nothing")
    given = parser.parse_args()
    for seed in given.seeds:
        if given.write:
            write(given.write, given.jobs, given.nodes, given.load, seed)
            continue
        for under in given.under:
            took, run = measure(given.jobs, given.nodes, given.load, seed, under=under, first=given.first)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            metrics = run.recorder.metrics
            print(
                f"{under}, {metrics.jobs:,} jobs on {given.nodes:,} nodes, load {given.load:g}, seed {seed}: "
                f"{took:,.1f} s, {metrics.jobs / took:,.0f} jobs/s, {peak:,.0f} MB, "
                f"{metrics.preemptions:,} preemptions"
            )


if __name__ == "__main__":
    main()

"""Measure what fair share and limits cost: a log with three accounts of ten users each, with and without either.

Run ``python benchmarks/fair_share.py LOG [--jobs N] [--rounds N] [--scheduler easy] [--users 30] [--accounts 3]``; it
prints CPU seconds of the four replays, taken in turns, and ratios of their medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import attrs

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
)
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, replay

OF_ACCOUNT = {
    "GrpTRES": "cpu=1000,node=1000",
    "GrpTRESMins": "cpu=100000000",
    "GrpTRESRunMins": "cpu=10000000",
    "GrpJobs": "1000",
    "GrpSubmit": "100000",
    "GrpWall": "100000000",
}
"""Limits of each account and user; none of them is tight, so that both replays start jobs alike but for their order."""
OF_QOS = {
    "GrpTRES": "cpu=1000",
    "MaxTRESPU": "cpu=1000",
    "MaxTRESPA": "cpu=1000",
    "MaxTRESPerJob": "cpu=1000",
    "MaxTRESMins": "cpu=100000000",
    "MaxJobsPU": "1000",
    "MaxSubmitPU": "100000",
    "MaxWall": "100000",
}
USERS, ACCOUNTS = 30, 3
PLAIN = Config(
    node=(NodeTable(name="n[001-100]"),),
    partition=(PartitionTable(name="all", default=True),),
    qos=(QosTable(name="normal"),),
    scheduler=SchedulerTable(type="easy"),
)


def accounts(users: int = USERS, count: int = ACCOUNTS, *, limited: bool = True) -> list[dict[str, str]]:
    """Return the associations."""
    found: list[dict[str, str]] = []
    limits = OF_ACCOUNT if limited else {}
    for at in range(count):
        found.append({"Account": f"a{at}", "Share": str(at + 1), **limits})
        found += [{"Account": f"a{at}", "User": f"u{user}", **limits} for user in range(at, users, count)]
    return found


def fair(
    plain: Config = PLAIN,
    users: int = USERS,
    count: int = ACCOUNTS,
    *,
    shares: bool = True,
    limited: bool = True,
) -> Config:
    """Return the same cluster with fair share, limits, or both."""
    weights = {"weight_fairshare": 10000, "weight_age": 1000, "weight_job_size": 100}
    policy = PolicyTable(
        priority="priority/multifactor" if shares else "priority/basic",
        plugins=("limits/slurm",) if limited else (),
        settings={"priority/multifactor": weights} if shares else {},
    )
    return attrs.evolve(
        plain,
        cluster=ClusterTable(attributes={"associations": accounts(users, count, limited=limited)}),
        qos=(QosTable(name="normal", attributes=OF_QOS if limited else {}),),
        policy=policy,
    )


def charged(jobs: list[JobSpec], users: int = USERS, count: int = ACCOUNTS) -> list[JobSpec]:
    """Return the jobs, each with one of so many users."""
    who = {name: at % users for at, name in enumerate(dict.fromkeys(job.user for job in jobs))}
    return [
        attrs.evolve(job, user=f"u{who[job.user]}", account=f"a{who[job.user] % count}", qos="normal")
        for job in jobs
    ]


def timed(config: Config, jobs: list[JobSpec]) -> float:
    """Return the CPU seconds of one replay."""
    began = time.process_time()
    replay(config, jobs, (), Options(keep=False))
    return time.process_time() - began


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--jobs", type=int, default=None, help="only the first so many")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scheduler", choices=("easy", "builtin", "greedy", "backfill"), default="easy")
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--accounts", type=int, default=ACCOUNTS)
    given = parser.parse_args()
    plain = attrs.evolve(PLAIN, scheduler=SchedulerTable(type=given.scheduler))
    jobs = list(open_workload(given.log, ReadOptions(config=PLAIN)).jobs)[: given.jobs]
    jobs = charged(jobs, given.users, given.accounts)
    configs = {
        "plain": plain,
        "limits": fair(plain, given.users, given.accounts, shares=False),
        "fair share": fair(plain, given.users, given.accounts, limited=False),
        "both": fair(plain, given.users, given.accounts),
    }
    taken: dict[str, list[float]] = {name: [] for name in configs}
    for _ in range(given.rounds):
        for name, config in configs.items():
            taken[name].append(timed(config, jobs))
    seconds = {name: statistics.median(each) for name, each in taken.items()}
    print(f"{len(jobs):,} jobs: " + ", ".join(f"{name} {each:.2f} s" for name, each in seconds.items()))
    for name, other in (
        ("limits", "plain"),
        ("both", "fair share"),
        ("fair share", "plain"),
        ("both", "plain"),
    ):
        print(f"{name} / {other}: {seconds[name] / seconds[other]:.2f}")


if __name__ == "__main__":
    main()

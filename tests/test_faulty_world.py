"""All policies in a world that hurts, under a daemon that crashes: what may never happen does not happen."""

from __future__ import annotations

import functools
import importlib
import math
import os
import sys
import tomllib
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import ClusterTable, Config, FailureTable, WorldTable, parse_toml
from makeway.errors import InvariantError
from makeway.model import JobSpec
from makeway.registry import Policies
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.crashes import CrashingRun, check_ends, check_run
from makeway_testing.faulty import NONE, Faults
from makeway_testing.invariants import InvariantChecker

ROOT = Path(__file__).parents[1]
TWO = ("batch", "urgent")
THREE = ("long", "normal", "urgent")
TIERS: dict[str, Any] = {"partitions": builders.tiers(batch=1, urgent=2)}
PRIO: dict[str, Any] = {**TIERS, "preempt": "preempt/partition_prio"}
CORES: dict[str, Any] = {"select": "select/cons_tres", "select_parameters": "CR_Core_Memory"}
QOS = {"low": {"priority": 1}, "high": {"priority": 9, "preempt": "low"}}
SETUPS: dict[str, dict[str, Any]] = {
    "none": {**TIERS, "preempt": "preempt/none"},
    "suspend": {**PRIO, "preempt_mode": "suspend,gang"},
    "suspend cores": {**PRIO, **CORES, "preempt_mode": "suspend,gang"},
    "requeue": {**PRIO, "preempt_mode": "requeue"},
    "requeue cores": {**PRIO, **CORES, "preempt_mode": "requeue", "scheduler": "builtin"},
    "cancel": {**PRIO, "preempt_mode": "cancel", "scheduler": "backfill"},
    "grace": {
        "partitions": {"batch": {"priority_tier": 1, "grace_time": 15.0}, "urgent": {"priority_tier": 2}},
        "preempt": "preempt/partition_prio",
        "preempt_mode": "requeue",
    },
    "fewest": {**PRIO, "preempt_mode": "requeue", "search": "search/least_disruption"},
    "least work": {**PRIO, "preempt": "preempt/least_work_lost", "preempt_mode": "requeue"},
    "protected": {
        **PRIO,
        "preempt_mode": "requeue",
        "protect": ["protect/calendar"],
        "settings": {"protect/calendar": {"last_minutes": 0.5}},
    },
    "qos": {**TIERS, "qos": QOS, "preempt": "preempt/qos", "preempt_mode": "requeue"},
    "qos suspend": {**TIERS, **CORES, "qos": QOS, "preempt": "preempt/qos", "preempt_mode": "suspend,gang"},
    "turns": {
        "partitions": {"batch": {"oversubscribe": "FORCE:2"}, "urgent": {"priority_tier": 2}},
        "preempt": "preempt/partition_prio",
        "preempt_mode": "suspend,gang",
        "timeslice": 10.0,
    },
    "slurm's clockwork": {**PRIO, "preempt_mode": "requeue", "clockwork": "slurm", "scheduler": "backfill"},
    "epilogs": {
        **PRIO,
        "preempt_mode": "requeue",
        "clockwork": {"completing_time": 3.0, "kill_wait": 10.0, "requeue_delay": 5.0},
    },
}
"""Flat settings of each; keys of `OTHERS` say it as a site does."""
SITE = (ROOT / "examples" / "three-ways" / "cluster.toml").read_text(encoding="utf-8")
OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "moab": ("moab/qos", ("requeue",)),
    "moab suspend": ("moab/qos", ("suspend",)),
    "lsf": ("lsf/queue", ("suspend",)),
    "openpbs": ("openpbs/sched", ("suspend",)),
}
"""Preempt plugin and modes over the site of examples/three-ways."""
NAMES = (*SETUPS, *OTHERS)
SHARES = ()
"""Where jobs of several partitions or QOS share cores in plain replays, too."""
CI, NIGHTLY = 300, 10_000
CRASHES = 3
JOURNALS = 6


@functools.cache
def built(name: str) -> tuple[Config, Policies]:
    """Return a set-up, built once."""
    config = _site(*OTHERS[name]) if name in OTHERS else builders.config(NODES, SETUPS[name])
    failures = FailureTable(start_hold_after=0, node_set_aside=30.0, kill_again=5.0, suspend_wait=20.0)
    config = attrs.evolve(config, world=WorldTable(survey=30.0, failures=failures))
    return config, Policies(config, strangers())


@functools.cache
def strangers() -> dict[str, Any]:
    """Return the plugins of examples/plugins by name, from their folders: they need not be installed."""
    found: dict[str, Any] = {}
    for settings in sorted(ROOT.glob("examples/plugins/*/pyproject.toml")):
        sys.path.append(str(settings.parent / "src"))
        points = tomllib.loads(settings.read_text(encoding="utf-8"))["project"]["entry-points"]["makeway"]
        found |= {name: importlib.import_module(module) for name, module in points.items()}
    return found


NODES = builders.cluster(3, cpus=2, memory_mb=1000)


def _site(preempt: str, modes: tuple[str, ...]) -> Config:
    config = parse_toml(SITE, "cluster.toml")
    policy = attrs.evolve(config.policy, preempt=preempt, preempt_mode=modes)
    if preempt == "openpbs/sched":
        policy = attrs.evolve(policy, select="openpbs/vnodes", select_parameters=())
    if preempt == "moab/qos" and modes == ("suspend",):
        own = {**policy.settings["moab/qos"], "preempt_policy": "SUSPEND"}
        policy = attrs.evolve(policy, settings={**policy.settings, "moab/qos": own})
    return attrs.evolve(config, node=tuple(NODES), policy=policy, cluster=ClusterTable())


def workload(rng: Random, name: str) -> list[JobSpec]:
    """Return some jobs that meet."""
    at, jobs = 0.0, []
    for number in range(rng.randrange(3, 9)):
        at += rng.choice((0.0, 3.0, 10.0, 40.0))
        nodes = rng.choice((1, 1, 2))
        jobs.append(
            JobSpec(
                id=str(number + 1),
                partitions=(rng.choice(THREE if name in OTHERS else TWO),),
                qos=rng.choice(("low", "high")) if name.startswith("qos") else None,
                submit_at=at,
                run_time=rng.choice((5.0, 30.0, 80.0)),
                time_limit=rng.choice((60.0, 600.0)),
                min_nodes=nodes,
                tasks=rng.choice((None, nodes, 2 * nodes)),
                memory_mb_per_node=rng.choice((100, 400)),
                requeue=rng.choice((None, None, False)),
            )
        )
    return jobs


def run(name: str, seed: int, crashes: int, faults: Faults | None = None) -> CrashingRun:
    """Run one workload, and check all that may never happen."""
    rng = Random(f"{name} {seed}")
    config, policies = built(name)
    jobs = workload(rng, name)
    play = CrashingRun(config, jobs, seed=seed, crashes=crashes, faults=faults, policies=policies)
    check_run(play.run(Checker(name)), jobs)
    return play


class Checker(InvariantChecker):
    """Checks the books after every turn."""

    def __init__(self, name: str) -> None:
        super().__init__(patience=400.0)
        self._shares = name in SHARES

    def __call__(self, engine: Engine) -> None:
        """Check, save where the policy itself lets jobs share cores."""
        try:
            super().__call__(engine)
        except InvariantError as error:
            if not (self._shares and str(error).startswith("rule 1,")):
                raise


def run_all(name: str, many: int, crashes: int = CRASHES, faults: Faults | None = None) -> Counter[str]:
    """Run so many seeds, or the one that the environment names; return what went wrong on purpose."""
    first = int(os.environ.get("MAKEWAY_SEED", 0))
    counts: Counter[str] = Counter()
    for seed in [first] if first else range(many):
        try:
            play = run(name, seed, crashes, faults)
        except Exception as error:
            error.add_note(f"MAKEWAY_SEED={seed}")
            raise
        counts += play.world.counts + play.crashed_at
    return counts


@pytest.mark.parametrize("name", NAMES)
def test_without_faults_nothing_goes_wrong(name: str) -> None:
    """Each job ends, and nothing that may never happen does."""
    assert not run_all(name, 5, 0, NONE)


@pytest.mark.parametrize("name", NAMES)
def test_crashing_runs(name: str) -> None:
    """Each job ends exactly once, none is started twice in an incarnation."""
    counts = run_all(name, math.ceil(CI / len(NAMES)))
    if "MAKEWAY_SEED" not in os.environ:
        assert {"late", "early", "lost", "repeated", "delayed", "refused", "half"} <= counts.keys()


@pytest.mark.parametrize("name", NAMES)
def test_recovery_from_the_journal(name: str, tmp_path: Path) -> None:
    """The daemon's own journal and recovery: each job ends once, none is started twice in an incarnation."""
    config, _ = built(name)
    for seed in range(JOURNALS):
        jobs = workload(Random(f"{name} {seed}"), name)
        path = tmp_path / f"{seed}.db"
        play = CrashingRun(config, jobs, seed=seed, crashes=CRASHES, journal=path, plugins=strangers())
        try:
            play.run()
            check_ends(play, jobs)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_many_crashing_runs(name: str) -> None:
    """The same, for longer."""
    run_all(name, math.ceil(NIGHTLY / len(NAMES)))

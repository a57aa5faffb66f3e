"""A year of a real machine: textbook figures, and preemption with all invariants checked.

The full trace is looked for in ``MAKEWAY_WORKLOADS`` or beside the repository; the first 1,500 jobs are in
``examples/kth``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, Run, replay
from makeway_testing import InvariantChecker, cluster, config, tiers

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("MAKEWAY_WORKLOADS", ROOT.parent / "shared" / "workloads"))
FULL = FOLDER / "KTH-SP2-1996-2.1-cln.swf.gz"
SHIPPED = ROOT / "examples" / "kth" / "kth-sp2-1500.swf.gz"
JOBS = 28_475
BUSY_USERS = ("36", "25", "18", "126")

needs_the_year = pytest.mark.skipif(not FULL.is_file(), reason=f"no trace in {FOLDER}; see MAKEWAY_WORKLOADS")


def machine(**settings: Any) -> Config:
    """Return the hundred single processors of the SP2."""
    return config(cluster(100, cpus=1), settings)


def jobs_of(path: Path, built: Config, limit: int | None = None) -> Iterator[JobSpec]:
    """Read a trace."""
    return open_workload(path, ReadOptions(config=built, limit=limit)).jobs


def year(**settings: Any) -> dict[str, Any]:
    """Return the figures of the whole trace."""
    built = machine(**settings)
    metrics: dict[str, Any] = replay(built, jobs_of(FULL, built)).summary()["metrics"]
    assert metrics["jobs"] == JOBS
    return metrics


# ---------------------------------------------------------------------------- textbook figures
@needs_the_year
@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "enforced", "mean_wait"),
    [
        pytest.param("builtin", True, 353_943, id="FCFS, jobs cut at their request"),
        pytest.param("builtin", False, 389_852, id="FCFS, not cut"),
        pytest.param("easy", True, 6_837, id="EASY, jobs cut at their request"),
        pytest.param("easy", False, 6_848, id="EASY, not cut"),
    ],
)
def test_mean_wait(scheduler: str, enforced: bool, mean_wait: int) -> None:
    """The figures of an independent reading of the textbook rules (workloads/README.md)."""
    metrics = year(scheduler=scheduler, enforce_time_limits=enforced)
    assert round(metrics["mean_wait"]) == mean_wait


@needs_the_year
@pytest.mark.slow
def test_easy_longest_wait_and_slowdown() -> None:
    """EASY, jobs cut at their request."""
    metrics = year(scheduler="easy")
    assert metrics["max_wait"] == 262_194
    assert round(metrics["mean_bounded_slowdown"], 2) == 92.87


@needs_the_year
@pytest.mark.slow
def test_a_year_with_all_invariants() -> None:
    """The checks are cheap enough for 28,475 jobs."""
    built = machine(scheduler="easy")
    checker = InvariantChecker()
    specs = list(jobs_of(FULL, built))
    checker.finish(replay(built, specs, options=Options(after_step=checker)), specs)
    assert checker.excused == []


# ------------------------------------------------------------------------------- two partitions
def preempting(mode: str, path: Path, limit: int, **more: Any) -> tuple[Run, InvariantChecker]:
    """Replay with the busiest users in a higher tier, everything checked."""
    built = machine(
        preempt="preempt/partition_prio",
        preempt_mode=mode,
        partitions={"low": {"default": True}, **tiers(hi=2)},
        scheduler="easy",
        **more,
    )
    checker = InvariantChecker()
    specs = [spec if spec.user not in BUSY_USERS else _in(spec, "hi") for spec in jobs_of(path, built, limit)]
    run = replay(built, specs, options=Options(after_step=checker))
    checker.finish(run, specs)
    return run, checker


def _in(spec: JobSpec, partition: str) -> JobSpec:
    return attrs.evolve(spec, partitions=(partition,))


CASES = pytest.mark.parametrize("mode", ["suspend,gang", "requeue", "cancel"])


def judge(mode: str, run: Run, checker: InvariantChecker) -> None:
    """Say what each mode must have done."""
    metrics = run.recorder.metrics
    states = {history.final_state for history in run.recorder.histories.values()}
    assert checker.excused == []
    assert metrics.preemptions > 50
    assert {entry.mode.value for entry in run.recorder.preemptions} == {mode.split(",")[0]}
    assert (metrics.core_seconds_lost == 0) == (mode == "suspend,gang")
    assert None not in states
    assert ("PREEMPTED" in {state.value for state in states if state}) == (mode == "cancel")


@pytest.mark.slow
@CASES
def test_three_weeks_of_preemption(mode: str) -> None:
    """The 1,500 shipped jobs; victims of linear's suspension keep no deadline."""
    judge(mode, *preempting(mode, SHIPPED, 1500, rules={"linear_suspend_keeps_deadline": False}))


@needs_the_year
@pytest.mark.slow
@CASES
def test_three_thousand_jobs_with_preemption(mode: str) -> None:
    """The same, longer."""
    judge(mode, *preempting(mode, FULL, 3000, rules={"linear_suspend_keeps_deadline": False}))

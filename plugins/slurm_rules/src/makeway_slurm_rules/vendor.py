"""Tell makeway how Slurm behaves: its rules by release, and its clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from makeway.clockwork import Clockwork
from makeway.vendors import Vendor
from makeway_slurm_rules import rules

if TYPE_CHECKING:
    from makeway.config import SchedulerTable

SECTIONS: Mapping[str, str] = {
    "preempt_mode": "slurm-preemption 6.1",
    "oversubscribe": "slurm-preemption 6.3",
    "priority_tier": "slurm-preemption 6.3",
    "grace_time": "slurm-preemption 6.3",
    "preempt": "slurm-preemption 6.4",
    "select_parameters": "slurm-gang-and-select 4.6",
}
"""Last word of a path in the configuration -> rule that says why a single value is wrong."""
_NOT_UNDER_EASY = (
    "forecast_alone_first",
    "forecast_beside_running",
    "forecast_beside_sharers",
    "forecast_counts_suspended",
    "forecast_exclusive_alone",
    "forecast_in_batches",
    "forecast_over_time_in_a_second",
    "linear_forecast_over_time_in_a_second",
    "linear_forecast_tolerates_one",
)
"""Rules about estimates that are not exact: EASY promises the first instant at which a job fits."""


def release_of(scheduler: SchedulerTable) -> str | None:
    """Return the release that ``[scheduler]`` states; None: none."""
    return VENDOR.release_of(scheduler)


def in_force(scheduler: SchedulerTable) -> Mapping[str, bool]:
    """Return rule -> whether it holds under the release that ``[scheduler]`` states."""
    under_easy = dict.fromkeys(_NOT_UNDER_EASY, False) if scheduler.type == "easy" else {}
    return rules.in_force(release_of(scheduler), under_easy)


def of_release(release: str | None) -> Mapping[str, Any]:
    """Return the keys of ``[scheduler]`` that state a release; None: none is stated."""
    return {VENDOR.release_key: release}


DEFAULTS = Clockwork(
    sched_interval=60.0,
    submit_delay=3.0,
    bf_interval=30.0,
    bf_resolution=60.0,
    bf_max_job_test=500,
    bf_max_job_array_resv=20,
    default_queue_depth=100,
    limit_sweep=30.0,
    kill_wait=30.0,
    min_kill_delay=5.0,
    message_timeout=10.0,
    requeue_delay=121.0,
    completing_time=0.0,
    suspend_grace_time=2.0,
    keep_freed=False,
)
"""Slurm's defaults (slurm-preemption 4.12, slurm-gang-and-select 5.5)."""

VENDOR = Vendor(
    name="slurm",
    title="Slurm",
    rules={name: rule.text for name, rule in rules.RULES.items()},
    defects=frozenset(name for name, rule in rules.RULES.items() if rule.defect),
    in_force=in_force,
    changes=rules.changes(),
    own=frozenset({"linear_suspend_frees_memory"}),
    releases=(rules.OLDEST_RELEASE, rules.NEWEST_RELEASE),
    stated=rules.stated,
    clockworks={"slurm": DEFAULTS},
    sections=SECTIONS,
)

"""Say which release of Slurm a configuration states, and which rules say what its values mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from makeway.config import SchedulerTable

NAME = "slurm"
SECTIONS: Mapping[str, str] = {
    "preempt_mode": "slurm-preemption 6.1",
    "oversubscribe": "slurm-preemption 6.3",
    "priority_tier": "slurm-preemption 6.3",
    "grace_time": "slurm-preemption 6.3",
    "preempt": "slurm-preemption 6.4",
    "select_parameters": "slurm-gang-and-select 4.6",
}
"""Last word of a path in the configuration -> rule that says why a single value is wrong."""


def release_of(scheduler: SchedulerTable) -> str | None:
    """Return the release that ``[scheduler]`` states; None: none."""
    return getattr(scheduler, f"{NAME}_release", None)

"""Let nobody preempt anybody: jobs wait for what is free (PreemptType unset, spec slurm-preemption 1.1)."""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.model import Candidates


@hookimpl
def makeway_preempt_candidates() -> Candidates:
    """Name nobody."""
    return Candidates(note="preemption is off (preempt/none)")

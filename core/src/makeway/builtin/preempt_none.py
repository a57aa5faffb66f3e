"""Let no job preempt another: jobs wait for what is free (PreemptType unset, slurm-preemption 1.1)."""

from __future__ import annotations

from makeway.hookspecs import based_on, hookimpl
from makeway.model import Candidates, PreemptBasis


@hookimpl
@based_on(PreemptBasis.NOTHING)
def makeway_preempt_candidates() -> Candidates:
    """Name no job."""
    return Candidates(note="preemption is off (preempt/none)")

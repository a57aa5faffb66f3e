"""Tell TORQUE's sched_config from OpenPBS's: the same ancestor, but a scheduler that never preempts."""

from __future__ import annotations

from collections.abc import Iterable

from makeway_openpbs_sched.grammar import Line

_THEIRS = frozenset(("sort_by", "sort_queues", "strict_fifo"))
"""Options of the common ancestor that OpenPBS has dropped from its file."""
_OURS = frozenset(
    """backfill job_sort_formula_threshold job_sort_key node_sort_key preempt_attempts preempt_order preempt_prio
    preempt_queue_prio preempt_sort preemptive_sched provision_policy resources smp_cluster_dist
    strict_ordering""".split()
)
"""Options that TORQUE's scheduler never had."""


def is_torque(lines: Iterable[Line]) -> bool:
    """Whether a file is for TORQUE's pbs_sched, or the like."""
    names = {line.text.split()[0].partition(":")[0] for line in lines}
    return not names.isdisjoint(_THEIRS) and names.isdisjoint(_OURS)


def sentence(file: str) -> str:
    """Say what such a file is good for here."""
    return (
        f"{file} is TORQUE's, whose pbs_sched never preempts: by_queue, round_robin and help_starving_jobs are "
        "read as OpenPBS means them, its other options and its queues are not"
    )

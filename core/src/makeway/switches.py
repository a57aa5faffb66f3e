"""Name the switches of the engine: where schedulers, or releases of one, differ in what they do.

`SWITCHES` are the engine's own, with the values that hold where nothing says otherwise. A `makeway.vendors.Vendor`
adds rules of its scheduler and says, by release, which of all of them are in force; ``[scheduler.rules]`` has the
last word.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Switch:
    """One of two ways of doing something."""

    text: str
    """What happens while it is on."""
    default: bool
    defect: bool = False
    """Whether it is a fault of some scheduler, followed where that scheduler is modelled; never on in a real world."""


SWITCHES: Mapping[str, Switch] = {
    "requeue_keeps_priority": Switch(
        "a requeued job keeps its priority, hence its place in the queue", default=False
    ),
    "grace_exit_is_preemption": Switch(
        "a job that ends by itself during its grace time counts as preempted", default=True
    ),
    "grace_mark_survives_requeue": Switch(
        "a requeued job whose grace time ran out is requeued once more when it ends",
        default=False,
        defect=True,
    ),
    "builtin_raw_order": Switch(
        "the scheduler builtin with one tier walks the jobs in order of submission, unsorted", default=False
    ),
    "raw_order_goes_on_with_partitions": Switch(
        "unsorted, a job that waits is tried in the partitions left by one before it that has started",
        default=False,
        defect=True,
    ),
    "last_alternative_preempts": Switch("only the last feature alternative may preempt", default=True),
    "het_blocks_pass": Switch(
        "a pending heterogeneous job whose partition is closed ends the main pass", default=True
    ),
    "het_planned_together": Switch(
        "backfill keeps nodes for the components of a heterogeneous job from when the last of them could start",
        default=True,
    ),
    "het_starts_in_turn": Switch(
        "backfill starts the components of a heterogeneous job one by one, and takes them back if one cannot start",
        default=True,
    ),
    "backfill_skips_unlicensed": Switch(
        "backfill keeps no nodes for a job whose licences are not there", default=True
    ),
    "het_needs_licence_for_plan": Switch(
        "backfill keeps no nodes for a component of a heterogeneous job that lacks a licence", default=True
    ),
    "het_starts_without_licences": Switch(
        "backfill starts components of a heterogeneous job that lack licences only together",
        default=True,
        defect=True,
    ),
    "het_starts_last": Switch(
        "backfill starts heterogeneous jobs after all others of a pass, and not only on nodes that it keeps for them",
        default=True,
    ),
    "reservation_first": Switch(
        "jobs that ask for a reservation stand before all others in the queue", default=False
    ),
    "resume_runs_beside": Switch(
        "a job resumed by a person runs beside the holder of its cores until its turn",
        default=True,
        defect=True,
    ),
    "gang_skips_grace": Switch(
        "an arbiter kills and requeues without grace time or notice", default=True, defect=True
    ),
    "linear_suspend_keeps_deadline": Switch(
        "a victim that the arbiter stops keeps its deadline and is killed at it", default=True, defect=True
    ),
}

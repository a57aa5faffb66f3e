"""List the limits of an association: Grp limits of each level, Max limits of the user's own (6.1 no. 3)."""

from __future__ import annotations

import math

from makeway_slurm.accounts.tree import Association
from makeway_slurm.limits.kinds import Kind, Rule
from makeway_slurm.limits.qos_limits import Listed
from makeway_slurm.limits.reasons import of_group, of_group_minutes, of_group_run_minutes, of_most


def of_association(node: Association, *, own: bool, factor: float) -> Listed:
    """Yield the limits of an association.

    :param own: whether it is the user's own; else one above it.
    :param factor: LimitFactor of the job's QOS: multiplies what may be held (6.1 no. 7).
    """
    limits, whose = node.limits, node.index

    def one(hides: str, stage: int, kind: Kind, key: str, most: int | None, reason: str) -> Listed:
        if most is not None:
            yield hides, stage, Rule(kind, key, whose, "", most, reason)

    def scaled(most: int) -> int:
        return math.floor(most * factor) if factor != 1.0 else most

    yield from one("GrpJobs", 0, Kind.JOBS, "assoc", limits.grp_jobs, "AssocGrpJobsLimit")
    yield from one("GrpWall", 0, Kind.USED_WALL, "assoc", limits.grp_wall, "AssocGrpWallLimit")
    if own:
        yield from one("MaxJobs", 0, Kind.JOBS, "assoc", limits.max_jobs, "AssocMaxJobsLimit")
        yield from one("MaxWall", 0, Kind.WALL, "", limits.max_wall, "AssocMaxWallDurationPerJobLimit")
    for name, most in limits.grp_tres_mins.items():
        rule = Rule(Kind.USED_MINUTES, "assoc", whose, name, most, f"Assoc{of_group_minutes(name)}")
        yield f"GrpTRESMins[{name}]", 1, rule
    for name, most in limits.grp_tres.items():
        rule = Rule(Kind.TRES, "assoc", whose, name, scaled(most), f"Assoc{of_group(name)}")
        yield f"GrpTRES[{name}]", 1, rule
    for name, most in limits.grp_tres_run_mins.items():
        rule = Rule(Kind.RUN_MINUTES, "assoc", whose, name, most, f"Assoc{of_group_run_minutes(name)}")
        yield f"GrpTRESRunMins[{name}]", 1, rule
    if own:
        for name, most in limits.max_tres_mins.items():
            text = f"Assoc{of_most(name, 'MinutesPerJob')}"
            yield f"MaxTRESMins[{name}]", 1, Rule(Kind.JOB_MINUTES, "", whose, name, most, text)
        for name, most in limits.max_tres.items():
            text = f"Assoc{of_most(name, 'PerJob')}"
            yield f"MaxTRES[{name}]", 1, Rule(Kind.JOB_TRES, "", whose, name, scaled(most), text)
        for name, most in limits.max_tres_per_node.items():
            text = f"Assoc{of_most(name, 'PerNode')}"
            yield f"MaxTRESPerNode[{name}]", 1, Rule(Kind.NODE_TRES, "", whose, name, most, text)
        yield from one("MaxSubmit", 2, Kind.PRESENT, "assoc", limits.max_submit, "AssocMaxSubmitJobLimit")
    yield from one("GrpSubmit", 2, Kind.PRESENT, "assoc", limits.grp_submit, "AssocGrpSubmitJobsLimit")

"""List the limits of a QOS, each with what it hides elsewhere (slurm-priority-and-limits 6.1, 6.3 no. 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from makeway.model import Cluster, Qos
from makeway_slurm.accounts.limits import Limits, Tres, parse_limits, relative
from makeway_slurm.accounts.tres import of_cluster, totals
from makeway_slurm.limits.kinds import Kind, Rule
from makeway_slurm.limits.reasons import (
    of_group,
    of_group_minutes,
    of_group_run_minutes,
    of_least,
    of_most,
    of_run_minutes_each,
)

Listed = Iterator[tuple[str, int, Rule]]
"""What hides it, its stage, and the limit."""
_USAGE_THRESHOLD = ("usagethreshold", "usagethres")


def limits_of(qos: Qos, cluster: Cluster) -> Limits:
    """Return the limits of a QOS in numbers; with the flag Relative they are percentages (6.1 no. 9)."""
    limits = parse_limits(qos.attributes)
    if "relative" not in {flag.lower() for flag in qos.flags}:
        return limits
    partition = next((each for each in cluster.partitions if each.qos == qos.name), None)
    there = totals(partition, cluster) if partition is not None else of_cluster(cluster)
    return relative(limits, there)


def threshold(qos: Qos) -> Listed:
    """Yield the fair share that a job needs, where the QOS enforces its UsageThreshold (6.3 no. 4)."""
    value = next((each for key, each in qos.attributes.items() if key.lower() in _USAGE_THRESHOLD), None)
    if "EnforceUsageThreshold" in qos.flags and value not in (None, ""):
        least = float(str(value))
        yield "UsageThreshold", 0, Rule(Kind.LEAST_FACTOR, "", qos.name, "", 0, "QOSUsageThreshold", least)


def of_qos(qos: str, limits: Limits) -> Listed:
    """Yield the limits of a QOS by name."""

    def one(hides: str, stage: int, kind: Kind, key: str, most: int | None, reason: str) -> Listed:
        if most is not None:
            yield hides, stage, Rule(kind, key, qos, "", most, reason)

    def each(hides: str, kind: Kind, key: str, counts: Tres, reason: Callable[[str], str]) -> Listed:
        for name, most in counts.items():
            yield f"{hides}[{name}]", 1, Rule(kind, key, qos, name, most, reason(name))

    def group(end: Callable[[str], str]) -> Callable[[str], str]:
        return lambda name: f"QOS{end(name)}"

    def most_of(what: str, whose: str = "QOS") -> Callable[[str], str]:
        return lambda name: whose + of_most(name, what)

    def run(what: str) -> Callable[[str], str]:
        return lambda name: of_run_minutes_each(name, what)

    yield from one("GrpJobs", 0, Kind.JOBS, "qos", limits.grp_jobs, "QOSGrpJobsLimit")
    yield from one("GrpWall", 0, Kind.USED_WALL, "qos", limits.grp_wall, "QOSGrpWallLimit")
    yield from one("MaxJobsPA", 0, Kind.JOBS, "pa", limits.max_jobs_pa, "MaxJobsPerAccount")
    yield from one("MaxJobsPU", 0, Kind.JOBS, "pu", limits.max_jobs_pu, "QOSMaxJobsPerUserLimit")
    yield from one("MaxWall", 0, Kind.WALL, "", limits.max_wall, "QOSMaxWallDurationPerJobLimit")
    yield from each("GrpTRESMins", Kind.USED_MINUTES, "qos", limits.grp_tres_mins, group(of_group_minutes))
    yield from each("GrpTRES", Kind.TRES, "qos", limits.grp_tres, group(of_group))
    yield from each(
        "GrpTRESRunMins", Kind.RUN_MINUTES, "qos", limits.grp_tres_run_mins, group(of_group_run_minutes)
    )
    yield from each(
        "MaxTRESRunMinsPA", Kind.RUN_MINUTES, "pa", limits.max_tres_run_mins_pa, run("PerAccount")
    )
    yield from each("MaxTRESRunMinsPU", Kind.RUN_MINUTES, "pu", limits.max_tres_run_mins_pu, run("PerUser"))
    yield from each("MaxTRESMins", Kind.JOB_MINUTES, "", limits.max_tres_mins, most_of("MinutesPerJob"))
    yield from each("MaxTRES", Kind.JOB_TRES, "", limits.max_tres, most_of("PerJob"))
    yield from each("MaxTRESPerNode", Kind.NODE_TRES, "", limits.max_tres_per_node, most_of("PerNode"))
    yield from each("MinTRES", Kind.LEAST_TRES, "", limits.min_tres, of_least)
    yield from each("MaxTRESPA", Kind.TRES, "pa", limits.max_tres_pa, most_of("PerAccount", ""))
    yield from each("MaxTRESPU", Kind.TRES, "pu", limits.max_tres_pu, most_of("PerUser"))
    yield from one("GrpSubmit", 2, Kind.PRESENT, "qos", limits.grp_submit, "QOSGrpSubmitJobsLimit")
    yield from one("MaxSubmitPA", 2, Kind.PRESENT, "pa", limits.max_submit_pa, "MaxSubmitJobsPerAccount")
    yield from one("MaxSubmitPU", 2, Kind.PRESENT, "pu", limits.max_submit_pu, "QOSMaxSubmitJobPerUserLimit")

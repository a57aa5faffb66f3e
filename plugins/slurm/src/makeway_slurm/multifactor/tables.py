"""Show priorities as ``sprio -l`` does, and shares as ``sshare -a -l`` (slurm-priority-and-limits 1.4, 3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs

from makeway.model import ClusterView, Job, JobState, Listing, Seconds
from makeway_slurm.accounts.tree import Association
from makeway_slurm.accounts.tres import ALWAYS
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.multifactor.factors import total
from makeway_slurm.multifactor.fair_tree import Share
from makeway_slurm.multifactor.prioritizer import Multifactor

_NONE = "priority/multifactor is not in use"


@attrs.frozen(kw_only=True)
class PriorityRow:
    """One row of sprio: the weighted factors of a job in one of its partitions."""

    job: str
    partition: str
    user: str
    priority: int
    site: int = 0
    age: float = 0.0
    assoc: float = 0.0
    fairshare: float = 0.0
    jobsize: float = 0.0
    partition_factor: float = 0.0
    qos: float = 0.0
    nice: int = 0
    tres: Mapping[str, float] = attrs.field(factory=dict)

    def cells(self) -> tuple[str, ...]:
        """Return what sprio prints: factors rounded, half to even."""
        factors = (self.age, self.assoc, self.fairshare, self.jobsize, self.partition_factor, self.qos)
        tres = ",".join(f"{name}={value:.0f}" for name, value in self.tres.items())
        return (
            *(self.job, self.partition, self.user, str(self.priority), str(self.site)),
            *(f"{each:.0f}" for each in factors),
            *(str(self.nice), tres),
        )


SPRIO_HEADINGS = (
    *("JOBID", "PARTITION", "USER", "PRIORITY", "SITE", "AGE", "ASSOC", "FAIRSHARE", "JOBSIZE"),
    *("PARTITION_", "QOS", "NICE", "TRES"),
)


_THROTTLED = "JobArrayTaskLimit"


def multifactor_of(view: ClusterView) -> Multifactor | None:
    """Return what computes the priorities of a run; None: something else does."""
    found = view.book(UsageBook).reader
    return found if isinstance(found, Multifactor) else None


def priority_rows(view: ClusterView) -> list[PriorityRow]:
    """Return the rows of sprio as of the last computation: jobs that wait, are not held and could start.

    A task that waits for others of its array has no row (recorded: part_impossible_and_barred). With CALCULATE_RUNNING
    those that run have one as well (recorded: preempt_within_calculate_running). With ACCRUE_ALWAYS those do that could
    not start yet.
    """
    multifactor = multifactor_of(view)
    if multifactor is None:
        return []
    listed: Iterable[Job] = view.pending
    if multifactor.settings.has("CALCULATE_RUNNING"):
        running = [job for job in view.active if job.state is JobState.RUNNING]
        listed = sorted([*view.pending, *running], key=lambda job: job.index)
    found: list[PriorityRow] = []
    always = multifactor.settings.has("ACCRUE_ALWAYS")
    for job in listed:
        if job.reason == _THROTTLED and job.state is JobState.PENDING:
            continue
        if job.priority and (always or job.eligible_since is not None):
            found += _rows_of(job, multifactor)
    return found


def rows_of(job: Job, view: ClusterView) -> list[PriorityRow]:
    """Return the rows of one job that waits, one for each partition; none where something else gives priorities."""
    multifactor = multifactor_of(view)
    return list(_rows_of(job, multifactor)) if multifactor is not None else []


def _rows_of(job: Job, multifactor: Multifactor) -> Iterable[PriorityRow]:
    known = multifactor.known(job)
    by_hand = known is None or (len(known.values) == 1 and job.priority not in known.values.values())
    for partition in job.partitions:
        if known is None or by_hand or partition.name not in known.fixed:
            yield PriorityRow(job=job.id, partition=partition.name, user=job.user, priority=job.priority)
            if by_hand:
                return
            continue
        fixed = known.fixed[partition.name]
        yield PriorityRow(
            job=job.id,
            partition=partition.name,
            user=job.user,
            priority=total(
                known.age, fixed, known.fairshare
            ),  # with INCR_ONLY a job may have kept a higher one
            site=fixed.site,
            age=known.age,
            assoc=fixed.assoc,
            fairshare=known.fairshare,
            jobsize=fixed.size,
            partition_factor=fixed.partition,
            qos=fixed.qos,
            nice=fixed.nice,
            tres=fixed.tres,
        )


def show_priorities(view: ClusterView, now: Seconds) -> Sequence[Listing]:
    """Return what ``sprio -l`` prints."""
    del now
    headings = tuple(heading.rstrip("_") for heading in SPRIO_HEADINGS)
    if multifactor_of(view) is None:
        return [Listing(headings=headings, rows=(), footer=_NONE)]
    rows = tuple(row.cells() for row in priority_rows(view))
    return [Listing(headings=headings, rows=rows, right=frozenset(headings[:-1]), gap=1)]


SSHARE_HEADINGS = (
    *("Account", "User", "Partition", "RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage"),
    *("FairShare", "LevelFS", "GrpTRESMins", "TRESRunMins"),
)


def share_rows(view: ClusterView, now: Seconds) -> list[tuple[str, ...]]:
    """Return the rows of ``sshare -a -l -m``: usage with all jobs that have ended, shares of the last recalculation."""
    multifactor = multifactor_of(view)
    if multifactor is None or multifactor.book.tree is None:
        return []
    multifactor.book.advance(now)
    tree, shares = multifactor.book.tree, multifactor.shares()
    found: list[tuple[str, ...]] = []

    def add(node: Association, depth: int) -> None:
        found.append(_share_row(node, depth, multifactor, shares[node.index]))
        for child in sorted(node.children, key=lambda each: not each.user):
            if not child.spare:
                add(child, depth + 1)

    add(tree.root, 0)
    return found


def _share_row(node: Association, depth: int, multifactor: Multifactor, share: Share) -> tuple[str, ...]:
    entry = multifactor.book.associations[node.index]
    root = node.parent is None
    shares = "parent" if node.by_parent else str(node.shares)
    if multifactor.is_tree:
        norm = "0.000000" if root else f"{multifactor.whole_share(node):.6f}"
        factor = "" if share.factor is None else f"{share.factor:.6f}"
        level = "" if share.level_fs is None else _level(share.level_fs)
    else:
        norm = f"{multifactor.whole_share(node):.6f}"
        factor = f"{share.factor:.6f}" if share.factor is not None else ""
        level = ""
    limits = ",".join(f"{name}={count}" for name, count in node.limits.grp_tres_mins.items())
    run = ",".join(f"{name}={int(entry.may_use(name) // 60)}" for name in ALWAYS)
    return (
        *(" " * depth + node.account, node.user, node.partition, "" if root else shares, norm),
        *(str(int(entry.used())), "" if root else f"{share.norm_usage:.6f}", f"{share.used:.6f}"),
        *(factor, level, limits, run),
    )


def _level(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.6f}"


def show_shares(view: ClusterView, now: Seconds) -> Sequence[Listing]:
    """Return what ``sshare -a -l -m`` prints."""
    rows = tuple(share_rows(view, now))
    footer = (
        "" if rows else (_NONE if multifactor_of(view) is None else "no accounts are known (--accounting)")
    )
    right = frozenset(SSHARE_HEADINGS[3:10])
    return [Listing(headings=SSHARE_HEADINGS, rows=rows, right=right, gap=1, footer=footer)]

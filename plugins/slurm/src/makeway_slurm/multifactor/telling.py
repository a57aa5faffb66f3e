"""Say why a job has the priority that it has, what stands in front of it, and what is odd about a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.config import Config
from makeway.errors import Finding
from makeway.model import Check, Cluster, ClusterView, Job
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.tree import WHERE, tree_of
from makeway_slurm.multifactor.tables import PriorityRow, rows_of

_SHOWN = 3
_PATH = 'policy.settings."priority/multifactor"'


def checks(job: Job, view: ClusterView) -> list[Check]:
    """Return the factors of a job that waits, and those of the jobs in front of it."""
    mine = rows_of(job, view)
    if not mine:
        return []
    row = next((each for each in mine if each.partition == job.partition.name), mine[0])
    first = Check(code="PF1", verdict="pass", question="what makes up its priority?", found=_sum(row))
    front = _in_front(job, row.priority, view)
    listed = "; ".join(f"job {each.job} of {each.user}: {_sum(each)}" for each in front[:_SHOWN])
    more = f"; and {len(front) - _SHOWN:,} more" if len(front) > _SHOWN else ""
    return [
        first,
        Check(
            code="PF2",
            verdict="fail" if front else "pass",
            question="does any job stand in front of it?",
            found=f"{listed}{more}" if front else "none",
        ),
    ]


def _in_front(job: Job, priority: int, view: ClusterView) -> list[PriorityRow]:
    """Return the rows of jobs that are tried before it in its partition, the first one first."""
    tier = job.partition.priority_tier
    found: list[tuple[tuple[int, int, float, int], PriorityRow]] = []
    for other in view.pending:
        if other is job or not other.priority or other.eligible_since is None:
            continue
        for row, partition in zip(rows_of(other, view), other.partitions, strict=False):
            key = (-partition.priority_tier, -row.priority, other.submit_at, other.index)
            if partition.nodes & job.partition.nodes and key < (-tier, -priority, job.submit_at, job.index):
                found.append((key, row))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def _sum(row: PriorityRow) -> str:
    """Return a priority with what it is made of: ``7503 = age 5300 + partition 2000 + ...``."""
    parts = {
        "age": row.age,
        "association": row.assoc,
        "fair share": row.fairshare,
        "size": row.jobsize,
        "partition": row.partition_factor,
        "QOS": row.qos,
        **row.tres,
        "site": float(row.site),
        "nice": -float(row.nice),
    }
    told = " + ".join(f"{name} {value:.0f}" for name, value in parts.items() if round(value))
    return f"{row.priority} = {told}" if told else f"{row.priority}"


def findings(config: Config, cluster: Cluster, settings: Settings) -> Iterator[Finding]:
    """Yield what is odd about priorities in a configuration."""
    tree = tree_of(cluster)
    weight = settings.weight_fairshare
    if weight and tree is None:
        text = f"fair share weighs {weight}, and no accounts are known, so that it is 0 for everybody (--accounting)"
        yield Finding(level="warning", where=f"{_PATH}.weight_fairshare", message=text)
    if weight and tree is not None and settings.has("NO_FAIR_TREE") is False and weight < 2 * len(tree.users):
        text = f"{weight} for {len(tree.users):,} users: neighbours in rank differ by less than 2"
        yield Finding(level="note", where=f"{_PATH}.weight_fairshare", message=text)
    yield from _of_preemption(config, settings)
    if tree is not None and config.policy.preempt != "preempt/none":
        capped = [
            node.name for node in tree.nodes if node.limits.grp_tres or node.limits.grp_jobs is not None
        ]
        if capped:
            names = ", ".join(capped[:_SHOWN]) + (", ..." if len(capped) > _SHOWN else "")
            text = f"{names}: a job that such a limit holds back preempts none, even if its own victims would lift it"
            yield Finding(level="note", where=WHERE, message=text)


def _of_preemption(config: Config, settings: Settings) -> Iterator[Finding]:
    """Say that waiting jobs overtake running ones where priorities decide which job preempts which (11.3)."""
    modes = [
        config.policy.preempt_mode,
        *(table.preempt_mode or () for table in config.partition),
        *(table.preempt_mode or () for table in config.qos),
    ]
    words = {word for mode in modes for word in mode} & {"within", "priority"}
    grows = settings.weight_age or settings.weight_fairshare
    if words and grows and not settings.has("CALCULATE_RUNNING"):
        text = (
            f"priorities of waiting jobs change at recalculations while those of running ones are frozen: with "
            f"{' and '.join(sorted(words))} jobs preempt as they age; CALCULATE_RUNNING prevents that"
        )
        yield Finding(level="warning", where="policy.preempt_mode", message=text)

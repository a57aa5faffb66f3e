"""Cap the nodes of a job before any are chosen: GrpTRES=node, MaxTRES=node and the like (6.2)."""

from __future__ import annotations

from makeway.model import Job
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.limits.kinds import AS_MAXIMUM, Rule
from makeway_slurm.limits.rulebook import Rules


def caps_nodes(rule: Rule, wanted: float) -> bool:
    """Whether a limit keeps a job out that wants so many nodes, whatever others hold."""
    return rule.name == NODE and rule.kind in AS_MAXIMUM and wanted > rule.most


def most_nodes(job: Job) -> int:
    """Return how many nodes a job may get: as many as it has tasks, if it does not say how many it takes at most."""
    spec = job.spec
    most = spec.tasks if spec.tasks is not None else job.size
    if spec.max_nodes is not None and spec.max_nodes < most:
        most = spec.max_nodes
    return most if most > job.size else job.size


def node_cap(rules: Rules) -> int | None:
    """Return to how many nodes limits cap a job; None: to no number."""
    most = [rule.most for rule in rules.after if rule.name == NODE and rule.kind in AS_MAXIMUM]
    return min(most, default=None)

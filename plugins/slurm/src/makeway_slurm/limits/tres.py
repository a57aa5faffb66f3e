"""Hold jobs against limits on the TRES that several of them hold: GrpTRES, MaxTRESPU, MaxTRESPA (6.2)."""

from __future__ import annotations

import attrs

from makeway.model import Blocked, ClusterView, Job
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.limits.answers import full
from makeway_slurm.limits.asked import Listed
from makeway_slurm.limits.lifting import Lifting
from makeway_slurm.limits.node_cap import most_nodes


def held(listed: Listed, job: Job, wanted: int, view: ClusterView, lifting: Lifting) -> Blocked | None:
    """Hold a job against such a limit; a node counts once, however many jobs are on it."""
    rule, key, count = listed.rule, listed.key, listed.holds
    have = count.used(rule.name)
    if rule.name != NODE and have + wanted > rule.most:
        have -= sum(counts.get(rule.name, 0) for counts in lifting.gone(key, view))
    if rule.name == NODE and job.required and job.required.bit_count() >= job.size:
        wanted = (job.required & ~count.nodes).bit_count()
    first = view.rule("nodes_before_node_limits")
    if not wanted or have + wanted <= rule.most:
        if rule.name != NODE or job.required or have + most_nodes(job) <= rule.most:
            return None
        # It may get more nodes than it needs at least: once they are chosen, they have to keep to the limit.
        soft = attrs.evolve(full(rule, wanted, have), at_submission=False, nodes_first=first)
        return attrs.evolve(soft, counted=((count.nodes, rule.most - have),))
    blocked = full(rule, wanted, have)
    if rule.name == NODE and not job.required and have <= rule.most and job.size <= rule.most:
        first = first and most_nodes(job) <= rule.most
        return attrs.evolve(blocked, counted=((count.nodes, rule.most - have),), nodes_first=first)
    return lifting.lifted(blocked, rule, key) if rule.name != NODE and wanted <= rule.most else blocked

"""Say what one job holds, in the terms of `makeway.model.ClusterView.usage`."""

from __future__ import annotations

from makeway.model import NOTHING, Cluster, Job, Usage


def used_by(job: Job, cluster: Cluster) -> Usage:
    """Return what an active job holds: what it adds to the usage of its user, account, group, partition and QOS.

    :param cluster: ``view.cluster``; says how many CPUs a whole node has.
    """
    held = job.allocation
    if held is None:
        return Usage(jobs=1)
    cpus = (
        sum(held.cpus) if held.cpus is not None else sum(cluster.nodes[at].cpus for at in held.node_indices)
    )
    return Usage(
        jobs=1,
        cpus=cpus,
        nodes=len(held.node_indices),
        memory_mb=sum(held.memory_mb) if held.memory_mb is not None else 0,
        gres={name: sum(each) for name, each in held.gres.items()} if held.gres else NOTHING,
        licenses=held.licenses,
    )

"""Place jobs on the hosts that come first: by preference of their queue, then by order[...] of RES_REQ (lsf 9.3)."""

from __future__ import annotations

import itertools
import operator

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, NodeSets
from makeway_lsf_queue.asking import KEY
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.survey import survey_of


def is_ordered(job: Job) -> bool:
    """Whether its queue prefers hosts, or it or its queue says an order."""
    said = job.partition.attributes
    if "+" in str(said.get("HOSTS", "")):
        return True
    return "order" in str(said.get("RES_REQ", "")) or "order" in str(job.spec.attributes.get(KEY, ""))


def node_sets(job: Job, nodes: NodeBits, view: ClusterView) -> NodeSets | None:
    """Return the first hosts, then more and more of them until all; None: none comes before another.

    Of hosts in an order there are at first as many as have slots enough for the job, running jobs alone counted.
    """
    site = site_of(view)
    preferred, order = site.queue_of(job).preferred, site.order_of(job)
    if not order:
        more = itertools.accumulate(preferred, operator.or_)
        return NodeSets(sets=(*(nodes & bits for bits in more), nodes)) if preferred else None
    survey = survey_of(site, view)
    sets, first, room = [], 0, 0
    for index in survey.sorted_hosts(nodes, preferred, order):
        first |= 1 << index
        room += survey.used.nodes[index].cpus - survey.used.running(index)
        if room >= job.spec.cpus:
            sets.append(first)
    return NodeSets(sets=tuple(sets) if sets else (nodes,))

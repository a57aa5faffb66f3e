"""Keep the trees of queues and cohorts with what is used in them (kueue 1.4, 1.9)."""

from __future__ import annotations

from makeway_kueue_cohort.site import Amounts, Cohort, Site
from makeway_kueue_cohort.tree import NO_SHARE, Node, Share, common_ancestor, fits, root_of


class Books:
    """All trees of a site, and what is used in them. It is changed in place, and what is changed is put back."""

    def __init__(self, site: Site) -> None:
        """Build the trees; nothing is used yet."""
        self.site = site
        cohorts = {each.name: Node(each) for each in site.cohorts}
        for queue in site.queues:
            if queue.cohort is not None and queue.cohort not in cohorts:
                cohorts[queue.cohort] = Node(Cohort(name=queue.cohort))
        for each in site.cohorts:
            if each.parent is not None and each.parent not in cohorts:
                cohorts[each.parent] = Node(Cohort(name=each.parent))
        for each in site.cohorts:
            if each.parent is not None:
                _hang(cohorts[each.name], cohorts[each.parent])
        self.queues: dict[str, Node] = {}
        for queue in site.queues:
            node = self.queues[queue.name] = Node(queue)
            if queue.cohort is not None:
                _hang(node, cohorts[queue.cohort])
        self.cohorts = cohorts
        for node in [*cohorts.values(), *self.queues.values()]:
            if node.parent is None:
                node.settle()

    def add(self, queue: Node, uses: Amounts) -> None:
        """Count what a workload uses."""
        for pair, amount in uses.items():
            queue.change(pair, amount)

    def take(self, queue: Node, uses: Amounts) -> None:
        """Count it no longer."""
        for pair, amount in uses.items():
            queue.change(pair, -amount)


def _hang(child: Node, parent: Node) -> None:
    child.parent = parent
    (parent.queues if child.queue is not None else parent.cohorts).append(child)


__all__ = ["NO_SHARE", "Books", "Node", "Share", "common_ancestor", "fits", "root_of"]

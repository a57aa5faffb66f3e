"""Say what one attempt is about: the job, where it may go, and the nodes as they are."""

from __future__ import annotations

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job
from makeway_select_linear.nodes import LinearNodes
from makeway_select_linear.request import Request


class Asked:
    """One job, to be placed against the books."""

    __slots__ = ("job", "most", "nodes", "request", "selector", "view")

    selector: LinearNodes
    job: Job
    nodes: NodeBits
    view: ClusterView
    request: Request
    most: int
    """How many jobs may run on a node beside this one, if all of them share."""

"""Place tasks on nodes that jobs share, as Moab and Maui do (``moab/tasks``; moab 1 and 10).

A job is so many tasks of so many processors; a task sits whole on one node, and nodes are filled in the
order of NODEALLOCATIONPOLICY. Jobs share nodes unless NODEACCESSPOLICY says otherwise, but never a core.
Suspension frees processors and keeps memory (5.1); Maui's books give the memory away as well (section 17).
What waiting jobs of higher rank were promised is left to them processor by processor (7.2).

========= ===============================================================
module    what it owns
========= ===============================================================
request   what a job asks of a node
books     free cores and memory per node
attempt   one job against the books, as if some jobs were gone
promises  which processors are kept for jobs that wait in front, and when
nodes     which nodes could serve a job, in which order, and who is on them
selector  the whole; forecasts
========= ===============================================================
"""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.model import ClusterView, Selector
from makeway_moab_qos.tasks.selector import TaskSelector

__makeway_vendor__ = "moab"


@hookimpl
def makeway_selector(view: ClusterView) -> Selector:
    """Build the selector of tasks."""
    return TaskSelector(view)

"""Place jobs on whole nodes, as Slurm's ``select/linear`` does.

Placement takes idle nodes first and the tightest block of consecutive nodes; jobs share a node only as their
partition's OverSubscribe says. When nothing fits, candidates are removed in a simulation, in two passes, and those
that turn out to be needed are the victims. slurm-preemption 5.1, slurm-gang-and-select 4.1 and 4.2.

========== ===============================================================
module     what it owns
========== ===============================================================
books      which job is on which node (4.2.1), memory (4.2.5 end, 4.2.6)
request    what a job asks of a node, and whether it shares (4.1)
best_fit   which of the usable nodes are taken (4.2.5)
nodes      node sets, and what makes a node usable (4.1.4, 4.2.2)
asked      what one attempt is about
attempt    one job placed: load levels, job mate (4.2.3, 4.2.4)
thought    the books without some jobs (slurm-preemption 5.1.3 no. 1)
counting   the same where only the number of jobs per node counts
forecast   when a job could start (4.2.9)
cover      a blocked attempt as a count of nodes, for exact searches
search     the two passes over the candidates (slurm-preemption 5.1.3)
selector   the whole
========== ===============================================================
"""

from __future__ import annotations

from makeway.hookspecs import hookimpl, of_selector
from makeway.licences import LicenceLimits
from makeway.model import Attempt, Candidates, Choice, ClusterView, Limits, Selector
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.search import two_passes
from makeway_select_linear.selector import LinearSelector

__makeway_vendor__ = "slurm"


@hookimpl
def makeway_selector(view: ClusterView) -> Selector:
    """Build the selector of whole nodes."""
    return LinearSelector(view)


@hookimpl
def makeway_limits() -> Limits:
    """Keep out jobs whose licences are not there (slurm-preemption 1.11)."""
    return LicenceLimits()


@hookimpl
@of_selector
def makeway_search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | None:
    """Search as select/linear does, if it was this selector that began the attempt."""
    del view
    if not isinstance(attempt, LinearAttempt):
        return None
    return two_passes(attempt, candidates)

"""Give jobs cores and memory, as Slurm's ``select/cons_tres`` does.

A job takes idle cores first, packed on the tightest block of nodes; where its partition, a lower tier or the
gang scheduler allow, it is laid over cores in use, in a row of its partition. When nothing fits, candidates
are removed one by one in a simulation, in up to three rounds. Those that turn out to be needed are the victims.
slurm-gang-and-select 4.1 and 4.3, slurm-preemption 5.2.

========== ======================================================================
module     what it owns
========== ======================================================================
parameters what SelectTypeParameters mean (4.6)
request    what a job asks for, which jobs it shares with (4.1)
cpus       how many CPUs of a node a job can use (4.3.6, 4.3.8)
rows       which jobs share a core over time (4.3.1, 4.3.5)
layout     what does not change of the nodes
table      what each node has left, kept up to date
books      what jobs hold (4.3.1, 4.3.10)
kinds      what jobs with the same request have in common
fitting    which nodes have what each of them wants of a node
idle       the first node with enough idle cores and memory, and what no node has
absent     books without jobs that searches take out, kept in step
remaining  what would be left if all that may be displaced were gone
one_node   the shorter way for jobs of one node (4.3.6)
choose     which nodes are taken, and how many CPUs of each (4.3.6)
cores      which cores of a node (4.3.8)
assign     tasks, cores, memory and counted resources on the chosen nodes
steps      the tests of one hypothetical state (4.3.2 to 4.3.5)
known      the kinds met so far, what could never run, what no job may be laid over
attempt    one job, as if others were gone
selector   notices, a glance at many jobs
lifting    limits that make way as candidates are removed (licences, slurm-preemption 1.11)
forecast   when a job could start (4.3.11)
search     the rounds over the candidates, the extra row of preempt/qos (slurm-preemption 5.2.3, 5.2.5)
========== ======================================================================
"""

from __future__ import annotations

from makeway.hookspecs import hookimpl, of_selector
from makeway.licences import LicenceLimits
from makeway.model import Attempt, Blocked, Candidates, Choice, ClusterView, Limits, Selector
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.search import search, why_none
from makeway_select_cons_tres.selector import ConsSelector

__makeway_vendor__ = "slurm"


@hookimpl
def makeway_selector(view: ClusterView) -> Selector:
    """Build the selector of cores."""
    return ConsSelector(view)


@hookimpl
def makeway_limits() -> Limits:
    """Keep out jobs whose licences are not there (slurm-preemption 1.11)."""
    return LicenceLimits()


@hookimpl
@of_selector
def makeway_search(attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | Blocked | None:
    """Search as select/cons_tres does, if it was this selector that began the attempt."""
    del view
    if not isinstance(attempt, ConsAttempt):
        return None
    return search(attempt, candidates) or Blocked(detail=why_none(attempt, candidates))

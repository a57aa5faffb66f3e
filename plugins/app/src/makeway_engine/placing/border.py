"""Check the placements that plugins find, before anything is done about them.

Each function returns what is wrong in words that follow the plugin's name; empty: nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Allocation, Job, JobState, Placement, Sharing
from makeway_engine.ledger import Ledger

_RUNNING = JobState.RUNNING
_SHARE = (Sharing.FORCE, Sharing.YES)


def misplaced(job: Job, placement: Placement, ledger: Ledger, listed: Callable[[NodeBits], str]) -> str:
    """Check nodes and cores by themselves.

    :param listed: names nodes.
    """
    allocation: object = placement.allocation
    if not isinstance(allocation, Allocation):
        return f"placed it with {allocation!r:.80}; allowed: an Allocation"
    nodes = allocation.nodes
    if nodes & job.partition.nodes != nodes:
        if nodes & ledger.all_nodes != nodes:
            return "placed it on a node that does not exist"
        return f"placed it on {listed(nodes & ~job.partition.nodes)}, outside partition {job.partition.name}"
    size = len(allocation.node_indices)
    if size < job.size:
        return f"placed it on {size} nodes; it needs {job.size}"
    if not bitmap.lists(allocation.node_indices, nodes):
        return "placed it on nodes that differ from their indices"
    if nodes & ledger.up != nodes:
        return "placed it on a node that is not in service"
    cpus, cores, memory = allocation.cpus, allocation.cores, allocation.memory_mb
    if (
        (cpus is None or len(cpus) == size)
        and (cores is None or len(cores) == size)
        and (memory is None or len(memory) == size)
    ):
        return ""
    for name, amounts in (("cpus", cpus), ("cores", cores), ("memory_mb", memory)):
        if amounts is not None and len(amounts) != size:
            return f"placed it on {size} nodes with {name} for {len(amounts)}"
    return ""


def overlapping(job: Job, allocation: Allocation, ledger: Ledger) -> str:
    """Check that a job takes no core of a running one, where no arbiter lets them take turns.

    Jobs that all share what they hold may overlap, and those of a partition that oversubscribes may lie on any: real
    Slurm lets them (slurm-gang-and-select 4.3.4). One that a person stopped and let go on may run beside those that
    came meanwhile, and selectors may count it no more.
    """
    if _oversubscribes(job):
        return ""
    nodes = allocation.nodes
    contested = nodes & (ledger.exclusive if allocation.shared else ledger.held)
    for index in bitmap.indices(contested) if contested else ():
        mine = _cores_on(allocation, index)
        for other in ledger.jobs_on(index):
            held = other.allocation
            if other.state is not _RUNNING or held is None or (held.shared and allocation.shared):
                continue
            if _oversubscribes(other) or other.resumed_at != other.started_at:
                continue
            theirs = _cores_on(held, index)
            if _meet(mine, theirs):
                name = ledger.cluster.nodes[index].name
                return f"gave it cores of {name} that job {other.id} holds"
    return ""


def under(allocation: Allocation, jobs: Sequence[Job]) -> list[Job]:
    """Return those of `jobs` of which a placement takes cores: an arbiter suspends them."""
    found = []
    for job in jobs:
        held = job.allocation
        if held is not None and any(
            _meet(_cores_on(allocation, index), _cores_on(held, index))
            for index in bitmap.indices(held.nodes & allocation.nodes)
        ):
            found.append(job)
    return found


def _oversubscribes(job: Job) -> bool:
    return job.partition.oversubscribe.sharing in _SHARE


def _meet(mine: int | None, theirs: int | None) -> bool:
    """Whether two share cores of a node; None: all of them."""
    return mine is None or theirs is None or bool(mine & theirs)


def _cores_on(allocation: Allocation, index: int) -> int | None:
    """Return the cores held on a node; None: all."""
    if allocation.cores is None:
        return None
    return allocation.cores[allocation.node_indices.index(index)]

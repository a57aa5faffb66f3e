"""Work out once what all jobs with the same request have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.model import Blocked, Job
from makeway_select_cons_tres.books import Layout
from makeway_select_cons_tres.cores import Picker, Taste
from makeway_select_cons_tres.request import Request
from makeway_select_cons_tres.table import Table, TableKey


@attrs.define(eq=False)
class Kind:
    """A request, and what follows from it alone."""

    request: Request
    key: TableKey
    """Which table of usable CPUs it looks at."""
    wanted: int
    """CPUs that every node must offer."""
    least_memory: int
    """Memory that every node must have left; 0: none, or all."""
    able: NodeBits
    """Nodes that could serve it if they were idle."""
    idle: Table
    """Usable CPUs of each node when nobody is there."""
    picker: Picker
    choices: Sequence[Alternatives]
    """Feature alternatives, in the order in which they are tried."""
    verdict: tuple[NodeBits, Blocked | None] | None = None
    """Whether it could ever run on these nodes; None: not asked yet."""


def kind_of(
    request: Request, layout: Layout, idle: Table, choices: Sequence[Alternatives], *, trims: bool
) -> Kind:
    """Work out what follows from `request`."""
    wanted = max(request.cpus_per_node, 1)
    if request.max_nodes == 1:
        wanted = max(wanted, request.min_cpus)
    taste = Taste(request.need, request.block, request.most_on_node, trims, request.cpus_for_memory)
    return Kind(
        request=request,
        key=idle.key,
        wanted=wanted,
        least_memory=_least_memory(request),
        able=_able(request, layout, idle, wanted),
        idle=idle,
        picker=layout.picker(taste),
        choices=choices,
    )


def _least_memory(request: Request) -> int:
    """Return the least memory that the job needs on a node (spec slurm-gang-and-select 4.3.3 no. 1)."""
    if request.memory_per_cpu is not None:
        least = max(request.cpus_per_node, request.tasks_per_node or 1, request.need.cpus_per_task)
        return request.memory_per_cpu * least
    return request.memory_per_node or 0


def _able(request: Request, layout: Layout, idle: Table, wanted: int) -> NodeBits:
    if request.over_limit:
        return 0
    least = _least_memory(request)
    each = request.memory_per_cpu if request.whole else None
    able = []
    for index in bitmap.indices(idle.at_least(wanted) & ~request.excluded):
        node = layout.cluster.nodes[index]
        if layout.track_memory and max(least, (each or 0) * node.cpus) > layout.memory[index]:
            continue
        if any(node.gres.get(name, 0) < count for name, count in request.gres.items()):
            continue
        able.append(index)
    return bitmap.of(able)


def signature_of(job: Job) -> Hashable:
    """Return what decides the request of `job` in its partition: equal for equal requests."""
    spec = job.spec
    return (
        job.partition.index,
        job.size,
        job.required,
        job.excluded,
        spec.min_nodes,
        spec.max_nodes,
        spec.tasks,
        spec.cpus_per_task,
        spec.tasks_per_node,
        spec.tasks_per_socket,
        spec.tasks_per_core,
        spec.threads_per_core,
        spec.sockets_per_node,
        spec.cores_per_socket,
        spec.min_cpus_per_node,
        spec.distribution,
        spec.spread,
        spec.memory_mb_per_node,
        spec.memory_mb_per_cpu,
        tuple(sorted(spec.gres.items())) if spec.gres else (),
        tuple(sorted(spec.gres_total.items())) if spec.gres_total else (),
        spec.exclusive,
        spec.oversubscribe,
        spec.contiguous,
        spec.features,
    )

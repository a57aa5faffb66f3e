"""Work out once what all jobs with the same request have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.model import Blocked, Job
from makeway.obstacle import Condition, in_all, listed, obstacle, of_features
from makeway_select_cons_tres.cores import Picker, Taste
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import NodeNeed, Request
from makeway_select_cons_tres.table import Table, TableKey


@attrs.define(eq=False)
class Wish:
    """What a job wants of its one node, where idle cores and memory are all that counts."""

    kind: Kind
    partition: int
    """Its index."""
    cores: int
    memory: int
    able: NodeBits
    """Nodes of its partition that could serve it if they were idle."""
    spans: bool
    """Whether these are all nodes of the partition that have so many cores and so much memory."""
    too_small: int = -1
    """The most memory that a node of the partition has which has so many cores, and not so much memory; -1: none is."""
    seen_on: int = -1
    """A node that had what is wished when that was last looked at; -1: none did."""


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
    """Usable CPUs of each node when no job is there."""
    picker: Picker
    choices: Sequence[Alternatives]
    """Feature alternatives, in the order in which they are tried."""
    cpus_on_one_node: int | None = None
    """CPUs that a job takes of whichever node it gets; None: it takes more to say (`one_node`)."""
    screen_wish: Wish | None = None
    """What decides at a glance whether a node fits one of its jobs; None: it takes more to say (`idle`)."""
    looks_at_used: bool = False
    """Whether its jobs look at cores in use as well."""
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
    """Return the least memory that the job needs on a node (slurm-gang-and-select 4.3.3 no. 1)."""
    if request.memory_per_cpu is not None:
        least = max(request.cpus_per_node, request.tasks_per_node or 1, request.need.cpus_per_task)
        return request.memory_per_cpu * least
    return request.memory_per_node or 0


def _able(request: Request, layout: Layout, idle: Table, wanted: int) -> NodeBits:
    if request.over_limit:
        return 0
    least = _least_memory(request)
    each = request.memory_per_cpu if request.whole else None
    able = idle.at_least(wanted) & ~(request.excluded | request.too_small)
    for node, equals in layout.equipment:
        short = layout.track_memory and max(least, (each or 0) * node.cpus) > node.usable_memory_mb
        if (
            short
            or any(not layout.serves(node, name, count) for name, count in request.gres.items())
            or any(node.gres.get(n, 0) < count * node.sockets for n, count in request.gres_per_socket.items())
        ):
            able &= ~equals
    return able


def why_impossible(job: Job, kind: Kind, layout: Layout, up: NodeBits) -> str:
    """Say why a job cannot run even where no other is, in the terms of its request.

    :param up: nodes of its partition that are in service.
    """
    request = kind.request
    conditions = list(_conditions(job, kind, layout))
    short = obstacle(request.min_nodes, request.partition, conditions, request.excluded, up)
    if short:
        return short
    serving = up & kind.able
    for _, having in conditions:
        serving &= having
    nodes, cpus = layout.cluster.nodes, kind.idle.values
    return in_all(job, serving, nodes, cpus, request.min_cpus, request.max_nodes)


def _conditions(job: Job, kind: Kind, layout: Layout) -> Iterator[Condition]:
    request, nodes = kind.request, layout.cluster.nodes
    if kind.wanted > 1 or request.need != NodeNeed(unit=request.need.unit):
        need = request.need
        asked = (
            (f"{need.sockets} sockets free", need.sockets > 1),
            (f"{need.cores_per_socket} cores per socket", need.cores_per_socket > 1),
            (f"{need.threads_per_core} threads per core", need.threads_per_core is not None),
        )
        texts = [f"{kind.wanted} usable CPU{'' if kind.wanted == 1 else 's'}", *(t for t, on in asked if on)]
        yield listed(texts), kind.idle.at_least(kind.wanted)
    if layout.track_memory:
        least = _least_memory(request)
        each = request.memory_per_cpu if request.whole else None
        having = [n.index for n in nodes if max(least, (each or 0) * n.cpus) <= layout.memory[n.index]]
        what = f"{each} MB of memory per CPU" if each else f"{least} MB of memory"
        yield what, bitmap.of(having)
    elif request.too_small:
        per_cpu = job.spec.memory_mb_per_cpu
        what = f"{job.spec.memory_mb_per_node} MB" if per_cpu is None else f"{per_cpu} MB per CPU"
        yield f"{what} of memory", bitmap.full(len(nodes)) & ~request.too_small
    for name, count in request.gres.items():
        yield f"{count} {name}", bitmap.of([n.index for n in nodes if layout.serves(n, name, count)])
    yield from of_features(job.spec.features, kind.choices, bitmap.full(len(nodes)))


_ASKED = attrgetter(
    *("min_nodes", "max_nodes", "node_cap", "tasks", "cpus_per_task", "tasks_per_node", "tasks_per_socket"),
    *("tasks_per_core", "threads_per_core", "sockets_per_node", "cores_per_socket", "min_cpus_per_node"),
    *("distribution", "spread", "memory_mb_per_node", "memory_mb_per_cpu", "exclusive", "oversubscribe"),
    *("contiguous", "features"),
)


def signature_of(job: Job) -> Hashable:
    """Return what decides the request of `job` in its partition: equal for equal requests."""
    spec = job.spec
    asked = job.partition.index, job.size, job.required, job.excluded, _ASKED(spec)
    if not (spec.gres or spec.gres_total or spec.gres_per_task or spec.gres_per_socket):
        return asked
    counted = spec.gres, spec.gres_total, spec.gres_per_task, spec.gres_per_socket
    return asked, tuple([tuple(sorted(each.items())) for each in counted])

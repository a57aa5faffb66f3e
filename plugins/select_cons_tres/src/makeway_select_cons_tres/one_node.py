"""Place jobs of one node on idle cores where the first node that fits is the answer.

slurm-gang-and-select 4.3.6 (one-node shortcut): the sets of nodes that fit
(`makeway_select_cons_tres.fitting`) tell what the node filter and test 1 say about such a job. Its request tells how
many CPUs it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.model import NOTHING
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.cpus import looks_at_sockets, threads_for, usable_cpus
from makeway_select_cons_tres.kinds import Kind, Wish
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import ONE_ROW, Request
from makeway_select_cons_tres.steps import IDLE, Mode


def cpus_on_one_node(
    request: Request, choices: Sequence[Alternatives], layout: Layout, mode: Mode
) -> int | None:
    """Return the CPUs that a job takes of whichever node it gets; None: more has to be looked at."""
    cpus = max(request.min_cpus, request.cpus_per_node, 1)
    per_task = request.need.cpus_per_task
    if (
        not mode.first_fit
        or mode.gang
        or layout.several_rows
        or request.mark != ONE_ROW
        or not request.max_nodes == request.target == request.min_nodes == 1
        or request.whole
        or request.memory_per_cpu
        or request.required
        or request.gres
        or request.gres_total
        or len(choices) > 1
        or choices[0].counts
        or (request.most_on_node is not None and request.most_on_node < cpus)
        or (request.tasks is not None and cpus // per_task != request.tasks)
    ):
        return None
    return cpus if request.tasks is None else max(request.tasks * per_task, request.cpus_per_node)


def first_that_fits(kind: Kind, nodes: NodeBits, books: Books) -> Found | None:
    """Return a place on the first of `nodes`, all of which fit, by weight and index.

    :param kind: one whose `cpus_on_one_node` is known.
    """
    return on_node(kind, _first(nodes, books.layout), books)


def fitting_in(kind: Kind, nodes: NodeBits, books: Books) -> NodeBits:
    """Return those of `nodes` that fit a job, as `Fitting.nodes` does by the books of all; by any, `sync` before.

    :param kind: one whose `cpus_on_one_node` is known: nothing else counts than CPUs, memory and reserved nodes.
    """
    nodes &= kind.able & ~books.reserved_nodes & books.table(kind.key).at_least(kind.wanted)
    busy = nodes & books.charged_nodes if books.layout.track_memory else 0
    if busy:
        each, whole = kind.request.memory_per_cpu, kind.request.memory_per_node
        if each is not None or whole:
            nodes = nodes & ~busy | books.free_memory().among(busy, kind.least_memory)
        elif whole is not None:  # it wants all of it
            nodes &= ~busy
    return nodes


def on_node(kind: Kind, index: int, books: Books) -> Found | None:
    """Return a place on a node that fits; None: its cores do not serve after all.

    :param kind: one whose `cpus_on_one_node` is known.
    """
    layout, request = books.layout, kind.request
    assert kind.cpus_on_one_node is not None
    full = layout.full[index]
    picked = kind.picker.pick(index, full & ~books.busy[index], kind.cpus_on_one_node)
    if picked is None:
        return None
    cpus, cores = picked
    memory = None
    if layout.track_memory and request.memory_per_node is not None:
        memory = (request.memory_per_node or layout.memory[index],)
    held = None if cores == full else (cores,)
    return Found(1 << index, (index,), (cpus,), held, memory, NOTHING, IDLE)


def _first(nodes: NodeBits, layout: Layout) -> int:
    for group in layout.by_weight:
        if nodes & group:
            return bitmap.lowest(nodes & group)
    raise ValueError("no nodes to choose from")


def wish_of(kind: Kind, layout: Layout) -> Wish | None:
    """Return what jobs of `kind` want of one node; None: more than the number of its idle cores, and memory, counts."""
    request, need = kind.request, kind.request.need
    if (
        request.min_nodes != 1
        or request.whole
        or request.memory_per_node == 0
        or request.over_limit
        or kind.key.partition is not None
        or looks_at_sockets(need)
        or len({threads_for(shape, need) for shape in layout.shapes}) != 1
    ):
        return None
    able = kind.able & request.partition.nodes
    most = max(layout.core_count, default=0)
    shape, wanted = layout.shapes[0], kind.wanted
    fewest = max(1, -(-wanted // threads_for(shape, need)))  # no core has more CPUs than threads
    cores = next(
        (count for count in range(fewest, most + 1) if usable_cpus(shape, (1 << count) - 1, need) >= wanted),
        most + 1,
    )
    memory = kind.least_memory
    sizes, room = layout.core_count, layout.memory
    wide = [at for at in range(layout.size) if sizes[at] >= cores]
    large = bitmap.of([at for at in wide if room[at] >= memory])
    spans = able == request.partition.nodes & large
    too_small = max([room[at] for at in wide if room[at] < memory], default=-1)
    return Wish(kind, request.partition.index, cores, memory, able, spans, too_small)

"""Place jobs of one node on idle cores where the first node that fits is the answer.

Spec slurm-gang-and-select 4.3.6 (one-node shortcut): the sets of nodes that fit
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
from makeway_select_cons_tres.kinds import Kind
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
    layout, request = books.layout, kind.request
    index = _first(nodes, layout)
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

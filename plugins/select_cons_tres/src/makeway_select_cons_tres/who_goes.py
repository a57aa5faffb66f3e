"""Search victims for a job of one node among candidates that are drawn one by one.

The first node that serves as candidates leave it is where such a job is placed, so nobody behind whoever freed it
need be looked at. `makeway_select_cons_tres.search` comes to the same with all candidates, and answers for all other
jobs; `tests/test_in_line.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from makeway.bitmap import CoreBits, NodeBits
from makeway.model import ClusterView, Job, Placement
from makeway.preemption import PreemptionTable
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.kinds import Wish
from makeway_select_cons_tres.known import Known
from makeway_select_cons_tres.prompt import Prompt


def who_goes(
    known: Known, prompt: Prompt, job: Job, nodes: NodeBits, line: Iterable[Job], view: ClusterView
) -> tuple[Placement, Sequence[Job]] | None:
    """Return where `job` starts, and who has to go for it; None: nobody, or it takes more to say."""
    kind, books = known.kind(job), known.books
    wish: Wish | None = kind.place_wish
    if wish is None or job.spec.licenses or view.heterogeneous:
        return None
    books.sync()
    if books.any_overlaid or books.reserved_nodes or known.idle.first(wish, nodes) >= 0:
        return None
    settings = view.settings(PreemptionTable)
    rounds = settings.reorder_count + 2
    drawn = iter(line)
    nodes &= wish.able
    found = _first_to_serve(drawn, nodes, wish, books)
    if found is None:
        return None
    count = len(found[2])
    while count < rounds and next(drawn, None) is not None:
        count += 1
    for done in range(1, rounds + 1):
        index, free, gone = found
        placement = prompt.on(kind, index, free)
        if placement is None:
            return None
        node = 1 << index
        if done == rounds or count <= done:
            return placement, [other for other in gone if other.nodes & node]
        *before, last = gone
        if not settings.strict_order:  # nobody else need go for this node
            before = [other for other in before if other.nodes & node]
        found = _first_to_serve([last, *before], nodes, wish, books)
        if found is None:
            return None
    return None


def _first_to_serve(
    line: Iterable[Job], nodes: NodeBits, wish: Wish, books: Books
) -> tuple[int, CoreBits, list[Job]] | None:
    """Return the first node that serves as jobs leave, its idle cores then, and who has left; None: none does."""
    layout, cores, memory = books.layout, wish.cores, wish.memory
    full, room, weight, busy, used = layout.full, layout.memory, layout.weight, books.busy, books.memory
    idle: dict[int, CoreBits] = {}
    left: dict[int, int] = {}
    gone: list[Job] = []
    for job in line:
        gone.append(job)
        held = job.allocation
        if held is None or not held.nodes & nodes:
            continue
        serving = -1
        its_cores, its_memory = held.cores, held.memory_mb
        for at, index in enumerate(held.node_indices):
            if not nodes >> index & 1:
                continue
            if index in idle:
                free, spare = idle[index], left[index]
            else:
                free, spare = full[index] & ~busy[index], room[index] - used[index]
            free |= full[index] if its_cores is None else its_cores[at]
            if its_memory is not None:
                spare += its_memory[at]
            idle[index], left[index] = free, spare
            serves = spare >= memory and free.bit_count() >= cores
            if serves and (serving < 0 or (weight[index], index) < (weight[serving], serving)):
                serving = index
        if serving >= 0:
            return serving, idle[serving], gone
    return None


__all__ = ["who_goes"]

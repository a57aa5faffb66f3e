"""Charge a job of one node, and take it out, in one go.

Most jobs of most logs lie on idle cores of one node, alone in their row. `makeway_select_cons_tres.books` does the same
in its verbs, one after the other, for all jobs; `tests/test_plain_jobs.py` holds one to the other.
"""

from __future__ import annotations

from makeway.model import Job
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.request import MARK_OF, RESERVED


def charge(books: Books, job: Job) -> None:
    """Charge a job that started."""
    allocation = job.allocation
    assert allocation is not None
    layout, indices, held = books.layout, allocation.node_indices, allocation.cores
    part = books.parts.get(job.partition.index)
    if part is None or len(indices) != 1 or allocation.gres or layout.marks_stay:
        books.add(job)
        return
    index = indices[0]
    mine = layout.full[index] if held is None else held[0]
    busy = books.busy[index]
    if busy & mine:
        books.add(job)
        return
    rows = part.rows
    row = rows[0]
    row.cores[index] |= mine
    row.count += mine.bit_count()
    if len(rows) > 1:
        row.jobs[job.id] = job
    books.busy[index] = busy | mine
    bit = 1 << index
    if not busy:
        books.busy_nodes |= bit
    if allocation.memory_mb is not None:
        books.memory[index] += allocation.memory_mb[0]
        if books.memory[index]:
            books.charged_nodes |= bit
    mark, sharing = MARK_OF[allocation.marks]
    if mark:
        before = books.marks[index]
        books.marks[index] = now = before + mark
        if not before:
            books.marked_nodes |= bit
        if before < RESERVED <= now:
            books.reserved_nodes |= bit
    if sharing:
        books.sharing[index] = shares = books.sharing[index] + sharing
        if shares == sharing:
            books.sharing_nodes |= bit
    books.note(index)


def discharge(books: Books, job: Job) -> None:
    """Take back what a job holds."""
    allocation = job.allocation
    assert allocation is not None
    layout, indices, held = books.layout, allocation.node_indices, allocation.cores
    part = books.parts.get(job.partition.index)
    if part is None or len(indices) != 1 or allocation.gres or layout.marks_stay or books.any_odd:
        books.remove(job)
        return
    rows = part.rows
    row = rows[0]
    if len(rows) > 1:
        if not part.all_in_first:
            books.remove(job)
            return
        del row.jobs[job.id]
    index = indices[0]
    mine = layout.full[index] if held is None else held[0]
    row.cores[index] &= ~mine
    row.count -= mine.bit_count()
    books.busy[index] = busy = books.busy[index] & ~mine
    bit = 1 << index
    if not busy:
        books.busy_nodes &= ~bit
    if allocation.memory_mb is not None:
        books.memory[index] = left = books.memory[index] - allocation.memory_mb[0]
        if not left:
            books.charged_nodes &= ~bit
    mark, sharing = MARK_OF[allocation.marks]
    if mark:
        before = books.marks[index]
        books.marks[index] = now = max(0, before - mark)
        if before and not now:
            books.marked_nodes ^= bit
        if now < RESERVED <= before:
            books.reserved_nodes ^= bit
    if sharing:
        books.sharing[index] = shares = books.sharing[index] - sharing
        if not shares:
            books.sharing_nodes ^= bit
    books.note(index)


__all__ = ["charge", "discharge"]

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
    cores = books.busy
    busy = cores[index]
    if busy & mine:
        books.add(job)
        return
    rows = part.rows
    row = rows[0]
    row.cores[index] |= mine
    row.count += mine.bit_count()
    if len(rows) > 1:
        row.jobs[job.id] = job
    cores[index] = busy | mine
    if not busy:
        books.busy_nodes |= 1 << index
    memory = allocation.memory_mb
    if memory is not None:
        used = books.memory
        before = used[index]
        used[index] = now = before + memory[0]
        if now and not before:
            books.charged_nodes |= 1 << index
    mark, sharing = MARK_OF[allocation.marks]
    if mark:
        marks = books.marks
        before = marks[index]
        marks[index] = now = before + mark
        if not before:
            books.marked_nodes |= 1 << index
        if now >= RESERVED > before:
            books.reserved_nodes |= 1 << index
    if sharing:
        books.sharing[index] = shares = books.sharing[index] + sharing
        if shares == sharing:
            books.sharing_nodes |= 1 << index
    books.version += 1
    history = books.history
    history.append(index)
    if len(history) > books.most_history:
        books.forget()


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
        if rows[-1].count or (len(rows) > 2 and not part.all_in_first):
            books.remove(job)
            return
        del row.jobs[job.id]
    index = indices[0]
    mine = layout.full[index] if held is None else held[0]
    row.cores[index] &= ~mine
    row.count -= mine.bit_count()
    cores = books.busy
    cores[index] = busy = cores[index] & ~mine
    if not busy:
        books.busy_nodes &= ~(1 << index)
    memory = allocation.memory_mb
    if memory is not None:
        used = books.memory
        used[index] = left = used[index] - memory[0]
        if not left:
            books.charged_nodes &= ~(1 << index)
    mark, sharing = MARK_OF[allocation.marks]
    if mark:
        marks = books.marks
        before = marks[index]
        now = before - mark if before > mark else 0
        marks[index] = now
        if before and not now:
            books.marked_nodes ^= 1 << index
        if before >= RESERVED > now:
            books.reserved_nodes ^= 1 << index
    if sharing:
        books.sharing[index] = shares = books.sharing[index] - sharing
        if not shares:
            books.sharing_nodes ^= 1 << index
    books.version += 1
    history = books.history
    history.append(index)
    if len(history) > books.most_history:
        books.forget()


__all__ = ["charge", "discharge"]

"""Keep the selector's books: rows of cores per partition, memory, counted resources, marks.

slurm-gang-and-select 4.3.1 and 4.3.10. Everything is kept per node in plain lists, so that taking one
job out costs what that job holds. Sets of nodes and tables of usable CPUs follow from these lists; the nodes
touched are noted, and what follows from them is brought up to date when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.devices import Bits, Slots
from makeway.model import Allocation, Job, Partition, SuspendedBy
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import MARK_OF, RESERVED
from makeway_select_cons_tres.rows import Row, Rows
from makeway_select_cons_tres.table import FreeMemory, Table, TableKey

Leaving = tuple[Job, bool]
"""A job that is taken out, and whether with its memory and counted resources."""
_FEW = 64
"""Up to so many nodes are gone through once."""
_MARK_LIMIT = 1 << 16
"""From which sum on the marks of a node begin anew, as Slurm keeps them in 16 bits."""


@attrs.frozen
class Memory:
    """What follows from the order of events and not from what is there. See `Books` for each."""

    rowless: set[str]
    stopped: set[str]
    overflown: set[str]
    stale: set[int]


class Books:
    """What each job holds; `copy` gives books for a simulation, from which jobs can be removed."""

    def __init__(self, layout: Layout) -> None:
        size = layout.size
        self.layout = layout
        self.parts: dict[int, Rows] = {}
        """Rows by index of the partition; only of those where anything ever ran."""
        self.busy: list[CoreBits] = [0] * size
        """Per node, the cores in any row."""
        self.memory = [0] * size
        self.marks = [0] * size
        """Per node, the sum of its jobs' marks."""
        self.sharing = [0] * size
        """Per node, how many of its jobs count as sharing."""
        self.gres: dict[str, list[int]] = {}
        self.slots: dict[int, Slots] = {index: board.free for index, board in layout.boards.items()}
        """What is given of each GPU, on nodes that give whole ones and parts."""
        self._seated: dict[tuple[Allocation, int], Mapping[str, Bits]] = {}
        """The GPUs of jobs whose allocation does not say which they have."""
        self.busy_nodes: NodeBits = 0
        self.charged_nodes: NodeBits = 0
        """Nodes on which memory is charged."""
        self.marked_nodes: NodeBits = 0
        """Nodes with a mark other than AVAILABLE."""
        self.reserved_nodes: NodeBits = 0
        self.sharing_nodes: NodeBits = 0
        self.history: list[int] = []
        """Nodes touched, in order, as far as `sync` has noted them and not forgotten them again."""
        self.era = 0
        """How often all was forgotten, with the tables that followed it."""
        self.most_history = 4 * size + 1000
        """How long that may become."""
        self.touched: list[int] = []
        self._overlaid: set[int] = set()
        """Nodes on which a core is in several rows."""
        self._rowless: set[str] = set()
        """Jobs whose cores are in no row: there was none for them, or a person suspended them."""
        self._stopped: set[str] = set()
        """Jobs that a person suspended: of what they held only memory and counted resources are left."""
        self._overflown: set[str] = set()
        """Jobs that found no row when a person resumed them."""
        self._tables: dict[TableKey, Table] = {}
        self._free_memory: FreeMemory | None = None
        self._parent: Books | None = None
        self._own_parts: set[int] = set()
        self._stale: set[int] = set()
        """Partitions whose rows are to be put together anew."""
        self.version = 0
        """Grows with every change."""
        self.depends_on_order = bool(layout.boards)
        """Whether the same jobs may leave other books behind, by the order in which things happened."""

    def copy(self) -> Books:
        """Return books of the same state, to take jobs out of."""
        self.sync()
        twin = Books.__new__(Books)
        twin.__dict__.update(self.__dict__)
        twin.parts = dict(self.parts)
        twin.busy = self.busy.copy()
        twin.memory = self.memory.copy()
        twin.marks = self.marks.copy()
        twin.sharing = self.sharing.copy()
        twin.gres = {name: used.copy() for name, used in self.gres.items()}
        twin.slots = self.slots.copy()
        twin._seated = self._seated.copy()
        twin.history = []
        twin.touched = []
        twin._overlaid = self._overlaid.copy()
        twin._tables = {}
        twin._free_memory = None
        twin._parent = self
        twin._own_parts = set()
        twin._stale = set()
        return twin

    # ------------------------------------------------------------------------------ notices
    def add(self, job: Job) -> None:
        """Charge a job that started."""
        allocation = job.allocation
        assert allocation is not None
        rows = self._rows_to_change(job.partition)
        if not rows.enter(job, allocation):
            rows.squeeze(job, allocation)
        self._occupy(allocation)
        self._mark(allocation, 1)
        self._charge(allocation, 1)
        self.touched += allocation.node_indices

    def remove(self, job: Job) -> None:
        """Take back what a job holds."""
        self.take_out(job, wholly=True)
        if self._rowless or self._stopped or self._overflown:
            self._rowless.discard(job.id)
            self._stopped.discard(job.id)
            self._overflown.discard(job.id)

    def suspend(self, job: Job) -> None:
        """A job was stopped: if by a person, its cores leave the row; its memory stays (section 4.3.10)."""
        if job.suspended_by is not SuspendedBy.ADMIN or job.id in self._stopped:
            return
        self.take_out(job, wholly=False)
        self._rowless.add(job.id)
        self._stopped.add(job.id)
        self.depends_on_order = True

    def resume(self, job: Job) -> None:
        """A job continues: if a person had stopped it, its cores go into the first row with room, if any."""
        if job.id not in self._stopped:
            return
        allocation = _held(job)
        self._stopped.discard(job.id)
        self._rowless.discard(job.id)
        self._seat(job, allocation)
        if job.id in self._rowless and self.layout.marks_stay:
            self._overflown.add(job.id)
        self._mark(allocation, 1)
        self.touched += allocation.node_indices

    # ----------------------------------------------------------------------------- adoption
    def remembered(self) -> Memory:
        """Return what follows from the order of events; see `makeway_select_cons_tres.adoption`."""
        return Memory(self._rowless, self._stopped, self._overflown, self._stale)

    def recall(self, job: Job, row: int | None, memory: Memory) -> None:
        """Charge a job that is there already, where it was: in a row of its partition, or in none."""
        allocation = _held(job)
        if row is None:
            self._rowless.add(job.id)
            self.depends_on_order = True
        else:
            rows = self._rows_to_change(job.partition)
            rows.seat(job, allocation, row)
            self._occupy(allocation)
        if job.id in memory.stopped:
            self._stopped.add(job.id)
        else:
            self._mark(allocation, 1)
        self._charge(allocation, 1)
        self.touched += allocation.node_indices

    def leave_marks(self, sums: Mapping[int, tuple[int, int]], memory: Memory) -> None:
        """Let marks be what they were, those that outlived their jobs included.

        :param sums: node -> sum of its marks, and how many of its jobs count as sharing.
        """
        for index in range(self.layout.size):
            self.marks[index], self.sharing[index] = sums.get(index, (0, 0))
        self.touched += range(self.layout.size)
        self.depends_on_order = True
        self._overflown |= memory.overflown
        self._stale |= memory.stale

    # ----------------------------------------------------------------------------- the verbs
    def rows(self, partition: Partition) -> Rows:
        """Return the rows of a partition, to read."""
        found = self.parts.get(partition.index)
        if found is None:
            layout = self.layout
            found = Rows(partition, layout.rows_in(partition), layout.full, sorts=not layout.extra_row)
            self.parts[partition.index] = found
            self._own_parts.add(partition.index)
        return found

    def _rows_to_change(self, partition: Partition) -> Rows:
        found = self.parts.get(partition.index) or self.rows(partition)
        if self._parent is not None and partition.index not in self._own_parts:
            found = self.parts[partition.index] = found.copy()
            self._own_parts.add(partition.index)
        return found

    def _seat(self, job: Job, allocation: Allocation) -> None:
        if not self._rows_to_change(job.partition).enter(job, allocation):
            self._rowless.add(job.id)
            return
        self._occupy(allocation)

    def _occupy(self, allocation: Allocation) -> None:
        full, busy = self.layout.full, self.busy
        held = allocation.cores
        for at, index in enumerate(allocation.node_indices):
            cores = full[index] if held is None else held[at]
            if busy[index] & cores:
                self._overlaid.add(index)
                self.depends_on_order = True
            busy[index] |= cores

    def take_out(self, job: Job, *, wholly: bool) -> None:
        """Take a job out of its row, and its mark away; `wholly`: also its memory and counted resources."""
        allocation = _held(job)
        if job.id not in self._rowless:
            rows = self._rows_to_change(job.partition)
            if rows.leave(job, allocation):
                self._stale.add(job.partition.index)
            self._free_cores(allocation)
        if job.id not in self._stopped and job.id not in self._overflown:
            self._mark(allocation, -1)
        if wholly:
            self._charge(allocation, -1)
        self.touched += allocation.node_indices

    def take_out_each(self, leaving: Sequence[Leaving]) -> None:
        """Take jobs out, each wholly or not."""
        if all(wholly for _, wholly in leaving):
            self.take_out_all([job for job, _ in leaving])
            return
        for job, wholly in leaving:
            self.take_out(job, wholly=wholly)

    def take_out_all(self, jobs: Sequence[Job]) -> None:
        """Take jobs out wholly; the same as one by one, but cheaper for many."""
        by_partition: dict[int, list[Job]] = {}
        for job in jobs:
            by_partition.setdefault(job.partition.index, []).append(job)
        for several in by_partition.values():
            rows = self._rows_to_change(several[0].partition)
            if self._overlaid or self._rowless or not rows.all_in_first:
                for job in several:
                    self.take_out(job, wholly=True)
            else:
                rows.leave_first(several)
                self._take_out_of(rows.rows[0], [_held(job) for job in several])

    def _take_out_of(self, row: Row, allocations: Sequence[Allocation]) -> None:
        """Take out jobs that are in the only row of their partition, where no other has their cores."""
        taken, busy, sizes = row.cores, self.busy, self.layout.core_count
        nodes: list[int] = []
        count = 0
        for allocation in allocations:
            held, indices = allocation.cores, allocation.node_indices
            nodes += indices
            if held is not None and len(indices) == 1:
                index, cores = indices[0], held[0]
                taken[index] ^= cores
                busy[index] ^= cores
                count += cores.bit_count()
            elif held is None:
                for index in indices:
                    taken[index] = busy[index] = 0
                    count += sizes[index]
            else:
                for index, cores in zip(indices, held, strict=True):
                    taken[index] ^= cores
                    busy[index] ^= cores
                    count += cores.bit_count()
        row.count -= count
        self._unmark_all(allocations, nodes)
        self._charge_back(allocations)
        self.touched += nodes

    def _unmark_all(self, allocations: Sequence[Allocation], nodes: Sequence[int]) -> None:
        kinds = {allocation.marks for allocation in allocations}
        if len(kinds) > 1:
            for allocation in allocations:
                self._mark(allocation, -1)
            return
        mark, sharing = MARK_OF[kinds.pop()]
        marks, shared = self.marks, self.sharing
        if mark:
            for index in nodes:
                marks[index] = max(0, marks[index] - mark)
        if sharing:
            for index in nodes:
                shared[index] -= 1

    def _charge_back(self, allocations: Sequence[Allocation]) -> None:
        memory = self.memory
        for allocation in allocations:
            held, indices = allocation.memory_mb, allocation.node_indices
            if allocation.gres:
                self._charge(allocation, -1)
            elif held is not None and len(indices) == 1:
                memory[indices[0]] -= held[0]
            elif held is not None:
                for index, amount in zip(indices, held, strict=True):
                    memory[index] -= amount

    def _free_cores(self, allocation: Allocation) -> None:
        full, busy, overlaid = self.layout.full, self.busy, self._overlaid
        held = allocation.cores
        for at, index in enumerate(allocation.node_indices):
            if index in overlaid:
                busy[index] = self._count_again(index)
            else:
                busy[index] &= ~(full[index] if held is None else held[at])

    def _count_again(self, node: int) -> CoreBits:
        """Return the cores in any row of a node where rows lie over one another."""
        cores = 0
        still = False
        for part in self.parts.values():
            still = still or part.crowded
            for row in part.rows:
                still = still or bool(cores & row.cores[node])
                cores |= row.cores[node]
        if not still:
            self._overlaid.discard(node)
        return cores

    def _mark(self, allocation: Allocation, sign: int) -> None:
        mark, sharing = MARK_OF[allocation.marks]
        if not mark and not sharing:
            return
        marks, shared = self.marks, self.sharing
        wraps = self.layout.marks_stay
        for index in allocation.node_indices:
            found = marks[index] + sign * mark
            # Two marks of EXCLUSIVE jobs are more than 16 bits hold; what is taken off then leaves nothing.
            marks[index] = max(0, found % _MARK_LIMIT if wraps and sign > 0 else found)
            if marks[index] != found:
                self.depends_on_order = True
            shared[index] += sign * sharing

    def _charge(self, allocation: Allocation, sign: int) -> None:
        if allocation.memory_mb is not None:
            memory = self.memory
            for index, amount in zip(allocation.node_indices, allocation.memory_mb, strict=True):
                memory[index] += sign * amount
        if not allocation.gres:
            return
        for name, amounts in allocation.gres.items():
            used = self.gres.setdefault(name, [0] * self.layout.size)
            for index, amount in zip(allocation.node_indices, amounts, strict=True):
                used[index] += sign * amount
        if self.slots:
            for at, index in enumerate(allocation.node_indices):
                if index in self.slots:
                    self._charge_gpus(allocation, at, index, sign)

    def _charge_gpus(self, allocation: Allocation, at: int, index: int, sign: int) -> None:
        """Charge the GPUs of one node; those of a job that came without saying which are picked for it."""
        board, slots = self.layout.boards[index], self.slots[index]
        counts = {name: amounts[at] for name, amounts in allocation.gres.items() if amounts[at]}
        bits: Mapping[str, Bits] | None
        if allocation.devices:
            bits = {name: held[at] for name, held in allocation.devices.items()}
        elif sign > 0:
            bits = self._seated[allocation, index] = board.pick(slots, counts) or {}
        else:
            bits = self._seated.pop((allocation, index), {})
        self.slots[index] = board.change(slots, bits, counts, sign)

    # ------------------------------------------------------------------------ what follows
    def sync(self) -> None:
        """Bring the sets of nodes up to date; they are while no node is in `touched`."""
        if self._stale:
            for index in self._stale:
                self.parts[index].rebuild()
            self._stale.clear()
        touched = self.touched
        if not touched:
            return
        self.touched = []
        self.version += 1
        changed = list(dict.fromkeys(touched)) if len(touched) > 1 else touched
        self.history += changed
        if len(changed) == 1:
            self._sync_one(changed[0])
        else:
            self._sync_many(changed)
        if self._parent is None and len(self.history) > self.most_history:
            self.forget()

    def forget(self) -> None:
        """Begin the history anew: it has become longer than it is worth."""
        self.era += 1
        self.history.clear()
        self._tables.clear()
        self._free_memory = None

    def _sync_one(self, node: int) -> None:
        bit = 1 << node
        gone = ~bit
        self.busy_nodes = self.busy_nodes | bit if self.busy[node] else self.busy_nodes & gone
        self.charged_nodes = self.charged_nodes | bit if self.memory[node] else self.charged_nodes & gone
        mark = self.marks[node]
        self.marked_nodes = self.marked_nodes | bit if mark else self.marked_nodes & gone
        self.reserved_nodes = self.reserved_nodes | bit if mark >= RESERVED else self.reserved_nodes & gone
        self.sharing_nodes = self.sharing_nodes | bit if self.sharing[node] else self.sharing_nodes & gone

    def _sync_many(self, changed: Sequence[int]) -> None:
        if len(changed) > _FEW:
            self._sync_most(changed)
            return
        busy, memory, marks, sharing = self.busy, self.memory, self.marks, self.sharing
        every: NodeBits = 0
        used = charged = marked = reserved = shared = every
        for index in changed:
            bit = 1 << index
            every |= bit
            if busy[index]:
                used |= bit
            if memory[index]:
                charged |= bit
            if marks[index]:
                marked |= bit
                if marks[index] >= RESERVED:
                    reserved |= bit
            if sharing[index]:
                shared |= bit
        gone = ~every
        self.busy_nodes = self.busy_nodes & gone | used
        self.charged_nodes = self.charged_nodes & gone | charged
        self.marked_nodes = self.marked_nodes & gone | marked
        self.reserved_nodes = self.reserved_nodes & gone | reserved
        self.sharing_nodes = self.sharing_nodes & gone | shared

    def _sync_most(self, changed: Sequence[int]) -> None:
        """Do so where many nodes have changed."""
        gone = ~bitmap.of(changed)
        busy, memory, marks, sharing = self.busy, self.memory, self.marks, self.sharing
        self.busy_nodes = self.busy_nodes & gone | bitmap.of([i for i in changed if busy[i]])
        self.charged_nodes = self.charged_nodes & gone | bitmap.of([i for i in changed if memory[i]])
        self.marked_nodes = self.marked_nodes & gone | bitmap.of([i for i in changed if marks[i]])
        self.reserved_nodes = self.reserved_nodes & gone | bitmap.of(
            [i for i in changed if marks[i] >= RESERVED]
        )
        self.sharing_nodes = self.sharing_nodes & gone | bitmap.of([i for i in changed if sharing[i]])

    def table(self, key: TableKey) -> Table:
        """Return the CPUs of each node that a need can use beside all that are there; `sync` first."""
        found = self._tables.get(key)
        if found is None:
            if self._parent is not None:
                found = self._parent.table(key).copy()
            else:
                found = Table(key, self)
                found.seen = len(self.history)
            self._tables[key] = found
        self.update(found)
        return found

    def update(self, table: Table) -> None:
        """Let a table of these books look at what was touched since it last did."""
        seen, now = table.seen, len(self.history)
        if seen < now:
            table.follow(self.history[seen:] if now - seen == 1 else self._news(seen), self)
            table.seen = now

    def free_memory(self) -> FreeMemory:
        """Return the memory that each node has left; `sync` first."""
        found = self._free_memory
        if found is None:
            if self._parent is not None:
                found = self._parent.free_memory().copy()
            else:
                found = FreeMemory(self)
                found.seen = len(self.history)
            self._free_memory = found
        if found.seen < len(self.history):
            found.follow(self._news(found.seen), self)
            found.seen = len(self.history)
        return found

    def _news(self, seen: int) -> Sequence[int]:
        """Return the nodes touched since, each once."""
        news = self.history[seen:]
        return news if len(news) == 1 else list(dict.fromkeys(news))

    def cores_in(self, parts: Sequence[Rows], nodes: NodeBits) -> dict[int, CoreBits]:
        """Return the cores of `nodes` that are in any row of `parts`, by node; nodes without are left out."""
        lists = [row.cores for part in parts for row in part.rows if row.count]
        if not lists:
            return {}
        if len(lists) == 1:
            only = lists[0]
            return {i: only[i] for i in bitmap.indices(nodes & self.busy_nodes) if only[i]}
        found = {}
        for index in bitmap.indices(nodes & self.busy_nodes):
            cores = 0
            for row in lists:
                cores |= row[index]
            if cores:
                found[index] = cores
        return found

    @property
    def any_overlaid(self) -> bool:
        """Whether any core is in several rows, or held by a job that is in none."""
        return bool(self._overlaid or self._rowless)


def _held(job: Job) -> Allocation:
    allocation = job.allocation
    assert allocation is not None
    return allocation


__all__ = ["Books", "Layout", "Row", "Rows"]

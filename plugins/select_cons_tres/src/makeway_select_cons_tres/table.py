"""Remember how many CPUs of each node a kind of job can use, and follow the books (spec slurm-gang-and-select 4.3.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway_select_cons_tres.cpus import usable_cpus
from makeway_select_cons_tres.request import NodeNeed

if TYPE_CHECKING:
    from makeway_select_cons_tres.books import Books


@attrs.frozen(cache_hash=True)
class TableKey:
    """What a table is about."""

    need: NodeNeed
    partition: int | None = None
    """The partition whose jobs together have a limit of CPUs per node; None: there is no limit."""
    limit: int = 0


class Table:
    """Usable CPUs of each node, for one need."""

    __slots__ = ("_known", "_levels", "avail", "key", "seen")

    def __init__(self, key: TableKey, size: int) -> None:
        self.key = key
        self.avail = [0] * size
        self.seen = 0
        """How much of the books' history it has followed."""
        self._levels: dict[int, NodeBits] = {}
        self._known: list[dict[CoreBits, int]] = []

    def copy(self) -> Table:
        """Return an independent copy that has seen nothing of the history of its own books."""
        twin = Table.__new__(Table)
        twin.key = self.key
        twin.avail = self.avail.copy()
        twin.seen = 0
        twin._levels = self._levels.copy()
        twin._known = self._known
        return twin

    def at_least(self, cpus: int) -> NodeBits:
        """Return the nodes with at least so many usable CPUs."""
        found = self._levels.get(cpus)
        if found is None:
            found = bitmap.of([at for at, avail in enumerate(self.avail) if avail >= cpus])
            self._levels[cpus] = found
        return found

    def cpus_of(self, node: int, free: CoreBits, books: Books) -> int:
        """Return the usable CPUs of a node with these free cores."""
        layout = books.layout
        if not self._known:
            self._known = [{} for _ in layout.shapes]
        shape = layout.shape_at[node]
        known = self._known[shape]
        cpus = known.get(free)
        if cpus is None:
            cpus = known[free] = usable_cpus(layout.shapes[shape], free, self.key.need)
        if self.key.partition is not None:
            cpus = max(0, min(cpus, self.key.limit - self._used_by_partition(node, books)))
        return cpus

    def _used_by_partition(self, node: int, books: Books) -> int:
        """Return the CPUs of a node in rows of the partition with a limit (MaxCPUsPerNode)."""
        assert self.key.partition is not None
        part = books.parts.get(self.key.partition)
        if part is None:
            return 0
        cores = 0
        for row in part.rows:
            cores |= row.cores[node]
        return cores.bit_count() * books.layout.shape(node).threads

    def follow(self, nodes: Iterable[int], books: Books) -> None:
        """Look at `nodes` again."""
        avail, full, busy = self.avail, books.layout.full, books.busy
        rising: list[tuple[int, int, int]] = []
        for node in nodes:
            now = self.cpus_of(node, full[node] & ~busy[node], books)
            before = avail[node]
            if now != before:
                avail[node] = now
                rising.append((node, before, now))
        for cpus, bits in self._levels.items():
            gained = [node for node, before, now in rising if before < cpus <= now]
            lost = [node for node, before, now in rising if now < cpus <= before]
            if gained:
                bits |= bitmap.of(gained)
            if lost:
                bits &= ~bitmap.of(lost)
            self._levels[cpus] = bits

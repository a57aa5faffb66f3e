"""Remember what each node has left, and follow the books.

Usable CPUs for a kind of job (slurm-gang-and-select 4.3.6), and free memory; with each, the sets of
nodes that have at least so much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway_select_cons_tres.cpus import usable_cpus
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import NodeNeed
from makeway_select_cons_tres.rows import Rows

_MOST_LEVELS = 24
_FEW = 128
"""So many nodes are looked at one by one rather than in a set for the amount."""


class Followed(Protocol):
    """Books, as far as tables follow them."""

    @property
    def layout(self) -> Layout:
        """What does not change of the nodes."""

    @property
    def parts(self) -> Mapping[int, Rows]:
        """Rows by index of the partition."""

    @property
    def busy(self) -> Sequence[CoreBits]:
        """Per node, the cores in any row."""

    @property
    def memory(self) -> Sequence[int]:
        """Per node, what is charged."""


@attrs.frozen(cache_hash=True)
class TableKey:
    """What a table of CPUs is about."""

    need: NodeNeed
    partition: int | None = None
    """The partition whose jobs together have a limit of CPUs per node; None: there is no limit."""
    limit: int = 0


class Amounts:
    """An amount per node, and the nodes that have at least so much."""

    __slots__ = ("_levels", "seen", "values")

    def __init__(self, values: Sequence[int]) -> None:
        self.values = list(values)
        self.seen = 0
        """How much of the books' history it has followed."""
        self._levels: dict[int, NodeBits] = {}

    def at_least(self, amount: int) -> NodeBits:
        """Return the nodes that have at least `amount`."""
        found = self._levels.get(amount)
        if found is None:
            found = bitmap.of([at for at, value in enumerate(self.values) if value >= amount])
            if len(self._levels) >= _MOST_LEVELS:
                del self._levels[next(iter(self._levels))]
            self._levels[amount] = found
        return found

    def among(self, nodes: NodeBits, amount: int) -> NodeBits:
        """Return those of `nodes` that have at least `amount`."""
        if amount in self._levels or nodes.bit_count() > _FEW:
            return nodes & self.at_least(amount)
        values = self.values
        short = [node for node in bitmap.indices(nodes) if values[node] < amount]
        return nodes & ~bitmap.of(short) if short else nodes

    def change(self, changes: Sequence[tuple[int, int]]) -> None:
        """Take over new amounts, as (node, amount)."""
        values = self.values
        if len(changes) == 1:
            node, now = changes[0]
            before = values[node]
            values[node] = now
            for amount, nodes in self._levels.items():
                if (before < amount) is not (now < amount):
                    self._levels[amount] = nodes ^ (1 << node)
            return
        for amount, nodes in self._levels.items():
            flipped = [node for node, now in changes if (values[node] < amount) is not (now < amount)]
            if flipped:
                self._levels[amount] = nodes ^ bitmap.of(flipped)
        for node, now in changes:
            values[node] = now

    def copy_into(self, twin: Amounts) -> None:
        """Let `twin` be a copy that has seen nothing of the history of its own books."""
        twin.values = self.values.copy()
        twin.seen = 0
        twin._levels = self._levels.copy()


class Table(Amounts):
    """Usable CPUs of each node, for one need."""

    __slots__ = ("_known", "key")

    def __init__(self, key: TableKey, books: Followed) -> None:
        super().__init__([0] * books.layout.size)
        self.key = key
        self._known: list[dict[CoreBits, int]] = [{} for _ in books.layout.shapes]
        self.follow(range(books.layout.size), books)

    def copy(self) -> Table:
        """Return an independent copy for other books."""
        twin = Table.__new__(Table)
        self.copy_into(twin)
        twin.key = self.key
        twin._known = self._known
        return twin

    def cpus_of(self, node: int, free: CoreBits, books: Followed) -> int:
        """Return the usable CPUs of a node with these free cores."""
        layout = books.layout
        shape = layout.shape_at[node]
        known = self._known[shape]
        cpus = known.get(free)
        if cpus is None:
            cpus = known[free] = usable_cpus(layout.shapes[shape], free, self.key.need)
        if self.key.partition is not None:
            cpus = max(0, min(cpus, self.key.limit - self._used_by_partition(node, books)))
        return cpus

    def _used_by_partition(self, node: int, books: Followed) -> int:
        """Return the CPUs of a node in rows of the partition with a limit (MaxCPUsPerNode)."""
        assert self.key.partition is not None
        part = books.parts.get(self.key.partition)
        if part is None:
            return 0
        cores = 0
        for row in part.rows:
            cores |= row.cores[node]
        return cores.bit_count() * books.layout.shape(node).threads

    def follow(self, nodes: Iterable[int], books: Followed) -> None:
        """Look at `nodes` again."""
        values, full, busy, shape_at = self.values, books.layout.full, books.busy, books.layout.shape_at
        limited, known, cpus_of = self.key.partition is not None, self._known, self.cpus_of
        changes = []
        for node in nodes:
            free = full[node] & ~busy[node]
            cpus = None if limited else known[shape_at[node]].get(free)
            if cpus is None:
                cpus = cpus_of(node, free, books)
            if cpus != values[node]:
                changes.append((node, cpus))
        if changes:
            self.change(changes)


class FreeMemory(Amounts):
    """Memory that each node has left."""

    __slots__ = ()

    def __init__(self, books: Followed) -> None:
        room = books.layout.memory
        super().__init__([each - used for each, used in zip(room, books.memory, strict=True)])

    def copy(self) -> FreeMemory:
        """Return an independent copy for other books."""
        twin = FreeMemory.__new__(FreeMemory)
        self.copy_into(twin)
        return twin

    def follow(self, nodes: Iterable[int], books: Followed) -> None:
        """Look at `nodes` again."""
        room, used = books.layout.memory, books.memory
        self.change([(node, room[node] - used[node]) for node in nodes])

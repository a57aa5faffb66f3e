"""See at a glance for which jobs there is no room even where gang lets jobs lie over others.

With gang a job may lie over the cores of lower tiers, and of other partitions of its own tier. It never lies over the
row of its own partition, nor over partitions of a higher tier or those that are OFF (slurm-gang-and-select 4.3.4
and 4.3.5). So what lacks nodes beside these finds none in any of the tests 1 to 4.
"""

from __future__ import annotations

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Partition
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.steps import Cores, Mode, is_banned, joined


class Beside:
    """Looks at the rows of one run's books."""

    def __init__(self, books: Books, mode: Mode) -> None:
        self._books = books
        self._mode = mode
        self._taken: dict[int, Cores] = {}
        """Cores out of reach, by index of the partition that asks."""
        self._at = -1
        """Version of the books that `_taken` is about."""

    def has_room(self, kind: Kind, nodes: NodeBits) -> bool:
        """Whether a job of `kind` might find a place on `nodes`; `sync` the books first.

        Memory and counted resources are not looked at. Where there are several rows, all might.
        """
        books, request = self._books, kind.request
        if self._mode.qos or books.layout.rows_in(request.partition) > 1 or kind.key.partition is not None:
            return True
        able = nodes & kind.able & request.partition.nodes
        if (able & ~books.busy_nodes).bit_count() >= request.min_nodes:
            return True
        full, wanted, dropped = books.layout.full, kind.wanted, []
        for index, cores in self._out_of_reach(request.partition).items():
            if able >> index & 1 and kind.idle.cpus_of(index, full[index] & ~cores, books) < wanted:
                dropped.append(index)
        return (able & ~bitmap.of(dropped)).bit_count() >= request.min_nodes

    def _out_of_reach(self, own: Partition) -> Cores:
        """Return the cores that a job of a partition with one row gets in none of the tests, by node."""
        books = self._books
        if self._at != books.version:
            self._at = books.version
            self._taken.clear()
        found = self._taken.get(own.index)
        if found is None:
            everywhere = bitmap.full(books.layout.size)
            part = books.parts.get(own.index)
            found = {} if part is None else books.cores_in([part], everywhere)
            if self._mode.partition_prio:
                parts = [books.parts[index] for index in sorted(books.parts)]
                banned = [each for each in parts if is_banned(each, own, self._mode)]
                found = joined(found, books.cores_in(banned, everywhere))
            self._taken[own.index] = found
        return found

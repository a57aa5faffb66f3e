"""Keep, for each kind of job, the nodes that have what it wants of each node beside all that are there.

The CPUs, the memory and, for whole nodes, that no job is there (slurm-gang-and-select 4.3.2, 4.3.3 and 4.3.6).
What changes is looked at node by node, not against the cluster.
"""

from __future__ import annotations

import attrs

from makeway.bitmap import NodeBits
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.table import Table

_MOST_KINDS = 10_000
_MANY = 64
"""After so many changes it is quicker to begin anew."""


@attrs.define(eq=False)
class _Fit:
    """The nodes that fit one kind."""

    table: Table
    able: NodeBits
    """Nodes of the partition that could serve it if they were idle."""
    nodes: NodeBits
    era: int
    seen: int
    """How much of the books' history it has followed."""
    wanted: int
    least_memory: int
    whole: bool
    all_memory: bool
    """Whether it wants all memory of its nodes."""


class Fitting:
    """The nodes that fit each kind of job, by the books as they are.

    Counted resources are not looked at, nor which jobs let others share.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._fits: dict[Kind, _Fit] = {}

    def nodes(self, kind: Kind) -> NodeBits:
        """Return the nodes of its partition that fit a job of `kind`; `sync` the books first."""
        books, fit = self._books, self._fits.get(kind)
        if fit is None or fit.era != books.era:
            return self._begin(kind)
        history, seen = books.history, len(books.history)
        if fit.seen < seen:
            if seen - fit.seen > _MANY:
                return self._begin(kind)
            table = fit.table
            if table.seen < seen:
                books.update(table)
            cpus, used, room = table.values, books.memory, books.layout.memory
            nodes, wanted, least = fit.nodes, fit.wanted, fit.least_memory
            for node in history[fit.seen :]:
                if (
                    cpus[node] >= wanted
                    and room[node] - used[node] >= least
                    and not (fit.whole and books.busy[node])
                    and not (fit.all_memory and used[node])
                ):
                    nodes |= 1 << node
                else:
                    nodes &= ~(1 << node)
            fit.nodes = nodes & fit.able
            fit.seen = seen
        return fit.nodes

    def _begin(self, kind: Kind) -> NodeBits:
        books, request = self._books, kind.request
        if len(self._fits) >= _MOST_KINDS:
            self._fits.clear()
        able = kind.able & request.partition.nodes
        table = books.table(kind.key)
        nodes = able & table.at_least(kind.wanted)
        if request.whole:
            nodes &= ~books.busy_nodes
        if kind.least_memory and nodes & books.charged_nodes:
            nodes = books.free_memory().among(nodes, kind.least_memory)
        elif request.memory_per_node == 0:
            nodes &= ~books.charged_nodes
        self._fits[kind] = _Fit(
            table,
            able,
            nodes,
            books.era,
            len(books.history),
            kind.wanted,
            kind.least_memory,
            request.whole,
            request.memory_per_node == 0,
        )
        return nodes

"""Counts of what jobs hold together, against sets that are made anew each time (slurm-priority-and-limits 6.2)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from makeway import bitmap
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.limits.counts import Count

NODES = st.frozensets(st.integers(0, 7), min_size=1, max_size=5)


@given(st.lists(st.tuples(st.booleans(), NODES), max_size=30))
def test_a_node_counts_once_whichever_jobs_come_and_go(moves: list[tuple[bool, frozenset[int]]]) -> None:
    """Jobs come to their nodes, and the first one there leaves: distinct nodes are counted, as GrpTRES=node says."""
    count = Count()
    there: list[frozenset[int]] = []
    for comes, nodes in moves:
        if comes or not there:
            there.append(nodes)
            count.settle(bitmap.of(sorted(nodes)))
        else:
            count.vacate(bitmap.of(sorted(there.pop(0))))
        plain = Counter(node for each in there for node in each)
        assert count.used(NODE) == len(plain)
        assert bitmap.indices(count.nodes) == sorted(plain)

"""Take a cover problem apart into pieces that do not touch each other.

Candidates that share a node with no other candidate stand alone; the others fall into the
connected components of the graph in which two candidates are joined by a node that both have to
leave. What is freed by a choice of victims is the sum of what is freed in each component, and so
are its victims and its price. A component is therefore fully described by its *options*: for so
many victims, so many nodes at such a price, best ones only.

The options of a component of several jobs come from an exact sweep (`options_of_component`).
Components with a single option besides "nothing" are alike if they free equally many nodes by
equally many victims; they are kept in a `Pile`, cheapest first: of alike components, taking any
but the cheapest *k* is never better.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from makeway_search_least_disruption.counting import Group, Groups
from makeway_search_least_disruption.effort import Effort

Option = tuple[int, int, int]
"""Victims, nodes freed, price."""
Bundle = tuple[int, Group]
"""Price, and the candidates of one component that are taken together, or not at all."""


class Pile:
    """Components alike: option *k* takes the *k* cheapest bundles."""

    def __init__(self, victims: int, nodes: int, bundles: Sequence[Bundle]) -> None:
        self._bundles = sorted(bundles)
        size = len(bundles) + 1
        spent = accumulate((price for price, _ in self._bundles), initial=0)
        counts, freed = range(0, size * victims, victims), range(0, size * nodes, nodes)
        self.options: list[Option] = list(zip(counts, freed, spent, strict=True))

    def jobs(self, at: int) -> list[int]:
        """Return the candidates of option `at`."""
        return [job for _, jobs in self._bundles[:at] for job in jobs]


class Menu:
    """One component with several options."""

    def __init__(self, options: Sequence[Option], jobs: Sequence[Group]) -> None:
        self.options = list(options)
        self._jobs = jobs

    def jobs(self, at: int) -> list[int]:
        """Return the candidates of option `at`."""
        return list(self._jobs[at])


Part = Pile | Menu


def parts_of(groups: Groups, price: Sequence[int], need: int, most: int, effort: Effort) -> list[Part]:
    """Return the parts of a cover problem.

    :param need: nodes to be freed; more than that are worth nothing.
    :param most: no more victims than this are of interest.
    :raises OutOfEffortError: if a component is too entangled.
    """
    shared = [group for group in groups if len(group) > 1]
    entangled = {job for group in shared for job in group}
    bundles: dict[tuple[int, int], list[Bundle]] = {}
    menus: list[Part] = []
    for group, nodes in groups.items():
        if len(group) == 1 and group[0] not in entangled:
            alike = bundles.setdefault((1, min(nodes, need)), [])
            alike.append((price[group[0]], group))
    for component in components(shared):
        if len(component) == 1 and not any((job,) in groups for job in component[0]):
            group, nodes = component[0], groups[component[0]]
            alike = bundles.setdefault((len(group), min(nodes, need)), [])
            alike.append((sum(price[job] for job in group), group))
            continue
        inside = [(group, groups[group]) for group in _with_own_nodes(component, groups)]
        options, jobs = options_of_component(inside, price, need, most, effort)
        if len(options) == 2:
            victims, nodes, cost = options[1]
            bundles.setdefault((victims, nodes), []).append((cost, jobs[1]))
        elif len(options) > 2:
            menus.append(Menu(options, jobs))
    piles: list[Part] = [Pile(*kind, bundles[kind]) for kind in sorted(bundles)]
    return piles + menus


def components(groups: Sequence[Group]) -> list[list[Group]]:
    """Return the connected components as lists of the groups in them."""
    leader: dict[int, int] = {}

    def find(job: int) -> int:
        root = job
        while leader.setdefault(root, root) != root:
            root = leader[root]
        while leader[job] != root:
            leader[job], job = root, leader[job]
        return root

    for group in groups:
        for job in group[1:]:
            leader[find(job)] = find(group[0])
    found: dict[int, list[Group]] = {}
    for group in groups:
        found.setdefault(find(group[0]), []).append(group)
    return list(found.values())


def _with_own_nodes(component: Sequence[Group], groups: Groups) -> list[Group]:
    """Add the nodes that one job of the component holds alone."""
    jobs = dict.fromkeys(job for group in component for job in group)
    return [*component, *((job,) for job in jobs if (job,) in groups)]


# --------------------------------------------------------------------- one entangled component
def options_of_component(
    groups: Sequence[tuple[Group, int]],
    price: Sequence[int],
    need: int,
    most: int,
    effort: Effort,
) -> tuple[list[Option], list[Group]]:
    """Return the options of one component that no other option beats, and the candidates of each.

    The jobs are decided one after the other, neighbours in a row. Two partial decisions differ for
    what is still to come only in the set of nodes of which some job is decided, some is not, and
    one has stayed; for each such set the best (victims, nodes, price) are kept. This is exact; its
    cost grows with the number of nodes open at a time, which is small where jobs hold blocks of
    nodes.
    """
    order = _row(groups)
    rank = {job: at for at, job in enumerate(order)}
    first = [min(rank[job] for job in group) for group, _ in groups]
    last = [max(rank[job] for job in group) for group, _ in groups]
    states: _States = {0: {(0, 0): (0, 0)}}
    for at, job in enumerate(order):
        mine = [g for g, (group, _) in enumerate(groups) if first[g] <= at <= last[g] and job in group]
        closing = [(1 << g, groups[g][1]) for g in mine if last[g] == at]
        keep = ~sum(bit for bit, _ in closing)
        touched = sum(1 << g for g in mine)
        grown: _States = {}
        for dead, entries in states.items():
            effort.spend(2 * len(entries))
            _merge(grown, (dead | touched) & keep, entries.items())
            if dead & touched == touched:
                continue  # all nodes of this job stay blocked: taking it is no use
            freed = sum(nodes for bit, nodes in closing if not dead & bit)
            taken = (
                ((v + 1, min(n + freed, need)), (c + price[job], jobs | 1 << at))
                for (v, n), (c, jobs) in entries.items()
                if v < most
            )
            _merge(grown, dead & keep, taken)
        states = {dead: _best(entries) for dead, entries in grown.items()}
    (final,) = states.values()
    options = [(v, n, c) for (v, n), (c, _) in final.items()]
    jobs = [tuple(sorted(order[at] for at in _bits(taken))) for _, taken in final.values()]
    return options, jobs


_Counts = tuple[int, int]
"""Victims, nodes freed."""
_Priced = tuple[int, int]
"""Price, and the jobs taken as bits in the order of the row."""
_Entries = dict[_Counts, _Priced]
_States = dict[int, _Entries]


def _merge(states: _States, key: int, entries: Iterable[tuple[_Counts, _Priced]]) -> None:
    into = states.setdefault(key, {})
    for counts, priced in entries:
        known = into.get(counts)
        if known is None or priced < known:
            into[counts] = priced


def _best(entries: _Entries) -> _Entries:
    """Drop what another entry beats in victims, nodes and price; fewest victims first."""
    prices: list[int] = []
    nodes: list[int] = []  # parallel to prices, both ascending
    kept: _Entries = {}
    listed = sorted(entries.items(), key=lambda item: (item[0][0], item[1], -item[0][1]))
    for (victims, freed), (cost, jobs) in listed:
        at = bisect_right(prices, cost)
        if at and nodes[at - 1] >= freed:
            continue
        kept[victims, freed] = (cost, jobs)
        stop = at
        while stop < len(nodes) and nodes[stop] <= freed:
            stop += 1
        prices[at:stop] = [cost]
        nodes[at:stop] = [freed]
    return kept


def _row(groups: Sequence[tuple[Group, int]]) -> list[int]:
    """Put the jobs of a component into a row, neighbours near: breadth first from an end."""
    near: dict[int, set[int]] = {}
    for group, _ in groups:
        for job in group:
            near.setdefault(job, set()).update(group)
    ends = [min(near, key=lambda job: (len(near[job]), job))]
    for _ in range(2):  # the last one reached lies at an end of the component
        ends.append(_breadth_first(near, ends[-1])[-1])
    return _breadth_first(near, ends[-1])


def _breadth_first(near: Mapping[int, set[int]], start: int) -> list[int]:
    row, seen = [start], {start}
    for job in row:
        ahead: list[tuple[int, int]] = []
        for other in near[job] - seen:
            insort(ahead, (len(near[other]), other))
        row += [other for _, other in ahead]
        seen.update(near[job])
    return row


def _bits(taken: int) -> list[int]:
    return [at for at in range(taken.bit_length()) if taken >> at & 1]

"""Choose one option of every part: enough nodes, the fewest victims, the least price.

Method, all in integers:

1. *How many victims.* Take any rate r = p/q (nodes per victim). An option that frees n nodes by v
   victims falls short of the best of its part by ``loss = max(q n' - p v') - (q n - p v) >= 0``.
   With K victims in all, enough nodes are freed if and only if the losses add up to no more than
   ``slack = p K + sum of the max - q need``. A negative slack rules K out. r is taken from the
   linear relaxation, for which the least K with a slack is the best bound; K grows from there
   until step 4 finds a choice, so the first K found is the least. For candidates that stand alone
   r is the size of the K-th largest one. The slack is what the K largest free too much, and the loss
   what a smaller one frees less: taking the largest first has no loss.
2. *What is settled already.* An option whose loss alone exceeds the slack is out. Where all
   candidates are of one size no loss is possible and one pile remains: its K cheapest are the
   answer.
3. *Price.* For any rates l (price per node) >= 0 and m (price per victim) the same argument bounds
   the price: ``l need + m K + sum of min(c - l n - m v)`` is no more than any choice with K
   victims costs, and an option adds its ``excess`` over that minimum. Choices whose excess exceeds
   the gap to one already known are out. l and m come from a secant search on the Lagrangian
   dual; poor ones cost time, never exactness.
4. *What is left* is decided by dynamic programming over (victims, loss), least price each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import attrs

from makeway_search_least_disruption.effort import Effort
from makeway_search_least_disruption.parts import Part, Pile

_SECANTS = 24
_FIRST_ALLOWANCE = 6
"""Binary places by which the first allowance is smaller than the gap."""


@attrs.frozen
class Rate:
    """Nodes per victim, as a fraction."""

    nodes: int
    victims: int


class Open(NamedTuple):
    """An option that is still open."""

    victims: int
    nodes: int
    price: int
    loss: int
    at: int
    """Its place in the part."""
    excess: int = 0
    """What it costs above the least of its part, victims and nodes at their rates."""


@attrs.frozen
class Row:
    """The open options of one part, fewest victims first."""

    part: int
    options: tuple[Open, ...]


def combine(parts: Sequence[Part], need: int, effort: Effort) -> list[int] | None:
    """Return the fewest and cheapest candidates that free enough nodes; None if all are too few.

    :raises OutOfEffortError: with ``effort.at_least`` telling what was proved.
    """
    if sum(_most_nodes(part) for part in parts) < need:
        return None
    rate = critical_rate(parts, need)
    best = [_best_gain(part, rate) for part in parts]
    total = sum(best)
    count = max(1, -(-(rate.victims * need - total) // rate.nodes))
    while True:
        effort.at_least = max(effort.at_least, count)
        slack = rate.nodes * count + total - rate.victims * need
        picks = _exactly(parts, best, rate, count, need, slack, effort)
        if picks is not None:
            return [job for part, at in picks for job in parts[part].jobs(at)]
        count += 1


def _most_nodes(part: Part) -> int:
    if isinstance(part, Pile):
        return part.options[-1][1]
    return max(nodes for _, nodes, _ in part.options)


# ---------------------------------------------------------------------------- 1. how many victims
def critical_rate(parts: Sequence[Part], need: int) -> Rate:
    """Return the rate at which the linear relaxation frees the last node needed."""
    steps = [step for part in parts for step in _steps(part)]
    steps.sort(key=lambda step: -step[0] / step[1])
    freed = 0
    for nodes, victims, times in steps:
        freed += nodes * times
        if freed >= need:
            return Rate(nodes, victims)
    raise AssertionError("all parts together free too few nodes, though they did before")


def _steps(part: Part) -> list[tuple[int, int, int]]:
    """Return the steps of the concave hull over nodes freed: nodes, victims, how often."""
    if isinstance(part, Pile):
        victims, nodes, _ = part.options[1]
        return [(nodes, victims, len(part.options) - 1)]
    hull = _hull([(victims, -nodes) for victims, nodes, _ in part.options])
    return [
        (-(freed - before), victims - fewer, 1)
        for (fewer, before), (victims, freed) in pairwise(hull)
        if freed < before
    ]


def _hull(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the lower convex hull of points that ascend in their first coordinate."""
    hull: list[tuple[int, int]] = []
    for x, y in points:
        if hull and hull[-1][0] == x:
            if hull[-1][1] <= y:
                continue
            hull.pop()
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _best_gain(part: Part, rate: Rate) -> int:
    ends = (part.options[0], part.options[-1]) if isinstance(part, Pile) else part.options
    return max(rate.victims * nodes - rate.nodes * victims for victims, nodes, _ in ends)


# --------------------------------------------------------------------- 2. what is settled already
def _exactly(
    parts: Sequence[Part],
    best: Sequence[int],
    rate: Rate,
    count: int,
    need: int,
    slack: int,
    effort: Effort,
) -> list[Pick] | None:
    """Return the cheapest choice of `count` victims; None if there is none."""
    rows = [Row(number, _within(part, best[number], rate, count, slack)) for number, part in enumerate(parts)]
    task = _settled(Task(rows, count, need, slack))
    if task is None:
        return None
    found = _cheapest(task, effort) if len(task.rows) > 1 else _decide(task, None, effort)
    return None if found is None else found.picks


Pick = tuple[int, int]
"""Part, option."""


@attrs.frozen
class Task:
    """What is still open: rows with more than one option, and what they have to come to."""

    rows: list[Row]
    count: int
    need: int
    slack: int
    price: int = 0
    excess: int = 0
    picks: list[Pick] = attrs.Factory(list)
    """What was settled, with its price and excess."""


def _settled(task: Task) -> Task | None:
    """Settle the rows that have one option left; None if there is no choice at all."""
    rows = task.rows
    if not all(row.options for row in rows):
        return None
    rows = _narrowed(rows, task.count)
    if not all(row.options for row in rows):
        return None
    settled = [(row.part, row.options[0]) for row in rows if len(row.options) == 1]
    return Task(
        [row for row in rows if len(row.options) > 1],
        task.count - sum(option.victims for _, option in settled),
        task.need - sum(option.nodes for _, option in settled),
        task.slack - sum(option.loss for _, option in settled),
        task.price + sum(option.price for _, option in settled),
        task.excess + sum(option.excess for _, option in settled),
        task.picks + [(part, option.at) for part, option in settled],
    )


def _within(part: Part, best: int, rate: Rate, count: int, slack: int) -> tuple[Open, ...]:
    """Return the options whose loss the slack allows."""
    first, stop = 0, len(part.options)
    if isinstance(part, Pile):
        victims, nodes, _ = part.options[1]
        gain = rate.victims * nodes - rate.nodes * victims
        stop = min(stop, count // victims + 1)
        if gain > 0:
            first = max(first, len(part.options) - 1 - slack // gain)
        elif gain < 0:
            stop = min(stop, slack // -gain + 1)
    found = []
    for at in range(first, stop):
        victims, nodes, price = part.options[at]
        loss = best - rate.victims * nodes + rate.nodes * victims
        if loss <= slack and victims <= count:
            found.append(Open(victims, nodes, price, loss, at))
    return tuple(found)


def _narrowed(rows: Sequence[Row], count: int) -> list[Row]:
    """Drop options that the other parts cannot complete to `count` victims."""
    least = sum(row.options[0].victims for row in rows)
    most = sum(row.options[-1].victims for row in rows)
    narrowed = []
    for row in rows:
        low = count - most + row.options[-1].victims
        high = count - least + row.options[0].victims
        kept = row.options
        if low > kept[0].victims or high < kept[-1].victims:
            kept = tuple(option for option in kept if low <= option.victims <= high)
        narrowed.append(Row(row.part, kept))
    return narrowed


# -------------------------------------------------------------------------------------- 3. price
@attrs.frozen
class Relaxed:
    """What the cheapest choice is if nodes have a price and victims may be taken in part."""

    per_node: int
    per_victim: int
    nodes: int
    price: int
    exact: bool
    """Whether no victim is taken in part."""


def _cheapest(task: Task, effort: Effort) -> Decision | None:
    """Decide under a small allowance of excess first, and under a larger one while that proves nothing.

    Any choice beyond an allowance costs more than the bound and the allowance together: one found that
    costs no more than that is the cheapest of all.
    """
    rows, bound, gap = _with_excess(task.rows, task.count, task.need)
    bound += task.price
    start = attrs.evolve(task, rows=rows)
    if gap is None:
        return _decide(start, None, effort)
    allowance = gap >> _FIRST_ALLOWANCE
    while True:
        found = _decide_within(start, allowance, effort)
        if allowance >= gap or (found is not None and found.price - bound <= allowance):
            return found
        if found is not None:
            gap = found.price - bound
        allowance = min(allowance * 4 + 1, gap)


def _decide_within(task: Task, allowance: int, effort: Effort) -> Decision | None:
    rows = [
        Row(row.part, tuple(option for option in row.options if option.excess <= allowance))
        for row in task.rows
    ]
    smaller = _settled(attrs.evolve(task, rows=rows))
    return None if smaller is None else _decide(smaller, allowance, effort)


def _with_excess(rows: Sequence[Row], count: int, need: int) -> tuple[list[Row], int, int | None]:
    """Find good rates, and note each option's excess at them.

    :returns: the rows, a lower bound of the price, and how much above it a choice already known is;
        None: none is known.
    """
    tried = _secants(rows, count, need)
    bounds = [_bound(rows, each.per_node, each.per_victim, count, need) for each in tried]
    bound, at = max((bound, -at) for at, bound in enumerate(bounds))
    rates = tried[-at]
    noted = []
    for row in rows:
        reduced = [_reduced(option, rates.per_node, rates.per_victim) for option in row.options]
        least = min(reduced)
        noted.append(
            Row(
                row.part,
                tuple(
                    option._replace(excess=cost - least)
                    for option, cost in zip(row.options, reduced, strict=True)
                ),
            )
        )
    known = [each.price for each in tried if each.exact and each.nodes >= need]
    return noted, bound, min(known) - bound if known else None


def _reduced(option: Open, per_node: int, per_victim: int) -> int:
    return option.price - per_node * option.nodes - per_victim * option.victims


def _bound(rows: Sequence[Row], per_node: int, per_victim: int, count: int, need: int) -> int:
    least = sum(min(_reduced(o, per_node, per_victim) for o in row.options) for row in rows)
    return per_node * need + per_victim * count + least


def _secants(rows: Sequence[Row], count: int, need: int) -> list[Relaxed]:
    """Look for the price per node at which just enough nodes are freed."""
    cheap = _relaxed(rows, count, 0)
    if cheap.nodes >= need:
        return [cheap]
    dear = _relaxed(rows, count, 1 + sum(row.options[-1].price for row in rows) * 2)
    tried = [cheap, dear]
    for _ in range(_SECANTS):
        if dear.nodes <= cheap.nodes or dear.price <= cheap.price:
            break
        middle = _relaxed(rows, count, (dear.price - cheap.price) // (dear.nodes - cheap.nodes))
        if any(middle.per_node == each.per_node for each in tried):
            break
        tried.append(middle)
        if middle.nodes >= need:
            dear = middle
        else:
            cheap = middle
    return tried


def _relaxed(rows: Sequence[Row], count: int, per_node: int) -> Relaxed:
    """Take the steps of all hulls, cheapest per victim first, until `count` victims are reached."""
    victims = nodes = price = 0
    steps: list[tuple[int, int, Open, Open]] = []
    for number, row in enumerate(rows):
        where: dict[int, tuple[int, Open]] = {}
        points = []
        for option in row.options:
            reduced = option.price - per_node * option.nodes
            if option.victims not in where or reduced < where[option.victims][0]:
                where[option.victims] = (reduced, option)
            points.append((option.victims, reduced))
        hull = _hull(points)
        start = where[hull[0][0]][1]
        victims, nodes, price = victims + start.victims, nodes + start.nodes, price + start.price
        for (fewer, before), (more, after) in pairwise(hull):
            slope = (after - before) // (more - fewer)
            steps.append((slope, number, where[fewer][1], where[more][1]))
    steps.sort(key=lambda step: step[:2])
    per_victim = 0
    for per_victim, _, old, new in steps:  # noqa: B007  # the last one taken, or the first one not
        if victims >= count:
            break
        victims += new.victims - old.victims
        nodes += new.nodes - old.nodes
        price += new.price - old.price
    return Relaxed(per_node, per_victim, nodes, price, victims == count)


# ------------------------------------------------------------------------------- 4. what is left
class Partial(NamedTuple):
    """The cheapest way to so many victims and such a loss in the parts decided so far."""

    price: int
    excess: int
    before: _Reached
    pick: int


_Reached = tuple[int, int]
"""Victims, loss."""
_Layer = dict[_Reached, Partial]


@attrs.frozen
class Decision:
    """A choice in all parts of a task."""

    price: int
    picks: list[Pick]


def _decide(task: Task, allowance: int | None, effort: Effort) -> Decision | None:
    """Decide part by part, the one with most options last, as only exact counts are left there."""
    rows = sorted(task.rows, key=lambda row: (len(row.options), row.part))
    least = sum(row.options[0].victims for row in rows)
    most = sum(row.options[-1].victims for row in rows)
    start = Partial(task.price, task.excess, (0, 0), 0)
    layers: list[_Layer] = [{(0, 0): start} if task.slack >= 0 else {}]
    for row in rows:
        least -= row.options[0].victims
        most -= row.options[-1].victims
        victims = (task.count - most, task.count - least)
        layers.append(_extended(layers[-1], row, victims, task.slack, allowance, effort))
    final = {reached: p for reached, p in layers[-1].items() if reached[0] == task.count}
    if not final:
        return None
    at = min(final, key=lambda reached: (final[reached].price, reached))
    price, picks = final[at].price, list(task.picks)
    for row, layer in zip(reversed(rows), layers[:0:-1], strict=True):
        picks.append((row.part, layer[at].pick))
        at = layer[at].before
    return Decision(price, picks)


def _extended(
    layer: _Layer,
    row: Row,
    victims: tuple[int, int],
    slack: int,
    allowance: int | None,
    effort: Effort,
) -> _Layer:
    """Decide one more part so that the victims so far lie within `victims`, both ends included."""
    low, high = victims
    counts = [option.victims for option in row.options]
    grown: _Layer = {}
    for reached, partial in layer.items():
        taken, loss = reached
        first, stop = bisect_left(counts, low - taken), bisect_right(counts, high - taken)
        effort.spend(1 + stop - first)
        for option in row.options[first:stop]:
            excess = partial.excess + option.excess
            if loss + option.loss > slack or (allowance is not None and excess > allowance):
                continue
            key = (taken + option.victims, loss + option.loss)
            price = partial.price + option.price
            if key not in grown or price < grown[key].price:
                grown[key] = Partial(price, excess, reached, option.at)
    return grown

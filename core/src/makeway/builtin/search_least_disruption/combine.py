"""Choose one option of every part, so that enough nodes are freed by the fewest victims, at the least price.

Method, all in integers:

1. *How many victims.* For any rate r = p/q (nodes per victim) an option that frees n nodes by v victims falls
   short of the best of its part by ``loss = max(q n' - p v') - (q n - p v) >= 0``. With K victims in all, enough
   nodes are freed if and only if the losses add up to no more than ``slack = p K + sum of the max - q need``. A
   negative slack rules K out. r is taken from the linear relaxation, for which the least K with a slack is the
   best bound; K grows from there until step 4 finds a choice, so the first K found is the least.
   For candidates that stand alone r is the size of the K-th largest one, the slack what the K largest free too
   much, and the loss what a smaller one frees less: taking the largest first is what has no loss.
2. *What is settled already.* An option whose loss alone exceeds the slack is out. Where all candidates are of
   one size no loss is possible and one pile remains: its K cheapest are the answer.
3. *Price.* For any rates l (price per node) >= 0 and m (price per victim) the same argument bounds the price:
   ``l need + m K + sum of min(c - l n - m v)`` is no more than any choice with K victims costs, and an option
   adds its ``excess`` over that minimum. Options whose excess exceeds the gap to a choice already known are out.
   l and m come from a secant search on the Lagrangian dual; poor ones cost time, never exactness.
4. *What is left* is decided by dynamic programming over (victims, loss), least price each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import attrs

from makeway.builtin.search_least_disruption.effort import Effort
from makeway.builtin.search_least_disruption.parts import Part, Pile

_SECANTS = 24


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
    """Return the candidates to take, fewest first, then cheapest; None if all of them free too few nodes.

    :raises OutOfEffortError: with ``effort.at_least`` telling what was proved.
    """
    if sum(part.options[-1][1] if isinstance(part, Pile) else _most_nodes(part) for part in parts) < need:
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
    return max(nodes for _, nodes, _ in part.options)


# ---------------------------------------------------------------------------- 1. how many victims
def critical_rate(parts: Sequence[Part], need: int) -> Rate:
    """Return the rate at which the linear relaxation frees the last node needed."""
    blocks = sorted(
        ((nodes / victims, nodes, victims, times) for part in parts for nodes, victims, times in _steps(part)),
        key=lambda block: -block[0],
    )
    freed = 0
    for _, nodes, victims, times in blocks:
        freed += nodes * times
        if freed >= need:
            break
    return Rate(nodes, victims)


def _steps(part: Part) -> list[tuple[int, int, int]]:
    """Return the steps of the concave hull over nodes freed: nodes, victims, how many such steps."""
    if isinstance(part, Pile):
        victims, nodes, _ = part.options[1]
        return [(nodes, victims, len(part.options) - 1)]
    hull = _hull([(victims, -nodes) for victims, nodes, _ in part.options])
    return [
        (-(freed - before), victims - fewer, 1)
        for (fewer, before), (victims, freed) in zip(hull, hull[1:], strict=False)
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


# ------------------------------------------------------------------------ 2. what is settled already
def _exactly(
    parts: Sequence[Part],
    best: Sequence[int],
    rate: Rate,
    count: int,
    need: int,
    slack: int,
    effort: Effort,
) -> list[tuple[int, int]] | None:
    """Return the cheapest choice of `count` victims as (part, option); None if there is none."""
    rows = [
        Row(number, _within(part, best[number], rate, count, slack))
        for number, part in enumerate(parts)
    ]
    rows = _narrowed(rows, count)
    if not all(row.options for row in rows):
        return None
    settled = [row for row in rows if len(row.options) == 1]
    rows = [row for row in rows if len(row.options) > 1]
    picks = [(row.part, row.options[0].at) for row in settled]
    count -= sum(row.options[0].victims for row in settled)
    need -= sum(row.options[0].nodes for row in settled)
    slack -= sum(row.options[0].loss for row in settled)
    if not rows:
        return picks if count == 0 and slack >= 0 else None
    gap = 0
    if len(rows) > 1:
        rows, gap = _affordable(rows, count, need)
    rest = _decide(rows, count, slack, gap, effort)
    return None if rest is None else picks + rest


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
    if not all(row.options for row in rows):
        return list(rows)
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


def _affordable(rows: Sequence[Row], count: int, need: int) -> tuple[list[Row], int]:
    """Drop options that no choice as cheap as one already known contains; return the gap left as well."""
    tried = _secants(rows, count, need)
    known = [each.price for each in tried if each.exact and each.nodes >= need]
    if not known:
        return list(rows), 0
    bounds = [_bound(rows, each.per_node, each.per_victim, count, need) for each in tried]
    gap, at = min((min(known) - bound, at) for at, bound in enumerate(bounds))
    rates = tried[at]
    kept = []
    for row in rows:
        reduced = [_reduced(option, rates.per_node, rates.per_victim) for option in row.options]
        least = min(reduced)
        options = (
            option._replace(excess=cost - least)
            for option, cost in zip(row.options, reduced, strict=True)
            if cost - least <= gap
        )
        kept.append(Row(row.part, tuple(options)))
    return kept, gap


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
        for (fewer, before), (more, after) in zip(hull, hull[1:], strict=False):
            slope = (after - before) // (more - fewer)
            steps.append((slope, number, where[fewer][1], where[more][1]))
    steps.sort(key=lambda step: step[:2])
    slope = steps[0][0] if steps else 0
    for slope, _, old, new in steps:
        if victims >= count:
            break
        victims += new.victims - old.victims
        nodes += new.nodes - old.nodes
        price += new.price - old.price
    return Relaxed(per_node, slope, nodes, price, victims == count)


# ----------------------------------------------------------------------------------- 4. what is left
class Partial(NamedTuple):
    """The cheapest way to so many victims and such a loss in the parts decided so far."""

    price: int
    excess: int
    before: _Reached
    pick: int


_Reached = tuple[int, int]
"""Victims, loss."""
_Layer = dict[_Reached, Partial]


def _decide(
    rows: Sequence[Row], count: int, slack: int, gap: int, effort: Effort
) -> list[tuple[int, int]] | None:
    """Decide part by part; the one with most options comes last, where exact counts are looked up."""
    rows = sorted(rows, key=lambda row: (len(row.options), row.part))
    least = sum(row.options[0].victims for row in rows)
    most = sum(row.options[-1].victims for row in rows)
    layers: list[_Layer] = [{(0, 0): Partial(0, 0, (0, 0), 0)}]
    for row in rows:
        least -= row.options[0].victims
        most -= row.options[-1].victims
        layers.append(_extended(layers[-1], row, (count - most, count - least), slack, gap, effort))
    if not layers[-1]:
        return None
    at = min(layers[-1], key=lambda reached: (layers[-1][reached].price, reached))
    picks = []
    for row, layer in zip(reversed(rows), reversed(layers), strict=False):
        picks.append((row.part, layer[at].pick))
        at = layer[at].before
    return picks


def _extended(
    layer: _Layer, row: Row, victims: tuple[int, int], slack: int, gap: int, effort: Effort
) -> _Layer:
    """Decide one more part so that the victims so far lie within `victims`, both ends included."""
    low, high = victims
    counts = [option.victims for option in row.options]
    grown: _Layer = {}
    for reached, partial in layer.items():
        taken, loss = reached
        open_options = row.options[
            bisect_left(counts, low - taken) : bisect_right(counts, high - taken)
        ]
        effort.spend(1 + len(open_options))
        for option in open_options:
            excess = partial.excess + option.excess
            if loss + option.loss > slack or excess > gap:
                continue
            key = (taken + option.victims, loss + option.loss)
            price = partial.price + option.price
            if key not in grown or price < grown[key].price:
                grown[key] = Partial(price, excess, reached, option.at)
    return grown

"""In a flat cohort of one pair the quick search finds whom the plain one finds, and shares compare alike."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from makeway_kueue_cohort import classic, classic_flat, fair, fair_flat
from makeway_kueue_cohort.books import Books, fits
from makeway_kueue_cohort.flat_search import flat_of
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.site import (
    STRATEGIES,
    Cohort,
    Group,
    Preemption,
    Queue,
    Quota,
    Sharing,
    Site,
    Within,
)
from makeway_kueue_cohort.stock import Stock

PAIR = ("default", "gpu")
WEIGHTS = (Fraction(0), Fraction(1), Fraction(1), Fraction(3), Fraction(5, 2), Fraction(1, 3))


def flat_site(dice: random.Random, sharing: Sharing = Sharing.FAIR) -> Site:
    """Return a few queues of one cohort with all sorts of policies, weights and limits."""
    queues = []
    for at in range(dice.randrange(2, 7)):
        limits: dict[str, Any] = {}
        if dice.random() < 0.3:
            limits["borrowing_limit"] = dice.randrange(6)
        if dice.random() < 0.3:
            limits["lending_limit"] = dice.randrange(6)
        queues.append(
            Queue(
                name=f"q{at}",
                cohort="top",
                quotas={PAIR: Quota(nominal=dice.randrange(9), **limits)},
                groups=(Group(resources=("gpu",), flavors=("default",)),),
                preemption=Preemption(
                    within_queue=dice.choice(list(Within)[:3]),
                    reclaim=dice.choice([Within.ANY, Within.ANY, Within.LOWER, Within.NEVER]),
                    borrow=dice.random() < 0.4,
                    max_priority=dice.choice([None, 0, 1]),
                ),
                weight=dice.choice(WEIGHTS),
            )
        )
    own = [Cohort(name="top", quotas={PAIR: Quota(nominal=dice.randrange(5))})] if dice.random() < 0.3 else []
    return Site(
        queues=queues,
        cohorts=own,
        sharing=sharing,
        rules=dice.choice(STRATEGIES),
        entitlement=dice.random() < 0.7,
    )


def crowded(dice: random.Random, books: Books) -> dict[str, Stock]:
    """Admit jobs until little is left; a few of them are leaving already."""
    held = {name: Stock(PAIR) for name in books.queues}
    for at in range(dice.randrange(4, 40)):
        node = books.queues[dice.choice(list(books.queues))]
        each = Workload(
            name=str(at),
            queue=node,
            uses={PAIR: dice.choice([0, 1, 1, 1, 2, 2, 3, 5])},
            priority=dice.randrange(3),
            created=float(dice.randrange(9)),
            admitted=float(dice.randrange(9)),
            uid=f"{at:03d}",
            evicted=dice.random() < 0.05,
        )
        if fits(node, each.uses):
            books.add(node, each.uses)
            held[node.name].put(each)
    return held


@pytest.mark.parametrize("sharing", list(Sharing))
@pytest.mark.parametrize("seed", range(6))
def test_the_quick_search_finds_the_same(seed: int, sharing: Sharing) -> None:
    """On 400 drawn books: the same victims for the same reasons, in the same order; the books are left alone."""
    dice = random.Random(seed)
    found = Counter[int]()
    for _ in range(400):
        books = Books(flat_site(dice, sharing))
        held = crowded(dice, books)
        node = books.queues[dice.choice(list(books.queues))]
        asking = Workload(
            name="new",
            queue=node,
            uses={PAIR: dice.randrange(1, 8)},
            priority=dice.randrange(3),
            created=float(dice.randrange(9)),
            uid="999",
        )
        if fits(node, asking.uses):
            continue
        flat = flat_of(asking, (PAIR,), books)
        if flat is None:
            assert not books.cohorts["top"].quota(PAIR)
            continue
        usage = {name: dict(each.usage) for name, each in books.queues.items()}
        ways = (fair_flat, fair) if sharing is Sharing.FAIR else (classic_flat, classic)
        quick = ways[0].choose(asking, flat, held, books)
        assert {name: dict(each.usage) for name, each in books.queues.items()} == usage
        plain = ways[1].choose(asking, (PAIR,), held, books)
        assert [(v.workload.name, v.reason) for v in quick] == [(v.workload.name, v.reason) for v in plain]
        found[len(plain)] += 1
    assert found[0] > 50
    assert found[1] > 10
    assert sum(count for size, count in found.items() if size > 1) > 10


def test_shares_compare_alike() -> None:
    """The whole numbers are in the order of the exact shares, and equal where these are."""
    dice = random.Random(1)
    for _ in range(300):
        books = Books(flat_site(dice))
        held = crowded(dice, books)
        assert held
        flat = books.flats.get("top")
        if flat is None:
            continue
        exact = [node.share() for node in books.queues.values()]
        whole = [flat.share(flat.members[name], node.used(PAIR)) for name, node in books.queues.items()]
        for one in range(len(exact)):
            for other in range(len(exact)):
                assert (exact[one] < exact[other]) == (whole[one] < whole[other])


def test_a_stock_keeps_its_order() -> None:
    """Whoever comes, leaves or is told to go: those who hold some of it stand as candidates do (section 4)."""
    dice = random.Random(2)
    books = Books(flat_site(dice))
    node = next(iter(books.queues.values()))
    stock, plain = Stock(PAIR), dict[str, Workload]()
    for at in range(300):
        each = Workload(
            name=str(dice.randrange(40)),
            queue=node,
            uses={PAIR: dice.randrange(3)},
            priority=dice.randrange(3),
            admitted=float(dice.randrange(5)),
            uid=f"{at:03d}",
            evicted=dice.random() < 0.2,
        )
        if dice.random() < 0.4:
            assert stock.remove(each.name) is plain.pop(each.name, None)
        else:
            stock.put(each)
            plain[each.name] = each
        holding = [each for each in plain.values() if each.uses[PAIR]]
        assert stock.in_order == sorted(holding, key=lambda w: (not w.evicted, w.rank))
        assert stock.sizes == [each.uses[PAIR] for each in stock.in_order]
        assert list(stock) == list(plain.values())

"""In a flat cohort of one pair, shares as whole numbers compare as exact ones do."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from makeway_kueue_cohort.books import Books, fits
from makeway_kueue_cohort.site import (
    Cohort,
    Group,
    Queue,
    Quota,
    Sharing,
    Site,
)

PAIR = ("default", "gpu")
WEIGHTS = (Fraction(0), Fraction(1), Fraction(1), Fraction(3), Fraction(5, 2), Fraction(1, 3))


def flat_site(dice: random.Random) -> Site:
    """Return a few queues of one cohort with all sorts of weights and limits."""
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
                weight=dice.choice(WEIGHTS),
            )
        )
    own = [Cohort(name="top", quotas={PAIR: Quota(nominal=dice.randrange(5))})] if dice.random() < 0.3 else []
    return Site(queues=queues, cohorts=own, sharing=Sharing.FAIR)


def crowd(dice: random.Random, books: Books) -> None:
    """Admit jobs until little is left."""
    for _ in range(dice.randrange(4, 40)):
        node, uses = books.queues[dice.choice(list(books.queues))], {PAIR: dice.choice([1, 1, 1, 2, 2, 3, 5])}
        if fits(node, uses):
            books.add(node, uses)


def test_shares_compare_alike() -> None:
    """The whole numbers are in the order of the exact shares, and equal where these are."""
    dice = random.Random(1)
    for _ in range(300):
        books = Books(flat_site(dice))
        crowd(dice, books)
        flat = books.flats.get("top")
        if flat is None:
            continue
        exact = [node.share() for node in books.queues.values()]
        whole = [flat.share(flat.members[name], node.used(PAIR)) for name, node in books.queues.items()]
        for one in range(len(exact)):
            for other in range(len(exact)):
                assert (exact[one] < exact[other]) == (whole[one] < whole[other])

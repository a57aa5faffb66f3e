"""What a search does not do: it takes no job in vain, and works out no share twice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import pytest

from makeway_kueue_cohort import decide, fair
from makeway_kueue_cohort.books import Books, Node
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.site import Amounts, Group, Preemption, Queue, Quota, Sharing, Site, Within

PAIR = ("default", "cpu")


class Counting(Books):
    """Books that count what is taken away."""

    taken = 0

    def take(self, queue: Node, uses: Amounts) -> None:
        """Count it."""
        self.taken += 1
        super().take(queue, uses)


def queue(name: str, nominal: int, *, borrow: bool = False, weight: int = 1) -> Queue:
    """Return a queue of the cohort that reclaims from all."""
    return Queue(
        name=name,
        cohort="all",
        quotas={PAIR: Quota(nominal=1000 * nominal)},
        groups=(Group(resources=("cpu",), flavors=("default",)),),
        preemption=Preemption(reclaim=Within.ANY, borrow=borrow),
        weight=Fraction(weight),
    )


def crowd(books: Books, name: str, sizes: Sequence[int]) -> list[Workload]:
    """Admit workloads of so many CPUs each."""
    node = books.queues[name]
    made = [
        Workload(
            name=f"{name}{at}", queue=node, uses={PAIR: 1000 * size}, admitted=float(at), uid=f"{at:03d}"
        )
        for at, size in enumerate(sizes)
    ]
    for each in made:
        books.add(node, each.uses)
    return made


def asking(books: Books, name: str, cpus: int) -> Workload:
    """Return a workload that waits."""
    return Workload(name="new", queue=books.queues[name], uses={PAIR: 1000 * cpus}, priority=9, uid="999")


@pytest.mark.parametrize(("nominal", "cpus"), [(0, 1), (3, 4)], ids=["no quota left", "more than its quota"])
def test_no_job_is_taken_where_no_search_can_succeed(nominal: int, cpus: int) -> None:
    """Without borrowWithinCohort a queue reclaims up to its own quota; a job that asks for more finds none at once."""
    books = Counting(Site(queues=[queue("a", nominal), queue("b", 20 - nominal)]))
    held = {"b": crowd(books, "b", [1] * 20)}
    assert decide.victims(asking(books, "a", cpus), (PAIR,), held, books) == ()
    assert books.taken == 0


def test_who_borrows_within_the_cohort_still_takes() -> None:
    """With borrowWithinCohort the same request takes four jobs of lower priority (kueue 2.4)."""
    books = Counting(Site(queues=[queue("a", 3, borrow=True), queue("b", 17)]))
    held = {"b": crowd(books, "b", [1] * 20)}
    found = decide.victims(asking(books, "a", 3), (PAIR,), held, books)
    assert len(found) == 3
    again = decide.victims(asking(books, "a", 4), (PAIR,), held, books)
    assert again == ()  # b would have to give of its own quota
    assert books.queues["b"].used(PAIR) == 20_000


def test_equal_workloads_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty borrowers of one size: the share that the first one's leaving makes is that of all."""
    books = Books(Site(queues=[queue("a", 0), queue("b", 40)], sharing=Sharing.FAIR))
    held = {"b": crowd(books, "b", [1] * 40)}
    calls = []
    passes = fair._Search._passes

    def counted(*given: object) -> bool:
        calls.append(given)
        return bool(passes(*given))  # type: ignore[arg-type]

    monkeypatch.setattr(fair._Search, "_passes", counted)
    held["b"] += crowd(books, "b", [1] * 10)
    fair.choose(attrs.evolve(asking(books, "a", 10), priority=0), (PAIR,), held, books)
    assert 1 <= len(calls) <= 2

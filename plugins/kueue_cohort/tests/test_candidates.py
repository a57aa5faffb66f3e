"""Candidates found the short way are those found one by one, and come in the same order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.fair import Ordering
from makeway_kueue_cohort.order import Workload, chosen_one_by_one, foreign, ordering, own
from makeway_kueue_cohort.site import Preemption, Queue, Quota, Site, Within

CPU, GPU = ("default", "cpu"), ("default", "gpu")
QUOTAS = {CPU: Quota(nominal=2), GPU: Quota(nominal=2)}
NAMES = ("a", "b", "c")
POLICIES = st.sampled_from(list(Within))
DRAWN = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 2),
        st.integers(0, 3),
        st.dictionaries(st.sampled_from([CPU, GPU]), st.integers(0, 3)),
        st.booleans(),
    ),
    max_size=12,
)


def books_of(within: Within, reclaim: Within) -> Books:
    """Return three queues of one cohort."""
    policy = Preemption(within_queue=within, reclaim=reclaim)
    return Books(Site(queues=[Queue(name=n, cohort="all", quotas=QUOTAS, preemption=policy) for n in NAMES]))


def drawn_in(
    books: Books, drawn: list[tuple[str, int, int, dict[tuple[str, str], int], bool]]
) -> list[Workload]:
    """Return admitted workloads as drawn."""
    return [
        Workload(
            name=str(at),
            queue=books.queues[name],
            uses=uses,
            priority=priority,
            created=at,
            admitted=since,
            uid=f"{at:03d}",
            evicted=evicted,
        )
        for at, (name, priority, since, uses, evicted) in enumerate(drawn)
    ]


@given(DRAWN, POLICIES, POLICIES, st.integers(0, 2), st.sampled_from([(CPU,), (GPU,), (CPU, GPU), ()]))
def test_the_same_are_candidates(
    drawn: list[tuple[str, int, int, dict[tuple[str, str], int], bool]],
    within: Within,
    reclaim: Within,
    priority: int,
    short: tuple[tuple[str, str], ...],
) -> None:
    """Whichever way they are found."""
    books = books_of(within, reclaim)
    workloads = drawn_in(books, drawn)
    preemptor = Workload(name="new", queue=books.queues["a"], uses={CPU: 1}, priority=priority, created=5.0)
    assert foreign(preemptor, workloads, short) == chosen_one_by_one(reclaim, preemptor, workloads, short)
    assert own(preemptor, workloads, short) == chosen_one_by_one(within, preemptor, workloads, short)


@given(DRAWN, st.sampled_from(NAMES))
def test_those_sorted_late_come_in_the_same_order(
    drawn: list[tuple[str, int, int, dict[tuple[str, str], int], bool]], name: str
) -> None:
    """Queues take turns alike, whether all are sorted before or each when it is wanted."""
    books = books_of(Within.ANY, Within.ANY)
    workloads = drawn_in(books, drawn)
    for each in workloads:
        books.add(each.queue, each.uses)
    queue = books.queues[name]
    rank = ordering(queue)
    found = {n: [each for each in workloads if each.queue.name == n] for n in NAMES}
    before = Ordering(queue, {n: sorted(each, key=rank) for n, each in found.items()}, rank)
    late = Ordering(queue, found, rank, sort=True)
    assert [before.pop(q) for q in before] == [late.pop(q) for q in late]

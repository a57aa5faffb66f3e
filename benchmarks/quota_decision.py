"""Time a decision of ``kueue/cohort`` among thousands of admitted workloads in a three-level tree of queues.

A queue reclaims its quota: 80 others have borrowed from it, one workload each. Beside it stands one sort of all
workloads in Kueue's order of candidates: a search that sorts them all costs more than that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence

from makeway_kueue_cohort import decide
from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.order import Workload, ordering
from makeway_kueue_cohort.site import Cohort, Group, Preemption, Queue, Quota, Sharing, Site, Within

PAIR = ("default", "cpu")
_QUEUES = 100
_IN_COHORT = 10


def site(sharing: Sharing, each: int) -> Site:
    """Return 100 queues of `each` CPUs in ten cohorts below one root."""
    policy = Preemption(reclaim=Within.ANY, within_queue=Within.LOWER)
    queues = [
        Queue(
            name=f"q{at}",
            cohort=f"c{at // _IN_COHORT}",
            quotas={PAIR: Quota(nominal=1000 * each)},
            groups=(Group(resources=("cpu",), flavors=("default",)),),
            preemption=policy,
        )
        for at in range(_QUEUES)
    ]
    cohorts = [Cohort(name=f"c{at}", parent="root") for at in range(_QUEUES // _IN_COHORT)]
    return Site(queues=queues, cohorts=[Cohort(name="root"), *cohorts], sharing=sharing)


def filled(sharing: Sharing, workloads: int) -> tuple[Books, dict[str, list[Workload]]]:
    """Return books of a full tree, of which the first queue lends most of its quota to the others."""
    each = workloads // _QUEUES
    books = Books(site(sharing, each))
    lent = each * 4 // 5
    held: dict[str, list[Workload]] = {}
    for at, (name, node) in enumerate(books.queues.items()):
        count = each - lent if not at else each + 1 if at <= lent else each
        held[name] = [
            Workload(
                name=f"{at}-{number}",
                queue=node,
                uses={PAIR: 1000},
                priority=number % 3,
                admitted=float(number * 7 % (each + 1)),
                created=float(number),
                uid=f"{at:03d}{number:05d}",
            )
            for number in range(count)
        ]
        for workload in held[name]:
            books.add(node, workload.uses)
    return books, held


def measured(sharing: Sharing, workloads: int, repeats: int) -> tuple[int, float, float]:
    """Return how many victims are found, and the milliseconds of the decision and of one sort, the best of several."""
    books, held = filled(sharing, workloads)
    queue = books.queues["q0"]
    cpus = workloads // _QUEUES * 3 // 10
    asking = Workload(name="new", queue=queue, uses={PAIR: 1000 * cpus}, priority=2, created=1e6, uid="new")
    found = _decide(asking, held, books)
    every = [workload for each in held.values() for workload in each]
    decision = _best(lambda: _decide(asking, held, books), repeats)
    plain = _best(lambda: sorted(every, key=ordering(queue)), repeats)
    return found, decision, plain


def _decide(asking: Workload, held: Mapping[str, Sequence[Workload]], books: Books) -> int:
    return len(decide.victims(asking, (PAIR,), held, books))


def _best(do: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        do()
        best = min(best, time.process_time() - began)
    return 1000 * best


def main() -> None:
    """Print the CPU time of a decision for both kinds of sharing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    print(
        f"{given.workloads} workloads in {_QUEUES} queues of a three-level tree; CPU ms, best of {given.repeats}"
    )
    print("sharing  victims  decision  one sort of all")
    for sharing in Sharing:
        victims, decision, plain = measured(sharing, given.workloads, given.repeats)
        print(f"{sharing.value:<8} {victims:7}  {decision:8.1f}  {plain:15.1f}")


if __name__ == "__main__":
    main()

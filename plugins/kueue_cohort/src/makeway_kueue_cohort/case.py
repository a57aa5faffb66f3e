"""Build sites, books and workloads from the tables of Kueue's own tests, as they are recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs

from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.site import (
    Cohort,
    Fungibility,
    Group,
    Pair,
    Preemption,
    Queue,
    Quota,
    Rule,
    Sharing,
    Site,
    Strategy,
    Within,
)

Data = Mapping[str, Any]
SMALLEST = 1000
"""What one unit of an amount is in thousandths."""


def amount(number: float) -> int:
    """Return an amount in thousandths."""
    return round(Fraction(str(number)) * SMALLEST)


def amounts(uses: Iterable[Data]) -> dict[Pair, int]:
    """Return what a workload uses."""
    found: dict[Pair, int] = {}
    for each in uses:
        pair = (str(each["flavor"]), str(each["resource"]))
        found[pair] = found.get(pair, 0) + amount(each["amount"])
    return found


def books_of(data: Data) -> Books:
    """Return the trees of a case, with what its admitted workloads use."""
    return Books(site_of(data))


def site_of(data: Data) -> Site:
    """Return the site that a case describes."""
    gates = data.get("gates", {})
    site = Site(
        queues=[_queue(each) for each in data.get("queues", ())],
        cohorts=[
            Cohort(
                name=each["name"],
                parent=each.get("parent"),
                quotas=_quotas(each["quotas"]),
                weight=_weight(each),
            )
            for each in data.get("cohorts", ())
        ],
        sharing=Sharing(data.get("sharing", "classic")),
        entitlement=gates.get("FairSharingPreemptWithinNominal", True),
        recompute_overlap=gates.get("RecomputeAssignmentUponPreemptionTargetsOverlap", True),
        by_local_queue=gates.get("AdmissionFairSharing", False),
        priority_within_cohort=gates.get("PrioritySortingWithinCohort", True),
    )
    if data.get("strategies"):
        site = attrs.evolve(site, rules=tuple(map(Rule, data["strategies"])))
    return site


def _weight(data: Data) -> Fraction:
    return Fraction(str(data.get("weight", 1)))


def _queue(data: Data) -> Queue:
    policies, fungibility = data.get("preemption", {}), data.get("fungibility", {})
    borrow = policies.get("borrow") or {}
    return Queue(
        name=data["name"],
        cohort=data.get("cohort"),
        quotas=_quotas(data["quotas"]),
        groups=_groups(data["quotas"]),
        preemption=Preemption(
            within_queue=Within(policies.get("within_queue", "Never")),
            # The API server fills an empty one with Never; Kueue itself tells Never and Any from all else.
            reclaim=Within(policies.get("reclaim", "Never") or "LowerPriority"),
            borrow=borrow.get("policy", "Never") == "LowerPriority",
            max_priority=borrow.get("max_priority"),
        ),
        fungibility=Fungibility(
            borrow_stops=fungibility.get("when_can_borrow", "MayStopSearch") != "TryNextFlavor",
            preempt_stops=fungibility.get("when_can_preempt", "TryNextFlavor") != "TryNextFlavor",
            preempt_first=fungibility.get("preference") == "PreemptionOverBorrowing",
        ),
        strategy=Strategy(data.get("strategy", "BestEffortFIFO")),
        weight=_weight(data),
    )


def _quotas(rows: Sequence[Data]) -> dict[Pair, Quota]:
    return {
        (row["flavor"], row["resource"]): Quota(
            nominal=amount(row["nominal"]),
            borrowing_limit=_limit(row, "borrowing_limit"),
            lending_limit=_limit(row, "lending_limit"),
        )
        for row in rows
    }


def _limit(row: Data, key: str) -> int | None:
    return None if row.get(key) is None else amount(row[key])


def _groups(rows: Sequence[Data]) -> tuple[Group, ...]:
    groups: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
    for row in rows:
        resources, flavors = groups.setdefault(row["group"], ({}, {}))
        resources[row["resource"]] = None
        flavors[row["flavor"]] = None
    return tuple(Group(resources=tuple(r), flavors=tuple(f)) for r, f in groups.values())


def workload(data: Data, books: Books, *, uses: Iterable[Data] = ()) -> Workload:
    """Return a workload of a case; `uses` is what it uses or asks for."""
    return Workload(
        name=data["name"],
        queue=books.queues[data["queue"]],
        uses=amounts(uses or data.get("uses", ())),
        priority=priority(data),
        created=data.get("created", -float("inf")),
        admitted=data.get("admitted"),
        uid=data.get("uid") or data["name"],
        evicted=data.get("evicted", False),
        local_queue=data.get("local_queue", ""),
        local_usage=data.get("local_queue_usage", 0.0),
    )


def priority(data: Data) -> int:
    """Return the effective priority; a boost that is no number is 0 (2.7)."""
    return int(data.get("priority", 0)) + boost_of(data.get("boost"))


def boost_of(annotation: object) -> int:
    """Return what the annotation of a boost adds: a whole number, or nothing."""
    try:
        return int(str(annotation))
    except ValueError:
        return 0


def admitted(data: Data, books: Books) -> dict[str, list[Workload]]:
    """Count the admitted workloads of a case in `books`, and return them by queue."""
    found: dict[str, list[Workload]] = {}
    for each in data["admitted"]:
        made = workload(each, books)
        books.add(made.queue, made.uses)
        found.setdefault(made.queue.name, []).append(made)
    return found

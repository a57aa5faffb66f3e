"""Hold what a site states: the keys of ``[policy.settings."kueue/cohort"]`` (kueue 1, 2, 6.1).

Amounts are cores, bytes and pieces, as people write them; `compiled` turns them into thousandths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs

from makeway.model import Duration
from makeway_kueue_cohort.site import (
    STRATEGIES,
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
    loops,
)

NAME = "kueue/cohort"
_AMOUNT = attrs.validators.ge(0.0)
_SOME = attrs.validators.optional(_AMOUNT)


def _one_of(*members: object) -> Any:
    return attrs.validators.in_(members)


@attrs.frozen(kw_only=True)
class QuotaTable:
    """The quota of one flavor and resource (1.2)."""

    flavor: str
    resource: str
    nominal: float = attrs.field(default=0.0, validator=_AMOUNT)
    borrowing_limit: float | None = attrs.field(default=None, validator=_SOME)
    """None: all that the tree has."""
    lending_limit: float | None = attrs.field(default=None, validator=_SOME)
    """None: all is lent."""
    group: int = 0
    """Number of the resource group; within a group a job takes all resources from one flavor (1.3)."""


@attrs.frozen(kw_only=True)
class QueueTable:
    """A ClusterQueue."""

    name: str
    cohort: str | None = None
    """None: it borrows from no queue."""
    quotas: tuple[QuotaTable, ...] = ()
    """In the order in which flavors are tried."""
    within_queue: Within = attrs.field(
        default=Within.NEVER, validator=_one_of(Within.NEVER, Within.LOWER, Within.LOWER_OR_NEWER)
    )
    """withinClusterQueue (2.1)."""
    reclaim: Within = attrs.field(
        default=Within.NEVER, validator=_one_of(Within.NEVER, Within.LOWER, Within.ANY)
    )
    """reclaimWithinCohort (2.2)."""
    borrow: Literal["Never", "LowerPriority"] = "Never"
    """borrowWithinCohort.policy (2.3)."""
    max_priority: int | None = None
    """borrowWithinCohort.maxPriorityThreshold; None: no threshold."""
    strategy: Strategy = Strategy.BEST_EFFORT
    """queueingStrategy (7.1)."""
    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor"] = "MayStopSearch"
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] = "BorrowingOverPreemption"
    weight: float = attrs.field(default=1.0, validator=_AMOUNT)
    """fairSharing.weight (6.2)."""


@attrs.frozen(kw_only=True)
class CohortTable:
    """A cohort; one that is only named by a queue need not be listed (1.4)."""

    name: str
    parent: str | None = None
    quotas: tuple[QuotaTable, ...] = ()
    """Of its own, beside those of its members."""
    weight: float = attrs.field(default=1.0, validator=_AMOUNT)


@attrs.frozen(kw_only=True)
class FlavorTable:
    """A ResourceFlavor: which nodes are of it. A flavor that is not listed is of all nodes."""

    name: str
    nodes: str | None = None
    """A host list; None: all nodes with `features`."""
    features: tuple[str, ...] = ()
    """Features that its nodes must all have, such as ``gpu=a100``."""


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."kueue/cohort"]``."""

    queue: tuple[QueueTable, ...] = ()
    cohort: tuple[CohortTable, ...] = ()
    flavor: tuple[FlavorTable, ...] = ()
    taints: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Flavor -> taints of its nodes, such as ``spot=true:NoSchedule``, but for those that it tolerates itself."""
    queue_by: Literal["partition", "account", "group", "qos", "user"] = "partition"
    """What of a job names its queue."""
    local_queues: Mapping[str, str] = attrs.field(factory=dict)
    """LocalQueue -> its ClusterQueue; names that are not listed are those of queues."""
    resources: Mapping[str, str] = attrs.field(factory=dict)
    """Counted resource of jobs -> the resource of quotas; left out: the one whose last part is its name."""
    sharing: Sharing = Sharing.CLASSIC
    strategies: tuple[Rule, ...] = attrs.field(
        default=(Rule.FINAL, Rule.INITIAL), validator=_one_of(*STRATEGIES)
    )
    """preemptionStrategies of fair sharing (6.1)."""
    preempt_within_nominal: bool = True
    """Gate FairSharingPreemptWithinNominal (6.7): on since 0.17."""
    priority_sorting: bool = True
    """Gate PrioritySortingWithinCohort (7.2)."""
    grace_time: Duration = attrs.field(default=0.0, validator=_AMOUNT)
    """terminationGracePeriodSeconds that pods use up: quota is free once they have stopped (8.1)."""

    def __attrs_post_init__(self) -> None:
        """Refuse what Kueue's own validation refuses.

        :raises ValueError: with all problems.
        """
        wrong = list(_problems(self))
        if wrong:
            raise ValueError("; ".join(wrong))


def _problems(settings: Settings) -> Iterator[str]:
    yield from _twice("queue", [each.name for each in settings.queue])
    yield from _twice("cohort", [each.name for each in settings.cohort])
    yield from _twice("flavor", [each.name for each in settings.flavor])
    for queue in settings.queue:
        yield from _of_quotas(f"queue {queue.name}", queue.quotas)
        if queue.borrow != "Never" and queue.reclaim is Within.NEVER:
            yield f"queue {queue.name}: borrow {queue.borrow} needs reclaim LowerPriority or Any"
        if queue.cohort is None:
            limited = [
                q for q in queue.quotas if q.borrowing_limit is not None or q.lending_limit is not None
            ]
            if limited:
                yield f"queue {queue.name}: limits on borrowing and lending need a cohort"
        for resource in dict.fromkeys(quota.resource for quota in queue.quotas):
            groups = {quota.group for quota in queue.quotas if quota.resource == resource}
            if len(groups) > 1:
                yield f"queue {queue.name}: resource {resource} stands in two groups"
    for cohort in settings.cohort:
        yield from _of_quotas(f"cohort {cohort.name}", cohort.quotas)
    for name in loops([Cohort(name=each.name, parent=each.parent) for each in settings.cohort]):
        yield f"cohort {name}: it is its own ancestor"
    queues = {each.name for each in settings.queue}
    for local, target in settings.local_queues.items():
        if target not in queues:
            yield f"local_queues.{local}: no queue named {target!r}"


def _of_quotas(where: str, quotas: Sequence[QuotaTable]) -> Iterator[str]:
    yield from _twice(f"{where}: quota of", [f"{q.flavor} {q.resource}" for q in quotas])
    for quota in quotas:
        if (
            quota.lending_limit is not None
            and quota.lending_limit > quota.nominal
            and where.startswith("queue")
        ):
            yield f"{where}: lending_limit of {quota.flavor} {quota.resource} is more than its nominal quota"


def _twice(what: str, names: Sequence[str]) -> Iterator[str]:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"{what} {name} is there twice"


# ------------------------------------------------------------------------------------- compiling
def compiled(settings: Settings) -> Site:
    """Return the site in thousandths."""
    return Site(
        queues=[_queue(each) for each in settings.queue],
        cohorts=[
            Cohort(
                name=each.name,
                parent=each.parent,
                quotas=_quotas(each.quotas),
                weight=Fraction(str(each.weight)),
            )
            for each in settings.cohort
        ],
        sharing=settings.sharing,
        rules=settings.strategies,
        entitlement=settings.preempt_within_nominal,
        priority_within_cohort=settings.priority_sorting,
    )


def _queue(table: QueueTable) -> Queue:
    groups: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
    for quota in table.quotas:
        resources, flavors = groups.setdefault(quota.group, ({}, {}))
        resources[quota.resource] = None
        flavors[quota.flavor] = None
    return Queue(
        name=table.name,
        cohort=table.cohort,
        quotas=_quotas(table.quotas),
        groups=tuple(Group(resources=tuple(r), flavors=tuple(f)) for r, f in groups.values()),
        preemption=Preemption(
            within_queue=table.within_queue,
            reclaim=table.reclaim,
            borrow=table.borrow != "Never",
            max_priority=table.max_priority,
        ),
        fungibility=Fungibility(
            borrow_stops=table.when_can_borrow == "MayStopSearch",
            preempt_stops=table.when_can_preempt == "MayStopSearch",
            preempt_first=table.preference == "PreemptionOverBorrowing",
        ),
        strategy=table.strategy,
        weight=Fraction(str(table.weight)),
    )


def _quotas(tables: Sequence[QuotaTable]) -> dict[Pair, Quota]:
    return {
        (each.flavor, each.resource): Quota(
            nominal=thousandths(each.nominal),
            borrowing_limit=None if each.borrowing_limit is None else thousandths(each.borrowing_limit),
            lending_limit=None if each.lending_limit is None else thousandths(each.lending_limit),
        )
        for each in tables
    }


def thousandths(amount: float) -> int:
    """Return an amount in thousandths."""
    return round(amount * 1000)

"""Describe queues, cohorts and their quotas as a site states them (kueue 1, 2).

All amounts are whole thousandths of what people write: millicores, thousandths of a byte or of a piece.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from fractions import Fraction

import attrs

Pair = tuple[str, str]
"""Flavor and resource."""
Amounts = Mapping[Pair, int]
"""Pair -> thousandths."""


class Within(enum.Enum):
    """What a queue preempts among its own, or in its cohort (2.1, 2.2)."""

    NEVER = "Never"
    LOWER = "LowerPriority"
    LOWER_OR_NEWER = "LowerOrNewerEqualPriority"
    ANY = "Any"


class Strategy(enum.Enum):
    """Which workload of a queue is tried (7.1)."""

    STRICT = "StrictFIFO"
    """The first alone; it holds up all behind it."""
    BEST_EFFORT = "BestEffortFIFO"
    """The next one if the first cannot be admitted."""


class Sharing(enum.Enum):
    """How victims in other queues are chosen (sections 5 and 6)."""

    CLASSIC = "classic"
    FAIR = "fair"


class Rule(enum.Enum):
    """When fair sharing lets a workload go (6.1, 6.8)."""

    FINAL = "LessThanOrEqualToFinalShare"
    INITIAL = "LessThanInitialShare"


STRATEGIES: tuple[tuple[Rule, ...], ...] = ((Rule.FINAL,), (Rule.INITIAL,), (Rule.FINAL, Rule.INITIAL))
"""What may be configured (6.1)."""


@attrs.frozen(kw_only=True)
class Quota:
    """The quota of one pair (1.2)."""

    nominal: int = 0
    borrowing_limit: int | None = None
    """None: all that the tree has."""
    lending_limit: int | None = None
    """None: all is lent."""


@attrs.frozen(kw_only=True)
class Group:
    """A resource group: within it a workload takes every resource from one flavor (1.3)."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]
    """In the order in which they are tried."""


@attrs.frozen(kw_only=True)
class Preemption:
    """The policies of a queue (section 2)."""

    within_queue: Within = Within.NEVER
    reclaim: Within = Within.NEVER
    borrow: bool = False
    """Whether it reclaims while it borrows (borrowWithinCohort LowerPriority)."""
    max_priority: int | None = None
    """Highest priority that it takes while it borrows; None: any."""


@attrs.frozen(kw_only=True)
class Fungibility:
    """When the next flavor is tried (7.3)."""

    borrow_stops: bool = True
    """whenCanBorrow: MayStopSearch."""
    preempt_stops: bool = False
    """whenCanPreempt: MayStopSearch."""
    preempt_first: bool = False
    """Preference PreemptionOverBorrowing."""


@attrs.frozen(kw_only=True)
class Queue:
    """A ClusterQueue."""

    name: str
    cohort: str | None = None
    """None: it borrows from no queue."""
    quotas: Mapping[Pair, Quota] = attrs.field(factory=dict)
    groups: tuple[Group, ...] = ()
    preemption: Preemption = Preemption()
    fungibility: Fungibility = Fungibility()
    strategy: Strategy = Strategy.BEST_EFFORT
    weight: Fraction = Fraction(1)


@attrs.frozen(kw_only=True)
class Cohort:
    """A cohort (1.4)."""

    name: str
    parent: str | None = None
    quotas: Mapping[Pair, Quota] = attrs.field(factory=dict)
    weight: Fraction = Fraction(1)


@attrs.frozen(kw_only=True)
class Site:
    """All queues and cohorts, and how they share."""

    queues: Sequence[Queue] = ()
    cohorts: Sequence[Cohort] = ()
    sharing: Sharing = Sharing.CLASSIC
    rules: tuple[Rule, ...] = (Rule.FINAL, Rule.INITIAL)
    entitlement: bool = True
    """FairSharingPreemptWithinNominal (6.7)."""
    recompute_overlap: bool = True
    """RecomputeAssignmentUponPreemptionTargetsOverlap (7.5)."""
    by_local_queue: bool = False
    """Admission Fair Sharing: heavy local queues lose first (4.3)."""
    priority_within_cohort: bool = True
    """PrioritySortingWithinCohort (7.2)."""


def loops(cohorts: Sequence[Cohort]) -> list[str]:
    """Return the names of cohorts that are their own ancestors, in order."""
    parents = {cohort.name: cohort.parent for cohort in cohorts}
    found = []
    for name in parents:
        seen, at = set[str](), parents.get(name)
        while at is not None and at not in seen and at != name:
            seen.add(at)
            at = parents.get(at)
        if at == name:
            found.append(name)
    return found

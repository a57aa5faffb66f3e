"""Name the reasons for which workloads are preempted (kueue 8.1)."""

from __future__ import annotations

import enum

import attrs

from makeway_kueue_cohort.order import Workload


class Reason(enum.Enum):
    """Reason of the condition Preempted."""

    IN_QUEUE = "InClusterQueue"
    RECLAMATION = "InCohortReclamation"
    WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
    FAIR = "InCohortFairSharing"

    @property
    def words(self) -> str:
        """The reason as Kueue tells it to people."""
        return _WORDS[self]

    @property
    def line(self) -> str:
        """The reason and its words; one string for all victims, since records keep it for each."""
        return _LINES[self]


_WORDS = {
    Reason.IN_QUEUE: "prioritization in the ClusterQueue",
    Reason.RECLAMATION: "reclamation within the cohort",
    Reason.WHILE_BORROWING: "reclamation within the cohort while borrowing",
    Reason.FAIR: "Fair Sharing within the cohort",
}
_LINES = {reason: f"{reason.value}: {words}" for reason, words in _WORDS.items()}


@attrs.frozen
class Victim:
    """A workload that has to leave, and why."""

    workload: Workload
    reason: Reason

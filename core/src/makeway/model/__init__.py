"""Define the values that the engine and its plugins speak of: cluster, jobs, placements, plans.

All values are frozen. `Job` is a read-only face as well: its fields change while a run goes on, but
only the engine changes them (`makeway_engine.ledger`); a plugin that tries gets an error.
Memory is in MB, time in seconds since the start of the replay, sets of nodes are bitmaps
(`makeway.bitmap`) in index order.
"""

from __future__ import annotations

from makeway.model.adopting import AdoptingGang, AdoptingSelector
from makeway.model.answers import (
    Blocked,
    Candidates,
    Check,
    Choice,
    Forecast,
    GangOrder,
    GangVerb,
    NodeSets,
    Overdue,
    Placement,
    Plan,
    Protection,
    Signal,
    Stay,
    Window,
)
from makeway.model.cluster import Cluster, ModeSetting, Node, OverSubscribe, Partition, Qos
from makeway.model.commands import Commands
from makeway.model.jobs import (
    Allocation,
    AllocationDraft,
    Job,
    JobDraft,
    JobSpec,
    SpecDraft,
    Usage,
    UserSignal,
    allotted,
    submitted,
)
from makeway.model.limits import Limits
from makeway.model.parts import Gang, QueuedGang, Selector, TellingGang
from makeway.model.queue_order import QueueOrder
from makeway.model.speed import (
    ForecastingSelector,
    ForesightedSelector,
    ScreeningSelector,
    StartsBy,
    Turns,
)
from makeway.model.values import (
    NOTHING,
    PREEMPTIONS_KEPT,
    Duration,
    Exclusive,
    JobState,
    ModeFlag,
    PreemptBasis,
    PreemptMode,
    ReadOnly,
    Seconds,
    Sharing,
    SuspendedBy,
    read_only,
)
from makeway.model.views import Attempt, Book, ClusterView, Cover, Roll, Witness
from makeway.model.words import Grouping, Listing, StatusCommand, Vocabulary

__all__ = [
    "NOTHING",
    "PREEMPTIONS_KEPT",
    "AdoptingGang",
    "AdoptingSelector",
    "Allocation",
    "AllocationDraft",
    "Attempt",
    "Blocked",
    "Book",
    "Candidates",
    "Check",
    "Choice",
    "Cluster",
    "ClusterView",
    "Commands",
    "Cover",
    "Duration",
    "Exclusive",
    "Forecast",
    "ForecastingSelector",
    "ForesightedSelector",
    "Gang",
    "GangOrder",
    "GangVerb",
    "Grouping",
    "Job",
    "JobDraft",
    "JobSpec",
    "JobState",
    "Limits",
    "Listing",
    "ModeFlag",
    "ModeSetting",
    "Node",
    "NodeSets",
    "OverSubscribe",
    "Overdue",
    "Partition",
    "Placement",
    "Plan",
    "PreemptBasis",
    "PreemptMode",
    "Protection",
    "Qos",
    "QueueOrder",
    "QueuedGang",
    "ReadOnly",
    "Roll",
    "ScreeningSelector",
    "Seconds",
    "Selector",
    "Sharing",
    "Signal",
    "SpecDraft",
    "StartsBy",
    "StatusCommand",
    "Stay",
    "SuspendedBy",
    "TellingGang",
    "Turns",
    "Usage",
    "UserSignal",
    "Vocabulary",
    "Window",
    "Witness",
    "allotted",
    "read_only",
    "submitted",
]

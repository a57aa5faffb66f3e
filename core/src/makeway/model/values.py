"""Define the terms that all other values are made of: time, and the closed sets of states and modes."""

from __future__ import annotations

import copyreg
import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Seconds = float
"""Seconds since the start of the replay (instants) or a length of time."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


def _read_only(content: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(content) if content else NOTHING


def _reduced(mapping: MappingProxyType[str, Any]) -> tuple[Any, ...]:
    return _read_only, (dict(mapping),)


# Python cannot pickle read-only views by itself; jobs and configurations go to other processes (sweeps).
copyreg.pickle(MappingProxyType, _reduced)

PREEMPTIONS_KEPT = 100
"""The most instants that `Job.preempted_at` holds."""


class PreemptMode(enum.Enum):
    """How a victim makes way.

    Four answers name one; where several do, the last one counts.

    | order | answer | about whom |
    |---|---|---|
    | 1 | `Candidates.modes` | every candidate: so it is removed while victims are sought |
    | 2 | `Choice.modes`, unless empty | the victims |
    | 3 | `Plan.mode` | the victims; what is done in the end |

    `makeway_preempt_mode` (``view.mode_of``) is none of these: it is asked about jobs that no search chose.
    These are jobs that lie under another on the cores that both hold, and what the arbiter does to them.
    If nobody answers it, the cluster-wide mode counts.
    """

    OFF = "off"
    """It does not: nothing is done to the job."""
    SUSPEND = "suspend"
    """It stops and keeps its memory; it resumes on the same nodes."""
    CHECKPOINT = "checkpoint"
    """Its state is saved, it leaves its nodes, and starts again from the last checkpoint."""
    REQUEUE = "requeue"
    """It is terminated and waits again; the work is lost."""
    CANCEL = "cancel"
    """It is terminated for good; the work is lost."""

    def __init__(self, value: str) -> None:
        self._frees_all = value in ("checkpoint", "requeue", "cancel")

    @property
    def frees_all(self) -> bool:
        """Whether the victim gives back everything that it holds (memory and licences too)."""
        return self._frees_all


class ModeFlag(enum.Enum):
    """Modifiers that stand beside a mode (Slurm)."""

    GANG = "gang"
    """The gang arbiter suspends and resumes."""
    WITHIN = "within"
    """Jobs of one QOS may displace each other, by priority."""
    PRIORITY = "priority"
    """The preemptor's own priority counts as well."""


class JobState(enum.Enum):
    """Where a job stands."""

    PENDING = "PENDING"
    """It waits."""
    RUNNING = "RUNNING"
    """It runs."""
    SUSPENDED = "SUSPENDED"
    """It is stopped, and holds its nodes and memory."""
    COMPLETING = "COMPLETING"
    """It has ended, and its nodes are not clean yet."""
    COMPLETED = "COMPLETED"
    """It ended by itself."""
    FAILED = "FAILED"
    """It ended with an error, or can never run."""
    CANCELLED = "CANCELLED"
    """A person ended it."""
    PREEMPTED = "PREEMPTED"
    """It was ended for another job."""
    TIMEOUT = "TIMEOUT"
    """It reached its time limit."""
    NODE_FAIL = "NODE_FAIL"
    """A node of it failed."""

    @property
    def ended(self) -> bool:
        """Whether the job will never run again."""
        return self not in _LIVE_STATES

    @property
    def active(self) -> bool:
        """Whether the job holds nodes and may be a victim: running or suspended."""
        return self is _RUNNING or self is JobState.SUSPENDED


_RUNNING = JobState.RUNNING
_LIVE_STATES = frozenset({JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})


class SuspendedBy(enum.Enum):
    """Who stopped a suspended job."""

    POLICY = "policy"
    """The gang arbiter or a preemption: it is resumed by the same arbiter."""
    ADMIN = "admin"
    """A person: only a person resumes it."""


class Sharing(enum.Enum):
    """Whether jobs of a partition share nodes or cores (Slurm OverSubscribe)."""

    NO = "NO"
    """Each resource has one job."""
    EXCLUSIVE = "EXCLUSIVE"
    """Each node has one job."""
    YES = "YES"
    """Jobs share if they ask to."""
    FORCE = "FORCE"
    """Jobs share whether they ask to or not."""


class Exclusive(enum.Enum):
    """With whom a job refuses to share its nodes."""

    NODE = "node"
    """With nobody: whole nodes."""
    USER = "user"
    """With jobs of other users."""
    MCS = "mcs"
    """With jobs of another security label."""


class PreemptBasis(enum.Enum):
    """What decides which jobs may displace others, as far as selectors have to know it.

    A preempt plugin says so with `makeway.hookspecs.based_on`. Selectors that model a scheduler ask the view for
    it, and never for the plugin's name.
    """

    NOTHING = "nothing"
    """Nobody displaces anybody: preemption is off."""
    PARTITION = "partition"
    """The tiers of partitions: the job of a higher tier may be laid over one of a lower tier."""
    QOS = "qos"
    """The rules of the jobs' QOS, whatever their partitions."""
    OTHER = "other"
    """Something else, or the plugin does not say."""

"""Define the terms that all other values are made of: time, and the closed sets of states and modes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import attrs

Seconds = float
"""Seconds since the start of the replay (instants) or a length of time."""
Duration = Annotated[float, "a length of time"]
"""Seconds in settings, which people may write as ``2h`` too (`makeway.plain.duration`)."""


class ReadOnly(dict[Any, Any]):
    """A mapping that refuses to be changed: what values of the contract hold."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("values of the contract are read-only; make a dict of it first")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be copied, and go to another process."""
        return read_only, (dict(self),)


NOTHING: Mapping[str, Any] = ReadOnly()


def read_only(value: Any) -> Any:
    """Return a table or list, and whatever is in it, such that nothing can change it; other values as they are."""
    kind = type(value)
    if kind is ReadOnly or kind is str:
        return value
    if isinstance(value, Mapping):
        return ReadOnly({key: read_only(each) for key, each in value.items()}) if value else NOTHING
    return tuple(map(read_only, value)) if kind in (list, tuple) else value


def mapping(*, eq: bool = True) -> Any:
    """Return a field that holds a mapping, empty unless it is given."""
    return attrs.field(default=NOTHING, converter=read_only, on_setattr=attrs.setters.NO_OP, eq=eq)


PREEMPTIONS_KEPT = 100
"""The most instants that `Job.preempted_at` holds."""


class PreemptMode(enum.Enum):
    """How a victim makes way.

    Four answers name one; where several do, the last one counts.

    | order | answer | about which jobs |
    |---|---|---|
    | 1 | `Candidates.modes` | every candidate: so it is removed while victims are sought |
    | 2 | `Choice.modes`, unless empty | the victims |
    | 3 | `Plan.mode` | the victims; what is done in the end |

    `makeway_preempt_mode` (``view.mode_of``) is none of these: it is asked about jobs that no search chose.
    These are jobs that lie under another on the cores that both hold, and what the arbiter does to them.
    If no plugin answers it, the cluster-wide mode counts.
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
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    """The kernel killed processes of it that went over its memory."""

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
    """Which jobs a job refuses to share its nodes with."""

    NODE = "node"
    """With none: whole nodes."""
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
    """No job displaces another: preemption is off."""
    PARTITION = "partition"
    """The tiers of partitions: the job of a higher tier may be laid over one of a lower tier."""
    QOS = "qos"
    """The rules of the jobs' QOS, whatever their partitions."""
    OTHER = "other"
    """Something else, or the plugin does not say."""

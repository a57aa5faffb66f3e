"""Say what a site is made of once its files are understood: queues, applications, levels (lsf 4.1, 9.3)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs

from makeway.bitmap import NodeBits
from makeway.errors import Problem
from makeway.model import Cluster, Job, Partition, Seconds
from makeway_lsf_queue.asking import KEY, together
from makeway_lsf_queue.controls import Manner
from makeway_lsf_queue.preemption_line import PreemptionLine
from makeway_lsf_queue.requirement import Order, Requirement, requirement, selected
from makeway_lsf_queue.settings import Settings
from makeway_lsf_queue.shares import Shares
from makeway_lsf_queue.values import Portion, WrongValueError
from makeway_lsf_queue.windows import Window

Rank = tuple[int, int, int, int]
"""Has no number, number descending, priority ascending, place in the file (3.2, regime P)."""


@attrs.frozen(kw_only=True)
class Level:
    """Protections as set at one level: a queue, an application, or the cluster (4.1); None: not set there."""

    run_time: Portion | None = None
    finish_time: Portion | None = None
    interval: Seconds | None = None
    most: int | None = None
    """MAX_JOB_PREEMPT."""
    reset: bool | None = None
    total_time: Seconds | None = None
    delay: Seconds | None = None
    """PREEMPT_DELAY."""

    def over(self, wider: Level) -> Level:
        """Return this level where it says something, `wider` where it does not."""
        mine = {key: value for key, value in attrs.asdict(self, recurse=False).items() if value is not None}
        return attrs.evolve(wider, **mine)


@attrs.frozen(kw_only=True, eq=False)
class Queue:
    """A queue, understood."""

    name: str
    index: int
    priority: int
    partition: Partition
    line: PreemptionLine = attrs.field(factory=PreemptionLine)
    manner: Manner = attrs.field(factory=Manner)
    at_window: Manner = attrs.field(factory=Manner)
    """What happens to its running jobs when the run window closes."""
    run_window: tuple[Window, ...] = ()
    """RUN_WINDOW; empty: always open."""
    dispatch_window: tuple[Window, ...] = ()
    """DISPATCH_WINDOW; empty: always open."""
    level: Level = attrs.field(factory=Level)
    backfill: bool = False
    interruptible: Seconds | None = None
    """INTERRUPTIBLE_BACKFILL: the shortest gap that is worth using; None: its jobs do not run in gaps."""
    requeues_killed: bool = False
    """Whether REQUEUE_EXIT_VALUES lets a killed job wait again."""
    reserve_turns: int | None = None
    """SLOT_RESERVE's MAX_RESERVE_TIME; None: its jobs do not reserve."""
    rerunnable: bool = False
    checkpointable: bool = False
    mig: Seconds | None = None
    accept_interval: int | None = None
    """JOB_ACCEPT_INTERVAL, in turns; None: the cluster's."""
    exclusive: bool = False
    """EXCLUSIVE: whether it takes exclusive jobs, by its own account."""
    ignores_sla: bool = False
    users: str = ""
    """USERS; empty: all users."""
    preferred: tuple[NodeBits, ...] = ()
    """Its hosts by the preference that HOSTS states, best first; empty: it states none (9.3)."""
    selected: NodeBits = -1
    """The hosts that select[...] of RES_REQ lets in; all bits: it states none."""
    unselected: tuple[str, ...] = ()
    """What select[...] asks for and is not known here of any host."""
    shares: Shares | None = None
    """FAIRSHARE; None: its jobs are dispatched in order of submission."""
    job_limit: int | None = None
    user_limit: int | None = None
    host_limit: int | None = None
    processor_limit: float | None = None


@attrs.frozen(kw_only=True, eq=False)
class Application:
    """An application profile, understood."""

    level: Level = attrs.field(factory=Level)
    run_time: Seconds | None = None
    """RUNTIME: estimated."""
    run_limit: Seconds | None = None
    """RUNLIMIT."""
    rerunnable: bool | None = None
    checkpointable: bool | None = None
    mig: Seconds | None = None


@attrs.frozen(kw_only=True, eq=False, slots=False)  # with slots, cached properties slow each look at a field
class Site:
    """Everything that decisions need."""

    cluster: Cluster
    settings: Settings
    queues: Mapping[str, Queue]
    applications: Mapping[str, Application]
    cluster_level: Level
    preempt_for: frozenset[str]
    jobtypes: frozenset[str]
    resources: tuple[str, ...]
    """PREEMPTABLE_RESOURCES."""
    use_susp_slots: bool
    turn: Seconds
    """MBD_SLEEP_TIME."""
    accept_interval: int
    """JOB_ACCEPT_INTERVAL, in turns."""
    exclusive_may: bool
    """Whether exclusive jobs preempt and are preempted (4.4)."""
    gpus: bool
    """Whether GPU jobs preempt GPU jobs (8.3)."""
    targets: Mapping[str, Mapping[str, Rank]]
    """Queue -> whose jobs it may take, in which order."""
    problems: tuple[Problem, ...] = ()
    """What cannot be understood."""
    oddities: tuple[Problem, ...] = ()
    """What can, but hardly means what was wanted."""

    @functools.cached_property
    def slots_of(self) -> dict[tuple[str, str], tuple[bool, frozenset[str]]]:
        """Two queues -> whether one may use the slots of suspended jobs of the other; filled by `gaps`."""
        return {}

    def may_preempt(self, queue: str, other: str) -> bool:
        """Whether jobs of `queue` may take jobs of `other`."""
        return other in self.targets.get(queue, ())

    def related(self, queue: str, other: str) -> bool:
        """Whether either may preempt the other."""
        return self.may_preempt(queue, other) or self.may_preempt(other, queue)

    @functools.cached_property
    def preemption(self) -> bool:
        """Whether preemption is on at all (row 1)."""
        return any(self.targets.values())

    @functools.cached_property
    def has_shares(self) -> bool:
        """Whether any queue has FAIRSHARE."""
        return any(queue.shares is not None for queue in self.queues.values())

    @functools.cached_property
    def has_run_windows(self) -> bool:
        """Whether any queue has a RUN_WINDOW."""
        return any(queue.run_window for queue in self.queues.values())

    @functools.cached_property
    def has_windows(self) -> bool:
        """Whether any queue has a RUN_WINDOW or a DISPATCH_WINDOW."""
        return self.has_run_windows or any(queue.dispatch_window for queue in self.queues.values())

    @functools.cached_property
    def protections(self) -> frozenset[str]:
        """What of `Level` is set anywhere."""
        return frozenset(
            field.name
            for field in attrs.fields(Level)
            if any(getattr(level, field.name) is not None for level in self.levels)
        )

    @functools.cached_property
    def has_migration(self) -> bool:
        """Whether MIG is set of any queue, application or host."""
        times = [queue.mig for queue in self.queues.values()]
        times += [application.mig for application in self.applications.values()]
        hosts = self.cluster.nodes
        return any(time is not None for time in times) or any(node.attributes.get("MIG") for node in hosts)

    @functools.cached_property
    def has_reserving_queues(self) -> bool:
        """Whether jobs of any queue collect slots."""
        return any(queue.reserve_turns is not None for queue in self.queues.values())

    @functools.cached_property
    def paces(self) -> bool:
        """Whether any host is left alone after it was given a job (JOB_ACCEPT_INTERVAL)."""
        return bool(self.accept_interval or any(queue.accept_interval for queue in self.queues.values()))

    @functools.cached_property
    def has_gaps(self) -> bool:
        """Whether jobs of any queue run in gaps until others start (INTERRUPTIBLE_BACKFILL)."""
        return any(queue.interruptible is not None for queue in self.queues.values())

    @functools.cached_property
    def may_backfill(self) -> bool:
        """Whether jobs of any queue may use slots that another one's collect."""
        return self.has_reserving_queues and any(queue.backfill for queue in self.queues.values())

    @functools.cached_property
    def levels(self) -> tuple[Level, ...]:
        """What is set of protections anywhere."""
        queues, applications = self.queues.values(), self.applications.values()
        return (
            self.cluster_level,
            *(each.level for each in queues),
            *(each.level for each in applications),
        )

    def queue_of(self, job: Job) -> Queue:
        """Return the queue of a job."""
        return self.queues[job.partition.name]

    def unselected(self, job: Job) -> NodeBits:
        """Return the hosts of its queue that select[...] shuts out, of the queue or of the job: both have to hold."""
        bits = self.queue_of(job).selected
        if KEY in job.spec.attributes:
            bits &= self._selected(str(job.spec.attributes[KEY]))
        return job.partition.nodes & ~bits

    def asked_of(self, job: Job) -> Requirement:
        """Return RES_REQ of a job and of its queue, as both hold together.

        :raises WrongValueError: the job's own is none.
        """
        queue = job.partition.attributes.get("RES_REQ", "")
        return together(str(queue), str(job.spec.attributes.get(KEY, "")))

    def order_of(self, job: Job) -> Order:
        """Return what the hosts of a job are sorted by (order); empty: it does not say, or was refused."""
        try:
            return self.asked_of(job).order
        except WrongValueError:
            return ()

    @functools.cached_property
    def _selected(self) -> Callable[[str], NodeBits]:
        @functools.lru_cache(maxsize=4096)
        def bits(text: str) -> NodeBits:
            return selected(requirement(text), self.cluster.nodes)

        return bits

    def application_of(self, job: Job) -> Application:
        """Return the application profile of a job, an empty one if it has none."""
        return self.applications.get(str(job.spec.attributes.get("application", "")), _NO_APPLICATION)

    def level_of(self, job: Job) -> Level:
        """Return the protections in force: application over queue over cluster (4.1)."""
        name = str(job.spec.attributes.get("application", ""))
        return self._level(name, job.partition.name)

    @functools.cached_property
    def _level(self) -> Callable[[str, str], Level]:
        @functools.lru_cache(maxsize=4096)
        def level(application: str, queue: str) -> Level:
            own = self.applications.get(application, _NO_APPLICATION).level
            return own.over(self.queues[queue].level).over(self.cluster_level)

        return level


_NO_APPLICATION = Application()

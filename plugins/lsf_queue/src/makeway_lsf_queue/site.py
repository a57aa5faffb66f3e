"""Compile a site's configuration once: queues, who may preempt whom, and in which order (spec lsf 2, 3.2, 4.1)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from makeway.errors import ConfigError, Problem
from makeway.model import Cluster, ClusterView, Job, Partition, Seconds
from makeway_lsf_queue import values
from makeway_lsf_queue.controls import Manner, job_controls, manner_of, terminate_when
from makeway_lsf_queue.preemption_line import PreemptionLine, preemption_line
from makeway_lsf_queue.settings import NAME, Settings
from makeway_lsf_queue.values import Portion, WrongValue

T = TypeVar("T")

PREEMPT_FOR = (
    *("GROUP_JLP", "GROUP_MAX", "HOST_JLU", "LEAST_RUN_TIME", "MINI_JOB", "OPTIMAL_MINI_JOB", "USER_JLP"),
)
JOBTYPES = ("EXCLUSIVE", "BACKFILL", "AFFINITY")

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
    line: PreemptionLine = PreemptionLine()
    manner: Manner = Manner()
    level: Level = Level()
    backfill: bool = False
    interruptible: Seconds | None = None
    reserve_turns: int | None = None
    """SLOT_RESERVE's MAX_RESERVE_TIME; None: its jobs do not reserve."""
    rerunnable: bool = False
    checkpointable: bool = False
    mig: Seconds | None = None
    ignores_sla: bool = False
    job_limit: int | None = None
    user_limit: int | None = None
    host_limit: int | None = None
    processor_limit: float | None = None


@attrs.frozen(kw_only=True, eq=False)
class Application:
    """An application profile, understood."""

    level: Level = Level()
    run_time: Seconds | None = None
    """RUNTIME: estimated."""
    rerunnable: bool | None = None
    checkpointable: bool | None = None
    mig: Seconds | None = None


@attrs.frozen(kw_only=True, eq=False)
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
    exclusive_may: bool
    """Whether exclusive jobs preempt and are preempted (4.4)."""
    gpus: bool
    """Whether GPU jobs preempt GPU jobs (8.3)."""
    targets: Mapping[str, Mapping[str, Rank]]
    """Queue -> whose jobs it may take, in which order."""
    problems: tuple[Problem, ...] = ()
    """What cannot be understood."""
    oddities: tuple[Problem, ...] = ()
    """What can, but hardly means what somebody wanted."""

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

    def queue_of(self, job: Job) -> Queue:
        """Return the queue of a job."""
        return self.queues[job.partition.name]

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


# ------------------------------------------------------------------------------------- building
class _Memo:
    """The site of the run; one is kept, known by the cluster and settings that it was made of."""

    site: Site | None = None


def site_of(view: ClusterView) -> Site:
    """Return the site of a run.

    :raises ConfigError: with all that cannot be understood.
    """
    known = _Memo.site
    settings = view.settings(Settings)
    if known is not None and known.cluster is view.cluster and known.settings is settings:
        return known
    site = build_site(view.cluster, settings)
    if site.problems:
        raise ConfigError(NAME, site.problems)
    _Memo.site = site
    return site


class _Reader:
    """Reads values and remembers what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def get(
        self, table: Mapping[str, Any], key: str, where: str, read: Callable[[str], T], default: T
    ) -> T:
        """Return ``table[key]`` as `read` understands it; `default` where it is not there or wrong."""
        text = table.get(key)
        if text is None:
            return default
        try:
            return read(str(text))
        except WrongValue as error:
            self.problems.append(Problem(f"{where}.{key}", str(error)))
            return default


def build_site(cluster: Cluster, settings: Settings) -> Site:
    """Understand a whole configuration; what cannot be is in the site's `problems`."""
    reader = _Reader()
    oddities: list[Problem] = []
    params, where = settings.params, f'policy.settings."{NAME}".params'
    queues = {part.name: _queue(part, settings, reader, oddities) for part in cluster.partitions}
    applications = {
        name: _application(table, f'policy.settings."{NAME}".applications.{name}', reader)
        for name, table in settings.applications.items()
    }
    jobtypes = reader.get(params, "PREEMPT_JOBTYPE", where, lambda t: values.words(t, JOBTYPES), ())
    unlocked = reader.get(settings.lsf_conf, "LSB_DISABLE_LIMLOCK_EXCL", "lsf.conf", values.flag, False)
    resources = tuple(dict.fromkeys(str(params.get("PREEMPTABLE_RESOURCES", "")).split()))
    syntax = str(settings.lsf_conf.get("LSB_GPU_NEW_SYNTAX", "N")).lower()
    return Site(
        cluster=cluster,
        settings=settings,
        queues=queues,
        applications=applications,
        cluster_level=_level(params, where, reader, widest=True),
        preempt_for=frozenset(
            reader.get(params, "PREEMPT_FOR", where, lambda t: values.words(t, PREEMPT_FOR), ())
        ),
        jobtypes=frozenset(jobtypes),
        resources=resources,
        use_susp_slots=reader.get(params, "USE_SUSP_SLOTS", where, values.flag, True),
        turn=reader.get(params, "MBD_SLEEP_TIME", where, values.seconds, 60.0),
        exclusive_may="EXCLUSIVE" in jobtypes and unlocked,
        gpus=syntax in ("y", "yes", "extend") and "ngpus_physical" in resources,
        targets=_targets(queues, settings, oddities),
        problems=tuple(reader.problems),
        oddities=tuple(oddities),
    )


def _level(table: Mapping[str, Any], where: str, reader: _Reader, *, widest: bool = False) -> Level:
    del widest
    none: Any = None
    count = functools.partial(values.integer, least=1)
    return Level(
        run_time=reader.get(table, "NO_PREEMPT_RUN_TIME", where, values.portion, none),
        finish_time=reader.get(table, "NO_PREEMPT_FINISH_TIME", where, values.portion, none),
        interval=reader.get(table, "NO_PREEMPT_INTERVAL", where, values.minutes, none),
        most=reader.get(table, "MAX_JOB_PREEMPT", where, count, none),
        reset=reader.get(table, "MAX_JOB_PREEMPT_RESET", where, values.flag, none),
        total_time=reader.get(table, "MAX_TOTAL_TIME_PREEMPT", where, lambda t: 60.0 * count(t), none),
        delay=reader.get(table, "PREEMPT_DELAY", where, values.seconds, none),
    )


def _application(table: Mapping[str, Any], where: str, reader: _Reader) -> Application:
    none: Any = None
    return Application(
        level=_level(table, where, reader),
        run_time=reader.get(table, "RUNTIME", where, lambda t: values.run_limits(t)[1], none),
        rerunnable=reader.get(table, "RERUNNABLE", where, values.flag, none),
        checkpointable=True if "CHKPNT_DIR" in table or "CHKPNT" in table else None,
        mig=reader.get(table, "MIG", where, values.minutes, none),
    )


def _queue(part: Partition, settings: Settings, reader: _Reader, oddities: list[Problem]) -> Queue:
    said, where = part.attributes, f"partition[{part.index}].attributes"
    none: Any = None
    line = reader.get(said, "PREEMPTION", where, preemption_line, PreemptionLine())
    oddities += [Problem(f"{where}.PREEMPTION", note) for note in line.notes]
    controls = reader.get(said, "JOB_CONTROLS", where, job_controls, {})
    when = reader.get(said, "TERMINATE_WHEN", where, terminate_when, frozenset())
    exits = reader.get(said, "REQUEUE_EXIT_VALUES", where, _exit_values, frozenset[int]())
    # What has no application and no queue of its own keeps to the cluster's NO_PREEMPT_RUN_TIME (4.1).
    own = {key: text for key, text in said.items() if key not in _NOT_IN_QUEUES}
    return Queue(
        name=part.name,
        index=part.index,
        priority=reader.get(said, "PRIORITY", where, lambda t: values.integer(t, 1), part.priority_tier),
        partition=part,
        line=line,
        manner=manner_of(controls, when, exits, settings.killed_exit_value),
        level=_level(own, where, reader),
        backfill=reader.get(said, "BACKFILL", where, values.flag, False),
        interruptible=reader.get(said, "INTERRUPTIBLE_BACKFILL", where, values.seconds, none),
        reserve_turns=_reserve_turns(said, where, reader),
        rerunnable=reader.get(said, "RERUNNABLE", where, values.flag, False),
        checkpointable=bool(said.get("CHKPNT")),
        mig=reader.get(said, "MIG", where, values.minutes, none),
        ignores_sla=reader.get(said, "SLA_GUARANTEES_IGNORE", where, values.flag, False),
        job_limit=reader.get(said, "QJOB_LIMIT", where, values.integer, none),
        user_limit=reader.get(said, "UJOB_LIMIT", where, values.integer, none),
        host_limit=reader.get(said, "HJOB_LIMIT", where, values.integer, none),
        processor_limit=reader.get(said, "PJOB_LIMIT", where, values.decimal, none),
    )


_NOT_IN_QUEUES = ("NO_PREEMPT_RUN_TIME", "NO_PREEMPT_FINISH_TIME")


def _exit_values(text: str) -> frozenset[int] | None:
    """Return the exit values; None: all but 0."""
    listed = text.replace("EXCLUDE", " ").replace("(", " ").replace(")", " ").split()
    if any(word.lower() == "all" for word in listed):
        return None
    return frozenset(values.integer(word.lstrip("~"), 0, 255) for word in listed)


def _reserve_turns(said: Mapping[str, Any], where: str, reader: _Reader) -> int | None:
    """Understand ``MAX_RESERVE_TIME[n]`` of SLOT_RESERVE or RESOURCE_RESERVE."""

    def read(text: str) -> int:
        head, bracket, rest = text.replace(" ", "").partition("[")
        if head.upper() != "MAX_RESERVE_TIME" or (bracket and not rest.endswith("]")):
            raise WrongValue(f"got {text!r}; allowed: MAX_RESERVE_TIME[turns]")
        return values.integer(rest[:-1], 1) if bracket else values.INFINITE

    none: Any = None
    slots: int | None = reader.get(said, "SLOT_RESERVE", where, read, none)
    return slots if slots is not None else reader.get(said, "RESOURCE_RESERVE", where, read, none)


# ------------------------------------------------------------------------------------- relation
def _targets(
    queues: Mapping[str, Queue], settings: Settings, oddities: list[Problem]
) -> Mapping[str, Mapping[str, Rank]]:
    lines = {name: _known(queue, queues, settings, oddities) for name, queue in queues.items()}
    exclusive = settings.preemptable_list == "exclusive"
    return {
        a.name: {
            b.name: _rank(b, lines[a.name])
            for b in queues.values()
            if can_preempt(a, b, lines[a.name], lines[b.name], exclusive=exclusive)
        }
        for a in queues.values()
    }


def can_preempt(
    a: Queue, b: Queue, of_a: PreemptionLine, of_b: PreemptionLine, *, exclusive: bool
) -> bool:
    """Whether jobs of `a` may take jobs of `b` (2.2).

    :param exclusive: whether PREEMPTABLE with a list keeps out even PREEMPTIVE queues that are not on it.
    """
    if a.name == b.name or a.priority <= b.priority:
        return False
    forward = of_a.preemptive and (of_a.targets is None or b.name in of_a.targets)
    backward = of_b.preemptable and (of_b.by is None or a.name in of_b.by)
    kept_out = exclusive and of_b.preemptable and of_b.by is not None and a.name not in of_b.by
    return (forward and not kept_out) or backward


def _rank(b: Queue, line: PreemptionLine) -> Rank:
    number = (line.targets or {}).get(b.name)
    return (number is None, -(number or 0), b.priority, b.index)


def _known(
    queue: Queue, queues: Mapping[str, Queue], settings: Settings, oddities: list[Problem]
) -> PreemptionLine:
    """Return the line without names that mean nothing, and say so."""
    line, where = queue.line, f"partition[{queue.index}].attributes.PREEMPTION"
    unknown = [name for name in (*(line.targets or ()), *(line.by or ())) if name not in queues]
    for name in unknown:
        oddities.append(Problem(where, f"names the queue {name!r}, which does not exist"))
    if unknown and settings.unknown_queue == "disable":
        return PreemptionLine()
    for name in line.targets or ():
        if name in queues and queues[name].priority >= queue.priority:
            text = f"lists {name!r}, whose priority is not lower; it can never be preempted from here"
            oddities.append(Problem(where, text))
    for name in line.by or ():
        if name in queues and queues[name].priority <= queue.priority:
            text = f"lists {name!r}, whose priority is not higher; it can never preempt from here"
            oddities.append(Problem(where, text))
    targets = None if line.targets is None else {n: p for n, p in line.targets.items() if n in queues}
    by = None if line.by is None else tuple(name for name in line.by if name in queues)
    return attrs.evolve(line, targets=targets, by=by)

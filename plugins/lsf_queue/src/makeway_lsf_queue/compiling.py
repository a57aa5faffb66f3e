"""Understand a whole configuration once, and remember it for the run (lsf 4.1, 9.3)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.errors import ConfigError, Problem
from makeway.model import Cluster, ClusterView, Partition, Seconds
from makeway_lsf_queue import values
from makeway_lsf_queue.asking import idle_parts
from makeway_lsf_queue.controls import job_controls, manner_of, terminate_when
from makeway_lsf_queue.groups import preferred
from makeway_lsf_queue.limits import MEMORY
from makeway_lsf_queue.preemption_line import PreemptionLine, preemption_line
from makeway_lsf_queue.relation import targets_of
from makeway_lsf_queue.requirement import Requirement, requirement, selected, unknown
from makeway_lsf_queue.settings import NAME, Settings
from makeway_lsf_queue.shares import Shares, assigned
from makeway_lsf_queue.site import Application, Level, Queue, Site
from makeway_lsf_queue.values import WrongValueError
from makeway_lsf_queue.windows import Window, time_windows

T = TypeVar("T")

PREEMPT_FOR = (
    *("GROUP_JLP", "GROUP_MAX", "HOST_JLU", "LEAST_RUN_TIME", "MINI_JOB", "OPTIMAL_MINI_JOB", "USER_JLP"),
)
JOBTYPES = ("EXCLUSIVE", "BACKFILL", "AFFINITY")


class _Memo:
    """The site of the run; one is kept, known by the cluster and settings that it was made of."""

    __slots__ = ("site", "view")

    def __init__(self) -> None:
        self.site: Site | None = None
        self.view: ClusterView | None = None
        """Of which it was asked last; a view stays one of the same cluster, under the same settings."""


_MEMO = _Memo()


def site_of(view: ClusterView) -> Site:
    """Return the site of a run.

    :raises ConfigError: with all that cannot be understood.
    """
    known = _MEMO.site
    if known is not None and view is _MEMO.view:
        return known
    settings = view.settings(Settings)
    if known is not None and known.cluster is view.cluster and known.settings is settings:
        _MEMO.view = view
        return known
    site = build_site(view.cluster, settings)
    if site.problems:
        raise ConfigError(NAME, site.problems)
    _MEMO.site, _MEMO.view = site, None
    return site


class _Reader:
    """Reads values and remembers what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def get(self, table: Mapping[str, Any], key: str, where: str, read: Callable[[str], T], default: T) -> T:
        """Return ``table[key]`` as `read` understands it; `default` where it is not there or wrong."""
        text = table.get(key)
        if text is None:
            return default
        try:
            return read(str(text))
        except WrongValueError as error:
            self.problems.append(Problem(f"{where}.{key}", str(error)))
            return default


def build_site(cluster: Cluster, settings: Settings) -> Site:
    """Understand a whole configuration; what cannot be is in the site's `problems`."""
    reader = _Reader()
    oddities: list[Problem] = []
    params, where = settings.params, f'policy.settings."{NAME}".params'
    queues = {part.name: _queue(part, cluster, settings, reader, oddities) for part in cluster.partitions}
    applications = {
        name: _application(table, f'policy.settings."{NAME}".applications.{name}', reader)
        for name, table in settings.applications.items()
    }
    _check_numbers(cluster, settings, reader)
    nothing: tuple[str, ...] = ()
    jobtypes = reader.get(params, "PREEMPT_JOBTYPE", where, _words_of(JOBTYPES), nothing)
    unlocked = reader.get(settings.lsf_conf, "LSB_DISABLE_LIMLOCK_EXCL", "lsf.conf", values.flag, False)
    listed = str(params.get("PREEMPTABLE_RESOURCES", "")).split()
    resources = tuple(name for name in dict.fromkeys(listed) if not why_not_preemptable(name, settings))
    syntax = str(settings.lsf_conf.get("LSB_GPU_NEW_SYNTAX", "N")).lower()
    return Site(
        cluster=cluster,
        settings=settings,
        queues=queues,
        applications=applications,
        cluster_level=_level(params, where, reader),
        preempt_for=frozenset(reader.get(params, "PREEMPT_FOR", where, _words_of(PREEMPT_FOR), nothing)),
        jobtypes=frozenset(jobtypes),
        resources=resources,
        use_susp_slots=reader.get(params, "USE_SUSP_SLOTS", where, values.flag, True),
        turn=reader.get(params, "MBD_SLEEP_TIME", where, values.seconds, 60.0),
        accept_interval=reader.get(
            params, "JOB_ACCEPT_INTERVAL", where, values.integer, settings.accept_interval
        ),
        exclusive_may="EXCLUSIVE" in jobtypes and unlocked,
        gpus=syntax in ("y", "yes", "extend") and (GPUS in resources or not settings.gpu_resource),
        targets=targets_of(queues, settings, oddities),
        problems=tuple(reader.problems),
        oddities=tuple(oddities),
    )


GPUS = "ngpus_physical"
_LOAD_INDICES = (
    "r15s",
    "r1m",
    "r15m",
    "ut",
    "pg",
    "io",
    "ls",
    "it",
    "tmp",
    "swp",
    "maxmem",
    "maxswp",
    "ncpus",
)


def why_not_preemptable(name: str, settings: Settings) -> str:
    """Return why a resource has no place in PREEMPTABLE_RESOURCES (8.1); empty: it has."""
    if name in (MEMORY, GPUS):
        return ""
    if name in _LOAD_INDICES:
        return f"{name} is a load index of the host; it is rejected"
    table = settings.resources.get(name)
    if table is None:
        return f"{name} is not a known shared resource (`resources`); it is rejected"
    return "" if table.release else f"{name} is not releasable (RELEASE=N); it is rejected"


def _check_numbers(cluster: Cluster, settings: Settings, reader: _Reader) -> None:
    """Look at the numbers of tables that are compiled into limits only when jobs are counted."""
    table = f'policy.settings."{NAME}"'
    none: Any = None
    for name, user in settings.users.items():
        reader.get(user, "MAX_JOBS", f"{table}.users.{name}", values.integer, none)
        reader.get(user, "JL/P", f"{table}.users.{name}", values.decimal, none)
    for at, limit in enumerate(settings.limits):
        for key, read in LIMITS.items():
            reader.get(limit, key, f"{table}.limits[{at}]", read, none)
    for node in cluster.nodes:
        for key in ("JL/U", "MIG", "CPUS"):
            reader.get(node.attributes, key, f"node {node.name}.attributes", values.integer, none)


LIMITS: Mapping[str, Callable[[str], object]] = {
    "SLOTS": values.integer,
    "SLOTS_PER_PROCESSOR": values.decimal,
    "JOBS": values.integer,
    "MEM": values.decimal,
}
"""What a Limit section may bound."""


def _words_of(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    return functools.partial(values.words, allowed=allowed)


def _level(table: Mapping[str, Any], where: str, reader: _Reader) -> Level:
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
        run_limit=reader.get(table, "RUNLIMIT", where, lambda t: values.run_limits(t)[1], none),
        rerunnable=reader.get(table, "RERUNNABLE", where, values.flag, none),
        checkpointable=True if "CHKPNT_DIR" in table or "CHKPNT" in table else None,
        mig=reader.get(table, "MIG", where, values.minutes, none),
    )


def _queue(
    part: Partition, cluster: Cluster, settings: Settings, reader: _Reader, oddities: list[Problem]
) -> Queue:
    said, where = part.attributes, f"partition[{part.index}].attributes"
    none: Any = None
    line = reader.get(said, "PREEMPTION", where, preemption_line, PreemptionLine())
    oddities += [Problem(f"{where}.PREEMPTION", note) for note in line.notes]
    nothing: Mapping[str, str] = {}
    controls = reader.get(said, "JOB_CONTROLS", where, job_controls, nothing)
    never: frozenset[str] = frozenset()
    when = reader.get(said, "TERMINATE_WHEN", where, terminate_when, never)
    no_value: frozenset[int] | None = frozenset()
    exits = reader.get(said, "REQUEUE_EXIT_VALUES", where, _exit_values, no_value)
    always: tuple[Window, ...] = ()
    asked = reader.get(said, "RES_REQ", where, requirement, Requirement())
    hosts = [tuple(cluster.nodes[index].features) for index in bitmap.indices(part.nodes)]
    without = attrs.evolve(asked, names=())  # check has a rule for those
    idle = idle_parts(without, hosts, frozenset(settings.resources))
    oddities += [Problem(f"{where}.RES_REQ", f"{each} has no effect here") for each in idle]
    known = frozenset(word for node in cluster.nodes for word in node.features)
    unselected = tuple(unknown(asked.names, known))
    # These two are for lsb.params and lsb.applications only (4.1).
    own = {key: text for key, text in said.items() if key not in _NOT_IN_QUEUES}
    return Queue(
        name=part.name,
        index=part.index,
        priority=reader.get(said, "PRIORITY", where, lambda t: values.integer(t, 1), part.priority_tier),
        partition=part,
        line=line,
        manner=manner_of(controls, when, exits, settings.killed_exit_value),
        at_window=manner_of(controls, when, exits, settings.killed_exit_value, "WINDOW"),
        run_window=reader.get(said, "RUN_WINDOW", where, time_windows, always),
        dispatch_window=reader.get(said, "DISPATCH_WINDOW", where, time_windows, always),
        level=_level(own, where, reader),
        backfill=reader.get(said, "BACKFILL", where, values.flag, False),
        interruptible=_interruptible(part, reader, where),
        requeues_killed=exits is None or settings.killed_exit_value in exits,
        reserve_turns=_reserve_turns(said, where, reader),
        rerunnable=reader.get(said, "RERUNNABLE", where, values.flag, False),
        checkpointable=bool(said.get("CHKPNT")),
        mig=reader.get(said, "MIG", where, values.minutes, none),
        users=str(said.get("USERS", "")),
        preferred=_preferred(str(said.get("HOSTS", "")), cluster, settings),
        selected=selected(asked, cluster.nodes),
        unselected=unselected,
        shares=_shares(said, settings, reader, where),
        accept_interval=reader.get(said, "JOB_ACCEPT_INTERVAL", where, values.integer, none),
        exclusive=reader.get(said, "EXCLUSIVE", where, _exclusive, False),
        ignores_sla=reader.get(said, "SLA_GUARANTEES_IGNORE", where, values.flag, False),
        job_limit=reader.get(said, "QJOB_LIMIT", where, values.integer, none),
        user_limit=reader.get(said, "UJOB_LIMIT", where, values.integer, none),
        host_limit=reader.get(said, "HJOB_LIMIT", where, values.integer, none),
        processor_limit=reader.get(said, "PJOB_LIMIT", where, values.decimal, none),
    )


def _shares(said: Mapping[str, Any], settings: Settings, reader: _Reader, where: str) -> Shares | None:
    """Understand FAIRSHARE, with the factors of the queue, or else of the cluster."""
    none: Any = None
    given: tuple[tuple[str, float], ...] | None = reader.get(said, "FAIRSHARE", where, assigned, none)
    if given is None:
        return None
    usual = Shares(assigned=given)

    def factor(key: str, default: float) -> float:
        over = reader.get(settings.params, key, f'policy.settings."{NAME}".params', values.decimal, default)
        return reader.get(said, key, where, values.decimal, over)

    return Shares(
        assigned=given,
        cpu_factor=factor("CPU_TIME_FACTOR", usual.cpu_factor),
        run_factor=factor("RUN_TIME_FACTOR", usual.run_factor),
        job_factor=factor("RUN_JOB_FACTOR", usual.job_factor),
        hist_hours=factor("HIST_HOURS", usual.hist_hours),
        by_slot=str(settings.lsf_conf.get("LSB_NCPU_ENFORCE", "")).strip() == "1",
    )


def _preferred(text: str, cluster: Cluster, settings: Settings) -> tuple[NodeBits, ...]:
    index = {node.name: node.index for node in cluster.nodes}
    levels = preferred(text, settings.host_groups, list(index))
    return tuple(bitmap.of([index[host] for host in level if host in index]) for level in levels)


def _exclusive(text: str) -> bool:
    """Understand EXCLUSIVE: Y, N, or CU with a type of compute unit (4.4)."""
    if re.fullmatch(r"CU(\[[^\]]*\])?", text.strip(), re.IGNORECASE):
        return True
    if text.strip().lower() not in ("y", "yes", "n", "no"):
        raise WrongValueError(f"got {text!r}; allowed: Y, N, CU or CU[type]; it counts as N")
    return values.flag(text)


def _interruptible(part: Partition, reader: _Reader, where: str) -> Seconds | None:
    """Understand INTERRUPTIBLE_BACKFILL, which is off without BACKFILL and RUNLIMIT (7.1)."""
    none: Any = None
    said = part.attributes
    given: Seconds | None = reader.get(said, "INTERRUPTIBLE_BACKFILL", where, values.seconds, none)
    usable = reader.get(said, "BACKFILL", where, values.flag, False) and part.max_time is not None
    return given if usable else None


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
            raise WrongValueError(f"got {text!r}; allowed: MAX_RESERVE_TIME[turns]")
        return values.integer(rest[:-1], 1) if bracket else values.INFINITE

    none: Any = None
    slots: int | None = reader.get(said, "SLOT_RESERVE", where, read, none)
    return slots if slots is not None else reader.get(said, "RESOURCE_RESERVE", where, read, none)

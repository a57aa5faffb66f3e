"""Compile the job slot limits of all files into one shape (lsf 5); `counting` counts.

A limit has members (jobs that share it), a bound, and a rule for what counts: running jobs only, or suspended
ones too. With preemption on, the totals of hosts and of individual users count running jobs only; PREEMPT_FOR adds
others; queue limits always count both (5.1).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Job
from makeway_lsf_queue import values
from makeway_lsf_queue.groups import Groups
from makeway_lsf_queue.settings import NAME
from makeway_lsf_queue.site import Queue, Site
from makeway_lsf_queue.values import WrongValueError

Key = str
Member = Callable[[Job], Key | None]
"""Which jobs share the limit with a job, as a key; None: the limit is not about it."""


class Counts(enum.Enum):
    """What a limit counts."""

    SLOTS = "slots"
    JOBS = "jobs"
    """Does not stand in the way of preemption (JOBS)."""
    MEMORY = "MB"
    """Reserved memory."""


@attrs.frozen(kw_only=True, eq=False)
class Limit:
    """One limit."""

    label: str
    """For messages: where it was set, and for what."""
    reason: str
    """Pending reason as LSF names it."""
    member: Member
    bound: Callable[[Key], float | None]
    suspended: bool
    """Whether suspended jobs count."""
    lifted_by: str = ""
    """The PREEMPT_FOR keyword with which suspended jobs would not count; empty: there is none."""
    counts: Counts = Counts.SLOTS
    setting: str = ""
    """Path in the config that sets it; empty: that of the host."""
    rows: Mapping[Key, str] | None = None
    """Key -> the row of that table that is about it, ``default`` for others; None: it is no table of rows."""
    hosts: NodeBits | None = None
    """Only what runs on these counts; None: everything."""
    of_hosts: bool = False
    """Slots of hosts in all, whatever uses them: backfilling jobs do not count (5.1)."""
    per_host: bool = False
    per_processor: bool = False
    """The bound is multiplied by the processors of the host, and rounded up."""
    shared_by: tuple[str, ...] | None = None
    """Limits that say the same of this have the same members under the same keys; None: that is not known."""


_USER, _GROUP, _QUEUE = "user", "group", "queue"
"""Kinds of those who share a limit, for `Limit.shared_by`."""


# -------------------------------------------------------------------------------------- compiling
_Compiled = list[Limit]


@functools.lru_cache(maxsize=4)
def limits_of(site: Site) -> tuple[Limit, ...]:
    """Return all limits of a site."""
    groups = Groups.of(site)
    found: _Compiled = []
    for queue in site.queues.values():
        found += _of_queue(queue)
    found += _of_users(site, groups)
    found += _of_hosts(site)
    for at, table in enumerate(site.settings.limits):
        found += _of_table(site, groups, table, at)
    if not site.preemption:
        # Without preemption running and suspended jobs count alike (1.1).
        found = [attrs.evolve(limit, suspended=True, lifted_by="") for limit in found]
    return tuple(found)


def _of_queue(queue: Queue) -> Iterator[Limit]:
    """QJOB_LIMIT, UJOB_LIMIT, HJOB_LIMIT, PJOB_LIMIT: suspended jobs always count."""

    def mine(job: Job) -> Key | None:
        return queue.name if job.partition.name == queue.name else None

    def user(job: Job) -> Key | None:
        return job.user if job.partition.name == queue.name else None

    host, processor = {"per_host": True}, {"per_host": True, "per_processor": True}
    nothing: dict[str, bool] = {}
    kinds: tuple[tuple[str, float | None, str, Member, dict[str, bool]], ...] = (
        ("QJOB_LIMIT", queue.job_limit, "PEND_QUE_JOB_LIMIT", mine, nothing),
        ("UJOB_LIMIT", queue.user_limit, "PEND_QUE_USR_JLIMIT", user, nothing),
        ("HJOB_LIMIT", queue.host_limit, "PEND_QUE_HOST_JLIMIT", mine, host),
        ("PJOB_LIMIT", queue.processor_limit, "PEND_QUE_PROC_JLIMIT", mine, processor),
    )
    for key, bound, reason, member, more in kinds:
        if bound is not None:
            label, setting = f"{key} of queue {queue.name}", f"partition[{queue.index}].attributes.{key}"
            of = (_USER, queue.name) if member is user else (_QUEUE, queue.name)
            yield _fixed(bound, label, reason, member, suspended=True, setting=setting, shared_by=of, **more)


def _fixed(bound: float, label: str, reason: str, member: Member, **more: Any) -> Limit:
    return Limit(label=label, reason=reason, member=member, bound=lambda _: bound, **more)


def _of_users(site: Site, groups: Groups) -> Iterator[Limit]:
    """MAX_JOBS and JL/P of lsb.users (5.1)."""
    lifted = site.preempt_for
    for key, per_processor in (("MAX_JOBS", False), ("JL/P", True)):
        read: Callable[[str], float] = values.decimal if per_processor else values.integer
        table_of, word = f'policy.settings."{NAME}".users', "JLP" if per_processor else "MAX"
        single, whole = dict[str, float](), dict[str, float]()
        named: dict[str, str] = {}
        default: float | None = None
        for name, table in site.settings.users.items():
            if key not in table:
                continue
            bound = _number(read, table[key])
            if name == "default":
                default = bound
            elif name.endswith("@"):
                single |= {user: bound for user in groups.users(name[:-1]) if user not in single}
                named |= {user: name for user in groups.users(name[:-1]) if user not in named}
            elif name in site.settings.user_groups:
                whole[name] = bound
            else:
                single[name] = bound
                named[name] = name
        if single or default is not None:
            yield Limit(
                label=f"{key} of a user in lsb.users",
                reason="PEND_USER_PROC_JLIMIT" if per_processor else "PEND_USER_JOB_LIMIT",
                member=lambda job: job.user,
                bound=functools.partial(_of_user, single, default),
                suspended=per_processor and "USER_JLP" not in lifted,
                lifted_by="USER_JLP",
                setting=table_of,
                rows=named,
                per_host=per_processor,
                per_processor=per_processor,
                shared_by=(_USER,),
            )
        for name, bound in whole.items():
            yield _fixed(
                bound,
                f"{key} of group {name} in lsb.users",
                "PEND_UGRP_PROC_JLIMIT" if per_processor else "PEND_UGRP_JOB_LIMIT",
                functools.partial(_in_group, name, groups.users(name)),
                suspended=f"GROUP_{word}" not in lifted,
                lifted_by=f"GROUP_{word}",
                setting=f"{table_of}.{name}",
                per_host=per_processor,
                per_processor=per_processor,
                shared_by=(_GROUP, name),
            )


def _of_user(single: Mapping[str, float], default: float | None, user: Key) -> float | None:
    return single.get(user, default)


def _in_group(name: str, users: frozenset[str], job: Job) -> Key | None:
    return name if job.user in users or job.spec.group == name else None


def _of_hosts(site: Site) -> Iterator[Limit]:
    """JL/U of lsb.hosts; MXJ is the number of CPUs of the node."""
    bounds = {
        node.index: values.integer(str(node.attributes["JL/U"]))
        for node in site.cluster.nodes
        if "JL/U" in node.attributes
    }
    suspended = "HOST_JLU" not in site.preempt_for
    for bound in sorted(set(bounds.values())):
        hosts = bitmap.of([index for index, each in bounds.items() if each == bound])
        yield _fixed(
            bound,
            "JL/U in lsb.hosts",
            "PEND_HOST_USR_JLIMIT",
            lambda job: job.user,
            suspended=suspended,
            lifted_by="HOST_JLU",
            hosts=hosts,
            per_host=True,
            shared_by=(_USER,),
        )


# --------------------------------------------------------------------------- Limit sections
def _of_table(site: Site, groups: Groups, table: Mapping[str, str], at: int) -> Iterator[Limit]:
    """Translate one Limit section or row of lsb.resources (5.1)."""
    name = table.get("NAME", f"number {at + 1}")
    hosts = table.get("HOSTS", table.get("PER_HOST"))
    bits = groups.host_bits(hosts) if hosts and hosts != "all" else None
    member = _member(table, groups)
    each_user = table.get("PER_USER") == "all" and not {"USERS", "QUEUES", "PER_QUEUE"} & table.keys()
    for key, counts in _COUNTS.items():
        if key not in table:
            continue
        read: Callable[[str], float] = values.decimal if key in _DECIMAL else values.integer
        reason, suspended, keyword = _kind(key, table, site)
        yield _fixed(
            _number(read, table[key]),
            f"{key} of limit {name} in lsb.resources",
            reason,
            member,
            suspended=suspended,
            lifted_by=keyword,
            counts=counts,
            setting=f'policy.settings."{NAME}".limits[{at}]',
            hosts=bits,
            of_hosts=counts is Counts.SLOTS and reason == "PEND_HOST_JOB_LIMIT",
            per_host="PER_HOST" in table or key == "SLOTS_PER_PROCESSOR",
            per_processor=key == "SLOTS_PER_PROCESSOR",
            shared_by=(_USER,) if each_user else None,
        )


_COUNTS = {
    "SLOTS": Counts.SLOTS,
    "SLOTS_PER_PROCESSOR": Counts.SLOTS,
    "JOBS": Counts.JOBS,
    "MEM": Counts.MEMORY,
}
_DECIMAL = ("SLOTS_PER_PROCESSOR", "MEM")


def _number(read: Callable[[str], float], text: str) -> float:
    try:
        return read(str(text))
    except WrongValueError:
        return math.inf  # the checks and the reader have said so


def _member(table: Mapping[str, str], groups: Groups) -> Member:
    """Return which jobs share the limit of `table` with a job."""
    tests: list[Callable[[Job], str | None]] = []
    for key, of in (("USERS", _user_of), ("QUEUES", _queue_of)):
        single = table.get(f"PER_{key[:-1]}")
        listed = single if single is not None else table.get(key)
        if listed is None:
            continue
        named = functools.lru_cache(maxsize=4096)(functools.partial(groups.lists, listed))
        tests.append(functools.partial(_shares, of, named, single is not None))
    return functools.partial(_all_shares, tuple(tests))


def _user_of(job: Job) -> str:
    return job.user


def _queue_of(job: Job) -> str:
    return job.partition.name


def _shares(of: Callable[[Job], str], named: Callable[[str], bool], each: bool, job: Job) -> str | None:
    name = of(job)
    if not named(name):
        return None
    return name if each else ""


def _all_shares(tests: Iterable[Callable[[Job], str | None]], job: Job) -> Key | None:
    parts = []
    for test in tests:
        part = test(job)
        if part is None:
            return None
        parts.append(part)
    return "/".join(parts)


def _kind(key: str, table: Mapping[str, str], site: Site) -> tuple[str, bool, str]:
    """Return the pending reason of a limit, whether suspended jobs count, and the keyword that changes that (5.1)."""
    lifted = site.preempt_for
    users, hosts = "USERS" in table or "PER_USER" in table, "HOSTS" in table or "PER_HOST" in table
    group = any(name in site.settings.user_groups for name in table.get("USERS", "").split())
    if key == "JOBS":
        return "PEND_GENERAL_LIMIT_JOBS", True, ""
    if key == "MEM":
        return "PEND_GENERAL_LIMIT_MEM", MEMORY not in site.resources, ""
    if "QUEUES" in table or "PER_QUEUE" in table:
        return "PEND_QUE_JOB_LIMIT", True, ""
    if key == "SLOTS_PER_PROCESSOR":
        word = "GROUP_JLP" if group else "USER_JLP"
        return "PEND_UGRP_PROC_JLIMIT" if group else "PEND_USER_PROC_JLIMIT", word not in lifted, word
    if users and hosts:
        return "PEND_HOST_USR_JLIMIT", not lifted & {"HOST_JLU", "GROUP_MAX"}, "HOST_JLU"
    if group:
        return "PEND_UGRP_JOB_LIMIT", "GROUP_MAX" not in lifted, "GROUP_MAX"
    return ("PEND_USER_JOB_LIMIT" if users else "PEND_HOST_JOB_LIMIT"), False, ""


MEMORY = "mem"
"""What PREEMPTABLE_RESOURCES calls memory (8.2)."""

"""Compile the job slot limits of all files into one shape, and count (spec lsf 5).

A limit has members (jobs that share it), a bound, and a rule for what counts: running jobs only, or suspended
ones too. With preemption on, the totals of hosts and of individual users count running jobs only; PREEMPT_FOR adds
others; queue limits always count both (5.1).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Blocked, ClusterView, Job, JobState, Node, PreemptMode
from makeway_lsf_queue import jobs, values
from makeway_lsf_queue.groups import Groups
from makeway_lsf_queue.site import Queue, Site
from makeway_lsf_queue.slots import held_on
from makeway_lsf_queue.values import WrongValueError

Key = str
Member = Callable[[Job], Key | None]
"""With whom a job shares the limit; None: the limit is not about it."""


@attrs.frozen(kw_only=True, eq=False)
class Limit:
    """One limit."""

    label: str
    """For messages: where it was set, and for whom."""
    reason: str
    """Pending reason as LSF names it."""
    member: Member
    bound: Callable[[Key], float | None]
    suspended: bool
    """Whether suspended jobs count."""
    jobs: bool = False
    """It counts jobs, not slots, and does not stand in the way of preemption (JOBS)."""
    hosts: NodeBits | None = None
    """Only what runs on these counts; None: everything."""
    per_host: bool = False
    per_processor: bool = False
    """The bound is multiplied by the processors of the host, and rounded up."""


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
    return tuple(found)


def _of_queue(queue: Queue) -> Iterator[Limit]:
    """QJOB_LIMIT, UJOB_LIMIT, HJOB_LIMIT, PJOB_LIMIT: suspended jobs always count."""

    def mine(job: Job) -> Key | None:
        return queue.name if job.partition.name == queue.name else None

    def user(job: Job) -> Key | None:
        return job.user if job.partition.name == queue.name else None

    of = f"of queue {queue.name}"
    common: dict[str, Any] = {"suspended": True}
    if queue.job_limit is not None:
        yield _fixed(queue.job_limit, "QJOB_LIMIT " + of, "PEND_QUE_JOB_LIMIT", mine, **common)
    if queue.user_limit is not None:
        yield _fixed(queue.user_limit, "UJOB_LIMIT " + of, "PEND_QUE_USR_JLIMIT", user, **common)
    if queue.host_limit is not None:
        label = "HJOB_LIMIT " + of
        yield _fixed(queue.host_limit, label, "PEND_QUE_HOST_JLIMIT", mine, per_host=True, **common)
    if queue.processor_limit is not None:
        common |= {"per_host": True, "per_processor": True}
        yield _fixed(queue.processor_limit, "PJOB_LIMIT " + of, "PEND_QUE_PROC_JLIMIT", mine, **common)


def _fixed(bound: float, label: str, reason: str, member: Member, **more: Any) -> Limit:
    return Limit(label=label, reason=reason, member=member, bound=lambda _: bound, **more)


def _of_users(site: Site, groups: Groups) -> Iterator[Limit]:
    """MAX_JOBS and JL/P of lsb.users (5.1)."""
    lifted = site.preempt_for
    for key, per_processor in (("MAX_JOBS", False), ("JL/P", True)):
        read: Callable[[str], float] = values.decimal if per_processor else values.integer
        single, whole = dict[str, float](), dict[str, float]()
        default: float | None = None
        for name, table in site.settings.users.items():
            if key not in table:
                continue
            bound = _number(read, table[key])
            if name == "default":
                default = bound
            elif name.endswith("@"):
                single |= {user: bound for user in groups.users(name[:-1]) if user not in single}
            elif name in site.settings.user_groups:
                whole[name] = bound
            else:
                single[name] = bound
        if single or default is not None:
            yield Limit(
                label=f"{key} of a user in lsb.users",
                reason="PEND_USER_PROC_JLIMIT" if per_processor else "PEND_USER_JOB_LIMIT",
                member=lambda job: job.user,
                bound=functools.partial(_of_user, single, default),
                suspended=per_processor and "USER_JLP" not in lifted,
                per_host=per_processor,
                per_processor=per_processor,
            )
        for name, bound in whole.items():
            yield _fixed(
                bound,
                f"{key} of group {name} in lsb.users",
                "PEND_UGRP_PROC_JLIMIT" if per_processor else "PEND_UGRP_JOB_LIMIT",
                functools.partial(_in_group, name, groups.users(name)),
                suspended=("GROUP_JLP" if per_processor else "GROUP_MAX") not in lifted,
                per_host=per_processor,
                per_processor=per_processor,
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
            hosts=hosts,
            per_host=True,
        )


# --------------------------------------------------------------------------- Limit sections
def _of_table(site: Site, groups: Groups, table: Mapping[str, str], at: int) -> Iterator[Limit]:
    """Translate one Limit section or row of lsb.resources (5.1)."""
    name = table.get("NAME", f"number {at + 1}")
    hosts = table.get("HOSTS", table.get("PER_HOST"))
    bits = groups.host_bits(hosts) if hosts and hosts != "all" else None
    member = _member(table, groups)
    for key in ("SLOTS", "SLOTS_PER_PROCESSOR", "JOBS"):
        if key not in table:
            continue
        read: Callable[[str], float] = values.decimal if key == "SLOTS_PER_PROCESSOR" else values.integer
        reason, counts = _kind(key, table, site)
        yield _fixed(
            _number(read, table[key]),
            f"{key} of limit {name} in lsb.resources",
            reason,
            member,
            suspended=counts,
            jobs=key == "JOBS",
            hosts=bits,
            per_host="PER_HOST" in table or key == "SLOTS_PER_PROCESSOR",
            per_processor=key == "SLOTS_PER_PROCESSOR",
        )


def _number(read: Callable[[str], float], text: str) -> float:
    try:
        return read(str(text))
    except WrongValueError:
        return math.inf  # the checks and the reader have said so


def _member(table: Mapping[str, str], groups: Groups) -> Member:
    """Return with whom a job shares the limit of `table`."""
    tests: list[Callable[[Job], str | None]] = []
    for key, of in (("USERS", _user_of), ("QUEUES", _queue_of)):
        single = table.get(f"PER_{key[:-1]}")
        listed = single if single is not None else table.get(key)
        if listed is None:
            continue
        names = None if listed == "all" else groups.members(listed)
        tests.append(functools.partial(_shares, of, names, single is not None))
    return functools.partial(_all_shares, tuple(tests))


def _user_of(job: Job) -> str:
    return job.user


def _queue_of(job: Job) -> str:
    return job.partition.name


def _shares(
    of: Callable[[Job], str], names: frozenset[str] | None, each: bool, job: Job
) -> str | None:
    name = of(job)
    if names is not None and name not in names:
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


def _kind(key: str, table: Mapping[str, str], site: Site) -> tuple[str, bool]:
    """Return the pending reason of a limit, and whether suspended jobs count (5.1)."""
    lifted = site.preempt_for
    users, hosts = "USERS" in table or "PER_USER" in table, "HOSTS" in table or "PER_HOST" in table
    group = any(name in site.settings.user_groups for name in table.get("USERS", "").split())
    if key == "JOBS":
        return "PEND_GENERAL_LIMIT_JOBS", True
    if "QUEUES" in table or "PER_QUEUE" in table:
        return "PEND_QUE_JOB_LIMIT", True
    if key == "SLOTS_PER_PROCESSOR":
        if group:
            return "PEND_UGRP_PROC_JLIMIT", "GROUP_JLP" not in lifted
        return "PEND_USER_PROC_JLIMIT", "USER_JLP" not in lifted
    if users and hosts:
        return "PEND_HOST_USR_JLIMIT", not lifted & {"HOST_JLU", "GROUP_MAX"}
    if group:
        return "PEND_UGRP_JOB_LIMIT", "GROUP_MAX" not in lifted
    return ("PEND_USER_JOB_LIMIT" if users else "PEND_HOST_JOB_LIMIT"), False


# --------------------------------------------------------------------------------------- counting
@attrs.frozen
class Counted:
    """The active jobs, as they would be once those that make way have done so."""

    site: Site
    view: ClusterView
    jobs: tuple[tuple[Job, bool], ...]
    """Each with whether it is suspended."""

    @classmethod
    def of(cls, site: Site, view: ClusterView, modes: Callable[[Job], PreemptMode]) -> Counted:
        """Look at `view`; whoever makes way does so as `modes` say, whatever the view shows."""
        gone = {job.id: job for job in view.made_way}
        kept = [(job, job.state is JobState.SUSPENDED) for job in view.active if job.id not in gone]
        stopped = [(job, True) for job in gone.values() if modes(job) is PreemptMode.SUSPEND]
        return cls(site, view, (*kept, *stopped))

    def used(self, limit: Limit, key: Key, besides: Job) -> float:
        """Return how much of a limit is taken by others than `besides`."""
        total = 0.0
        for job, suspended in self.jobs:
            if job.id == besides.id or (suspended and not limit.suspended) or limit.member(job) != key:
                continue
            total += self._amount(job, limit)
        return total

    def _amount(self, job: Job, limit: Limit) -> float:
        if limit.hosts is not None and not job.nodes & limit.hosts:
            return 0.0
        if limit.jobs:
            return 1.0
        nodes = self.view.cluster.nodes
        if limit.hosts is None:
            return jobs.slots(job, nodes)
        return sum(n for index, n in jobs.slots_on(job, nodes) if limit.hosts >> index & 1)

    def used_on(self, limit: Limit, key: Key, besides: Job) -> Mapping[int, float]:
        """Return the same host by host."""
        found: dict[int, float] = {}
        nodes = self.view.cluster.nodes
        for job, suspended in self.jobs:
            if job.id == besides.id or (suspended and not limit.suspended) or limit.member(job) != key:
                continue
            for index in bitmap.indices(job.nodes):
                amount = 1.0 if limit.jobs else held_on(job, index, nodes[index].cpus)
                found[index] = found.get(index, 0.0) + amount
        return found


def blocked(site: Site, counted: Counted, job: Job) -> Blocked | None:
    """Return the first limit that keeps `job` out; None: none does."""
    for limit in limits_of(site):
        key = limit.member(job)
        bound = limit.bound(key) if key is not None else None
        if key is None or bound is None or (limit.jobs and counted.view.made_way):
            continue
        if limit.hosts is not None and not _where(job) & limit.hosts:
            continue
        if limit.per_host:
            closed = closed_by(counted, limit, job)
            if _where(job) & ~closed:
                continue
            text = f"{limit.label} is {bound:g}; no host has room under it"
            return _kept_out(limit, 1, 0, text)
        if limit.hosts is not None and _where(job) & ~limit.hosts:
            continue  # it may go elsewhere; `closed` keeps it off these
        used, wanted = counted.used(limit, key, job), 1 if limit.jobs else job_slots(job, counted)
        if used + wanted > bound:
            text = f"{limit.label} is {bound:g}; {used:g} in use, {wanted:g} wanted"
            return _kept_out(limit, wanted, max(0.0, bound - used), text)
    return None


def job_slots(job: Job, counted: Counted) -> int:
    """Return how many slots `job` holds or asks for."""
    return jobs.slots(job, counted.view.cluster.nodes)


def _where(job: Job) -> NodeBits:
    """Return the hosts that a job is on, or may go to."""
    if job.allocation is not None:
        return job.nodes
    return (job.required or job.partition.nodes) & ~job.excluded


def _kept_out(limit: Limit, wanted: float, available: float, text: str) -> Blocked:
    return Blocked(
        reason=limit.reason,
        resource="limit",
        wanted=wanted,
        available=available,
        detail=text,
        liftable=True,
    )


def closed_by(counted: Counted, limit: Limit, job: Job) -> NodeBits:
    """Return the hosts on which a limit per host, or on some hosts, leaves `job` no room."""
    key = limit.member(job)
    bound = limit.bound(key) if key is not None else None
    if key is None or bound is None:
        return 0
    nodes = counted.view.cluster.nodes
    hosts = _where(job) & (limit.hosts if limit.hosts is not None else -1)
    if not limit.per_host:
        if limit.hosts is None or (limit.jobs and counted.view.made_way):
            return 0
        wanted = 1 if limit.jobs else job_slots(job, counted)
        return hosts if counted.used(limit, key, job) + wanted > bound else 0
    used = counted.used_on(limit, key, job)
    closed = []
    for index in bitmap.indices(hosts):
        most = math.ceil(bound * processors(nodes[index])) if limit.per_processor else bound
        if used.get(index, 0.0) + _least_on(job, index, nodes[index].cpus) > most:
            closed.append(index)
    return bitmap.of(closed)


def processors(node: Node) -> int:
    """Return the processors of a host, where they are not as many as its slots (``attributes.CPUS``)."""
    given = node.attributes.get("CPUS")
    return int(given) if given is not None else node.cpus


def _least_on(job: Job, index: int, cpus: int) -> int:
    """Return how many slots `job` takes on a host: what it holds there, or as many as it may want."""
    return held_on(job, index, cpus) if job.allocation is not None else min(job.spec.cpus, cpus)


def closed(site: Site, counted: Counted, job: Job) -> NodeBits:
    """Return the hosts that limits close to `job`."""
    bits = 0
    for limit in limits_of(site):
        if limit.per_host or limit.hosts is not None:
            bits |= closed_by(counted, limit, job)
    return bits

"""Find the configurations that the documentation warns of (lsf 2.2, 4.4, 6.1, 7, 8, 9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from makeway.errors import Finding, nearest
from makeway.model import Cluster, PreemptMode
from makeway_lsf_queue.compiling import GPUS, LIMITS, build_site, why_not_preemptable
from makeway_lsf_queue.controls import is_known_action, job_controls
from makeway_lsf_queue.groups import Groups
from makeway_lsf_queue.preemption_line import PreemptionLine
from makeway_lsf_queue.reader import keywords
from makeway_lsf_queue.relation import can_preempt
from makeway_lsf_queue.settings import NAME, Settings
from makeway_lsf_queue.site import Queue, Site
from makeway_lsf_queue.values import WrongValueError

_TABLE = f'policy.settings."{NAME}"'
_GROUP_LIMITS = ("MAX_JOBS", "JL/P")


def findings(cluster: Cluster, settings: Settings) -> list[Finding]:
    """Return all findings."""
    site = build_site(cluster, settings)
    errors = [Finding.of(problem, "error", "lsf 9.3") for problem in site.problems]
    odd = [Finding.of(problem, "warning", "lsf 2.1") for problem in site.oddities]
    return [*errors, *odd, *(finding for rule in _RULES for finding in rule(site))]


def _where(queue: Queue, key: str) -> str:
    return f"partition[{queue.index}].attributes.{key}"


def _warning(where: str, message: str, section: str) -> Finding:
    return Finding(level="warning", where=where, message=message, section=f"lsf {section}")


def _note(where: str, message: str, section: str) -> Finding:
    return Finding(level="note", where=where, message=message, section=f"lsf {section}")


# ------------------------------------------------------------------------------- the relation
def _off(site: Site) -> Iterator[Finding]:
    """Row 1: preemption is off; or marked queues have nothing to preempt."""
    marked = [queue for queue in site.queues.values() if queue.line.preemptive or queue.line.preemptable]
    if not marked:
        yield _note("", "preemption is off: no queue is PREEMPTIVE or PREEMPTABLE", "1")
        return
    if not site.preemption:
        yield _warning("", "preemption is off although queues are marked: none is higher than another", "2.1")
        return
    for queue in marked:
        name = queue.name
        if queue.line.preemptive and not site.targets[name]:
            yield _warning(
                _where(queue, "PREEMPTION"), f"queue {name} is PREEMPTIVE but finds no queue below", "2.2"
            )
        if queue.line.preemptable and not any(site.may_preempt(other, name) for other in site.queues):
            yield _warning(
                _where(queue, "PREEMPTION"), f"queue {name} is PREEMPTABLE but no queue may", "2.2"
            )


def _conflicts(site: Site) -> Iterator[Finding]:
    """PREEMPTIVE against a PREEMPTABLE list without that queue (2.2 step 5)."""
    for a in site.queues.values():
        for b in site.queues.values():
            strict = can_preempt(a, b, a.line, b.line, exclusive=True)
            if strict == can_preempt(a, b, a.line, b.line, exclusive=False):
                continue
            answer = "may" if site.may_preempt(a.name, b.name) else "may not"
            text = (
                f"{a.name} is PREEMPTIVE, but PREEMPTABLE of {b.name} does not list it: it {answer} preempt there"
                f" (preemptable_list = {site.settings.preemptable_list!r}); the documentation does not say"
            )
            yield _warning(_where(b, "PREEMPTION"), text, "2.2")


def _no_shared_hosts(site: Site) -> Iterator[Finding]:
    for name, targets in site.targets.items():
        queue = site.queues[name]
        apart = [other for other in targets if not site.queues[other].partition.nodes & queue.partition.nodes]
        for other in apart:
            if queue.line.targets is not None and other in queue.line.targets:
                text = f"lists {other}, which shares no host with {name}: its slots are of no use here"
                yield _note(_where(queue, "PREEMPTION"), text, "9.3")


# ------------------------------------------------------------------------------- reservations
def _delayed_reservations(site: Site) -> Iterator[Finding]:
    """The warning of the three-queue table (7.2)."""
    if "BACKFILL" not in site.jobtypes:
        return
    for r in site.queues.values():
        if r.reserve_turns is None:
            continue
        for p in site.queues.values():
            for b in site.queues.values():
                if r.priority > p.priority > b.priority and b.backfill and site.may_preempt(p.name, b.name):
                    late = site.settings.backfill_guard == "10.1"
                    text = (
                        f"jobs of {p.name} may preempt backfill jobs of {b.name} on slots that {r.name} reserves"
                        f" (PREEMPT_JOBTYPE=BACKFILL)"
                    )
                    text += (
                        f": jobs of {r.name} may start late" if late else "; backfill_guard 7.3 forbids it"
                    )
                    yield _warning(_where(p, "PREEMPTION"), text, "7.2")


def _backfill(site: Site) -> Iterator[Finding]:
    for queue in site.queues.values():
        part = queue.partition
        if "INTERRUPTIBLE_BACKFILL" in part.attributes and queue.interruptible is None:
            text = "needs BACKFILL=Y and RUNLIMIT in the same queue; it is off"
            yield _warning(_where(queue, "INTERRUPTIBLE_BACKFILL"), text, "7.1")
        if queue.interruptible is not None and not part.attributes.get("REQUEUE_EXIT_VALUES"):
            text = "jobs that are killed at the end of a gap are lost without REQUEUE_EXIT_VALUES"
            yield _note(_where(queue, "INTERRUPTIBLE_BACKFILL"), text, "7.1")
        if queue.interruptible is not None and queue.manner.mode is not PreemptMode.SUSPEND:
            text = "preempted jobs are killed or requeued, so the promised least run time is not kept"
            yield _note(_where(queue, "INTERRUPTIBLE_BACKFILL"), text, "7.1")
        if queue.backfill and queue.line.preemptable and "BACKFILL" not in site.jobtypes:
            text = "its jobs are safe all the same: BACKFILL=Y, and PREEMPT_JOBTYPE lacks BACKFILL"
            yield _warning(_where(queue, "PREEMPTION"), text, "7.1")
        if queue.backfill and not queue.line.preemptable and "BACKFILL" in site.jobtypes:
            higher = [
                other.name for other in site.queues.values() if site.may_preempt(other.name, queue.name)
            ]
            if higher:
                text = f"jobs of this backfill queue are safe from {', '.join(higher)}: it lacks PREEMPTABLE"
                yield _note(_where(queue, "BACKFILL"), text, "7.1")


# --------------------------------------------------------------------------------- parameters
def _exclusive(site: Site) -> Iterator[Finding]:
    listed = "EXCLUSIVE" in site.jobtypes
    if listed and not site.exclusive_may:
        text = "EXCLUSIVE has no effect without LSB_DISABLE_LIMLOCK_EXCL=Y in lsf.conf"
        yield _warning(f"{_TABLE}.params.PREEMPT_JOBTYPE", text, "4.4")
    for queue in site.queues.values():
        if site.exclusive_may and queue.exclusive and not queue.line.is_marked:
            text = f"exclusive jobs of {queue.name} neither preempt nor are preempted: it has no PREEMPTION"
            yield _note(_where(queue, "EXCLUSIVE"), text, "4.4")


def _minimal(site: Site) -> Iterator[Finding]:
    where = f"{_TABLE}.params.PREEMPT_FOR"
    if "OPTIMAL_MINI_JOB" not in site.preempt_for:
        return
    if str(site.settings.params.get("PARALLEL_SCHED_BY_SLOT", "N")).upper() not in ("Y", "YES"):
        yield _warning(where, "OPTIMAL_MINI_JOB wants PARALLEL_SCHED_BY_SLOT=Y", "3.4")
    groups = [
        name for name, table in site.settings.users.items() if any(key in table for key in _GROUP_LIMITS)
    ]
    if groups:
        text = f"OPTIMAL_MINI_JOB should not be used with limits of users or groups ({', '.join(groups[:5])})"
        yield _warning(where, text, "3.4")


def _limits_that_stay(site: Site) -> Iterator[Finding]:
    """Limits that still count suspended jobs, so that preempting does not help (5.1, 5.4)."""
    if not site.preemption:
        return
    lifts = (("MAX_JOBS", "GROUP_MAX"), ("JL/P", "GROUP_JLP"))
    for name, table in site.settings.users.items():
        group = name in site.settings.user_groups
        for key, keyword in lifts:
            if not group and key == "MAX_JOBS":
                continue
            word = keyword if group else "USER_JLP"
            if key in table and word not in site.preempt_for:
                text = f"{key} of {name} counts suspended jobs too; PREEMPT_FOR={word} changes that"
                yield _note(f"{_TABLE}.users.{name}", text, "5.1")
    if any("JL/U" in node.attributes for node in site.cluster.nodes) and "HOST_JLU" not in site.preempt_for:
        text = "JL/U of lsb.hosts counts suspended jobs too; PREEMPT_FOR=HOST_JLU changes that"
        yield _note(f"{_TABLE}.params.PREEMPT_FOR", text, "5.1")


def _actions(site: Site) -> Iterator[Finding]:
    for queue in site.queues.values():
        action = job_controls_of(queue).get("SUSPEND", "")
        if action and not is_known_action(action):
            said = f"what {action!r} does to a job is not known here; it counts as suspending"
            yield _note(_where(queue, "JOB_CONTROLS"), said, "6.1")
        ending = job_controls_of(queue).get("TERMINATE", "")
        if re.search(r"\bb(kill|requeue)\b", ending):
            said = f"TERMINATE[{ending}] ends the job by a command that calls the terminate action again: a deadlock"
            yield _warning(_where(queue, "JOB_CONTROLS"), said, "6.1")
        if queue.mig is not None and not (queue.rerunnable or queue.checkpointable):
            said = "has no effect: jobs of the queue are neither rerunnable nor checkpointable"
            yield _warning(_where(queue, "MIG"), said, "6.1")
        if queue.partition.max_time is None and queue.level.most is None and _is_victim(site, queue):
            said = f"jobs of {queue.name} may be preempted again and again: no MAX_JOB_PREEMPT, no RUNLIMIT"
            yield _note(f"partition[{queue.index}]", said, "6.3")


def _load(site: Site) -> Iterator[Finding]:
    """TERMINATE_WHEN=LOAD speaks of load indices, which a replay does not have (6.1)."""
    for queue in site.queues.values():
        if "LOAD" in str(queue.partition.attributes.get("TERMINATE_WHEN", "")).split():
            said = "LOAD has no effect: a replay has no load indices, so that no job is stopped for load"
            yield _warning(_where(queue, "TERMINATE_WHEN"), said, "6.1")


def job_controls_of(queue: Queue) -> Mapping[str, str]:
    """Return the actions of a queue; empty if there are none, or they cannot be understood."""
    try:
        return job_controls(str(queue.partition.attributes["JOB_CONTROLS"]))
    except (KeyError, WrongValueError):
        return {}


def _is_victim(site: Site, queue: Queue) -> bool:
    return (
        any(site.may_preempt(other, queue.name) for other in site.queues) and site.cluster_level.most is None
    )


def _resources(site: Site) -> Iterator[Finding]:
    where = f"{_TABLE}.params.PREEMPTABLE_RESOURCES"
    words = str(site.settings.params.get("PREEMPTABLE_RESOURCES", "")).split()
    suspending = [queue.name for queue in site.queues.values() if queue.manner.mode is PreemptMode.SUSPEND]
    for name in dict.fromkeys(words):
        if words.count(name) > 1:
            yield _warning(where, f"{name} is listed twice", "8.1")
        why_not = why_not_preemptable(name, site.settings)
        table = site.settings.resources.get(name)
        if why_not:
            yield _warning(where, why_not, "8.1")
        elif table is not None and table.dynamic and suspending:
            text = f"suspension does not give {name} back; queues that only suspend: {', '.join(suspending)}"
            yield _warning(where, text, "8.1")
    if words and not site.preemption:
        yield _warning(where, "has no effect while no queue preempts", "8.1")


def _gpus(site: Site) -> Iterator[Finding]:
    """GPU preemption needs the new syntax, and victims that may migrate (8.3)."""
    if GPUS not in site.resources:
        return
    where = f"{_TABLE}.params.PREEMPTABLE_RESOURCES"
    if not site.gpus:
        yield _warning(
            where, f"{GPUS} has no effect without LSB_GPU_NEW_SYNTAX=Y or extend in lsf.conf", "8.3"
        )
        return
    queues = [
        q for q in site.queues.values() if any(site.may_preempt(other, q.name) for other in site.queues)
    ]
    fixed = [q.name for q in queues if q.mig is None or not q.rerunnable]
    if fixed:
        text = f"GPU jobs of {', '.join(fixed)} are safe unless an application sets MIG and RERUNNABLE"
        yield _note(where, text, "8.3")


def _names_in_limits(site: Site) -> Iterator[Finding]:
    """Limits about queues or hosts that do not exist bound nothing."""
    groups = Groups.of(site)
    for at, table in enumerate(site.settings.limits):
        where = f"{_TABLE}.limits[{at}]"
        for key in ("QUEUES", "PER_QUEUE"):
            for word in _bare_words(table.get(key, "")):
                if word not in site.queues:
                    close = nearest(word, site.queues)
                    yield _warning(
                        where, f"{key} names the queue {word!r}, which does not exist{close}", "9.3"
                    )
        for key in ("HOSTS", "PER_HOST"):
            for word in _bare_words(table.get(key, "")):
                if not groups.host_bits(word):
                    close = nearest(word, [node.name for node in site.cluster.nodes])
                    yield _warning(
                        where, f"{key} names the host {word!r}, which does not exist{close}", "9.3"
                    )
        if not any(key in table for key in LIMITS):
            yield _warning(where, f"bounds nothing; allowed: {', '.join(LIMITS)}", "9.3")


def _jobs_limits(site: Site) -> Iterator[Finding]:
    """After two preemptions in a row more jobs are suspended than JOBS allows, and none may go on (5.1, 6.3)."""
    if site.settings.jobs_limit_on_resume != "all":
        return
    chains = [
        (c, b, a)
        for c in site.queues
        for b in site.queues
        if site.may_preempt(b, c)
        for a in site.queues
        if site.may_preempt(a, b)
    ]
    groups = Groups.of(site)
    for at, table in enumerate(site.settings.limits):
        if "JOBS" not in table or "PER_QUEUE" in table:
            continue
        listed = table.get("QUEUES")
        shared = [
            chain for chain in chains if all(listed is None or groups.lists(listed, q) for q in chain[:2])
        ]
        if shared:
            c, b, a = shared[0]
            said = (
                f"JOBS counts suspended jobs: where {a} takes jobs of {b} that have taken jobs of {c}, more are "
                "suspended than it allows, and they may stay so for good; jobs_limit_on_resume = 'running' "
                "counts running jobs when a suspended one is to go on"
            )
            yield _warning(f"{_TABLE}.limits[{at}]", said, "6.3")


def _unknown_groups(site: Site) -> Iterator[Finding]:
    """``group@`` in lsb.users stands for each member of a group; of one that does not exist, for no user."""
    groups = site.settings.user_groups
    for name in site.settings.users:
        if name.endswith("@") and name[:-1] not in groups:
            said = f"names the group {name[:-1]!r}, which does not exist{nearest(name[:-1], groups)}"
            yield _warning(f"{_TABLE}.users.{name}", said, "9.3")


def _bare_words(text: str) -> list[str]:
    words = (word.lstrip("~") for word in text.replace("(", " ").replace(")", " ").split())
    return [word for word in words if word != "all"]


def _unknown_keys(site: Site) -> Iterator[Finding]:
    """Keywords in TOML that no file of LSF has; the reader of the files says so itself."""
    own, table = site.settings, _TABLE
    for queue in site.queues.values():
        for key in queue.partition.attributes:
            if key not in (*keywords.QUEUE, *keywords.QUEUE_IDLE) and nearest(key, keywords.QUEUE):
                yield _unknown(f"partition[{queue.index}].attributes.{key}", key, keywords.QUEUE)
    tables: list[tuple[str, Mapping[str, str], tuple[str, ...]]] = [
        (f"{table}.params", own.params, (*keywords.PARAMS, *keywords.PARAMS_OPENLAVA)),
        (f"{table}.lsf_conf", own.lsf_conf, keywords.LSF_CONF),
        *(
            (f"{table}.applications.{name}", each, keywords.APPLICATION)
            for name, each in own.applications.items()
        ),
        *((f"{table}.users.{name}", each, keywords.USER) for name, each in own.users.items()),
        *((f"{table}.limits[{at}]", each, keywords.LIMIT) for at, each in enumerate(own.limits)),
    ]
    for where, given, known in tables:
        for key in given:
            if key not in known:
                yield _unknown(f"{where}.{key}", key, known)


def _unknown(where: str, key: str, known: tuple[str, ...]) -> Finding:
    return _warning(where, f"{key} has no effect here{nearest(key, known)}", "9.3")


def _openlava(site: Site) -> Iterator[Finding]:
    for key in ("MAX_PREEMPT_JOBS", "PREEMPT_SLOT_SUSPEND"):
        if key in site.settings.params:
            yield _note(f"{_TABLE}.params.{key}", f"{key} is OpenLava's; LSF does not know it", "9.3")


def _all_lower(line: PreemptionLine) -> bool:
    return line.preemptive and line.targets is None


def _everybody(site: Site) -> Iterator[Finding]:
    """PREEMPTIVE without a list takes from queues that are not marked at all (row 4)."""
    for queue in site.queues.values():
        unmarked = [name for name in site.targets[queue.name] if not site.queues[name].line.preemptable]
        if _all_lower(queue.line) and unmarked:
            text = (
                f"PREEMPTIVE without a list: takes jobs of {', '.join(unmarked)} too, though not PREEMPTABLE"
            )
            yield _note(_where(queue, "PREEMPTION"), text, "1")


def _unselected(site: Site) -> Iterator[Finding]:
    for queue in site.queues.values():
        if queue.unselected:
            names = ", ".join(queue.unselected)
            message = f"select: nothing is known of {names} here; no host is shut out by it"
            yield _warning(_where(queue, "RES_REQ"), message, "9.3")


_RULES: tuple[Callable[[Site], Iterator[Finding]], ...] = (
    _off,
    _conflicts,
    _no_shared_hosts,
    _delayed_reservations,
    _backfill,
    _exclusive,
    _minimal,
    _limits_that_stay,
    _actions,
    _load,
    _resources,
    _gpus,
    _names_in_limits,
    _jobs_limits,
    _unknown_groups,
    _unknown_keys,
    _openlava,
    _everybody,
    _unselected,
)

LOAD_TIME: tuple[Callable[[Site], Iterator[Finding]], ...] = (
    _conflicts,
    _delayed_reservations,
    _load,
    _names_in_limits,
    _unknown_groups,
    _resources,
)
"""Rules whose findings the reader gives as warnings when it reads the files."""


def load_time(site: Site) -> list[Finding]:
    """Return what LSF, or a rule, says at load time."""
    odd = [_warning(problem.where, problem.message, "2.1") for problem in site.oddities]
    return [*odd, *(finding for rule in LOAD_TIME for finding in rule(site))]

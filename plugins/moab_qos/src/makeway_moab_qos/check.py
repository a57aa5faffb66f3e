"""Find slips of a configuration before anything runs (moab 9, 13; K21).

What only the text of a moab.cfg shows (two-field times, flags in lower case, PREEMPTIONPOLICY, QFLAGS where
they do not belong) is found while it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from makeway.errors import Finding, nearest
from makeway.hostlist import fold_hostlist
from makeway.model import Cluster
from makeway_moab_qos.actions import SIGNALS, is_signal, signal_name
from makeway_moab_qos.capabilities import UNKNOWN, YES, can, checkpoints, row_of, supports
from makeway_moab_qos.hosts import matching, misread_brackets, strangers
from makeway_moab_qos.parameters import METHODS
from makeway_moab_qos.settings import NO_CLASS, Settings, path


def findings(cluster: Cluster, settings: Settings) -> list[Finding]:
    """Return all findings; for the hook."""
    notes = [*_no_class(cluster, settings), *_kept_memory(cluster, settings)]
    return [*slips(cluster, settings), *capabilities(settings), *notes]


def _no_class(cluster: Cluster, settings: Settings) -> Iterator[Finding]:
    """Jobs that name no class are in none, unless RMCFG names a default."""
    names = [name for name in settings.klass if name != NO_CLASS]
    if names and any(each.name == NO_CLASS and each.default for each in cluster.partitions):
        text = (
            f"jobs that name no class are in none of {', '.join(names)} (here: class {NO_CLASS}); "
            "RMCFG[...] DEFAULTCLASS= would name theirs"
        )
        yield Finding(level="note", where=path("klass"), message=text, section="moab 10")


def _kept_memory(cluster: Cluster, settings: Settings) -> Iterator[Finding]:
    """A suspended job keeps its memory in Moab's books (SUSPENDRESOURCES), in Maui's it does not."""
    if (
        settings.maui
        or settings.preempt_policy != "SUSPEND"
        or not any(node.memory_mb for node in cluster.nodes)
    ):
        return
    spared = (
        "a RESTARTABLE job is requeued, and any other" if settings.choices.escalate_for_resources else "it"
    )
    text = f"a suspended job keeps its memory; where a preemptor wants that memory, {spared} is waited for"
    yield Finding(level="note", where=path("preempt_policy"), message=text, section="moab 5.2")


def _warning(where: str, message: str, section: str) -> Finding:
    return Finding(level="warning", where=where, message=message, section=f"moab {section}")


# ----------------------------------------------------------------------------------------- slips
def slips(cluster: Cluster, settings: Settings) -> list[Finding]:
    """Return what is odd about the settings themselves."""
    found = [*_priorities(settings), *_throttles(settings), *_words(settings), *_hosts(cluster, settings)]
    if settings.maui:
        found += _in_maui(settings)
    else:
        found += [*_in_moab(settings), *_always_cancelled(settings)]
    return found


def _with(settings: Settings, flag: str) -> list[str]:
    return [name for name, each in settings.qos.items() if flag in each.flags]


def _priorities(settings: Settings) -> Iterator[Finding]:
    preemptors, preemptees = _with(settings, "PREEMPTOR"), _with(settings, "PREEMPTEE")
    for high in preemptors:
        for low in preemptees:
            if high != low and settings.qos[high].priority <= settings.qos[low].priority:
                text = (
                    f"QoS {high} is PREEMPTOR, but its PRIORITY {settings.qos[high].priority:g} is not above "
                    f"{settings.qos[low].priority:g} of PREEMPTEE {low}"
                )
                yield _warning(path("qos", high, "priority"), text, "9")
    if any(each.priority for each in settings.qos.values()) and settings.weights.qos is None:
        text = "a QoS has PRIORITY, but QOSWEIGHT is not set; it counts as 0 here, and Moab's own default is unclear"
        yield _warning(path("weights", "qos"), text, "8.2")
    if preemptors and not preemptees:
        yield _warning(path("qos"), "a QoS is PREEMPTOR, but none is PREEMPTEE", "3.1")


def _always_cancelled(settings: Settings) -> Iterator[Finding]:
    """The guide's main trap (5.3): a preemptee that cannot make way as asked is cancelled, and its work is lost."""
    if settings.preempt_policy not in METHODS or settings.preempt_policy == "CANCEL":
        return
    spared = _spared_by(settings)
    if spared is None:
        return
    credentials = (settings.user, settings.group, settings.account, settings.klass)
    if any(spared.keys() & set(each.jobflags) for table in credentials for each in table.values()):
        return
    for name in _with(settings, "PREEMPTEE"):
        if not spared.keys() & set(settings.qos[name].jobflags):
            text = f"a preempted job of QoS {name} is cancelled: nothing makes it {' or '.join(spared) or 'spared'}"
            if spared:
                text += f"; add JOBFLAGS={next(iter(spared))} to QOSCFG[{name}], or submit with msub -r y"
            yield _warning(path("qos", name, "flags"), text, "5.3")


def _spared_by(settings: Settings) -> dict[str, None] | None:
    """Return the flags each of which keeps a victim from being cancelled, the first rung first; None: all are spared.

    A victim that cannot make way as PREEMPTPOLICY says goes on to the next rung, and CANCEL is the last (5.2).
    """
    flags: dict[str, None] = {}
    asked = METHODS.index(settings.preempt_policy)
    for at, (rung, flag) in enumerate(zip(METHODS, ("SUSPENDABLE", "", "RESTARTABLE"), strict=False)):
        if at < asked or not supports(settings, rung.lower()):
            continue
        if rung == "CHECKPOINT":
            needed = settings.choices.checkpoint_requires == "restartable"
            stops_there = at == asked or (settings.choices.checkpoint_on_the_way and checkpoints(settings))
            if stops_there and not needed:
                return None
        else:
            flags[flag] = None
    return flags


def _throttles(settings: Settings) -> Iterator[Finding]:
    least, most = settings.min_active_time, settings.max_active_time
    if least > most > 0:
        text = f"JOBPREEMPTMINACTIVETIME {least:g} s is above JOBPREEMPTMAXACTIVETIME {most:g} s: no job is eligible"
        yield _warning(path("min_active_time"), text, "6")


def _words(settings: Settings) -> Iterator[Finding]:
    policy = settings.preempt_policy
    if policy not in METHODS:
        upper = f"; did you mean {policy.upper()!r}?" if policy.upper() in METHODS else ""
        text = f"PREEMPTPOLICY {policy!r} is not known; allowed: {', '.join(METHODS)}{upper}"
        yield _warning(path("preempt_policy"), text, "5.2")
    if settings.node_set_policy and settings.node_set_attribute != "FEATURE":
        text = f"NODESETATTRIBUTE {settings.node_set_attribute}: only sets by FEATURE are made; jobs lie on any nodes"
        yield _warning(path("node_set_attribute"), text, "7.6")
    if settings.priority_accrual == "RESET":
        text = "JOBPRIOACCRUALPOLICY RESET: queue time of blocked jobs is not set back here"
        yield _warning(path("priority_accrual"), text, "8.1")
    for at, rm in enumerate(settings.rm):
        for key, word in (("suspend_sig", rm.suspend_sig), ("checkpoint_sig", rm.checkpoint_sig)):
            if word and not is_signal(word):
                text = f"{key.replace('_', '').upper()} {word!r} is no signal{nearest(signal_name(word), SIGNALS)}"
                yield _warning(path(f"rm[{at}]", key), f"{text}; victims are not told by it", "13")
    for standing in settings.standing:
        if "OWNERPREEMPT" in standing.flags and not standing.owner:
            text = f"reservation {standing.name} has OWNERPREEMPT but no OWNER"
            yield _warning(path("standing"), text, "3.2 X4")


def _hosts(cluster: Cluster, settings: Settings) -> Iterator[Finding]:
    """Look at HOSTLIST: entries that name no node, and brackets that are no range of numbers."""
    known = [node.name for node in cluster.nodes]
    whole = settings.choices.host_expressions_match_whole
    for at, standing in enumerate(settings.standing):
        where = path(f"standing[{at}]")
        for entry in strangers(standing.hosts, known, whole=whole):
            text = f"SRCFG[{standing.name}] HOSTLIST: no node is named by {entry!r}"
            yield _warning(where, text + nearest(entry, known), "7.2")
        for bracket in misread_brackets(standing.hosts):
            names = fold_hostlist(matching(standing.hosts, known, whole=whole)) or "none"
            text = (
                f"SRCFG[{standing.name}] HOSTLIST: {bracket} is part of a regular expression, where it stands "
                f"for one character and not for a range of numbers; the nodes named are {names}"
            )
            yield _warning(where, text, "2.1")


def _in_maui(settings: Settings) -> Iterator[Finding]:
    if settings.preempt_policy == "CANCEL":
        text = "Maui has no CANCEL: every automatic preemption then fails"
        yield _warning(path("preempt_policy"), text, "15.2")
    if settings.optimistic:
        text = "BACKFILLPOLICY PREEMPT: Maui then preempts no job at all"
        yield _warning(path("backfill_policy"), text, "15.2")
    weights = settings.weights
    if weights.usage_consumed or weights.usage_remaining or weights.usage_percent:
        text = "CONSUMEDWEIGHT, REMAININGWEIGHT and PERCENTWEIGHT have no effect in Maui"
        yield _warning(path("weights"), text, "17")


def _in_moab(settings: Settings) -> Iterator[Finding]:
    if _with(settings, "PREEMPTOR") and not settings.guaranteed_preemption:
        text = "a QoS is PREEMPTOR, but GUARANTEEDPREEMPTION is not TRUE: freed nodes may go to another job"
        yield _warning(path("guaranteed_preemption"), text, "7.1")
    if settings.node_match_policy == "EXACTNODE" and settings.preemption_algorithm != "PREEMPTORCENTRIC":
        text = "JOBNODEMATCHPOLICY EXACTNODE breaks preemption without PREEMPTIONALGORITHM PREEMPTORCENTRIC"
        yield _warning(path("node_match_policy"), text, "2.2")
    if _with(settings, "PREEMPTOR") and settings.node_access_policy != "SHARED":
        text = f"NODEACCESSPOLICY {settings.node_access_policy}: QoS preemption wants SHARED"
        yield _warning(path("node_access_policy"), text, "2.2")
    if _with(settings, "PREEMPTOR") and settings.backfill_policy not in ("FIRSTFIT", "PREEMPT"):
        text = f"BACKFILLPOLICY {settings.backfill_policy}: QoS preemption wants FIRSTFIT"
        yield _warning(path("backfill_policy"), text, "2.2")
    if settings.prio_job_select_weight is not None or settings.rtime_weight is not None:
        text = "no document says how PREEMPTPRIOJOBSELECTWEIGHT and PREEMPTRTIMEWEIGHT count; this is a guess"
        yield _warning(path("prio_job_select_weight"), text, "4.4")


# ---------------------------------------------------------------------------------- capabilities
def capabilities(settings: Settings) -> Iterator[Finding]:
    """Yield what the resource managers cannot carry out of what the policy asks for."""
    asked = settings.preempt_policy.lower()
    for at, rm in enumerate(settings.rm):
        row = row_of(rm)
        title = row.title if row is not None else rm.type or "its own"
        if settings.preempt_policy in METHODS:
            answer = can(rm, asked)
            if answer == UNKNOWN and asked == "cancel":
                text = f"whether {title} can cancel is unknown; it is tried anyway"
                yield _warning(path("preempt_policy"), text, "13")
            elif answer != YES:
                policy = settings.preempt_policy
                text = f"PREEMPTPOLICY {policy} with {title}: {answer}; the next rung that works is used"
                yield _warning(path("preempt_policy"), text, "13")
        if rm.type.upper() == "NATIVE" and not rm.suspend_url:
            text = f"resource manager {rm.name}: suspending through a native interface needs JOBSUSPENDURL"
            yield _warning(path(f"rm[{at}]"), text, "5.3")
        if rm.type and row is None and rm.type.upper() != "NATIVE":
            text = f"resource manager {rm.name}: what {rm.type} can do is not in the guide's table"
            yield _warning(path(f"rm[{at}]"), text, "13")

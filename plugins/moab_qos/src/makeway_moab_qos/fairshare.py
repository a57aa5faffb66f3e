"""Keep count of what each credential has used, and hold it against targets (moab 3.2 X3, X9 and 8.1 FS).

Usage is processor-seconds of running jobs, in windows of FSINTERVAL; the last FSDEPTH of them count, each
FSDECAY times as much as the one after it. What a credential has used is a percentage of what all have used
in the same windows; under a policy with ``%`` of what the machine could have delivered. As Maui does, usage
is booked pass by pass: what ran after one pass is charged up to the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import DEFAULT, credential, names_of, qos_name, qos_of, settings_of
from makeway_moab_qos.settings import Credential, Settings

KINDS = ("user", "group", "account", "qos", "klass")


@attrs.define
class Usage:
    """What was used, per window."""

    last: Seconds = 0.0
    running: list[tuple[int, tuple[tuple[str, str], ...]]] = attrs.field(factory=list)
    """Processors and credentials of the jobs that have run since `last`."""
    used: dict[tuple[str, str], dict[int, float]] = attrs.field(factory=dict)
    """Kind and name of a credential -> window -> processor-seconds."""
    total: dict[int, float] = attrs.field(factory=dict)
    """Window -> processor-seconds of all jobs."""


def is_on(settings: Settings) -> bool:
    """Whether the site has fairshare at all."""
    return settings.fs_policy != "NONE"


def usage_of(settings: Settings) -> Usage:
    """Return the books of the run."""
    found: Usage = settings.memo.setdefault("fairshare", Usage())
    return found


def book(view: ClusterView, now: Seconds) -> None:
    """Charge those who have run since the last pass, and take note of who runs now."""
    settings = settings_of(view)
    if not is_on(settings):
        return
    usage = usage_of(settings)
    for window, seconds in _windows(usage.last, now, settings.fs_interval):
        for processors, whose in usage.running:
            amount = processors * seconds
            usage.total[window] = usage.total.get(window, 0.0) + amount
            for key in whose:
                table = usage.used.setdefault(key, {})
                table[window] = table.get(window, 0.0) + amount
    usage.last = now
    usage.running = [
        (_processors(job), tuple(_credentials(job, view)))
        for job in view.active
        if job.state is JobState.RUNNING
    ]


def _processors(job: Job) -> int:
    held = job.allocation
    return sum(held.cpus) if held is not None and held.cpus is not None else job.spec.cpus


def _credentials(job: Job, view: ClusterView) -> Iterator[tuple[str, str]]:
    for kind, name in (*names_of(job).items(), ("qos", qos_name(job, view))):
        if name is not None:
            yield kind, name


def _windows(begin: Seconds, end: Seconds, length: Seconds) -> Iterator[tuple[int, Seconds]]:
    """Yield the windows between two instants, each with its share of the time."""
    at = begin
    while at < end:
        window = int(at // length)
        until = min(end, (window + 1) * length)
        yield window, until - at
        at = until


def share(kind: str, name: str, view: ClusterView) -> float:
    """Return what a credential has used, in percent."""
    settings = settings_of(view)
    usage = usage_of(settings)
    now = int(usage.last // settings.fs_interval)
    used = total = 0.0
    table = usage.used.get((kind, name), {})
    for back in range(settings.fs_depth):
        window, weight = now - back, settings.fs_decay**back
        if window < 0:
            break
        used += weight * table.get(window, 0.0)
        total += weight * _delivered(window, usage, view, settings)
    return 100.0 * used / total if total else 0.0


def _delivered(window: int, usage: Usage, view: ClusterView, settings: Settings) -> float:
    """Return what usage in a window is a part of."""
    if not settings.fs_policy.endswith("%"):
        return usage.total.get(window, 0.0)
    begin = window * settings.fs_interval
    length = max(0.0, min(usage.last, begin + settings.fs_interval) - begin)
    return length * sum(node.cpus for node in view.cluster.nodes)


def target_of(kind: str, name: str, job: Job, view: ClusterView) -> Credential:
    """Return the credential whose target counts: its own, or that of the DEFAULT index."""
    settings = settings_of(view)
    if kind == "qos":
        own, fallback = qos_of(job, view), settings.qos.get(DEFAULT, Credential())
    else:
        own, fallback = credential(settings, kind, name), credential(settings, kind, DEFAULT)
    return own if own.fs_target else fallback


def distances(job: Job, view: ClusterView) -> Iterator[tuple[str, float]]:
    """Yield target less usage for each credential that has a target, as priority counts it.

    A floor counts only while usage is below it, a ceiling only while usage is above it.
    """
    if not is_on(settings_of(view)):
        return
    for kind, name in _credentials(job, view):
        found = target_of(kind, name, job, view)
        if found.fs_target:
            distance = found.fs_target - share(kind, name, view)
            if found.fs_mode == "floor":
                distance = max(0.0, distance)
            elif found.fs_mode == "ceiling":
                distance = min(0.0, distance)
            yield kind, distance


def violation(job: Job, view: ClusterView) -> str:
    """Say which fairshare target a job's credentials are beyond; empty: none. A floor cannot be violated."""
    if not is_on(settings_of(view)):
        return ""
    for kind, name in _credentials(job, view):
        found = target_of(kind, name, job, view)
        if found.fs_target and found.fs_mode != "floor":
            used = share(kind, name, view)
            if used > found.fs_target:
                word = kind.replace("klass", "class")
                return f"{word} {name} has used {used:.1f}%, FSTARGET is {found.fs_target:g}%"
    return ""


def in_violation(job: Job, own: frozenset[str], view: ClusterView) -> bool:
    """Whether a job violates a fairshare target: its flags say so, or usage does (X3)."""
    settings = settings_of(view)
    if "FSVIOLATION" in own:
        return True
    return settings.choices.fs_violation_while_running and bool(violation(job, view))

"""Describe what a cluster is doing at one instant, so that an engine can go on from there (``STATE.json``).

A state has two parts. The *jobs* are facts that anyone can observe: what waits, what holds what since when, what
was suspended by what, what is in a grace time or still leaving. The *memory* is what single parts of makeway hand
over because no look at the jobs tells it: whose turn is next, what was used so far, what was promised. A state
without memory is good: each part then makes up its mind from the jobs.

Names of fields are those of `makeway.model.Job` and `makeway.model.JobSpec`; docs/adoption.md explains them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.bounds import json_of
from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.model import (
    NOTHING,
    Allocation,
    Cluster,
    Job,
    JobSpec,
    JobState,
    Plan,
    PreemptMode,
    Seconds,
    Signal,
    SuspendedBy,
)
from makeway.settings import structure, unstructure

T = TypeVar("T")

VERSION = 1
"""Version of the format; a file of a later one is refused."""
REQUEUED = "PENDING"
"""`Standing.leaving` of a job that waits again once it has left its nodes."""


@attrs.frozen(kw_only=True)
class Held:
    """What a job holds. Lists run parallel to the nodes in index order; a list of one stands for all nodes."""

    nodes: str
    """Host list."""
    cpus: tuple[int, ...] | None = None
    """CPUs charged on each node; None: all of them."""
    cores: tuple[str, ...] | None = None
    """Cores held on each node (``0-3,6``); None: whole nodes."""
    memory_mb: tuple[int, ...] | None = None
    """Memory charged on each node; None: memory is not tracked."""
    gres: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    devices: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Which GPUs of each node are held (``0-1,3``), by resource; empty: they are not told apart."""
    licenses: Mapping[str, int] = attrs.field(factory=dict)
    shared: bool = False
    marks: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Grace:
    """What awaits a job in its grace time, which ends at the job's `end_at`. See `makeway.model.Plan`."""

    mode: PreemptMode
    grace_time: Seconds = 0.0
    notice: tuple[Signal, ...] = ()
    farewell: tuple[Signal, ...] = ()
    hold_down: Seconds = 0.0
    within: Seconds = 0.0
    stop_signal: str = ""
    why: str = ""


@attrs.frozen(kw_only=True)
class Standing:
    """One job as it stands. What is left out follows from the rest, as each field says."""

    spec: JobSpec
    """What was submitted."""
    state: JobState = JobState.PENDING
    """PENDING, RUNNING, SUSPENDED or COMPLETING."""
    index: int | None = None
    """Place in the job table; None: by place in this list."""
    partition: str = ""
    """Where it runs, or was tried last; empty: the first that it was submitted to."""
    submit_at: Seconds | None = None
    """Last submission, a requeue renews it; None: as the spec says."""
    eligible_at: Seconds | None = None
    """Earliest start; None: its begin time, or its submission."""
    eligible_since: Seconds | None = None
    """Since when nothing of its own keeps it from starting; None: from now on, if nothing does."""
    priority: int | None = None
    """None: handed out anew, by place in this list; 0: held."""
    reason: str = ""
    """Why it waits; empty: found out in the next pass."""
    started_at: Seconds | None = None
    """Start of this incarnation; may lie before instant 0."""
    first_start_at: Seconds | None = None
    """Start of its first incarnation; None: `started_at`."""
    resumed_at: Seconds | None = None
    """Last start or resume; None: since `started_at` it was stopped for `stopped` in all."""
    ran: Seconds | None = None
    """Running time of this incarnation up to `resumed_at`, or of a suspended job in all; None: from the instants."""
    end_at: Seconds | None = None
    """When its time or grace time is over; None: from its time limit."""
    suspended_at: Seconds | None = None
    """None, for a suspended job: now."""
    suspended_by: SuspendedBy | None = None
    """None, for a suspended job: the policy."""
    allocation: Held | None = None
    starts: int | None = None
    """How often it was started, failed starts included; None: once for each restart, and once if it is active."""
    restarts: int = 0
    preemptions: int = 0
    preemptions_before: int = 0
    preempted_at: tuple[Seconds, ...] = ()
    stopped: Seconds = 0.0
    resume_after: Seconds | None = None
    preempt_at: Seconds | None = None
    """When it was told to make way in this incarnation."""
    asked_at: Seconds | None = None
    asked_nodes: str = ""
    """As a preemptor: when it last had others leave, and where it wanted to start; a host list."""
    checkpointed: Seconds = 0.0
    begun_with: Seconds = 0.0
    marked_saved: bool = False
    lost: Seconds = 0.0
    kept: bool = False
    """Whether an operator holds it or has stopped it."""
    marks: tuple[str, ...] = ()
    grace: Grace | None = None
    """It is in its grace time."""
    survived_grace: bool = False
    """It rode out a grace time and was requeued (rule grace_mark_survives_requeue)."""
    leaving: str = ""
    """It has ended or been killed and still occupies its nodes: its final state, or PENDING if it waits again."""
    told_to_leave: bool = False
    """It is leaving because it was killed."""
    left_nodes: str = ""
    """It is leaving, and has left these of its nodes already; a host list."""


@attrs.frozen(kw_only=True)
class State:
    """All jobs that have not ended, and the nodes, as of one instant."""

    makeway_state: int = VERSION
    """Version of the format."""
    at: Seconds = 0.0
    """Seconds since the start of the replay; all instants in here are on this clock."""
    cluster: str = ""
    """Name of the cluster, for messages."""
    wall: float | None = None
    """Unix time of instant 0; None: not known."""
    down_nodes: str | None = None
    """Nodes out of service, a host list; None: as configured."""
    jobs: tuple[Standing, ...] = ()
    memory: Mapping[str, Any] = attrs.field(factory=dict)
    """What parts of makeway hand over, by part (engine, selector, gang, policies, world); may be left out."""


# -------------------------------------------------------------------------------------- files
def read_state(text: str, source: str) -> State:
    """Read a state from JSON.

    :param source: name of the file, for messages.
    :raises ConfigError: with all problems, each with its path.
    """
    data = json_of(text, source, _no_constant)
    if not isinstance(data, dict) or "makeway_state" not in data:
        text = 'no state of makeway; allowed: an object with "makeway_state": 1, as `--state-at` writes it'
        raise ConfigError(source, [Problem("", text)])
    version = data["makeway_state"]
    if version != VERSION or type(version) is not int:
        text = f"got {version!r:.40}; allowed: {VERSION}, the version that this makeway reads"
        raise ConfigError(source, [Problem("makeway_state", text)])
    state = structure(data, State, source)
    problems = list(_problems(state))
    if problems:
        raise ConfigError(source, problems)
    return state


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number in JSON")


def write_state(state: State) -> str:
    """Return a state as JSON, one job per line; what has its default is left out.

    :raises ConfigError: an attribute of a job has no counterpart in JSON.
    """
    plain = unstructure(state)
    head = {
        "makeway_state": VERSION,
        **{key: value for key, value in plain.items() if key not in ("jobs", "memory")},
    }
    lines = [f"{_json(key)}: {_json(value)}" for key, value in head.items()]
    jobs = ",\n  ".join(job_to_json(job) for job in state.jobs)
    lines.append(f'"jobs": [\n  {jobs}\n]' if jobs else '"jobs": []')
    if state.memory:
        lines.append(f'"memory": {_json(plain["memory"])}')
    return "{" + ",\n".join(lines) + "}\n"


def job_to_json(job: Standing) -> str:
    """Return one job as a line of JSON."""
    try:
        return _json(unstructure(job))
    except (TypeError, ValueError) as error:
        problem = Problem(f"job {job.spec.id}", f"it cannot be written as JSON: {error}")
        raise ConfigError("state", [problem]) from None


def job_from_json(text: str, source: str) -> Standing:
    """Read one job from a line of JSON.

    :raises ConfigError: with all problems.
    """
    return structure(json.loads(text), Standing, source)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "), allow_nan=False)


def _problems(state: State) -> Iterable[Problem]:
    """Yield what is wrong with a state whatever the cluster."""
    seen: dict[str, int] = {}
    for at, job in enumerate(state.jobs):
        where = f"jobs[{at}]"
        first = seen.setdefault(job.spec.id, at)
        if first != at:
            yield Problem(f"{where}.spec.id", f"job {job.spec.id!r} was there before, as jobs[{first}]")
        if job.state.ended:
            text = f"got {job.state.value}; allowed: {_LIVE} (jobs that have ended are left out)"
            yield Problem(f"{where}.state", text)
        elif (job.state is not JobState.PENDING or job.leaving) and job.allocation is None:
            yield Problem(f"{where}.allocation", f"missing; a job that is {job.state.value} holds nodes")
        elif job.state is JobState.PENDING and not job.leaving and job.allocation is not None:
            yield Problem(f"{where}.allocation", "there is one; a job that is PENDING holds no nodes")
        if job.leaving and job.leaving != REQUEUED and job.leaving not in _ENDS:
            options = ", ".join((REQUEUED, *_ENDS))
            yield Problem(f"{where}.leaving", f"got {job.leaving!r}; allowed: {options}")
        if job.started_at is not None and job.started_at > state.at:
            text = f"got {job.started_at:g}, which is after the instant of the state, {state.at:g}"
            yield Problem(f"{where}.started_at", text)


_ENDS = tuple(state.value for state in JobState if state.ended)
_LIVE = ", ".join(state.value for state in JobState if not state.ended)


# ------------------------------------------------------------------------------- jobs of a run
def nodes_to_text(cluster: Cluster, nodes: NodeBits) -> str:
    """Return a set of nodes as a host list; empty for none."""
    if not nodes:
        return ""
    listed = cluster.nodes
    return fold_hostlist([listed[index].name for index in bitmap.indices(nodes)])


def nodes_from_text(cluster: Cluster, text: str) -> NodeBits:
    """Return a host list as a set of nodes.

    :raises ValueError: it is malformed, or names a node that is not there.
    """
    if not text:
        return 0
    found = []
    for name in expand_hostlist(text):
        node = cluster.node(name)
        if node is None:
            raise ValueError(f"no node named {name!r}")
        found.append(node.index)
    return bitmap.of(found)


def held_of(cluster: Cluster, allocation: Allocation) -> Held:
    """Return an allocation as a state shows it."""
    cores = allocation.cores
    return Held(
        nodes=nodes_to_text(cluster, allocation.nodes),
        cpus=_short(allocation.cpus),
        cores=None if cores is None else _short(tuple(cores_to_text(each) for each in cores)),
        memory_mb=_short(allocation.memory_mb),
        gres={name: _short(counts) or () for name, counts in allocation.gres.items()},
        devices={
            name: _short(tuple(cores_to_text(each) for each in bits)) or ()
            for name, bits in allocation.devices.items()
        },
        licenses=dict(allocation.licenses),
        shared=allocation.shared,
        marks=tuple(sorted(allocation.marks)),
    )


def allocation_of(cluster: Cluster, held: Held) -> Allocation:
    """Return what a state shows as an allocation.

    :raises ValueError: nodes, cores or the lengths of the lists do not fit the cluster.
    """
    nodes = nodes_from_text(cluster, held.nodes)
    if not nodes:
        raise ValueError("it holds no nodes")
    indices = bitmap.index_tuple(nodes)
    size = len(indices)
    cores = None
    if held.cores is not None:
        texts = _long(held.cores, size, "cores")
        cores = tuple(map(cores_from_text, texts))
        for index, mine in zip(indices, cores, strict=True):
            node = cluster.nodes[index]
            most = max(node.cores, node.cpus)
            if mine >> most:
                raise ValueError(f"cores {cores_to_text(mine)} on {node.name}, which has 0-{most - 1}")
    return Allocation(
        nodes=nodes,
        node_indices=indices,
        cpus=None if held.cpus is None else _long(held.cpus, size, "cpus"),
        cores=cores,
        memory_mb=None if held.memory_mb is None else _long(held.memory_mb, size, "memory_mb"),
        gres={name: _long(counts, size, f"gres {name}") for name, counts in held.gres.items()} or NOTHING,
        devices={
            name: tuple(map(cores_from_text, _long(texts, size, f"devices {name}")))
            for name, texts in held.devices.items()
        }
        or NOTHING,
        licenses=dict(held.licenses) or NOTHING,
        shared=held.shared,
        marks=frozenset(held.marks),
    )


def _short(values: tuple[T, ...] | None) -> tuple[T, ...] | None:
    """Write a list of equal values as a list of one."""
    if values is not None and len(values) > 1 and values.count(values[0]) == len(values):
        return values[:1]
    return values


def _long(values: Sequence[T], size: int, what: str) -> tuple[T, ...]:
    if len(values) == 1:
        return tuple(values) * size
    if len(values) != size:
        raise ValueError(f"{len(values)} values of {what} for {size} nodes; allowed: 1 or {size}")
    return tuple(values)


def cores_to_text(cores: CoreBits) -> str:
    """Return a set of cores as ``0-3,6``."""
    return ",".join(
        f"{first}-{stop - 1}" if stop > first + 1 else str(first) for first, stop in bitmap.runs(cores)
    )


def cores_from_text(text: str) -> CoreBits:
    """Return ``0-3,6`` as a set of cores.

    :raises ValueError: it is something else.
    """
    cores = 0
    for part in filter(None, text.split(",")):
        match = _RUN.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise ValueError(f"got {text!r} as cores; allowed: such as '0-3,6'")
        cores |= bitmap.full(last + 1) & ~bitmap.full(first)
    return cores


_RUN = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def grace_of(plan: Plan) -> Grace:
    """Return the plan of a victim as a state shows it."""
    return Grace(
        mode=plan.mode,
        grace_time=plan.grace_time,
        notice=tuple(plan.notice),
        farewell=tuple(plan.farewell),
        hold_down=plan.hold_down,
        within=plan.within,
        stop_signal=plan.stop_signal,
        why=plan.why,
    )


def plan_of(job: Job, grace: Grace) -> Plan:
    """Return what a state shows as the plan of a victim."""
    return Plan(job=job, **{field.name: getattr(grace, field.name) for field in attrs.fields(Grace)})


def states_of(jobs: Iterable[Job]) -> dict[str, str]:
    """Return id -> state of each job: equal where no job came, went, was stopped or went on, whatever the order."""
    return {job.id: job.state.value for job in jobs}


COPIED = (
    *(
        "index",
        "reason",
        "submit_at",
        "eligible_at",
        "eligible_since",
        "priority",
        "starts",
        "restarts",
        "started_at",
        "resumed_at",
    ),
    *("ran", "end_at", "suspended_at", "suspended_by", "stopped", "preemptions", "preemptions_before"),
    *("preempted_at", "resume_after", "preempt_at", "asked_at", "checkpointed", "begun_with", "marked_saved"),
    *("lost", "kept"),
)
"""Fields that `Job` and `Standing` share as they are."""


def job_now(job: Job, cluster: Cluster, **more: Any) -> Standing:
    """Return a job as a state shows it.

    :param more: what the engine knows beside: grace, leaving, told_to_leave, left_nodes, first_start_at, ...
    """
    same = {name: getattr(job, name) for name in COPIED}
    return Standing(
        spec=job.spec,
        state=job.state,
        partition=job.partition.name,
        allocation=None if job.allocation is None else held_of(cluster, job.allocation),
        asked_nodes=nodes_to_text(cluster, job.asked_nodes),
        marks=tuple(sorted(job.marks)),
        **same,
        **more,
    )

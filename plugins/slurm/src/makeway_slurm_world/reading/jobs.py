"""Turn a job as Slurm shows it into what makeway knows of a job: its request, its state, what it holds (section 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from makeway.hostlist import expand_hostlist, fold_hostlist, natural_key
from makeway.model import Exclusive, JobSpec, JobState, Seconds, SuspendedBy
from makeway.state import Held, Standing, cores_from_text, cores_to_text
from makeway_slurm.readers.values import parse_mem_mb, parse_time
from makeway_slurm_world.reading.records import JobRecord, Place

LIVE = {
    "PENDING": JobState.PENDING,
    "CONFIGURING": JobState.RUNNING,
    "RUNNING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.COMPLETING,
    "RESIZING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "STOPPED": JobState.RUNNING,
    "COMPLETING": JobState.COMPLETING,
}
"""States of jobs that have not ended; a job that was stopped by a signal holds its CPUs as one that runs (2.2)."""
_MOST_TASKS = 100_000
_DEPENDENCY = re.compile(r"(afterany|afterok):([0-9_*:+]+)(?:\([a-z_]*\))?", re.IGNORECASE)
_GRES = re.compile(r"(?:gres[:/])?([A-Za-z_][\w-]*(?::[A-Za-z_][\w.-]*)?)(?:[:=]([0-9]+)([KMG]?))?")
_WITHOUT_INDICES = re.compile(r"\(CNT:([0-9]+)\)")
"""How Slurm shows what a job holds of a resource whose pieces it does not tell apart."""
_FACTOR = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_RUN = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")


@attrs.frozen(kw_only=True)
class LiveJob:
    """One job, or one task of an array, that has not ended."""

    id: str
    """As Slurm's commands take it: ``12``, ``12_3``, ``12+1``."""
    number: int
    """The raw job id; tasks that wait together share one."""
    spec: JobSpec
    """What was submitted, instants on the run's clock."""
    state: JobState
    word: str
    """The state in Slurm's words."""
    reason: str
    partition: str
    nodes: tuple[str, ...]
    """Where it is; empty: nowhere."""
    places: tuple[Place, ...]
    restarts: int
    priority: int
    started_at: Seconds | None
    """Start of this run, on the run's clock."""
    ran: Seconds
    """How long this run has been at work, without suspensions."""
    suspended_at: Seconds | None
    eligible_at: Seconds | None
    fields: Mapping[str, str]
    notes: tuple[str, ...] = ()
    """What of it is not modelled."""

    @property
    def held(self) -> bool:
        """Whether something that is not makeway's to judge keeps it from starting."""
        return self.state is JobState.PENDING and (self.priority == 0 or bool(self.notes))

    @property
    def waits_for_slurm(self) -> bool:
        """Whether it waits for something that Slurm alone can judge: a person, another job, what is not modelled."""
        return self.held or (self.state is JobState.PENDING and self.reason.startswith("Dependency"))

    @property
    def run(self) -> tuple[int, Seconds | None]:
        """What tells one run of it from another (slurm-live 3)."""
        return self.restarts, self.started_at


@attrs.frozen(kw_only=True)
class Zone:
    """How Slurm's times become instants of a run."""

    wall: float
    """Unix time of instant 0."""

    def instant(self, text: str | None) -> Seconds | None:
        """Return a time such as ``2026-11-22T16:27:01``, which is UTC; None: there is none."""
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            return None
        return moment.timestamp() - self.wall


def live_jobs(record: JobRecord, zone: Zone, now: Seconds) -> list[LiveJob]:
    """Return the jobs that a record stands for: none that has ended, several for tasks that wait together.

    :param now: the instant of the look.
    """
    if record.state not in LIVE:
        return []
    tasks = _tasks(record)
    return [_one(record, task, zone, now) for task in tasks]


def ids_of(record: JobRecord) -> list[str]:
    """Return the ids of the jobs that a record stands for, ended or not."""
    return [_id(record, task) for task in _tasks(record)]


def _id(record: JobRecord, task: int | None) -> str:
    if task is not None:
        return f"{record.fields.get('ArrayJobId')}_{task}"
    if "HetJobId" in record.fields:
        return f"{record.fields['HetJobId']}+{record.fields.get('HetJobOffset', '0')}"
    return str(record.number)


def _tasks(record: JobRecord) -> list[int | None]:
    text = record.fields.get("ArrayTaskId")
    if text is None or "ArrayJobId" not in record.fields:
        return [None]
    found: list[int | None] = []
    for part in text.partition("%")[0].split(","):
        match = _RUN.fullmatch(part.strip())
        if match is not None and len(found) < _MOST_TASKS:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            found += range(first, last + 1, max(1, step))
    return found or [None]


def _one(record: JobRecord, task: int | None, zone: Zone, now: Seconds) -> LiveJob:
    fields = record.fields
    notes: list[str] = []
    state = LIVE[record.state]
    job_id = _id(record, task)
    started = zone.instant(fields.get("StartTime")) if state is not JobState.PENDING else None
    eligible = zone.instant(fields.get("EligibleTime"))
    submitted = zone.instant(fields.get("SubmitTime"))
    spec = _spec(
        record, job_id, task, state, submitted if submitted is not None else now, eligible, now, notes
    )
    nodes = expand_hostlist(fields.get("NodeList", "")) if state is not JobState.PENDING else []
    suspended = zone.instant(fields.get("SuspendTime")) if state is JobState.SUSPENDED else None
    return LiveJob(
        id=job_id,
        number=record.number,
        spec=spec,
        state=state,
        word=record.state,
        reason=fields.get("Reason", ""),
        partition=fields.get("Partition", "").partition(",")[0],
        nodes=tuple(nodes),
        places=record.places,
        restarts=_count(fields.get("Restarts")) or 0,
        priority=record.priority,
        started_at=started,
        ran=float(parse_time(fields.get("RunTime", "0")) or 0),
        suspended_at=suspended,
        eligible_at=eligible,
        fields=fields,
        notes=tuple(notes),
    )


def _spec(
    record: JobRecord,
    job_id: str,
    task: int | None,
    state: JobState,
    submitted: Seconds,
    eligible: Seconds | None,
    now: Seconds,
    notes: list[str],
) -> JobSpec:
    fields, get = record.fields, record.fields.get
    least, most = _range(get("NumNodes", "1"))
    if state is JobState.PENDING and "-" not in get("NumNodes", ""):
        most = None  # no number was asked for; Slurm shows its estimate
    tasks = _count(get("NumTasks"))
    per_task = _count(get("CPUs/Task")) or 1
    cpus = _count(get("NumCPUs"))
    if tasks is not None and cpus is not None and state is JobState.PENDING and tasks * per_task < cpus:
        per_task = -(-cpus // tasks)
    begin = eligible if eligible is not None and eligible > now else None
    array_limit = get("ArrayTaskThrottle")
    return JobSpec(
        id=job_id,
        name=record.name,
        user=record.user,
        group=record.group or None,
        account=get("Account"),
        partitions=tuple(get("Partition", "").split(",")),
        qos=get("QOS"),
        submit_at=submitted,
        begin_at=begin,
        time_limit=_limit(get("TimeLimit")),
        min_nodes=least,
        max_nodes=most,
        tasks=tasks,
        cpus_per_task=per_task,
        **_layout(fields),
        **_memory(fields),
        **_counted(fields, least, notes),
        **_sharing(fields),
        contiguous=get("Contiguous") == "1",
        features=get("Features", ""),
        required_nodes=_hosts(get("ReqNodeList")),
        excluded_nodes=_hosts(get("ExcNodeList")),
        priority=record.priority or None,
        nice=record.nice,
        requeue=get("Requeue", "1") == "1",
        batch=get("BatchFlag", "1") != "0",
        mcs_label=None if get("MCS_label") is None else get("MCS_label"),
        reservation=get("Reservation"),
        depends_on=_dependencies(get("Dependency"), notes),
        het_id=get("HetJobId"),
        het_offset=int(get("HetJobOffset", "0")),
        array_id=get("ArrayJobId") if task is not None else None,
        array_task=task or 0,
        array_limit=_count(array_limit) if task is not None else None,
        source="slurmctld",
    )


def _hosts(text: str | None) -> tuple[str, ...]:
    return tuple(expand_hostlist(text)) if text else ()


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _range(text: str) -> tuple[int, int | None]:
    least, _, most = text.partition("-")
    return max(1, _count(least) or 1), _count(most) or _count(least)


def _limit(text: str | None) -> Seconds | None:
    if text is None or text in ("UNLIMITED", "Partition_Limit"):
        return None
    found = parse_time(text)
    return None if found is None else float(found)


def _layout(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return tasks per node, socket and core, and what a node must look like."""
    found: dict[str, Any] = {}
    counts = fields.get("NtasksPerN:B:S:C", "").split(":")
    for name, text in zip(("tasks_per_node", "", "tasks_per_socket", "tasks_per_core"), counts, strict=False):
        if name and (number := _count(text)):
            found[name] = number
    shape = fields.get("ReqB:S:C:T", "").split(":")
    names = ("", "sockets_per_node", "cores_per_socket", "threads_per_core")
    for name, text in zip(names, shape, strict=False):
        if name and (number := _count(text)) and number < 65534:
            found[name] = number
    if number := _count(fields.get("MinCPUsNode")):
        found["min_cpus_per_node"] = number
    return found


def _memory(fields: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, name in (("MinMemoryCPU", "memory_mb_per_cpu"), ("MinMemoryNode", "memory_mb_per_node")):
        text = fields.get(key)
        if text is not None:
            try:
                found[name] = parse_mem_mb(text)
            except ValueError:  # as 1.50G
                amount = float(text[:-1]) * {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}[text[-1]]
                found[name] = -int(-amount // 1)
    return found


def counted(text: str) -> dict[str, int]:
    """Return counted resources such as ``gres:gpu:a100:2``, ``gres/gpu:2`` or ``nic(CNT:2)``, by name.

    Typed ones count for their name as well, as those of nodes do.
    """
    found: dict[str, int] = {}
    for word in re.sub(r"\([^()]*\)", "", _WITHOUT_INDICES.sub(r":\1", text)).split(","):
        match = _GRES.fullmatch(word.strip())
        if match is not None:
            count = int(match[2] or 1) * _FACTOR[match[3] or ""]
            for name in dict.fromkeys((match[1].partition(":")[0], match[1])):
                found[name] = found.get(name, 0) + count
    return found


def _counted(fields: Mapping[str, str], nodes: int, notes: list[str]) -> dict[str, Any]:
    """Return generic resources and licences."""
    found: dict[str, Any] = {}
    if "TresPerNode" in fields:
        found["gres"] = counted(fields["TresPerNode"])
    if "TresPerJob" in fields:
        found["gres_total"] = counted(fields["TresPerJob"])
    for key in ("TresPerTask", "TresPerSocket"):
        extra = [word for word in fields.get(key, "").split(",") if "gres" in word]
        if extra:
            notes.append(f"{key}={','.join(extra)} is not modelled")
    licences = fields.get("Licenses")
    if licences is not None:
        counts = (word.partition(":") for word in licences.split(","))
        found["licenses"] = {name: _count(count) or 1 for name, _, count in counts}
    return found


def _sharing(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return which nodes a job wants for itself: 26.05 has a field for that, before it OverSubscribe said so."""
    sharing = fields.get("OverSubscribe", "OK")
    alone = fields.get("Exclusive", "NODE" if sharing == "NO" else sharing)
    if alone in ("NODE", "USER", "MCS"):
        return {"exclusive": Exclusive(alone.lower())}
    return {"oversubscribe": True} if sharing == "YES" else {}


def _dependencies(text: str | None, notes: list[str]) -> tuple[str, ...]:
    """Return the jobs that must have ended; other kinds of dependencies are noted, and keep the job waiting."""
    if text is None:
        return ()
    found: list[str] = []
    for part in re.split(r"[,?]", text):
        match = _DEPENDENCY.fullmatch(part.strip())
        if match is None or "?" in text:
            notes.append(f"Dependency={part} is not modelled")
        else:
            found += (each.partition("+")[0] for each in match[2].split(":"))
    return tuple(found)


# ---------------------------------------------------------------------------------- standing
def standing(job: LiveJob, *, cores: bool, memory: bool, threads: Callable[[str], int]) -> Standing:
    """Return a job as a state shows it.

    :param cores: whether jobs share nodes core by core; False: nodes are handed out whole.
    :param memory: whether memory is handed out, too.
    :param threads: threads of each core, by node.
    """
    pending = job.state is JobState.PENDING
    return Standing(
        spec=job.spec,
        state=job.state,
        partition=job.partition,
        submit_at=job.spec.submit_at,
        priority=0 if job.held else None,
        reason=job.reason if pending else "",
        started_at=job.started_at,
        resumed_at=None,
        ran=job.ran if not pending else None,
        suspended_at=job.suspended_at,
        suspended_by=SuspendedBy.ADMIN if job.state is JobState.SUSPENDED else None,
        allocation=None if pending else held(job, cores=cores, memory=memory, threads=threads),
        restarts=job.restarts,
        leaving=JobState.CANCELLED.value if job.state is JobState.COMPLETING else "",
    )


def held(job: LiveJob, *, cores: bool, memory: bool, threads: Callable[[str], int]) -> Held:
    """Return what a job holds on its nodes, in index order."""
    by_node = {name: place for place in job.places for name in expand_hostlist(place.nodes)}
    nodes = sorted(job.nodes, key=natural_key)
    if not all(name in by_node for name in nodes):
        return Held(nodes=fold_hostlist(nodes))
    charged, sets, used = [], [], []
    for name in nodes:
        place = by_node[name]
        cpus = cores_from_text(place.cpus)
        charged.append(cpus.bit_count())
        per_core = max(1, threads(name))
        sets.append(cores_to_text(_cores(cpus, per_core)))
        used.append(place.memory_mb)
    gres: dict[str, tuple[int, ...]] = {}
    for at, name in enumerate(nodes):
        for kind, count in counted(by_node[name].gres).items():
            gres[kind] = (*gres.get(kind, (0,) * at), count)
    return Held(
        nodes=fold_hostlist(nodes),
        cpus=tuple(charged),
        cores=tuple(sets) if cores else None,
        memory_mb=tuple(used) if memory else None,
        gres={kind: counts + (0,) * (len(nodes) - len(counts)) for kind, counts in gres.items()},
        licenses=dict(job.spec.licenses),
    )


def _cores(cpus: int, threads: int) -> int:
    """Return the cores on which CPUs lie: Slurm counts the threads of a core one after the other."""
    if threads == 1:
        return cpus
    found = 0
    at = 0
    while cpus:
        if cpus & ((1 << threads) - 1):
            found |= 1 << at
        cpus >>= threads
        at += 1
    return found

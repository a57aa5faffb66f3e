"""Say what a person submits: the request of the commands and of the socket, and what becomes of it.

A `Request` travels as JSON. It becomes one `JobSpec` for the engine, or one for each task of an array, and a
`Submission` for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from makeway.arrays import TaskArray, parse_array, tasks_of
from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec, Seconds, UserSignal
from makeway_local_world.submission import Submission

SOURCE = "submission"
MOST_TASKS = 10_000
"""Most tasks of an array that are taken at once; each becomes a job."""
CONDITIONS = ("after", "afterany", "afterok", "afternotok")
KEY, AFTER, ARRAY, HOLD = "key", "after", "array", "hold"
"""Attributes of a job that the daemon keeps: key of the submission, conditions on others, the array as it was asked
for, whether it stays held once its conditions are met."""
_JOB = re.compile(r"[0-9]{1,12}(_[0-9]{1,7})?")
_KEY_SHAPE = re.compile(r"[\x21-\x7e]{1,200}")


@attrs.frozen(kw_only=True)
class Request:
    """What was asked for. Times are seconds; `begin` is Unix time."""

    key: str = ""
    """Chosen by the client: the same key never makes a second job. Empty: each request makes one."""
    name: str = ""
    partitions: tuple[str, ...] = ()
    qos: str | None = None
    account: str | None = None
    nodes: int = 1
    tasks: int | None = None
    cpus_per_task: int = 1
    memory_mb: int | None = None
    memory_mb_per_cpu: int | None = None
    gpus: int = 0
    gres: Mapping[str, int] = attrs.field(factory=dict)
    licenses: Mapping[str, int] = attrs.field(factory=dict)
    features: str = ""
    exclusive: bool = False
    time_limit: float | None = None
    begin: float | None = None
    hold: bool = False
    nice: int = 0
    priority: int | None = None
    """Operators only."""
    requeue: bool | None = None
    signal: str | None = None
    """``[B:]NAME[@SECONDS]``."""
    dependency: str | None = None
    """``afterok:12:13,afterany:14``."""
    array: str | None = None
    """``0-9%2``."""
    command: tuple[str, ...] = ()
    script: str | None = None
    cwd: str = "/"
    environment: Mapping[str, str] = attrs.field(factory=dict)
    input: str | None = None
    output: str | None = None
    error: str | None = None
    open_mode: Literal["truncate", "append"] = "truncate"
    umask: int = 0o022
    limits: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    process_nice: int = 0
    notice: str | None = None
    checkpoint: str | None = None
    on_end: str | None = None


@attrs.frozen(kw_only=True)
class Who:
    """Whose job it is."""

    user: str
    uid: int
    gid: int
    groups: tuple[int, ...] | None = None
    group: str | None = None


@attrs.frozen
class After:
    """One condition on other jobs."""

    kind: str
    """after, afterany, afterok or afternotok."""
    jobs: tuple[str, ...]

    def __str__(self) -> str:
        return ":".join((self.kind, *self.jobs))


def check(request: Request) -> list[Problem]:
    """List what is wrong with a request whatever the cluster."""
    found: list[Problem] = []
    for name, least, most in (
        ("nodes", 1, 1_000_000),
        ("cpus_per_task", 1, 1_000_000),
        ("tasks", 1, 1_000_000),
        ("memory_mb", 0, 2**40),
        ("memory_mb_per_cpu", 0, 2**40),
        ("gpus", 0, 100_000),
        ("nice", -(2**31), 2**31),
        ("process_nice", -20, 19),
        ("priority", 0, 2**32 - 1),
        ("umask", 0, 0o777),
        ("time_limit", 1, 1e10),
        ("begin", 0, 1e12),
    ):
        value = getattr(request, name)
        if value is not None and not least <= value <= most:
            found.append(Problem(name, f"got {value:g}; allowed: {least:g} to {most:g}"))
    if request.key and not _KEY_SHAPE.fullmatch(request.key):
        found.append(Problem("key", "allowed: 1 to 200 printable characters without spaces"))
    if len(request.name) > 255 or not (request.name.isprintable()):
        found.append(Problem("name", "allowed: at most 255 printable characters"))
    for name, parse in (("signal", parse_signal), ("dependency", parse_after), ("array", _array)):
        text = getattr(request, name)
        if text is not None:
            try:
                parse(text)
            except ValueError as error:
                found.append(Problem(name, str(error)))
    for table in ("gres", "licenses"):
        for key, value in getattr(request, table).items():
            if value < 0:
                found.append(Problem(f"{table}.{key}", f"got {value}; allowed: 0 or more"))
    return found


def _array(text: str) -> TaskArray:
    array = parse_array(text)
    if len(array.tasks) > MOST_TASKS:
        raise ValueError(f"got {len(array.tasks):,} tasks; allowed: {MOST_TASKS:,} in one submission")
    return array


def parse_signal(text: str) -> tuple[UserSignal, bool]:
    """Read ``[R][B]:NAME[@SECONDS]``, as ``sbatch --signal`` does; say too whether only the first process gets it.

    :raises ValueError: it is something else.
    """
    match = re.fullmatch(r"(?:([RB]{1,2}):)?(?:SIG)?([A-Z0-9+-]{1,12})(?:@(\d{1,5}))?", text.strip().upper())
    if match is None:
        raise ValueError(f"got {text!r}; allowed: [B:]NAME[@SECONDS], as in B:USR1@300")
    import signal as numbers

    flags, name, lead = match[1] or "", match[2], float(match[3] or 60)
    if name.isdigit():
        try:
            name = numbers.Signals(int(name)).name.removeprefix("SIG")
        except ValueError:
            raise ValueError(f"got signal {name}; allowed: a number or name that Linux knows") from None
    if f"SIG{name}" not in numbers.Signals.__members__:
        raise ValueError(f"got signal {name!r}; allowed: a signal that Linux knows, as in USR1 or TERM")
    return UserSignal(name=name, lead=lead, batch_only="B" in flags), "B" in flags


def parse_after(text: str) -> tuple[After, ...]:
    """Read ``afterok:12:13,afterany:14``; all conditions have to be met.

    :raises ValueError: it is something else.
    """
    found = []
    for part in text.split(","):
        kind, *jobs = part.strip().split(":")
        if kind.isdigit():
            kind, jobs = "afterany", [kind, *jobs]
        if kind not in CONDITIONS or not jobs:
            options = ", ".join(f"{each}:ID" for each in CONDITIONS)
            raise ValueError(f"got {part.strip()!r}; allowed, with commas between them: {options}")
        for job in jobs:
            if not _JOB.fullmatch(job):
                raise ValueError(f"got {job!r} as a job; allowed: an id, as in 12 or 12_3")
        found.append(After(kind, tuple(jobs)))
    return tuple(found)


# -------------------------------------------------------------------------------------- jobs
def specs(request: Request, who: Who, job_id: str, now: Seconds, wall: float) -> list[JobSpec]:
    """Return the jobs that a request makes: one, or one for each task of its array.

    :param now: the instant of the submission on the run's clock.
    :param wall: the same as Unix time.
    :raises ConfigError: with all that is wrong with the request.
    """
    problems = check(request)
    if problems:
        raise ConfigError(SOURCE, problems)
    afters = () if request.dependency is None else parse_after(request.dependency)
    attributes: dict[str, Any] = {}
    if request.key:
        attributes[KEY] = f"{who.uid}:{request.key}"
    if afters:
        attributes[AFTER] = [str(each) for each in afters]
        attributes[HOLD] = request.hold
    if request.array is not None:
        attributes[ARRAY] = request.array
    signal = None if request.signal is None else parse_signal(request.signal)[0]
    gres = dict(request.gres)
    if request.gpus:
        gres["gpu"] = gres.get("gpu", 0) + request.gpus
    spec = JobSpec(
        id=job_id,
        name=request.name or _name_of(request),
        user=who.user,
        group=who.group,
        account=request.account,
        partitions=request.partitions,
        qos=request.qos,
        submit_at=now,
        begin_at=None if request.begin is None else now + max(0.0, request.begin - wall),
        time_limit=request.time_limit,
        min_nodes=request.nodes,
        tasks=request.tasks,
        cpus_per_task=request.cpus_per_task,
        memory_mb_per_node=request.memory_mb,
        memory_mb_per_cpu=request.memory_mb_per_cpu,
        gres=gres,
        licenses=dict(request.licenses),
        features=request.features,
        exclusive=_whole() if request.exclusive else None,
        priority=0 if request.hold or afters else request.priority,
        nice=request.nice,
        requeue=request.requeue,
        signal=signal,
        command=request.command,
        attributes=attributes,
        wall_submit=wall,
    )
    return [spec] if request.array is None else tasks_of(spec, _array(request.array))


def _whole() -> Any:
    from makeway.model import Exclusive

    return Exclusive.NODE


def _name_of(request: Request) -> str:
    """Return the name of a job that was given none: that of its program, as sbatch and srun do."""
    if request.script is not None:
        return "script"
    return request.command[0].rpartition("/")[2][:255] if request.command else ""


def submission_of(request: Request, who: Who, spec: JobSpec, requeueable: bool) -> Submission:
    """Return what is to be run for one of the jobs that a request made."""
    name = "makeway-%A_%a.out" if spec.array_id is not None else "makeway-%j.out"
    signal, leader_only = (None, False) if request.signal is None else parse_signal(request.signal)
    return Submission(
        job_id=spec.id,
        user=who.user,
        uid=who.uid,
        gid=who.gid,
        groups=who.groups,
        command=request.command,
        script=request.script,
        cwd=request.cwd,
        environment=dict(request.environment),
        input=request.input,
        output=request.output or name,
        error=request.error,
        open_mode=request.open_mode,
        umask=request.umask,
        limits=dict(request.limits),
        nice=request.process_nice,
        requeueable=requeueable,
        signal=None if signal is None else signal.name,
        signal_before=60.0 if signal is None else signal.lead,
        signal_leader_only=leader_only,
        notice=request.notice,
        checkpoint=request.checkpoint,
        on_end=request.on_end,
        gpus=request.gpus,
    )


def conditions(spec: JobSpec) -> Iterator[After]:
    """Yield the conditions that a job was submitted with."""
    for text in spec.attributes.get(AFTER, ()):
        yield from parse_after(text)


__all__ = [
    "AFTER",
    "ARRAY",
    "HOLD",
    "KEY",
    "MOST_TASKS",
    "After",
    "Request",
    "Who",
    "check",
    "conditions",
    "parse_after",
    "parse_signal",
    "specs",
    "submission_of",
]

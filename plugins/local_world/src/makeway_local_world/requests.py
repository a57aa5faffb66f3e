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
from makeway.errors import Problem
from makeway.features import unreadable
from makeway.model import JobSpec, Seconds, UserSignal
from makeway.plain import shown
from makeway.settings import unstructure
from makeway_local_world.handed import RESOURCES
from makeway_local_world.limits import Bytes, Items, Number, Program, Table, Text, limited, problems
from makeway_local_world.submission import Submission

SOURCE = "submission"
MOST_TASKS = 10_000
"""Most tasks of an array that are taken at once; each becomes a job."""
MOST_TOLD = 500
"""Letters of a command that people are shown."""
STRING = (128 << 10) - 1
"""Bytes of the longest argument or variable that Linux hands to a program (execve(2))."""
MOST_HANDED = 2 << 20
"""Bytes of a command and its environment together: what Linux hands over under the usual limit of the stack."""
MOST_AFTER = 1000
"""Most jobs that one submission waits for."""
MOST_CONDITIONS = 100_000
"""Conditions of all tasks of an array together."""
MOST_RETRIES = 1000
RETRIES = 5
"""How often a job is retried that says by which exit codes only; as often as Slurm's ``max_batch_requeue`` allows."""
CONDITIONS = ("after", "afterany", "afterok", "afternotok")
KEY, AFTER, HOLD = "key", "after", "hold"
"""Attributes of a job that the daemon keeps: key of the submission, conditions on others, whether it stays held once
its conditions are met."""
_OWN = (KEY, AFTER, HOLD)
_JOB = re.compile(r"[0-9]{1,12}(_[0-9]{1,7})?")
_WHOLE, _DECIMAL = re.compile(r"-?[0-9]{1,15}"), re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}")


_NAME = Text(255)
_PATH = Text(4096)
_SHELL = Program(STRING)
_COUNT = Number(1, 1_000_000)
_COUNTED = Table(64, Text(255, least=1), Number(0, 10**9))


@attrs.frozen(kw_only=True)
class Request:
    """What was asked for. Times are seconds; `begin` is Unix time."""

    key: str = limited("", Text(200, shape=r"[\x21-\x7e]*", described="printable characters without spaces"))
    """Chosen by the client: the same key never makes a second job. Empty: each request makes one."""
    name: str = limited("", _NAME)
    partitions: tuple[str, ...] = limited((), Items(64, Text(255, least=1), distinct=True))
    qos: str | None = limited(None, _NAME)
    account: str | None = limited(None, _NAME)
    nodes: int = limited(1, _COUNT)
    tasks: int | None = limited(None, _COUNT)
    cpus_per_task: int = limited(1, _COUNT)
    memory_mb: int | None = limited(None, Number(0, 2**40))
    memory_mb_per_cpu: int | None = limited(None, Number(0, 2**40))
    gpus: int = limited(0, Number(0, 100_000))
    gres: Mapping[str, int] = limited(dict, _COUNTED)
    licenses: Mapping[str, int] = limited(dict, _COUNTED)
    attributes: Mapping[str, str] = limited(
        dict,
        Table(64, Text(100, least=1, shape=r"[A-Za-z_][A-Za-z0-9_.-]*", described="a name"), Text(1000)),
        "Read by policies; a number is one. Operators give any, others those of `world.settings.attributes`.",
    )
    features: str = limited("", Text(1000))
    exclusive: bool = limited(False, None)
    time_limit: float | None = limited(None, Number(1, 1e10))
    begin: float | None = limited(None, Number(0, 1e11))
    hold: bool = limited(False, None)
    nice: int = limited(0, Number(-(2**31), 2**31))
    priority: int | None = limited(None, Number(0, 2**32 - 1))
    """Operators only."""
    requeue: bool | None = limited(None, None)
    signal: str | None = limited(None, Text(32))
    """``[B:]NAME[@SECONDS]``."""
    retries: int | None = limited(
        None, Number(0, MOST_RETRIES), "How often it waits again after it has failed by itself."
    )
    requeue_exit: str | None = limited(
        None, Text(1000), "Exit codes after which it does so, as in 75,99-101; all but 0 without."
    )
    dependency: str | None = limited(None, Text(20_000))
    """``afterok:12:13,afterany:14``."""
    array: str | None = limited(None, Text(60_000))
    """``0-9%2``."""
    command: tuple[str, ...] = limited((), Items(20_000, Program(STRING)))
    script: str | None = limited(None, Program(4 << 20))
    cwd: str = limited("/", Text(4096, shape="/.*", described="an absolute path"))
    environment: Mapping[str, str] = limited(
        dict, Table(10_000, Bytes(1000, 1, "[^=]+", "names without '='"), Bytes(STRING))
    )
    input: str | None = limited(None, _PATH)
    output: str | None = limited(None, _PATH)
    error: str | None = limited(None, _PATH)
    open_mode: Literal["truncate", "append"] = limited("truncate", None)
    terminal: str | None = limited(
        None,
        Text(80, shape="/.*", described="an absolute path"),
        "Directory of the user's alone where the command meets its guest, with its streams or at a terminal.",
    )
    pty: bool = limited(False, None, "Whether the command gets a terminal there, rather than streams.")
    umask: int = limited(0o022, Number(0, 0o777))
    export: str = limited(
        "ALL", Text(10_000), "What was handed over of the environment; read when it is submitted again."
    )
    limits: Mapping[str, tuple[int, ...]] = limited(
        dict, Table(32, Text(20), Items(2, Number(-1, 2**63 - 1), least=2), known=RESOURCES)
    )
    """Resource limit -> soft and hard value; -1: unlimited."""
    process_nice: int = limited(0, Number(-20, 19))
    notice: str | None = limited(None, _SHELL)
    checkpoint: str | None = limited(None, _SHELL)
    checkpointable: bool | None = limited(
        None, None, "Whether it is saved with its memory; null: as its QOS or partition says."
    )
    checkpoint_every: float | None = limited(None, Number(1, 1e10), "Seconds between two saves.")
    on_end: str | None = limited(None, _SHELL)
    tell: str | None = limited(
        None, _SHELL, "Tells the user of what happens to the job, with the user's rights."
    )
    tell_at: tuple[Literal["begin", "end", "fail", "requeue", "suspend", "resume"], ...] = limited(
        (), Items(6, Text(10), distinct=True)
    )


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


def check(request: Request, *, runs: bool = True) -> list[Problem]:
    """List what is wrong with a request whatever the cluster.

    :param runs: whether it has to name something to run.
    """
    found = problems(request)
    for name, parse in (
        ("signal", parse_signal),
        ("dependency", parse_after),
        ("array", _array),
        ("requeue_exit", parse_codes),
    ):
        text = getattr(request, name)
        if text is not None and not any(each.where == name for each in found):
            try:
                parse(text)
            except ValueError as error:
                found.append(Problem(name, str(error)))
    if request.checkpoint is not None and (request.checkpointable or request.checkpoint_every):
        found.append(Problem("checkpoint", "a checkpointable job brings a command of its own; leave one out"))
    found += (
        Problem(f"attributes.{name}", "the daemon's own") for name in _OWN if name in request.attributes
    )
    if request.features and not found and (why := unreadable(request.features)):
        found.append(Problem("features", why))
    if found:
        return found
    if request.requeue is False and (request.retries or request.requeue_exit):
        name = "retries" if request.retries else "requeue_exit"
        found.append(Problem(name, "the job may not start again (--no-requeue)"))
    if request.terminal is not None and (request.script is not None or request.array is not None):
        found.append(Problem("terminal", "it is for one command, neither for a script nor for an array"))
    if request.terminal is not None and (request.checkpointable or request.checkpoint_every):
        found.append(
            Problem("checkpointable", "a job in the foreground cannot be saved: its guest does not wait")
        )
    if request.pty and request.terminal is None:
        found.append(Problem("pty", "no terminal is named"))
    if runs and request.script is None and not request.command:
        found.append(Problem("command", "nothing to run"))
    if request.script is not None and not request.script.startswith("#!"):
        found.append(Problem("script", "its first line must name the interpreter, as in '#!/bin/sh'"))
    words = [*request.command, *(text for item in request.environment.items() for text in item)]
    size = len("\0".join(words).encode("utf-8", "surrogateescape")) + 1
    if size > MOST_HANDED:
        found.append(Problem("environment", f"got {size:,} bytes with the command; allowed: {MOST_HANDED:,}"))
    if request.dependency is not None and request.array is not None:
        named = sum(len(each.jobs) for each in parse_after(request.dependency))
        tasks = len(_array(request.array).tasks)
        if named * tasks > MOST_CONDITIONS:
            told = f"got {named:,} jobs for each of {tasks:,} tasks; allowed: {MOST_CONDITIONS:,} together"
            found.append(Problem("dependency", told))
    return found


def _array(text: str) -> TaskArray:
    return parse_array(text, MOST_TASKS)


def parse_signal(text: str) -> tuple[UserSignal, bool]:
    """Read ``[R][B]:NAME[@SECONDS]``, as ``sbatch --signal`` does; say too whether only the first process gets it.

    :raises ValueError: it is something else.
    """
    match = re.fullmatch(
        r"(?:([RB]{1,2}):)?(?:SIG)?([A-Z0-9+-]{1,12})(?:@([0-9]{1,5}))?", text.strip().upper()
    )
    if match is None:
        raise ValueError(f"got {shown(text)}; allowed: [B:]NAME[@SECONDS], as in B:USR1@300")
    import signal as numbers

    flags, name, lead = match[1] or "", match[2], float(match[3] or 60)
    if name.isascii() and name.isdigit():
        try:
            name = numbers.Signals(int(name)).name.removeprefix("SIG")
        except ValueError:
            raise ValueError(f"got signal {name}; allowed: a number or name that Linux knows") from None
    if f"SIG{name}" not in numbers.Signals.__members__:
        raise ValueError(f"got signal {name!r}; allowed: a signal that Linux knows, as in USR1 or TERM")
    return UserSignal(name=name, lead=lead, batch_only="B" in flags), "B" in flags


def parse_codes(text: str) -> tuple[int, ...]:
    """Read ``75,99-101``, exit codes; 128 + n stands for signal n.

    :raises ValueError: it is something else.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", part.strip())
        first, last = (0, 0) if match is None else (int(match[1]), int(match[2] or match[1]))
        if not 1 <= first <= last <= 255:
            raise ValueError(f"got {shown(part.strip())}; allowed: exit codes from 1 to 255, as in 75,99-101")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def parse_after(text: str) -> tuple[After, ...]:
    """Read ``afterok:12:13,afterany:14``; all conditions have to be met.

    :raises ValueError: it is something else.
    """
    if text.count(",") + text.count(":") > MOST_AFTER:
        raise ValueError(f"allowed: at most {MOST_AFTER:,} jobs")
    found = []
    for part in text.split(","):
        kind, *jobs = part.strip().split(":")
        if _JOB.fullmatch(kind):
            kind, jobs = "afterany", [kind, *jobs]
        if kind not in CONDITIONS or not jobs:
            options = ", ".join(f"{each}:ID" for each in CONDITIONS)
            raise ValueError(f"got {shown(part.strip())}; allowed, with commas between them: {options}")
        for job in jobs:
            if not _JOB.fullmatch(job):
                raise ValueError(f"got {shown(job)} as a job; allowed: an id, as in 12 or 12_3")
        found.append(After(kind, tuple(jobs)))
    return tuple(found)


# -------------------------------------------------------------------------------------- jobs
def specs(request: Request, who: Who, job_id: str, now: Seconds, wall: float) -> list[JobSpec]:
    """Return the jobs that a checked request makes: one, or one for each task of its array.

    :param now: the instant of the submission on the run's clock.
    :param wall: the same as Unix time.
    """
    afters = () if request.dependency is None else parse_after(request.dependency)
    attributes = {name: value_of(text) for name, text in request.attributes.items()}
    if request.key:
        attributes[KEY] = f"{who.uid}:{request.key}"
    if afters:
        attributes[AFTER] = [str(each) for each in afters]
        attributes[HOLD] = request.hold
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
        requeue=True if request.retries or request.requeue_exit else request.requeue,
        signal=signal,
        command=shown_of(request.command),
        attributes=attributes,
        wall_submit=wall,
    )
    return [spec] if request.array is None else tasks_of(spec, _array(request.array))


def value_of(text: str) -> Any:
    """Return the value of an attribute as a policy reads it: a number, true or false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _whole() -> Any:
    from makeway.model import Exclusive

    return Exclusive.NODE


def _name_of(request: Request) -> str:
    """Return the name of a job that was given none: that of its program, as sbatch and srun do."""
    if request.script is not None:
        return "script"
    name = request.command[0].rpartition("/")[2][:60] if request.command else ""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def shown_of(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return as much of a command as people are shown; what is run is stored once, with the submission."""
    told: list[str] = []
    left = MOST_TOLD
    for word in command:
        if left <= 0:
            break
        told.append(word[:left])
        left -= len(word) + 1
    return tuple(told)


_NOT_AGAIN = ("key", "environment", "command", "script", "begin", "dependency", "hold")
"""Fields of a request that say nothing of another submission like it, or stand beside those that do."""


def _kept(request: Request) -> dict[str, Any]:
    """Return what was asked for beyond the defaults, for another submission like it."""
    return {name: value for name, value in unstructure(request).items() if name not in _NOT_AGAIN}


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
        terminal=request.terminal,
        pty=request.pty,
        umask=request.umask,
        limits=dict(request.limits),
        nice=request.process_nice,
        requeueable=requeueable or bool(spec.requeue),
        retries=(RETRIES if request.requeue_exit else 0) if request.retries is None else request.retries,
        requeue_exit=parse_codes(request.requeue_exit) if request.requeue_exit else (),
        signal=None if signal is None else signal.name,
        signal_before=60.0 if signal is None else signal.lead,
        signal_leader_only=leader_only,
        notice=request.notice,
        checkpoint=request.checkpoint,
        checkpointable=request.checkpointable,
        checkpoint_every=request.checkpoint_every,
        on_end=request.on_end,
        tell=request.tell,
        tell_at=tuple(request.tell_at),
        gpus=request.gpus,
        spec=unstructure(spec),
        array=request.array,
        asked=_kept(request),
    )


def conditions(spec: JobSpec) -> Iterator[After]:
    """Yield the conditions that a job was submitted with."""
    for text in spec.attributes.get(AFTER, ()):
        yield from parse_after(text)


__all__ = [
    "AFTER",
    "HOLD",
    "KEY",
    "MOST_TASKS",
    "After",
    "Request",
    "Who",
    "check",
    "conditions",
    "parse_after",
    "parse_codes",
    "parse_signal",
    "shown_of",
    "specs",
    "submission_of",
]

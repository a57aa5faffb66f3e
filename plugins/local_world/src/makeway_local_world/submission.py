"""What to run for a job, and as which user.

The daemon stores a submission before the engine hears of the job; the world reads it when the job starts::

    STATE/jobs/ID/submission.json      0600 in 0700: it holds the user's environment, which may hold secrets

The tasks of an array share one. The first line says the version and where the output goes, the second one what another
submission like it would ask for, the third one the rest: that one, with the environment, is cut off once all jobs have
ended. Files of another version are refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import attrs

from makeway.errors import ConfigError, MakewayError, reason_of
from makeway.settings import structure, unstructure
from makeway.state import Held
from makeway_local_world.keeping.files import (
    create_durably,
    open_directory,
    read_file,
    write_all,
    write_durably,
)

T = TypeVar("T")
VERSION = 2
"""Version of the file."""
MOST_KEPT = 64 << 10
"""Bytes of the second line beyond which it is cut off, too, once all jobs have ended."""
FILE = "submission.json"
HELD = "held"
"""What a start holds is in a file of this name and the number of the start."""
_KEY = "makeway_submission"
_TASK = re.compile(r"([0-9]+)_[0-9]+")
_FIELD = re.compile(r"%(\d{0,2})(.)", re.DOTALL)


class SubmissionError(MakewayError):
    """A stored submission is missing, damaged, or of a version that this makeway does not read."""


@attrs.frozen(kw_only=True)
class Submission:
    """What to run for one job, as its user asked for it.

    Paths may be relative to `cwd`; `output`, `error` and `input` may have fields, see `Names`.
    """

    job_id: str
    """Id of the job, as in the engine."""
    user: str
    """Login name."""
    uid: int
    """Whose rights the processes have."""
    gid: int
    """Primary group."""
    groups: tuple[int, ...] | None = None
    """Supplementary groups; None: those of `user` when the job starts."""
    command: tuple[str, ...] = ()
    """Program and arguments; with a `script`, the arguments of the script."""
    script: str | None = None
    """Text of a script; its first line (``#!``) names the interpreter. None: `command` is run."""
    cwd: str = "/"
    """Working directory."""
    environment: Mapping[str, str] = attrs.field(factory=dict)
    """What the user handed over; the world adds MAKEWAY_* and what it must set."""
    input: str | None = None
    """Where standard input comes from; None: /dev/null."""
    output: str = "makeway-%j.out"
    """Where standard output goes."""
    error: str | None = None
    """Where standard error goes; None: with the output."""
    open_mode: Literal["truncate", "append"] = "truncate"
    """What happens to output files that exist. A later incarnation that writes to the same path appends."""
    terminal: str | None = None
    """Directory where the command meets its guest (`makeway_local_world.terminals`); None: in the background."""
    pty: bool = False
    """Whether the command gets a terminal there, rather than its guest's streams."""
    umask: int = 0o022
    """Mode bits that new files lack."""
    limits: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    """Resource limit (``NOFILE``, ``CORE``, ...) -> soft and hard value; -1: unlimited."""
    nice: int = 0
    """Added to the niceness; only root may lower it."""
    requeueable: bool = True
    """Whether the job may be started again from the beginning. Its leader then dies with its keeper."""
    retries: int = 0
    """How often it waits again after it has failed by itself."""
    requeue_exit: tuple[int, ...] = ()
    """Exit codes after which it does so, 128 + n for signal n; empty: all but 0."""
    signal: str | None = None
    """Signal ahead of the time limit, without SIG; None: none."""
    signal_before: float = 60.0
    """Seconds ahead."""
    signal_leader_only: bool = False
    """Whether only the first process gets signals, as with ``sbatch --signal=B:``; else the whole tree does."""
    notice: str | None = None
    """Command for the shell, run before the job is stopped; None: SIGTSTP to those processes that catch it."""
    checkpoint: str | None = None
    """Command for the shell that saves the state of the running job; None: it has no checkpoints."""
    checkpointable: bool | None = None
    """Whether it is saved with its memory; None: as its QOS or partition says."""
    checkpoint_every: float | None = None
    """Seconds between two saves; None: as its QOS or partition says."""
    on_end: str | None = None
    """Command for the shell, run when an incarnation has ended."""
    tell: str | None = None
    """Command for the shell that tells its user of what happens to the job."""
    tell_at: tuple[str, ...] = ()
    """Of what it tells: begin, end, fail, requeue, suspend, resume."""
    gpus: int = 0
    """How many GPUs it asked for."""
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    """What the engine was told of the job, or of the first task (`makeway.model.JobSpec`), should the journal get
    lost."""
    array: str | None = None
    """Of an array its tasks as they were asked for: ``0-9``."""
    asked: Mapping[str, Any] = attrs.field(factory=dict)
    """What else its user asked for beyond the defaults, by the names of `makeway_local_world.requests.Request`."""


@attrs.frozen(kw_only=True)
class Kept:
    """What another submission like one would ask for; known after its end, too."""

    user: str
    uid: int
    command: tuple[str, ...] = ()
    script: str | None = None
    asked: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Where:
    """Where the output of a job goes, and what the engine was told of it; known after its end, too."""

    cwd: str
    output: str
    error: str | None = None
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    array: str | None = None


@attrs.frozen(kw_only=True)
class Names:
    """What the fields of a path stand for.

    ``%j`` job id, ``%A`` id of the array or of the job, ``%a`` index in the array, ``%x`` name of the job; ``%u``
    user, ``%N`` node, ``%I`` incarnation (1 for the first start), ``%%`` a per cent sign. A number pads with zeros:
    ``%4a``.
    """

    job_id: str
    array_id: str | None = None
    array_task: int | None = None
    name: str = ""
    user: str = ""
    node: str = ""
    incarnation: int = 1

    def expand(self, pattern: str) -> str:
        """Return `pattern` with its fields filled in; unknown ones stay as they are."""
        values = {
            "j": self.job_id,
            "A": self.array_id or self.job_id,
            "a": "4294967294" if self.array_task is None else str(self.array_task),  # as in Slurm
            "x": self.name or "job",
            "u": self.user,
            "N": self.node,
            "I": str(self.incarnation),
            "%": "%",
        }

        def value(match: re.Match[str]) -> str:
            width, field = match.groups()
            if field not in values:
                return match.group()
            # A name with a slash would lead elsewhere than its user meant.
            found = values[field].replace("/", "_")
            return found.rjust(int(width), "0") if width and found.isdigit() else found

        return _FIELD.sub(value, pattern)


def paths(submission: Submission | Where, names: Names) -> tuple[str, str]:
    """Return where output and error of an incarnation go, as absolute paths."""
    found = (submission.output, submission.error or submission.output)
    out, err = (os.path.join(submission.cwd, names.expand(pattern)) for pattern in found)
    return out, err


# ------------------------------------------------------------------------------------- storing
def file_name(job_id: str) -> str:
    """Return a job id as the name of a file: no slash, no leading dot, readable."""
    name = quote(job_id, safe="+[],=@:")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def directory_of(state: Path, job_id: str) -> Path:
    """Return the directory of a job in the state directory; it need not exist."""
    return state / "jobs" / file_name(stored_as(job_id))


def stored_as(job_id: str) -> str:
    """Return under which id the submission of a job is stored: of a task that of its array."""
    task = _TASK.fullmatch(job_id)
    return job_id if task is None else task[1]


def beside(job_id: str, kind: str, incarnation: int) -> str:
    """Return the name of a file about one start, beside the submission; tasks of an array share a directory."""
    task = _TASK.fullmatch(job_id)
    return f"{kind}.{incarnation}" if task is None else f"{kind}.{job_id.rpartition('_')[2]}.{incarnation}"


def encoded(submission: Submission) -> bytes:
    """Return a submission as it is stored."""
    plain = unstructure(submission)
    where = {each.name: getattr(submission, each.name) for each in attrs.fields(Where)}
    names = {each.name for each in attrs.fields(Kept)}
    again = {name: value for name, value in plain.items() if name in names}
    rest = {name: value for name, value in plain.items() if name not in {"spec", "array", *names}}
    lines = ({_KEY: VERSION, **where}, again, rest)
    return "".join(json.dumps(each, sort_keys=True) + "\n" for each in lines).encode("ascii")


def store(state: Path, submission: Submission) -> None:
    """Store a submission in the state directory, readable by no other user; when this returns, it survives a crash.

    :raises OSError: it could not be stored.
    """
    place = directory_of(state, submission.job_id)
    above = [place.parent] if place.parent.is_dir() else [place.parent, state]
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.mkdir(mode=0o700, exist_ok=True)
    with _opened(place) as folder:
        create_durably(folder, {FILE: encoded(submission)})
    for each in above:  # last, for by then the disk has done most of it
        with _opened(each) as folder:
            os.fsync(folder)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = open_directory(path)
    try:
        yield handle
    finally:
        os.close(handle)


def load(state: Path, job_id: str) -> Submission:
    """Read the submission of a job.

    :raises SubmissionError: there is none, or it cannot be read; the text names the file.
    """
    path, _, more = _read(state, job_id)
    if len(more) < 2:
        raise SubmissionError(f"{path}: what was to be run is forgotten, since the job has ended")
    return _of_plain(more[0] | more[1], Submission, path)


def kept(state: Path, job_id: str) -> Kept:
    """Read what another submission like that of a job would ask for, also of one that has ended.

    :raises SubmissionError: as `load`.
    """
    path, _, more = _read(state, job_id)
    if not more:
        raise SubmissionError(
            f"the command of job {job_id} is forgotten: it took more than {MOST_KEPT >> 10} KiB; submit it as before"
        )
    return _of_plain(more[0], Kept, path)


def rewrite(state: Path, job_id: str, command: tuple[str, ...]) -> None:
    """Let another command be run for a job that waits.

    :raises SubmissionError, OSError: it could not be done; what was stored is as it was.
    """
    before, place = load(state, job_id), where(state, job_id)
    spec = {**place.spec, "command": list(command)}
    after = attrs.evolve(before, command=command, script=None, spec=spec, array=place.array)
    with _opened(directory_of(state, job_id)) as folder:
        write_durably(folder, FILE, encoded(after))


def where(state: Path, job_id: str) -> Where:
    """Read where the output of a job goes, also of one that has ended.

    :raises SubmissionError: as `load`.
    """
    path, first, _ = _read(state, job_id)
    return _of_plain({key: value for key, value in first.items() if key != _KEY}, Where, path)


def _read(state: Path, job_id: str) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    """Return the file of a job, what its first line says, and what the others say that are not cut off."""
    path = directory_of(state, job_id) / FILE
    try:
        first, *rest = [json.loads(line) for line in read_file(path).splitlines()] or [None]
    except FileNotFoundError:
        raise SubmissionError(
            f"nothing is known of what to run for job {job_id}: {path} is missing"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise SubmissionError(f"{path}: it cannot be read: {reason_of(error)}") from None
    version = first.get(_KEY) if isinstance(first, dict) else None
    if version != VERSION:
        raise SubmissionError(
            f"{path}: got version {version!r}; allowed: {VERSION}; "
            "cancel the job and submit it again, or start the makeway that stored it"
        )
    return path, first, rest


def _of_plain(data: Any, cls: type[T], path: Path) -> T:
    try:
        return structure(data, cls, str(path))
    except ConfigError as error:
        raise SubmissionError(str(error)) from None


def forget(state: Path, job_id: str) -> None:
    """Cut off the environment of a job that has ended; its command and its output stay known. Nothing is raised."""
    path = directory_of(state, job_id) / FILE
    with contextlib.suppress(OSError), open(path, "r+b", opener=_not_by_links) as stream:
        first, second = stream.readline(), stream.readline(MOST_KEPT)
        stream.truncate(len(first) + (len(second) if second.endswith(b"\n") else 0))


def _not_by_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def store_held(state: Path, job_id: str, incarnation: int, held: Held) -> None:
    """Store what a start holds, should the journal get lost; it need not survive a crash of the machine.

    :raises OSError: it cannot be stored.
    """
    path = directory_of(state, job_id) / beside(job_id, HELD, incarnation)
    told = json.dumps({"held": unstructure(held), "wall": time.time()})
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(handle, told.encode())
    finally:
        os.close(handle)


def load_held(state: Path, job_id: str, incarnation: int) -> dict[str, Any] | None:
    """Return what a start holds (``held``), and its Unix time (``wall``); None: that is not known."""
    try:
        found = json.loads((directory_of(state, job_id) / beside(job_id, HELD, incarnation)).read_text())
        return {"held": dict(found["held"]), "wall": float(found["wall"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None


def delete(state: Path, job_id: str) -> None:
    """Forget the submission of a job, and all that lies beside it; one that is not there is no error."""
    shutil.rmtree(directory_of(state, job_id), ignore_errors=True)

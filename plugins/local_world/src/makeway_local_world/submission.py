"""What to run for a job, and as whom.

The daemon stores a submission before the engine hears of the job; the world reads it when the job starts::

    STATE/jobs/ID/submission.json      0600 in 0700: it holds the user's environment, which may hold secrets

A file names its version. Files of `VERSIONS` are read; others are refused.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import attrs

from makeway.errors import ConfigError, MakewayError
from makeway.settings import structure, unstructure
from makeway_local_world.keeping.files import open_directory, write_durably

VERSION = 1
VERSIONS = (1,)
"""Versions of the file that can be read."""
FILE = "submission.json"
_KEY = "makeway_submission"
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
    umask: int = 0o022
    """Mode bits that new files lack."""
    limits: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    """Resource limit (``NOFILE``, ``CORE``, ...) -> soft and hard value; -1: unlimited."""
    nice: int = 0
    """Added to the niceness; only root may lower it."""
    requeueable: bool = True
    """Whether the job may be started again from the beginning. Its leader then dies with its keeper."""
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
    on_end: str | None = None
    """Command for the shell, run when an incarnation has ended."""
    gpus: int = 0
    """How many GPUs it asked for."""


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


def paths(submission: Submission, names: Names) -> tuple[str, str]:
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
    return state / "jobs" / file_name(job_id)


def store(state: Path, submission: Submission) -> None:
    """Store a submission in the state directory, readable by nobody else; when this returns, it survives a crash.

    :raises OSError: it could not be stored; one that was there before is as it was.
    """
    place = directory_of(state, submission.job_id)
    for folder in (place.parent, place):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            above = open_directory(folder.parent)
            try:
                os.fsync(above)
            finally:
                os.close(above)
    text = json.dumps({_KEY: VERSION, **unstructure(submission)}, sort_keys=True)
    folder_handle = open_directory(place)
    try:
        write_durably(folder_handle, FILE, text.encode("ascii"))
    finally:
        os.close(folder_handle)


def load(state: Path, job_id: str) -> Submission:
    """Read the submission of a job.

    :raises SubmissionError: there is none, or it cannot be read; the text names the file.
    """
    path = directory_of(state, job_id) / FILE
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise SubmissionError(
            f"nothing is known of what to run for job {job_id}: {path} is missing"
        ) from None
    except (OSError, ValueError) as error:
        raise SubmissionError(f"{path}: it cannot be read: {error}") from None
    return _of_plain(data, path)


def _of_plain(data: Any, path: Path) -> Submission:
    version = data.pop(_KEY, None) if isinstance(data, dict) else None
    if version not in VERSIONS:
        allowed = ", ".join(map(str, VERSIONS))
        raise SubmissionError(f"{path}: got version {version!r}; this makeway reads {allowed}")
    try:
        return structure(data, Submission, str(path))
    except ConfigError as error:
        raise SubmissionError(str(error)) from None


def delete(state: Path, job_id: str) -> None:
    """Forget the submission of a job, and all that lies beside it; one that is not there is no error."""
    shutil.rmtree(directory_of(state, job_id), ignore_errors=True)


__all__ = [
    "FILE",
    "VERSION",
    "Names",
    "Submission",
    "SubmissionError",
    "delete",
    "directory_of",
    "file_name",
    "load",
    "paths",
    "store",
]

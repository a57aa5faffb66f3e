"""Read what a job waits for: a word of `JobSpec.depends_on`, as ``sbatch --dependency`` has it, of one job each."""

from __future__ import annotations

import re
from typing import NamedTuple

from makeway.model import Seconds

ANY, OK, NOT_OK, STARTED, TASK, SINGLE = (
    "afterany",
    "afterok",
    "afternotok",
    "after",
    "aftercorr",
    "singleton",
)
_KINDS = (ANY, OK, NOT_OK, STARTED, TASK)
_MINUTES = re.compile(r"(.+)\+([0-9]{1,6})")


class Dependency(NamedTuple):
    """One condition."""

    kind: str
    job: str
    """Id of a job, an array, or a heterogeneous job; empty: all earlier ones of this name and user."""
    delay: Seconds = 0.0
    """How long after the start of the other."""


def dependency(word: str) -> Dependency:
    """Read ``7`` (it must have ended), ``afterok:7``, ``after:7+5`` (five minutes after its start), ``singleton``."""
    if word == SINGLE:
        return Dependency(SINGLE, "")
    kind, mark, job = word.partition(":")
    if not mark or kind not in _KINDS:
        return Dependency(ANY, word)
    late = _MINUTES.fullmatch(job) if kind == STARTED else None
    return Dependency(kind, late[1], 60.0 * int(late[2])) if late else Dependency(kind, job)


def of_job(word: str, job: str) -> str:
    """Return the same condition on another job; of `SINGLE` itself, which names none."""
    kind, named, delay = dependency(word)
    if kind == SINGLE:
        return word
    if named == word:
        return job
    return f"{kind}:{job}" + (f"+{delay / 60:.0f}" if delay else "")

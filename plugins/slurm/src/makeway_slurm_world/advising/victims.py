"""Ask what one job would displace: of the policy, and of Slurm itself where that is safe (slurm-live 5)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import attrs

from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist
from makeway.model import JobSpec
from makeway_slurm.readers.sbatch_args import parse_sbatch
from makeway_slurm_world.talking.runner import Asker
from makeway_slurm_world.talking.words import would_start

NEW = "new"
"""Id of a job that is not submitted."""
_STARTS = re.compile(
    r"Job [0-9]+ to start at (?P<at>\S+) .*? on nodes (?P<nodes>\S+)(?: in partition (?P<partition>\S+))?"
)
_PREEMPTS = re.compile(r"Preempts: (?P<jobs>[0-9,_\[\]+-]+)")
_CRASHES = ("24.11.0", "24.11.1")
"""Releases whose controller may crash when a job that can preempt is tested (slurm-live 5)."""


@attrs.frozen(kw_only=True)
class SlurmSays:
    """What ``sbatch --test-only`` answered."""

    starts_at: str = ""
    nodes: str = ""
    partition: str = ""
    preempts: tuple[str, ...] = ()
    refused: str = ""
    """Why Slurm would not take it; empty: it would."""
    not_asked: str = ""
    """Why Slurm was not asked; empty: it was."""


def new_jobs(arguments: Sequence[str], user: str) -> list[JobSpec]:
    """Return the jobs that ``sbatch ARGUMENTS`` would submit.

    :raises ConfigError: an option is not understood.
    """
    try:
        options = [*_of_script(arguments), *_without_wrap(arguments)]
        return parse_sbatch(options, id=NEW, user=user, submit_at=0.0)
    except ValueError as error:
        raise ConfigError("sbatch " + shlex.join(arguments), [Problem("", str(error))]) from None


def _without_wrap(arguments: Sequence[str]) -> list[str]:
    found: list[str] = []
    skip = False
    for word in arguments:
        if skip or word.startswith("--wrap="):
            skip = False
        elif word == "--wrap":
            skip = True
        else:
            found.append(word)
    return found


def _of_script(arguments: Sequence[str]) -> list[str]:
    """Return the options in the ``#SBATCH`` lines of a script that is named; those of the command line win."""
    files = [Path(word) for word in arguments if not word.startswith("-") and Path(word).is_file()]
    if not files:
        return []
    found: list[str] = []
    for line in files[0].read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("#SBATCH"):
            found += shlex.split(line.removeprefix("#SBATCH"), comments=True)
        elif line.strip() and not line.startswith("#"):
            break
    return found


def ask_slurm(asker: Asker, arguments: Sequence[str], release: str) -> SlurmSays:
    """Ask Slurm itself; it submits nothing.

    :param release: the whole one, as ``22.05.8``.
    :raises Away: the controller does not answer.
    """
    if release in _CRASHES:
        return SlurmSays(not_asked=f"the controller of Slurm {release} may crash when it is asked")
    words = list(arguments)
    wrapped = any(word.startswith("--wrap") for word in words)
    if not wrapped and not any(Path(word).is_file() for word in words if not word.startswith("-")):
        words = ["--wrap", "true", *words]
    answer = asker.ask(would_start(tuple(words)), may_fail=True)
    text = answer.err + answer.out
    starts, preempts = _STARTS.search(text), _PREEMPTS.search(text)
    if starts is None:
        lines = [line.partition("error: ")[2] or line for line in text.splitlines() if line.strip()]
        return SlurmSays(refused=lines[-1].strip() if lines else f"exit status {answer.code}")
    return SlurmSays(
        starts_at=starts["at"],
        nodes=starts["nodes"],
        partition=starts["partition"] or "",
        preempts=_ids(preempts["jobs"]) if preempts else (),
    )


def _ids(text: str) -> tuple[str, ...]:
    return tuple(expand_hostlist(text))

"""Run commands of Slurm's, and tell an answer from a controller that is away."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs
import click

from makeway.errors import MakewayError
from makeway_slurm_world.talking.words import Order, Question

PATIENCE = 60.0
"""Seconds after which a command that does not answer is given up."""
LONGEST = 300
"""Characters of a command, or of its complaint, that are repeated to people."""
_AWAY = re.compile(
    r"unable to contact slurm controller|connection refused|connection timed out|socket timed out|zero bytes were"
    r"|slurmctld.*(?:is )?(?:down|not respond)|resource temporarily unavailable|transport endpoint is not connected"
    r"|slurm controller not responding|failed to contact|unexpected message received",
    re.IGNORECASE,
)
_SETTINGS = ("SBATCH_", "SINFO_", "SQUEUE_", "SACCTMGR_", "SCONTROL_", "SCANCEL_")
"""Variables with which people change what commands print."""
_NOT_OURS = frozenset(("SLURM_CLUSTERS", "SLURM_BITSTR_LEN", "SLURM_TIME_FORMAT", "SLURM_JOB_ID"))


class SlurmError(MakewayError):
    """A command of Slurm's failed; the text is its own."""


class Away(SlurmError):  # noqa: N818  # a state of the world, not a fault of the command
    """The controller cannot be reached; asking again later may help."""


@attrs.frozen(kw_only=True)
class Answer:
    """What a command printed."""

    code: int
    """Exit status."""
    out: str
    err: str

    @property
    def good(self) -> bool:
        """Whether it said that it succeeded."""
        return self.code == 0

    @property
    def text(self) -> str:
        """What it complained about, in a line; some commands complain where they print."""
        said = _one_line(self.err) or ("" if self.good else _one_line(self.out))
        return said or f"exit status {self.code}, and no word of why"


class Asker(Protocol):
    """Answers questions."""

    def ask(self, question: Question, *, may_fail: bool = False) -> Answer:
        """Run a command that changes nothing.

        :param may_fail: whether an exit status other than 0 is an answer, too.
        :raises Away: the controller does not answer.
        :raises SlurmError: the command is missing, or failed.
        """


class Reader:
    """Runs questions, and nothing else."""

    def __init__(self, environment: Mapping[str, str] | None = None, patience: float = PATIENCE) -> None:
        """Keep the environment in which commands run.

        :param environment: None: this process's.
        :param patience: seconds after which a command is given up.
        """
        given = os.environ if environment is None else environment
        self.environment = {
            key: value
            for key, value in given.items()
            if not key.startswith(_SETTINGS) and key not in _NOT_OURS
        } | {"LC_ALL": "C", "TZ": "UTC", "SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "standard"}
        self._patience = patience

    def ask(self, question: Question, *, may_fail: bool = False) -> Answer:
        """Run a command that changes nothing; see `Asker`."""
        given: object = question
        if not isinstance(given, Question):
            raise TypeError(f"got {given!r:.80}; only questions are asked here")
        return self._run(question.words, may_fail=may_fail)

    def _run(self, words: Sequence[str], *, may_fail: bool) -> Answer:
        text = _clipped(shlex.join(words))
        try:
            done = subprocess.run(
                words,
                env=self.environment,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=self._patience,
                check=False,
            )
        except FileNotFoundError:
            raise SlurmError(f"{words[0]}: there is no such command here; is Slurm installed?") from None
        except PermissionError as error:
            raise SlurmError(f"{words[0]}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise Away(f"{text}: no answer within {self._patience:g} s") from None
        answer = Answer(
            code=done.returncode,
            out=done.stdout.decode(errors="replace"),
            err=done.stderr.decode(errors="replace"),
        )
        if not answer.good and _AWAY.search(answer.err):
            raise Away(f"{text}: {answer.text}")
        if not answer.good and not may_fail:
            raise SlurmError(f"{text}: {answer.text}")
        return answer


class Hand(Reader):
    """Runs orders, too."""

    def tell(self, order: Order) -> Answer:
        """Run a command that changes something; whether it did is in the answer, and to be seen afterwards.

        :raises Away: the controller does not answer; whether it was done is unknown.
        :raises SlurmError: the command is missing.
        """
        return self._run(order.words, may_fail=True)


class Printer(Hand):
    """Answers questions, and prints orders instead of running them."""

    def tell(self, order: Order) -> Answer:
        """Print a command as it would be typed."""
        click.echo(shlex.join(order.words))
        return Answer(code=0, out="", err="")


def _one_line(text: str) -> str:
    return _clipped("; ".join(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())))


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."

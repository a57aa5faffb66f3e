"""Say which of Slurm's commands only ask, and which change something.

The two are types of their own. A `Question` cannot be made of words that change something, so that a runner that
takes questions alone is safe whatever its caller does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

Words = tuple[str, ...]


def _scontrol(words: Words) -> bool:
    plain = [word for word in words if not word.startswith("-")]
    return plain[:1] in (["show"], ["ping"])


def _sacctmgr(words: Words) -> bool:
    plain = [word for word in words if not word.startswith("-")]
    return plain[:1] == ["show"]


def _sbatch(words: Words) -> bool:
    return words[:1] == ("--test-only",)


def _plain(words: Words) -> bool:
    """Whether options alone follow that print; `sdiag --reset` sets counters back."""
    return not any(word in ("-r", "--reset") for word in words)


def _always(_: Words) -> bool:
    return True


_ASKS: Mapping[str, Callable[[Words], bool]] = {
    "sacctmgr": _sacctmgr,
    "sbatch": _sbatch,
    "scontrol": _scontrol,
    "sdiag": _plain,
    "sinfo": _always,
    "squeue": _always,
}
"""Program -> whether these words only ask."""


@attrs.frozen
class Question:
    """A command that changes nothing."""

    words: Words = attrs.field()
    """Program and arguments."""

    @words.validator
    def _only_asks(self, _: object, words: Words) -> None:
        asks = _ASKS.get(words[0]) if words else None
        if asks is None or not asks(words[1:]):
            raise ValueError(f"{' '.join(words)!r} is no command that only asks")

    def __str__(self) -> str:
        return " ".join(self.words)


@attrs.frozen
class Order:
    """A command that changes something."""

    words: Words
    """Program and arguments."""

    def __str__(self) -> str:
        return " ".join(self.words)


# ---------------------------------------------------------------------------------- questions
def show(what: str, *name: str) -> Question:
    """Ask ``scontrol -o show``: config, part, node, res, lic."""
    return Question(("scontrol", "-a", "-o", "show", what, *name))


def show_jobs(job: str = "") -> Question:
    """Ask for all jobs, or one, with the CPUs that they hold on each node (slurm-live 3)."""
    return Question(("scontrol", "-a", "-d", "-o", "show", "job", *([job] if job else [])))


QUEUE = Question(("squeue", "-h", "-a", "-o", "%A|%T|%r|%N|%S|%i"))
"""The narrow look that can be had every second: number, state, reason, nodes, start, shown id (section 3)."""
STATISTICS = Question(("sdiag",))
QOS = Question(("sacctmgr", "-P", "show", "qos"))
ASSOCIATIONS = Question(("sacctmgr", "-P", "show", "assoc", "tree"))


def would_start(arguments: Words) -> Question:
    """Ask Slurm itself when a job would start, and what it would displace (slurm-live 5)."""
    return Question(("sbatch", "--test-only", *arguments))

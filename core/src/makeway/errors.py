"""Say what went wrong, where, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs

from makeway.fault import MakewayError as MakewayError


@attrs.frozen
class Problem:
    """One thing that is wrong in an input."""

    where: str
    """Path to the key (``policy.preempt``) or ``file:line KEY``; empty when the whole input is meant."""
    message: str
    """What was given, what is allowed, and the nearest match."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


Level = Literal["error", "warning", "note"]


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that a scheduler refuses, ignores, or does unexpectedly."""

    level: Level
    """``error``, ``warning`` or ``note``."""
    where: str
    """Path in the config, or a line of the foreign file; empty: the whole."""
    message: str
    """The reason, in one sentence."""
    section: str = ""
    """Rule that says so, by its page in docs/rules and its number, as ``slurm-preemption 6.2``; not shown."""
    foreign: str = ""
    """The reason in the words of a foreign file; empty: the same."""
    always: bool = attrs.field(default=False, eq=False)
    """Whether every replay says so too, since it does not do what the configuration states."""

    @classmethod
    def of(cls, problem: Problem, level: Level = "error", section: str = "") -> Finding:
        """Return what a problem is as a finding: those of a `ConfigError` are errors."""
        return cls(level=level, where=problem.where, message=problem.message, section=section)

    def at(self, places: Mapping[str, str]) -> Finding:
        """Return it with the line of a foreign file in place of the path, and in its words, where that is known."""
        where = place_of(self.where, places)
        return attrs.evolve(self, where=where, message=(where != self.where and self.foreign) or self.message)

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{self.level}: {where}{self.message}"


def place_of(path: str, places: Mapping[str, str]) -> str:
    """Return the place of a path, or of the nearest table around it; `path` if none has one."""
    prefix = path
    while prefix:
        if prefix in places:
            return places[prefix]
        prefix = prefix.rpartition(".")[0]
    return path


def reason_of(error: BaseException) -> str:
    """Say why text could not be parsed, without Python's words for too many brackets."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)[:200]


class ConfigError(MakewayError):
    """Reject a configuration, workload or other input file, with all its problems at once."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.source, self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        if count == 1:
            text = str(self.problems[0])
            for name in filter(None, (self.source, self.source.rpartition("/")[2])):
                if text.startswith(f"{name}:"):  # a line of the file itself: its path once
                    return f"{self.source}{text.removeprefix(name)}"
            return f"{self.source}: {text}"
        return "\n".join([f"{self.source}: {count} problems", *(f"  {p}" for p in self.problems)])


class PluginError(MakewayError):
    """Report a plugin that is missing, cannot be imported or does not fit the contract."""


class PolicyError(MakewayError):
    """Blame a plugin for an exception or a wrong answer; names plugin, distribution, hook and job."""

    def __init__(self, plugin: str, hook: str, job: str | None, message: str, distribution: str = "") -> None:
        self.plugin = plugin
        self.hook = hook
        self.job = job
        self.message = message
        self.distribution = distribution
        """Name and version of what brought the plugin; empty: it was handed over without installation."""
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.plugin, self.hook, self.job, self.message, self.distribution)

    def __str__(self) -> str:
        source = f" of {self.distribution}" if self.distribution else ""
        about = f" for job {self.job}" if self.job else ""
        return f"plugin {self.plugin!r}{source}, hook {self.hook}{about}: {self.message}"


class OutOfTime(BaseException):
    """Break off a plugin's code that has not come to an end within its time limit.

    No `Exception`, so that a plugin that goes on after any error is broken off too.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        super().__init__(str(self))

    def __str__(self) -> str:
        return f"did not end within {self.limit:g} s"


class RunnerError(MakewayError):
    """Report that a world could not carry out what was decided, or that the engine was misled by one."""


class JournalError(MakewayError):
    """Report a journal that cannot be opened, read or written; what it holds already is kept."""


class InvariantError(MakewayError):
    """Report a state that may never happen; a defect of a plugin or of makeway itself."""


_LONGEST = 200
"""Letters of a word for which a close one is looked for: that takes as long as both are."""


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest of `allowed`, or an empty string."""
    if len(word) > _LONGEST:
        return ""
    import difflib

    close = difflib.get_close_matches(word, sorted(allowed), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> str:
    """Say that `given` is no known `kind`, what is allowed, and the nearest match."""
    options = sorted(allowed)
    shown = ", ".join(options[:12]) + (", ..." if len(options) > 12 else "")
    if not options:
        return f"no {kind} named {given!r}; there is none of any name"
    return f"no {kind} named {given!r}; allowed: {shown}{nearest(given, options)}"

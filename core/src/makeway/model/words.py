"""Define how things are called and listed where people read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from makeway.model.jobs import Job
from makeway.model.values import JobState, Seconds, SuspendedBy, mapping
from makeway.model.views import ClusterView


@attrs.frozen(kw_only=True)
class Listing:
    """A table of what a status command prints."""

    headings: tuple[str, ...]
    """What stands above each column."""
    rows: tuple[tuple[str, ...], ...]
    """Cells, as many as there are headings."""
    notes: Mapping[int, tuple[str, ...]] = mapping()
    """Number of a row -> lines below it."""
    title: str = ""
    """A line above the table."""
    footer: str = ""
    """Lines below it."""
    right: frozenset[str] = frozenset()
    """Headings of columns that stand to the right."""
    gap: int = 2
    """Blanks between columns."""


@attrs.frozen(kw_only=True)
class StatusCommand:
    """The command with which a scheduler's users look at its queue."""

    name: str
    """``bjobs``; it is asked for by ``--bjobs-at``."""
    options: str = ""
    """Options with which it prints the same, for the heading."""
    show: Callable[[ClusterView, Seconds], Sequence[Listing]]
    """Returns what it prints at an instant, at or after the view's own, before anything happens then; pure."""


@attrs.frozen(kw_only=True)
class Vocabulary:
    """The words of another scheduler, for what is shown to people."""

    states: Mapping[str, str] = mapping()
    """State -> word; ``SUSPENDED by a person`` stands beside ``SUSPENDED``, ``PENDING and held`` beside ``PENDING``."""
    reasons: Mapping[str, str] = mapping()
    """Pending reason -> what is shown in its place."""
    suspensions: Mapping[str, str] = mapping()
    """State of a suspended job (``SUSPENDED``, ``SUSPENDED by a person``) -> why; left out: not shown.

    The name of a mark (`Limits.marks`) stands for suspended jobs that bear it, and comes before their state.
    """
    nouns: Mapping[str, str] = mapping()
    """Thing (partition, node, ``status command``, ST) -> word."""
    status: StatusCommand | None = None
    """The scheduler's own status command; None: a plain table, with these words in it."""

    def state(self, state: JobState, by: SuspendedBy | None = None, *, held: bool = False) -> str:
        """Return the word for a state.

        :param by: who suspended the job.
        :param held: whether a pending job is held.
        """
        plain = self.states.get(state.value, state.value)
        return self.states.get(_state_key(state, by, held=held), plain)

    def suspension(
        self, state: JobState, by: SuspendedBy | None = None, marks: frozenset[str] = frozenset()
    ) -> str:
        """Return why a job is suspended; empty: it is not, or there is no word for it.

        :param marks: what policies remember about the job.
        """
        if state is JobState.SUSPENDED and by is not SuspendedBy.ADMIN:
            for mark in sorted(marks & self.suspensions.keys()):
                return self.suspensions[mark]
        return self.suspensions.get(_state_key(state, by), "")

    def reason(self, reason: str) -> str:
        """Return what is shown for a pending reason."""
        return self.reasons.get(reason, reason)

    def why(self, reason: str, detail: str) -> str:
        """Return a pending reason with its detail, which may begin with the reason, since it stands alone elsewhere."""
        rest = "" if detail == reason else detail.removeprefix(f"{reason}: ")
        return self.reason(reason) + (f": {self.phrase(rest)}" if rest else "")

    def noun(self, noun: str) -> str:
        """Return the word for a thing."""
        return self.nouns.get(noun, noun)

    def phrase(self, text: str) -> str:
        """Return a sentence about things with their words in it; names that contain one (``node-1``) stay."""
        for noun, word in self.nouns.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(noun)}(s?)(?![\w-]|\.\w)", rf"{word}\1", text)
        return text


def _partition_name(job: Job) -> str:
    return job.partition.name


@attrs.frozen
class Grouping:
    """By what a policy tells preemptors and victims apart, for tables."""

    noun: str = "partition"
    """What is written over the names: ``QOS``, ``account``."""
    of: Callable[[Job], str] = _partition_name
    """Name of the group that a job belongs to."""


def _state_key(state: JobState, by: SuspendedBy | None, *, held: bool = False) -> str:
    """Return the key under which a vocabulary may have a word of its own."""
    if state is JobState.SUSPENDED and by is SuspendedBy.ADMIN:
        return "SUSPENDED by a person"
    return "PENDING and held" if state is JobState.PENDING and held else state.value

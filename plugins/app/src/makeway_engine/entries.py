"""Say how an entry of the queue looks, and tell those that keep entries in an order of their own what changes."""

from __future__ import annotations

from typing import Protocol, cast

from makeway.model import Job, Partition

Key = tuple[int, int, int, float, int, int]
"""The order of the queue, the lower first: 1. rank, 2. priority tier, 3. priority, 4. submission, 5. place in the job
table, 6. place of the partition."""
Entry = tuple[Key, Job, Partition]


class Listener(Protocol):
    """Keeps the eligible entries in an order of its own."""

    def came(self, entry: Entry) -> None:
        """An entry was added."""

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""

    def reordered(self) -> None:
        """All entries may stand elsewhere."""


class ReasonListener(Listener, Protocol):
    """One that wants to know what jobs wait for."""

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before; it may have no entry."""


class Listeners:
    """All of them; the books and the queue of a run are made with them, and tell them."""

    __slots__ = ("all", "of_reasons")

    def __init__(self) -> None:
        self.all: list[Listener] = []
        """Books and queue tell each of them by itself of what happens for every job: that spares a call."""
        self.of_reasons: list[ReasonListener] = []
        """Those that are told of reasons, too."""

    def join(self, listener: Listener) -> None:
        """Tell one more from now on."""
        self.all.append(listener)
        if hasattr(listener, "waits"):
            self.of_reasons.append(cast(ReasonListener, listener))

    def reordered(self) -> None:
        """All entries may stand elsewhere."""
        for each in self.all:
            each.reordered()

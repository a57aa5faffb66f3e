"""Keep the books that limits and policies ask for, from the first time that one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from makeway.model import Book, Cluster, ClusterView, Job, Roll, Usage, Witness
from makeway_engine.usage import By, UsageBooks

B = TypeVar("B", bound=Book)
Told = Callable[[Job, ClusterView], None]


class KeptBooks:
    """How much is held, and the books that policies define (`makeway.model.Book`)."""

    def __init__(self, cluster: Cluster, view: ClusterView) -> None:
        self._cluster = cluster
        self._view = view
        self._usage: UsageBooks | None = None
        """None: nothing has asked yet how much is held."""
        self.kept = False
        """Whether there is any book: if not, nothing need be told."""
        self._on_came: list[Told] = []
        self._on_gone: list[Told] = []
        self._on_start: list[Told] = []
        self._on_left: list[Told] = []
        """What is called when a job comes, goes, starts or gives its allocation back: a method of each book."""
        self._witnesses: list[Witness] = []
        """Those that want to know what becomes of active jobs."""
        self._books: dict[Any, Book] = {}
        """By kind."""

    def usage(self, by: By, active: Iterable[Job], *, running: bool) -> Mapping[Any, Usage]:
        """Return what active jobs hold, by user and so on."""
        if self._usage is None:
            self.kept = True
            self._usage = UsageBooks(self._cluster, active)
        return self._usage.of(by, running=running)

    def book(self, kind: Callable[[ClusterView], B], jobs: Iterable[Job], active: Iterable[Job]) -> B:
        """Return the book of a kind; one that is new is told of all `jobs` and of those that are `active`."""
        found = self._books.get(kind)
        if found is None:
            view = self._view
            found = kind(view)
            if hasattr(found, "came"):
                roll = cast(Roll, found)
                for job in jobs:
                    roll.came(job, view)
                self._on_came.append(roll.came)
                self._on_gone.append(roll.gone)
            if hasattr(found, "altered"):
                self._witnesses.append(cast(Witness, found))
            for job in active:
                found.started(job, view)
            self._books[kind] = found
            self._on_start.append(found.started)
            self._on_left.append(found.left)
            self.kept = True
        return cast(B, found)

    # ------------------------------------------------------------------------------- told
    def came(self, job: Job) -> None:
        """A job was submitted."""
        view = self._view
        for came in self._on_came:
            came(job, view)

    def gone(self, job: Job) -> None:
        """A job was dropped."""
        view = self._view
        for gone in self._on_gone:
            gone(job, view)

    def started(self, job: Job) -> None:
        """A job holds its allocation from now on."""
        if self._usage is not None:
            self._usage.started(job)
        view = self._view
        for started in self._on_start:
            started(job, view)

    def stopped(self, job: Job) -> None:
        """A job was suspended."""
        if self._usage is not None:
            self._usage.stopped(job)
        for witness in self._witnesses:
            witness.stopped(job, self._view)

    def resumed(self, job: Job) -> None:
        """A suspended job goes on."""
        if self._usage is not None:
            self._usage.resumed(job)
        for witness in self._witnesses:
            witness.resumed(job, self._view)

    def altered(self, job: Job) -> None:
        """A job holds something else of its nodes, was told to make way, or waits in other partitions."""
        for witness in self._witnesses:
            witness.altered(job, self._view)

    def left(self, job: Job) -> None:
        """A job gives its allocation back."""
        if self._usage is not None:
            self._usage.left(job)
        view = self._view
        for left in self._on_left:
            left(job, view)

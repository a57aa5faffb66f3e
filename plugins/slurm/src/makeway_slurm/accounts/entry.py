"""Keep what one association or QOS has used, and what its running jobs may still use (slurm-priority-and-limits 2).

Amounts stand in columns, one for each name whose amounts may differ. `UsageBook` writes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from makeway.model import Job

RAW, WALL = "raw", "wall"
_NOT_OWED = (RAW, WALL)
FIRST = 3
"""So many columns every book has at least. They are added to one by one, without a loop."""


class Sums(ABC):
    """What all entries of one run grow by."""

    columns: dict[str, int]
    """Where each name stands in the lists of an entry; names whose amounts are always the same share a place."""
    width: int
    """How many places there are."""
    scale: float
    """What decaying usage is worth: it is kept divided by this."""
    decayed_sum: float
    plain_sum: float
    """What one unit that is charged whole periods has grown by, with and without decay."""
    last: int
    """Second of the last recalculation."""
    ticks: int
    """How many recalculations there were."""
    young: Collection[Charge]
    """Jobs that have started since the last recalculation."""

    @abstractmethod
    def column(self, name: str) -> int:
        """Return the place of a name in the lists of each entry; a new one if it has none."""

    @abstractmethod
    def bring_up_owed(self) -> None:
        """Enter in `Entry.due` what was put off."""

    def rest(self, charge: Charge) -> float:
        """Return the seconds that a job may still run, by what was charged at recalculations.

        They are negative for a job that outlived its limit, or has none, so that nothing of it is left at its end.
        """
        return (charge.limit or 0.0) - max(0, self.last - charge.start)


class Entry:
    """What one association or QOS has used, and what its running jobs may still use.

    Amounts stand in columns (`Sums.column`). The book writes them at starts, ends and recalculations.
    """

    __slots__ = (
        "book",
        "decays",
        "drifted",
        "due",
        "frozen",
        "frozen_at",
        "index",
        "mark",
        "owed",
        "rate",
        "run_mark",
        "sums",
    )

    def __init__(
        self, book: Sums, start: Mapping[str, float], *, decays: bool = True, index: int = -1
    ) -> None:
        self.book = book
        self.index = index
        """Of the association; less than 0: it is none."""
        self.decays = decays
        self.sums: list[float] = [0.0] * book.width
        """What was used as of the last change of a rate; decaying usage is divided by `Sums.scale`."""
        self.rate: list[float] = [0.0] * book.width
        """What running jobs that are charged whole periods add for each second, UsageFactor applied."""
        self.due: list[float] = [0.0] * book.width
        """Of these jobs: rate, times the second at which each reaches its limit."""
        self.mark = 0.0
        """The common sum as of the last change of a rate."""
        self.owed: list[float] = []
        """TRES-seconds that running jobs may still use, kept step by step; empty: `due` says it exactly."""
        self.run_mark = 0.0
        self.drifted: dict[int, float] = {}
        """TRES-seconds by column that jobs left behind when they ended, or took from others; see `drift`."""
        self.frozen = 0.0
        self.frozen_at = -1
        """At which recalculation `frozen` was what had been used, before a job ended."""
        for name, value in start.items():
            self.sums[book.column(name)] = value

    @property
    def _common(self) -> float:
        return self.book.decayed_sum if self.decays else self.book.plain_sum

    def used(self, name: str = RAW) -> float:
        """Return what was used up to the last recalculation, and by jobs that have ended since; seconds."""
        at = self.book.columns.get(name)
        if at is None:
            return 0.0
        rate = self.rate[at]
        found = self.sums[at]
        if rate:
            found += rate * (self._common - self.mark)
        return found * self.book.scale if self.decays else found

    def may_use(self, name: str) -> float:
        """Return the TRES-seconds that running jobs may still use."""
        at = self.book.columns.get(name)
        if at is None or name in _NOT_OWED:
            return 0.0
        found = self.owing_now(at)
        if self.drifted:
            found += self.drifted.get(at, 0.0)
        return max(0.0, found)

    def floor_drift(self) -> None:
        """Let no more be taken from others than they have left."""
        for at, amount in self.drifted.items():
            if amount < 0.0:
                self.drifted[at] = max(amount, -max(0.0, self.owing_now(at)))

    def owing_now(self, at: int) -> float:
        """Return what running jobs may still use of a column; less than nothing if they outlived their limits."""
        if self.owed:
            return self.owed[at] - self.rate[at] * (self.book.plain_sum - self.run_mark)
        self.book.bring_up_owed()
        return self.owing(at)

    def owing(self, at: int) -> float:
        """Return the same where it is not kept step by step, and all of it has been entered."""
        book = self.book
        found = self.due[at] - self.rate[at] * book.last
        for charge in book.young:
            if self in charge.entries:
                found += charge.rate_in(at) * book.rest(charge)
        return found

    def settle(self) -> None:
        """Add what the common sums have grown by since the rate last changed."""
        common = self.book.decayed_sum if self.decays else self.book.plain_sum
        grown = common - self.mark
        if grown:
            sums, rates = self.sums, self.rate
            sums[0] += rates[0] * grown
            sums[1] += rates[1] * grown
            sums[2] += rates[2] * grown
            if len(rates) > FIRST:
                for at in range(FIRST, len(rates)):
                    sums[at] += rates[at] * grown
            self.mark = common

    def settle_owed(self) -> None:
        """Take off what running jobs have used since the rate last changed; where it is kept step by step."""
        run = self.book.plain_sum - self.run_mark
        if run:
            owed = self.owed
            for at, rate in enumerate(self.rate):
                if rate:
                    owed[at] -= rate * run
        self.run_mark = self.book.plain_sum

    def reset(self) -> None:
        """Forget all usage."""
        self.settle()
        self.sums = [0.0] * len(self.sums)

    def rescale(self, factor: float) -> None:
        """Take over a change of the common scale."""
        self.settle()
        if self.decays:
            self.sums = [value * factor for value in self.sums]
        self.mark = 0.0 if self.decays else self.mark

    def save(self) -> dict[str, Any]:
        """Return what was used, for `restore`."""
        self.settle()
        scale = self.book.scale if self.decays else 1.0
        return {name: value * scale for name, value in self._by_name() if value}

    def _by_name(self) -> list[tuple[str, float]]:
        return [(name, self.sums[at]) for name, at in sorted(self.book.columns.items())]

    def restore(self, used: Mapping[str, float]) -> None:
        """Go on with what was used."""
        self.settle()
        scale = self.book.scale if self.decays else 1.0
        at = {name: self.book.column(name) for name in used}
        self.sums = [0.0] * self.book.width
        for name, value in used.items():
            self.sums[at[name]] = value / scale


class Shape:
    """What jobs hold alike, and are charged for each second."""

    __slots__ = ("dense", "factor", "held", "rates", "vector", "whole")

    def __init__(self, held: Mapping[str, int], rates: Mapping[str, float], factor: float) -> None:
        self.held = held
        """By TRES."""
        self.rates = rates
        """``raw`` (billing), ``wall``, and each TRES; UsageFactor applied."""
        self.vector: Sequence[tuple[int, float]] = ()
        """The same by column, without what is nothing; `UsageBook` fills it."""
        self.factor = factor
        self.whole = all(float(rate).is_integer() for rate in rates.values())
        """Whether all of it are whole numbers."""

        self.dense: list[float] = []
        """The same of every column; `spread` fills it."""

    def spread(self, width: int) -> list[float]:
        """Fill and return `dense`, for so many columns."""
        costs = dict(self.vector)
        self.dense = [costs.get(at, 0.0) for at in range(width)]
        return self.dense


class Charge:
    """What one active job is charged for."""

    __slots__ = ("entries", "job", "limit", "shape", "start")

    def __init__(
        self, job: Job, entries: tuple[Entry, ...], shape: Shape, start: int, limit: float | None
    ) -> None:
        self.job = job
        self.entries = entries
        self.shape = shape
        self.start = start
        """Second of its start."""
        self.limit = limit
        """Seconds that it may run; None: any."""

    def rate_in(self, at: int) -> float:
        """Return what is charged for each second, by column."""
        return next((rate for each, rate in self.shape.vector if each == at), 0.0)

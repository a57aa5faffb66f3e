"""Start whoever can start now without planning for all who stand before, leaving out those who cannot matter.

A plan only fills up, so a job is never promised a node, within a time, that it could not be promised by a plan for some
of those before it. A job that may start now does so if nobody before it could be promised a node that it may choose
while it runs. Those who could are planned for first. Each of them in turn may have others in its way: whoever could be
promised, up to its end, a node that may be idle by its start. Those left out change nothing that is looked at so far,
but what is promised to somebody behind them would change their own plan. So a leap finds all who can start now, or
nothing comes of it. `Backfill` without this says what it comes to, and `tests/test_backfill_bounds.py` holds one to the
other.
"""

from __future__ import annotations

import bisect
import copy
import functools
import math
import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Forecast, Job, Partition, Placement, PreemptMode, Seconds
from makeway_backfill.behind import Behind
from makeway_backfill.plan import Plan
from makeway_engine.entries import Entry
from makeway_engine.placing import Outcome, Question
from makeway_engine.schedulers.common import Attempts

_MOST_STEPS = 24
"""So many jobs are looked at in one leap: it is in vain where it cannot be finished."""


_SHORTEST: Seconds = 1.0
"""Who runs for less may have nodes that others are promised at the same instant."""


class Planner(Protocol):
    """What a pass is asked about whom it looks at (`makeway_backfill.scheduler.Backfill`)."""

    grain: Seconds
    """To full multiples of it promises are rounded."""

    def length(self, job: Job, standby: bool = False) -> Seconds:
        """Return how long a job counts on its nodes."""

    def is_kept_for(self, job: Job, partition: Partition) -> bool:
        """Whether nodes are kept for a job at all."""

    def wants(self, job: Job) -> tuple[Hashable, tuple[int, int]] | None:
        """Return by what a job can start no earlier than others; None: it has to be looked for."""

    def earliest(
        self,
        job: Job,
        partition: Partition,
        plan: Plan,
        length: Seconds,
        *,
        until: Seconds = math.inf,
        ask: Callable[[NodeBits, Seconds], Forecast | None] | None = None,
    ) -> tuple[Seconds, Forecast, NodeBits] | None:
        """Find when and where a job could start at the earliest; also the nodes it may choose from."""

    def forecast(
        self, job: Job, nodes: NodeBits, start: Seconds, removable: list[tuple[Job, PreemptMode]]
    ) -> Forecast | None:
        """Return when a job could start on `nodes`."""

    def try_start(self, question: Question) -> Outcome:
        """Try to start a job."""


class _VainError(Exception):
    """It is not known whom to start without planning for all."""


class Leap:
    """One look ahead in a pass: a copy of its plan, and those who are settled by it."""

    def __init__(
        self, planner: Planner, attempts: Attempts, behind: Behind, after: Entry, plan: Plan
    ) -> None:
        self._planner = planner
        self._ledger = attempts.ledger
        self._placer = attempts.placer
        self._behind = behind
        self._after = after
        self.plan = copy.copy(plan)
        self.plan.begins, self.plan.free = [*plan.begins], [*plan.free]
        self._settled: set[int] = set()
        """Who is planned for here, or is to start."""
        self._last = after
        """The last of whom is planned for here."""
        self._far: dict[int, Seconds] = {}
        """Who is promised nothing up to an instant."""
        self.taken: NodeBits = 0
        """Nodes of those who are to start."""
        self._starting: list[tuple[Entry, NodeBits, Seconds]] = []
        """Who is to start, where, and when that is over."""
        self._questions: list[Question] = []
        self._takes_nodes_only = True
        """Whether all who are to start take whole nodes from those behind, and nothing else."""
        self.expected: dict[str, Seconds] = {}
        """Job id -> start planned here."""
        self._steps = 0

    def find(self) -> bool:
        """Find all who can start now; say whether that could be told."""
        behind = self._behind
        if not behind.may_leap(self._after):
            return False
        try:
            at = self._after
            while (entry := behind.first_open(at, self.plan, self.taken)) is not None:
                if not self._takes_nodes_only:
                    return False
                if self._settle(entry):
                    at = entry
        except _VainError:
            return False
        return True

    def start(self) -> bool:
        """Start them."""
        return all(self._planner.try_start(each) is Outcome.STARTED for each in self._questions)

    # ------------------------------------------------------------------------------ who starts
    def _settle(self, entry: Entry) -> bool:
        """Note that an entry will start, or plan for one that might keep it from that; say whether it will."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _VainError
        ledger = self._ledger
        _, job, partition = entry
        planner = self._planner
        length = planner.length(job, False)
        if planner.wants(job) is None:
            raise _VainError
        found = planner.earliest(job, partition, self.plan, length)
        if found is None or found[0] > ledger.now:
            raise _VainError
        nodes = found[2] & ~self.taken
        forecast = planner.forecast(job, nodes, ledger.now, []) if self.taken else found[1]
        if forecast is None or forecast.at > ledger.now or forecast.nodes & ledger.completing:
            raise _VainError
        by = ledger.now + length
        inner = self._first_in_the_way(entry, nodes & ~ledger.exclusive, by)
        if inner is not None:
            self._plan_for(inner, by)
            return False
        question = Question(job, partition, nodes)
        placed = self._placer.prober.ask(question, preempt=False)
        if not isinstance(placed, Placement):
            raise _VainError
        shared = placed.allocation.shared or not placed.allocation.whole_nodes
        if shared or job.spec.licenses or self._placer.policies.closes:
            self._takes_nodes_only = False
        self._questions.append(question)
        self.taken |= placed.allocation.nodes
        self._starting.append((entry, placed.allocation.nodes, by))
        self._settled.add(job.index)
        return True

    # -------------------------------------------------------------------------- who is promised what
    def _plan_for(self, entry: Entry, by: Seconds) -> None:
        """Plan for an entry, or for one that might get in its way first.

        :param by: later starts do not matter.
        """
        planner, ledger = self._planner, self._ledger
        while True:
            self._steps += 1
            _, job, partition = entry
            if self._steps > _MOST_STEPS or entry < self._last or job.spec.licenses:
                raise _VainError
            if planner.wants(job) is None:
                raise _VainError
            length = planner.length(job, False)
            found = self._earliest(entry, length, by)
            if found is not None and found[0] <= ledger.now:
                raise _VainError
            at = by if found is None or self.plan.is_after(found[0], by) else found[0]
            inner = self._first_in_the_way(entry, self._idle_by(at), at + length)
            if inner is None:
                break
            entry, by = inner, at + length
        if found is None or self.plan.is_after(found[0], by):
            self._far[job.index] = by
            return
        self._last = entry
        self._settled.add(job.index)
        if planner.is_kept_for(job, partition) and found[0] <= self.plan.horizon:
            self.expected[job.id] = found[0]
            self.plan.promise(found[0], found[0] + length, found[1].nodes)

    def _earliest(
        self, entry: Entry, length: Seconds, by: Seconds
    ) -> tuple[Seconds, Forecast, NodeBits] | None:
        """Find when an entry could start at the earliest, behind those before it who are to start; not much later."""
        _, job, partition = entry
        until = by + self._planner.grain
        ahead = [each for each in self._starting if each[0] < entry]
        if not ahead:
            return self._planner.earliest(job, partition, self.plan, length, until=until)
        taken: NodeBits = functools.reduce(operator.or_, (nodes for _, nodes, _ in ahead))
        first, last = min(end for _, _, end in ahead), max(end for _, _, end in ahead)

        staying: NodeBits = functools.reduce(
            operator.or_, (nodes for _, nodes, end in ahead if end > first), 0
        )

        def ask(nodes: NodeBits, start: Seconds) -> Forecast | None:
            without = self._planner.forecast(job, nodes & ~taken, math.inf, [])
            if not nodes & taken or (without is not None and without.at < first):
                return without
            later = self.plan.next_begin(start)
            if later is not None and first > later:
                return without  # too late, in any case
            gone = self._planner.forecast(job, nodes, math.inf, [])
            if gone is None or gone.at > last:
                return gone
            idle = nodes & ~staying & self._idle_by(first)
            found = self._planner.forecast(job, idle, math.inf, [])
            if found is None or found.at > first or found.nodes != idle:
                raise _VainError  # it is not known which nodes it gets when one of them ends
            return attrs.evolve(found, at=first)

        return self._planner.earliest(job, partition, self.plan, length, until=until, ask=ask)

    def _idle_by(self, instant: Seconds) -> NodeBits:
        """Return the nodes that may be idle at an instant."""
        nodes = ~self._ledger.exclusive
        for end, _, job in self._ledger.releases():
            if end > instant:
                break
            nodes |= job.nodes
        return nodes

    def _first_in_the_way(self, before: Entry, nodes: NodeBits, by: Seconds) -> Entry | None:
        """Return the first entry before one that might be promised some nodes from an instant on, up to another."""
        kin = self._behind.between(self._after, before)
        if kin is None:
            raise _VainError
        beginnings = [(start, idle) for start, idle in self._beginnings(by) if idle & nodes]
        found: Entry | None = None
        for each in kin:
            known: dict[NodeBits, Seconds | None] = {}
            some: list[Seconds] | None = None
            for listed in each:
                entry = self._unsettled(listed, by)
                if entry is None:
                    continue
                if some is None:
                    if self._planner.length(entry[1]) < _SHORTEST or self._planner.wants(entry[1]) is None:
                        raise _VainError
                    size, open_to_it = entry[1].size, entry[2].nodes & self._ledger.up
                    some = [at for at, idle in beginnings if (idle & open_to_it).bit_count() >= size]
                if not some or not self._might_be_promised(entry, nodes, some, known):
                    break
                if found is None or entry < found:
                    found = entry
        return found

    def _unsettled(self, listed: Iterator[Entry], by: Seconds) -> Entry | None:
        """Return the first of a list of whom it is not known what is promised to it up to an instant."""
        for entry in listed:
            index = entry[1].index
            if index not in self._settled and self._far.get(index, 0.0) < by:
                return entry
        return None

    def _might_be_promised(
        self,
        entry: Entry,
        eyed: NodeBits,
        beginnings: Sequence[Seconds],
        known: dict[NodeBits, Seconds | None],
    ) -> bool:
        """Whether a job, or one like it that runs no shorter, may be promised one of some nodes at given instants.

        :param known: when jobs like it could start on some nodes, as far as that was asked.
        """
        _, job, partition = entry
        length, open_to_it = self._planner.length(job, False), partition.nodes & self._ledger.up
        for start in beginnings:
            nodes = self.plan.open_until(start, start + length) & open_to_it
            if nodes & eyed:
                if nodes not in known:
                    found = self._planner.forecast(job, nodes, math.inf, [])
                    known[nodes] = None if found is None else found.at
                at = known[nodes]
                if at is not None and at <= start:
                    return True
        return False

    def _beginnings(self, instant: Seconds) -> list[tuple[Seconds, NodeBits]]:
        """Return when a job might start by a plan, up to an instant, and which nodes may be idle and open by then.

        That is now, where promises change, and where jobs end.
        """
        plan, now, releases = self.plan, self._ledger.now, self._ledger.releases()
        over = bisect.bisect_left(releases, True, key=lambda each: plan.is_after(each[0], instant))
        ends = releases[:over]
        over = bisect.bisect_left(plan.begins, True, key=lambda begin: plan.is_after(begin, instant))
        starts = sorted(
            {now, *(max(begin, now) for begin in plan.begins[:over]), *(end for end, _, _ in ends)}
        )
        begins, free = plan.begins, plan.free
        idle, at, record, found = ~self._ledger.exclusive, 0, 0, []
        for start in starts:
            while at < len(ends) and ends[at][0] <= start:
                idle |= ends[at][2].nodes
                at += 1
            while record + 1 < len(begins) and begins[record + 1] <= start:
                record += 1
            found.append((start, idle & free[record]))
        return found

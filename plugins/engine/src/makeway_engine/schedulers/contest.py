"""Name who is first in a deep queue without giving everybody a priority (`makeway.priorities.KindredPrioritizer`).

Jobs of one kind keep their order, so only the first of each kind contend. The sorted queue says who comes next without
this; `test_contest.py` of makeway-slurm holds one to the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Sequence

from makeway.model import Job, Seconds
from makeway_engine.entries import Entry
from makeway_engine.kinship import Kinship
from makeway_engine.queue import Queue
from makeway_engine.schedulers.deep import DeepQueue
from makeway_engine.schedulers.race import Kind, Race, in_order


class Contest(DeepQueue):
    """The eligible entries of a queue by partition, size and kind, each kind in order of submission.

    The queue itself may be out of order: keys of its entries are as old as the last time all were given priorities.
    """

    many = 1

    def __init__(self, queue: Queue, kinship: Kinship, *, strict: bool) -> None:
        """Be there for one run.

        :param strict: whether whoever finds no room holds up all behind it; else it holds up nobody.
        """
        super().__init__(queue)
        self.strict = strict
        self._kinship = kinship
        self._races: dict[int, Race] = {}
        """By the place of the partition."""
        self._kind_of: dict[int, Kind] = {}
        """By the place of a job in the job table."""
        self._unfit: set[int] = set()
        """Those who may pass others of their kind, likewise."""
        self._ranks: object = None
        self.is_on = False
        """Whether a pass goes by this: the queue is out of order."""
        self.is_sure = False
        """Whether all who were tried in the last pass have started, or hold up their partition."""
        self._last: Entry | None = None
        """Who was named last in this pass."""
        self._out: set[Kind] = set()
        """Whoever is tried no more in this pass."""
        self._late: list[Entry] | None = None
        """Who became eligible in the pass that is being made; None: none is."""

    # ---------------------------------------------------------------------------- before a pass
    def ready(self) -> bool:
        """Whether the first of each kind stand for all who wait."""
        return self.complete() and not self._unfit

    def contenders(self) -> Sequence[Entry]:
        """Return of whom one starts in a pass by now, if anybody does."""
        if not self.strict:
            return [lane[0] for race in self._races.values() for lane in race.lanes.values()]
        self._look_at_ranks()
        return [race.first() for race in self._races.values() if race.lanes]

    def stands_until(self) -> Seconds:
        """Return when somebody else may lead, and start, though nothing happens."""
        if not self.strict or len(self._queue.entries) < 2:
            return math.inf  # nobody who waits has room
        self._look_at_ranks()
        until = self._kinship.ranks_until()
        leaders = []
        for race in self._races.values():
            if race.lanes:
                leaders.append(race.first())
                until = min(until, race.leads_until)
        if len(leaders) > 1:
            for one, other in itertools.pairwise(in_order(leaders, self._kinship)):
                until = min(until, self._kinship.leads_among([one[1], other[1]]))
        return until

    def _look_at_ranks(self) -> None:
        """Forget where all stand if somebody has changed rank."""
        ranks = self._kinship.ranks()
        if ranks is not self._ranks:
            self._ranks = ranks
            for race in self._races.values():
                race.forget()

    # ------------------------------------------------------------------------------- in a pass
    def begin(self) -> None:
        """A pass begins: jobs are named from the first on."""
        self._look_at_ranks()
        self._last, self._late, self.is_sure = None, [], True
        self._out.clear()

    def next(self, closed: Container[int], room: int) -> Entry | None:
        """Return who is next whose partition is not closed; None: nobody is, or who it is depends on more.

        :param room: those who ask for more nodes are not named, unless they hold up others.
        """
        last = self._last
        if last is not None and last[2].index not in closed and last[1].id in self._queue.waiting:
            if self.strict:
                self.is_sure = False
                return None
            self._out.add(self._kind_of[last[1].index])
        near: list[Entry] = []
        for index, race in self._races.items():
            if index not in closed and race.lanes:
                near += [race.first()] if self.strict else race.near(room, self._out)
        if not near:
            return None
        self._last = entry = near[0] if len(near) == 1 else in_order(near, self._kinship)[0]
        return entry

    def end(self) -> None:
        """The pass is over."""
        late, self._late, self._last = self._late or (), None, None
        for entry in late:
            if entry[1].id in self._queue.waiting:
                self.came(entry)

    # ------------------------------------------------------------------------------------ the index
    def _forget(self) -> None:
        self._races.clear()
        self._kind_of.clear()
        self._unfit.clear()

    def _keep(self, entry: Entry) -> None:
        _, job, partition = entry
        if self._late is not None:
            self._late.append(entry)
            return
        found = None if job.id in self._kinship.given else self._kinship.kind_of(job)
        race = self._races.get(partition.index)
        if race is None:
            race = self._races[partition.index] = Race(self._kinship)
        kind = partition.index, job.size, found
        lane = race.lanes.get(kind)
        if found is None or (lane is not None and not _follows(job, lane[-1][1])):
            self._unfit.add(job.index)
            return
        self._kind_of[job.index] = kind
        race.add(kind, entry)

    def _drop(self, job: Job) -> None:
        kind = self._kind_of.pop(job.index, None)
        if kind is None:
            self._unfit.discard(job.index)
        else:
            self._races[kind[0]].remove(kind, job.index)


def _follows(job: Job, other: Job) -> bool:
    """Whether a job comes after another one in every way."""
    since, before = job.eligible_since, other.eligible_since
    return (
        (other.submit_at, other.index) < (job.submit_at, job.index)
        and since is not None
        and before is not None
        and before <= since
    )


__all__ = ["Contest"]

"""Keep queue, shadows and active row of one partition (slurm-gang-and-select 1)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Allocation, Job
from makeway_slurm.gang_timeslice.row import Row


class Place(enum.Enum):
    """Where a job stands in its partition's row (section 1.1)."""

    NONE = "none"
    FILLER = "filler"
    """In the row, put there by an event."""
    ACTIVE = "active"
    """In the row, put there by a tick."""


@attrs.define(eq=False)
class Member:
    """One job as gang sees it."""

    job: Job
    running: bool = True
    """What gang last asked for, not the real state."""
    place: Place = Place.NONE
    turn: int = 0
    """Its place in the queue: it stands behind all with lower ones."""
    known_on: tuple[int, ...] = ()
    """Nodes among whose members it is counted."""
    held: Allocation | None = None
    """What it held when it was last let into a row; at its end the job itself holds nothing any more."""


class GangPartition:
    """Queue, shadows and active row of one partition."""

    def __init__(self, name: str, tier: int, row: Row) -> None:
        self.name = name
        self.tier = tier
        self.jobs: dict[str, Member] = {}
        """The queue, by job id; `append` and `rotate` change it."""
        self._turns = 0
        """The last place in the queue that was given."""
        self._on: dict[int, dict[str, Member]] = {}
        """Its members by the nodes that they hold."""
        self._asked = False
        """Whether no job outside the row fitted into it when last asked, but for what was taken out since."""
        self._freed: NodeBits = 0
        """Nodes of those that were taken out since."""
        self.shadows: dict[str, Member] = {}
        self.active_count = 0
        self.row = row
        self.settled = False
        """Whether another tick would change nothing."""
        self.changed = False
        """Whether the row has to be put together anew, whatever is in it."""

    @property
    def contended(self) -> bool:
        """Whether a job is not in the row (section 3.1)."""
        return self.active_count < len(self.jobs) + len(self.shadows)

    @property
    def quiet(self) -> bool:
        """Whether putting the row together anew would change nothing: all are in it, and nothing has changed."""
        return not self.changed and not self.contended

    @property
    def stands(self) -> bool:
        """Whether the row, put together anew, would begin with just those that are in it now.

        Then a job can be let in beside them or be taken out, and those outside it be asked whether they fit. So it
        is while nothing in it overlaps and each conflicts with certain others.
        """
        return not self.changed and self.row.exact and self.row.pairwise

    def append(self, member: Member, *, asked: bool) -> None:
        """Let a job stand behind all others.

        :param asked: whether it is about to be let into the row if it fits.
        """
        self._seat(member)
        self.jobs[member.job.id] = member
        allocation = member.job.allocation
        member.known_on = allocation.node_indices if allocation is not None else ()
        for index in member.known_on:
            self._on.setdefault(index, {})[member.job.id] = member
        if not asked or allocation is None:
            self._asked = False

    def rotate(self, first: Sequence[Member], then: Sequence[Member]) -> None:
        """Let some members stand behind all others; both are given in order."""
        self.jobs = {member.job.id: member for member in (*first, *then)}
        for member in then:
            self._seat(member)

    def _seat(self, member: Member) -> None:
        self._turns += 1
        member.turn = self._turns

    def outside(self) -> Sequence[Member]:
        """Return which jobs are not in the row and may fit into it now, in order of the queue.

        While the row stands, those that did not fit before fit only where a job was taken out.
        """
        if not (self._asked and self.stands):
            return [member for member in self.jobs.values() if member.place is Place.NONE]
        found = {}
        for index in bitmap.indices(self._freed):
            found.update(self._on.get(index, {}))
        return sorted(
            (member for member in found.values() if member.place is Place.NONE), key=lambda each: each.turn
        )

    def all_asked(self, outside: Iterable[Member]) -> None:
        """Take note that those of `outside` were let in if they fitted, or were held."""
        self._freed = 0
        self._asked = not any(member.job.held for member in outside)

    def admit(self, member: Member, *, fits: bool = True) -> None:
        """Add a job to the row.

        :param fits: whether it is known to fit.
        """
        member.held = member.job.allocation
        self.row.add(member.job, first=self.active_count == 0, fits=fits)
        self.active_count += 1

    def overcast(self, shadow: Member, *, swift: bool) -> None:
        """Lay a shadow over the partition.

        :param swift: whether one that disturbs no job may take its place in the row at once, and count in it.
        """
        beside = swift and (self.quiet or self.stands) and self.fits(shadow)
        self.shadows[shadow.job.id] = shadow
        self.settled = False
        if beside:
            self.admit(shadow)
        else:
            self.changed = True

    def clear_up(self, shadow: Member, *, swift: bool) -> None:
        """Take a shadow away, if it lies here."""
        if shadow.job.id in self.shadows:
            self._let_go(shadow, swift=swift)
            del self.shadows[shadow.job.id]

    def drop(self, member: Member, *, swift: bool) -> None:
        """Take a job out of the queue."""
        if swift and self.stands and member.place is Place.NONE:
            self.settled = False  # it is not in the row
        else:
            self._let_go(member, swift=swift)
        del self.jobs[member.job.id]
        for index in member.known_on:
            del self._on[index][member.job.id]

    def _let_go(self, member: Member, *, swift: bool) -> None:
        """Take out of the row what leaves, if nothing in it overlaps; what waited for that is asked soon."""
        self.settled = False
        known = self.stands or (self.quiet and self.row.exact)
        if swift and known and member.held is not None:
            self.row.remove(member.job, member.held)
            self._freed |= member.held.nodes
            self.active_count -= 1
        else:
            self.changed = True

    def fits(self, member: Member) -> bool:
        """Whether the row has room (section 1.3)."""
        return self.active_count == 0 or self.row.fits(member.job)

    def restart_row(self) -> None:
        """Begin the row anew with the shadows."""
        self.active_count = 0
        self.changed = False
        self._asked = False
        self.row.clear()
        for shadow in self.shadows.values():
            self.admit(shadow, fits=False)

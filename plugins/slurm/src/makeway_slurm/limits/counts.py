"""Count what the limits of QOS and associations are about, at the same cost for each job (slurm-priority-and-limits 6).

A job counts for its association and all above it, for its QOS, for its partition's QOS, and in each of the two for its
user and its account.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Job
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.accounts.usage import UsageBook, usage_factor

Key = tuple[Hashable, ...]


class Places(NamedTuple):
    """Where one job counts."""

    chain: tuple[int, ...]
    """Its association and all above, by index."""
    qos: tuple[str, ...]
    """QOS that count for it, the first one first (6.1 no. 1)."""
    account: str

    def keys(self, user: str) -> Iterator[Key]:
        """Yield all counts that the job is part of."""
        for index in self.chain:
            yield ("assoc", index)
        for name in self.qos:
            yield ("qos", name)
            yield ("pu", name, user)
            yield ("pa", name, self.account)


class Group:
    """All jobs that count in the same places."""

    __slots__ = ("places",)

    def __init__(self, places: Places) -> None:
        self.places = places


class Seat:
    """Where jobs of one user count that ask for the same account, partition and QOS."""

    __slots__ = (
        "came_at_most",
        "counts",
        "factor",
        "group",
        "keys",
        "more",
        "noted",
        "partition",
        "places",
        "qos",
        "welcome",
    )

    def __init__(self, job: Job, group: Group, keys: tuple[Key, ...], counts: tuple[Count, ...]) -> None:
        self.partition = job.partition
        self.qos = job.qos
        self.factor = usage_factor(job.qos)
        """UsageFactor of their QOS."""
        self.group = group
        self.places = group.places
        self.keys = keys
        """All counts that they are part of."""
        self.counts = counts
        """The same."""
        self.more = 0
        """How many jobs more are present than the counts say."""
        self.noted = False
        """Whether that may be another number than 0."""
        self.welcome: bool | None = None
        """Whether they are surely not refused where all may run, numbers of jobs apart; None: not known yet."""
        self.came_at_most = -1
        """Up to how many submissions no limit on their number can be exceeded."""


class Count:
    """What some active jobs hold together."""

    __slots__ = ("_often", "jobs", "nodes", "present", "tres")

    def __init__(self) -> None:
        self.present = 0
        """Jobs that were submitted and have not ended."""
        self.jobs = 0
        """Those of them that run or are suspended."""
        self.tres: dict[str, int] = {}
        self.nodes: NodeBits = 0
        """Where they are."""
        self._often: dict[int, int] = {}
        """Nodes with several of them -> how many."""

    def used(self, name: str) -> int:
        """Return how much of a TRES they hold; a node counts once, however many jobs are on it."""
        return self.nodes.bit_count() if name == NODE else self.tres.get(name, 0)

    def settle(self, nodes: NodeBits) -> None:
        """Let a job be on these nodes."""
        shared = self.nodes & nodes
        self.nodes |= nodes
        if shared:
            often = self._often
            for at in bitmap.indices(shared):
                often[at] = often.get(at, 1) + 1

    def vacate(self, nodes: NodeBits) -> None:
        """Let a job be there no longer."""
        often = self._often
        if often:
            for at in bitmap.indices(nodes):
                many = often.get(at)
                if many is not None:
                    nodes &= ~bitmap.single(at)
                    if many == 2:
                        del often[at]
                    else:
                        often[at] = many - 1
        self.nodes &= ~nodes


class Holding(NamedTuple):
    """What an active job holds, and where it counts."""

    seat: Seat
    counts: Mapping[str, int]
    nodes: NodeBits
    job: Job


class CountBook:
    """The counts of one run. `Attendance` tells it which jobs come and go.

    For most jobs they are never looked at: what happens is noted, and entered when they are (`brought_up`). Jobs that
    come and go meanwhile are never entered.
    """

    def __init__(self, usage: UsageBook) -> None:
        self._usage = usage
        self._counts: dict[Key, Count] = {}
        self.held: dict[str, Holding] = {}
        """Of all active jobs."""
        self.present: dict[str, Seat] = {}
        """Where each job counts since its submission, as long as its partition and QOS stay the same."""
        self._seats: dict[tuple[str, str | None, int, str | None], Seat] = {}
        self._groups: dict[Places, Group] = {}
        self.noted: list[Seat] = []
        """Seats at which a job came or went that is not entered."""
        self.begun: dict[str, Holding] = {}
        self.over: list[Holding] = []
        """What was taken and given back, and is not entered."""
        self.came_so_far = 0
        """How many jobs have been submitted."""

    def brought_up(self) -> None:
        """Enter what has happened."""
        if self.noted:
            for seat in self.noted:
                if seat.more:
                    for count in seat.counts:
                        count.present += seat.more
                seat.more, seat.noted = 0, False
            self.noted.clear()
        if self.over:
            for holding in self.over:
                _vacate(holding)
            self.over.clear()
        if self.begun:
            for holding in self.begun.values():
                _settle(holding)
            self.begun.clear()

    def of(self, key: Key) -> Count:
        """Return a count; `brought_up` comes before it is read."""
        found = self._counts.get(key)
        if found is None:
            found = self._counts[key] = Count()
        return found

    def seat(self, job: Job) -> Seat:
        """Return where a job counts, in the partition where it runs or is tried; others sit there, too."""
        found = self.present.get(job.id)
        if found is not None and found.partition is job.partition and found.qos is job.qos:
            return found
        return self.seat_anew(job)

    def seat_anew(self, job: Job) -> Seat:
        """Return the same of a job that has just come, or that moved."""
        partition, qos = job.partition, job.qos
        key = (job.user, job.account, partition.index, qos.name if qos is not None else None)
        found = self._seats.get(key)
        if found is None:
            places = self._places(job)
            keys = tuple(places.keys(job.user))
            group = self._groups.setdefault(places, Group(places))
            found = self._seats[key] = Seat(job, group, keys, tuple(map(self.of, keys)))
        return found

    def _places(self, job: Job) -> Places:
        node = self._usage.association_of(job)
        chain = tuple(each.index for each in node.chain) if node is not None else ()
        account = node.account if node is not None else (job.account or "").lower()
        return Places(chain, qos_of(job), account)

    def held_at(self, key: Key, job_id: str) -> Mapping[str, int] | None:
        """Return what an active job holds if it is part of a count; None: it is not."""
        found = self.held.get(job_id)
        return found.counts if found is not None and key in found.seat.keys else None

    def holders(self, key: Key) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield the active jobs that are part of a count, each with what it holds."""
        for job_id, (seat, counts, _, _) in self.held.items():
            if key in seat.keys:
                yield job_id, counts


def _settle(holding: Holding) -> None:
    seat, counts, nodes, _ = holding
    for count in seat.counts:
        count.jobs += 1
        tres = count.tres
        for name, number in counts.items():
            tres[name] = tres.get(name, 0) + number
        count.settle(nodes)


def _vacate(holding: Holding) -> None:
    seat, counts, nodes, _ = holding
    for count in seat.counts:
        count.jobs -= 1
        tres = count.tres
        for name, number in counts.items():
            tres[name] -= number
        count.vacate(nodes)


def qos_of(job: Job) -> tuple[str, ...]:
    """Return the QOS that count for a job: the partition's first, unless its own says OverPartQOS (6.1 no. 1)."""
    own, partition = job.qos.name if job.qos is not None else None, job.partition.qos
    over = job.qos is not None and "OverPartQOS" in job.qos.flags
    names = (own, partition) if over else (partition, own)
    return tuple(dict.fromkeys(name for name in names if name is not None))

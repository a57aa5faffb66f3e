"""Count what the limits of QOS and associations are about, at the same cost for each job (slurm-priority-and-limits 6).

A job counts for its association and all above it, for its QOS, for its partition's QOS, and in each of the two for its
user and its account.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, Partition, Qos
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
    """All who count in the same places."""

    __slots__ = ("places",)

    def __init__(self, places: Places) -> None:
        self.places = places


class Seat:
    """Where jobs of one user count that ask for the same account, partition and QOS."""

    __slots__ = ("counts", "factor", "group", "keys", "places")

    def __init__(self, group: Group, keys: tuple[Key, ...], counts: tuple[Count, ...], factor: float) -> None:
        self.group = group
        self.places = group.places
        self.keys = keys
        """All counts that they are part of."""
        self.counts = counts
        """The same."""
        self.factor = factor
        """UsageFactor of their QOS."""


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
    """The counts of one run. See `makeway.model.Roll`.

    Nobody looks at them for most jobs: what happens is noted, and entered when somebody does (`brought_up`). Jobs that
    come and go meanwhile are never entered.
    """

    def __init__(self, view: ClusterView) -> None:
        self._usage = view.book(UsageBook)
        self._counts: dict[Key, Count] = {}
        self.held: dict[str, Holding] = {}
        """Of all active jobs."""
        self._present: dict[str, Seat] = {}
        self._seats: dict[tuple[str, str | None, int, str | None], Seat] = {}
        self._last: tuple[Job, Partition, Qos | None, Seat] | None = None
        """What was found last: the same job is often asked about several times."""
        self._groups: dict[Places, Group] = {}
        self._came: dict[str, Seat] = {}
        self._gone: list[Seat] = []
        self._started: dict[str, Holding] = {}
        self._left: list[Holding] = []
        """What has happened and is not entered."""
        self.came_so_far = 0
        """How many jobs have been submitted."""

    def brought_up(self) -> None:
        """Enter what has happened."""
        if self._came:
            for seat in self._came.values():
                for count in seat.counts:
                    count.present += 1
            self._came.clear()
        if self._gone:
            for seat in self._gone:
                for count in seat.counts:
                    count.present -= 1
            self._gone.clear()
        if self._left:
            for holding in self._left:
                self._vacate(holding)
            self._left.clear()
        if self._started:
            for holding in self._started.values():
                self._settle(holding)
            self._started.clear()

    def of(self, key: Key) -> Count:
        """Return a count; `brought_up` comes before whoever reads it."""
        found = self._counts.get(key)
        if found is None:
            found = self._counts[key] = Count()
        return found

    def seat(self, job: Job) -> Seat:
        """Return where a job counts, in the partition where it runs or is tried; others sit there, too."""
        last, partition, qos = self._last, job.partition, job.qos
        if last is not None and last[0] is job and last[1] is partition and last[2] is qos:
            return last[3]
        key = (job.user, job.account, partition.index, qos.name if qos is not None else None)
        found = self._seats.get(key)
        if found is None:
            places = self._places(job)
            keys = tuple(places.keys(job.user))
            group = self._groups.setdefault(places, Group(places))
            found = self._seats[key] = Seat(group, keys, tuple(map(self.of, keys)), usage_factor(qos))
        self._last = job, partition, qos, found
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

    def came(self, job: Job, view: ClusterView) -> None:
        """Count a job that was submitted."""
        del view
        self._present[job.id] = self._came[job.id] = self.seat(job)
        self.came_so_far += 1

    def gone(self, job: Job, view: ClusterView) -> None:
        """Count it no longer."""
        del view
        seat = self._present.pop(job.id, None)
        if seat is not None and self._came.pop(job.id, None) is None:
            self._gone.append(seat)

    def started(self, job: Job, view: ClusterView) -> None:
        """Count what a job holds that has started."""
        counts = self._usage.held_by(job, view.cluster)
        holding = tuple.__new__(Holding, (self.seat(job), counts, job.nodes, job))
        self.held[job.id] = self._started[job.id] = holding

    def left(self, job: Job, view: ClusterView) -> None:
        """Count no longer what it held: at once, before its nodes are clean (11.1)."""
        del view
        holding = self.held.pop(job.id)
        if self._started.pop(job.id, None) is None:
            self._left.append(holding)

    def _settle(self, holding: Holding) -> None:
        seat, counts, nodes, _ = holding
        for count in seat.counts:
            count.jobs += 1
            tres = count.tres
            for name, number in counts.items():
                tres[name] = tres.get(name, 0) + number
            count.settle(nodes)

    def _vacate(self, holding: Holding) -> None:
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

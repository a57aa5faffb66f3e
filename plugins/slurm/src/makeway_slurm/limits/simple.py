"""Tell apart the jobs of whom little has to be looked at: no GRES, no licenses, no whole nodes."""

from __future__ import annotations

from makeway.model import ClusterView, Exclusive, Job, Seconds, Sharing
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits.counts import CountBook, Seat
from makeway_slurm.limits.headroom import Box
from makeway_slurm.limits.kinds import Kind
from makeway_slurm.limits.listing import Listing
from makeway_slurm.limits.node_cap import most_nodes

_new = tuple.__new__
_WHOLE_NODES = Exclusive.NODE
_NOT_UPWARDS = frozenset((Kind.LEAST_TRES, Kind.LEAST_FACTOR, Kind.NODE_TRES))
"""Limits that who asks for less may break."""
Looks = tuple[Seat, int, int, int, int | None, Seconds | None, bool]


class Simple:
    """The simple jobs of one run."""

    def __init__(
        self, view: ClusterView, counts: CountBook, listing: Listing, whole_nodes: WholeNodes
    ) -> None:
        self._counts = counts
        self._listing = listing
        self._always_whole = whole_nodes.always
        self._there = [
            not (each.def_mem_per_cpu or view.cluster.def_mem_per_cpu)
            and each.oversubscribe.sharing is not Sharing.EXCLUSIVE
            for each in view.cluster.partitions
        ]
        """By partition: whether jobs get no memory for each CPU there, nor whole nodes."""
        self._upwards: dict[Seat, bool] = {}
        """By seat: whether whoever asks for less breaks no limit that another one keeps."""

    def box(self, job: Job) -> Box | None:
        """Return what a simple job asks for; None: it is not simple."""
        spec, limit, partition = job.spec, job.time_limit, job.partition
        if (
            limit is None
            or spec.time_limit is None
            or spec.memory_mb_per_node is not None
            or spec.memory_mb_per_cpu is not None
            or spec.gres
            or spec.gres_total
            or spec.licenses
            or spec.exclusive is _WHOLE_NODES
            or (self._always_whole and job.required)
            or not self._there[partition.index]
        ):
            return None
        counts = self._counts
        seat = counts.present.get(job.id)
        if seat is None or seat.partition is not partition or seat.qos is not job.qos:
            seat = counts.seat_anew(job)
        upwards = self._upwards.get(seat)
        if upwards is None:
            kinds = {listed.kind for listed in self._listing.of(seat, job.user)}
            upwards = self._upwards[seat] = kinds.isdisjoint(_NOT_UPWARDS)
        return _new(Box, (seat, most_nodes(job), spec.cpus, limit)) if upwards else None

    def looks(self, job: Job) -> Looks | None:
        """Return all that is looked at in a simple job; None: it is not simple."""
        spec = job.spec
        if (
            spec.gres
            or spec.gres_total
            or spec.licenses
            or spec.memory_mb_per_cpu is not None
            or spec.exclusive is _WHOLE_NODES
            or (self._always_whole and job.required)
            or not self._there[job.partition.index]
        ):
            return None
        return (
            self._counts.seat(job),
            job.size,
            most_nodes(job),
            spec.cpus,
            spec.memory_mb_per_node,
            job.time_limit,
            spec.time_limit is None,
        )


__all__ = ["Looks", "Simple"]

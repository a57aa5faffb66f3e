"""Say what the nodes have for a job: which could serve it, in which order, and who is on them."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import alternatives
from makeway.model import (
    Allocation,
    Blocked,
    Cluster,
    ClusterView,
    Job,
    JobState,
    Seconds,
)
from makeway_moab_qos.credentials import qos_of, settings_of
from makeway_moab_qos.settings import Settings
from makeway_moab_qos.tasks.books import Books
from makeway_moab_qos.tasks.request import Request, request_of
from makeway_moab_qos.tasks.suspended import kept_when_suspended

_ALONE = ("SINGLEJOB", "SINGLETASK")


class TaskNodes:
    """The nodes of one run with their books, and what jobs ask of them."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.cluster: Cluster = view.cluster
        settings = settings_of(view)
        settings.memo["exact"] = True  # reservations of waiting jobs are kept here, processor by processor
        self.settings = settings
        self.maui = settings.maui
        self.suspension_frees_memory = settings.maui or any(
            "MEM" not in listed for listed in settings.suspend_resources.values()
        )
        self._memo = settings.memo
        self.alone = settings.node_access_policy in _ALONE
        self._one_user = settings.node_access_policy == "SINGLEUSER"
        self._one_task = settings.node_access_policy == "SINGLETASK"
        self.books = self._new_books()
        self._order = _allocation_order(settings.node_allocation_policy, view.cluster)
        # In the memo, where those who have ended are forgotten.
        self._requests: dict[str, Request] = self._memo.setdefault("requests", {})
        self._possible: dict[tuple[str, str], Blocked | None] = self._memo.setdefault("possible", {})
        self.most_threads = max(self.books.threads, default=1)
        self.sets = _node_sets(settings, view.cluster)
        """Nodes that jobs are to be placed in, one set for each job; none: jobs may lie anywhere."""
        self.counts_alone = self.most_threads == 1 and not self._one_user
        """Whether room is a matter of counting free cores: of one thread each, whatever is beside."""

    # ----------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Charge a job that started."""
        self.books.add(job)

    def released(self, job: Job) -> None:
        """Take back what a job held."""
        self.books.remove(job)

    def suspended(self, job: Job) -> None:
        """Take note of a suspension."""
        self.books.suspend(job)

    def resumed(self, job: Job) -> None:
        """Take note that a job goes on."""
        self.books.resume(job)

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return the books, where jobs lie over one another so that their order counts."""
        return self.books.save(self._view.active, self._new_books())

    def recast(self, job: Job, allocation: Allocation, view: ClusterView) -> Allocation:
        """Add cores and processors where only nodes are known, and the memory that the request stands for."""
        del view
        request, books = self.request(job), self.books
        cores = allocation.cores or tuple(bitmap.full(books.cores[at]) for at in allocation.node_indices)
        pairs = list(zip(allocation.node_indices, cores, strict=True))
        cpus = allocation.cpus or tuple(mine.bit_count() * books.threads[at] for at, mine in pairs)
        memory = allocation.memory_mb
        if memory is None and request.wants_memory:
            memory = tuple(request.memory(count // request.per_task) for count in cpus)
        shared = not (request.whole or self.alone)
        return attrs.evolve(allocation, cpus=cpus, cores=cores, memory_mb=memory, shared=shared)

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Fill the books."""
        del view
        self.books.restore(active, memory)

    def _new_books(self) -> Books:
        return Books(self.cluster, lambda job: kept_when_suspended(job, self.settings))

    # ----------------------------------------------------------------------------- asking
    def request(self, job: Job) -> Request:
        """Return the request of `job`."""
        found = self._requests.get(job.id)
        if found is None:
            dedicated = "DEDICATED" in qos_of(job, self._view).flags
            found = request_of(job, alone=self.alone or dedicated, one_task=self._one_task)
            self._requests[job.id] = found
        return found

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Drop jobs for not one of whose tasks there is room."""
        room = nodes & self.books.with_cores(1)
        return jobs if room else ()

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        key = (job.id, job.partition.name)
        if key not in self._possible:
            self._possible[key] = self._check_possible(job, view)
        return self._possible[key]

    def _check_possible(self, job: Job, view: ClusterView) -> Blocked | None:
        request = self.request(job)
        room = 0
        widest: list[int] = []
        for index in bitmap.indices(self.static(job, job.partition.nodes & view.up)):
            fits = self.books.cores[index] * self.books.threads[index] // request.per_task
            if request.memory_per_node > self.books.capacity[index]:
                continue
            if request.memory_per_task:
                spare = self.books.capacity[index] - request.memory_per_node
                fits = min(fits, spare // request.memory_per_task)
            if request.most_per_node is not None:
                fits = min(fits, request.most_per_node)
            widest.append(fits)
            if request.max_nodes is None:
                room += fits
            if room >= request.tasks:
                return None
        if request.max_nodes is not None:
            room = sum(sorted(widest, reverse=True)[: request.max_nodes])
            if room >= request.tasks:
                return None
        detail = (
            f"{request.tasks} tasks of {request.per_task} processors; the empty cluster has room for {room}"
        )
        return Blocked(
            reason="BadConstraints",
            resource="processors",
            wanted=request.tasks,
            available=room,
            detail=detail,
            never=True,
        )

    def static(self, job: Job, nodes: NodeBits) -> NodeBits:
        """Drop nodes that could never serve the job."""
        nodes &= ~job.excluded
        if job.spec.features:
            nodes &= alternatives(job.spec.features, self.cluster)[-1].nodes
        if job.spec.min_cpus_per_node > 1:
            wanted = job.spec.min_cpus_per_node
            nodes &= bitmap.of([node.index for node in self.cluster.nodes if node.cpus >= wanted])
        for name, count in job.spec.gres.items():
            nodes &= bitmap.of([n.index for n in self.cluster.nodes if n.gres.get(name, 0) >= count])
        return nodes

    def shares(self, index: int, job: Job, view: ClusterView, gone: Iterable[str]) -> bool:
        """Whether `job` may join what runs on a node (SINGLEUSER)."""
        if not self._one_user or not self.books.jobs[index]:
            return True
        return all(
            other.user == job.user or other.id in gone or other.state is not JobState.RUNNING
            for other in view.jobs_on(index)
        )

    @property
    def booked(self) -> frozenset[str]:
        """Suspended jobs whose processors stay booked for good (Maui's simulator, section 17)."""
        found: frozenset[str] = self._memo.get("booked", frozenset())
        return found

    def booked_cores(self, index: int, view: ClusterView) -> int:
        """Return how many cores of a node such jobs hold."""
        return sum(count for job, count in self.holders(index, view) if job.id in self.booked)

    def cores_of_task(self, request: Request) -> int:
        """Return the fewest free cores that a node needs for a task."""
        return -(-request.per_task // self.most_threads)

    def ordered(self, nodes: NodeBits) -> Iterable[int]:
        """Return nodes in the order in which they are filled (NODEALLOCATIONPOLICY)."""
        if self._order is None:
            return bitmap.indices(nodes)
        if self._order == "last":
            return reversed(bitmap.indices(nodes))
        order = self._order
        return sorted(bitmap.indices(nodes), key=lambda index: order[index])

    def sets_in_turn(self) -> Sequence[NodeBits]:
        """Return the sets of nodes in the order in which a job tries them (NODESETPRIORITYTYPE)."""
        fit = self.settings.node_set_priority
        if self.settings.node_set_policy != "ONEOF" or fit not in ("BESTFIT", "WORSTFIT"):
            return self.sets
        sign = 1 if fit == "BESTFIT" else -1
        return sorted(self.sets, key=lambda nodes: sign * self.books.room(nodes, 1, None))

    def set_until(self, job: Job) -> Seconds:
        """Return until when a job starts in a set of nodes only (moab 7.6)."""
        settings = self.settings
        if not settings.node_set_optional or (settings.maui and settings.node_set_delay):
            return math.inf
        since = job.submit_at if job.eligible_since is None else job.eligible_since
        return since + settings.node_set_delay

    def holders(self, index: int, view: ClusterView) -> list[tuple[Job, int]]:
        """Return the active jobs on a node, each with its cores there."""
        found = []
        for job in view.jobs_on(index):
            held = job.allocation
            if held is not None:
                at = held.node_indices.index(index)
                cores = held.cores[at].bit_count() if held.cores is not None else self.books.cores[index]
                found.append((job, cores))
        return found


def _node_sets(settings: Settings, cluster: Cluster) -> tuple[NodeBits, ...]:
    """Return the nodes of each feature of NODESETLIST; of ANYOF those of all together."""
    if not settings.node_set_policy or settings.node_set_attribute != "FEATURE":
        return ()
    names = settings.node_set_list or sorted({each for node in cluster.nodes for each in node.features})
    sets = [bitmap.of([node.index for node in cluster.nodes if name in node.features]) for name in names]
    if settings.node_set_policy == "ANYOF":
        sets = [functools.reduce(operator.or_, sets, 0)]
    return tuple(nodes for nodes in sets if nodes)


def _allocation_order(policy: str, cluster: Cluster) -> list[float] | str | None:
    """Return the key of each node, ``last``, or None: as they are listed."""
    if policy == "LASTAVAILABLE":
        return "last"
    if policy == "MINRESOURCE":
        return [float(node.cpus) for node in cluster.nodes]
    if policy == "CPULOAD":
        return [node.load for node in cluster.nodes]
    if policy in ("PRIORITY", "FASTEST"):
        return [float(node.weight) for node in cluster.nodes]
    return None

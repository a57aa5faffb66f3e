"""Keep processors for jobs that wait in front (moab 7.2).

The first jobs of the queue that could not start hold reservations: from the instant at which enough
processors will be free, on the nodes where they will be. A job behind may use these processors only if it
ends before, as its limit says. Jobs are tried in order, so what stands before a job and still waits
could not start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.order import ahead_of, kept_reservations, reservation_holders
from makeway_moab_qos.reservations import is_locked
from makeway_moab_qos.tasks.books import cores_of
from makeway_moab_qos.tasks.nodes import TaskNodes
from makeway_moab_qos.tasks.request import Request, within

_FOREVER = 1e12
IGNORES = "ignorersv"
"""Mark of a job that a person starts without regard to reservations."""


@attrs.frozen
class Promise:
    """Cores that one job will hold."""

    job: str
    at: Seconds
    until: Seconds
    cores: dict[int, int]
    """Node index -> cores."""


class Kept:
    """What is left for one job beside the promises made to those before it."""

    def __init__(
        self, selector: TaskNodes, promises: list[Promise], known: dict[int, int], view: ClusterView
    ) -> None:
        """Begin with the promises that bind the job.

        :param known: node -> cores left to jobs that the same promises bind, as far as it was found out.
        """
        self._selector = selector
        self._promises = promises
        self._view = view
        self._known = known

    @property
    def nodes(self) -> Iterable[int]:
        """Nodes of which something is promised; of any other nothing is kept."""
        return dict.fromkeys(index for each in self._promises for index in each.cores)

    @property
    def jobs(self) -> list[str]:
        """Return the jobs to which something is promised."""
        return [each.job for each in self._promises]

    def left(self, index: int, gone: Collection[str]) -> int:
        """Return how many cores of a node the job may use, jobs of the ids `gone`, which are on it, apart."""
        if gone:
            return self._left(index, gone)
        found = self._known.get(index)
        if found is None:
            found = self._known[index] = self._left(index, gone)
        return found

    def _left(self, index: int, gone: Collection[str]) -> int:
        books = self._selector.books
        least = books.cores[index]
        for promise in self._promises:
            if index not in promise.cores:
                continue
            at = promise.at
            held = sum(
                count
                for job, count in self._selector.holders(index, self._view)
                if job.id not in gone and _holds_at(job, at)
            )
            promised = sum(each.cores.get(index, 0) for each in self._promises if each.at <= at < each.until)
            least = min(least, books.cores[index] - held - promised)
        return max(0, least)


def _holds_at(job: Job, at: Seconds) -> bool:
    return job.state is JobState.RUNNING and (job.end_at is None or job.end_at > at)


class Promises:
    """Finds out who was promised what."""

    def __init__(self, selector: TaskNodes) -> None:
        self._selector = selector
        self._known: dict[tuple[str, ...], Promise | None] = {}
        """By the job, and those that were promised something before it."""
        self._left: dict[tuple[int, ...], dict[int, int]] = {}
        """By the promises that bind a job: node -> cores that are left to it."""
        self._stamp: tuple[Seconds, int] = (-1.0, -1)

    def _known_left(self, promises: list[Promise]) -> dict[int, int]:
        """Return what has been found out about nodes since anything changed, for jobs that these promises bind."""
        return self._left.setdefault(tuple(map(id, promises)), {})

    def before(self, job: Job, view: ClusterView) -> Kept | None:
        """Return what is promised to jobs that stand before `job`; None: nothing."""
        settings = settings_of(view)
        if not settings.depths or is_locked(job, view, view.now) or IGNORES in job.marks:
            return None  # what has displaced others for its nodes is promised them already
        holders = reservation_holders(ahead_of(job, view, view.now), view, view.now)
        if settings.reservation_policy == "HIGHEST":
            listed = {each.id for each in (*holders, job)}
            holders += [each for each in kept_reservations(view) if each.id not in listed]
        if not holders:
            return None
        stamp = (view.now, self._selector.books.version)
        if stamp != self._stamp:
            self._stamp = stamp
            self._known.clear()
            self._left.clear()
        promises: list[Promise] = []
        for other in holders:
            promise = self._promise(other, promises, view)
            if promise is not None:
                promises.append(promise)
        if not promises:
            return None
        limit = job.time_limit if job.time_limit is not None else _FOREVER
        binding = [each for each in promises if each.at < view.now + limit]
        return Kept(self._selector, binding, self._known_left(binding), view)

    def _promise(self, job: Job, before: list[Promise], view: ClusterView) -> Promise | None:
        key = (job.id, *(each.job for each in before))
        if key not in self._known:
            self._known[key] = self._find(job, before, view)
        return self._known[key]

    def _find(self, job: Job, before: list[Promise], view: ClusterView) -> Promise | None:
        """Return the earliest instant, and where: as running jobs reach their limits (section 7.2)."""
        selector = self._selector
        request = selector.request(job)
        nodes = selector.static(job, job.partition.nodes & view.up)
        if request.required & ~nodes:
            return None
        length = job.time_limit if job.time_limit is not None else _FOREVER
        tasks = dict.fromkeys(bitmap.indices(nodes), 0)
        """How many fit on each node at the instant that is looked at."""
        total = 0
        seen: list[Promise] = []
        promised: Counter[int] = Counter()
        """Cores of nodes that are promised to others at that instant."""
        for at, held, changed in self._instants(request, nodes, view):
            in_force = [each for each in before if each.at <= at < each.until]
            if in_force != seen:
                changed.update(index for each in (*in_force, *seen) for index in each.cores if index in held)
                seen, promised = in_force, Counter()
                for each in in_force:
                    promised.update(each.cores)
            for index in changed:
                taken = held[index] + promised[index] if promised else held[index]
                fits = self._tasks_on(request, index, taken, at, view)
                total += fits - tasks[index]
                tasks[index] = fits
            found = self._fit(request, nodes, tasks) if total >= request.tasks else None
            if found is not None:
                return Promise(job.id, at, at + length, found)
        return None

    def _instants(
        self, request: Request, nodes: int, view: ClusterView
    ) -> Iterator[tuple[Seconds, dict[int, int], set[int]]]:
        """Yield the instants at which there may be room: now, and whenever jobs reach their limits.

        With each goes what jobs will hold then, node -> cores, and of which nodes jobs hold less than at the last one.
        """
        books = self._selector.books
        held = {index: books.used[index] for index in bitmap.indices(nodes)}
        free = sum((books.cores[index] - used) * books.threads[index] for index, used in held.items())
        ends = view.releases()
        changed = set(held)
        for number, (end, _, job) in enumerate(ends):
            if not number and end > view.now and free >= request.processors:
                yield view.now, held, changed
                changed = set()
            allocation = job.allocation
            if allocation is None or job.state is not JobState.RUNNING:
                continue
            for at, index in enumerate(allocation.node_indices):
                if index in held:
                    cores = cores_of(allocation, at, books.cores[index]).bit_count()
                    held[index] -= cores
                    free += cores * books.threads[index]
                    changed.add(index)
            last = number + 1 == len(ends) or ends[number + 1][0] > end
            if last and free >= request.processors:
                yield max(end, view.now), held, changed
                changed = set()
        if not ends and free >= request.processors:
            yield view.now, held, changed

    def _tasks_on(self, request: Request, index: int, taken: int, at: Seconds, view: ClusterView) -> int:
        """Return how many tasks fit on a node of which so many cores are taken."""
        books = self._selector.books
        if request.whole and taken:
            return 0
        fits = (books.cores[index] - taken) * books.threads[index] // request.per_task
        if request.wants_memory and fits > 0:
            fits = min(fits, self._by_memory(request, index, at, view))
        if request.most_per_node is not None:
            fits = min(fits, request.most_per_node)
        return max(fits, 0)

    def _fit(self, request: Request, nodes: int, tasks: Mapping[int, int]) -> dict[int, int] | None:
        """Return the cores to hold of each node, of which so many tasks fit on each; None: they are too few."""
        selector, required = self._selector, request.required
        room: list[tuple[int, int]] = []
        left = request.tasks
        for index in (*bitmap.indices(required), *selector.ordered(nodes & ~required)):
            if tasks[index]:
                room.append((index, tasks[index]))
                left -= tasks[index]
            if left <= 0 and (request.max_nodes is None or len(room) <= request.max_nodes):
                break
        most = len(room) if request.max_nodes is None or required else request.max_nodes
        chosen = within(room, request.tasks, most) if len(room) > most else _in_turn(room, request.tasks)
        if sum(use for _, use in chosen) < request.tasks or required & ~bitmap.of([at for at, _ in chosen]):
            return None
        threads = selector.books.threads
        return {index: -(-use * request.per_task // threads[index]) for index, use in chosen}

    def _by_memory(self, request: Request, index: int, at: Seconds, view: ClusterView) -> int:
        """Return how many tasks the memory of a node will have room for."""
        room = self._selector.books.capacity[index] - request.memory_per_node
        for job in view.jobs_on(index):
            held = job.allocation
            if held is not None and held.memory_mb is not None and _keeps_memory_at(job, at):
                room -= held.memory_mb[held.node_indices.index(index)]
        if room < 0:
            return 0
        return room // request.memory_per_task if request.memory_per_task else request.tasks


def _keeps_memory_at(job: Job, at: Seconds) -> bool:
    return job.state is JobState.SUSPENDED or _holds_at(job, at)


def _in_turn(room: Sequence[tuple[int, int]], tasks: int) -> list[tuple[int, int]]:
    """Fill nodes one after the other."""
    found = []
    for index, fits in room:
        if tasks > 0:
            found.append((index, min(fits, tasks)))
            tasks -= fits
    return found

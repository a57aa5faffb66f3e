"""Keep the books of one run: what jobs hold of which quota, and who waits in which queue.

The book is told of each job that comes, starts, leaves and goes (`makeway.model.Roll`), so that nothing is counted
anew. Jobs of one queue that ask for the same are of one *kind*: if the first of them cannot be admitted, no other can.
"""

from __future__ import annotations

import heapq
import operator
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.hostlist import expand_hostlist
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_kueue_cohort import lacks, requests
from makeway_kueue_cohort.books import Books, Node, root_of
from makeway_kueue_cohort.flavors import Assignment, Grade, Mode, PodSet
from makeway_kueue_cohort.lacks import Single
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.settings import Settings, compiled
from makeway_kueue_cohort.site import Pair, Strategy, Within

REASON = "InsufficientQuota"
_PENDING = JobState.PENDING
_Rank = tuple[int, Seconds, int]
Kind = tuple[tuple[tuple[str, int], ...], int]
"""What is asked for, and the number of pods."""


@attrs.frozen(eq=False)
class Asking:
    """A job as it waits: its queue and request do not change."""

    job: Job
    workload: Workload
    pod_sets: tuple[PodSet, ...]
    kind: Kind
    rank: _Rank
    """Place in the queue."""
    single: Single | None = None
    """The one pair that it can use, and how much of it; None: there is more to choose."""


class _Waiting:
    """The jobs that wait in one queue."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.kinds: dict[Kind, list[tuple[_Rank, Job]]] = {}
        """Heaps."""
        self.aside: dict[Kind, tuple[int, _Rank]] = {}
        """Kinds that could not be admitted -> how much had been given back in the tree by then, and the first job."""
        self.roomless: set[Kind] = set()
        """Kinds whose quota was there in this pass, and room on nodes was not."""
        self.order: list[tuple[_Rank, Asking]] | None = None
        """The first of each kind, in order; None: to be sorted anew."""
        self.passed = 0
        """How many of these wait in vain, as far as is known."""
        self.seen = 0
        """How much had been given back in the tree when somebody last looked."""
        self.level = 0
        """The same, save what helps nobody here."""
        self.least: dict[Pair, int] | None = None
        """Of all kinds, which have all been tried in vain: the least that any asks for; None: some have not been."""
        self.urgent = 0
        """The highest priority among their first."""

    def waits_in_vain(self, kind: Kind, rank: _Rank) -> bool:
        """Whether one that comes no later in the queue could not be admitted, and nothing was given back since."""
        if kind in self.roomless:
            return True
        before = self.aside.get(kind)
        return before is not None and before[0] == self.level and rank >= before[1]

    def look(self, freed: int) -> None:
        """Let all kinds be tried again if anything was given back."""
        if freed != self.seen:
            self.seen = self.level = freed
            self.least = None
            self.passed = 0

    def sort_anew(self) -> None:
        """Take note that somebody came, started or went."""
        self.order = self.least = None

    def begin(self) -> None:
        """Let those who lacked room on nodes be tried again, as a pass begins."""
        if self.roomless:
            self.roomless.clear()
            self.passed = 0


class Yard:
    """The book. See `makeway.model.Roll`."""

    def __init__(self, view: ClusterView) -> None:
        """Begin with empty books."""
        self.settings = view.settings(Settings)
        self.books = Books(compiled(self.settings))
        self.counted = requests.covered(self.settings)
        self.cluster = view.cluster
        self.held: dict[str, dict[str, Workload]] = {name: {} for name in self.books.queues}
        self.admitted: Mapping[str, Collection[Workload]] = {
            name: held.values() for name, held in self.held.items()
        }
        self.jobs: dict[str, Job] = {}
        """Who holds quota, by id."""
        self.waiting = {name: _Waiting(node) for name, node in self.books.queues.items()}
        self.plans: dict[str, Assignment] = {}
        """Flavors chosen for jobs, by id: of those that hold quota, and of those tried in this pass."""
        self.freed: dict[str, int] = {}
        """Root -> how often something was given back below it."""
        self.roots = {name: root_of(node).name for name, node in self.books.queues.items()}
        self.priorities: dict[str, Counter[int]] = {name: Counter() for name in self.books.queues}
        """Queue -> how many hold quota there, by priority."""
        self.version = 0
        self._lacking: dict[tuple[str, Pair, int, int], bool] = {}
        """What glances have told since books last changed."""
        self._asking: dict[str, Asking | None] = {}
        self._new: list[Job] = []
        self._listed: set[str] = set()
        self._nodes = {flavor: _nodes_of(flavor, self.settings, view) for flavor in self._flavors()}

    def _flavors(self) -> Iterator[str]:
        for queue in self.settings.queue:
            for quota in queue.quotas:
                yield quota.flavor

    # ------------------------------------------------------------------------------ the roll
    def came(self, job: Job, view: ClusterView) -> None:
        """Take note of a job that was submitted."""
        del view
        self._new.append(job)

    def gone(self, job: Job, view: ClusterView) -> None:
        """Forget a job."""
        del view
        asking = self._asking.pop(job.id, None)
        if asking is not None and job.id in self._listed:
            self.waiting[asking.workload.queue.name].sort_anew()
        self.plans.pop(job.id, None)

    def started(self, job: Job, view: ClusterView) -> None:
        """Count a job against its quota, in the flavors chosen for it."""
        asking = self.asking(job)
        if asking is None:
            return
        plan = self.plans.get(job.id)
        if plan is None:
            plan = self.plans[job.id] = self._guessed(asking, job.nodes)
        workload = attrs.evolve(asking.workload, uses=plan.uses, admitted=job.started_at)
        self.books.add(workload.queue, plan.uses)
        self.held[workload.queue.name][job.id] = workload
        self.priorities[workload.queue.name][workload.priority] += 1
        self.waiting[workload.queue.name].sort_anew()
        self.jobs[job.id] = job
        self.version += 1
        self.changed()

    def left(self, job: Job, view: ClusterView) -> None:
        """Give its quota back; whoever was requeued waits again."""
        asking = self._asking.get(job.id)
        if asking is None:
            return
        node = asking.workload.queue
        workload = self.held[node.name].pop(job.id, None)
        if workload is not None:
            self.books.take(node, workload.uses)
            counts = self.priorities[node.name]
            counts[workload.priority] -= 1
            if not counts[workload.priority]:
                del counts[workload.priority]
        self.jobs.pop(job.id, None)
        self.plans.pop(job.id, None)
        root = self.roots[node.name]
        self.freed[root] = self.freed.get(root, 0) + 1
        self.version += 1
        self.changed()
        self._new.append(job)

    def changed(self) -> None:
        """Take note that something else is used than before."""
        self._lacking.clear()

    # ------------------------------------------------------------------------------ jobs
    def asking(self, job: Job) -> Asking | None:
        """Return what a job asks for, and where; None: there is no such queue."""
        found = self._asking.get(job.id)
        if found is None and job.id not in self._asking:
            found = self._asking[job.id] = self._worked_out(job)
        return found

    def workload(self, job: Job) -> Workload | None:
        """Return what an active job holds; None: no quota."""
        asking = self.asking(job)
        return self.held[asking.workload.queue.name].get(job.id) if asking is not None else None

    def _worked_out(self, job: Job) -> Asking | None:
        node = self.books.queues.get(requests.queue_of(job, self.settings))
        if node is None:
            return None
        amounts = requests.asked(job.spec, self.counted, self.settings, self.cluster)
        pods = requests.pods_of(job.spec)
        workload = Workload(
            name=job.id,
            queue=node,
            uses={},
            priority=requests.priority_of(job),
            created=job.spec.submit_at,
            uid=f"{job.index:012d}",
        )
        pod_sets = [PodSet("job", 1, amounts)]
        if "pods" in self.counted:
            pod_sets = [PodSet("job", 1, {**amounts, "pods": 1000 * pods})]
        single = lacks.single(node, pod_sets[0])
        rank = (-workload.priority, workload.created, job.index)
        return Asking(job, workload, tuple(pod_sets), (tuple(amounts.items()), pods), rank, single)

    def _guessed(self, asking: Asking, nodes: NodeBits) -> Assignment:
        """Return the flavors of a job that nobody planned: those of its nodes, first written first."""
        queue = asking.workload.queue.queue
        assert queue is not None
        uses: dict[Pair, int] = {}
        for group in queue.groups:
            flavor = next((f for f in group.flavors if not nodes & ~self._nodes[f]), group.flavors[0])
            for pod_set in asking.pod_sets:
                for resource, amount in pod_set.each.items():
                    if resource in group.resources:
                        uses[flavor, resource] = amount
        return Assignment(uses, Grade(Mode.FIT))

    def recount(self, job: Job, uses: Mapping[Pair, int]) -> None:
        """Let an active job hold other flavors: those that it had under another engine."""
        asking = self.asking(job)
        if asking is not None and job.id in self.jobs:
            node = asking.workload.queue
            before = self.held[node.name][job.id]
            self.books.take(node, before.uses)
            self.books.add(node, uses)
            self.changed()
            self.held[node.name][job.id] = attrs.evolve(before, uses=dict(uses))
            self.plans[job.id] = Assignment(dict(uses), Grade(Mode.FIT))

    def flavored(self, plan: Assignment) -> NodeBits:
        """Return the nodes that are of all flavors of a plan."""
        found = bitmap.full(len(self.cluster.nodes))
        for flavor, _ in plan.uses:
            found &= self._nodes[flavor]
        return found

    @property
    def splits(self) -> bool:
        """Whether any flavor is of some nodes only."""
        everything = bitmap.full(len(self.cluster.nodes))
        return any(nodes != everything for nodes in self._nodes.values())

    def mark_leaving(self, names: Sequence[str]) -> None:
        """Take note of who has been told to go (3.5); quota is theirs until they have gone."""
        for name in names:
            job = self.jobs.get(name)
            asking = self.asking(job) if job is not None else None
            if asking is not None:
                held = self.held[asking.workload.queue.name]
                held[name] = attrs.evolve(held[name], evicted=True)

    # ------------------------------------------------------------------------------ queues
    def sort_in(self) -> None:
        """Sort those into their queues who have come, and can be tried; others are looked at again."""
        if not self._new:
            return
        later = []
        for job in self._new:
            asking = self.asking(job)
            if job.state.ended or asking is None or job.id in self.jobs:
                continue
            if job.state is not _PENDING or job.eligible_since is None:
                later.append(job)  # it is still leaving its nodes, or something of its own keeps it back
                continue
            if job.id in self._listed:
                continue
            self._listed.add(job.id)
            queue = self.waiting[asking.workload.queue.name]
            queue.sort_anew()
            heapq.heappush(queue.kinds.setdefault(asking.kind, []), (asking.rank, job))
        self._new = later

    def heads(self) -> Iterator[Asking]:
        """Yield the first of each queue that is worth trying (7.1)."""
        for queue in self.waiting.values():
            if not queue.kinds:
                continue
            found = self._head(queue)
            if found is not None:
                yield found

    def _head(self, queue: _Waiting) -> Asking | None:
        assert queue.node.queue is not None
        queue.look(self.freed.get(self.roots[queue.node.name], 0))
        if queue.least is not None:
            return None
        strict = queue.node.queue.strategy is Strategy.STRICT
        order = queue.order if queue.order is not None else self._sorted(queue)
        while queue.passed < len(order):
            rank, asking = order[queue.passed]
            if not self._waits(asking.job):
                order = self._sorted(queue)
            elif not queue.waits_in_vain(asking.kind, rank):
                return asking
            elif strict:
                break
            else:
                queue.passed += 1
        self._sum_up(queue)
        return None

    def _sorted(self, queue: _Waiting) -> list[tuple[_Rank, Asking]]:
        """Sort the first of each kind; who waits no longer is left out."""
        order = []
        for kind, heap in list(queue.kinds.items()):
            while heap and not self._waits(heap[0][1]):
                self._listed.discard(heapq.heappop(heap)[1].id)
            asking = self.asking(heap[0][1]) if heap else None
            if asking is None:
                del queue.kinds[kind]
            else:
                order.append((asking.rank, asking))
        order.sort(key=operator.itemgetter(0))
        queue.order, queue.passed = order, 0
        return order

    def _waits(self, job: Job) -> bool:
        if job.state is not _PENDING:
            return False
        if job.eligible_since is None:
            self._new.append(job)
            return False
        return True

    def put_aside(self, asking: Asking, *, roomless: bool = False) -> None:
        """Try nobody of this kind until something is given back in the tree.

        :param roomless: quota is there, and nodes are not: it is tried again in the next pass.
        """
        queue = self.waiting[asking.workload.queue.name]
        if roomless:
            queue.roomless.add(asking.kind)
            return
        queue.look(self.freed.get(self.roots[queue.node.name], 0))
        queue.aside[asking.kind] = (queue.level, asking.rank)

    # ------------------------------------------------------------------------------ in vain
    def lacks(self, asking: Asking) -> bool:
        """Whether a glance tells that neither quota is left for a job, nor anybody who could give some back."""
        if asking.single is None:
            return False
        return self._hopeless(asking.workload.queue, *asking.single, asking.workload.priority)

    def nothing_to_do(self) -> bool:
        """Whether all who wait would be tried in vain, as they were before; then what was given back helps nobody."""
        for queue in self.waiting.values():
            if not queue.kinds:
                continue
            if queue.least is None:
                return False
            if queue.seen == self.freed.get(self.roots[queue.node.name], 0):
                continue
            for pair, amount in queue.least.items():
                if not self._hopeless(queue.node, pair, amount, queue.urgent):
                    return False
        for queue in self.waiting.values():
            if queue.kinds:
                queue.seen = self.freed.get(self.roots[queue.node.name], 0)
        return True

    def _hopeless(self, node: Node, pair: Pair, amount: int, priority: int) -> bool:
        key = (node.name, pair, amount, priority)
        found = self._lacking.get(key)
        if found is None:
            counts = self.priorities[node.name]
            found = self._lacking[key] = lacks.hopeless(node, pair, amount, priority, counts, self.books)
        return found

    def _sum_up(self, queue: _Waiting) -> None:
        """Take note of the least that the kinds of a queue ask for, all of which have been tried in vain."""
        state = queue.node.queue
        assert state is not None
        if queue.roomless or state.strategy is Strategy.STRICT or state.preemption.reclaim is not Within.ANY:
            return
        least: dict[Pair, int] = {}
        urgent: int | None = None
        for heap in queue.kinds.values():
            asking = self.asking(heap[0][1])
            if asking is None or asking.single is None or heap[0][1].reason != REASON:
                return
            pair, amount = asking.single
            least[pair] = min(amount, least.get(pair, amount))
            urgent = asking.workload.priority if urgent is None else max(urgent, asking.workload.priority)
        queue.least, queue.urgent = least, urgent or 0


def yard_of(view: ClusterView) -> Yard:
    """Return the book of this run."""
    return view.book(Yard)


def _nodes_of(flavor: str, settings: Settings, view: ClusterView) -> NodeBits:
    table = next((each for each in settings.flavor if each.name == flavor), None)
    everything = bitmap.full(len(view.cluster.nodes))
    if table is None:
        return everything
    named = set(expand_hostlist(table.nodes)) if table.nodes is not None else None
    return bitmap.of(
        [
            node.index
            for node in view.cluster.nodes
            if (named is None or node.name in named) and node.features.issuperset(table.features)
        ]
    )

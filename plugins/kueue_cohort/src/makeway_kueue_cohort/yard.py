"""Keep the books of one run: what jobs hold of which quota, and who waits in which queue.

The book is told of each job that comes, starts, leaves and goes (`makeway.model.Roll`), so that nothing is counted
anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.hostlist import expand_hostlist
from makeway.model import ClusterView, Job, JobState
from makeway_kueue_cohort import requests
from makeway_kueue_cohort.books import Books, root_of
from makeway_kueue_cohort.classic import ByQueue
from makeway_kueue_cohort.flavors import Assignment, Grade, Mode, PodSet
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.settings import Settings, compiled
from makeway_kueue_cohort.site import Pair
from makeway_kueue_cohort.taints import closed
from makeway_kueue_cohort.waiting import Asking, Waiting, waits

REASON = "InsufficientQuota"
_PENDING = JobState.PENDING


class Yard:
    """The book. See `makeway.model.Roll`."""

    def __init__(self, view: ClusterView) -> None:
        """Begin with empty books."""
        self.settings = view.settings(Settings)
        self.books = Books(compiled(self.settings))
        self.counted = requests.covered(self.settings)
        self.cluster = view.cluster
        self.held: dict[str, dict[str, Workload]] = {name: {} for name in self.books.queues}
        """Queue -> who holds quota there, by id."""
        self.admitted: ByQueue = {name: held.values() for name, held in self.held.items()}
        self.jobs: dict[str, Job] = {}
        """Who holds quota, by id."""
        self.plans: dict[str, Assignment] = {}
        """Flavors chosen for jobs, by id: of those that hold quota, and of those tried in this pass."""
        self.freed: dict[str, int] = {}
        """Root -> how often something was given back below it."""
        self.roots = {name: root_of(node).name for name, node in self.books.queues.items()}
        self.waiting = {name: Waiting(node, self.roots[name]) for name, node in self.books.queues.items()}
        self.version = 0
        self._asking: dict[str, Asking | None] = {}
        self.back: list[Job] = []
        """Who has come, or may come back to wait."""
        self._nodes = {flavor: _nodes_of(flavor, self.settings, view) for flavor in self._flavors()}

    def _flavors(self) -> Iterator[str]:
        for queue in self.settings.queue:
            for quota in queue.quotas:
                yield quota.flavor

    # ------------------------------------------------------------------------------ the roll
    def came(self, job: Job, view: ClusterView) -> None:
        """Take note of a job that was submitted."""
        del view
        self.back.append(job)

    def gone(self, job: Job, view: ClusterView) -> None:
        """Forget a job."""
        del view
        asking = self._asking.pop(job.id, None)
        if asking is not None:
            queue = self.waiting[asking.workload.queue.name]
            if job.id in queue.listed:
                queue.sort_anew()
        self.plans.pop(job.id, None)

    def started(self, job: Job, view: ClusterView) -> None:
        """Count a job against its quota, in the flavors chosen for it."""
        asking = self.asking(job)
        if asking is None:
            return
        plan = self.plans.get(job.id)
        if plan is None:
            plan = self.plans[job.id] = self._guessed(asking, job.nodes)
        waited = asking.workload
        workload = Workload(
            name=waited.name,
            queue=waited.queue,
            uses=plan.uses,
            priority=waited.priority,
            created=waited.created,
            admitted=job.started_at,
            uid=waited.uid,
        )
        self.books.add(workload.queue, plan.uses)
        self.held[workload.queue.name][job.id] = workload
        self.waiting[workload.queue.name].sort_anew()
        self.jobs[job.id] = job
        self.version += 1

    def left(self, job: Job, view: ClusterView) -> None:
        """Give its quota back; what was requeued waits again."""
        asking = self._asking.get(job.id)
        if asking is None:
            return
        node = asking.workload.queue
        workload = self.held[node.name].pop(job.id, None)
        if workload is not None:
            self.books.take(node, workload.uses)
        self.jobs.pop(job.id, None)
        self.plans.pop(job.id, None)
        root = self.roots[node.name]
        self.freed[root] = self.freed.get(root, 0) + 1
        self.version += 1
        self.back.append(job)

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
        taints = self.settings.taints
        shut = closed(taints, job.spec.attributes.get("tolerations", ())) if taints else {}
        each = {**amounts, "pods": 1000 * pods} if "pods" in self.counted else amounts
        pod_sets = [PodSet("job", 1, each, closed=shut)]
        workload = Workload(
            name=job.id,
            queue=node,
            uses={},
            priority=requests.priority_of(job),
            created=job.spec.submit_at,
            uid=f"{job.index:012d}",
        )
        rank = (-workload.priority, workload.created, job.index)
        return Asking(job, workload, tuple(pod_sets), (tuple(amounts.items()), pods, tuple(shut)), rank)

    def _guessed(self, asking: Asking, nodes: NodeBits) -> Assignment:
        """Return the flavors of a job that was not planned: those of its nodes, first written first."""
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
            before = self.held[node.name].get(job.id)
            assert before is not None
            self.books.take(node, before.uses)
            self.books.add(node, uses)
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
                if (workload := held.get(name)) is not None:
                    held[name] = attrs.evolve(workload, evicted=True)

    # ------------------------------------------------------------------------------ queues
    def sort_in(self) -> None:
        """Sort those into their queues who have come, and can be tried; others are looked at again."""
        if not self.back:
            return
        later = []
        for job in self.back:
            if job.state.ended:
                continue  # it is forgotten already
            asking = self.asking(job)
            if asking is None or job.id in self.jobs:
                continue
            if job.state is not _PENDING or job.eligible_since is None:
                later.append(job)  # it is still leaving its nodes, or something of its own keeps it back
                continue
            queue = self.waiting[asking.workload.queue.name]
            if job.id not in queue.listed:
                queue.push(asking)
        self.back = later

    def freed_for(self, queue: Waiting) -> int:
        """Return how much has been given back in the tree of a queue."""
        return self.freed.get(queue.root, 0)

    def order(self, queue: Waiting) -> list[Asking]:
        """Return the first of each kind of a queue, in order; who waits no longer is left out."""
        return queue.order if queue.order is not None else queue.sorted(self.back)

    def waits(self, asking: Asking) -> bool:
        """Whether a job can be tried now."""
        return waits(asking.job, self.back)

    def put_aside(self, asking: Asking, freed: int, *, roomless: bool) -> None:
        """Try no job of this kind until something is given back in the tree.

        :param freed: how much had been given back when it was nominated.
        :param roomless: quota is there, and nodes are not: it is tried again in the next pass.
        """
        queue = self.waiting[asking.workload.queue.name]
        if roomless:
            queue.roomless.add(asking.kind)
        else:
            queue.aside[asking.kind] = (freed, asking.rank)


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

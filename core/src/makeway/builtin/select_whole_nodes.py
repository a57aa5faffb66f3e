"""Give jobs whole nodes, the first that do: a plain selector, so that makeway replays without any other plugin.

A node does if it has the CPUs, memory and counted resources that the job asks for on each node, and its features.
No job shares a node, suspended jobs included. All is derived from the view.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs

from makeway import bitmap, licences
from makeway.bitmap import NodeBits
from makeway.features import alternatives
from makeway.hookspecs import hookimpl
from makeway.licences import LicenceLimits
from makeway.model import (
    Allocation,
    Blocked,
    Cluster,
    ClusterView,
    Cover,
    Forecast,
    Job,
    Limits,
    Node,
    Placement,
    PreemptMode,
    Selector,
)
from makeway.obstacle import least_of

NAME = "select/whole_nodes"


def unknown_request(job: Job, cluster: Cluster) -> str:
    """Say what `job` asks for that this selector does not know; empty: nothing."""
    spec = job.spec
    if spec.gres_total:
        return f"resources counted over all nodes are not modelled by {NAME}"
    if any(choice.counts for choice in alternatives(spec.features, cluster)):
        return f"counted features are not modelled by {NAME}"
    return ""


def does(job: Job, node: Node) -> bool:
    """Whether a node has what `job` asks for on each node."""
    spec = job.spec
    memory = spec.memory_mb_per_node or (spec.memory_mb_per_cpu or 0) * max(1, spec.cpus_per_node)
    return (
        node.cpus >= max(spec.cpus_per_node, spec.min_cpus_per_node)
        and node.memory_mb - node.mem_spec_limit_mb >= memory
        and all(node.gres.get(name, 0) >= count for name, count in spec.gres.items())
    )


def choose(job: Job, free: NodeBits, cluster: Cluster) -> NodeBits:
    """Return the nodes of `free` that `job` gets: those it names, then by index; empty: they do not do."""
    usable = free & ~job.excluded
    for choice in alternatives(job.spec.features, cluster):
        found = _choose(job, choice.among(usable), cluster)
        if found:
            return found
    return 0


def _choose(job: Job, usable: NodeBits, cluster: Cluster) -> NodeBits:
    spec = job.spec
    good = bitmap.of([index for index in bitmap.indices(usable) if does(job, cluster.nodes[index])])
    if job.required & ~good:
        return 0
    order = [*bitmap.indices(job.required), *bitmap.indices(good & ~job.required)]
    bound = least_of((spec.max_nodes,), job, job.size)
    most = bound if bound is not None else len(order)
    taken: list[int] = []
    cpus = 0
    for index in order[:most]:
        if len(taken) < job.size or cpus < spec.cpus or job.required >> index & 1:
            taken.append(index)
            cpus += cluster.nodes[index].cpus
    return bitmap.of(taken) if len(taken) >= job.size and cpus >= spec.cpus else 0


@attrs.define(eq=False)
class WholeNodesAttempt:
    """One pending job against the cluster. See `makeway.model.Attempt`."""

    job: Job
    nodes: NodeBits
    view: ClusterView
    _gone: set[str] = attrs.field(factory=set, init=False)

    def probe(self) -> Placement | Blocked:
        """Place the job as if the removed jobs were gone; say what is short if it cannot be."""
        busy = below = 0
        for active in self.view.active:
            if active.id in self._gone:
                below |= active.nodes
            else:
                busy |= active.nodes
        free = self.nodes & ~busy
        nodes = choose(self.job, free, self.view.cluster)
        if not nodes:
            return Blocked(wanted=self.job.size, available=free.bit_count())
        allocation = Allocation(
            nodes=nodes,
            node_indices=tuple(bitmap.indices(nodes)),
            licenses=licences.taken_by(self.job, self.view.licenses_free),
        )
        return Placement(allocation=allocation, overlays=bool(nodes & below), why="idle nodes")

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if `job` were gone."""
        self._gone.add(job.id)

    def fresh(self) -> WholeNodesAttempt:
        """Return an attempt for the same job with nothing removed."""
        return WholeNodesAttempt(self.job, self.nodes, self.view)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Offer no description."""
        return None


class WholeNodes:
    """The selector of one run; it keeps no books. See `makeway.model.Selector`."""

    def placed(self, job: Job) -> None:
        """Ignore it: the view knows."""

    def released(self, job: Job) -> None:
        """Ignore it: the view knows."""

    def suspended(self, job: Job) -> None:
        """Ignore it: the job keeps its nodes."""

    def resumed(self, job: Job) -> None:
        """Ignore it: the job kept its nodes."""

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Return those of `jobs` that ask for no more nodes than there are."""
        count = nodes.bit_count()
        return [job for job in jobs if job.size <= count]

    def equivalence_key(self, job: Job) -> Hashable:
        """Return what `choose` looks at."""
        spec = job.spec
        each = spec.cpus_per_node, spec.min_cpus_per_node, spec.memory_mb_per_node, spec.memory_mb_per_cpu
        return spec.cpus, spec.max_nodes, spec.features, job.excluded, each, tuple(spec.gres.items())

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> WholeNodesAttempt:
        """Begin an attempt to place `job` on `nodes`."""
        return WholeNodesAttempt(job, nodes, view)

    def forecast(
        self, job: Job, nodes: NodeBits, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]]
    ) -> Forecast | None:
        """Say when `job` could start on `nodes`: now, now without `removable`, or when jobs end as they are due."""
        without = self.attempt(job, nodes, view)
        for preempts in (False, True):
            found = without.probe()
            if isinstance(found, Placement):
                return Forecast(at=view.now, nodes=found.allocation.nodes, preempts=preempts)
            for other, mode in removable:
                without.remove(other, mode)
        attempt = self.attempt(job, nodes, view)
        for at, _, other in view.releases():
            attempt.remove(other, PreemptMode.CANCEL)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=max(at, view.now), nodes=found.allocation.nodes)
        return None

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run even on the empty cluster with all nodes in service; None: it could."""
        cluster = view.cluster
        detail = unknown_request(job, cluster)
        if not detail and not choose(job, job.partition.nodes, cluster):
            wanted = f"nodes wanted: {job.size}, CPUs: {job.spec.cpus}"
            detail = f"{wanted}; partition {job.partition.name} has not enough that do"
        return Blocked(reason="BadConstraints", detail=detail, never=True) if detail else None


@hookimpl
def makeway_selector() -> Selector:
    """Build the selector."""
    return WholeNodes()


@hookimpl
def makeway_limits() -> Limits:
    """Keep out jobs whose licences are not there (slurm-preemption 1.11)."""
    return LicenceLimits()

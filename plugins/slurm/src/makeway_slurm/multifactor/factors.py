"""Work the factors of one job out, each weighted (slurm-priority-and-limits 1.1, 1.3)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from makeway.model import NOTHING, ClusterView, Job, Partition
from makeway.partition_bounds import beyond
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.tree import Association, priority_of
from makeway_slurm.accounts.tres import requested, totals
from makeway_slurm.accounts.whole_nodes import WholeNodes

HIGHEST = 2**32 - 1
_MANY = 100_000
_YEAR_MINUTES = 365 * 24 * 60


@attrs.frozen(kw_only=True)
class Fixed:
    """The weighted factors of a job that do not change while it waits, in the order in which Slurm adds them."""

    assoc: float = 0.0
    size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = NOTHING
    site: int = 0
    nice: int = 0

    after_fairshare: tuple[float, ...] = attrs.field(init=False, repr=False, eq=False)
    """What is added once age, association and fair share are in; zeros change nothing."""

    @after_fairshare.default
    def _after_fairshare(self) -> tuple[float, ...]:
        every = (
            self.size,
            self.partition,
            self.qos,
            *self.tres.values(),
            float(self.site),
            -float(self.nice),
        )
        return tuple(filter(None, every))

    rest: float = attrs.field(init=False, repr=False, eq=False)
    """About their sum."""

    @rest.default
    def _rest(self) -> float:
        return sum(self.after_fairshare)


def total(age: float, fixed: Fixed, fairshare: float) -> int:
    """Return the priority: doubles added in Slurm's order, only the sum truncated."""
    found = age + fixed.assoc + fairshare
    for each in fixed.after_fairshare:
        found += each
    return 1 if found < 1.0 else min(int(found), HIGHEST)


class Weigher:
    """Weighs the jobs of one cluster."""

    def __init__(self, view: ClusterView, settings: Settings, most_assoc: int) -> None:
        self._cluster = cluster = view.cluster
        self._whole_nodes = WholeNodes(view)
        self._settings = settings
        self._nodes = len(cluster.nodes)
        self._cpus = sum(node.cpus for node in cluster.nodes)
        self._most_qos = max((qos.priority for qos in cluster.qos), default=0)
        self._most_partition = max([1, *(each.priority_job_factor for each in cluster.partitions)])
        self._most_assoc = most_assoc
        self._by_time = settings.has("SMALL_RELATIVE_TO_TIME")
        """Whether the size of a job is looked at beside its time limit."""
        self.sizes_change = bool(settings.weight_job_size)
        """Whether it matters that jobs which take whole nodes count more once nodes were looked for."""
        self._totals: dict[int, dict[str, int]] = {}
        self._alike: dict[Hashable, Fixed] = {}
        """By all that is looked at in a job, where TRES have no weights."""

    def fixed(self, job: Job, partition: Partition, association: Association | None) -> Fixed:
        """Return the factors of a pending job in one of its partitions, as long as no nodes were looked for."""
        return self._of(job, partition, association, job.spec.cpus)

    def looked_for(self, job: Job, partition: Partition, association: Association | None) -> Fixed:
        """Return those from then on: the size counts all CPUs of nodes that are taken as a whole (1.3, measured).

        Nodes are not looked for where the bounds of a partition keep a job out, or a limit caps it below what it needs.
        """
        cpus, cap = job.spec.cpus, job.spec.node_cap
        barred = (cap is not None and cap < job.size) or beyond(job, partition)
        if self._whole_nodes.taken_by(job, partition) and not barred:
            cpus = self._whole_nodes.cpus(job, partition)
        return self._of(job, partition, association, cpus)

    def _of(self, job: Job, partition: Partition, association: Association | None, cpus: int) -> Fixed:
        if self._settings.weight_tres:
            return self._weighed(job, partition, association, cpus)
        qos, spec = job.qos, job.spec
        key = (
            partition.index,
            qos.name if qos is not None else None,
            association.index if association is not None else None,
            job.size,
            cpus,
            job.time_limit if self._by_time else None,
            spec.nice,
            spec.attributes.get("site_factor", 0),
        )
        found = self._alike.get(key)
        if found is None:
            if len(self._alike) > _MANY:
                self._alike.clear()
            found = self._alike[key] = self._weighed(job, partition, association, cpus)
        return found

    def _weighed(self, job: Job, partition: Partition, association: Association | None, cpus: int) -> Fixed:
        settings = self._settings
        own = priority_of(association) if association is not None else 0
        return Fixed(
            assoc=self._over(own, self._most_assoc, "NO_NORMAL_ASSOC") * settings.weight_assoc,
            size=self._size(job, partition, cpus) * settings.weight_job_size
            if settings.weight_job_size
            else 0.0,
            partition=self._over(partition.priority_job_factor, self._most_partition, "NO_NORMAL_PART")
            * settings.weight_partition,
            qos=self._over(job.qos.priority if job.qos is not None else 0, self._most_qos, "NO_NORMAL_QOS")
            * settings.weight_qos,
            tres=self._tres(job, partition),
            site=int(job.spec.attributes.get("site_factor", 0)),
            nice=job.spec.nice,
        )

    def _over(self, value: int, most: int, flag: str) -> float:
        if self._settings.has(flag):
            return float(value)
        return value / most if most else 0.0

    def _tres(self, job: Job, partition: Partition) -> dict[str, float]:
        weights = self._settings.weight_tres
        if not weights:
            return {}
        there = self._totals.get(partition.index)
        if there is None:
            there = self._totals[partition.index] = totals(partition, self._cluster)
        wanted = requested(job, partition, self._cluster, there)
        found = {}
        for name, weight in weights.items():
            key = name.lower()
            count = float(wanted.get(key, 0))
            if not self._settings.has("NO_NORMAL_TRES"):
                count = count / there[key] if there.get(key) else 0.0
            found[key] = count * weight
        return found

    def _size(self, job: Job, partition: Partition, wanted: int) -> float:
        """Return the size factor, 0 to 1."""
        settings, nodes, cpus = self._settings, self._nodes, self._cpus
        if not nodes or not cpus:
            return 0.0
        least = job.size
        if settings.has("SMALL_RELATIVE_TO_TIME"):
            limit = job.time_limit if job.time_limit is not None else partition.max_time
            minutes = max(1.0, limit // 60) if limit is not None else _YEAR_MINUTES
            found = max(least * cpus / nodes, float(wanted)) / minutes / cpus
            found = 1.0 - found if settings.favor_small else found
        elif settings.favor_small:
            found = ((nodes - least) / nodes + (cpus - wanted) / cpus) / 2
        else:
            found = (least / nodes + wanted / cpus) / 2
        return min(1.0, max(0.0, found))

"""Say what the log knows: what ran where and when, the machine behind it, and what was preempted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import attrs

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    SchedulerTable,
    WorkloadTable,
)
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist, fold_hostlist, natural_key
from makeway.model import JobSpec, Seconds
from makeway.readers.api import ReadOptions
from makeway_app.readers.open import open_workload
from makeway_slurm.readers.sacct import SacctReader

DAY: Seconds = 86400.0
SOON: Seconds = 300.0
"""A start on a victim's node within this time after its end is taken as the reason for that end."""


@attrs.frozen(kw_only=True)
class Recorded:
    """A job as it really ran."""

    spec: JobSpec
    start: Seconds
    end: Seconds
    nodes: tuple[str, ...]
    """Empty: it never started."""
    scavenger: bool
    """Whether it may be preempted."""

    @property
    def id(self) -> str:
        """The job's id."""
        return self.spec.id

    @property
    def partition(self) -> str:
        """The partition that it was submitted to."""
        return self.spec.partitions[0]

    @property
    def preempted(self) -> bool:
        """Whether it really was."""
        return self.spec.attributes["state"] == "PREEMPTED"

    @property
    def share(self) -> int:
        """CPUs on each of its nodes."""
        return -(-(self.spec.tasks or 1) // max(1, len(self.nodes)))

    @property
    def eligible(self) -> Seconds:
        """When it could have started at the earliest."""
        return self.spec.begin_at if self.spec.begin_at is not None else self.spec.submit_at

    def runs_at(self, at: Seconds) -> bool:
        """Say whether it ran at `at`; one that was preempted counts up to its last second."""
        return self.start < at and (at < self.end or (self.preempted and at == self.end))


@attrs.frozen(kw_only=True)
class Loss:
    """A job that had to make way, really or in a replay."""

    job: Recorded
    at: Seconds
    preemptor: str | None
    """Partition of the job that took its place; None: not known."""


class Log:
    """All jobs of the log in order of submission."""

    def __init__(self, jobs: Sequence[Recorded], start_wall: float, rejected: int) -> None:
        self.jobs = jobs
        self.start_wall = start_wall
        """Unix time of instant 0."""
        self.rejected = rejected
        """Rows that could not be used."""

    @cached_property
    def complete_from(self) -> Seconds:
        """First instant from which the log is complete: it holds what ended from that day on."""
        first = min((job.end for job in self.started), default=0.0) + self.start_wall
        return first - first % DAY - self.start_wall

    @cached_property
    def by_id(self) -> Mapping[str, Recorded]:
        """The jobs by id."""
        return {job.id: job for job in self.jobs}

    @cached_property
    def started(self) -> Sequence[Recorded]:
        """Jobs that ran."""
        return [job for job in self.jobs if job.nodes]

    @cached_property
    def on(self) -> Mapping[str, Sequence[Recorded]]:
        """Jobs that ran on each node, in order of start."""
        found: dict[str, list[Recorded]] = defaultdict(list)
        for job in sorted(self.started, key=lambda job: job.start):
            for node in job.nodes:
                found[node].append(job)
        return found

    @cached_property
    def losses(self) -> Sequence[Loss]:
        """The jobs that really were preempted, each with the partition that came after it."""
        return [
            Loss(job=job, at=job.end, preemptor=self._successor(job)) for job in self.jobs if job.preempted
        ]

    def _successor(self, victim: Recorded) -> str | None:
        """Return the partition of the first other job that began on its nodes soon after; None: none did."""
        later = [job for node in victim.nodes for job in self.on[node] if not job.scavenger]
        soon = [job for job in later if 0 <= job.start - victim.end <= SOON]
        return min(soon, key=lambda job: job.start).partition if soon else None

    @cached_property
    def cpus(self) -> Mapping[str, int]:
        """CPUs of each node: the most that were in use at a time, at least the largest share of a job."""
        return {
            node: max(_most_at_once(jobs), *(job.share for job in jobs)) for node, jobs in self.on.items()
        }

    @cached_property
    def shunned(self) -> Mapping[tuple[str, str, int], tuple[str, ...]]:
        """Nodes that jobs of a user, partition and size cannot use, as they never ran on any node of that size."""
        sizes: dict[tuple[str, str, int], set[int]] = defaultdict(set)
        for job in self.started:
            sizes[kind_of(job)].update(self.cpus[node] for node in job.nodes)
        return {
            kind: tuple(node for node in sorted(self.cpus, key=natural_key) if self.cpus[node] not in seen)
            for kind, seen in sizes.items()
        }


def kind_of(job: Recorded) -> tuple[str, str, int]:
    """Return what jobs have in common that ask for the same sort of node."""
    return job.spec.user, job.partition, job.spec.tasks or 1


def _most_at_once(jobs: Iterable[Recorded]) -> int:
    """Return the most CPUs that `jobs` held of a node at a time."""
    lasting = [job for job in jobs if job.end > job.start]
    changes = [(job.start, 1, job.share) for job in lasting] + [(job.end, 0, -job.share) for job in lasting]
    used = most = 0
    for _, _, change in sorted(changes):
        used += change
        most = max(most, used)
    return most


def read_log(path: Path, scavengers: Collection[str] = ()) -> Log:
    """Read all jobs of `path`.

    :param scavengers: partitions whose jobs may be preempted; none: those of the jobs that were.
    :raises ConfigError: the log cannot be read, or tells of no preemption and names no such partition.
    """
    known, preempted = _machine_of(path)
    names = {table.name for table in known.partition}
    for name in sorted(set(scavengers) - names):
        text = f"no job was in partition {name!r}{nearest(name, names)}"
        raise ConfigError("--scavenger", [Problem("", text)])
    lowest = frozenset(scavengers) or preempted
    if not lowest:
        text = "no job ended as PREEMPTED, so that there is nothing to compare with; --scavenger names a partition"
        raise ConfigError(str(path), [Problem("", text)])
    workload = open_workload(path, ReadOptions(config=known))
    jobs = [_recorded(spec, lowest) for spec in workload.jobs]
    return Log(jobs, workload.start_wall or 0.0, workload.rejected_count)


def _machine_of(path: Path) -> tuple[Config, frozenset[str]]:
    """Return partitions and the largest node that the log needs, and the partitions of preempted jobs."""
    partitions: set[str] = set()
    preempted: set[str] = set()
    cpus = 1
    for spec in SacctReader().read(path, ReadOptions(config=Config())).jobs:
        partitions.update(spec.partitions[:1])
        if spec.attributes["state"] == "PREEMPTED":
            preempted.update(spec.partitions[:1])
        nodes = expand_hostlist(spec.attributes.get("nodes", ""))
        cpus = max(cpus, -(-(spec.tasks or 1) // max(1, len(nodes))))
    config = Config(
        node=(NodeTable(name="any", cpus=cpus),),
        partition=tuple(PartitionTable(name=name) for name in sorted(partitions)),
    )
    return config, frozenset(preempted)


def _recorded(spec: JobSpec, scavengers: frozenset[str]) -> Recorded:
    start = spec.submit_at + spec.attributes.get("wait", 0.0)
    nodes = () if spec.attributes.get("never_started") else expand_hostlist(spec.attributes.get("nodes", ""))
    return Recorded(
        spec=spec,
        start=start,
        end=start + (spec.run_time or 0.0),
        nodes=tuple(nodes),
        scavenger=spec.partitions[0] in scavengers,
    )


def derived_config(log: Log) -> Config:
    """Describe the machine as far as the log tells, with scavenger partitions in the lowest tier."""
    lowest = {job.partition for job in log.jobs if job.scavenger}
    clusters = {job.spec.attributes["cluster"] for job in log.jobs if "cluster" in job.spec.attributes}
    of_size: dict[int, list[str]] = defaultdict(list)
    for node, cpus in log.cpus.items():
        of_size[cpus].append(node)
    used: dict[str, set[str]] = defaultdict(set)
    for job in log.started:
        used[job.partition].update(job.nodes)
    return Config(
        cluster=ClusterTable(name=min(clusters, default="cluster")),
        node=tuple(
            NodeTable(name=fold_hostlist(names), cpus=cpus) for cpus, names in sorted(of_size.items())
        ),
        partition=tuple(
            PartitionTable(name=name, nodes=fold_hostlist(nodes), priority_tier=1 if name in lowest else 2)
            for name, nodes in sorted(used.items())
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="preempt/partition_prio",
            preempt_mode=("cancel",),
        ),
        scheduler=SchedulerTable(type="easy"),
        workload=WorkloadTable(),
    )

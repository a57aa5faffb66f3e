"""Say how old waiting jobs are, and which may age at all (slurm-priority-and-limits 5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from makeway.job_table import JobTable
from makeway.model import ClusterView, Job, Qos
from makeway_slurm.accounts.limits import Limits, parse_limits
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.multifactor.task_table import TaskTable

_TINY = 1e-6


class Accrual:
    """The age clocks of one run."""

    def __init__(self, view: ClusterView, settings: Settings) -> None:
        self._settings = settings
        self._book = view.book(UsageBook)
        self._always = settings.has("ACCRUE_ALWAYS")
        self._of_qos: dict[str, Limits] = {qos.name: parse_limits(qos.attributes) for qos in view.cluster.qos}
        tree = self._book.tree
        nodes = tree.nodes if tree is not None else ()
        self._limited = any(map(_limits_age, [*self._of_qos.values(), *(node.limits for node in nodes)]))
        self._since: dict[str, int] = {}
        """Jobs that are let age by a limit, with the second from which on."""
        self._table = TaskTable()
        self._job_table = view.book(JobTable)

    @property
    def is_plain(self) -> bool:
        """Whether age is the time since a job could start, and no more."""
        return not (self._limited or self._always)

    @property
    def is_limited(self) -> bool:
        """Whether it matters which job starts when: only so many waiting jobs may age."""
        return self._limited and not self._always

    def age(self, job: Job, second: int) -> float:
        """Return the age factor, 0 to 1: 0 for jobs that could not start, and for those that a limit keeps young."""
        if self._always:
            since: float | None = job.spec.submit_at
        else:
            since = job.eligible_since
        if since is None:
            return 0.0
        begun = math.floor(since + _TINY)
        if self._limited and not self._always and self._decisive(job) is not None:
            begun = self._since.get(job.id, second)
        return min(1.0, max(0, second - begun) / self._settings.max_age)

    def ages(self, jobs: Iterable[Job], second: int) -> list[float]:
        """Return `age` of many jobs at once."""
        if self._limited or self._always:
            return [self.age(job, second) for job in jobs]
        most, floor = self._settings.max_age, math.floor
        return [
            min(1.0, max(0, second - floor(job.eligible_since + _TINY)) / most)
            if job.eligible_since is not None
            else 0.0
            for job in jobs
        ]

    def recount(self, view: ClusterView, second: int) -> None:
        """Let jobs age for which there is a place, in the order of the job table.

        Slurm does so whenever a scheduler looks at the queue (recorded: accrual_arrays). Of an array whose tasks do not
        all find a place, those that do get records of their own.
        """
        if not self.is_limited:
            return
        waiting = [job for job in view.pending if job.eligible_since is not None]
        self._since = {job.id: at for job in waiting if (at := self._age_of(job)) is not None}
        counts: Counter[tuple[str, ...]] = Counter()
        for job in waiting:
            if job.id in self._since:
                counts.update(self._keys(job))
        for tasks in self._table.records(waiting, self._since):
            decisive = self._decisive(tasks[0])
            if decisive is None:
                continue
            key, most = decisive
            aging = tasks[: max(0, most - counts[key])]
            if 0 < len(aging) < len(tasks):
                self._table.split(aging)
                for job in aging:
                    self._job_table.set_apart(job)
            for job in aging:
                self._since[job.id] = second
                counts.update(self._keys(job))

    def _age_of(self, job: Job) -> int | None:
        """Return since when a job has aged, unless it had to wait anew meanwhile; None: it does not."""
        at = self._since.get(job.id)
        if at is None or job.eligible_since is None or at < math.floor(job.eligible_since + _TINY):
            return None
        return at

    def _decisive(self, job: Job) -> tuple[tuple[str, ...], int] | None:
        """Return the first limit that is set, QOS before association, and what it counts by; None: there is none."""
        for qos in _qos_of(job):
            limits = self._of_qos.get(qos)
            if limits is None:
                continue
            for what, most in (
                (("pa", qos, job.account or ""), limits.max_jobs_accrue_pa),
                (("pu", qos, job.user), limits.max_jobs_accrue_pu),
                (("grp", qos), limits.grp_jobs_accrue),
            ):
                if most is not None:
                    return what, most
        node = self._book.association_of(job)
        for each in node.chain if node is not None else ():
            if each is node and each.limits.max_jobs_accrue is not None:
                return ("assoc", str(each.index)), each.limits.max_jobs_accrue
            if each.limits.grp_jobs_accrue is not None:
                return ("assoc", str(each.index)), each.limits.grp_jobs_accrue
        return None

    def _keys(self, job: Job) -> list[tuple[str, ...]]:
        """Return all that a job which ages counts for."""
        found: list[tuple[str, ...]] = []
        for qos in _qos_of(job):
            found += [("pa", qos, job.account or ""), ("pu", qos, job.user), ("grp", qos)]
        node = self._book.association_of(job)
        return found + [("assoc", str(each.index)) for each in (node.chain if node is not None else ())]

    def save(self) -> Mapping[str, Any]:
        """Return which jobs are let age, and since when; and which tasks have records of their own."""
        return {"since": dict(self._since), "table": self._table.save()}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with that; what was handed over before tables were kept holds no more than the seconds."""
        self._since = {job_id: int(at) for job_id, at in memory.get("since", memory).items()}
        if "table" in memory:
            self._table.restore(memory["table"])


def _qos_of(job: Job) -> list[str]:
    """Return the QOS that count, in their order (6.1 no. 1)."""
    own, partition = job.qos.name if job.qos is not None else None, job.partition.qos
    names = [own, partition] if _overrides(job.qos) else [partition, own]
    return list(dict.fromkeys(name for name in names if name is not None))


def _overrides(qos: Qos | None) -> bool:
    return qos is not None and "OverPartQOS" in qos.flags


def _limits_age(limits: Limits) -> bool:
    every = (
        limits.grp_jobs_accrue,
        limits.max_jobs_accrue,
        limits.max_jobs_accrue_pu,
        limits.max_jobs_accrue_pa,
    )
    return any(each is not None for each in every)

"""Compute priorities when Slurm does, and keep what it remembers between two times (slurm-priority-and-limits 1.2)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from makeway.job_table import JobTable
from makeway.model import ClusterView, Job, Seconds
from makeway.priorities import Occasion, Priority
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.tree import Association
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.multifactor.accrual import Accrual
from makeway_slurm.multifactor.classic import HUGE, Classic
from makeway_slurm.multifactor.factors import Weigher, total
from makeway_slurm.multifactor.fair_tree import FairTree, Share
from makeway_slurm.multifactor.known import Known

_TINY = 1e-6
_SPARE = 1000
"""Jobs that have started or gone and are kept in mind, before they are swept out."""
_NO_SHARES: Mapping[int, Share] = {}
_NO_VALUES: Mapping[str, int] = {}


class Multifactor:
    """The priorities of one run. See `makeway.priorities.Prioritizer`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.settings = settings = view.settings(Settings)
        self.book = book = view.book(UsageBook)
        book.count(self)
        tree = book.tree
        self._weigher = Weigher(view, settings, tree.most_priority if tree is not None else 0)
        self._accrual = Accrual(view, settings)
        self._fair: FairTree | None = None
        self._classic: Classic | None = None
        self._table: JobTable | None = None
        """Asked for the classic fair share alone."""
        if tree is not None and (settings.has("NO_FAIR_TREE") or settings.has("DEPTH_OBLIVIOUS")):
            oblivious = settings.has("DEPTH_OBLIVIOUS")
            self._table = view.book(JobTable)
            known = any(node.start for node in tree.nodes) or not view.rule("unknown_usage_is_huge")
            self._classic = Classic(
                tree,
                settings.dampening_factor,
                oblivious=oblivious,
                tie_order=settings.tie_order,
                unknown=0.0 if known else HUGE,
            )
            book.watch(self._accounts, self._users)
            self._accounts()
        elif tree is not None:
            self._fair = FairTree(tree, settings.tie_order)
            book.watch_last(self._ranks_are_old)
            book.freeze_before()
        self._usage: list[float] | None = None
        """What each association had used at the last recalculation, once that matters."""
        self._factors: Sequence[float] | None = None
        self._ranked_at = -1
        """The recalculation that they are of."""
        self._known: dict[str, Known] = {}
        self._renewed_at: Seconds = book.next_at - settings.calc_period
        self._running = settings.has("CALCULATE_RUNNING")
        self._period = settings.calc_period

    @property
    def next_at(self) -> Seconds:
        """When all priorities have to be worked out anew."""
        return self._renewed_at + self._period

    @property
    def watches(self) -> bool:
        """Whether passes matter: in each, jobs begin to age for which a limit has a place."""
        return self._accrual.is_limited

    def look(self, view: ClusterView) -> None:
        """Let jobs age for which there is a place, since a scheduler looks at the queue."""
        self._accrual.recount(view, math.floor(view.now + _TINY))

    # --------------------------------------------------------------------------- fair share
    def _ranks_are_old(self) -> None:
        """Note that usage has been recalculated: who asks next finds ranks of this instant."""
        self._usage = None

    def _ranks(self) -> Sequence[float] | None:
        """Return the factors of all associations by the ranks of the last recalculation; None: no tree ranks."""
        if self._fair is None:
            return None
        if self._factors is None or self._ranked_at != self.book.ticks:
            self._factors = self._fair.factors(self._freeze())
            self._ranked_at = self.book.ticks
        return self._factors

    def _freeze(self) -> list[float]:
        """Return what each association had used at the last recalculation."""
        if self._usage is None:
            self._usage = self.book.used_at_last()
        return self._usage

    def _used(self, node: Association) -> float:
        return self.book.associations[node.index].used()

    def _accounts(self) -> None:
        if self._classic is not None:
            self._classic.accounts(self._used)

    def _users(self, now: int) -> None:
        """Work the users out who have jobs that wait, in the order of the job table.

        Slurm charges those who run on the same way through the table: who runs further down has not been charged yet.
        """
        del now
        classic, book, table = self._classic, self.book, self._table
        if classic is None or table is None:
            return
        jobs = [job for job in self._view.pending if job.priority]
        if self._running:
            jobs += self._view.active
        jobs.sort(key=table.place)
        further_down = sorted(book.just_charged(), key=lambda each: table.place(each[0]), reverse=True)
        uncharged: Counter[int] = Counter()
        for _, amount, entries in further_down:
            uncharged.update({entry.index: amount for entry in entries if entry.index >= 0})

        def used(node: Association) -> float:
            return self._used(node) - uncharged[node.index]

        for job in jobs:
            while further_down and table.place(further_down[-1][0]) <= table.place(job):
                _, amount, entries = further_down.pop()
                uncharged.subtract({entry.index: amount for entry in entries if entry.index >= 0})
            node = book.association_of(job)
            if node is not None:
                classic.ask_for(node, used)

    def shares(self) -> Mapping[int, Share]:
        """Return what fair share makes of each association, as of the last recalculation."""
        if self._classic is not None:
            return self._classic.shares(self._used)
        return self._fair.rank(self._freeze()) if self._fair is not None else _NO_SHARES

    def show(self) -> None:
        """Keep what a look at shares works out, as Slurm does with NO_FAIR_TREE."""
        if self._classic is not None:
            self._classic.look(self._used)

    def whole_share(self, node: Association) -> float:
        """Return an association's share: of its level, or (classic) of the cluster."""
        return self._classic.whole_share(node) if self._classic is not None else node.norm_shares

    @property
    def is_tree(self) -> bool:
        """Whether the fair tree ranks users."""
        return self._classic is None

    def factor_of(self, node: Association | None) -> float | None:
        """Return the fair-share factor of an association, 0 to 1; None: there is none."""
        if node is None or (self._classic is None and self._fair is None):
            return None
        if self._classic is not None:
            return self._classic.factor(node, self._used)
        factors = self._ranks()
        return factors[node.index] if factors is not None else None

    def _fairshare_by_index(self) -> Sequence[float] | None:
        """Return the factors of all associations at once; None: each has to be asked for."""
        return self._ranks() if self.settings.weight_fairshare else None

    def _fairshare(self, node: Association | None) -> float:
        weight = self.settings.weight_fairshare
        if node is None or not weight:
            return 0.0
        if self._classic is not None:
            return self._classic.factor(node, self._used) * weight
        factors = self._fairshare_by_index()
        return factors[node.index] * weight if factors is not None else 0.0

    # ------------------------------------------------------------------------------ computing
    def fresh(self, jobs: Sequence[Job], occasion: Occasion, view: ClusterView) -> Sequence[Priority | None]:
        """Return the priority of jobs that came or changed, by the ranks of the last recalculation."""
        self.book.advance(view.now)
        second = math.floor(view.now + _TINY)
        found: list[Priority | None] = []
        for job in jobs:
            self.book.saw(job)
            before = self._known.pop(job.id, None)
            known = self._look_at(job)
            if occasion is Occasion.RELEASED and job.spec.priority != 0 and job.eligible_at + 1.0 <= second:
                known.grow()  # nodes were looked for before it was held
            # A change of the QOS computes while the age clock is cleared (1.2, quirk).
            cleared = occasion is Occasion.CHANGED and before is not None and before.qos != known.qos
            found.append(self._compute(job, known, second, cleared=cleared))
        return found

    def again(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Priority]:
        """Recalculate usage and ranks, and return the priority of all jobs that wait."""
        self.book.advance(view.now)
        self._renewed_at = self.book.next_at - self.settings.calc_period
        second = math.floor(self._renewed_at + _TINY)
        self._accrual.recount(view, second)
        found: dict[str, Priority] = {}
        incr_only, weight = self.settings.has("INCR_ONLY"), self.settings.weight_fairshare
        weight_age = self.settings.weight_age
        if len(self._known) > 2 * len(jobs) + _SPARE:
            kept = {job_id: each for job_id, each in self._known.items() if view.job(job_id) is not None}
            self._known = kept
        every, fairshare = self._known, self._fairshare_by_index()
        if fairshare is not None and not incr_only and not self._running and self._accrual.is_plain:
            return self._renewed_plainly(jobs, second, fairshare)
        ages = self._accrual.ages(jobs, second) if self.settings.weight_age else itertools.repeat(0.0)
        for job, age in zip(jobs, ages, strict=False):
            known = every.get(job.id)
            qos = job.qos
            if known is None or known.qos != (qos.name if qos is not None else ""):
                known = self._look_at(job)
            known.brought_to(job, second)
            last = dict(known.values) if incr_only else _NO_VALUES
            node = known.association
            if fairshare is None:
                given = self._fairshare(node)
            else:
                given = fairshare[node.index] * weight if node is not None else 0.0
            value = _weighed(job, known, age * weight_age, given)
            if incr_only and last:
                value = self._not_below(job, known, last)
            if value != job.priority:
                found[job.id] = value
        if self._running:
            for job in view.active:
                if job.priority:
                    known = self._look_at(job)
                    value = self._compute(job, known, second)
                    if incr_only:
                        value = self._not_below(job, known, dict.fromkeys(known.values, job.priority))
                    found[job.id] = value
        return found

    def _renewed_plainly(
        self, jobs: Sequence[Job], second: int, fairshare: Sequence[float]
    ) -> dict[str, Priority]:
        """Return what `again` does where the fair tree ranks and age is the time since a job could start."""
        found: dict[str, Priority] = {}
        every, floor = self._known, math.floor
        weight, weight_age = self.settings.weight_fairshare, self.settings.weight_age
        most = self.settings.max_age
        for job in jobs:
            known = every.get(job.id)
            if known is None or known.qos != (job.qos.name if job.qos is not None else ""):
                known = self._look_at(job)
            age, since = 0.0, job.eligible_since
            if since is not None and (weight_age or known.later is not None):
                waited = second - floor(since + _TINY)
                if waited > 0:
                    age = (waited / most if waited < most else 1.0) * weight_age
                    if known.later is not None:
                        known.grow()
            node, alone = known.association, known.alone
            given = fairshare[node.index] * weight if node is not None else 0.0
            if alone is None:
                value = _weighed(job, known, age, given)
            else:
                known.age, known.fairshare = age, given
                value = known.values[job.partition.name] = total(age, alone, given)
            if value != job.priority:
                found[job.id] = value
        return found

    def _not_below(self, job: Job, known: Known, last: Mapping[str, int]) -> Priority:
        known.values = {name: max(value, last.get(name, 0)) for name, value in known.values.items()}
        return _answer(job, known.values)

    def _look_at(self, job: Job) -> Known:
        node, weigher = self.book.association_of(job), self._weigher
        if len(job.partitions) == 1:
            partition = job.partition
            alone = weigher.fixed(job, partition, node)
            known = Known(_qos_of(job), node, {partition.name: alone}, alone)
        else:
            fixed = {each.name: weigher.fixed(job, each, node) for each in job.partitions}
            known = Known(_qos_of(job), node, fixed)
        if weigher.sizes_change:
            later = {each.name: weigher.looked_for(job, each, node) for each in job.partitions}
            known.later = later if later != known.fixed else None
        self._known[job.id] = known
        return known

    def _compute(self, job: Job, known: Known, second: int, *, cleared: bool = False) -> Priority:
        known.brought_to(job, second)
        weight = self.settings.weight_age
        age = 0.0 if cleared or not weight else self._accrual.age(job, second) * weight
        return _weighed(job, known, age, self._fairshare(known.association))

    def known(self, job: Job) -> Known | None:
        """Return what the last computation found of a job that waits."""
        return self._known.get(job.id)

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> Mapping[str, Any]:
        """Return usage, and when it was last recalculated; ages and factors follow from the jobs."""
        return {
            "usage": self.book.save(),
            "renewed_at": self._renewed_at,
            "classic": self._classic.save() if self._classic is not None else None,
            "accrual": self._accrual.save(),
            "frozen": self._freeze() if self._fair is not None else None,
        }

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Go on counting; active jobs are in the book."""
        self.book.restore(memory["usage"])
        self._renewed_at = memory["renewed_at"]
        self._accrual.restore(memory["accrual"])
        if self._classic is not None and memory["classic"] is not None:
            self._classic.restore(memory["classic"])
        self._usage = memory["frozen"]
        self._factors = None


def _qos_of(job: Job) -> str:
    return job.qos.name if job.qos is not None else ""


def _weighed(job: Job, known: Known, age: float, fairshare: float) -> Priority:
    """Return the priority of a job, and keep what it is made of."""
    known.age, known.fairshare = age, fairshare
    alone = known.alone
    if alone is not None:
        found = known.values[job.partition.name] = total(age, alone, fairshare)
        return found
    known.values = {name: total(age, fixed, fairshare) for name, fixed in known.fixed.items()}
    return _answer(job, known.values)


def _answer(job: Job, values: Mapping[str, int]) -> Priority:
    """Return one number where all partitions agree."""
    if len(values) == 1 or len(set(values.values())) == 1:
        return next(iter(values.values()))
    return dict(values)


__all__ = ["Known", "Multifactor"]

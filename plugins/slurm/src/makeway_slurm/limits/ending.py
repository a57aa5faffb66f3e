"""Find running jobs that have to end: a limit on what may be used up is reached (slurm-priority-and-limits 6.4)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from makeway.model import ClusterView, Job, ModeFlag, Overdue, PreemptMode, Seconds, Sharing
from makeway_slurm.accounts.tres import CPU, held
from makeway_slurm.accounts.usage import WALL, Entry, UsageBook, usage_factor
from makeway_slurm.limits.counts import Places
from makeway_slurm.limits.rulebook import Kind, Rule, RuleBook

_SHARED = (Kind.USED_MINUTES, Kind.USED_WALL)
EntryOf = Callable[[Rule], Entry | None]
"""What a limit is held against; None: nobody has used anything."""


class _Watched(NamedTuple):
    """Limits for whose sake jobs may have to end."""

    shared: tuple[Rule, ...]
    """On what several jobs use up together."""
    own: tuple[Rule, ...]
    """On the minutes of each job."""


class Ending:
    """The running jobs that limits on used minutes are about, by where they count."""

    def __init__(self, rules: RuleBook, usage: UsageBook, entry_of: EntryOf) -> None:
        self._rules = rules
        self._usage = usage
        self._entry_of = entry_of
        self._running: dict[Places, dict[str, Job]] = {}
        self._places: dict[str, Places] = {}
        self._found: dict[Places, _Watched] = {}
        self._own: dict[str, tuple[Seconds, str]] = {}
        """Jobs with a limit on minutes of their own -> when it is reached, and its reason."""
        self._own_by_end: list[tuple[Seconds, str]] = []
        """A heap of those instants, with the job; some have ended since."""
        self._quiet_until: Seconds = math.inf
        """Before this instant no limit that several jobs share can be reached, whoever starts."""
        self._quiet_by_places: dict[Places, Seconds] = {}
        """The same of those who count in some places."""
        self._most: dict[str, float] = {}
        """What can be used up in a second at most, by TRES; not there: not known."""

    def started(self, job: Job, places: Places, view: ClusterView) -> None:
        """Watch a job if such a limit holds for it."""
        watched = self._watched(places)
        if watched.shared:
            self._places[job.id] = places
            if places not in self._running:
                self._running[places] = {}
                self._quiet_until = min(self._quiet_until, self.quiet_until(places, view))
            self._running[places][job.id] = job
        began = job.started_at if job.started_at is not None else view.now
        for rule in watched.own:
            count = self._usage.held_by(job, view.cluster).get(rule.name, 0)
            if count:
                at = began + rule.most * 60.0 / count
                self._own[job.id] = min(self._own.get(job.id, (at, rule.reason)), (at, rule.reason))
        if job.id in self._own:
            heapq.heappush(self._own_by_end, (self._own[job.id][0], job.id))

    def _watched(self, places: Places) -> _Watched:
        """Return the limits for whose sake jobs that count there may have to end."""
        found = self._found.get(places)
        if found is None:
            listed = self._rules.of(places)
            shared = tuple(rule for rule in (*listed.before, *listed.after) if rule.kind in _SHARED)
            own = tuple(rule for rule in listed.after if rule.kind is Kind.JOB_MINUTES)
            found = self._found[places] = _Watched(shared, own)
        return found

    def left(self, job: Job) -> None:
        """It has ended."""
        self._own.pop(job.id, None)
        places = self._places.pop(job.id, None)
        if places is not None:
            del self._running[places][job.id]
            if not self._running[places]:
                del self._running[places]

    def overdue(self, view: ClusterView) -> Overdue | None:
        """Return who has to end now, and when to ask again: usage grows at recalculations, and when jobs end."""
        if not self._running and not self._own:
            return None
        now = view.now
        self._usage.advance(now)
        over, later = self._own_over(now)
        if self._running and self._usage.counts:
            if now >= self._quiet_until:
                self._quiet_until = min(self.quiet_until(places, view) for places in self._running)
            later.append(max(self._usage.next_at, self._quiet_until))
            look = self._running.items() if self._quiet_until <= self._usage.next_at else ()
            for places, jobs in look:
                for rule in self._used_up(places):
                    for job in jobs.values():
                        if usage_factor(job.qos) and (
                            rule.kind is Kind.USED_WALL or held(job, view.cluster).get(rule.name)
                        ):
                            over.setdefault(job.id, f"{rule.reason} is used up")
        return Overdue(jobs=over, ask_again_at=min(later, default=None))

    def _own_over(self, now: Seconds) -> tuple[dict[str, str], list[Seconds]]:
        """Return whose own minutes are used up, and when the next are."""
        heap, own = self._own_by_end, self._own
        while heap and (heap[0][1] not in own or own[heap[0][1]][0] != heap[0][0]):
            heapq.heappop(heap)
        if not heap:
            return {}, []
        if heap[0][0] > now:
            return {}, [heap[0][0]]
        over = {job_id: f"{reason} is used up" for job_id, (at, reason) in own.items() if at <= now}
        return over, [at for at, _ in own.values() if at > now]

    def quiet_until(self, places: Places, view: ClusterView) -> Seconds:
        """Return before which instant no limit on what is used up can be reached there; in the past: not known."""
        found = self._quiet_by_places.get(places, -math.inf)
        if found <= view.now:
            found = self._quiet_by_places[places] = self._quiet(places, view)
        return found

    def _quiet(self, places: Places, view: ClusterView) -> Seconds:
        """Return before which instant no limit of these can be reached, were the whole cluster to run for them."""
        found = math.inf
        for rule in self._watched(places).shared:
            entry = self._entry_of(rule)
            name = WALL if rule.kind is Kind.USED_WALL else rule.name
            most = self._at_most(name, view)
            if entry is None:
                continue
            if not most:
                return view.now
            # What ran since the last recalculation is not in it yet.
            since = max(0.0, view.now - self._usage.last)
            found = min(found, view.now + (rule.most * 60.0 - entry.used(name)) / most - since)
        return found

    def _at_most(self, name: str, view: ClusterView) -> float:
        """Return how much of a TRES can be used up in a second; 0: not known."""
        if name not in self._most:
            setting = view.preempt_mode
            stops = setting.action is PreemptMode.SUSPEND or ModeFlag.GANG in setting.flags
            per_second = sum(node.cpus for node in view.cluster.nodes) if name in (CPU, WALL) else 0
            factor = max([1.0, *map(usage_factor, view.cluster.qos)])
            shares = any(each.oversubscribe.sharing is Sharing.FORCE for each in view.cluster.partitions)
            self._most[name] = 0.0 if stops or shares else per_second * factor
        return self._most[name]

    def _used_up(self, places: Places) -> Iterator[Rule]:
        for rule in self._watched(places).shared:
            entry = self._entry_of(rule)
            name = WALL if rule.kind is Kind.USED_WALL else rule.name
            if entry is not None and int(entry.used(name) // 60) >= rule.most:
                yield rule


__all__ = ["Ending"]

"""Find running jobs that have to end: a limit on what may be used up is reached (slurm-priority-and-limits 6.4)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from makeway.model import ClusterView, Job, ModeFlag, Overdue, PreemptMode, Seconds, Sharing
from makeway_slurm.accounts.tres import CPU, held
from makeway_slurm.accounts.usage import WALL, Entry, UsageBook, usage_factor
from makeway_slurm.limits.counts import CountBook, Group
from makeway_slurm.limits.kinds import Kind, Rule
from makeway_slurm.limits.rulebook import RuleBook

_SHARED = (Kind.USED_MINUTES, Kind.USED_WALL)
_SPARE = 1000
"""Jobs that have ended and are kept in the heap, before they are swept out."""
_MANY = 10_000
EntryOf = Callable[[Rule], Entry | None]
"""What a limit is held against; None: nothing has been used."""


class _Watch:
    """Jobs that count in the same places, and the limits for whose sake they may have to end."""

    __slots__ = ("lasting", "own", "quiet_until", "running", "shared")

    def __init__(self, shared: tuple[Rule, ...], own: tuple[Rule, ...]) -> None:
        self.shared = shared
        """On what several jobs use up together."""
        self.own = own
        """On the minutes of each job."""
        self.running = 0
        """How many run, where a limit is on what they use up together."""
        self.quiet_until: Seconds = -math.inf
        """Before this instant no limit on what they use up together can be reached; in the past: not known."""
        self.lasting: dict[int, tuple[Mapping[str, int], Sequence[tuple[Seconds, str]]]] = {}
        """By the identity of what is held: that, for how long it may be held, and by which limits."""


class Ending:
    """The running jobs that limits on used minutes are about, by where they count."""

    def __init__(
        self, view: ClusterView, rules: RuleBook, usage: UsageBook, counts: CountBook, entry_of: EntryOf
    ) -> None:
        self._view = view
        self._rules = rules
        self._usage = usage
        self._counts = counts
        self._entry_of = entry_of
        self._running: dict[Group, None] = {}
        """Where jobs that run count, where a limit is on what they use up together."""
        self._watches: dict[Group, _Watch] = {}
        self._own: dict[str, tuple[Seconds, str]] = {}
        """Jobs with a limit on minutes of their own -> when it is reached, and its reason."""
        self._own_by_end: list[tuple[Seconds, str]] = []
        """A heap of those instants, with the job; some have ended since."""
        self._fresh: list[tuple[Seconds, str]] = []
        """Those that are still to be put there."""
        self._soonest: Seconds = math.inf
        """The first of those instants; in the past: it is to be looked for."""
        self._soonest_of = ""
        """Of which job it is."""
        self._noted = 0
        """How many instants were noted, those of jobs that have ended included."""
        self._most_noted = _SPARE
        self._quiet_until: Seconds = math.inf
        """Before this instant no limit that several jobs share can be reached, whichever jobs start."""
        self._most: dict[str, float] = {}
        """What can be used up in a second at most, by TRES; not there: not known."""

    def started(self, job: Job, group: Group, counts: Mapping[str, int]) -> None:
        """Watch a job that holds `counts` and counts in the places of a group, if such a limit holds for it."""
        watch = self._watches.get(group) or self._watch(group)
        if watch.shared:
            if not watch.running:
                self._running[group] = None
                quiet = watch.quiet_until
                if quiet <= self._view.now:
                    quiet = self.quiet_until(group)
                if quiet < self._quiet_until:
                    self._quiet_until = quiet
            watch.running += 1
        if watch.own:
            known = watch.lasting.get(id(counts))
            lasting = known[1] if known is not None and known[0] is counts else _lasting(watch, counts)
            if lasting:
                began = job.started_at if job.started_at is not None else self._view.now
                found = began + lasting[0][0], lasting[0][1]
                for each, reason in lasting[1:]:
                    found = min(found, (began + each, reason))
                self._own[job.id] = found
                self._fresh.append((found[0], job.id))
                self._noted += 1
                if found[0] < self._soonest:
                    self._soonest, self._soonest_of = found[0], job.id

    def _watch(self, group: Group) -> _Watch:
        """Return the limits for whose sake jobs that count there may have to end."""
        found = self._watches.get(group)
        if found is None:
            listed = self._rules.of(group.places)
            shared = tuple(rule for rule in (*listed.before, *listed.after) if rule.kind in _SHARED)
            own = tuple(rule for rule in listed.after if rule.kind is Kind.JOB_MINUTES)
            found = self._watches[group] = _Watch(shared, own)
        return found

    def left(self, job_id: str, group: Group) -> None:
        """A job has ended that counted there."""
        watch = self._watches[group]
        if watch.own and job_id in self._own:
            del self._own[job_id]
            if job_id == self._soonest_of:
                self._soonest = -math.inf
            if self._noted > self._most_noted:
                self._own_by_end = sorted((at, each) for each, (at, _) in self._own.items())
                self._fresh.clear()
                self._noted = len(self._own)
                self._most_noted = 2 * self._noted + _SPARE
        if watch.shared:
            watch.running -= 1
            if not watch.running:
                del self._running[group]

    def overdue(self) -> Overdue | None:
        """Return what has to end now, and when to ask again: usage grows at recalculations, and when jobs end."""
        if not self._running and not self._own:
            return None
        now = self._view.now
        self._usage.advance(now)
        over, later = self._own_over(now)
        if self._running and self._usage.counts:
            if now >= self._quiet_until:
                self._quiet_until = min(self.quiet_until(group) for group in self._running)
            later.append(max(self._usage.next_at, self._quiet_until))
            look = list(self._running) if self._quiet_until <= self._usage.next_at else ()
            for group in look:
                for rule in self._used_up(group):
                    for job in self._jobs_in(group):
                        if rule.kind is Kind.USED_WALL or held(job, self._view.cluster).get(rule.name):
                            over.setdefault(job.id, f"{rule.reason} is used up")
        return Overdue(jobs=over, ask_again_at=min(later, default=None))

    def _jobs_in(self, group: Group) -> list[Job]:
        """Return the active jobs that count in the same places, in the order of their starts."""
        return [holding.job for holding in self._counts.held.values() if holding.seat.group is group]

    def _own_over(self, now: Seconds) -> tuple[dict[str, str], list[Seconds]]:
        """Return whose own minutes are used up, and when the next are."""
        heap, own = self._sorted_out(), self._own
        if not heap:
            return {}, []
        if heap[0][0] > now:
            return {}, [heap[0][0]]
        over = {job_id: f"{reason} is used up" for job_id, (at, reason) in own.items() if at <= now}
        return over, [at for at, _ in own.values() if at > now]

    def _sorted_out(self) -> list[tuple[Seconds, str]]:
        """Return the heap of instants at which own minutes are used up, the first one that of a job that runs."""
        heap, own = self._own_by_end, self._own
        for each in self._fresh:
            heapq.heappush(heap, each)
        self._fresh.clear()
        while heap and (heap[0][1] not in own or own[heap[0][1]][0] != heap[0][0]):
            heapq.heappop(heap)
        return heap

    def quiet_until(self, group: Group) -> Seconds:
        """Return before which instant no limit on what is used up can be reached there; in the past: not known."""
        watch = self._watch(group)
        if watch.quiet_until <= self._view.now:
            watch.quiet_until = self._quiet_from_now(group)
        return watch.quiet_until

    def _quiet_from_now(self, group: Group) -> Seconds:
        """Return before which instant no limit of these can be reached, were the whole cluster to run for them."""
        found = math.inf
        for rule in self._watch(group).shared:
            entry = self._entry_of(rule)
            name = WALL if rule.kind is Kind.USED_WALL else rule.name
            most = self._at_most(name)
            if entry is None:
                continue
            if not most:
                return self._view.now
            # What ran since the last recalculation is not in it yet.
            since = max(0.0, self._view.now - self._usage.last)
            found = min(found, self._view.now + (rule.most * 60.0 - entry.used(name)) / most - since)
        return found

    def calm_until(self) -> Seconds:
        """Return up to when no job that runs has to end; in the past: that is not known."""
        now, found = self._view.now, self._soonest
        if found <= now:
            heap = self._sorted_out()
            found, self._soonest_of = heap[0] if heap else (math.inf, "")
            self._soonest = found
        if self._running and self._usage.reader is not None:
            if now >= self._quiet_until:
                self._quiet_until = min(map(self.quiet_until, self._running))
            if self._quiet_until < found:
                found = self._quiet_until
        return found

    def _at_most(self, name: str) -> float:
        """Return how much of a TRES can be used up in a second; 0: not known."""
        if name not in self._most:
            setting = self._view.preempt_mode
            stops = setting.action is PreemptMode.SUSPEND or ModeFlag.GANG in setting.flags
            per_second = sum(node.cpus for node in self._view.cluster.nodes) if name in (CPU, WALL) else 0
            factor = max([1.0, *map(usage_factor, self._view.cluster.qos)])
            shares = any(
                each.oversubscribe.sharing is Sharing.FORCE for each in self._view.cluster.partitions
            )
            self._most[name] = 0.0 if stops or shares else per_second * factor
        return self._most[name]

    def _used_up(self, group: Group) -> Iterator[Rule]:
        for rule in self._watch(group).shared:
            entry = self._entry_of(rule)
            name = WALL if rule.kind is Kind.USED_WALL else rule.name
            if entry is not None and int(entry.used(name) // 60) >= rule.most:
                yield rule


def _lasting(watch: _Watch, counts: Mapping[str, int]) -> Sequence[tuple[Seconds, str]]:
    """Return for how long a job may run that holds so much, and the limits that say so."""
    if len(watch.lasting) > _MANY:
        watch.lasting.clear()
    found = [
        (rule.most * 60.0 / counts[rule.name], rule.reason) for rule in watch.own if counts.get(rule.name, 0)
    ]
    watch.lasting[id(counts)] = counts, found
    return found

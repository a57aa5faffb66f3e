"""Find running jobs that have to end: a limit on what may be used up is reached (slurm-priority-and-limits 6.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from makeway.model import ClusterView, Job, Overdue, Seconds
from makeway_slurm.accounts.tres import held
from makeway_slurm.accounts.usage import WALL, Entry, UsageBook, usage_factor
from makeway_slurm.limits.counts import Places
from makeway_slurm.limits.rulebook import Kind, Rule, RuleBook

_SHARED = (Kind.USED_MINUTES, Kind.USED_WALL)
EntryOf = Callable[[Rule], Entry | None]
"""What a limit is held against; None: nobody has used anything."""


class Ending:
    """The running jobs that limits on used minutes are about, by where they count."""

    def __init__(self, rules: RuleBook, usage: UsageBook, entry_of: EntryOf) -> None:
        self._rules = rules
        self._usage = usage
        self._entry_of = entry_of
        self._running: dict[Places, dict[str, Job]] = {}
        self._places: dict[str, Places] = {}
        self._own: dict[str, tuple[Seconds, str]] = {}
        """Jobs with a limit on minutes of their own -> when it is reached, and its reason."""

    def started(self, job: Job, places: Places, view: ClusterView) -> None:
        """Watch a job if such a limit holds for it."""
        listed = self._rules.of(places)
        if any(rule.kind in _SHARED for rule in (*listed.before, *listed.after)):
            self._places[job.id] = places
            self._running.setdefault(places, {})[job.id] = job
        began = job.started_at if job.started_at is not None else view.now
        for rule in listed.after:
            if rule.kind is Kind.JOB_MINUTES:
                count = held(job, view.cluster).get(rule.name, 0)
                if count:
                    at = began + rule.most * 60.0 / count
                    self._own[job.id] = min(self._own.get(job.id, (at, rule.reason)), (at, rule.reason))

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
        over = {job_id: f"{reason} is used up" for job_id, (at, reason) in self._own.items() if at <= now}
        later = [at for at, _ in self._own.values() if at > now]
        if self._running and self._usage.counts:
            later.append(self._usage.next_at)
            for places, jobs in self._running.items():
                for rule in self._used_up(places):
                    for job in jobs.values():
                        if usage_factor(job.qos) and (
                            rule.kind is Kind.USED_WALL or held(job, view.cluster).get(rule.name)
                        ):
                            over.setdefault(job.id, f"{rule.reason} is used up")
        return Overdue(jobs=over, ask_again_at=min(later, default=None))

    def _used_up(self, places: Places) -> Iterator[Rule]:
        listed = self._rules.of(places)
        for rule in (*listed.before, *listed.after):
            if rule.kind in _SHARED:
                entry = self._entry_of(rule)
                name = WALL if rule.kind is Kind.USED_WALL else rule.name
                if entry is not None and int(entry.used(name) // 60) >= rule.most:
                    yield rule


__all__ = ["Ending"]

"""Keep the queue: which jobs wait, which may be tried, and in which order.

The default order is Slurm's (slurm-preemption 7.1): priority tier, priority, submission, job index;
one entry per job and partition that it was submitted to. Under ``reservation_first`` jobs that ask for a reservation
come before the tiers (slurm-priority-and-limits 9 no. 8). Ranks that a policy gives (`QueueOrder.rank`)
come before all that.
"""

from __future__ import annotations

import bisect
import heapq
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, cast

import attrs

from makeway.clockwork import Clockwork
from makeway.dependencies import SINGLE, STARTED, TASK, Dependency, dependency
from makeway.job_table import turn_of
from makeway.model import Job, JobState, Partition, Seconds
from makeway.priorities import Priority
from makeway_engine.conditions import NEVER as NEVER_MET
from makeway_engine.conditions import Condition, Conditions
from makeway_engine.entries import Entry, Key, Listeners
from makeway_engine.ledger import Ledger, enter, put, put_field
from makeway_engine.throttle import WAITS, Throttle

_PENDING = JobState.PENDING

BEGINS = "BeginTime"
"""Reason of a job whose time to begin has not come."""
NEVER = "NotRun"
"""Reason of a job that its log says was withdrawn before it started (`JobSpec.withdrawn_at`)."""


class Queue:
    """Pending jobs; the eligible ones in order."""

    def __init__(self, ledger: Ledger, listeners: Listeners, *, kill_invalid_depend: bool = False) -> None:
        """Begin with an empty queue.

        :param kill_invalid_depend: whether jobs are cancelled whose dependency can never be met.
        """
        self._ledger = ledger
        self._kills_invalid = kill_invalid_depend
        self.listeners = listeners
        self.entries: list[Entry] = []
        """Eligible jobs in the default order, or in that of their ranks."""
        self.arrivals: list[Entry] = []
        """Entries added since the last complete pass."""
        self.in_several: dict[str, Job] = {}
        """Eligible jobs with entries in several partitions, by id."""
        self.bounced: list[Job] = []
        """Jobs sent back in the instant of their start; they wait until something is given back."""
        self._bounced_at: Seconds = 0.0
        self._bounced_freed = 0
        self.waiting = ledger.waiting
        """All pending jobs by id, eligible or not."""
        self.later: list[tuple[Seconds, int, Job]] = []
        """A heap of jobs that become eligible, or are withdrawn, by the clock, with the instant."""
        self.withdrawn: list[Job] = []
        """Jobs to be cancelled now: they never ran (`JobSpec.withdrawn_at`), or what they wait for cannot come."""
        self.conditions = Conditions()
        """What jobs wait for of others."""
        self.throttle = Throttle()
        """The tasks of job arrays."""
        self.fresh: list[Job] = []
        """Tasks that are eligible from the next look of a scheduler on."""
        self.key_of = key_reserved_first if ledger.rule("reservation_first") else key_of
        """Gives the place of a job in the order of ranks; without, in the default order."""
        self._het_for_resources = ledger.rule("het_waits_for_resources")
        self._behind_others = ledger.rule("waits_behind_others_at_once")
        self._looked_for = ledger.settings(Clockwork).sched_interval > 0
        """Whether the main scheduler makes passes in periods: the first one finds that a time to begin has come, and
        until then that is the reason (recorded: backfill_het_begin_time)."""
        self._rank: Callable[[Job], int | None] | None = None
        self._in_partition: dict[str, Mapping[str, int]] = {}
        """Priorities of the jobs for which partitions differ, by the partition's name."""
        self._ranks: dict[tuple[int, int], int] = {}
        """Ranks of eligible jobs, by job and partition."""

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def settled_reasons(self) -> Set[str]:
        """Reasons that stay as they are behind a job that waits."""
        return self._ledger.settled_reasons

    def pending(self) -> Sequence[Job]:
        """Return all pending jobs, in job-table order."""
        return self._ledger.pending

    def __contains__(self, job: Job) -> bool:
        return job.id in self.waiting

    def add(self, job: Job, now: Seconds, *, bounced: bool = False) -> None:
        """Let a pending job wait; it becomes eligible when nothing of its own keeps it back.

        :param bounced: it was sent back in the very instant of its start: trying again helps only once something
            has been given back later.
        """
        self.waiting[job.id] = job
        self._ledger.pending_now = None
        if job.spec.array_id is not None:
            self.throttle.came(job)
            if job.restarts:
                self._next_tasks(job, now, ended=False)
        if bounced and not job.held:
            self.bounced.append(job)
            self._bounced_at, self._bounced_freed = now, self._ledger.freed
            self._ledger.wait_for(job, "Resources")
            return
        needed = job.spec.depends_on
        if not needed and job.priority and job.eligible_at <= now and job.spec.withdrawn_at is None:
            self._insert(job)
            return
        if needed and job.restarts == 0:
            self.conditions.add(job, [self._condition(job, dependency(word)) for word in needed])
            self._judge(job, now)
            return
        self._admit(job, now)

    def _condition(self, job: Job, asked: Dependency) -> Condition:
        """Return what a new job waits for of others, as things stand."""
        kind, name, delay = asked
        if kind == SINGLE:
            jobs = self._ledger.jobs.values()
            same = [each for each in jobs if each.user == job.user and each.spec.name == job.spec.name]
            return Condition(kind, {each.id for each in same if each.index < job.index})
        if kind == TASK and job.spec.array_id is not None:
            name = f"{name}_{job.spec.array_task}"
        live = set(self._live((name,)))
        if kind == STARTED:
            begun = [self._ledger.jobs[each].started_at for each in live]
            live = {each for each in live if not self._ledger.jobs[each].starts}
            since = max((at for at in begun if at is not None), default=None)
            if since is not None and delay:
                put_field(job, "eligible_at", max(job.eligible_at, since + delay))
        return Condition(kind, live, self.conditions.failed(name), delay)

    def _judge(self, job: Job, now: Seconds) -> bool:
        """Let a job wait for others, or no more; say whether it does no more."""
        verdict = self.conditions.verdict(job)
        if verdict:
            del self.conditions.of[job.id]
            self._admit(job, now)
            return True
        self._ledger.wait_for(job, "Dependency" if verdict is None else NEVER_MET)
        if verdict is False and self._kills_invalid:
            self.withdrawn.append(job)
        return False

    def started(self, job: Job, now: Seconds) -> None:
        """A job has started: those that wait for no more than that are eligible in the next step at the earliest."""
        for dependent, delay in self.conditions.started(job).items():
            put_field(dependent, "eligible_at", max(dependent.eligible_at, now + delay))
            if self.conditions.verdict(dependent):
                del self.conditions.of[dependent.id]
                heapq.heappush(self.later, (dependent.eligible_at, dependent.index, dependent))

    def _admit(self, job: Job, now: Seconds) -> None:
        if job.spec.withdrawn_at is not None:
            heapq.heappush(self.later, (max(now, job.spec.withdrawn_at), job.index, job))
            self._ledger.wait_for(job, NEVER)
        elif job.priority == 0:
            self._ledger.wait_for(job, "JobHeldAdmin" if job.restarts or job.kept else "JobHeldUser")
        elif job.eligible_at > now:
            heapq.heappush(self.later, (job.eligible_at, job.index, job))
            self._ledger.wait_for(job, BEGINS)
        else:
            self._insert(job)

    def _live(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the jobs named that have not ended; tasks or components, where an array or het job is named."""
        for name in names:
            if name in self._ledger.jobs:
                yield name
            else:
                yield from (part.id for part in self._ledger.components_of(name))
                yield from self.throttle.tasks_of(name)

    def _next_tasks(self, job: Job, now: Seconds, *, ended: bool) -> bool:
        """Let others of a task's array have their turn; say whether there were any."""
        self.fresh.extend(self.throttle.held_up_by(job))
        came = [each for each in self.throttle.left(job, ended=ended) if self.waiting.get(each.id) is each]
        for each in came:
            self._admit(each, now)
        return bool(came)

    def _insert(self, job: Job, since: Seconds | None = None) -> None:
        if job.eligible_since is None:
            put_field(job, "eligible_since", self._ledger.now if since is None else since)
        if job.spec.array_limit is not None and not self.throttle.lets_in(job):
            self._ledger.wait_for(job, WAITS)
            return
        if not self._list(job):
            self._ledger.wait_for(job, "PartitionDown")
        elif not (self._looked_for and job.reason == BEGINS):
            self._ledger.wait_for(job, self._first_reason(job))

    def _first_reason(self, job: Job) -> str:
        """Return what a job waits for before it is looked at."""
        if job.spec.het_id is not None and self._het_for_resources:
            return "Resources"
        return "Priority" if self._behind_others and len(self.entries) > len(job.partitions) else "None"

    def _list(self, job: Job) -> bool:
        """Give a job its entries; say whether it has any."""
        tried = False
        if len(job.partitions) > 1:
            self.in_several[job.id] = job
        place = self.key_of if self._rank is None and not self._in_partition else self.place
        for partition in job.partitions:
            if not (partition.up and partition.accepts):
                continue
            tried = True
            entry = (place(job, partition), job, partition)
            bisect.insort(self.entries, entry)  # keys differ, so jobs are never compared
            self.arrivals.append(entry)
            for listener in self.listeners.all:
                listener.came(entry)
        return tried

    def confine(self, job: Job, partition: Partition) -> None:
        """Let a pending job be in one partition alone, whichever it asked for."""
        eligible = bool(self.entries_of(job))
        if eligible:
            self._drop_entries(job)
        put_field(job, "partitions", (partition,))
        enter(job, partition)
        self._ledger.moved(job)
        if eligible:
            self._list(job)

    # ------------------------------------------------------------------------------- ranks
    @property
    def ranked(self) -> bool:
        """Whether the entries stand as a policy orders them."""
        return self._rank is not None

    def rank_by(self, rank: Callable[[Job], int | None]) -> None:
        """Let `rank` say what comes first, as long as it has a rank for every job."""
        self._rank = rank

    def place(self, job: Job, partition: Partition) -> Key:
        """Return the place of a job in the order of the queue, in one of its partitions."""
        if self._rank is None and not self._in_partition:
            return self.key_of(job, partition)
        if self._in_partition and job.id in self._in_partition:
            rank, tier, _, *rest = self._ranked_key(job, partition)
            return cast(Key, (rank, tier, -self.priority_in(job, partition), *rest))
        return self._ranked_key(job, partition)

    def _ranked_key(self, job: Job, partition: Partition) -> Key:
        if self._rank is None:
            return self.key_of(job, partition)
        place = job.index, partition.index
        rank = self._ranks.get(place)
        if rank is None:
            rank = self._rank(face_of(job, partition))
            if rank is None:
                self._forget_ranks()
                return self.key_of(job, partition)
            self._ranks[place] = rank
        return self.key_of(job, partition, rank)

    def _rank_in(self, key: Key) -> int:
        """Return the rank that a key was made with."""
        return key[0] // 2 if self.key_of is key_reserved_first else key[0]

    def _forget_ranks(self) -> None:
        """Go back to the default order for good."""
        self._rank = None
        self._ranks.clear()
        self.listeners.reordered()
        for entries in (self.entries, self.arrivals):
            entries[:] = sorted(
                (self.key_of(job, partition), job, partition) for _, job, partition in entries
            )

    # -------------------------------------------------------------------------------- time
    def mature(self, now: Seconds) -> bool:
        """Make jobs eligible whose time has come; say whether there were any."""
        any_came = False
        while self.later and self.later[0][0] <= now:
            _, _, job = heapq.heappop(self.later)
            if self.waiting.get(job.id) is not job:
                continue
            if job.spec.withdrawn_at is not None:
                self.withdrawn.append(job)
            elif job.eligible_at <= now and not job.held:
                self._insert(job, job.eligible_at)
                any_came = True
        return any_came

    def take_back(self, now: Seconds) -> bool:
        """Make bounced jobs eligible if something was given back at a later instant; say whether there were any."""
        if now <= self._bounced_at:
            self._bounced_freed = self._ledger.freed
            return False
        if self._ledger.freed == self._bounced_freed:
            return False
        came, self.bounced = self.bounced, []
        for job in came:
            if self.waiting.get(job.id) is job:
                self._admit(job, now)
        return True

    def gave_up_turn(self, job: Job, now: Seconds) -> None:
        """A task of an array has ended or was killed: others have their turn while it leaves its nodes."""
        self._next_tasks(job, now, ended=False)

    def looked_at(self, now: Seconds) -> None:
        """Take note that a scheduler looks at the queue."""
        for job in self.fresh:
            put_field(job, "eligible_since", now)
        self.fresh.clear()

    def ended(self, job: Job, now: Seconds) -> bool:
        """A job has ended: free its dependents; say whether any became eligible."""
        freed = self._next_tasks(job, now, ended=True)
        for dependent, delay in self.conditions.ended(job).items():
            if delay:
                put_field(dependent, "eligible_at", max(dependent.eligible_at, now + delay))
            freed = self._judge(dependent, now) or freed
        return freed

    def remove(self, job: Job) -> None:
        """Take a job out: it started or was cancelled."""
        del self.waiting[job.id]
        self._ledger.pending_now = None
        if self.conditions.of:
            self.conditions.of.pop(job.id, None)
        self._drop_entries(job)
        if self._in_partition:
            self._in_partition.pop(job.id, None)

    def entries_of(self, job: Job) -> list[Entry]:
        """Return the entries of a job, in the order of the queue; empty: it is not eligible."""
        found = []
        for partition in job.partitions:
            at = bisect.bisect_left(self.entries, (self.place(job, partition),))
            if at < len(self.entries) and self.entries[at][1] is job:
                found.append(self.entries[at])
        return sorted(found)

    def changed(self) -> None:
        """A job that waits asks for something else: the lists by what jobs ask for are made anew."""
        self.listeners.reordered()

    def _drop_entries(self, job: Job) -> None:
        entries = self.entries
        self.in_several.pop(job.id, None)
        for listener in self.listeners.all:
            listener.left(job)
        if len(job.partitions) == 1 and entries and entries[0][1] is job:
            del entries[0]
        else:
            place = self.key_of if self._rank is None and not self._in_partition else self.place
            for partition in job.partitions:
                at = bisect.bisect_left(entries, (place(job, partition),))
                if at < len(entries) and entries[at][1] is job:
                    del entries[at]
        if self._rank is not None:
            for partition in job.partitions:
                self._ranks.pop((job.index, partition.index), None)

    def reprioritise(self, job: Job, priority: int | Callable[[], int], now: Seconds) -> None:
        """Give a pending job another priority; 0 holds it.

        :param priority: a function is called while the job has no entries.
        """
        eligible, held = any(entry[1] is job for entry in self.entries), job.held
        self._drop_entries(job)
        given = self.set_priority(job, priority) if isinstance(priority, int) else priority()
        put(job, priority=given)
        if not given:
            put(job, eligible_since=None)
            self._next_tasks(job, now, ended=False)
        if eligible or (job.eligible_at <= now and job.id not in self.conditions.of):
            self._admit(job, now)
        elif held and given:
            self.begin_at(job, job.eligible_at, now)

    def begin_at(self, job: Job, at: Seconds, now: Seconds) -> None:
        """Let a pending job become eligible at another instant."""
        if self.entries_of(job):
            self._drop_entries(job)
        self.later = [entry for entry in self.later if entry[2] is not job]
        heapq.heapify(self.later)
        put(job, eligible_at=at)
        if job.id not in self.conditions.of:
            self._admit(job, now)

    # -------------------------------------------------------------------------- priorities
    def set_priority(self, job: Job, priority: Priority) -> int:
        """Keep what a job has in each partition, while it has no entries; return what counts for the job as a whole."""
        if isinstance(priority, int):
            self._in_partition.pop(job.id, None)
            return priority
        self._in_partition[job.id] = dict(priority)
        first = min(job.partitions, key=lambda each: -each.priority_tier)
        return priority.get(first.name, max(priority.values()))

    def priority_in(self, job: Job, partition: Partition) -> int:
        """Return the priority of a pending job in one of its partitions."""
        return self._in_partition.get(job.id, {}).get(partition.name, job.priority)

    def renew(self, priorities: Mapping[Job, Priority]) -> bool:
        """Give many jobs another priority at once; say whether the order of the eligible ones has changed."""
        changed = False
        for job, priority in priorities.items():
            if not isinstance(priority, int) or job.id in self._in_partition:
                priority = self.set_priority(job, priority)
                changed = True
            if job.priority != priority:
                put_field(job, "priority", priority)
                changed = True
        if not changed:
            return False
        self._ranks.clear()
        self.listeners.reordered()
        moved = False
        plain = self._rank is None and not self._in_partition
        key_of = self.key_of
        for entries in (self.entries, self.arrivals):
            if plain:
                entries[:] = [(key_of(job, partition), job, partition) for _, job, partition in entries]
            else:
                entries[:] = [(self.place(job, partition), job, partition) for _, job, partition in entries]
            keys = [entry[0] for entry in entries]
            if any(map(operator.gt, keys, keys[1:])):
                entries.sort(key=_first)
                moved = moved or entries is self.entries
        return moved

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return where each pending job stands, for `restore`."""
        return {
            "ranked": self.ranked,
            "entries": [entry_to_plain(entry) for entry in self.entries],
            "arrivals": [entry_to_plain(entry) for entry in self.arrivals if self._waits(entry[1])],
            "bounced": [job.id for job in self.bounced if self._waits(job)],
            "bounced_at": self._bounced_at,
            "bounced_freed": self._bounced_freed,
            # A job that is gone leaves its instant behind: the engine wakes up then, for nothing.
            "later": [
                [at, job.id if self._waits(job) else None] for at, _, job in sorted(self.later, key=_instant)
            ],
            "conditions": self.conditions.save(),
            "turns": self.throttle.save(),
            "in_partition": {job_id: dict(each) for job_id, each in self._in_partition.items()},
        }

    def _waits(self, job: Job) -> bool:
        return self.waiting.get(job.id) is job

    def restore(self, jobs: Iterable[Job], memory: Mapping[str, Any]) -> None:
        """Let pending jobs stand where they stood in another queue."""
        waiting = self.waiting
        self._ledger.pending_now = None
        waiting.clear()
        waiting.update((job.id, job) for job in jobs)
        if not memory["ranked"]:
            self._rank = None
        self.listeners.reordered()
        self.entries = [entry_of_plain(plain, waiting) for plain in memory["entries"]]
        self.arrivals = [entry_of_plain(plain, waiting) for plain in memory["arrivals"]]
        self.in_several = {job.id: job for _, job, _ in self.entries if len(job.partitions) > 1}
        if self._rank is not None:
            self._ranks = {
                (job.index, partition.index): self._rank_in(key) for key, job, partition in self.entries
            }
        self.bounced = [waiting[job_id] for job_id in memory["bounced"]]
        self._bounced_at, self._bounced_freed = memory["bounced_at"], memory["bounced_freed"]
        self.later = [
            (at, place, cast(Job, _GONE)) if job_id is None else (at, waiting[job_id].index, waiting[job_id])
            for place, (at, job_id) in enumerate(memory["later"], start=-len(memory["later"]))
        ]
        heapq.heapify(self.later)
        self.conditions.restore(waiting, memory["conditions"])
        self.throttle.restore(self._ledger.jobs, memory.get("turns"))
        self._in_partition = dict(memory.get("in_partition", {}))

    def adopt(self, jobs: Iterable[Job], now: Seconds) -> None:
        """Let jobs that wait already stand where they would after their submission; their reasons stay."""
        self.throttle.restore(self._ledger.jobs, None)
        for job in jobs:
            reason = job.reason
            self.add(job, now)
            if reason:
                self._ledger.note_reason(job, reason)

    def ordered(self) -> list[Entry]:
        """Return the eligible entries in their order."""
        return list(self.entries)

    def take_arrivals(self) -> list[Entry]:
        """Return the entries added since the last call that still wait."""
        arrivals = self.arrivals
        if not arrivals:
            return arrivals
        self.arrivals = []
        return [entry for entry in arrivals if entry[1].state is _PENDING]


def faces(entries: Sequence[Entry]) -> Iterator[tuple[Job, Entry]]:
    """Yield each entry with a face of the job that shows the partition to be tried."""
    for entry in entries:
        yield face_of(entry[1], entry[2]), entry


def face_of(job: Job, partition: Partition) -> Job:
    """Return `job` as it is to be tried in `partition`."""
    if job.partition is partition:
        return job
    return attrs.evolve(job, partition=partition, time_limit=job.time_limit_in(partition))


def key_of(job: Job, partition: Partition, rank: int = 0) -> Key:
    """Return the place of a job in the order of ranks; without, in the default order."""
    return (rank, -partition.priority_tier, -job.priority, job.submit_at, job.index, turn_of(job, partition))


def key_reserved_first(job: Job, partition: Partition, rank: int = 0) -> Key:
    """Return the same with jobs that ask for a reservation before others of their rank.

    The rule is slurm-priority-and-limits 9 no. 8.
    """
    place = 2 * rank if job.spec.reservation else 2 * rank + 1
    return (place, -partition.priority_tier, -job.priority, job.submit_at, job.index, turn_of(job, partition))


def _first(entry: Entry) -> Key:
    return entry[0]


class _Gone:
    """Stands for a job that is there no more."""

    id = ""


_GONE = _Gone()


def _instant(each: tuple[Seconds, int, Job]) -> tuple[Seconds, int]:
    return each[:2]


def entry_to_plain(entry: Entry) -> list[Any]:
    """Return an entry as job, partition and key, in values that JSON has."""
    key, job, partition = entry
    return [job.id, partition.name, list(key)]


def entry_of_plain(plain: Sequence[Any], jobs: Mapping[str, Job]) -> Entry:
    """Return the entry that `entry_to_plain` made plain."""
    job_id, name, key = plain
    job = jobs[job_id]
    rank, tier, priority, submit_at, index, place = key
    partition = next(each for each in job.partitions if each.name == name)
    return (rank, tier, priority, submit_at, index, place), job, partition


def by_default(entry: Entry) -> Key:
    """Return the place of an entry in the default order, whatever its rank."""
    return (0, *entry[0][1:])

"""Try each job in order, with preemption; one that has to wait holds up no other."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from makeway.model import Job, JobState
from makeway_engine.entries import Entry
from makeway_engine.placing import Outcome, Question
from makeway_engine.queue import entry_of_plain, entry_to_plain
from makeway_engine.rulings import Ahead
from makeway_engine.schedulers.barred import Barred
from makeway_engine.schedulers.common import Attempts, place_of
from makeway_engine.schedulers.futile import NO_ROOM, FutileTries
from makeway_engine.schedulers.one_by_one import OneByOne
from makeway_engine.schedulers.requests import Requests
from makeway_engine.schedulers.shapes import Heads, Shape

_MOST_ROUNDS = 1000
"""How often one pass goes back to the head of the queue; a guard against policies that go in a circle."""
_PENDING = JobState.PENDING
_SUSPENDED = JobState.SUSPENDED
_STARTED = Outcome.STARTED
_WAITS = (Outcome.BUSY, Outcome.LIMITED)


class Greedy:
    """The greedy scheduler of one run."""

    def __init__(
        self,
        attempts: Attempts,
        ahead: Ahead,
        requests: Requests | None = None,
        turns: OneByOne | None = None,
    ) -> None:
        """Be there for one run.

        :param ahead: what stands before the one that is tried, to be kept for policies that ask.
        :param requests: knows by request which jobs all that decide treat alike; None: they look at more than that.
        :param turns: asks a policy that orders the queue for one job after the other; None: it orders it as a whole.
        """
        self._attempts = attempts
        self._ahead = ahead
        self._ledger = attempts.ledger
        self._queue = attempts.queue
        self._placer = attempts.placer
        policies = attempts.policies
        self._requests = requests
        self._turns = turns
        self._wants_before = policies.closes and requests is None
        self._settled = -1
        """Version of what was given back when all had been tried."""
        self._waiting: list[Entry] = []
        """Those that were tried and have to wait, in the order of the queue."""
        self._tried = _Jobs()
        self._futile = FutileTries(attempts.placer)
        equivalence_key = getattr(attempts.placer.selector, "equivalence_key", None)
        self._traces = attempts.placer.telling.traces
        keeps = self._futile.applies and requests is None and not (self._traces or self._wants_before)
        barred = Barred(self._queue, equivalence_key, self._futile) if keeps and equivalence_key else None
        self._classes: Barred | Requests | None = requests or barred
        """What waits, by what it takes to say that a try would be in vain; None: each pass goes through it all."""
        self._asks_for_head = policies.names_heads
        unheard = self._asks_for_head and not attempts.placer.telling.notes
        self._in_vain = policies.in_vain() if unheard else None
        """Says why one that a policy names would wait; None: attempts are recorded, which takes each of them."""

    def run(self) -> None:
        """Make a pass.

        What shall be kept for those that wait is up to plugins (`Limits.closed_nodes`). When jobs were
        submitted since the last pass and nothing else happened, they alone are tried: no start makes
        room for another.
        """
        attempts = self._attempts
        if self._asks_for_head and (named := attempts.policies.next_to_try((), self._ledger)) is not None:
            self._go_through_named(named)
            return
        arrivals, version = self._queue.take_arrivals(), self._ledger.version
        own_order = attempts.custom_order or attempts.turns
        if own_order or attempts.again or self._settled != self._ledger.freed:
            self._waiting = []
            if self._turns is not None and not self._placer.forgives and self._turns.begins(attempts):
                self._turns.go_through(attempts, self._ahead)
            elif self._classes is not None and not own_order and self._classes.complete():
                self._go_through_classes(self._classes)
            else:
                self._go_through(attempts.ordered())
        else:
            if self._wants_before:
                self._waiting = [entry for entry in self._waiting if entry[1].state is _PENDING]
            self._go_through(sorted(arrivals, key=place_of))
        if self._ledger.version != version:
            self._remember_ends()
        attempts.again = False
        self._ahead.jobs = ()
        self._settled = self._ledger.freed

    def _remember_ends(self) -> None:
        """Have a pass made when what started in this one, behind those that wait, may be displaced by them."""
        if not (self._futile.applies and self._futile.looks_further):
            return
        classes = self._classes
        if classes is None or classes.stale:
            self._futile.remember_ends(entry[1] for entry in self._queue.entries)
        else:
            self._futile.remember_ends(shape.entries[0][1] for shape in classes.behind(None))

    def _go_through_named(self, named: Sequence[Job]) -> None:
        """Try those that a policy names, and ask it which to try next, until it names no new ones."""
        attempts = self._attempts
        self._queue.take_arrivals()
        tried: dict[Job, None] = {}
        waiting: list[Job] = []
        while fresh := [job for job in dict.fromkeys(named) if job not in tried]:
            for job in fresh:
                tried[job] = None
                self._ahead.jobs = tuple(waiting) if self._wants_before else ()
                entries = self._queue.entries_of(job)
                if self._in_vain is not None and len(entries) == 1 and self._let_wait(entries[0]):
                    waiting.append(job)
                    continue
                for entry in entries:
                    if attempts.try_entry(entry) is _STARTED or job.state is not _PENDING:
                        break
                if job.state is _PENDING:
                    waiting.append(job)
            named = attempts.policies.next_to_try(tuple(tried), self._ledger) or ()
        attempts.again = False
        self._ahead.jobs = ()
        self._settled = self._ledger.freed

    def _let_wait(self, entry: Entry) -> bool:
        """Let a job wait if it is known why it would if it were tried; say whether it is."""
        _, job, partition = entry
        odd = job.state is not _PENDING or job.partition is not partition or job.spec.het_id is not None
        if self._in_vain is None or odd or self._placer.forgives or job.id in self._placer.beyond:
            return False
        said = self._in_vain(job)
        if said is None:
            return False
        self._ledger.wait_for(job, said)
        return True

    def _go_through_classes(self, classes: Barred | Requests) -> None:
        """Try the same as `_go_through` would, save those of a class that is known to wait on."""
        ledger, arrivals = self._ledger, self._queue.arrivals
        after: Entry | None = None
        left: Sequence[Shape] = classes.behind(None)
        while True:
            left = classes.open_among(left)
            version, freed = ledger.version, ledger.freed
            heads = Heads([classes.apart, *(shape.entries for shape in left)], after)
            while ledger.version == version:
                head = heads.next()
                if head is None:
                    return
                entry, listed = head
                if arrivals and entry in arrivals:  # it became eligible in this very pass
                    heads.go_on(listed, entry)
                    continue
                job, reason = entry[1], entry[1].reason
                alike = classes.speaks_for(entry) and not self._placer.forgives
                waits = alike and self._requests is not None and self._requests.let_wait(job, ledger)
                if not waits:
                    after = entry
                    waits = self._attempts.try_entry(entry) in _WAITS
                    if alike and job.asked_at is not None:
                        classes.waits(job)
                if not (
                    alike and waits and job.reason == reason
                ):  # else all behind it in the class wait alike
                    heads.go_on(listed, entry)
            if ledger.freed != freed:
                left = classes.behind(after)

    def _go_through(self, entries: Sequence[Entry]) -> None:
        """Try `entries` one by one; where suspended jobs wait among them, anew once a job has made way."""
        ledger = self._ledger
        rounds = _MOST_ROUNDS if self._attempts.turns else 0
        requests = None if self._placer.forgives else self._requests
        leaving_for: set[str] = set()
        vain: Collection[int] = ()
        seen = seen_freed = -1
        """Versions of the ledger by which `vain` was found: in all, and of what was given back."""
        at = 0
        while at < len(entries):
            entry = entries[at]
            at += 1
            job, freed = entry[1], ledger.freed
            in_vain = seen_freed == freed and id(job) in vain
            if not in_vain and at == len(entries) and job.reason != NO_ROOM:
                vain = ()  # no job is judged
            elif not in_vain and (seen_freed != freed or seen != ledger.version):
                seen, seen_freed = ledger.version, freed
                vain = self._futile.among([each[1] for each in entries[at - 1 :]])
                in_vain = id(job) in vain
            if in_vain:
                if self._traces:
                    self._tell(entry)
                if self._wants_before and job.id not in leaving_for:
                    self._wait(entry)
                continue
            if job.state is _SUSPENDED:
                self._attempts.turn(job)
            elif job.state is _PENDING and job.id not in leaving_for:
                if requests is not None and requests.is_alike(job) and requests.let_wait(job, ledger):
                    continue
                if self._wants_before:
                    self._ahead.jobs = self._before(entry)
                outcome = self._attempts.try_entry(entry)
                if outcome is not _STARTED and self._wants_before:
                    self._wait(entry)
                if outcome is Outcome.PREEMPTING:
                    leaving_for.add(job.id)
            if rounds and ledger.freed != freed:
                rounds -= 1
                entries, at, seen, seen_freed = self._attempts.ordered(), 0, -1, -1
                self._waiting = [each for each in self._waiting if each[1].id in leaving_for]

    def _tell(self, entry: Entry) -> None:
        """Trace what trying a job would come to that need not be tried."""
        _, job, partition = entry
        question = Question(job, partition, self._ledger.all_nodes)
        self._placer.telling.in_vain(question, preempt=self._placer.preemption)

    def _wait(self, entry: Entry) -> None:
        """List one that has to wait, if anything asks which do."""
        if not self._wants_before:
            return
        if self._attempts.custom_order:
            self._waiting.append(entry)
        else:
            bisect.insort(self._waiting, entry, key=place_of)

    def _before(self, entry: Entry) -> Sequence[Job]:
        """Return the jobs that were tried before `entry` and have to wait."""
        if not self._wants_before:
            return ()
        if self._attempts.custom_order:  # then only those of this pass are listed, as they were tried
            return self._tried.of(self._waiting)
        waiting = [each[1] for each in self._waiting if each[0] < entry[0]]
        return waiting if len(waiting) < 2 else list(dict.fromkeys(waiting))

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return which have to wait, for `restore`."""
        jobs = self._ledger.jobs
        waiting, attempts = self._waiting, self._attempts
        if not self._wants_before or attempts.custom_order or attempts.turns:
            # No job is listed from one pass to the next; another engine may want to know.
            arrivals = set(map(place_of, self._queue.arrivals))
            waiting = [entry for entry in self._queue.entries if entry[0] not in arrivals]
        return {
            "settled": self._settled,
            "waiting": [
                entry_to_plain(each)
                for each in waiting
                if jobs.get(each[1].id) is each[1] and each[1].state is _PENDING
            ],
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self._settled = memory["settled"]
        self._waiting = [entry_of_plain(plain, self._ledger.jobs) for plain in memory["waiting"]]


class _Jobs:
    """The jobs of a list of entries that only grows, each once; what comes is added to what was listed before."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._count = 0
        self._known: set[Job] = set()
        self._listed: list[Job] = []

    def of(self, entries: list[Entry]) -> Sequence[Job]:
        """Return them; another list begins anew."""
        if entries is not self._entries:
            self._entries, self._count = entries, 0
            self._known, self._listed = set(), []
        for _, job, _ in entries[self._count :]:
            if job not in self._known:
                self._known.add(job)
                self._listed.append(job)
        self._count = len(entries)
        return self._listed

"""Let a policy name what is tried next, instead of ordering a deep queue for each pass (`QueueOrder.turns`).

The policy hears what is eligible, and passes over what would wait for the reason that it has already. `Greedy` says
what a pass comes to without this, and `tests/test_one_by_one.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from makeway.bitmap import NodeBits
from makeway.model import Job, JobSpec, JobState, ModeFlag, Turns
from makeway.registry import Policies
from makeway_engine.entries import Entry
from makeway_engine.placing import Outcome
from makeway_engine.queue import Queue
from makeway_engine.rulings import Ahead
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.deep import DeepQueue
from makeway_engine.schedulers.futile import NO_ROOM
from makeway_engine.schedulers.requests import ASKED, hashable

_HOOK = "makeway_queue"
_PENDING = JobState.PENDING
_BUSY = Outcome.BUSY
_STARTED = Outcome.STARTED


class _Vain:
    """Knows which kinds of jobs have found no room since anything was given back."""

    def __init__(self, attempts: Attempts, turns: Turns) -> None:
        placer, policies = attempts.placer, attempts.policies
        others = any(
            each.plugin != policies.order_of and each.says("closed_nodes") for each in policies.all_limits
        )
        others = others or any(map(policies.limits_say, ("reservations", "node_sets")))
        gang = ModeFlag.GANG in attempts.ledger.preempt_mode.flags
        self.on = bool(getattr(placer.selector, "ignores_time_limits", False)) and not (others or gang)
        """Whether the selector, and the policy that names jobs, are all that decides about room."""
        self._only_fills_up = bool(getattr(placer.selector, "only_fills_up", False))
        self._ledger = attempts.ledger
        self._turns = turns
        self._stamp: tuple[int, NodeBits] = (-1, 0)
        self._kinds: set[Hashable] = set()
        self._asked: dict[int, tuple[JobSpec, Hashable]] = {}
        """By the place of a job in the job table: what it was submitted with, and what it asks for by that."""

    def forget(self, job: Job) -> None:
        """A job is no longer eligible."""
        self._asked.pop(job.index, None)

    def kind(self, job: Job, *, again: bool) -> Hashable | None:
        """Return the kind of a job that found no room when it was tried last; None: others say nothing about it.

        :param again: whether all are to be tried in this pass.
        """
        stamp = self._ledger.freed, self._ledger.completing
        if again or stamp != self._stamp:
            self._stamp = stamp
            self._kinds.clear()
        several = job.size > 1 and not self._only_fills_up
        if job.reason != NO_ROOM or several or job.required or job.spec.max_nodes is not None:
            return None
        kind = self._turns.kind(job)
        if kind is None:
            return None
        known = self._asked.get(job.index)
        if known is None or known[0] is not job.spec:
            asked = tuple(hashable(getattr(job.spec, name)) for name in _ASKED)
            known = self._asked[job.index] = job.spec, asked
        return kind, job.partition.index, id(job.qos), job.account, job.excluded, job.marks, known[1]

    def is_in(self, kind: Hashable) -> bool:
        """Whether a job of a kind has found no room."""
        return kind in self._kinds

    def add(self, kind: Hashable) -> None:
        """A job of a kind found no room."""
        if self._stamp == (self._ledger.freed, self._ledger.completing):
            self._kinds.add(kind)


_ASKED = tuple(name for name in ASKED if name != "time_limit")


class OneByOne(DeepQueue):
    """Tells a policy about the eligible entries of a queue, and asks it for one after the other."""

    many = 2

    def __init__(
        self, queue: Queue, policies: Policies, turns: Turns, concerns_others: Callable[[Job], bool]
    ) -> None:
        """Be there for one run.

        :param concerns_others: whether another plugin has a say about a job, beyond the one that names jobs.
        """
        super().__init__(queue)
        self._policies = policies
        self._turns = turns
        self._concerns_others = concerns_others
        self._entry_of: dict[int, Entry] = {}
        """By the place of a job in the job table."""
        self._vain: _Vain | None = None
        """None: none has been tried yet."""

    def begins(self, attempts: Attempts) -> bool:
        """Begin a pass; say whether jobs are named one by one in it."""
        if not self.complete():
            return False
        alone, every_job = len(self._queue) == len(self._entry_of), attempts.placer.telling.notes
        return self._turns.begin(alone=alone, every_job=every_job) is True

    def go_through(self, attempts: Attempts, ahead: Ahead) -> None:
        """Try those that are named, until none is.

        :param ahead: gets those that were tried and have to wait.
        """
        waiting: list[Job] = []
        ahead.jobs = waiting
        arrivals, entry_of, turns = self._queue.arrivals, self._entry_of, self._turns
        notes, is_news = attempts.placer.telling.notes, attempts.placer.recorder.is_news
        vain = self._vain = self._vain or _Vain(attempts, turns)
        while (job := turns.next()) is not None:
            entry = entry_of.get(getattr(job, "index", -1))
            if entry is None or entry[1] is not job or job.state is not _PENDING:
                text = f"its next() named {job!r:.80}; allowed: jobs that came and have not left"
                raise self._policies.fault(_HOOK, None, text)
            if arrivals and entry in arrivals:
                continue  # it became eligible in this very pass
            kind = vain.kind(job, again=attempts.again) if vain.on else None
            spared = (kind is not None and vain.is_in(kind)) or (notes and turns.waits_as_before(job))
            if spared and not (notes and is_news(job, job.reason)):
                waiting.append(job)
                continue
            outcome = attempts.try_entry(entry)
            if outcome is not _STARTED:
                waiting.append(job)
                if kind is not None and outcome is _BUSY and job.reason == NO_ROOM:
                    vain.add(kind)

    # ------------------------------------------------------------------------ listening to the queue
    def came(self, entry: Entry) -> None:
        """An entry was added to the queue."""
        if not self.stale and (entry[1].partition is not entry[2] or self._concerns_others(entry[1])):
            self._several += 1
            return
        super().came(entry)

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""
        if not self.stale and job.index not in self._entry_of and self._several:
            self.stale = True
            return
        super().left(job)

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before."""
        if not self.stale and job.index in self._entry_of:
            self._turns.waits(job)

    # ------------------------------------------------------------------------------------ the index
    def _forget(self) -> None:
        self._entry_of.clear()
        self._turns.forget()

    def _keep(self, entry: Entry) -> None:
        self._entry_of[entry[1].index] = entry
        self._turns.came(entry[1])

    def _drop(self, job: Job) -> None:
        if self._entry_of.pop(job.index, None) is not None:
            self._turns.left(job)
            if self._vain is not None:
                self._vain.forget(job)

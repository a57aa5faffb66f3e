"""Make scheduling passes: Slurm's main scheduler, and one that lets nobody wait for another.

``builtin`` and the main part of ``backfill`` follow spec slurm-preemption 7.2 and slurm-gang-and-select 5.3: strict
order within a partition; a job that cannot start closes its partition and withdraws its nodes for the pass.
``greedy`` tries each job in order. EASY has a module of its own.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.config import SchedulerTable
from makeway.engine.het import HetStarter
from makeway.engine.in_vain import InVain
from makeway.engine.ledger import Ledger
from makeway.engine.placing import Outcome, Placer, Question
from makeway.engine.queue import Entry, Key, Queue, entry_of_plain, entry_to_plain, faces, key_of
from makeway.model import Job, JobState, Partition, Seconds
from makeway.registry import Policies

_TINY = 1e-6
_MOST_ROUNDS = 1000
"""How often one pass goes back to the head of the queue; a guard against policies that go in a circle."""
_PENDING = JobState.PENDING
_SUSPENDED = JobState.SUSPENDED
_STARTED = Outcome.STARTED
_BUSY = Outcome.BUSY


class Passes:
    """The passes over one run's queue."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        placer: Placer,
        policies: Policies,
        het: HetStarter,
        scheduler: SchedulerTable,
    ) -> None:
        self.ledger = ledger
        self.queue = queue
        self.placer = placer
        self.policies = policies
        self.het = het
        self._orders = policies.implements("makeway_queue_order")
        self._wants_before = policies.implements("makeway_closed_nodes") or policies.takes(
            "makeway_admit", "before"
        )
        self.again = True
        """Whether the answers of policies may have changed by time alone."""
        self._settled = -1
        self._waiting: list[Entry] = []
        self._raw = _raw_order(ledger, scheduler)
        self._clockwork = ledger.settings(Clockwork)
        self._asked: dict[str, Seconds] = {}
        """In raw order: whoever has had others make way, and when; until the estimator of sched/builtin has run."""
        self._in_vain = InVain(placer)
        self._traces = placer.telling.traces
        self._transitions = placer.transitions
        self.turns = placer.transitions.takes_queue
        """Whether suspended jobs wait in the queue."""
        if not self.turns and (rank := policies.queue_rank(ledger)) is not None:
            queue.rank_by(rank)

    @property
    def custom_order(self) -> bool:
        """Whether a plugin orders the queue anew for each pass."""
        return self._orders and not self.queue.ranked

    def ordered(self) -> list[Entry]:
        """Return the eligible entries, as the policy orders them; with suspended jobs that wait in the queue."""
        entries = self.queue.ordered()
        if self.turns and (stopped := self._transitions.waiting()):
            entries += [(key_of(job, job.partition), job, job.partition) for job in stopped]
            entries.sort(key=_key_of)
        if self._raw:
            return sorted(entries, key=lambda entry: (entry[1].index, entry[2].index))
        return self.in_order(entries)

    def in_order(self, entries: list[Entry]) -> list[Entry]:
        """Return `entries`, which are in the default order, as the policy orders them."""
        if not self.custom_order or len(entries) < 2:
            return entries
        by_face = {id(face): (face, entry) for face, entry in faces(entries)}
        order = self.policies.queue_order([face for face, _ in by_face.values()], self.ledger)
        if order is None:
            return entries
        return [by_face[id(face)][1] for face in order]

    # ------------------------------------------------------------------- the main scheduler
    @property
    def passed_over(self) -> bool:
        """Whether a job has been passed over that will be looked at again without anything happening."""
        return any(self._is_passed_over(job_id) for job_id in self._asked)

    def _is_passed_over(self, job_id: str) -> bool:
        """Whether the estimator of sched/builtin has not run since the job had others make way.

        It alone clears the mark "preemption in progress" when the jobs are walked in raw order (spec
        slurm-gang-and-select 4.4.4).
        """
        at = self._asked.get(job_id)
        if at is None:
            return False
        interval, phase = self._clockwork.bf_interval, self._clockwork.bf_phase
        if not interval:
            return False
        return (self.ledger.now - phase + _TINY) // interval == (at - phase + _TINY) // interval

    def main(self, depth: int, *, het: bool) -> bool:
        """Make a pass of the main scheduler over at most `depth` entries; say whether any job started.

        :param het: whether heterogeneous jobs may be started here (Slurm leaves them to backfill).
        """
        self.queue.arrivals.clear()  # every entry is looked at anyway
        if self._asked:
            self._asked = {each: at for each, at in self._asked.items() if self._is_passed_over(each)}
        closed: set[int] = set()
        withdrawn: NodeBits = 0
        done: set[str] = set()
        started = False
        partitions = {entry[2].index for entry in self.queue.entries}
        for tried, (_, job, partition) in enumerate(self.ordered()):
            if tried >= depth or len(closed) == len(partitions):
                break
            if job.state is _SUSPENDED:
                started = self._turn(job) or started
            if job.id in done or job.state is not _PENDING:
                continue
            if self._asked and self._is_passed_over(job.id):
                continue
            if partition.index in closed:
                self.ledger.wait_for(job, "Priority")
                if job.spec.het_id is not None and not het and self.ledger.rule("het_blocks_pass"):
                    break
                continue
            if job.spec.het_id is not None:
                if het and self._start_het(job, partition, withdrawn):
                    started = True
                else:
                    closed.add(partition.index)
                    withdrawn |= partition.nodes
                continue
            allowed = self.ledger.all_nodes & ~withdrawn
            if job.required & ~allowed:
                if (partition.nodes & allowed & self.ledger.up).bit_count() >= job.size:
                    self.ledger.wait_for(job, "ReqNodeNotAvail")
                    continue
                outcome = _BUSY  # too few nodes are left, so that it holds up others as any job would
            else:
                outcome = self.placer.try_start(Question(job, partition, allowed))
            if outcome is _STARTED:
                started = True
            elif outcome in (_BUSY, Outcome.PREEMPTING):
                if outcome is Outcome.PREEMPTING:
                    done.add(job.id)
                    if self._raw:
                        self._asked[job.id] = self.ledger.now
                left = partition.nodes & allowed & self.ledger.up
                if withdrawn and outcome is _BUSY and left.bit_count() < job.size:
                    self.ledger.wait_for(job, _RESERVED)
                required = job.required
                if required and required.bit_count() >= job.size:
                    withdrawn |= required
                else:
                    closed.add(partition.index)
                    withdrawn |= partition.nodes
        return started

    def _start_het(self, job: Job, partition: Partition, withdrawn: NodeBits) -> bool:
        allowed = self.ledger.all_nodes & ~withdrawn
        return self.het.try_start(job, partition, allowed) is _STARTED

    # ------------------------------------------------------------------------------- greedy
    def greedy(self) -> None:
        """Try each job in order, with preemption; one that has to wait holds up nobody.

        What shall be kept for those that wait is up to plugins (`makeway_closed_nodes`). When jobs were
        submitted since the last pass and nothing else happened, they alone are tried: nobody's start makes
        room for another.
        """
        arrivals = self.queue.take_arrivals()
        if self.custom_order or self.turns or self.again or self._settled != self.ledger.freed:
            entries = self.ordered()
            self._waiting = []
        else:
            entries = sorted(arrivals, key=_key_of)
            self._waiting = [entry for entry in self._waiting if entry[1].state is _PENDING]
        self.again = False
        self._go_through(entries)
        self.placer.rulings.before = ()
        self._settled = self.ledger.freed

    def _go_through(self, entries: Sequence[Entry]) -> None:
        """Try `entries` one by one; where suspended jobs wait among them, anew once somebody has made way."""
        ledger = self.ledger
        rounds = _MOST_ROUNDS if self.turns else 0
        leaving_for: set[str] = set()
        vain: Collection[int] = ()
        seen = (-1, -1)
        """Versions of the ledger by which `vain` was found: in all, and of what was given back."""
        at = 0
        while at < len(entries):
            entry = entries[at]
            at += 1
            job, freed = entry[1], ledger.freed
            if seen[1] != freed or (seen[0] != ledger.version and id(job) not in vain):
                seen = ledger.version, freed
                vain = self._in_vain.among(each[1] for each in entries[at - 1 :])
            if id(job) in vain:
                if self._traces:
                    self._tell(entry)
                continue
            if job.state is _SUSPENDED:
                self._turn(job)
            elif job.state is _PENDING and job.id not in leaving_for:
                self.placer.rulings.before = self._before(entry)
                outcome = self.try_entry(entry)
                if outcome is not _STARTED:
                    self._wait(entry)
                if outcome is Outcome.PREEMPTING:
                    leaving_for.add(job.id)
            if rounds and ledger.freed != freed:
                rounds -= 1
                entries, at, seen = self.ordered(), 0, (-1, -1)
                self._waiting = [each for each in self._waiting if each[1].id in leaving_for]

    def _tell(self, entry: Entry) -> None:
        """Trace what trying a job would come to that need not be tried."""
        _, job, partition = entry
        question = Question(job, partition, self.ledger.all_nodes)
        self.placer.telling.in_vain(question, preempt=self.placer.preemption)

    def _wait(self, entry: Entry) -> None:
        if self.custom_order:
            self._waiting.append(entry)
        else:
            bisect.insort(self._waiting, entry, key=_key_of)

    def _turn(self, job: Job) -> bool:
        """Let the arbiter act for a suspended job; say whether it goes on."""
        # Without turns it was started, and stopped, at another of its entries in this very pass.
        if self.turns and job.state is _SUSPENDED and self.ledger.is_active(job):
            self._transitions.turn(job)
        return job.state is JobState.RUNNING

    def _before(self, entry: Entry) -> Sequence[Job]:
        """Return the jobs that were tried before `entry` and have to wait."""
        if not self._wants_before:
            return ()
        custom = self.custom_order  # then only those of this pass are listed, as they were tried
        waiting = [each[1] for each in self._waiting if custom or each[0] < entry[0]]
        return waiting if len(waiting) < 2 else list(dict.fromkeys(waiting))

    def try_entry(self, entry: Entry) -> Outcome:
        """Try a job where its entry says, with preemption; one that is no longer pending is passed over."""
        _, job, partition = entry
        if job.state is _SUSPENDED and self.turns:
            self._turn(job)
        if job.state is not _PENDING:
            return Outcome.LIMITED
        if job.spec.het_id is not None:
            return self.het.try_start(job, partition, self.ledger.all_nodes)
        if job.reason == "Resources" and not self.placer.preemption:
            # It was tried before; a glance tells whether trying again is worth while.
            usable = self.ledger.up & ~self.ledger.completing
            if not self.placer.selector.screen((job,), usable):
                return _BUSY
        return self.placer.try_start(Question(job, partition, self.ledger.all_nodes))

    # --------------------------------------------------------------------------- adoption
    def hand_over(self) -> dict[str, Any]:
        """Return what passes remember from one to the next, for `take_over`."""
        jobs = self.ledger.jobs
        return {
            "again": self.again,
            "settled": self._settled,
            "waiting": [entry_to_plain(entry) for entry in self._waiting if entry[1].id in jobs],
            "asked": {job_id: at for job_id, at in self._asked.items() if job_id in jobs},
        }

    def take_over(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine's passes stood."""
        self.again = memory["again"]
        self._settled = memory["settled"]
        self._waiting = [entry_of_plain(plain, self.ledger.jobs) for plain in memory["waiting"]]
        self._asked = dict(memory["asked"])


def _key_of(entry: Entry) -> Key:
    return entry[0]


def _raw_order(ledger: Ledger, scheduler: SchedulerTable) -> bool:
    """Whether the main scheduler walks the job table unsorted (spec slurm-gang-and-select 5.2, last exception)."""
    tiers = {partition.priority_tier for partition in ledger.cluster.partitions}
    return (
        scheduler.type == "builtin"
        and scheduler.priority == "basic"
        and len(tiers) == 1
        and ledger.rule("builtin_raw_order")
    )


_RESERVED = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"

__all__ = ["Passes", "Seconds"]

"""What all schedulers do alike: order the entries of the queue, and try one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.job_table import JobTable, turn_of
from makeway.model import Job, JobState, Partition
from makeway.partition_bounds import BOUNDS
from makeway.registry import Policies
from makeway_engine.entries import Entry, Key
from makeway_engine.ledger import Ledger
from makeway_engine.placing import Outcome, Placer, Question
from makeway_engine.queue import Queue, faces
from makeway_engine.schedulers.het import HetStarter

_PENDING = JobState.PENDING
_SUSPENDED = JobState.SUSPENDED


class Attempts:
    """The entries of one run's queue in the order that policies want, and attempts to start them."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        placer: Placer,
        policies: Policies,
        het: HetStarter,
        *,
        raw: bool = False,
    ) -> None:
        """Be there for one run.

        :param raw: whether the job table is walked unsorted.
        """
        self.ledger = ledger
        self.queue = queue
        self.placer = placer
        self.policies = policies
        self.het = het
        het.in_order = self.in_order
        self.raw = raw
        self._table = ledger.book(JobTable) if raw else None
        self.again = True
        """Whether the answers of policies may have changed by time alone."""
        self._orders = policies.orders
        self.limits = policies.limits_say("admit")
        """Whether a limit may keep a job out that found no room before."""
        self._has_limits = placer.rulings.limited
        self._transitions = placer.transitions
        self.turns = placer.transitions.takes_queue
        """Whether suspended jobs wait in the queue."""
        if not self.turns and (rank := policies.queue_rank()) is not None:
            queue.rank_by(rank)

    @property
    def custom_order(self) -> bool:
        """Whether a plugin orders the queue anew for each pass."""
        return self._orders and not self.queue.ranked

    @property
    def moves_by_starts(self) -> bool:
        """Whether a start may change the order of those that wait."""
        return self.custom_order or (self.raw and bool(self.queue.throttle))

    def ordered(self) -> list[Entry]:
        """Return the eligible entries, as the policy orders them; with suspended jobs that wait in the queue."""
        entries = self.queue.ordered()
        if self.turns and (stopped := self._transitions.waiting()):
            entries += [(self.queue.key_of(job, job.partition), job, job.partition) for job in stopped]
            entries.sort(key=place_of)
        if self._table is not None:
            place = self._table.place
            return sorted(
                entries, key=lambda entry: (place(entry[1]), entry[1].index, turn_of(entry[1], entry[2]))
            )
        return self.in_order(entries)

    def in_order(self, entries: list[Entry]) -> list[Entry]:
        """Return `entries`, which are in the default order, as the policy orders them.

        Those beyond the bounds of their partition take no part in that, and come last (recorded: preempt_order_bounds).
        """
        if not self.custom_order or len(entries) < 2:
            return entries
        beyond: list[Entry] = []
        by_face: dict[int, tuple[Job, Entry]] = {}
        for face, entry in faces(entries):
            if self.placer.out_of_bounds(entry[1], entry[2]) in BOUNDS:
                beyond.append(entry)
            else:
                by_face[id(face)] = face, entry
        faces_within = [face for face, _ in by_face.values()]
        order = (
            self.policies.queue_order(faces_within, self.ledger) if len(faces_within) > 1 else faces_within
        )
        if order is None:
            return entries
        return [by_face[id(face)][1] for face in order] + beyond

    def try_entry(self, entry: Entry, *, holds_up: bool = False) -> Outcome:
        """Try a job where its entry says, with preemption; one that is no longer pending is passed over.

        :param holds_up: whether others wait for a job that finds no room: limits are asked then, room or not.
        """
        _, job, partition = entry
        if job.state is _SUSPENDED and self.turns:
            self.turn(job)
        if job.state is not _PENDING:
            return Outcome.LIMITED
        if job.spec.het_id is not None:
            return self.het.try_start(job, partition, self.ledger.all_nodes)
        placer = self.placer
        if (
            job.reason == "Resources"
            and not placer.preemption
            and not placer.glance.among((job,))  # it was tried before: a glance tells whether to try it again
            and not (holds_up and self.is_limited(job, partition))
        ):
            return Outcome.BUSY
        asked = (job, partition, self.ledger.all_nodes, True, True, True, "")
        return placer.try_start(tuple.__new__(Question, asked))

    def is_limited(self, job: Job, partition: Partition) -> bool:
        """Whether a limit keeps a pending job out by now, or may do so where it was not tried last."""
        if not self.limits or (job.partition is partition and not self._has_limits(job)):
            return False
        question = Question(job, partition, self.ledger.all_nodes)
        return job.partition is not partition or self.placer.prober.limit(question) is not None

    def turn(self, job: Job) -> bool:
        """Let the arbiter act for a suspended job, unless its nodes are kept for another; say whether it goes on."""
        # Without turns it was started, and stopped, at another of its entries in this very pass.
        kept = self.placer.kept.from_others(job) & job.nodes
        if self.turns and job.state is _SUSPENDED and self.ledger.is_active(job) and not kept:
            self._transitions.turn(job)
        return job.state is JobState.RUNNING

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what is remembered from one pass to the next, for `restore`."""
        return {"again": self.again}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self.again = memory["again"]


def place_of(entry: Entry) -> Key:
    """Return the place of an entry in the queue."""
    return entry[0]

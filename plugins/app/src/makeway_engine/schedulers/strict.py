"""Strict order, as Slurm's main scheduler has it: ``builtin``, and the main part of ``backfill``.

A job that cannot start closes its partition and withdraws its nodes for the pass (slurm-preemption 7.2,
slurm-gang-and-select 5.3).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from typing import Any

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.config import SchedulerTable
from makeway.model import Job, JobSpec, JobState, Partition, Seconds
from makeway.partition_bounds import BOUNDS
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger, enter
from makeway_engine.placing import Outcome, Question
from makeway_engine.placing.action import NOT_AVAILABLE, RESERVED
from makeway_engine.queue import BEGINS
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.going_on import GoingOn
from makeway_engine.schedulers.lanes import BEHIND, Lanes, wait_behind
from makeway_engine.schedulers.settled import Settled

_TINY = 1e-6
_PENDING = JobState.PENDING
_SUSPENDED = JobState.SUSPENDED
_STARTED = Outcome.STARTED
_BUSY = Outcome.BUSY
_MOST_KNOWN = 10_000
_LICENCES = "Licenses"


class _Pass:
    """What a pass has come to so far."""

    __slots__ = ("closed", "done", "over", "reservations", "started", "withdrawn")

    def __init__(self) -> None:
        self.closed: set[int] = set()
        self.withdrawn: NodeBits = 0
        self.done: set[str] = set()
        self.reservations: set[str] = set()
        """Those in which a job has to wait: others in them wait as well."""
        self.started = False
        self.over = False
        """Whether no job is looked at any more."""


class Strict:
    """The main scheduler of one run."""

    def __init__(
        self, attempts: Attempts, lanes: Lanes | None = None, settled: Settled | None = None
    ) -> None:
        """Be there for one run.

        :param settled: knows whether another pass would come to anything else; None: that is not to be known.
        :param lanes: knows its queue by partition; None: each pass goes through all of it.
        """
        self._lanes = lanes
        plain = not (attempts.custom_order or attempts.turns or attempts.raw)
        self.settled = self._settled = settled if plain else None
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._queue = attempts.queue
        self._placer = attempts.placer
        self._het = attempts.het
        self._raw = attempts.raw
        goes_on = attempts.raw and attempts.ledger.rule("raw_order_goes_on_with_partitions")
        self._going_on = GoingOn(attempts.queue, attempts.placer) if goes_on else None
        self._reserves = attempts.placer.policies.limits_say("reservations")
        self._clockwork = attempts.ledger.settings(Clockwork)
        self._asks_of_rest = attempts.ledger.rule("unable_on_the_rest_holds_up_none")
        self._unlicensed_withdraws = attempts.ledger.rule("unlicensed_withdraws_required")
        self._unable: dict[str, tuple[NodeBits, JobSpec, bool]] = {}
        """By job id: the nodes that were left when that was asked last, and whether it could not run on them."""
        self._asked: dict[str, Seconds] = {}
        """In raw order: which jobs have had others make way, and when; until the estimator of sched/builtin has run."""

    @property
    def passed_over(self) -> bool:
        """Whether a job has been passed over that will be looked at again without anything happening."""
        return any(self._is_passed_over(job_id) for job_id in self._asked)

    def _is_passed_over(self, job_id: str) -> bool:
        """Whether the estimator of sched/builtin has not run since the job had others make way.

        It alone clears the mark "preemption in progress" when the jobs are walked in raw order (
        slurm-gang-and-select 4.4.4).
        """
        at = self._asked.get(job_id)
        if at is None:
            return False
        interval, phase = self._clockwork.bf_interval, self._clockwork.bf_phase
        if not interval:
            return False
        return (self._ledger.now - phase + _TINY) // interval == (at - phase + _TINY) // interval

    def run(self, depth: int, *, het: bool) -> bool:
        """Make a pass over at most `depth` entries; say whether any job started.

        :param het: whether heterogeneous jobs may be started here (Slurm leaves them to backfill).
        """
        queue, settled = self._queue, self._settled
        whole = settled is not None and depth >= len(queue.entries)
        if settled is not None and whole and settled.lets_wait(queue.arrivals):
            queue.arrivals.clear()
            return False
        queue.arrivals.clear()  # every entry is looked at anyway
        if settled is None:
            return self._run(depth, het=het)
        settled.begin()
        started = self._run(depth, het=het)
        if not whole:
            settled.doubt()
        settled.end()
        return started

    def _run(self, depth: int, *, het: bool) -> bool:
        """Make it."""
        if self._asked:
            self._asked = {each: at for each, at in self._asked.items() if self._is_passed_over(each)}
        attempts = self._attempts
        plain = self._lanes is None or attempts.custom_order or attempts.turns or self._raw
        plain = plain or self._clockwork.bf_licenses
        if (
            self._lanes is not None
            and not plain
            and depth >= len(self._queue.entries)
            and self._lanes.complete()
        ):
            return self._run_by_lane(self._lanes)
        state = _Pass()
        going_on = self._going_on
        if going_on is not None:
            going_on.begin()
        entries = itertools.islice(attempts.ordered(), depth)
        for entry in entries:
            if not self._look(entry, state, het=het):
                for _, job, _ in entries:
                    self._note_begin(job)
                break
            if going_on is not None:
                going_on.looked_at(entry)
                while (partition := going_on.move(entry[1])) is not None:
                    self._look((entry[0], entry[1], partition), state, het=het)
        return state.started

    def _run_by_lane(self, lanes: Lanes) -> bool:
        """Come to the same without a look at those that stand behind one that waits."""
        arrivals = self._queue.arrivals
        state = _Pass()
        behind: list[Entry] = []
        """Entries of closed partitions whose reason has yet to change, as a heap."""
        after: Entry | None = None
        while True:
            entry = lanes.next(after, state.closed)
            if behind and (entry is None or behind[0] < entry):
                entry = heapq.heappop(behind)
                if entry[1].state is _PENDING:
                    self._wait_behind(entry[1], entry[2])
            elif entry is None:
                break
            elif not arrivals or entry not in arrivals:  # else it became eligible in this very pass
                closed = len(state.closed)
                self._look(entry, state, het=False)
                if len(state.closed) > closed:
                    for each in lanes.odd(entry[2].index, entry):
                        if each not in arrivals:
                            heapq.heappush(behind, each)
            after = entry
        return state.started

    def _look(self, entry: Entry, state: _Pass, *, het: bool) -> bool:
        """Try the job of an entry if its turn has come; say whether the pass goes on."""
        _, job, partition = entry
        closed = state.closed
        if job.state is _SUSPENDED:
            state.started = self._attempts.turn(job) or state.started
        if job.id in state.done or job.state is not _PENDING:
            return True
        if self._asked and self._is_passed_over(job.id):
            return True
        self._note_begin(job)
        if partition.index in closed or job.spec.reservation in state.reservations:
            if job.spec.het_id is None:  # a component keeps its reason (slurm-gang-and-select 5.3 no. 6)
                self._wait_behind(job, partition)
            return not (job.spec.het_id is not None and not het and self._ledger.rule("het_blocks_pass"))
        if job.spec.het_id is not None:
            self._doubt()
            if het and self._start_het(job, partition, state.withdrawn):
                state.started = True
            else:
                closed.add(partition.index)
                state.withdrawn |= partition.nodes
            return True
        self._try(entry, state)
        return not state.over

    def _note_begin(self, job: Job) -> None:
        """Note that the time of a component has come, even behind the end of the pass; it gets no other reason here."""
        if job.spec.het_id is not None and job.reason == BEGINS:
            self._ledger.wait_for(job, "None")

    def _wait_behind(self, job: Job, partition: Partition) -> None:
        """Let a job wait behind another, or say that it is beyond the bounds of the partition.

        Of several partitions the last one has its say (recorded: part_time_behind).
        """
        ledger = self._ledger
        bound = self._placer.out_of_bounds(job, partition)
        if bound:
            ledger.settled_reasons.add(bound)
            ledger.wait_for(job, bound)
        elif len(job.partitions) > 1 and job.reason in BOUNDS:
            ledger.wait_for(job, BEHIND)
        else:
            wait_behind(ledger, job)

    def _doubt(self) -> None:
        if self._settled is not None:
            self._settled.doubt()

    def _try(self, entry: Entry, state: _Pass) -> None:
        """Try a job; if it has to wait, it closes its partition, or withdraws the nodes that it requires."""
        _, job, partition = entry
        allowed = self._ledger.all_nodes & ~state.withdrawn
        if job.required & ~allowed:
            if (partition.nodes & allowed & self._ledger.up).bit_count() >= job.size:
                self._ledger.wait_for(job, NOT_AVAILABLE)
                self._doubt()
                return
            outcome = _BUSY  # too few nodes are left, so that it holds up others as any job would
        elif state.withdrawn and self._has_no_nodes(job, partition, allowed):
            outcome = _BUSY  # even if a limit keeps it out as well
        else:
            outcome = self._placer.try_start(Question(job, partition, allowed))
        gone = partition.nodes & (state.withdrawn | self._ledger.missing)
        left = partition.nodes & allowed & self._ledger.up
        if gone and outcome is Outcome.NEVER and left.bit_count() < job.size:
            outcome = _BUSY
        if outcome is not _STARTED and self._clockwork.bf_licenses and job.reason == _LICENCES:
            self._doubt()
            state.over = True
        elif outcome is _STARTED:
            state.started = True
        elif outcome in (_BUSY, Outcome.PREEMPTING):
            if outcome is Outcome.PREEMPTING:
                self._doubt()
                state.done.add(job.id)
                if self._raw:
                    self._asked[job.id] = self._ledger.now
            if gone and outcome is _BUSY and left.bit_count() < job.size:
                self._ledger.wait_for(job, RESERVED)
            elif gone and outcome is _BUSY and self._is_unable(job, left):
                self._ledger.wait_for(job, NOT_AVAILABLE)
                self._doubt()
                return
            if self._reserves or job.spec.reservation:
                self._doubt()
            if self._reserves and outcome is _BUSY and self._placer.prober.kept_by_windows(job):
                return  # what is kept for others holds up none behind it
            if self._reserves and job.spec.reservation:
                state.reservations.add(job.spec.reservation)  # it holds back no other
                return
            required = job.required
            if required:
                self._doubt()
            if required and required.bit_count() >= job.size:
                state.withdrawn |= required
            else:
                if self._settled is not None:
                    self._settled.closed_by(entry)
                state.closed.add(partition.index)
                state.withdrawn |= partition.nodes
        else:
            self._doubt()
            if (
                self._unlicensed_withdraws
                and job.reason == _LICENCES
                and job.required.bit_count() >= job.size
            ):
                state.withdrawn |= job.required

    def _is_unable(self, job: Job, left: NodeBits) -> bool:
        """Whether a job could not run on the nodes left, even if they were idle; it then holds up no other.

        Recorded: builtin_never_on_the_rest_cons and builtin_never_on_the_rest_linear.
        """
        if not self._asks_of_rest or job.spec.licenses:
            return False
        known = self._unable.get(job.id)
        if known is None or known[0] != left or known[1] is not job.spec:
            if len(self._unable) > _MOST_KNOWN:
                self._unable.clear()
            unable = not self._placer.prober.could_run_on(job, left)
            known = self._unable[job.id] = left, job.spec, unable
        return known[2]

    def _has_no_nodes(self, job: Job, partition: Partition, allowed: NodeBits) -> bool:
        """Whether too few nodes are left for a job whose limit is only looked at once there are enough.

        It then holds up others as any job would (recorded: limit_without_nodes). Where there are enough nodes without
        room, the limit comes first, and the bounds of the partition always do (recorded: part_bounds_before_limit).
        """
        left = partition.nodes & allowed & self._ledger.up
        if left.bit_count() >= job.size or not self._placer.rulings.limited(job):
            return False
        if self._placer.out_of_bounds(job, partition):
            return False
        if job.partition is not partition:
            enter(job, partition)
        limit = self._ledger.kept_out(job)
        return limit is not None and (not limit.before_nodes or limit.at_submission_only)

    def _start_het(self, job: Job, partition: Partition, withdrawn: NodeBits) -> bool:
        allowed = self._ledger.all_nodes & ~withdrawn
        return self._het.try_start(job, partition, allowed) is _STARTED

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return which are passed over, and which reasons are settled, for `restore`."""
        jobs = self._ledger.jobs
        return {
            "asked": {job_id: at for job_id, at in self._asked.items() if job_id in jobs},
            "settled_reasons": sorted(self._ledger.settled_reasons),
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self._asked = dict(memory["asked"])
        self._ledger.settled_reasons.update(memory.get("settled_reasons", ()))


def walks_raw(ledger: Ledger, scheduler: SchedulerTable) -> bool:
    """Whether the main scheduler walks the job table unsorted (slurm-gang-and-select 5.2, last exception)."""
    tiers = {partition.priority_tier for partition in ledger.cluster.partitions}
    return (
        scheduler.type == "builtin"
        and scheduler.priority == "basic"
        and len(tiers) == 1
        and ledger.rule("builtin_raw_order")
    )

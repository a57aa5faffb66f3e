"""Take plain jobs the short way: submit, start and end them with few calls, and the same in the books.

A plain job asks for a number of nodes and for nothing else: no licences, features, named nodes, begin time, array or
components. Before limits it may have a service class, too (`express_gate`). `Submission`, `Queue`, `Placer`, `Moves`,
`Ledger`, `Endings` and `Easy` say what becomes of it. Here the same is done at one go while all is calm: no job is
leaving its nodes, no timer runs, nobody is told to make way. All else goes the plain way, step by step or event by
event. `tests/test_express.py` holds one way to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from makeway import licences
from makeway.config import McsTable
from makeway.model import (
    CountingSelector,
    Exclusive,
    Job,
    JobDraft,
    JobSpec,
    ModeFlag,
    Partition,
    Qos,
    Seconds,
)
from makeway.partition_bounds import Bounds, bounds_of
from makeway.worlds.events import Action, Event, Finished, Submitted
from makeway_engine.endings import Endings
from makeway_engine.express_gate import Gate, gate_of
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.express_passes import ExpressPasses
from makeway_engine.parts import Parts
from makeway_engine.rhythm import Rhythm

_TINY = 1e-6
_USER = Exclusive.USER


class Express:
    """The short way of one run."""

    def __init__(
        self,
        parts: Parts,
        endings: Endings,
        rhythm: Rhythm,
        handle: Callable[[Event], None],
        gate: Gate | None = None,
    ) -> None:
        """Be ready for the first step.

        :param handle: takes an event the plain way.
        :param gate: knows who is surely let in; None: limits are about jobs that are not plain.
        """
        self._gate = gate
        self._lets_in_until = gate.let_in_until if gate is not None else None
        self._taken = gate.taken if gate is not None else None
        self._endings = endings
        self._rhythm = rhythm
        self._handle = handle
        self._ledger = parts.ledger
        self._by_end = parts.ledger.by_end
        self._queue = parts.queue
        self._attempts = parts.schedulers.attempts
        self._transitions = parts.transitions
        self._placer = placer = parts.placer
        self._submission = parts.submission
        self._reports = parts.reports
        self._deeds = parts.deeds
        self._requeue = parts.config.scheduler.requeue
        self._priorities = parts.transitions.priorities
        self._selector = cast(CountingSelector, parts.selector)
        self._wants = getattr(self._selector, "wants", _wants_none)
        limited = placer.rulings.limited if gate is None else gate.limited
        self._limited = None if limited is licences.wants else limited
        """Says which jobs a limit is about; None: only those that ask for licences."""
        self._passed = parts.schedulers.passed
        self._moves, self._passes = self._ways_of(parts)
        self._doors: dict[tuple[tuple[str, ...], str | None], _Door | None] = {}
        """By the partitions and the service class that jobs name; None: with these nothing is plain."""
        self.calm = False
        """Whether nothing unusual is under way, and nothing went the plain way since that was seen."""

    def _ways_of(self, parts: Parts) -> tuple[ExpressMoves, ExpressPasses | None]:
        """Return what starts and ends jobs, and what makes passes; None: all passes are made the plain way."""
        moves = ExpressMoves(parts)
        if (
            parts.config.scheduler.type != "easy"
            or self._placer.preemption
            or parts.recorder.traced is not None
        ):
            return moves, None
        return moves, ExpressPasses(parts.schedulers.easy, moves, self._wanted_by, self._gate)

    # -------------------------------------------------------------------------- stepping
    def step(self, now: Seconds, events: Sequence[Event]) -> list[Action] | None:
        """Make a step later than the last one; None: it has to go the plain way, and nothing was done yet."""
        by_end, look = self._by_end, self._endings.look_at
        if (
            (by_end and by_end[0][0] <= now)
            or (look is not None and look <= now + _TINY)
            or not (self.calm or self._look_around())
        ):
            self.calm = False
            return None
        transitions, ledger = self._transitions, self._ledger
        if len(events) == 1:
            event = events[0]
            if type(event) is Finished:
                ledger.now = now
                transitions.actions = []
                if not self._moves.finish(event, now):
                    self._finish_plainly(event)
                    self._pass_plainly(now)
                elif self._queue.entries and (self._passes is None or not self._passes.run(now)):
                    transitions.changed = True
                    self._pass_plainly(now)
            elif type(event) is Submitted:
                ledger.now = now
                transitions.actions = []
                if not self._submit(event, now):
                    self._pass_plainly(now)
            else:
                self.calm = False
                return None
        elif events and all(type(event) in _PLAIN_EVENTS for event in events):
            ledger.now = now
            transitions.actions = []
            self._take(events, now)
        else:
            self.calm = False
            return None
        if self._gate is not None:
            endings = self._endings
            if endings.looks and (transitions.actions or not self.calm or endings.calm_until <= now):
                endings.look_ahead(now)
                self._rhythm.look_at = endings.look_at
            if transitions.making_way.retries:
                self.calm = False
        if not self.calm:
            self._look_around()  # mostly all is calm again, and then it is soon said when to wake up
        if ledger.gone:
            self._reports.ended(ledger.gone)
        if self._deeds is not None and transitions.actions:
            return self._deeds.number(transitions.actions)
        return transitions.actions

    def _take(self, events: Sequence[Event], now: Seconds) -> None:
        """Take several things that happened at one instant; each may go either way."""
        transitions, last, passed = self._transitions, len(events) - 1, False
        for at, event in enumerate(events):
            if type(event) is Submitted:
                if self.calm:
                    passed = self._submit(event, now, last=at == last)
                else:
                    self._submit_plainly(event)
            elif self.calm and self._moves.finish(cast(Finished, event), now):
                transitions.changed = True
            else:
                self._finish_plainly(cast(Finished, event))
        if passed or (self.calm and (not self._queue.entries or (self._passes and self._passes.run(now)))):
            transitions.changed = False
        else:
            self._pass_plainly(now)

    def _look_around(self) -> bool:
        """Say whether all is calm."""
        ledger, queue, placer, transitions = self._ledger, self._queue, self._placer, self._transitions
        self.calm = (
            not (
                ledger.completing
                or ledger.anyone_exclusive
                or queue.later
                or queue.bounced
                or transitions.changed
                or transitions.graces
                or transitions.survived_grace
                or transitions.making_way.retries
                or self._reports.timers
                or placer.beyond
                or placer.kept.claims
                or placer.forgives
                or self._attempts.custom_order
            )
            and self._moves.look_around()
        )
        if self._passes is not None:
            self._passes.stale = True
        return self.calm

    def _pass_plainly(self, now: Seconds) -> None:
        self.calm = False
        self._rhythm.run(now)

    def _finish_plainly(self, event: Finished) -> None:
        self.calm = False
        self._endings.finished(event)

    def _submit_plainly(self, event: Submitted) -> None:
        self.calm = False
        if self._deeds is None:
            self._submission.submit(event.spec)
        else:
            self._handle(event)

    # ------------------------------------------------------------------------------ come
    def _submit(self, event: Submitted, now: Seconds, *, last: bool = True) -> bool:
        """Take a job in, and let it start or wait; False: a pass has still to be made.

        :param last: whether nothing else happens at this instant, so that it is the time for a pass.
        """
        spec, ledger, doors = event.spec, self._ledger, self._doors
        named = spec.partitions, spec.qos
        door = doors[named] if named in doors else self._find_door(spec)
        if (
            door is None
            or (spec.qos is not None and self._gate is None)
            or spec.id in ledger.jobs
            or not comes_plainly(spec)
        ):
            self._submit_plainly(event)
            return False
        submission, partition = self._submission, door.partition
        draft = self._draft(spec, door.partitions, door.qos, door.limit, now)
        limit, size = draft.time_limit, draft.size
        least, most, longest = door.bounds or door.find_bounds(draft)
        if (
            not least <= size <= most
            or (longest is not None and limit is not None and limit > longest)
            or (self._limited is not None and self._limited(draft))
            or (self._deeds is not None and self._reports.has_ended(spec.id))
        ):
            self._submit_plainly(event)
            return False
        wanted = self._wants(draft)
        if wanted is None and not self._is_possible(draft):
            self._submit_plainly(event)
            return False
        submission.last_index += 1
        priorities = self._priorities
        if priorities.by_turn:
            draft.priority = priorities.lowest
            priorities.lowest -= 1
        else:
            draft.priority = priorities.first(draft)
        draft.__class__ = Job
        job: Job = draft
        ledger.jobs[job.id] = job
        moves, passes = self._moves, self._passes
        if moves.books.kept:
            moves.books.came(job)
        moves.record.entered(job, now)
        if self._taken is not None and not self._taken(job):
            self._refuse(job, now)
            return False
        if not last or wanted is None:
            pass  # it waits for a pass
        elif (
            not self._queue.entries
            and self._passed is not None
            and (self._lets_in_until is None or self._lets_in_until(job) > now)
        ):
            found = moves.find(job, partition, wanted)
            if found is not None:
                moves.start(job, found, now)
                ledger.searches = 0
                self._transitions.left_nodes = False
                self._passed()
                return True
        elif passes is not None and passes.arrive(job, partition, wanted, now):
            return True
        self._queue.add(job, now)
        if self._lets_in_until is not None and self._lets_in_until(job) <= now:
            submission.name_limit(job)
        if passes is not None:
            passes.wanted[job.index] = wanted
            if wanted is None:
                passes.odd = job
            elif last and passes.run(now):
                return True
        self._transitions.changed = True
        return False

    def _refuse(self, job: Job, now: Seconds) -> None:
        """Refuse a job that is not surely taken, or let it wait for a pass."""
        assert self._gate is not None
        self._queue.add(job, now)
        self._transitions.changed = True
        self.calm = False
        self._gate.refuse(job)

    def _draft(
        self,
        spec: JobSpec,
        partitions: tuple[Partition, ...],
        qos: Qos | None,
        limit: Seconds | None,
        now: Seconds,
    ) -> Any:
        """Return the job that a plain submission comes to, without a priority; its class is still to be set.

        :param limit: its time limit if it names none.
        """
        return JobDraft(  # in the order of its fields: names take three times as long
            spec,
            spec.id,
            self._submission.last_index + 1,
            spec.user,
            spec.account,
            partitions,
            partitions[0],
            qos,
            now,  # submitted
            now,  # eligible
            spec.time_limit if spec.time_limit is not None else limit,
            0,  # priority
            spec.batch and (spec.requeue if spec.requeue is not None else self._requeue),
            spec.min_nodes if spec.min_nodes > 1 else 1,
            now,  # eligible since then
        )

    def _is_possible(self, job: Job) -> bool:
        """Whether the selector has nothing against a job; nodes out of service may come back."""
        nodes, ledger = job.partition.nodes, self._ledger
        return nodes & ledger.up != nodes or self._selector.possible(job, ledger) is None

    def _find_door(self, spec: JobSpec) -> _Door | None:
        """Return the door for the partitions and the service class of a job; None: it is not that simple."""
        partitions, problem = self._submission.partitions_of(spec)
        partition = partitions[0]
        qos, cluster = None, self._ledger.cluster
        if spec.qos is not None:
            qos = cluster.qos_named(spec.qos)
            if qos is None and cluster.qos:
                problem = "there is no such class"
        door = None
        open_to_all = partition.up and partition.accepts and not partition.exclusive_user
        if not problem and len(partitions) == 1 and open_to_all:
            door = _Door(partitions, qos)
        self._doors[spec.partitions, spec.qos] = door
        return door

    def _wanted_by(self, job: Job) -> int | None:
        """Return how many nodes a job wants that waits; None: it is not plain."""
        spec = job.spec
        if (
            not _asks_plainly(spec)
            or len(job.partitions) > 1
            or job.partition is not job.partitions[0]
            or job.partition.exclusive_user
            or (self._limited is not None and self._limited(job))
        ):
            return None
        return self._wants(job)


class _Door:
    """What a job comes to that names certain partitions and a service class, and asks for nothing unusual."""

    __slots__ = ("bounds", "limit", "partition", "partitions", "qos")

    def __init__(self, partitions: tuple[Partition, ...], qos: Qos | None) -> None:
        self.partitions = partitions
        self.partition = partition = partitions[0]
        self.qos = qos
        self.limit = partition.default_time if partition.default_time is not None else partition.max_time
        self.bounds: Bounds | None = None
        """What the partition allows these jobs; None: nobody has come yet."""

    def find_bounds(self, job: Job) -> Bounds:
        """Find out what the partition allows `job`, and whoever comes with the same."""
        found = self.bounds = bounds_of(job, self.partition)
        return found


def _asks_plainly(spec: JobSpec) -> bool:
    """Whether a job that may start concerns the selector alone."""
    return (
        not spec.features
        and not spec.licenses
        and spec.het_id is None
        and not spec.required_nodes
        and not spec.excluded_nodes
        and spec.exclusive is not _USER
        and spec.reservation is None
    )


def comes_plainly(spec: JobSpec) -> bool:
    """Whether the same holds of a job that is submitted, and nothing keeps it from starting, its QOS apart."""
    return (
        spec.begin_at is None
        and spec.withdrawn_at is None
        and spec.array_id is None
        and not spec.depends_on
        and spec.priority is None
        and not spec.nice
        # as above, without a call
        and not spec.features
        and not spec.licenses
        and spec.het_id is None
        and not spec.required_nodes
        and not spec.excluded_nodes
        and spec.exclusive is not _USER
        and spec.reservation is None
    )


def _wants_none(job: Job) -> None:
    """Say of a job that it is no mere number of nodes."""
    del job


_PLAIN_EVENTS = (Finished, Submitted)


def express_of(
    parts: Parts, endings: Endings, rhythm: Rhythm, handle: Callable[[Event], None]
) -> Express | None:
    """Return the short way for a run; None: with these plugins and this configuration there is none."""
    orders = parts.policies.implements("makeway_queue_order")
    ranked = parts.transitions.priorities.prioritizer is not None
    if orders or ranked or not counts_nodes(parts) or not is_simple(parts, rhythm):
        return None
    gate = gate_of(parts)
    if gate is None and not is_plain(parts, rhythm):
        return None
    return Express(parts, endings, rhythm, handle, gate)


def counts_nodes(parts: Parts) -> bool:
    """Whether jobs are a number of nodes to the selector (`makeway.model.CountingSelector`)."""
    return all(hasattr(parts.selector, verb) for verb in ("wants", "idle", "place"))


def is_plain(parts: Parts, rhythm: Rhythm) -> bool:
    """Whether plugins and configuration leave what becomes of plain jobs to the selector, and to who comes first."""
    return (
        parts.transitions.priorities.prioritizer is None
        and not any(map(parts.policies.implements, ("makeway_accept", "makeway_overdue")))
        and is_simple(parts, rhythm)
    )


def is_simple(parts: Parts, rhythm: Rhythm) -> bool:
    """Whether the same is left to the selector, to priorities and to limits."""
    hooks = (
        *("makeway_closed_nodes", "makeway_marks", "makeway_next", "makeway_node_sets"),
        "makeway_windows",
    )
    ledger = parts.ledger
    return (
        parts.gang is None
        and not rhythm.periodic
        and not rhythm.on_grids
        and parts.config.scheduler.enforce_part_limits
        and ledger.settings(McsTable).label == "none"
        and ModeFlag.GANG not in ledger.preempt_mode.flags
        and not any(map(parts.policies.implements, hooks))
    )


__all__ = ["Express", "comes_plainly", "counts_nodes", "express_of", "is_plain", "is_simple"]

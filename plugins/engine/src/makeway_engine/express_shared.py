"""Take plain jobs the short way where jobs share nodes: submit, start and end them with few calls.

What a plain job asks of nodes does not matter here: the selector says at once where it lies
(`makeway.model.PromptSelector`). It may have a service class, and may have others make way in a pass; passes are made
the plain way. `makeway_engine.express` says when all is calm. `tests/test_express_shared.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from makeway.model import Exclusive, Job, JobSpec, JobState, Partition, Placement, Qos, Seconds
from makeway.partition_bounds import Bounds, bounds_of
from makeway.worlds.events import Event, Finished, Submitted
from makeway_engine.endings import Endings
from makeway_engine.entries import Key
from makeway_engine.express import Express, comes_plainly, is_plain
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.express_passes import ExpressPasses
from makeway_engine.express_shared_beside import beside_of
from makeway_engine.express_shared_moves import SharedMoves
from makeway_engine.express_shared_tries import SharedTries
from makeway_engine.parts import Parts
from makeway_engine.rhythm import Rhythm

_Came = tuple[Key, Job]
"""A job that has just come, after the place that it would have in the queue."""
_PENDING = JobState.PENDING
_USER = Exclusive.USER


class SharedExpress(Express):
    """The short way of one run in which jobs share nodes."""

    def __init__(
        self, parts: Parts, endings: Endings, rhythm: Rhythm, handle: Callable[[Event], None]
    ) -> None:
        super().__init__(parts, endings, rhythm, handle)
        self._entrances: dict[tuple[tuple[str, ...], str | None], _Entrance | None] = {}
        """By the partitions and the service class that jobs name; None: with these nothing is plain."""

    def _ways_of(self, parts: Parts) -> tuple[ExpressMoves, ExpressPasses | None]:
        self._shared = moves = SharedMoves(parts)
        self._beside = beside_of(parts, parts.config.scheduler.type)
        if not parts.placer.telling.notes:
            tries = SharedTries(parts, moves)
            parts.placer.quick, parts.placer.waits = tries.quick, tries.waits
        return moves, None

    def _take(self, events: Sequence[Event], now: Seconds) -> None:
        """Take several things that happened at one instant; each may go either way."""
        transitions = self._transitions
        came: list[_Came] = []
        for event in events:
            if type(event) is Submitted:
                entered = self._enter(event.spec, now) if self.calm else None
                if entered is not None:
                    came.append(entered)
                else:
                    self._let_wait(came, now)
                    self._submit_plainly(event)
            else:
                self._let_wait(came, now)
                if self.calm and self._moves.finish(cast(Finished, event), now):
                    transitions.changed = True
                else:
                    self._finish_plainly(cast(Finished, event))
        if self._start_all(came, now) if came else self.calm and not self._queue.entries:
            transitions.changed = False
        else:
            self._pass_plainly(now)

    # ------------------------------------------------------------------------------ come
    def _submit(self, event: Submitted, now: Seconds, *, last: bool = True) -> bool:
        """Take a job in, and let it start or wait; False: a pass has still to be made."""
        entered = self._enter(event.spec, now)
        if entered is None:
            self._submit_plainly(event)
            return False
        return self._start_all([entered], now)

    def _enter(self, spec: JobSpec, now: Seconds) -> _Came | None:
        """Take a job in that neither stands in the queue yet nor was tried; None: it is not plain, nothing was done.

        :returns: it, with the place that it would have in the queue.
        """
        ledger, entrances = self._ledger, self._entrances
        names = spec.partitions, spec.qos
        entrance = entrances[names] if names in entrances else self._find_entrance(spec)
        if entrance is None or spec.id in ledger.jobs or not comes_plainly(spec):
            return None
        submission = self._submission
        draft = self._draft(spec, entrance.partitions, entrance.qos, entrance.limit, now)
        limit, size = draft.time_limit, draft.size
        draft.__class__ = Job
        job: Job = draft
        least, most, longest = entrance.bounds or entrance.find_bounds(job)
        if (
            not least <= size <= most
            or (longest is not None and limit is not None and limit > longest)
            or (self._limited is not None and self._limited(job))
            or (rank := self._queue.rank_of(job)) is None
            or (self._deeds is not None and self._reports.has_ended(spec.id))
            or not self._is_possible(job)
        ):
            return None
        submission.last_index += 1
        priorities = self._priorities
        if priorities.by_turn:
            priority = priorities.lowest
            priorities.lowest -= 1
        else:
            priority = priorities.first(job)
        object.__setattr__(job, "priority", priority)
        ledger.jobs[job.id] = job
        if self._shared.books.kept:
            self._shared.books.came(job)
        self._shared.record.entered(job, now)
        return self._queue.key_of(job, entrance.partition, rank), job

    def _start_all(self, came: list[_Came], now: Seconds) -> bool:
        """Start jobs that have just come; False: some of them wait now, so that a pass has to be made."""
        queue = self._queue
        if queue.entries:
            return self._start_beside(came, now)
        passed = self._passed
        if passed is None:
            self._let_wait(came, now)
            return False
        ledger, moves = self._ledger, self._shared
        first = came[0][1]
        for _, job in came if len(came) < 2 else sorted(came):  # places differ, so jobs are never compared
            found = moves.look(job, job.partition.nodes)
            if not isinstance(found, Placement) or found.alternative:
                self._let_wait(came, now)
                return False
            if job is not first:
                ledger.reasons += 1  # it waited for others, if not for long
            moves.start(job, found, now)
        ledger.searches = 0
        self._transitions.left_nodes = False
        passed()
        return True

    def _start_beside(self, came: list[_Came], now: Seconds) -> bool:
        """Do so where others wait already."""
        beside = self._beside
        if beside is None or not beside.begins([key for key, _ in came]):
            self._let_wait(came, now)
            return False
        ledger, moves = self._ledger, self._shared
        for key, job in sorted(came) if len(came) > 1 and beside.in_order else came:
            nodes = beside.nodes_for(job, key, now)
            found = moves.look(job, nodes) if nodes else None
            if not isinstance(found, Placement) or found.alternative:
                self._let_wait(came, now)
                return False
            ledger.reasons += 1
            moves.start(job, found, now)
            beside.started()
        ledger.searches = 0
        self._transitions.left_nodes = False
        self._transitions.changed = not beside.ends()
        return not self._transitions.changed

    def _let_wait(self, came: list[_Came], now: Seconds) -> None:
        """Let jobs wait for a pass that have just come."""
        queue, behind = self._queue, False
        for _, job in came:
            if job.state is _PENDING:
                queue.add(job, now)
                if behind and job.reason != "Priority":
                    self._ledger.wait_for(job, "Priority")  # it came behind some that have started by now
            behind = True
        came.clear()
        self._transitions.changed = True

    def _find_entrance(self, spec: JobSpec) -> _Entrance | None:
        """Return the entrance for the partitions and the service class of a job; None: it is not that simple."""
        partitions, problem = self._submission.partitions_of(spec)
        partition = partitions[0]
        qos = None
        if spec.qos is not None:
            cluster = self._ledger.cluster
            qos = cluster.qos_named(spec.qos)
            if qos is None and cluster.qos:
                problem = "there is no such class"
        open_to_all = partition.up and partition.accepts and not partition.exclusive_user
        found = None
        if not problem and len(partitions) == 1 and open_to_all:
            found = _Entrance(partitions, qos)
        self._entrances[spec.partitions, spec.qos] = found
        return found


class _Entrance:
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
        self.bounds = bounds_of(job, self.partition)
        return self.bounds


def shared_express_of(
    parts: Parts, endings: Endings, rhythm: Rhythm, handle: Callable[[Event], None]
) -> Express | None:
    """Return the short way for a run in which jobs share nodes; None: there is none."""
    if not hasattr(parts.selector, "place_now") or not is_plain(parts, rhythm):
        return None
    return SharedExpress(parts, endings, rhythm, handle)


__all__ = ["SharedExpress", "shared_express_of"]

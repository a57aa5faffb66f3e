"""Try plain jobs that share nodes in passes with few calls: they start, or are known to wait.

`Placer` says what an attempt comes to; it makes all others, those too in which somebody might make way.
"""

from __future__ import annotations

from makeway import licences
from makeway.model import Blocked, Exclusive, Job, Placement
from makeway_engine.express_shared_moves import SharedMoves
from makeway_engine.parts import Parts
from makeway_engine.placing import Outcome, Question
from makeway_engine.placing.question import outcome_of

_USER = Exclusive.USER
_STARTED = Outcome.STARTED
_BUSY = Outcome.BUSY
_NO_ROOM = Blocked().reason


class SharedTries:
    """Attempts of one run that nobody takes note of."""

    def __init__(self, parts: Parts, moves: SharedMoves) -> None:
        self._moves = moves
        self._ledger = parts.ledger
        self._placer = placer = parts.placer
        limited = placer.rulings.limited
        self._limited = None if limited is licences.wants else limited
        """Says which jobs a limit is about; None: only those that ask for licences."""
        self._kept = placer.kept
        self._order = placer.order
        self._foresight = placer.foresight
        self._screen = parts.selector.screen

    def quick(self, question: Question) -> Outcome | None:
        """Return what an attempt comes to; None: it takes more to say, and nothing was done yet."""
        job, partition, allowed, preempt, limits, _, _ = question
        spec, ledger, placer = job.spec, self._ledger, self._placer
        if (
            job.partition is not partition
            or not limits
            or spec.het_id is not None
            or spec.licenses
            or job.required
            or spec.exclusive is _USER
            or partition.exclusive_user
            or ledger.anyone_exclusive
            or placer.beyond
            or self._kept.claims
            or (self._limited is not None and self._limited(job))
        ):
            return None
        if (
            preempt
            and job.reason == _NO_ROOM
            and not self._screen((job,), ledger.up & ~ledger.completing if ledger.completing else ledger.up)
        ):
            return _BUSY if self._waits(job, preempt=preempt) else None
        found = self._moves.look(job, allowed & partition.nodes)
        if isinstance(found, Placement):
            if found.alternative:
                return None
            self._moves.start_waiting(job, found)
            return _STARTED
        if found.never or found.ask_again_at is not None or not self._waits(job, preempt=preempt):
            return None
        ledger.wait_for(job, found.reason)
        return outcome_of(found)

    def waits(self, job: Job) -> bool:
        """Whether an attempt comes to nothing for a job that found no room before, and for which there is still none.

        False: it takes more to say.
        """
        spec, placer = job.spec, self._placer
        if (
            spec.het_id is not None
            or spec.licenses
            or job.required
            or spec.exclusive is _USER
            or job.partition.exclusive_user
            or self._ledger.anyone_exclusive
            or placer.forgives
            or placer.beyond
            or self._kept.claims
            or (self._limited is not None and self._limited(job))
        ):
            return False
        return self._waits(job, preempt=True)

    def _waits(self, job: Job, *, preempt: bool) -> bool:
        """Whether nobody would make way for a job that finds no room."""
        if not (preempt and self._placer.preemption) or self._order.nobody(job):
            return True
        if self._foresight.knows(job):
            self._ledger.searches += 1
            return True
        return False


__all__ = ["SharedTries"]

"""Try plain jobs that have just come before they stand in the queue, though others wait there.

Each scheduler says in its passes when those who come are tried by themselves, and on which nodes: `Strict`, `Easy` and
`Greedy` say what such a pass comes to. Whoever does not start is left to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from makeway.bitmap import NodeBits
from makeway.model import Job, Seconds
from makeway_engine.entries import Key
from makeway_engine.parts import Parts
from makeway_engine.schedulers import Schedulers


class Beside(Protocol):
    """What a scheduler says of those who come while others wait."""

    in_order: bool
    """Whether they are tried in the order of the queue; else as they came."""

    def begins(self, keys: Sequence[Key]) -> bool:
        """Whether those who come, with these places in the queue, may be tried by themselves at this moment."""

    def nodes_for(self, job: Job, key: Key, now: Seconds) -> NodeBits:
        """Return the nodes on which one of them may start; none: a pass has to say."""

    def started(self) -> None:
        """The last one has started."""

    def ends(self) -> bool:
        """Whether nobody else need be tried, all of them having started."""


class BesideGreedy:
    """Nobody's start makes room for another, so those who come are tried alone if nothing was given back."""

    in_order = True

    def __init__(self, schedulers: Schedulers, parts: Parts) -> None:
        self._greedy = schedulers.greedy
        self._queue = parts.queue

    def begins(self, keys: Sequence[Key]) -> bool:
        """Whether all who wait have been tried in vain since anything was given back."""
        del keys
        return self._greedy.is_settled and not self._queue.arrivals

    def nodes_for(self, job: Job, key: Key, now: Seconds) -> NodeBits:
        """Return all nodes of its partition."""
        del key, now
        return job.partition.nodes

    def started(self) -> None:
        """Nothing follows from it."""

    def ends(self) -> bool:
        """Whether nobody else need be tried: nobody does."""
        return True


class BesideEasy:
    """Those who come before all others are tried first; one behind the first may start if it is not in its way."""

    in_order = True

    def __init__(self, schedulers: Schedulers, parts: Parts) -> None:
        self._easy = schedulers.easy
        self._attempts = schedulers.attempts
        self._queue = parts.queue
        self._ledger = parts.ledger
        self._glance = parts.placer.glance.among
        self._first: Key | None = None
        """Place of the first one in the queue, if somebody comes before it."""

    def begins(self, keys: Sequence[Key]) -> bool:
        """Whether some of them come before all others, or the only one behind the first while its reservation holds."""
        queue, reserved = self._queue, self._easy.reserved
        if queue.arrivals:
            return False
        first = queue.entries[0][0]
        if min(keys) < first:
            self._first = first
            return True
        self._first = None
        return (
            len(keys) == 1
            and reserved is not None
            and reserved.entry[0] < keys[0]
            and not self._attempts.again
            and reserved.holds(self._ledger)
            and self._easy.is_admitted(reserved)
        )

    def nodes_for(self, job: Job, key: Key, now: Seconds) -> NodeBits:
        """Return the nodes of its partition, less those kept for the first one if it outlasts its start."""
        if self._first is not None:
            return job.partition.nodes if key < self._first else 0
        easy, reserved = self._easy, self._easy.reserved
        if reserved is None or not self._glance((job,)):
            return 0
        if not reserved.settled:
            easy.settle(reserved)
        forecast = reserved.forecast
        if forecast is None:
            return job.partition.nodes
        if reserved.spare is not None:
            return 0
        limit = job.time_limit
        if limit is not None and now + limit <= reserved.shadow(self._ledger):
            return job.partition.nodes
        if not self._glance((job,), forecast.nodes):
            return 0
        return job.partition.nodes & ~forecast.nodes

    def started(self) -> None:
        """Let the reservation hold on."""
        if self._first is None and self._easy.reserved is not None:
            self._easy.reserved.passed_by(self._ledger)

    def ends(self) -> bool:
        """Whether nobody else need be tried: the first one makes another reservation if others came before it."""
        return self._first is None


class BesideStrict:
    """Those who come before whoever closed their partition may start; all others wait on."""

    in_order = True

    def __init__(self, schedulers: Schedulers, parts: Parts) -> None:
        self._settled = schedulers.strict.settled
        self._queue = parts.queue
        self._depth = parts.clockwork.default_queue_depth

    def begins(self, keys: Sequence[Key]) -> bool:
        """Whether it is known who closed which partition."""
        settled, queue = self._settled, self._queue
        return (
            settled is not None
            and settled.holds()
            and not queue.arrivals
            and self._depth >= len(queue.entries) + len(keys)
        )

    def nodes_for(self, job: Job, key: Key, now: Seconds) -> NodeBits:
        """Return the nodes that nobody before it has closed."""
        del now
        assert self._settled is not None
        return self._settled.nodes_before(job.partition, key)

    def started(self) -> None:
        """Nothing follows from it."""

    def ends(self) -> bool:
        """Whether those who closed their partitions wait on."""
        assert self._settled is not None
        return self._settled.all_wait_on()


def beside_of(parts: Parts, kind: str) -> Beside | None:
    """Return what the scheduler of a run says of those who come while others wait; None: passes have to say."""
    schedulers = parts.schedulers
    attempts = schedulers.attempts
    if attempts.turns or attempts.raw or parts.recorder.traced is not None:
        return None
    if kind == "greedy":
        return BesideGreedy(schedulers, parts) if schedulers.greedy.tries_alone else None
    if kind == "easy":
        return BesideEasy(schedulers, parts)
    return BesideStrict(schedulers, parts) if kind == "builtin" else None


__all__ = ["Beside", "beside_of"]

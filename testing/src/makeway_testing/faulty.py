"""A world that hurts: late, early, lost, repeated and reordered, with refusals, half-done deeds and failing nodes.

`FaultyWorld` runs jobs as the simulated world does, at the pace of a clock that a test moves, and lets go wrong what
`Faults` says, by a seed. It knows the truth and keeps watch: a job that is started twice in one incarnation, or beside
itself, or on cores where another runs, is listed in `FaultyWorld.wrongs`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import attrs

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.model import Allocation, Job, JobState, Seconds
from makeway.worlds.api import Moment, Seen, Survey
from makeway.worlds.clock import FakeClock
from makeway.worlds.events import (
    Action,
    Event,
    Failed,
    Finished,
    Kill,
    NodesDown,
    NodesUp,
    Performed,
    Resume,
    Start,
    Started,
    Suspend,
)
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.deeds import overlap

_SHOWN: dict[type[Action], JobState] = {
    Start: JobState.PENDING,
    Kill: JobState.COMPLETING,
    Suspend: JobState.SUSPENDED,
    Resume: JobState.RUNNING,
}
"""How a survey shows a job with an action under way."""


@attrs.frozen(kw_only=True)
class Faults:
    """How often what goes wrong; numbers from 0 to 1 are probabilities."""

    early: float = 0.1
    """`wait` returns before anything is due."""
    late: float = 0.3
    """`wait` returns after what was due, by up to `latest`."""
    latest: Seconds = 0.5
    lost: float = 0.05
    """An event is never delivered; a survey shows what it would have told."""
    repeated: float = 0.1
    delayed: float = 0.1
    """An event, or its repetition, comes later by up to `slowest`, and so out of order."""
    slow: float = 0.2
    """An action is performed later by up to `slowest`."""
    slowest: Seconds = 5.0
    refused: float = 0.1
    """An action is not performed, and reported as failed."""
    half: float = 0.05
    """An action is begun, undone, and reported as failed."""
    node: float = 0.01
    """A node fails while the engine waits; it comes back after up to `outage`."""
    outage: Seconds = 60.0
    confirmed: float = 0.5
    """A success is reported, with the real instant of a start."""
    until: Seconds = 2_000.0
    """From then on nothing goes wrong, so that runs come to an end."""


NONE = Faults(
    early=0.0,
    late=0.0,
    lost=0.0,
    repeated=0.0,
    delayed=0.0,
    slow=0.0,
    refused=0.0,
    half=0.0,
    node=0.0,
    confirmed=0.0,
)


class FaultyWorld:
    """The simulated world, seen through all that goes wrong between it and the engine."""

    def __init__(
        self,
        nodes: int,
        clockwork: Clockwork,
        clock: FakeClock,
        *,
        seed: int = 0,
        faults: Faults | None = None,
        may_overlap: Callable[[Job, Job], bool] = lambda one, other: False,
    ) -> None:
        """Begin with nothing running on `nodes` nodes.

        :param may_overlap: whether two jobs may run on the same cores at a time.
        """
        self.clock = clock
        self.wrongs: list[str] = []
        """What may never happen and did."""
        self.counts: Counter[str] = Counter()
        """What went wrong on purpose, by name."""
        self._inner = SimulatedWorld((), clockwork)
        self._nodes = nodes
        self._rng = Random(seed)
        self._faults = faults or Faults()
        self._may_overlap = may_overlap
        self._heap: list[tuple[Seconds, int, Event | Action | _Undoing]] = []
        """What is under way in the daemon: lost when it crashes."""
        self._order = 0
        self._outbox: list[Event] = []
        self._known: set[int] = set()
        """Serials of actions that were asked for; those under way are forgotten in a crash."""
        self._under_way: dict[int, Action] = {}
        self._failed: set[int] = set()
        self._ready: dict[str, Seconds] = {}
        """When the last action about a job is performed: later ones are not performed before."""
        self._started: Counter[tuple[str, int]] = Counter()
        self._refused: set[tuple[str, int]] = set()
        self._place: dict[tuple[str, int], tuple[Job, Allocation]] = {}
        self._ended: dict[str, tuple[int, JobState]] = {}
        self.down: NodeBits = 0
        self._back: list[tuple[Seconds, NodeBits]] = []

    # ------------------------------------------------------------------------------ fates
    def _strikes(self, fault: str) -> bool:
        """Whether something goes wrong this time."""
        if self.clock.now() >= self._faults.until or self._rng.random() >= getattr(self._faults, fault):
            return False
        self.counts[fault] += 1
        return True

    def _later(self) -> Seconds:
        return self._rng.random() * self._faults.slowest

    def _push(self, at: Seconds, what: Event | Action | _Undoing) -> None:
        self._order += 1
        heapq.heappush(self._heap, (at, self._order, what))

    def _send(self, event: Event, at: Seconds) -> None:
        """Let an event be delivered, once, twice, late or never."""
        if not self._strikes("lost"):
            self._push(at + (self._later() if self._strikes("delayed") else 0.0), event)
        if self._strikes("repeated"):
            self._push(at + self._later(), event)

    # ---------------------------------------------------------------------------- performing
    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Begin `actions`; what was asked for before is not done again."""
        now = max(now, self.clock.now())  # after a crash they are of an earlier instant
        for action in actions:
            if action.serial in self._known:
                continue
            self._known.add(action.serial)
            self._under_way[action.serial] = action
            at = now + (self._later() if self._strikes("slow") else 0.0)
            at = self._ready[action.job.id] = max(at, self._ready.get(action.job.id, 0.0))
            self._push(at, action)
        self._advance(now)

    def _do(self, action: Action, at: Seconds) -> None:
        """Perform an action, or not."""
        waits_for = [serial for serial in action.after if serial in self._under_way]
        if waits_for:
            at = max(self._ready[self._under_way[serial].job.id] for serial in waits_for)
            self._ready[action.job.id] = max(at, self._ready[action.job.id])
            self._push(at, action)
        elif self._failed.intersection(action.after):
            self._fail(action, at, "it rests on an action that failed")
        elif self._on_down_nodes(action):
            self._fail(action, at, "a node is down", self.down & _nodes_of(action))
        elif isinstance(action, Suspend) and self._stands_still(action):
            self._settle(action, at)
        elif self._strikes("refused"):
            self._fail(action, at, "refused")
        elif self._strikes("half"):
            self._begin(action, at)
            later = at + self._later()
            self._ready[action.job.id] = max(later, self._ready[action.job.id])
            self._push(later, _Undoing(action))
        else:
            self._begin(action, at)
            self._settle(action, at)

    def _stands_still(self, action: Action) -> bool:
        process = self._inner.processes.get(action.job.id)
        return process is not None and process.running_since is None

    def _on_down_nodes(self, action: Action) -> bool:
        return isinstance(action, Start) and bool(self.down & _nodes_of(action))

    def _begin(self, action: Action, at: Seconds) -> None:
        key = action.job.id, action.incarnation
        if isinstance(action, Start):
            self._started[key] += 1
            place = action.allocation or action.job.allocation
            assert place is not None
            self._place[key] = action.job, place
            self._watch_start(action)
        self._inner.perform([action], at)
        if isinstance(action, Start | Resume):
            self._watch_cores(action)

    def _settle(self, action: Action, at: Seconds) -> None:
        self._under_way.pop(action.serial, None)
        if self._faults.confirmed and self._rng.random() < self._faults.confirmed:
            self._send(Performed(action.serial), at)
            if isinstance(action, Start):
                self._send(Started(action.job.id, action.incarnation, at), at)

    def _fail(self, action: Action, at: Seconds, why: str, nodes: NodeBits = 0) -> None:
        self._under_way.pop(action.serial, None)
        self._failed.add(action.serial)
        if isinstance(action, Start):
            self._refused.add((action.job.id, action.incarnation))
        self._send(Failed(action.serial, why, True, nodes), at)

    def _undo(self, action: Action, at: Seconds) -> None:
        """Take back what was begun."""
        if isinstance(action, Start):
            if not self._runs(action.job.id, action.incarnation):
                self._settle(action, at)  # it has ended meanwhile
                return
            self._drop(action.job.id)
        elif isinstance(action, Suspend):
            self._inner.perform([Resume(action.job, 0, action.incarnation)], at)
        elif isinstance(action, Resume):
            self._inner.perform([Suspend(action.job, "", 0, action.incarnation)], at)
        self._fail(action, at, "half done, and undone")

    def _runs(self, job_id: str, incarnation: int) -> bool:
        process = self._inner.processes.get(job_id)
        return process is not None and process.incarnation == incarnation

    def _drop(self, job_id: str) -> None:
        """Let a process vanish."""
        self._inner.processes.pop(job_id).serial = -1

    # -------------------------------------------------------------------------------- watching
    def _watch_start(self, action: Start) -> None:
        job_id, key = action.job.id, (action.job.id, action.incarnation)
        if self._started[key] > 1:
            self.wrongs.append(f"job {job_id} was started twice in incarnation {action.incarnation}")
        if job_id in self._inner.processes:
            self.wrongs.append(f"job {job_id} was started while it ran")
        ended = self._ended.get(job_id)
        if ended is not None and ended[0] >= action.incarnation:
            self.wrongs.append(f"job {job_id} was started again after its end")

    def _watch_cores(self, action: Action) -> None:
        mine = self._place.get((action.job.id, action.incarnation))
        process = self._inner.processes.get(action.job.id)
        if mine is None or process is None or process.running_since is None or self._is_to_stop(action):
            return
        for job_id, other in self._inner.processes.items():
            its = self._place.get((job_id, other.incarnation))
            if job_id == action.job.id or its is None or other.running_since is None:
                continue
            if overlap(mine[1], its[1]) and not self._may_overlap(mine[0], its[0]):
                self.wrongs.append(f"jobs {action.job.id} and {job_id} run on the same cores")

    def _is_to_stop(self, action: Action) -> bool:
        """Whether a job that begins is to be stopped at once: it waits for its turn."""
        return any(
            isinstance(other, Suspend) and other.job.id == action.job.id and other.serial > action.serial
            for other in self._under_way.values()
        )

    # --------------------------------------------------------------------------------- waiting
    def wait(self, until: Seconds | None) -> Moment:
        """Wait as a computer does: too long, too short, or woken by a node that fails."""
        now = self.clock.now()
        target = self._inner.next_at() if until is None else min(until, self._inner.next_at())
        if self._heap:
            target = min(target, self._heap[0][0])
        if self._back:
            target = min(target, self._back[0][0])
        target = max(target, now)
        if target > now and self._strikes("early"):
            self.clock.wait(now + (target - now) * self._rng.random())
            return self.clock.now(), ()
        if self._strikes("late"):
            target += self._faults.latest * self._rng.random()
        self.clock.wait(target)
        self._fail_nodes()
        self._advance(self.clock.now())
        events, self._outbox = self._outbox, []
        if self._strikes("delayed"):
            self._rng.shuffle(events)
        return self.clock.now(), events

    def _advance(self, now: Seconds) -> None:
        """Let everything happen that is due by `now`."""
        while True:
            mine = self._heap[0][0] if self._heap else float("inf")
            its = self._inner.next_at()
            if min(mine, its) > now:
                break
            if its <= mine:
                self._hear(its)
                continue
            at, _, what = heapq.heappop(self._heap)
            if isinstance(what, Action):
                self._do(what, at)
            elif isinstance(what, _Undoing):
                self._undo(what.action, at)
            else:
                self._outbox.append(what)

    def _hear(self, at: Seconds) -> None:
        found = self._inner.wait(at)
        for event in found[1] if found is not None else ():
            if isinstance(event, Finished):
                self._ended[event.job_id] = event.incarnation, event.state
            self._send(event, at)

    def _fail_nodes(self) -> None:
        now = self.clock.now()
        while self._back and self._back[0][0] <= now:
            _, nodes = heapq.heappop(self._back)
            self.down &= ~nodes
            self._send(NodesUp(nodes), now)
        if not self._strikes("node"):
            return
        node: NodeBits = 1 << self._rng.randrange(self._nodes)
        if node & self.down:
            return
        self.down |= node
        heapq.heappush(self._back, (now + self._rng.random() * self._faults.outage, node))
        for job_id, process in list(self._inner.processes.items()):
            place = self._place.get((job_id, process.incarnation))
            if place is not None and place[1].nodes & node:
                self._drop(job_id)
        self._send(NodesDown(node), now)

    # --------------------------------------------------------------------------------- survey
    def survey(self) -> Survey:
        """Look at what is really there."""
        found = self._inner.survey()
        jobs = {job_id: self._told(seen) for job_id, seen in found.jobs.items()}
        for job_id, (incarnation, state) in self._ended.items():
            if job_id not in jobs:
                jobs[job_id] = Seen(job_id=job_id, state=state, incarnation=incarnation)
        for serial in sorted(self._under_way):
            action = self._under_way[serial]
            there = jobs.get(action.job.id)
            known = there is not None and there.incarnation == action.incarnation and not there.state.ended
            if type(action) in _SHOWN and (known or isinstance(action, Start)):
                shown = _SHOWN[type(action)]
                jobs[action.job.id] = Seen(job_id=action.job.id, state=shown, incarnation=action.incarnation)
        return Survey(
            at=self.clock.now(), jobs=jobs, nodes_down=self.down, never_started=frozenset(self._refused)
        )

    def _told(self, seen: Seen) -> Seen:
        place = self._place.get((seen.job_id, seen.incarnation))
        ended = self._ended.get(seen.job_id)
        by_itself = seen.state is JobState.COMPLETING and ended is not None and ended[0] == seen.incarnation
        return attrs.evolve(
            seen,
            nodes=place[1].nodes if place is not None else 0,
            ends_as=ended[1] if ended is not None and by_itself else None,
        )

    # --------------------------------------------------------------------------------- crashing
    def crash(self) -> None:
        """Forget all that only the daemon knew: events on their way, and actions that were not begun."""
        begun = {what.action.serial for _, _, what in self._heap if isinstance(what, _Undoing)}
        for _, _, what in sorted(self._heap, key=lambda each: each[:2]):
            if isinstance(what, _Undoing):
                self._undo(what.action, self.clock.now())  # what was half done is found half done, and undone
        for serial in self._under_way.keys() - begun:
            self._known.discard(serial)
        self._under_way.clear()
        self._heap.clear()
        self._outbox.clear()
        self._ready.clear()


@attrs.frozen
class _Undoing:
    """An action that was begun and is to be taken back."""

    action: Action


def _nodes_of(action: Action) -> NodeBits:
    place = action.allocation if isinstance(action, Start) else None
    return place.nodes if place is not None else 0

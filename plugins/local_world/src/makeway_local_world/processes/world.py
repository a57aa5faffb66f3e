"""The world of this machine's processes, as the engine sees it.

It keeps what the engine was told apart from what has happened since: a survey shows what was told, and asks for a
fresh look, whose findings come as events.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem
from makeway.model import Cluster, JobState, Seconds
from makeway.worlds.api import Moment, Seen, State, Survey
from makeway.worlds.events import (
    Action,
    BegunAnew,
    Checkpoint,
    Checkpointed,
    Cleaned,
    Command,
    Event,
    Failed,
    Finished,
    Kill,
    NodesQuiet,
    NodesUsed,
    Noticed,
    Obstructed,
    Performed,
    Resume,
    Start,
    Started,
    Suspend,
)
from makeway_local_world.processes import news
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.ends import End, end_of_plain
from makeway_local_world.processes.gpus import Inventory, Nvidia
from makeway_local_world.processes.hand import Hand
from makeway_local_world.processes.news import News, OfJob
from makeway_local_world.processes.presence import Presence, Source
from makeway_local_world.processes.rundir import Fate, Found, Key, RunDirectory, unsuitable
from makeway_local_world.processes.settings import Settings
from makeway_local_world.processes.site import Site

_WITH_MORE = 0.02
"""Seconds for which the engine is not woken by a start that has come about: it decided on it, and nothing follows."""


@attrs.define
class Told:
    """How the engine believes a job to stand."""

    incarnation: int
    state: JobState
    last_serial: int = 0
    """Of the last action about it."""
    killed: bool = False
    """Whether the engine asked for its end."""
    started_at: Seconds | None = None
    nodes: int = 0


class LocalWorld:
    """Runs jobs as processes of this machine; see `makeway.worlds.api.World`."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings | None,
        state: State,
        inventory: Inventory | None = None,
        sources: Mapping[str, Source] | None = None,
    ) -> None:
        """Take over what an earlier daemon left in the state directory.

        :param inventory: the GPUs; None: as NVIDIA's library shows them.
        :param sources: what shows that a person uses this machine; None: what there is of it.
        :raises ConfigError: the state directory is on a file system without locks.
        """
        why = unsuitable(state.directory)
        if why:
            raise ConfigError("config", [Problem("world.state", why)])
        self._clock = state.clock
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self.site = Site(cluster, settings or Settings(), state, inventory or Nvidia.find())
        self._hand = Hand(self.site, self._tell)
        self._told: dict[str, Told] = {}
        self._never: set[Key] = set()
        self._reported: list[Key] = []
        """Incarnations whose end the last `wait` reported; the journal has them once the next one is called."""
        self._found_ended: list[Key] = []
        self._surveyed = False
        self._find()
        self.presence = Presence(self._hand, cluster.partitions, sources, inventory)
        self._hand.begin()
        self._hand.do(self.presence.begin)

    # ------------------------------------------------------------------------------ beginning
    def _find(self) -> None:
        """See what is there from before."""
        found = self._hand.finding.find()
        latest = {look.key[0]: look.key[1] for look, _ in sorted(found, key=lambda each: each[0].key[1])}
        for look, case in found:
            job_id, incarnation = look.key
            if look.exit is not None:
                self._hand.ends[look.key] = look.exit
            if incarnation != latest[job_id]:
                if case is None:
                    self._reported.append(look.key)  # a later one began, so its end is in the journal
                continue
            self._find_one(look, case)

    def _find_one(self, look: Found, case: Case | None) -> None:
        job_id, incarnation = look.key
        if look.fate in (Fate.ENDED, Fate.LOST):
            self._hand.finding.saves(look.key, RunDirectory(self.site.directory, look.key))
        if case is not None:
            state = JobState.SUSPENDED if case.state == "stopped" else JobState.RUNNING
            if case.killed:
                state = JobState.COMPLETING
            self._told[job_id] = Told(incarnation, state, killed=case.killed)
            if case.obstacle:
                self._tell(news.Hindered(look.key, case.obstacle))
        elif look.fate is Fate.NEVER:
            self._never.add(look.key)
        elif look.fate is Fate.ENDED and look.exit is not None:
            end, became = end_of_plain(look.exit), self._hand.finding.what_became_of(look)
            if end.failed:  # it never ran: the same incarnation may be tried again
                self._never.add(look.key)
                self._hand.forget([look.key])
            elif isinstance(became, news.Lost):
                self._told[job_id] = Told(incarnation, JobState.RUNNING)
                self._tell(became)
            else:
                self._told[job_id] = Told(incarnation, end.state)
                self._found_ended.append(look.key)
        else:
            why, rule = self._hand.finding.lose(look)
            self._told[job_id] = Told(incarnation, JobState.RUNNING)
            self._tell(news.Lost(look.key, why, rule))

    # ----------------------------------------------------------------------------- performing
    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Begin `actions`; the thread goes on with them."""
        del now
        for action in actions:
            self._note(action)
        self._hand.order(list(actions))

    def _note(self, action: Action) -> None:
        job_id = action.job.id
        told = self._told.get(job_id)
        if isinstance(action, Start):
            self._never.discard((job_id, action.incarnation))
            if told is None or told.incarnation != action.incarnation:
                state = JobState.SUSPENDED if action.stopped else JobState.RUNNING
                place = action.allocation or action.job.allocation
                told = Told(action.incarnation, state, nodes=place.nodes if place is not None else 0)
                self._told[job_id] = told
        if told is None or told.incarnation != action.incarnation:
            if isinstance(action, Kill):
                self._told[job_id] = Told(action.incarnation, JobState.COMPLETING, action.serial, killed=True)
            return
        if action.serial <= told.last_serial:
            return  # told again
        told.last_serial = action.serial
        if isinstance(action, Kill):
            told.killed, told.state = True, JobState.COMPLETING
        elif told.killed or told.state.ended:
            return
        elif isinstance(action, Suspend):
            told.state = JobState.SUSPENDED
        elif isinstance(action, Resume):
            told.state = JobState.RUNNING

    # -------------------------------------------------------------------------------- waiting
    def _tell(self, piece: News) -> None:
        """Take a piece of news; called from the thread of the hand."""
        self._news.put(piece)
        if isinstance(piece, news.Began):
            self._hand.later(_WITH_MORE, self._clock.wake)
        else:
            self._clock.wake()

    def wake(self) -> None:
        """Make a `wait` that is under way return; called from any thread."""
        self._clock.wake()

    def wait(self, until: Seconds | None) -> Moment:
        """Wait for news, until `until` if there is none."""
        self._forget_what_is_written()
        events = self._events()
        if not events and (until is None or until > self._clock.now()):
            self._clock.wait(until)
            events = self._events()
        return self._clock.now(), events

    def _forget_what_is_written(self) -> None:
        """Take away ended incarnations: an engine that waits again has written down what was reported before."""
        keys, self._reported = self._reported, []
        if self._surveyed:
            self._reported += self._found_ended
            self._found_ended, self._surveyed = [], False
        if not keys:
            return
        for job_id, incarnation in keys:
            told = self._told.get(job_id)
            if told is not None and told.incarnation == incarnation and told.state.ended:
                del self._told[job_id]
            self._never.discard((job_id, incarnation))
        self._hand.do(lambda: self._hand.sweep(keys))

    def _events(self) -> list[Event]:
        events: list[Event] = []
        while True:
            try:
                piece = self._news.get_nowait()
            except queue.Empty:
                return events
            events += self._use(piece) if isinstance(piece, news.Use) else self._event_of(piece)

    def _use(self, piece: news.Use) -> list[Event]:
        partition = self.site.cluster.partition(piece.partition)
        assert partition is not None  # it is the cluster's own
        if piece.used:
            return [NodesUsed(partition.nodes, piece.partition, piece.why)]
        return [NodesQuiet(partition.nodes, piece.partition)]

    def _event_of(self, piece: OfJob) -> list[Event]:
        """Return what a piece of news means to the engine, after all that it has decided since."""
        job_id, incarnation = piece.key
        told = self._told.get(job_id)
        if told is None or told.incarnation != incarnation:
            return []
        if isinstance(piece, news.Refused):
            return self._refused(piece, told)
        if isinstance(piece, news.Over):
            return self._over(piece.key, piece.end, told)
        if isinstance(piece, news.Lost):
            return self._lost(piece, told)
        if told.killed:
            return []  # it is leaving: nothing else matters
        if isinstance(piece, news.Began):
            told.started_at = piece.at
            return [Started(job_id, incarnation, piece.at, piece.obstacle)]
        if isinstance(piece, news.Done):
            return [Performed(piece.serial)] if 0 < piece.serial >= told.last_serial else []
        if isinstance(piece, news.Saved):
            return [Checkpointed(job_id, piece.work, incarnation)]
        if isinstance(piece, news.BegunAnew):
            return [BegunAnew(job_id, piece.why, incarnation)]
        if isinstance(piece, news.Hindered):
            return [Obstructed(job_id, piece.obstacle, incarnation)]
        if told.state is piece.state:
            return []
        told.state = piece.state
        return [Noticed(job_id, piece.state, incarnation, piece.by)]

    def _refused(self, piece: news.Refused, told: Told) -> list[Event]:
        action, job_id = piece.action, piece.key[0]
        if isinstance(action, Start):
            self._reported.append(piece.key)
        if isinstance(action, Start) and not told.killed:
            del self._told[job_id]
        elif isinstance(action, Suspend | Resume) and not told.killed:
            if action.serial < told.last_serial:
                return []  # the engine wants something else by now
            told.state = JobState.RUNNING if isinstance(action, Suspend) else JobState.SUSPENDED
        elif told.killed and not isinstance(action, Kill | Checkpoint):
            return []
        return [Failed(action.serial, piece.why, piece.retry)] if action.serial > 0 else []

    def _over(self, key: Key, end: End | None, told: Told) -> list[Event]:
        job_id, incarnation = key
        self._reported.append(key)
        del self._told[job_id]
        if told.killed:
            return [Cleaned(job_id, None, incarnation)]
        if end is None:
            return []
        return [Finished(job_id, end.state, True, incarnation)]

    def _lost(self, piece: news.Lost, told: Told) -> list[Event]:
        job_id, incarnation = piece.key
        self._reported.append(piece.key)
        del self._told[job_id]
        if told.killed:
            return [Cleaned(job_id, None, incarnation)]
        state = JobState.FAILED if piece.rule == "fail" else JobState.PENDING
        events: list[Event] = [Noticed(job_id, state, incarnation, piece.why)]
        if piece.rule == "hold":
            events.append(Command("hold", job_id))
        return events

    # -------------------------------------------------------------------------------- survey
    def survey(self) -> Survey:
        """Show what is there, as far as it was told; have a fresh look, whose findings come as events."""
        self._surveyed = True
        self._hand.do(self._hand.look_around)
        jobs = {
            job_id: Seen(
                job_id=job_id,
                state=told.state,
                incarnation=told.incarnation,
                nodes=told.nodes,
                started_at=told.started_at,
            )
            for job_id, told in self._told.items()
        }
        return Survey(
            at=self._clock.now(),
            jobs=jobs,
            complete=not self._hand.unreadable,
            never_started=frozenset(self._never),
        )

    # ---------------------------------------------------------------------------------- more
    def settled(self, limit: float) -> bool:
        """Wait until all actions have had their outcome, at most `limit` seconds of the computer's clock."""
        return self._hand.settled(limit)

    def limit(self, job_id: str, seconds: Seconds | None) -> None:
        """Warn a job ahead of another time limit than it had when it was started."""
        self._hand.do(lambda: self._hand.verbs.warn(job_id, seconds))

    def processes(self) -> dict[str, dict[str, Any]]:
        """Return what runs where, for people: keeper, GPUs and state by job."""
        return {
            key[0]: {"incarnation": key[1], "keeper": case.pid, "state": case.state, "gpus": list(case.gpus)}
            for key, case in list(self._hand.cases.items())
        }

    def gpus(self) -> list[dict[str, Any]]:
        """Return the GPUs that are there now, with their memory, and what is in use of it."""
        return [
            {
                "index": each.index,
                "uuid": each.uuid,
                "name": each.name,
                "memory_mb": each.memory_mb,
                "used_mb": each.used_mb,
            }
            for each in self.site.gpus.look()
        ]

    def gpus_of(self, job_id: str) -> list[dict[str, Any]]:
        """Return the GPUs that a job has, by index and UUID; an index is None where it is not known yet."""
        told = self._told.get(job_id)
        case = self._hand.cases.get((job_id, told.incarnation)) if told is not None else None
        if case is None or not case.gpus:
            return []
        found = self.site.gpus.named(case.gpus)
        if any(each["index"] is None for each in found):
            self.site.gpus.look()
            found = self.site.gpus.named(case.gpus)
        return found

    def stopped_by_a_signal(self, job_id: str) -> bool:
        """Whether a job runs for the engine, and was stopped by a signal all the same."""
        told = self._told.get(job_id)
        case = self._hand.cases.get((job_id, told.incarnation)) if told is not None else None
        return case is not None and case.stopped_by_others and case.state == "running"

    def close(self) -> None:
        """Let go; jobs go on."""
        self._hand.close()
        self.presence.close()
        self.site.cgroups.remove()

"""Make passes of EASY backfilling, as the literature has it.

The first blocked job gets a reservation: the instant at which it could start by the time limits of those that run,
and what it will take then. Later jobs may start if they do not delay it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Forecast, Job, JobState, Partition, Seconds
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.placing import Outcome, Question
from makeway_engine.queue import by_default, entry_of_plain, entry_to_plain
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.futile import NO_ROOM
from makeway_engine.schedulers.shapes import Heads, Shape, Shapes, glance

_GONE = (Outcome.STARTED, Outcome.LIMITED, Outcome.NEVER)
_PENDING = JobState.PENDING
_STARTED = Outcome.STARTED


class Easy:
    """EASY over one run's queue."""

    def __init__(self, attempts: Attempts, shapes: Shapes | None = None) -> None:
        """Be there for one run.

        :param shapes: knows its queue by shape; None: each pass goes through all of it.
        """
        self.shapes = shapes
        self.attempts = attempts
        self._ledger = attempts.ledger
        self._queue = attempts.queue
        self._placer = attempts.placer
        self.selector = attempts.placer.selector
        self._glance = attempts.placer.glance.among
        self.reserved: Reserved | None = None
        """Of the last pass; None: all started."""
        self._by_shape = attempts.placer.recorder.traced is None
        self._recorder = attempts.placer.recorder
        self._traces = self._recorder.traced is not None
        self._follow = self._follow_watched if self._traces else self.backfill
        policies = attempts.placer.policies
        others = policies.closes or any(map(policies.limits_say, ("reservations", "node_sets")))
        self._selector_decides = not (others or self._traces or attempts.placer.rulings.any_protected)
        """Whether the selector alone says if a job about which is no limit finds room."""
        self._tried: set[str] = set()
        """Ids of watched jobs that were tried behind the first one in this pass."""

    def run(self) -> None:
        """Make a pass."""
        attempts, reserved = self.attempts, self.reserved
        again, attempts.again = attempts.again, False
        arrivals = self._queue.take_arrivals()
        if reserved is not None and not again and reserved.holds(self._ledger) and self.is_admitted(reserved):
            if not arrivals:
                return
            if self._stays_first(reserved.entry, arrivals):
                self._follow(arrivals, reserved)
                return
        self.reserved = None
        live = not attempts.custom_order and not attempts.turns
        entries = self._queue.entries if live else attempts.ordered()
        at = 0
        while at < len(entries):
            entry = entries[at]
            outcome = attempts.try_entry(entry, holds_up=True)
            if outcome in _GONE:
                if at < len(entries) and entries[at] is entry:
                    at += 1  # the queue itself has lost the entry of a job that left it
                continue
            # Blocked, or waiting for its victims to leave: what comes free is kept for it.
            self.reserved = self._reserve(entry, outcome)
            if self._by_shape and live and self.shapes is not None and self.shapes.complete():
                self._backfill_by_shape(entry, self.reserved, self.shapes)
            else:
                self._follow(entries[at + 1 :], self.reserved)
            return

    def is_admitted(self, reserved: Reserved) -> bool:
        """Whether no limit keeps the reserved job out, to which a start beside it may have brought it."""
        if reserved.doubtful:
            _, job, partition = reserved.entry
            reserved.doubtful = self.attempts.is_limited(job, partition)
        return not reserved.doubtful

    def _stays_first(self, head: Entry, arrivals: Sequence[Entry]) -> bool:
        """Whether the reserved job comes before all that arrived, by the priority that it has now."""
        if not self.attempts.custom_order:
            _, job, partition = head
            return self._queue.place(job, partition) < min(arrivals)[0]
        return self.attempts.in_order(sorted([head, *arrivals], key=by_default))[0] is head

    def _reserve(self, entry: Entry, outcome: Outcome) -> Reserved:
        job, ledger = entry[1], self._ledger
        reserved = Reserved(entry, ledger)
        if job.asked_nodes and (outcome is Outcome.PREEMPTING or job.spec.het_id is not None):
            # Its victims are leaving: no job may take their nodes, nor the idle ones beside them.
            reserved.settle(Forecast(at=ledger.now, nodes=job.asked_nodes))
        return reserved

    def settle(self, reserved: Reserved) -> None:
        """Look ahead, now that a job might be in the way."""
        _, job, partition = reserved.entry
        ledger = self._ledger
        reserved.settle(self._placer.prober.forecast_between(job, partition.nodes & ledger.up))

    # --------------------------------------------------------------------------- what follows
    def _follow_watched(self, entries: Sequence[Entry], reserved: Reserved) -> None:
        """Let others start that do not delay the reserved job, and note why those that are watched do not."""
        self._tried.clear()
        self.backfill(entries, reserved)
        for _, job, partition in entries:
            if job.state is JobState.PENDING and job.id not in self._tried and self._recorder.traces(job):
                self._placer.telling.not_tried(job, partition, self._why_not(job, reserved))

    def _why_not(self, job: Job, reserved: Reserved) -> str:
        """Say why a job was not even tried: too few nodes, or they are kept for the first one."""
        ledger = self._ledger
        first = reserved.entry[1]
        text = "too few nodes are free"
        if self._glance((job,)) and reserved.forecast is not None:
            at = f"{reserved.shadow(ledger):,.0f} s"
            text = f"it might run longer than until {at}, when job {first.id} is to start, on nodes kept for that"
        behind = self._behind(first)
        return f"{text}; {behind}" if behind else text

    def _behind(self, first: Job) -> str:
        if not self._placer.preemption:
            return ""
        return f"under scheduler easy only job {first.id}, the first that waits, may have others make way"

    def backfill(self, entries: Sequence[Entry], reserved: Reserved) -> None:
        """Start those of `entries` that do not delay the reserved job."""
        if not entries:
            return
        kept = self._could_start([job for _, job, _ in entries], reserved)
        if not kept:
            return
        ledger, forecast = self._ledger, reserved.forecast
        eligible, promised = (forecast.eligible, forecast.nodes) if forecast is not None else (0, 0)
        now, shadow = ledger.now, reserved.shadow(ledger)
        places: dict[int, list[Partition]] | None = None
        left: set[int] | None = None
        """What could still start after the last start; None: none has started yet."""
        for at, job in enumerate(kept, 1):
            if left is not None and id(job) not in left:
                continue
            limit, spare = job.time_limit, reserved.spare
            long = limit is None or now + limit > shadow
            allowed = ledger.all_nodes & ~promised if long and spare is None else ledger.all_nodes
            partitions: Sequence[Partition] = (job.partition,)
            if len(job.partitions) > 1:
                places = places if places is not None else _places(entries)
                partitions = places.pop(id(job), ())
            for partition in partitions:
                if long and spare is not None and job.size > spare and not partition.nodes & ~eligible:
                    continue
                if job.state is _PENDING and self._start(job, partition, allowed, reserved):
                    reserved.passed_by(ledger)
                    if long and spare is not None:
                        reserved.spare = spare - bitmap.count(job.nodes & eligible)
                    rest = kept[at:]
                    left = set(map(id, self._could_start(rest, reserved))) if rest else set()

    def _backfill_by_shape(self, head: Entry, reserved: Reserved, shapes: Shapes) -> None:
        """Come to the same as `_backfill` for all behind `head`, with a glance at each shape instead of each job."""
        ledger, arrivals = self._ledger, self._queue.arrivals
        before = len(arrivals)
        left = dict.fromkeys(shapes.behind(head), True)
        after, going = head, True
        while going:
            going = False
            left = self._open_shapes(left, reserved)
            if not left:
                return
            forecast, now, shadow = reserved.forecast, ledger.now, reserved.shadow(ledger)
            lists = [
                listed
                for shape, long in left.items()
                for listed in shape.lists(now, None if long else shadow)
            ]
            vain: set[tuple[Hashable, NodeBits]] = set()
            """Classes of which a job found no room, and on which nodes."""
            heads = Heads(lists, after)
            while (found := heads.next()) is not None:
                entry, listed = found
                heads.go_on(listed, entry)
                _, job, partition = after = entry
                if len(arrivals) > before and entry in arrivals[before:]:
                    continue  # one that has just been sent back, or let in
                limit, spare = job.time_limit, reserved.spare
                outlasts = forecast is not None and spare is None and (limit is None or now + limit > shadow)
                allowed = ledger.all_nodes & ~forecast.nodes if outlasts and forecast else ledger.all_nodes
                tried = shapes.class_of(job), allowed
                if tried in vain and self._found_no_room(job):
                    continue
                if job.state is _PENDING and self._start(job, partition, allowed, reserved):
                    reserved.passed_by(ledger)
                    if spare is not None and forecast is not None and (limit is None or now + limit > shadow):
                        reserved.spare = spare - bitmap.count(job.nodes & forecast.eligible)
                    going = True
                    break
                if self._found_no_room(job):
                    vain.add(tried)

    def _found_no_room(self, job: Job) -> bool:
        """Whether a job was tried in vain for room alone, as all of its class would be on the same nodes."""
        placer = self._placer
        return (
            self._selector_decides
            and job.reason == NO_ROOM
            and job.state is _PENDING
            and job.asked_at is None
            and not (job.spec.licenses or placer.rulings.limited(job) or placer.prober.keeps_apart(job))
        )

    def _open_shapes(self, shapes: Mapping[Shape, bool], reserved: Reserved) -> dict[Shape, bool]:
        """Return those shapes for which there is room, each with whether its jobs may outlast the reservation.

        :param shapes: with whether that was so a moment ago; nothing was given back since.
        """
        able = glance(self._glance, shapes)
        if able and not reserved.settled:
            self.settle(reserved)
        forecast, spare = reserved.forecast, reserved.spare
        if forecast is None:
            return dict.fromkeys(able, True)
        if spare is not None:
            eligible = forecast.eligible
            return {
                shape: shapes[shape] and (shape.size <= spare or bool(shape.partition.nodes & ~eligible))
                for shape in able
            }
        beside = set(glance(self._glance, [shape for shape in able if shapes[shape]], forecast.nodes))
        return {shape: shape in beside for shape in able}

    def _could_start(self, jobs: Sequence[Job], reserved: Reserved) -> Sequence[Job]:
        """Drop jobs for which there is no room; those that outlast the reservation have to keep off its nodes."""
        ledger = self._ledger
        kept = self._glance(jobs)
        if not kept:
            return kept
        if not reserved.settled:
            self.settle(reserved)
        forecast = reserved.forecast
        if forecast is None or reserved.spare is not None:
            return kept
        now, shadow = ledger.now, reserved.shadow(ledger)
        long = [job for job in kept if job.time_limit is None or now + job.time_limit > shadow]
        if not long:
            return kept
        fits = set(map(id, self._glance(long, forecast.nodes)))
        barred = set(map(id, long)) - fits
        return [job for job in kept if id(job) not in barred]

    def _start(self, job: Job, partition: Partition, allowed: NodeBits, reserved: Reserved) -> bool:
        note = ""
        if self._traces and self._recorder.traces(job):
            self._tried.add(job.id)
            note = self._behind(reserved.entry[1])
        if job.spec.het_id is not None:
            outcome = self.attempts.het.try_start(job, partition, allowed, preempt=False)
        else:
            asked = (job, partition, allowed, False, True, True, note)
            outcome = self._placer.try_start(tuple.__new__(Question, asked))
        return outcome is _STARTED

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return the reservation in force, for `restore`."""
        reserved = self.reserved
        if reserved is None or reserved.entry[1].id not in self._ledger.jobs:
            return {}
        return {"reserved": reserved.save()}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Let the reservation of another engine be in force."""
        if "reserved" in memory:
            plain = memory["reserved"]
            entry = entry_of_plain(plain["entry"], self._ledger.jobs)
            self.reserved = Reserved(entry, self._ledger)
            self.reserved.restore(plain)


def _places(entries: Sequence[Entry]) -> dict[int, list[Partition]]:
    """Return by identity of a job where it is to be tried, in order."""
    places: dict[int, list[Partition]] = {}
    for _, job, partition in entries:
        places.setdefault(id(job), []).append(partition)
    return places


class Reserved:
    """The reservation of the first blocked job; holds until something is given back or overtakes it.

    What it amounts to is worked out when a later job might be in the way, and not before.
    """

    __slots__ = ("_shadow", "doubtful", "entry", "forecast", "freed", "settled", "spare", "version")

    def __init__(self, entry: Entry, ledger: Ledger) -> None:
        self.entry = entry
        self.version = ledger.version
        self.freed = ledger.freed
        self.settled = False
        self.forecast: Forecast | None = None
        self.spare: int | None = None
        """How many nodes more than the job needs there will be; None: the forecast names its nodes."""
        self._shadow: Seconds = 0.0
        self.doubtful = False
        """Whether a job has started beside it."""

    def passed_by(self, ledger: Ledger) -> None:
        """Go on though a job has just started beside it."""
        self.version = ledger.version
        self.doubtful = True

    def settle(self, forecast: Forecast | None) -> None:
        """Let the reservation be what `forecast` says; None: the job can never start."""
        self.settled = True
        self.forecast = forecast
        if forecast is not None:
            self.spare = forecast.spare
            self._shadow = forecast.at

    def shadow(self, ledger: Ledger) -> Seconds:
        """Return by when what starts now has to be over, to be in no job's way: the job's start, or never."""
        return max(self._shadow, ledger.now) if self.forecast is not None else math.inf

    def holds(self, ledger: Ledger) -> bool:
        """Whether nothing happened that could change it."""
        return (
            self.entry[1].state is _PENDING
            and self.freed == ledger.freed
            and self.version == ledger.version
            and (self.forecast is None or self.forecast.at >= ledger.now)
        )

    def save(self) -> dict[str, Any]:
        """Return it in values that JSON has."""
        found = self.forecast
        return {
            "entry": entry_to_plain(self.entry),
            "version": self.version,
            "freed": self.freed,
            "settled": self.settled,
            "spare": self.spare,
            "doubtful": self.doubtful,
            "shadow": self._shadow,
            "forecast": None if found is None else _forecast_to_plain(found),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Be as another one was."""
        self.version, self.freed = plain["version"], plain["freed"]
        self.doubtful = plain.get("doubtful", True)
        self.settled, self.spare, self._shadow = plain["settled"], plain["spare"], plain["shadow"]
        self.forecast = None if plain["forecast"] is None else _forecast_of_plain(plain["forecast"])


def _forecast_to_plain(found: Forecast) -> dict[str, Any]:
    # Sets of nodes as hexadecimal text: decimal numbers of such a length are neither quick nor welcome everywhere.
    # Which nodes are promised does not matter where only their number does.
    nodes = found.nodes if found.spare is None else 0
    return attrs.asdict(found) | {"nodes": hex(nodes), "eligible": hex(found.eligible)}


def _forecast_of_plain(plain: Mapping[str, Any]) -> Forecast:
    sets = {"nodes": int(plain["nodes"], 16), "eligible": int(plain["eligible"], 16)}
    return Forecast(**{**plain, **sets})

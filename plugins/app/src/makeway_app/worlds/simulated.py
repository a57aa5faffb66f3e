"""Simulate jobs: each works for its `run_time` seconds of undisturbed running.

slurm-preemption 4.3 and 4.8 say what processes do on SIGTERM, and what a batch shell hears of a grace
time. They also say how long a node takes to kill and clean up.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from makeway import bitmap
from makeway.clockwork import Clockwork
from makeway.hookspecs import hookimpl
from makeway.model import Cluster, Job, JobSpec, JobState, Seconds
from makeway.worlds.api import Moment, Seen, State, Survey, WorldFactory
from makeway.worlds.clock import Clock
from makeway.worlds.encoding import event_of_plain, event_to_plain
from makeway.worlds.events import (
    Action,
    Checkpoint,
    Cleaned,
    Event,
    Finished,
    Kill,
    NodesDown,
    NodesDrained,
    NodesQuiet,
    NodesUp,
    NodesUsed,
    Resume,
    SendSignal,
    Start,
    Started,
    Submitted,
    Suspend,
)
from makeway_app.worlds.power import Power

_Scheduled = tuple[Seconds, int, Event, "_Process | None", int]
ABOUT_NODES = (NodesDown, NodesDrained, NodesUp, NodesUsed, NodesQuiet)
_COMPLETED = JobState.COMPLETED
_NEVER = math.inf
_STOPS = frozenset(("STOP", "TSTP", "TTIN", "TTOU"))
"""Signals that stop processes which do not catch them, until CONT; the job keeps its CPUs and its state."""
_UNCATCHABLE = {"KILL": "die", "STOP": "stop"}
_new = tuple.__new__
"""Makes an event in half the time that it takes by its own name."""


class _Process:
    """The work of one incarnation of a job."""

    __slots__ = (
        "dying",
        "incarnation",
        "job",
        "left",
        "ran",
        "running_since",
        "serial",
        "started_at",
        "still",
    )

    def __init__(self, job: Job, incarnation: int, left: Seconds | None, since: Seconds, serial: int) -> None:
        self.job = job
        self.incarnation = incarnation
        self.left = left
        self.started_at = since
        self.running_since: Seconds | None = since
        self.ran: Seconds = 0.0
        """Running time up to `running_since`."""
        self.serial = serial
        """An end that was planned under another serial is void."""
        self.dying = False
        """Whether a signal ends it at this instant."""
        self.still = False
        """Whether a signal stopped it: the scheduler does not know, and the job counts as running."""

    def hears(self, now: Seconds) -> bool:
        """Whether there is anything yet that a signal could reach: not in the instant of the start (recorded)."""
        return self.started_at < now


class SimulatedWorld:
    """A world made of a workload, a list of people's commands, and a clockwork.

    It knows the future, never fails, and does everything at the instant at which it is asked to; only jobs on nodes
    that are switched off begin once these have booted.
    """

    def __init__(
        self,
        jobs: Iterable[JobSpec],
        clockwork: Clockwork,
        commands: Iterable[tuple[Seconds, Event]] = (),
        power: Power | None = None,
    ) -> None:
        """Take over `jobs`, in order of submission; they are read as time goes on.

        :param power: boots nodes; None: all of them are always on.
        """
        self._power = power
        self._clockwork = clockwork
        self._no_epilog = not clockwork.completing_time
        self._jobs: Iterator[JobSpec] = iter(jobs)
        self._next_job = next(self._jobs, None)
        self._commands = deque(sorted(commands, key=lambda item: item[0]))
        self._persons = sum(not isinstance(event, ABOUT_NODES) for _, event in self._commands)
        """How many of them are not about nodes."""
        self._heap: list[_Scheduled] = []
        self._serial = 0
        self.processes: dict[str, _Process] = {}
        self._saving: set[str] = set()
        self._epilogs: list[tuple[Seconds, str, int]] = []
        """Jobs whose end was reported last, whose nodes are cleaned up from then on: instant, id, incarnation."""
        self._now: Seconds = 0.0

    # ------------------------------------------------------------------------------- wait
    def wait(self, until: Seconds | None) -> Moment | None:
        """Return the next instant at which anything happens, and all that happens then."""
        if self._epilogs:
            self._begin_epilogs()
        heap, job, commands = self._heap, self._next_job, self._commands
        if commands or not heap:
            at = self.next_at()
        else:
            # As in next_at, without a call: most waits are for the end of a job, or for the next one.
            at, _, _, process, serial = heap[0]
            if process is not None and process.serial != serial:
                at = self.next_at()
            elif job is not None and job.submit_at < at:
                at = job.submit_at
        if until is not None and until < at:
            self._now = until
            return until, ()
        if at == _NEVER:
            return None
        self._now = at
        events: list[Event] = []
        while heap and heap[0][0] <= at:
            _, _, event, process, serial = heapq.heappop(heap)
            if process is None:
                events.append(event)
            elif process.serial == serial:
                del self.processes[process.job.id]
                events.append(event)
                if not self._no_epilog:
                    self._epilogs.append((at, process.job.id, process.incarnation))
        if commands:
            while commands and commands[0][0] <= at:
                event = commands.popleft()[1]
                self._persons -= not isinstance(event, ABOUT_NODES)
                events.append(event)
        while job is not None and job.submit_at <= at:
            events.append(_new(Submitted, (job,)))
            job = self._next_job = next(self._jobs, None)
        if self._power is not None:
            self._power.heard(events, at)
            events = [event for event in events if not (type(event) is Started and self._is_gone(event))]
        return at, events

    def _is_gone(self, event: Started) -> bool:
        """Whether a job was killed while its nodes booted."""
        process = self.processes.get(event.job_id)
        return process is None or process.incarnation != event.incarnation

    @property
    def only_nodes(self) -> bool:
        """Whether nothing will ever happen by itself but that nodes are lost and come back."""
        return not (self._heap or self._epilogs) and self._next_job is None and not self._persons

    def next_at(self) -> Seconds:
        """Return when anything happens next; infinite: never."""
        heap, at = self._heap, _NEVER
        while heap:
            due, _, _, process, serial = heap[0]
            if process is None or process.serial == serial:
                at = due
                break
            heapq.heappop(heap)  # the end of a process that was stopped or killed
        if self._next_job is not None and self._next_job.submit_at < at:
            at = self._next_job.submit_at
        if self._commands and self._commands[0][0] < at:
            at = self._commands[0][0]
        return at

    def _begin_epilogs(self) -> None:
        for at, job_id, incarnation in self._epilogs:
            self._schedule(at + self._clockwork.completing_time, Cleaned(job_id, None, incarnation))
        self._epilogs.clear()

    # ---------------------------------------------------------------------------- perform
    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Perform `actions`, all of them at once."""
        for action in actions:
            job = action.job
            incarnation = action.incarnation or job.starts
            if type(action) is Start:
                if job.begun_with or self._power is not None or job.id in self.processes:
                    self._start(job, now, incarnation)
                else:  # as there, with few calls
                    spec, serial = job.spec, self._serial + 1
                    left, attributes = spec.run_time, spec.attributes
                    process = self.processes[job.id] = _Process(job, incarnation, left, now, serial)
                    if left is not None:
                        state = _natural_end(job) if attributes and "ends_as" in attributes else _COMPLETED
                        end = _new(Finished, (job.id, state, self._no_epilog, incarnation))
                        heapq.heappush(self._heap, (now + left, serial + 1, end, process, serial))
                        serial += 1
                    self._serial = serial
                if action.stopped:
                    self._stop(job, now, incarnation)
            elif type(action) is Kill:
                self._kill(job, now, incarnation)
            elif type(action) is Suspend:
                self._stop(job, now, incarnation)
            elif type(action) is Resume:
                self._continue(job, now, incarnation)
            elif type(action) is SendSignal:
                self._signal(job, action, now, incarnation)
            elif type(action) is Checkpoint:
                self._save(job)

    def _schedule(self, at: Seconds, event: Event, process: _Process | None = None) -> None:
        self._serial += 1
        serial = process.serial if process is not None else 0
        heapq.heappush(self._heap, (at, self._serial, event, process, serial))

    def _start(self, job: Job, now: Seconds, incarnation: int) -> None:
        process = self.processes.get(job.id)
        if process is not None and process.incarnation == incarnation:
            return  # told twice
        left = job.spec.run_time
        if left is not None and job.begun_with:
            left = max(0.0, left - job.begun_with) + self._clockwork.restart_time
        ready = now if self._power is None else self._power.starts(job, now)
        if ready > now:
            self._schedule(ready, Started(job.id, incarnation))
        self._serial = serial = self._serial + 1
        self.processes[job.id] = process = _Process(job, incarnation, left, ready, serial)
        if left is not None:
            self._plan_end(job, process, left, ready)

    def _process(self, job: Job, incarnation: int) -> _Process | None:
        """Return what runs of this incarnation; None: nothing."""
        process = self.processes.get(job.id)
        return process if process is not None and process.incarnation == incarnation else None

    def _plan_end(self, job: Job, process: _Process, left: Seconds, now: Seconds) -> None:
        attributes = job.spec.attributes
        state = _natural_end(job) if attributes and "ends_as" in attributes else _COMPLETED
        end = _new(Finished, (job.id, state, self._no_epilog, process.incarnation))
        self._serial = place = self._serial + 1
        heapq.heappush(self._heap, (now + left, place, end, process, process.serial))

    def _stop(self, job: Job, now: Seconds, incarnation: int) -> None:
        process = self._process(job, incarnation)
        if process is None or process.running_since is None:
            return
        process.ran += now - process.running_since
        if process.left is not None:
            process.left = max(0.0, process.left - (now - process.running_since))
        process.running_since = None
        self._serial += 1
        process.serial = self._serial  # the end planned so far is void

    def _continue(self, job: Job, now: Seconds, incarnation: int) -> None:
        process = self._process(job, incarnation)
        if process is None or process.running_since is not None:
            return
        process.running_since = now
        self._serial += 1
        process.serial = self._serial
        counts = self._clockwork.stopped_work_counts and not process.still
        process.still = False
        if counts and process.left is not None and job.spec.run_time is not None:
            process.left = min(process.left, max(0.0, job.spec.run_time - job.ran_until(now)))
        if process.left is not None:
            self._plan_end(job, process, process.left, now)

    def _kill(self, job: Job, now: Seconds, incarnation: int) -> None:
        process = self._process(job, incarnation)
        if process is not None:
            del self.processes[job.id]
            process.serial = -1
        delay = self._clockwork.completing_time
        if job.id in self._saving:
            self._saving.discard(job.id)
            delay += self._clockwork.checkpoint_time
        stays = (
            process is not None
            and (process.still or process.running_since is not None)
            and process.hears(now)
            and not process.dying
        )
        delay += job.index * self._clockwork.kill_spacing
        # Its script and its processes are on the first node; the others have nothing to wait for.
        later = self._clockwork.batch_host_delay if not job.spec.het_offset else 0.0
        if stays and job.spec.on_term == "ignore":
            later += max(self._clockwork.kill_wait, self._clockwork.min_kill_delay)
        if later and job.allocation is not None and (others := bitmap.of(job.allocation.node_indices[1:])):
            self._schedule(now + delay, Cleaned(job.id, others, incarnation))
        if job.spec.het_id is not None and not job.spec.het_offset:
            later += self._clockwork.leader_delay
        known = _cleaning_time(job, incarnation) if job.spec.attributes else None
        self._schedule(
            now + (delay + later if known is None else max(delay, known)), Cleaned(job.id, None, incarnation)
        )

    def _save(self, job: Job) -> None:
        self._saving.add(job.id)

    def _signal(self, job: Job, action: SendSignal, now: Seconds, incarnation: int) -> None:
        process = self._process(job, incarnation)
        if process is None:
            return
        if not process.hears(now) or (action.steps_only and not job.spec.steps):
            return
        if action.signal == "CONT" and process.still:
            self._continue(job, now, incarnation)
        if action.signal == "TERM":
            reaction = job.spec.on_term
        else:
            reaction = _UNCATCHABLE.get(action.signal) or job.spec.on_signal.get(
                action.signal, "stop" if action.signal in _STOPS else "ignore"
            )
        if reaction == "stop" and process.running_since is not None:
            self._stop(job, now, incarnation)
            process.still = True
        if reaction in ("ignore", "stop"):
            return
        state = _COMPLETED if reaction == "exit" else JobState.FAILED
        process.dying = True
        self._serial += 1
        process.serial = self._serial
        self._schedule(
            now + self._clockwork.signal_time, Finished(job.id, state, self._no_epilog, incarnation), process
        )

    # --------------------------------------------------------------------------- adoption
    def save(self, cluster: Cluster) -> dict[str, Any]:
        """Return what is under way, in values that JSON has, for `restore`."""
        due = [
            [at, event_to_plain(event, cluster), None if process is None else process.job.id]
            for at, _, event, process, serial in sorted(self._heap, key=lambda entry: entry[:2])
            if process is None or process.serial == serial
        ]
        return {
            "due": due,
            "processes": {
                job_id: [
                    process.left,
                    process.running_since,
                    process.ran,
                    process.started_at,
                    process.dying,
                    process.still,
                ]
                for job_id, process in self.processes.items()
            },
            "saving": sorted(self._saving),
            "epilogs": [list(each) for each in self._epilogs],
        }

    def restore(
        self,
        jobs: Iterable[Job],
        leaving: Iterable[Job],
        memory: Mapping[str, Any] | None,
        cluster: Cluster,
        now: Seconds,
    ) -> None:
        """Let jobs be under way at `now`.

        :param jobs: running and suspended ones.
        :param leaving: those that have ended or been killed and still hold their nodes.
        :param memory: what another simulated world handed over; None: what is left follows from the jobs.
        """
        self._now = now
        told = memory or {}
        for job in jobs:
            if self._power is not None:
                self._power.found(job, now)
            self._serial += 1
            known = told.get("processes", {}).get(job.id)
            left, since, ran, started, dying, still = known or self._left(job, now)
            process = _Process(job, job.starts, left, started, self._serial)
            process.running_since, process.ran, process.dying, process.still = since, ran, dying, still
            self.processes[job.id] = process
            if memory is None and since is not None and left is not None:
                self._plan_end(job, process, left, now)
        if memory is None:
            for job in leaving:
                self._schedule(now + self._clockwork.completing_time, Cleaned(job.id, None, job.starts))
            return
        for at, plain, job_id in memory["due"]:
            self._schedule(
                at, event_of_plain(plain, cluster), self.processes[job_id] if job_id is not None else None
            )
        self._saving = set(memory["saving"])
        self._epilogs = [(at, job_id, incarnation) for at, job_id, incarnation in memory["epilogs"]]

    def _left(
        self, job: Job, now: Seconds
    ) -> tuple[Seconds | None, Seconds | None, Seconds, Seconds, bool, bool]:
        """Return the work that a job has left, since when it runs, and how long it ran before that."""
        ran, left = job.ran_until(now), job.spec.run_time
        if left is not None:
            if job.begun_with:
                left = max(0.0, left - job.begun_with) + self._clockwork.restart_time
            left = max(0.0, left - ran)
        since = now if job.state is JobState.RUNNING else None
        return left, since, ran, job.started_at if job.started_at is not None else now, False, False

    # ----------------------------------------------------------------------------- survey
    def survey(self) -> Survey:
        """Look at what runs, is stopped, or is being cleaned up."""
        if self._epilogs:
            self._begin_epilogs()
        seen = {
            event.job_id: Seen(job_id=event.job_id, state=JobState.COMPLETING, incarnation=event.incarnation)
            for _, _, event, process, _ in self._heap
            if process is None and isinstance(event, Cleaned) and event.nodes is None
        }
        seen |= {process.job.id: self._seen(process) for process in self.processes.values()}
        return Survey(at=self._now, jobs=seen)

    def _seen(self, process: _Process) -> Seen:
        since = process.running_since
        place = process.job.allocation
        return Seen(
            job_id=process.job.id,
            state=JobState.RUNNING if process.still or since is not None else JobState.SUSPENDED,
            incarnation=process.incarnation,
            nodes=place.nodes if place is not None else 0,
            started_at=process.started_at,
            ran=process.ran + (self._now - since if since is not None else 0.0),
        )


def _natural_end(job: Job) -> JobState:
    return _ENDS.get(job.spec.attributes.get("ends_as", ""), _COMPLETED)


def _cleaning_time(job: Job, incarnation: int) -> Seconds | None:
    """Return how long the last node of a killed job was seen to take; None: not known."""
    known: Sequence[Seconds | None] = job.spec.attributes.get("cleaning_times", ())
    return known[incarnation - 1] if incarnation <= len(known) else None


_ENDS = {
    state.value: state for state in (_COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.OUT_OF_MEMORY)
}


class PacedWorld(SimulatedWorld):
    """The same at the pace of a clock: jobs are handed over by the live loop, and time goes by."""

    def __init__(self, clockwork: Clockwork, clock: Clock) -> None:
        """Run what is to be started by `clock`."""
        super().__init__((), clockwork)
        self._clock = clock

    def wait(self, until: Seconds | None) -> Moment:
        """Wait for what happens next; come back early if something wakes the clock."""
        if self._epilogs:
            self._begin_epilogs()
        at = min(self.next_at(), _NEVER if until is None else until)
        self._clock.wait(None if at == _NEVER else at)
        now = self._clock.now()
        return super().wait(now) or (now, ())


def _paced(cluster: Cluster, settings: Any, state: State) -> PacedWorld:
    """Build a world that runs what it is told to start."""
    del cluster, settings
    return PacedWorld(state.clockwork, state.clock)


@hookimpl
def makeway_world() -> WorldFactory:
    """Offer the simulated world."""
    return _paced

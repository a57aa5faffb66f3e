"""Take note of what a world reports: sort news from echoes, and follow the rules for what failed.

A world may repeat itself, be late, or speak of what was long ago. What is no news changes nothing: it is counted in
`Reports.unheeded` and written into the record. The rules for what follows a failure are named by their settings,
`makeway.config.FailureTable`.
"""

from __future__ import annotations

import functools
import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Any

from makeway.bitmap import NodeBits
from makeway.config import FailureTable
from makeway.metrics import tidy
from makeway.model import Job, JobState, Protection, Seconds, SuspendedBy
from makeway.record import Recorder
from makeway.state import nodes_from_text, nodes_to_text
from makeway.worlds.events import (
    Action,
    Checkpoint,
    Failed,
    Kill,
    NodesDown,
    NodesDrained,
    NodesUp,
    Performed,
    Resume,
    Start,
    Started,
    Suspend,
)
from makeway_engine.corrections import Corrections
from makeway_engine.deeds import Deeds
from makeway_engine.echoes import Echoes
from makeway_engine.ledger import Ledger
from makeway_engine.noticing import Noticing, share_cores
from makeway_engine.queue import Queue
from makeway_engine.transitions import Transitions

START_FAILED = "StartFailed"
"""Reason of a job that waits, or is held, since it could not be started."""
_SUSPEND_WAIT = "world.failures.suspend_wait"


class Reports:
    """What a world said that is neither an end nor a command."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        transitions: Transitions,
        recorder: Recorder,
        table: FailureTable,
        stubborn: dict[str, Protection],
        deeds: Deeds | None,
    ) -> None:
        """Begin with nothing reported.

        :param stubborn: jobs that could not be suspended, and until when that is not tried again; kept here.
        :param deeds: the actions that were ordered; None: the world is trusted, and no outcome is awaited.
        """
        self._ledger = ledger
        self._transitions = transitions
        self._corrections = Corrections(ledger, queue, transitions, recorder)
        self.echoes = Echoes(ledger, recorder, told=deeds is not None)
        noticing = Noticing(ledger, transitions, self._corrections, recorder, table, self.echoes, self.ended)
        self.noticed, self.checkpointed = noticing.noticed, noticing.checkpointed
        self.obstructed, self.begun_anew = noticing.obstructed, noticing.begun_anew
        self.reused = noticing.reused
        self.no_news, self.known, self.has_ended = (
            self.echoes.no_news,
            self.echoes.known,
            self.echoes.has_ended,
        )
        self._recorder = recorder
        self._table = table
        self.deeds = deeds
        self.down: NodeBits = 0
        """Nodes that the world said are down, or drained, and has not said are back."""
        self.drained: NodeBits = 0
        self.aside: NodeBits = 0
        """Nodes that get no jobs for a while, since they refused a start."""
        self.stubborn = stubborn
        self._failed_starts: dict[str, int] = {}
        """Starts in a row that failed, by job."""
        self._failed_kills: dict[str, int] = {}
        self._confirmed: dict[str, int] = {}
        """Incarnation of each job whose start was confirmed."""
        self.timers: list[tuple[Seconds, int, str, Job | None, int]] = []
        """A heap: instant, order, what to do, about which job in which incarnation, with what."""
        self._order = 0

    # ---------------------------------------------------------------------------- echoes
    @property
    def unheeded(self) -> Counter[str]:
        """What was no news, by why."""
        return self.echoes.unheeded

    def ended(self, job_ids: list[str]) -> None:
        """Remember jobs that have ended, and empty the list."""
        for job_id in job_ids:
            for kept in (self._failed_starts, self._failed_kills, self._confirmed, self.stubborn):
                kept.pop(job_id, None)
        self.echoes.note_ended(job_ids)
        job_ids.clear()

    # ------------------------------------------------------------------------------- starts
    def started(self, event: Started) -> None:
        """A start was performed: limits and running times count from the real instant."""
        job = self.echoes.job_of(event)
        if job is None:
            return
        if self._confirmed.get(job.id) == job.starts:
            self.no_news(event, "repeated", job.id)
            return
        if not self._ledger.is_active(job):
            self.no_news(event, f"the job is {job.state.value}", job.id)
            return
        self._confirmed[job.id] = job.starts
        if self.deeds is not None:
            self.deeds.succeeded(self.deeds.last(job, Start))
        self._failed_starts.pop(job.id, None)
        self._ledger.obstruct(job, event.obstacle)
        now = self._ledger.now
        at = now if event.at is None or event.at != event.at else event.at
        began = job.started_at if job.started_at is not None else now
        at = min(max(at, began), now)
        self._recorder.note("started", job.id, now, since=tidy(at), incarnation=job.starts)
        if at > began:
            if job.resumed_at == began and job.state is JobState.RUNNING:
                self._recorder.began_late(job, at)
            self._ledger.began_late(job, at)

    def _start_failed(self, action: Start, event: Failed) -> None:
        job, table, now = action.job, self._table, self._ledger.now
        count = self._failed_starts[job.id] = self._failed_starts.get(job.id, 0) + 1
        held = not event.retry or (table.start_hold_after > 0 and count >= table.start_hold_after)
        rule = "retry" if not event.retry else "start_hold_after" if held else "start_wait"
        refused = event.nodes & job.nodes
        named = "retry=False" if not event.retry else f"world.failures.{rule}"
        self._note(action, event, rule=named, count=count, held=held)
        more = f" [{named}]" if event.retry else "; it would fail again"
        self._put_back(job, f"{START_FAILED}: {event.why}{more}", now + table.start_wait, held=held)
        if refused and table.node_set_aside:
            self.aside |= refused
            self._ledger.set_down(refused)
            self._recorder.note(
                "set_aside",
                "",
                now,
                nodes=self._recorder.node_list(refused),
                until=tidy(now + table.node_set_aside),
                rule="world.failures.node_set_aside",
            )
            self._later(now + table.node_set_aside, "back", None, refused)

    def _put_back(self, job: Job, reason: str, at: Seconds, *, held: bool) -> None:
        """Let a job whose start failed wait again, and its components with it."""
        transitions = self._transitions
        for part in tuple(self._ledger.components(job)):
            if part is not job and self._ledger.is_active(part):
                transitions.requeue(part, f"component {job.id} could not be started")
        self._corrections.put_back(job, reason, at, held=held)
        self._later(at, "try", job, job.starts)

    # -------------------------------------------------------------------------- suspensions
    def _suspend_failed(self, action: Suspend, event: Failed) -> None:
        """The victim goes on; what was to take its place waits."""
        job, now = action.job, self._ledger.now
        if job.state is not JobState.SUSPENDED:
            self.no_news(event, f"the job is {job.state.value}", job.id)
            return
        self._note(action, event, rule=_SUSPEND_WAIT)
        until = now + self._table.suspend_wait
        if self._table.suspend_wait:
            self.stubborn[job.id] = Protection(
                reason=f"it could not be suspended: {event.why} [{_SUSPEND_WAIT}]", until=until
            )
            self._later(until, "spare", job, job.starts)
        since = job.suspended_at if job.suspended_at is not None else now
        self._give_up_those_resting_on(
            action, f"job {job.id} could not be suspended: {event.why} [{_SUSPEND_WAIT}]", until
        )
        if self._ledger.is_active(job):
            told = job.suspended_at is None  # the arbiter has let it go on by itself
            self._corrections.went_on(job, since)
            if not told:
                self._transitions.tell_gang("ended", job)
                self._transitions.tell_gang("started", job)
            self._take_back_resumptions(job)

    def _take_back_resumptions(self, runs: Job) -> None:
        """Leave those stopped that the arbiter has just let go on where a job could not be stopped."""
        actions = self._transitions.actions
        for action in [each for each in actions if isinstance(each, Resume)]:
            job = action.job
            if job is not runs and job.state is JobState.RUNNING and share_cores(job, runs):
                actions.remove(action)
                self._corrections.still_stopped(job)
                self._later(self._ledger.now + self._table.resume_again, "go on", job, job.starts)

    def _give_up_those_resting_on(self, action: Action, why: str, until: Seconds) -> None:
        assert self.deeds is not None
        for other in self.deeds.resting_on(action.serial):
            self.deeds.settle(other.serial)
            self._recorder.note(
                "failed",
                other.job.id,
                self._ledger.now,
                action=type(other).__name__,
                serial=other.serial,
                why=why,
                rule="it rests on another action",
            )
            if not self._ledger.is_active(other.job):
                continue
            if isinstance(other, Start):
                self._put_back(other.job, f"Resources: {why}", until, held=False)
            elif other.job.state is JobState.RUNNING:
                self._corrections.still_stopped(other.job)
                self._later(until, "go on", other.job, other.job.starts)

    def _resume_failed(self, action: Resume, event: Failed) -> None:
        job = action.job
        if job.state is not JobState.RUNNING:
            self.no_news(event, f"the job is {job.state.value}", job.id)
            return
        self._note(action, event, rule="world.failures.resume_again")
        self._corrections.still_stopped(job)
        self._later(self._ledger.now + self._table.resume_again, "go on", job, job.starts)

    # -------------------------------------------------------------------------------- kills
    def _kill_failed(self, action: Kill, event: Failed) -> None:
        """The nodes count as taken until they are clean; the kill is repeated, in the end by force."""
        job = action.job
        if not self._transitions.is_leaving(job):
            self.no_news(event, f"the job is {job.state.value}", job.id)
            return
        count = self._failed_kills[job.id] = self._failed_kills.get(job.id, 0) + 1
        self._note(action, event, rule="world.failures.kill_again", count=count)
        again = self._ledger.now + self._table.kill_again
        self._give_up_those_resting_on(action, f"job {job.id} could not be killed: {event.why}", again)
        self._later(self._ledger.now + self._table.kill_again, "kill", job, job.starts)

    def _kill_again(self, job: Job) -> None:
        count = self._failed_kills.get(job.id, 0)
        after = self._table.kill_force_after
        forced = after > 0 and count >= after
        why = f"attempt {count + 1}" + (", by force" if forced else "")
        again = Kill(job, why, attempt=count + 1, forced=forced, becomes=self._transitions.becomes(job))
        self._transitions.actions.append(again)

    # ----------------------------------------------------------------------------- outcomes
    def performed(self, event: Performed) -> None:
        """An action has succeeded."""
        if self.deeds is None or self.deeds.find(event.serial) is None:
            self.no_news(event, "no such action is open")
        else:
            self.deeds.succeeded(event.serial)

    def failed(self, event: Failed) -> None:
        """An action was not performed."""
        action = self.deeds.find(event.serial) if self.deeds is not None else None
        if action is None or self.deeds is None:
            self.no_news(event, "no such action is open")
            return
        self.deeds.settle(event.serial)
        job = action.job
        if isinstance(action, Kill):
            self._kill_failed(action, event)
        elif isinstance(action, Checkpoint):
            self._note(action, event, rule="it goes back to its last checkpoint")
            self._corrections.not_saved(job, action.before)
        elif not self._ledger.is_active(job):
            self.no_news(event, f"the job is {job.state.value}", job.id)
        elif isinstance(action, Start):
            self._start_failed(action, event)
        elif isinstance(action, Suspend):
            self._suspend_failed(action, event)
        elif isinstance(action, Resume):
            self._resume_failed(action, event)
        else:
            self._note(action, event, rule="the job goes on without the signal")

    def _note(self, action: Action, event: Failed, **more: object) -> None:
        self._recorder.note(
            "failed",
            action.job.id,
            self._ledger.now,
            action=type(action).__name__,
            serial=action.serial,
            why=event.why,
            **more,
        )

    # ------------------------------------------------------------------------------- nodes
    def nodes(self, event: NodesDown | NodesDrained | NodesUp) -> NodeBits:
        """Keep what the world says of its nodes; return those of which it is news."""
        nodes = event.nodes & self._ledger.all_nodes
        if isinstance(event, NodesDown):
            news = nodes & ~self.down
            self.down |= nodes
            self.drained &= ~nodes
        elif isinstance(event, NodesDrained):
            news = nodes & ~self.drained
            self.drained |= nodes
            self.down &= ~nodes
        else:
            news = nodes
            self.down &= ~nodes
            self.drained &= ~nodes
            self.aside &= ~nodes
        if not news:
            self.no_news(event, "nothing new about these nodes")
        return news

    # ------------------------------------------------------------------------------- timers
    def _later(self, at: Seconds, what: str, job: Job | None, number: int) -> None:
        self._order += 1
        heapq.heappush(self.timers, (at, self._order, what, job, number))

    def due(self, now: Seconds) -> None:
        """Try again what is due."""
        while self.timers and self.timers[0][0] <= now:
            _, _, what, job, number = heapq.heappop(self.timers)
            if job is None:
                self._back(number)
            elif job.starts == number and not job.state.ended:
                self._again(what, job)

    def _back(self, nodes: NodeBits) -> None:
        back = nodes & self.aside
        self.aside &= ~back
        self._ledger.set_up(back & ~self.down & ~self.drained)
        self._transitions.changed = True

    def _again(self, what: str, job: Job) -> None:
        if what == "kill":
            if self._transitions.is_leaving(job):
                self._kill_again(job)
        elif what == "go on":
            self._go_on(job)
        elif what == "spare":
            protection = self.stubborn.get(job.id)
            if protection is not None and (protection.until or 0.0) <= self._ledger.now:
                del self.stubborn[job.id]
            self._transitions.changed = True
        else:
            self._transitions.changed = True

    def _go_on(self, job: Job) -> None:
        """Continue a job whose resumption had to wait, if no other runs on its cores by now."""
        if job.state is not JobState.SUSPENDED or job.suspended_by is not SuspendedBy.POLICY:
            return
        others = [each for each in self._ledger.jobs.values() if each is not job and share_cores(job, each)]
        if any(each.state in (JobState.RUNNING, JobState.COMPLETING) for each in others):
            self._later(self._ledger.now + max(1.0, self._table.resume_again), "go on", job, job.starts)
        else:
            self._transitions.resume(job)

    # ----------------------------------------------------------------------------- adoption
    def save(self, *, whole: bool = True) -> dict[str, Any]:
        """Return what failed so far and when to try again, for `restore`; empty: nothing did.

        :param whole: False: without what only tells echoes from news: confirmed starts, and jobs that have ended.
        """
        shown = functools.partial(nodes_to_text, self._ledger.cluster)
        found: dict[str, Any] = {
            "down": shown(self.down),
            "drained": shown(self.drained),
            "aside": shown(self.aside),
            "stubborn": {job_id: [each.reason, each.until] for job_id, each in self.stubborn.items()},
            "failed_starts": dict(self._failed_starts),
            "failed_kills": dict(self._failed_kills),
            "timers": [
                [at, what, None if job is None else job.id, shown(number) if job is None else number]
                for at, _, what, job, number in sorted(self.timers, key=lambda timer: timer[:2])
                if job is None or self._ledger.jobs.get(job.id) is job
            ],
        }
        if whole:
            found |= {"confirmed": dict(self._confirmed), "ended": self.echoes.ended}
        return {key: value for key, value in found.items() if value}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood; whatever is about jobs that are gone is forgotten."""
        jobs, read = self._ledger.jobs, functools.partial(nodes_from_text, self._ledger.cluster)
        self.down, self.drained, self.aside = (
            read(memory.get(key, "")) for key in ("down", "drained", "aside")
        )
        for job_id, (reason, until) in memory.get("stubborn", {}).items():
            if job_id in jobs:
                self.stubborn[job_id] = Protection(reason=reason, until=until)
        for key, kept in (
            ("failed_starts", self._failed_starts),
            ("failed_kills", self._failed_kills),
            ("confirmed", self._confirmed),
        ):
            kept.update({job_id: count for job_id, count in memory.get(key, {}).items() if job_id in jobs})
        for at, what, job_id, number in memory.get("timers", ()):
            if job_id is None:
                self._later(at, what, None, read(number))
            elif job_id in jobs:
                self._later(at, what, jobs[job_id], number)
        self.echoes.note_ended(memory.get("ended", ()))

"""Keep the record of a run: intervals of states, waits, preemptions, decisions; one JSON line each.

Design: "Record of a run". A sink gets the lines as they arise, an archive gets each job when it has ended.
Reasons for waiting and decisions are noted only for these two, and for jobs that are traced. Unless `keep` is
set, jobs are dropped from memory when they end.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.history import (
    DECISIONS_KEPT,
    Decision,
    History,
    Line,
    Preemption,
    needed,
    submission,
)
from makeway.measures import Measures
from makeway.metrics import SLOWDOWN_BOUND, Metrics, tidy
from makeway.mishaps import Mishaps
from makeway.model import Allocation, Cluster, Grouping, Job, JobState, PreemptMode, Seconds
from makeway.shapes import Shapes
from makeway.worlds.events import Command

_BOUND = SLOWDOWN_BOUND
_TOLERANCE = 1e-6
"""Seconds by which sums of instants may miss a run time."""
_RUNNING = JobState.RUNNING
_PENDING = JobState.PENDING
_ENDS = frozenset(state for state in JobState if state.ended)


class Archive(Protocol):
    """Gets what happened when it is over, so that memory need not hold it."""

    def ended(self, history: History, recorder: Recorder) -> None:
        """Take a job that has ended."""

    def preempted(self, entry: Preemption) -> None:
        """Take a preemption."""


_LOSES_WORK = (PreemptMode.REQUEUE, PreemptMode.CANCEL)


class Recorder:
    """Takes note of what the engine does."""

    def __init__(
        self,
        cluster: Cluster,
        sink: Callable[[Line], None] | None = None,
        *,
        keep: bool = True,
        archive: Archive | None = None,
        measures: Measures | None = None,
    ) -> None:
        """Begin a record.

        :param measures: is told what happens, and adds to the figures; None: nothing is told.
        """
        self.cluster = cluster
        self.measures = measures or Measures()
        self._measures = measures is not None
        self.histories: dict[str, History] = {}
        self.preemptions: list[Preemption] = []
        self.metrics = Metrics()
        self._young: Seconds = 0.0
        self.decisions: list[Decision] = []
        self.traced: Callable[[Job], bool] | None = None
        """Which jobs' attempts are kept as decisions; None: no job's."""
        self.on_decision: Callable[[Decision], None] | None = None
        """Gets each of them at once."""
        self._mishaps = Mishaps()
        self.unrunnable = self._mishaps.unrunnable
        self.refusals = self._mishaps.refusals
        self.failures = self._mishaps.failures
        self.commands: list[tuple[Seconds, Command]] = []
        """What people did to jobs that are traced, with the instants."""
        self.outages: list[tuple[Seconds, str, NodeBits]] = []
        """When nodes were lost or came back: down, drained or up, and which."""
        self.node_failures: list[tuple[Seconds, str, NodeBits, bool]] = []
        """Jobs whose nodes failed: which of them, and whether the job waits again."""
        self.grouping = Grouping()
        """By what the policy tells preemptors and victims apart, for the tables."""
        self.listens = sink is not None or archive is not None
        """Whether reasons for waiting and decisions are noted."""
        self._sink = sink
        self._archive = archive
        self.keeps = keep
        """Whether ended jobs stay in memory."""
        self._now: Seconds = 0.0
        self._changed: dict[str, History] = {}
        """Jobs whose reason for waiting changed at this instant; the last one counts."""
        self.shapes = Shapes(cluster.nodes)
        """How nodes, CPUs and jobs are written."""
        self.cores_of = self.shapes.cores_of
        self.node_list = self.shapes.node_list
        self.cpus_of = self.shapes.cpus_of
        self.job_dict = self.shapes.job_dict

    def begin(self, grouping: Grouping, young: Seconds) -> None:
        """Take note of what an engine does from now on, the first one or one that takes over.

        :param grouping: by what its policy tells preemptors and victims apart, for the tables.
        :param young: victims that lose their work within so many seconds of their start are counted; 0: none is.
        """
        self.grouping, self._young = grouping, young

    def tee(self, sink: Callable[[Line], None]) -> None:
        """Let `sink` have every line too, after the sink that gets them so far.

        Reasons for waiting are among them only if something got lines when the engine was built.
        """
        first = self._sink
        if first is None:
            self._sink = sink
            return
        before = first

        def both(line: Line) -> None:
            before(line)
            sink(line)

        self._sink = both

    # ------------------------------------------------------------------------- states
    def entered(self, job: Job, now: Seconds) -> None:
        """A job was submitted."""
        metrics = self.metrics
        history = self.histories[job.id] = History(job, now, number=metrics.jobs)
        metrics.jobs += 1
        if metrics.first_submit is None or now < metrics.first_submit:
            metrics.first_submit = now
        if self._measures:
            self.measures.entered(job, now)
        if self.listens:
            self._at(now)
            self._changed[job.id] = history
        if self._sink is not None:
            self._emit(now, "state", job, {"state": "PENDING", "reason": job.reason, **submission(job)})

    def adopted(self, job: Job, now: Seconds, first_start: Seconds | None) -> None:
        """A job was there before this run, or before the engine that goes on with it.

        :param first_start: of its first incarnation; None: it never ran.
        """
        known = self.histories.get(job.id)
        if known is not None:  # the record goes on under another engine
            known.job = job
            return
        state = job.state
        metrics = self.metrics
        history = self.histories[job.id] = History(
            job, now, state=state, first_start=first_start, preempted=job.preemptions, number=metrics.jobs
        )
        metrics.jobs += 1
        metrics.jobs_preempted += bool(job.preemptions)
        if metrics.first_submit is None:
            metrics.first_submit = now
        self.measures.entered(job, now)
        if job.allocation is not None:
            self.measures.holds(job, job.allocation, now)
        if self.listens:
            self._at(now)
        if state is not _PENDING:
            history.allocation = job.allocation
        elif self.listens and job.reason:
            history.waiting = now, job.reason
        if self._sink is not None:
            data = {**self._state_data(job, state, history), "started_at": job.started_at, **submission(job)}
            self._emit(now, "adopted", job, data)

    def moved(self, job: Job, state: JobState, now: Seconds) -> None:
        """A job is in another state from now on."""
        history = self.histories[job.id]
        before = history.state
        if self.listens:
            self._at(now)
            if state is _PENDING:
                self._changed[job.id] = history
            elif before is _PENDING:
                self._changed.pop(job.id, None)
                self._stop_waiting(history, now)
                history.decided = None
        if now > history.since or (before is _RUNNING and state in _ENDS):
            history.intervals.append((before, history.since, now, history.allocation, job.restarts))
        if before is _RUNNING:
            self.metrics.core_seconds_used += (now - history.since) * self.shapes.cpus_held(
                history.allocation
            )
        if self._measures:
            self.measures.moved(job, before, state, history.since, now)
        history.since = now
        history.state = state
        if state is _RUNNING:
            if history.first_start is None:
                history.first_start = now
                wait = now - job.spec.submit_at
                self.metrics.wait_total += wait
                waits = self.metrics.waits_in.get(job.partition.name)
                if waits is None:
                    waits = self.metrics.waits_in[job.partition.name] = array("d")
                waits.append(wait)
                if self.metrics.wait_of is not None:
                    self.metrics.wait_of[job.id] = wait
                    self.metrics.submitted_of[job.id] = job.spec.submit_at
            history.allocation = job.allocation
        elif state is _PENDING:
            history.allocation = None
        if self._sink is not None:
            self._emit(now, "state", job, self._state_data(job, state, history))

    def began_late(self, job: Job, at: Seconds) -> None:
        """A job that was thought to run did so from `at` on; until then it waited for its processes."""
        history = self.histories[job.id]
        if history.state is _RUNNING and at > history.since:
            history.intervals.append((_PENDING, history.since, at, None, job.restarts))
            if history.first_start == history.since:
                self._waited_longer(history, at)
            history.since = at

    def _waited_longer(self, history: History, at: Seconds) -> None:
        """The first start of a job was at `at` in truth."""
        job, metrics = history.job, self.metrics
        assert history.first_start is not None
        submitted = job.spec.submit_at
        waits = metrics.waits_in.get(job.partition.name)
        if not waits or history.first_start - submitted not in waits:
            return  # it started before this run
        waits.remove(history.first_start - submitted)
        waits.append(at - submitted)
        metrics.wait_total += at - history.first_start
        if metrics.wait_of is not None:
            metrics.wait_of[job.id] = at - submitted
        history.first_start = at

    def amended(self, job: Job, state: JobState) -> None:
        """The state that a job has just left was in truth `state`, RUNNING or SUSPENDED."""
        intervals = self.histories[job.id].intervals
        if not intervals or intervals[-1][0] is state or intervals[-1][0] in (_PENDING, JobState.COMPLETING):
            return
        before, start, end, allocation, restarts = intervals[-1]
        intervals[-1] = (state, start, end, allocation, restarts)
        worked = (end - start) * self.shapes.cpus_held(allocation)
        self.metrics.core_seconds_used += worked if before is not _RUNNING else -worked
        seconds = end - start
        self.measures.amended(job, allocation, seconds if before is not _RUNNING else -seconds)

    def ended(self, job: Job, state: JobState, now: Seconds) -> None:
        """A job reached its final state."""
        history = self.histories[job.id]
        if history.state is not state:
            self.moved(job, state, now)
        history.final_state = state
        history.ended_at = now
        metrics = self.metrics
        if now > metrics.last_end:
            metrics.last_end = now
        run = history.worked
        whole = self._count(history, now, 1)
        if state is JobState.PREEMPTED:
            self._undone(history, whole, 1)
        if self._measures and not history.revived:
            started = history.first_start is not None
            self.measures.ended(job, started=started, needed=max(whole, run), now=now)
        if self._archive is not None:
            self._archive.ended(history, self)
        if not self.keeps:
            del self.histories[job.id]

    def _count(self, history: History, at: Seconds, times: int) -> Seconds:
        """Count a job that ended at `at` in the figures, or take that back; return for how long it has to run.

        :param times: 1, or -1 to take it back.
        """
        metrics, job = self.metrics, history.job
        metrics.ended += times
        run, state = history.worked, history.final_state
        whole = asked = needed(job, run)
        metrics.core_seconds_asked += times * asked * job.spec.cpus
        if state is JobState.PREEMPTED:
            asked = asked if self._come_to(history, asked) is None else 0.0
        if state is JobState.COMPLETED or state is JobState.PREEMPTED:
            metrics.core_seconds_done += times * asked * job.spec.cpus
        if history.first_start is not None:
            slow = (at - job.spec.submit_at) / max(whole, run, _BOUND)
            metrics.slowdowns += times * (slow if slow > 1.0 else 1.0)
            metrics.ran += times
        return whole

    def revived(self, history: History, now: Seconds) -> None:
        """A job that had ended is to run again: its end counts no longer."""
        job = history.job
        whole = self._count(history, history.ended_at or now, -1)
        if history.final_state is JobState.PREEMPTED:
            self._undone(history, whole, -1)
        self.histories[job.id] = history
        history.revived = True
        history.state, history.since = _PENDING, now
        history.final_state = history.ended_at = None

    def thrown_away(self, job: Job) -> Seconds:
        """All that a job has come to counts as lost, for it begins anew; return for how long it ran."""
        history = self.histories[job.id]
        seconds = history.worked
        history.worked = 0.0
        self._lose(history, history.allocation, seconds)
        return seconds

    def work_kept(self, job: Job, seconds: Seconds) -> None:
        """Running time of an incarnation that counted."""
        self.histories[job.id].worked += seconds

    def checkpointed(self, job: Job, seconds: Seconds, now: Seconds) -> None:
        """A job saves its state, which keeps its nodes busy for some more `seconds`."""
        self.metrics.checkpoints += 1
        self.metrics.core_seconds_checkpointing += seconds * self.cores_of(job)
        self.metrics.core_seconds_saved += job.checkpointed * self.cores_of(job)
        self.note("checkpoint", job.id, now, saved=tidy(job.begun_with + job.checkpointed))

    def checkpoint_read(self, job: Job, seconds: Seconds) -> None:
        """A job spent so much of its running time on reading a checkpoint."""
        self.metrics.core_seconds_restarting += seconds * self.cores_of(job)

    def failed(self, victim: Job, preemptor: Job, asked: PreemptMode, why: str, now: Seconds) -> None:
        """A victim was told to make way, but what was asked could not be done."""
        self.failures.append((now, preemptor.id, victim.id, why))
        self.note("not_preempted", victim.id, now, preemptor=preemptor.id, asked=asked.value, why=why)

    def work_lost(self, job: Job, seconds: Seconds) -> None:
        """Running time that a requeue or cancel threw away."""
        self._lose(self.histories[job.id], job.allocation, seconds)

    def _lose(self, history: History, allocation: Allocation | None, seconds: Seconds) -> None:
        job, cpus = history.job, self.shapes.cpus_held(allocation)
        lost = seconds * cpus
        history.lost += lost
        if lost and self.metrics.losses is not None:
            self.metrics.losses.append((job.id, seconds, cpus))
        self.metrics.core_seconds_lost += lost
        if lost:
            _, before = self.metrics.lost_by_job.get(job.id, ("", 0.0))
            self.metrics.lost_by_job[job.id] = job.user, before + lost
        self.measures.lost(job, allocation, seconds)

    def _come_to(self, history: History, whole: Seconds) -> Seconds | None:
        """Return how far a job has come that preemption ended; None: it was through all the same.

        :param whole: how long it has to run.
        """
        job = history.job
        starts = [each for each in history.intervals if each[0] is _RUNNING and each[4] == job.restarts]
        come_to = job.begun_with + math.fsum(end - start for _, start, end, _, _ in starts)
        through = job.spec.run_time is not None and come_to >= whole - _TOLERANCE
        return None if through else come_to

    def _undone(self, history: History, whole: Seconds, times: int) -> None:
        """Count a job that preemption ended, with the work it never came to, or take that back.

        :param whole: how long it has to run. One that was through all the same is not counted.
        :param times: 1, or -1 to take it back.
        """
        job, come_to = history.job, self._come_to(history, whole)
        if come_to is None:
            return
        self._lose(history, history.allocation, times * max(0.0, whole - come_to))
        saved = job.begun_with + job.checkpointed if job.marked_saved else 0.0
        again = max(0.0, max(whole, come_to) - saved) * self.shapes.cpus_held(history.allocation)
        history.again = again if times > 0 else 0.0
        self.metrics.core_seconds_to_submit_again += times * again
        self.metrics.ended_by_preemption += times

    # ------------------------------------------------------------------------------ nodes
    def nodes_changed(self, nodes: NodeBits, state: str, now: Seconds) -> None:
        """Nodes are in another state from now on: down, drained or up."""
        self.outages.append((now, state, nodes))
        self.note("nodes", "", now, state=state, nodes=self.node_list(nodes))

    def node_failed(self, job: Job, nodes: NodeBits, now: Seconds, *, again: bool) -> None:
        """Nodes of a job failed; it waits again, or ends."""
        self.metrics.node_failures += 1
        self.metrics.ended_by_node_failure += not again
        self.node_failures.append((now, job.id, nodes, again))
        self.note("node_fail", job.id, now, nodes=self.node_list(nodes), requeued=again)

    # ------------------------------------------------------------------ reasons for waiting
    def waits_for(self, job: Job, now: Seconds) -> None:
        """The reason for which a job waits has changed; what it is when time moves on will count."""
        self._at(now)
        history = self.histories.get(job.id)
        if history is not None:
            self._changed[job.id] = history

    def time_moves(self, now: Seconds) -> None:
        """Time moves on, before anything happens then: why jobs wait is settled for the instant that is over."""
        if self.listens:
            self._at(now)

    def _at(self, now: Seconds) -> None:
        if now > self._now:
            self._settle()
            self._now = now

    def _settle(self) -> None:
        """Note why those wait whose reason changed at the instant that is over."""
        changed, now = self._changed, self._now
        if not changed:
            return
        for history in changed.values():
            reason = history.job.reason
            if history.state is not _PENDING or (history.waiting and history.waiting[1] == reason):
                continue
            self._stop_waiting(history, now)
            history.waiting = now, reason
            if self._sink is not None:
                self._emit(now, "reason", history.job, {"reason": reason})
        changed.clear()

    def _stop_waiting(self, history: History, now: Seconds) -> None:
        if history.waiting is not None:
            since, reason = history.waiting
            if now > since:
                history.waits.append((since, now, reason))
            history.waiting = None

    # ---------------------------------------------------------------------- decisions
    def preempted(
        self,
        victim: Job,
        preemptor: Job | None,
        mode: PreemptMode,
        by: str,
        why: str,
        now: Seconds,
    ) -> None:
        """A job has to make way."""
        history = self.histories[victim.id]
        self.metrics.jobs_preempted += not history.preempted
        history.preempted += 1
        self.metrics.preemptions += 1
        if self.metrics.wait_of is not None:
            self.metrics.preemptions_of[victim.id] = history.preempted
        self.measures.preempted(mode)
        if victim.started_at is not None and now - victim.started_at < self._young and mode in _LOSES_WORK:
            self.metrics.young_victims += 1
        group_of = self.grouping.of
        pair = (group_of(preemptor) if preemptor else "", group_of(victim), mode.value)
        self.metrics.pairs[pair] = self.metrics.pairs.get(pair, 0) + 1
        entry = Preemption(now, preemptor.id if preemptor else None, victim.id, mode, by, why)
        if self.keeps:
            self.preemptions.append(entry)
        if self._archive is not None:
            self._archive.preempted(entry)
        if self._sink is not None:
            self._at(now)
            data = entry.as_dict()
            del data["at"]
            self._emit(now, "preempt", victim, data)

    def traces(self, job: Job) -> bool:
        """Whether all attempts of `job` are kept as decisions."""
        return self.traced is not None and self.traced(job)

    def follows(self, job: Job) -> bool:
        """Whether attempts of `job` that start it or displace others are to be handed to `decided`."""
        return self.listens or self.traces(job)

    def is_news(self, job: Job, reason: str) -> bool:
        """Whether an attempt that lets `job` wait is to be handed to `decided`.

        That spares making a `Decision` for each of the many attempts that come to the same as the one before. How many
        they were is not told: schedulers differ in what they try anew.
        """
        if self.traced is not None and self.traced(job):
            return True
        if not self.listens:
            return False
        return self.histories[job.id].is_news(("waits", job.partition.name, reason, ()))

    def trace(self, decision: Decision) -> None:
        """Keep what is only for those who trace a job."""
        self.decisions.append(decision)
        if self.on_decision is not None:
            self.on_decision(decision)

    def decided(self, decision: Decision) -> None:
        """An attempt of a job came to an end."""
        history = self.histories[decision.job]
        if self.traced is not None and self.traced(history.job):
            self.trace(decision)
        if not self.listens:
            return
        self._at(decision.at)
        decided = decision.outcome, decision.partition, decision.reason, decision.victims
        if not history.is_news(decided):
            return
        history.decided = decided
        if self._sink is not None:
            self._emit(decision.at, "decision", history.job, decision.as_dict())
        if len(history.told) < DECISIONS_KEPT or decision.outcome != "waits":
            history.told.append(decision)
        else:
            history.untold += 1

    def rejected(self, job: Job, problem: str, now: Seconds) -> None:
        """A job cannot run on this cluster at all."""
        self.unrunnable.append((job.id, job.spec.source, problem))
        self.histories[job.id].problem = problem
        self.measures.rejected(job, now)
        if self._sink is not None:
            self._at(now)
            self._emit(now, "rejected", job, {"reason": problem, "source": job.spec.source})

    def refused(self, command: Command, reason: str, now: Seconds) -> None:
        """A person's command was refused."""
        self.refusals.append((now, command, reason))
        if self._sink is not None:
            self._at(now)
            data = {"command": command.name, "user": command.user, "reason": reason}
            self._sink(Line(now, "refused", command.job_id, data))

    def obeyed(self, command: Command, job: Job, now: Seconds) -> None:
        """A person's command was carried out."""
        if self.traces(job):
            self.commands.append((now, command))

    def note(self, kind: str, job_id: str, now: Seconds, **data: Any) -> None:
        """Write a line that is neither a change of state nor a preemption."""
        if self._sink is not None:
            self._at(now)
            self._sink(Line(now, kind, job_id, data))

    # ------------------------------------------------------------------------ results
    def summary(self, now: Seconds) -> dict[str, Any]:
        """Return the whole run in the design's shape; jobs by id, in order of submission.

        The reason of a job that has ended is empty, unless it could never run here: then it says why.
        """
        self.finish(now)
        total = self.shapes.cpus
        return {
            "jobs": {key: self.job_dict(h, now) for key, h in self.histories.items()},
            "preemptions": [entry.as_dict() for entry in self.preemptions],
            **self.mishaps(),
            **self.about_nodes(now),
            "metrics": self.figures(total),
        }

    def figures(self, cores: int) -> dict[str, Any]:
        """Return the metrics of the run so far, with its measures.

        :param cores: CPUs of the cluster.
        """
        open_ones = [each for each in self.histories.values() if each.final_state is None]
        self.metrics.core_seconds_open = math.fsum(
            needed(each.job, each.worked) * each.job.spec.cpus for each in open_ones
        )
        shown = self.metrics.as_dict(cores)
        shown |= self.measures.as_dict(self.metrics.first_submit or 0.0, self.metrics.last_end)
        return shown

    def finish(self, now: Seconds) -> None:
        """Take note that the run is over: which jobs have not ended, and why they wait."""
        if self.listens:
            self._at(now)
            self._settle()
        self.metrics.unfinished = sum(1 for history in self.histories.values() if history.final_state is None)

    def mishaps(self) -> dict[str, Any]:
        """Return what could not be carried out, in the summary's shape; nothing where all could."""
        return self._mishaps.as_dict()

    def about_nodes(self, until: Seconds) -> dict[str, Any]:
        """Return which nodes were out of service, in the summary's shape; nothing where none was."""
        if not self.outages:
            return {}
        return {
            "outages": list(self._outages(until)),
            "node_failures": [
                {"at": tidy(at), "job": job, "nodes": self.node_list(nodes), "requeued": again}
                for at, job, nodes, again in self.node_failures
            ],
        }

    def _outages(self, until: Seconds) -> Iterator[dict[str, Any]]:
        """Yield the stretches for which nodes were out of service; those of one begin and end together."""
        since: dict[int, tuple[Seconds, str]] = {}
        found: dict[tuple[Seconds, Seconds, str], NodeBits] = {}
        every = functools.reduce(operator.or_, (nodes for _, _, nodes in self.outages), 0)
        for at, state, nodes in [*self.outages, (until, "up", every)]:
            for node in bitmap.indices(nodes):
                start, was = since.pop(node, (at, "up"))
                if was != "up" and at > start:
                    found[start, at, was] = found.get((start, at, was), 0) | 1 << node
                since[node] = at, state
        for start, end, state in sorted(found):
            yield {
                "start": tidy(start),
                "end": tidy(end),
                "state": state,
                "nodes": self.node_list(found[start, end, state]),
            }

    def _state_data(self, job: Job, state: JobState, history: History) -> dict[str, Any]:
        data: dict[str, Any] = {"state": state.value}
        if state is _PENDING:
            data["reason"] = job.reason
            data["restarts"] = job.restarts
        elif history.allocation is not None:
            data["nodes"] = self.node_list(history.allocation.nodes)
        return data

    def _emit(self, now: Seconds, kind: str, job: Job, data: Mapping[str, Any]) -> None:
        if self._sink is not None:
            self._sink(Line(now, kind, job.id, data))


def to_json(line: Line) -> str:
    """Return a line of the record as JSON."""
    return json.dumps(line.as_dict(), separators=(",", ":"))


__all__ = ["Archive", "Decision", "History", "Line", "Preemption", "Recorder", "needed", "to_json"]

"""Keep the record of plain jobs with one call for each thing that happens to them.

A plain job waits, runs once, and ends by itself. `Recorder` says what each verb comes to; where somebody listens to
it, or measures are added up, it is asked itself. `plugins/engine/tests/test_express.py` holds one to the other.
"""

from __future__ import annotations

from array import array

from makeway.history import History, needed
from makeway.metrics import SLOWDOWN_BOUND
from makeway.model import Job, JobState, Seconds
from makeway.record import Recorder

_BOUND = SLOWDOWN_BOUND
_COMPLETED = JobState.COMPLETED
_PENDING = JobState.PENDING
_RUNNING = JobState.RUNNING


class ExpressRecord:
    """The record of one run, as far as plain jobs go."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._histories = recorder.histories
        self._metrics = recorder.metrics
        self._cpus_held = recorder.shapes.cpus_held
        self._cores = recorder.shapes.same_cores

    def entered(self, job: Job, now: Seconds) -> None:
        """A job was submitted."""
        recorder = self._recorder
        if recorder.is_followed:
            recorder.entered(job, now)
            return
        metrics = self._metrics
        self._histories[job.id] = History(job, now, number=metrics.jobs)
        metrics.jobs += 1
        if metrics.first_submit is None or now < metrics.first_submit:
            metrics.first_submit = now

    def started(self, job: Job, now: Seconds) -> None:
        """A job that waited runs."""
        recorder = self._recorder
        history = self._histories[job.id]
        if recorder.is_followed or history.state is not _PENDING or history.first_start is not None:
            recorder.moved(job, _RUNNING, now)
            return
        since = history.since
        if now > since:
            history.intervals.append((_PENDING, since, now, history.allocation, job.restarts))
            history.since = now
        history.state = _RUNNING
        history.first_start = now
        history.allocation = job.allocation
        metrics = self._metrics
        wait = now - job.spec.submit_at
        metrics.wait_total += wait
        waits = metrics.waits_in.get(job.partition.name)
        if waits is None:
            waits = metrics.waits_in[job.partition.name] = array("d")
        waits.append(wait)
        if metrics.wait_of is not None:
            metrics.wait_of[job.id] = wait

    def ended(self, job: Job, state: JobState, ran: Seconds, now: Seconds) -> None:
        """A job that ran has ended by itself.

        :param ran: running time of this incarnation, all of which counts.
        """
        recorder = self._recorder
        history = self._histories[job.id]
        if recorder.is_followed or history.state is not _RUNNING:
            recorder.work_kept(job, ran)
            recorder.ended(job, state, now)
            return
        worked = history.worked = history.worked + ran
        since, allocation = history.since, history.allocation
        history.intervals.append((_RUNNING, since, now, allocation, job.restarts))
        metrics = self._metrics
        held = None if allocation is None else allocation.cpus
        if held is not None:
            cpus = held[0] if len(held) == 1 else sum(held)
        elif self._cores is None or allocation is None:
            cpus = self._cpus_held(allocation)
        else:
            cpus = self._cores * len(allocation.node_indices)
        metrics.core_seconds_used += (now - since) * cpus
        history.since = history.ended_at = now
        history.state = history.final_state = state
        if now > metrics.last_end:
            metrics.last_end = now
        metrics.ended += 1
        if history.preempted:
            metrics.jobs_preempted += 1
        asked = needed(job, worked) * job.spec.cpus
        metrics.core_seconds_asked += asked
        if state is _COMPLETED:
            metrics.core_seconds_done += asked
        slow = (now - job.spec.submit_at) / (worked if worked > _BOUND else _BOUND)
        metrics.slowdowns += slow if slow > 1.0 else 1.0
        metrics.ran += 1
        if not recorder.keeps:
            del self._histories[job.id]


__all__ = ["ExpressRecord"]

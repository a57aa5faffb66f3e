"""Resume preempted jobs, and let them migrate (lsf 6.1, 6.3).

A suspended job goes on as soon as its hosts have its slots free, whatever freed them, unless a limit would be
broken. It goes before pending jobs of its own and lower queues; where jobs of higher queues wait for its hosts, these
have their turn first, and the arbiter acts when the pass is over. Among suspended jobs the higher queue goes first,
then the earlier start: the reverse of preemption.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, GangOrder, GangVerb, Job, JobState, PreemptMode, Seconds, Stay
from makeway_lsf_queue import admission, jobs, judging, opening, reserve, staying
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.presence import Presence, presence_of
from makeway_lsf_queue.protection import Guard
from makeway_lsf_queue.slots import Used, could_resume, rearranged
from makeway_lsf_queue.sums import Sums
from makeway_lsf_queue.survey import Survey, survey_of
from makeway_lsf_queue.victims import mode_of

_TINY = 1e-6
_by_index = operator.attrgetter("index")
_RUNNING, _SUSPENDED, _SUSPEND = JobState.RUNNING, JobState.SUSPENDED, PreemptMode.SUSPEND


class Arbiter:
    """The arbiter of one run. See `makeway.model.Gang`."""

    def __init__(self, view: ClusterView) -> None:
        self._site = site_of(view)
        self._view = view
        self._preemptor: dict[str, str] = {}
        """Suspended job -> the job that started on its slots, for ``resume = "preemptor"``."""
        self._resumed: list[Job] = []
        """Jobs that a person resumed since the last pass."""
        timed = any(
            time is not None
            for each in self._site.levels
            for time in (each.run_time, each.finish_time, each.interval, each.total_time)
        )
        self._only_slots_count = not (timed or self._site.has_reserving_queues)
        """Whether no job is protected for a time."""
        self._stoppers: dict[str, judging.Stopper] = {}
        """Suspended job -> the limit that was last found to stop it."""
        self._presence: Presence | None = None
        """Who is active in the run."""
        self._places: dict[str, tuple[object, ...]] = {}
        """Those of the survey."""
        self._asleep_at = -1
        """How often any job had done anything else than start, when all were found to stay stopped."""
        self._woken_at = -1
        """Version of the survey by which those were woken last whose limits have room again."""
        self._summed: tuple[int, Sums | None] = -1, None
        """What active jobs took of limits at a version of the survey."""

    # -------------------------------------------------------------------------------- events
    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Remember jobs that a person resumed, and what a new one displaced."""
        if job.started_at != view.now:
            self._resumed.append(job)
        if self._site.settings.resume == "preemptor":
            for other in self._suspended(view):
                preempted = other.suspended_at == view.now and not opening.by_window(self._site, other)
                if preempted and other.nodes & job.nodes:
                    self._preemptor.setdefault(other.id, job.id)
        return ()

    def _is_crowded(self, job: Job, view: ClusterView) -> bool:
        """Whether more slots are in use than there are on any host of a running job."""
        used = Used(view)
        return any(
            used.running(index) > used.nodes[index].cpus for index, _ in jobs.slots_on(job, used.nodes)
        )

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing: what can go on does so when the pass is over."""
        self._preemptor.pop(job.id, None)
        self._stoppers.pop(job.id, None)
        return ()

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    # ------------------------------------------------------------------------------ adoption
    def save(self) -> dict[str, Any]:
        """Return which job waits for which, and which a person just resumed; the rest is seen from the jobs."""
        found: dict[str, Any] = {}
        if self._preemptor:
            found["preemptor"] = dict(self._preemptor)
        if self._resumed:
            found["resumed"] = [job.id for job in self._resumed]
        return found

    def restore(
        self,
        active: Sequence[Job],
        leaving: Sequence[Job],
        memory: Mapping[str, Any] | None,
        view: ClusterView,
    ) -> Sequence[GangOrder]:
        """Let the same jobs wait for the same others."""
        self._view = view
        jobs = {job.id: job for job in (*active, *leaving)}
        told = memory or {}
        self._preemptor = {job_id: by for job_id, by in told.get("preemptor", {}).items() if job_id in jobs}
        self._resumed = [jobs[job_id] for job_id in told.get("resumed", ()) if job_id in jobs]
        return ()

    @property
    def next_tick(self) -> Seconds | None:
        """When the next suspended job has waited long enough to migrate (MIG), or a run window opens or closes."""
        site = self._site
        if not (site.has_migration or site.has_run_windows or presence_of(self._view).any_attributed):
            return None
        survey = survey_of(site, self._view)
        stopped: Sequence[Job] = survey.stopped
        if not self._site.has_migration:  # a job may say so itself
            attributed = survey.seen.attributed
            stopped = [job for job in stopped if job.id in attributed] if attributed else ()
        due = [at for job in stopped if (at := self._migrates_at(job)) is not None]
        if self._site.has_run_windows:
            active = itertools.chain(survey.stopped, *survey.running.values())
            edge = opening.next_edge(self._site, active, self._view.now)
            due += [] if edge is None else [edge]
        return min(due, default=None)

    def tick(self, view: ClusterView) -> Iterator[GangOrder]:
        """Let jobs migrate that were suspended for longer than MIG, and stop or resume those of run windows."""
        for job in list(self._suspended(view)):
            if (at := self._migrates_at(job)) is not None and at <= view.now + _TINY:
                yield self._migration(job)
        if not self._site.has_run_windows:
            return
        closed = False
        for order in self._closing(view):
            closed = True
            yield order
        # A pass follows if a job was stopped, or has its own window opened: then pending jobs come first.
        if not closed and not opening.tried_now(self._site, view):
            yield from self._resuming(view)

    def _closing(self, view: ClusterView) -> Iterator[GangOrder]:
        if not self._site.has_run_windows:
            return
        running = itertools.chain.from_iterable(list(survey_of(self._site, view).running.values()))
        for job in [job for job in running if opening.may_not_run(self._site, job, view.now)]:
            yield from opening.closing(self._site, job)

    def _migrates_at(self, job: Job) -> Seconds | None:
        if not self._site.has_migration and "mig" not in job.spec.attributes:
            return None
        if opening.by_window(self._site, job):
            return None  # never for run-window suspensions (6.1)
        mig = jobs.may_migrate(job, self._site)
        if mig is None or job.suspended_at is None or not job.requeueable:
            return None
        return job.suspended_at + mig + _AFTER

    def _migration(self, job: Job) -> GangOrder:
        saved = jobs.checkpointable(job, self._site)
        return GangOrder(
            verb=GangVerb.MOVE_ON,
            job=job,
            mode=PreemptMode.CHECKPOINT if saved else PreemptMode.REQUEUE,
            why="PEND_JOB_MIG (5), suspended for longer than MIG",
        )

    def before_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        """Resume what goes before all pending jobs for its hosts: none of them is of a higher queue (6.3)."""
        return () if self._sleeps_on(view) else self._resuming(view, first=True)

    def stays(self, job: Job, view: ClusterView) -> Iterator[Stay]:
        """Say why a suspended job is not resumed now."""
        preemptor = view.job(self._preemptor.get(job.id, ""))
        waited_for = preemptor.id if preemptor is not None and preemptor.state.active else None
        return staying.stays(self._site, job, view, waited_for)

    # -------------------------------------------------------------------------------- resuming
    def after_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        """Resume what can go on; an order at a time, so that each sees what those before it changed."""
        site = self._site
        if not (self._resumed or site.has_run_windows or site.has_gaps) and self._sleeps_on(view):
            return ()
        return self._after_pass(view)

    def _after_pass(self, view: ClusterView) -> Iterator[GangOrder]:
        yield from self._closing(view)  # what was started or resumed by a person
        resumed, self._resumed = self._resumed, []
        for job in resumed:
            # bresume only makes a job wait for its slots again (6.3); the engine has let it run beside others.
            if job.state is _RUNNING and self._is_crowded(job, view):
                yield GangOrder(
                    verb=GangVerb.SUSPEND, job=job, why="resumed by a person, and its slots are in use"
                )
        for job, reserving in list(reserve.expired(view, view.now)):
            requeues = self._site.queue_of(job).requeues_killed and job.requeueable
            yield GangOrder(
                verb=GangVerb.PREEMPT,
                job=job,
                mode=PreemptMode.REQUEUE if requeues else PreemptMode.CANCEL,
                because_of=reserving,
                why=f"interruptible backfill: the gap before the start of job {reserving.id} is over",
            )
        yield from self._resuming(view)

    def _resuming(self, view: ClusterView, *, first: bool = False) -> Iterator[GangOrder]:
        survey = self._survey(view)
        stopped = survey.stopped
        awake = self._awake(stopped, view, survey)
        pending = self._pending_hosts(view) if first and awake else {}
        if pending:
            queues = self._site.queues
            awake = [
                job
                for job in awake
                if not _is_wanted_above(queues[job.partition.name].priority, job.nodes, pending)
            ]
        if not awake:
            return
        waiting = sorted(awake, key=self._order)
        highest = max(pending, default=0)
        all_jobs: Sequence[Job] = stopped.copy()
        order: dict[str, tuple[object, ...]] = {}
        """The places of all, as they are before any goes on."""
        at = 0
        while at < len(waiting):
            job = waiting[at]
            at += 1
            if job.state is not _SUSPENDED:
                continue
            if pending and self._is_kept(job, all_jobs, order, pending, highest):
                continue
            if self._waits_for_preemptor(job, view) or self._stays_stopped(job, view, survey):
                continue
            # Slots are looked at first, though a limit may be in the way as well: that is answered sooner.
            needed = self._needed(job, view, survey)
            if needed is None or self._is_held_back(job, view):
                continue
            order = order or {each.id: self._order(each) for each in all_jobs}
            for other in needed:
                yield GangOrder(
                    verb=GangVerb.SUSPEND,
                    job=other,
                    because_of=job,
                    why=f"used slots of the suspended job {job.id}, which goes on",
                )
            allocation, trades = rearranged(job, view)
            yield GangOrder(
                verb=GangVerb.RESUME,
                job=job,
                allocation=allocation,
                trades=trades,
                why="its slots are free",
            )
            survey = self._survey(view)
            behind = order[job.id]
            left = [each for each in all_jobs if order[each.id] > behind]
            waiting = sorted(self._awake(left, view, survey), key=lambda each: order[each.id])
            at = 0

    def _sleeps_on(self, view: ClusterView) -> bool:
        """Whether all suspended jobs stay stopped; what starts takes slots, counts in limits, and wakes none."""
        presence = self._presence
        if presence is None or presence.view is not view:
            presence = self._presence = presence_of(view)
            self._asleep_at = -1
        given_back = presence.given_back
        if given_back == self._asleep_at:
            return True
        survey = self._survey(view)
        sleep = self._all_sleep(survey)
        if sleep and not survey.held_now:
            self._asleep_at = given_back
        return sleep

    def _all_sleep(self, survey: Survey) -> bool:
        """Whether it is known of each suspended job that it stays stopped."""
        stopped = len(survey.stopped)
        if not stopped or self._preemptor:
            return not stopped
        return len(survey.stuck) + len(survey.held) + len(survey.held_now) == stopped

    def _awake(self, listed: Sequence[Job], view: ClusterView, survey: Survey) -> Sequence[Job]:
        """Return those of which it is not known that they stay stopped."""
        if self._preemptor:
            return listed
        awake = survey.seen.stopped_ids.difference(survey.stuck, survey.held, survey.held_now)
        if listed is survey.stopped:
            active = presence_of(view).active
            found = sorted([active[job_id] for job_id in awake], key=_by_index)
        else:
            found = [job for job in listed if job.id in awake]
        return [job for job in found if not self._stays_stopped(job, view, survey)]

    def _is_kept(
        self,
        job: Job,
        all_jobs: Sequence[Job],
        order: Mapping[str, Any],
        pending: Mapping[int, NodeBits],
        highest: int,
    ) -> bool:
        """Whether jobs of a higher queue wait for a host that a job needs, or one behind which it has to stay.

        :param order: the places of all, as they were before any went on; empty: none has gone on.
        :param highest: the highest priority of `pending`.
        """
        nodes = job.nodes
        mine = order[job.id] if order else self._order(job)
        queues = self._site.queues
        for other in all_jobs if order else self._beside(job, all_jobs):
            priority = queues[other.partition.name].priority
            if priority >= highest:
                continue
            its = other.nodes
            if other is not job and not its & nodes:
                continue
            if other is not job and (order[other.id] if order else self._order(other)) > mine:
                continue
            if _is_wanted_above(priority, its, pending):
                return True
        return False

    def _beside(self, job: Job, all_jobs: Sequence[Job]) -> Sequence[Job]:
        """Return those of all suspended jobs, as they are now, that share a host with one, and maybe others."""
        nodes = job.nodes
        if nodes & (nodes - 1):
            return all_jobs
        on = survey_of(self._site, self._view).seen.suspended_on
        return [other for other in on[nodes.bit_length() - 1].values() if jobs.is_suspended(other)]

    def _survey(self, view: ClusterView) -> Survey:
        """Return the survey of the cluster as it is; what stops a job is to be looked at again where it changed."""
        survey = survey_of(self._site, view)
        self._places = survey.seen.places
        if survey.held and self._woken_at != survey.version:
            self._woken_at = survey.version
            if (sums := admission.sums_of(self._site, view)) is not None and sums.woken:
                survey.held -= sums.woken
                sums.woken.clear()
        return survey

    def _stays_stopped(self, job: Job, view: ClusterView, survey: Survey) -> bool:
        """Whether nothing has changed of what was found to stop a job: its slots, or a limit."""
        if job.id in survey.stuck or job.id in survey.held or job.id in survey.held_now:
            return True
        last = self._stoppers.get(job.id)
        if last is None:
            return False
        if self._summed[0] != survey.version:
            self._summed = survey.version, admission.sums_of(self._site, view)
        sums = self._summed[1]
        if sums is not None and last.still_stands(sums):
            self._let_sleep(job, last, survey)
            return True
        return self._breaks_limit(job, view, survey)

    def _let_sleep(self, job: Job, stopper: judging.Stopper, survey: Survey) -> None:
        """Remember what stops a job: until a job comes or goes that counts in it, or for this moment."""
        if job.id in survey.stuck:
            return
        if not self._site.has_reserving_queues and stopper.cell.version == stopper.version:
            survey.held.add(job.id)
            survey.held_now.discard(job.id)
            enough = stopper.enough(admission.counted(self._site, self._view), job)
            stopper.cell.let_sleep(job.id, enough)
        else:
            survey.held_now.add(job.id)

    def _breaks_limit(self, job: Job, view: ClusterView, survey: Survey) -> bool:
        stops = admission.keeps_stopped(self._site, job, view, self._stoppers)
        if stops and job.id in self._stoppers:
            self._let_sleep(job, self._stoppers[job.id], survey)
        return stops

    def _needed(self, job: Job, view: ClusterView, survey: Survey) -> list[Job] | None:
        """Return what to stop so that `job` has its slots; None: it cannot have them now."""
        if job.id in survey.stuck:
            return None
        if could_resume(job, survey.used):
            return []
        stopped = self._in_its_place(job, view, survey)
        if stopped is None and self._only_slots_count:
            _note_stuck(job, survey)
        return stopped

    def _pending_hosts(self, view: ClusterView) -> dict[int, NodeBits]:
        """Return priority of a queue -> hosts that its pending jobs may go to."""
        found: dict[int, NodeBits] = {}
        for name, hosts in presence_of(view).pending_hosts(view.now):
            priority = self._site.queues[name].priority
            found[priority] = found.get(priority, 0) | hosts
        return found

    def _order(self, job: Job) -> tuple[object, ...]:
        """Return the place of a suspended job among those that may go on."""
        known = self._places.get(job.id)
        if known is not None:
            return known
        if self._site.settings.resume_order == "first_suspended":
            place: tuple[object, ...] = (job.suspended_at or 0.0, job.index)
        else:
            # 1. the higher queue; 2. the earlier start, then the smaller id
            place = (-self._site.queue_of(job).priority, job.started_at or 0.0, job.index)
        self._places[job.id] = place
        return place

    def _waits_for_preemptor(self, job: Job, view: ClusterView) -> bool:
        """Whether it does not go on before the job that displaced it is gone (``resume = "preemptor"``)."""
        if self._preemptor and (preemptor := self._preemptor.get(job.id)) is not None:
            still = view.job(preemptor)
            if still is not None and still.state.active:
                return True
            del self._preemptor[job.id]
        return False

    def _is_held_back(self, job: Job, view: ClusterView) -> bool:
        """Whether something else than slots keeps it from going on."""
        if self._breaks_limit(job, view, survey_of(self._site, view)):
            return True
        leaving = view.completing
        # A job waits for other victims to leave as well: its share of the slots is kept for so long.
        return bool(leaving) and any(
            other.asked_at is not None
            and other.partition.nodes & leaving
            and other.partition.nodes & job.nodes
            and self._site.may_preempt(other.partition.name, job.partition.name)
            for other in view.pending
        )

    def _in_its_place(self, job: Job, view: ClusterView, survey: Survey) -> list[Job] | None:
        """Return the jobs to be stopped so that `job` can go on; None: that would not do (5.3)."""
        site = self._site
        below = self._below(job, view) if site.use_susp_slots and site.settings.take_back else []
        if not below:
            _note_stuck(job, survey)
            return None
        guard = Guard(site, job, view, view.now)
        below = [other for other in below if not guard.reason(other)]
        used = survey.used
        if not below or not could_resume(job, used, below):
            return None
        below.sort(key=lambda other: (site.queue_of(other).priority, -(other.started_at or 0), -other.index))
        for other in list(below):
            fewer = [each for each in below if each is not other]
            if could_resume(job, used, fewer):
                below = fewer
        return below

    def _below(self, job: Job, view: ClusterView) -> list[Job]:
        """Return the running jobs on its hosts that it may have stopped, whatever protects them at present."""
        site = self._site
        there = {other.id: other for index in bitmap.indices(job.nodes) for other in view.jobs_on(index)}
        return [
            other
            for other in there.values()
            if other.state is _RUNNING
            and other.started_at is not None
            and site.may_preempt(job.partition.name, other.partition.name)
            and mode_of(other, site) is _SUSPEND
        ]

    def _suspended(self, view: ClusterView) -> Sequence[Job]:
        return survey_of(self._site, view).stopped


def _is_wanted_above(priority: int, hosts: NodeBits, pending: Mapping[int, NodeBits]) -> bool:
    """Whether jobs of a higher queue wait for any of some hosts; by the priorities of their queues."""
    return any(above > priority and hosts & wanted for above, wanted in pending.items())


def _note_stuck(job: Job, survey: Survey) -> None:
    survey.stuck[job.id] = survey.seen.hosts[job.id]
    survey.held.discard(job.id)
    survey.held_now.discard(job.id)


_AFTER = 1e-3
"""MIG has to be exceeded."""

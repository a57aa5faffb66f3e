"""Let suspended jobs go on: each waits in the queue like any other, and may itself preempt (section 5).

There is no engine that resumes. When its turn comes a suspended job goes on if its own vnodes have room;
if not, it looks for victims there, as a waiting job does anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from makeway.model import (
    Attempt,
    Blocked,
    ClusterView,
    Cover,
    GangOrder,
    GangVerb,
    Job,
    JobState,
    Placement,
    PreemptMode,
    Seconds,
    SuspendedBy,
)
from makeway_openpbs_sched import actions, admission
from makeway_openpbs_sched.letters import MODES
from makeway_openpbs_sched.reasons import Reason
from makeway_openpbs_sched.room import Room
from makeway_openpbs_sched.search import search
from makeway_openpbs_sched.site import site_of, usage_of
from makeway_openpbs_sched.victims import candidates


class Arbiter:
    """The arbiter of one run. See `makeway.model.QueuedGang`."""

    @property
    def next_tick(self) -> Seconds | None:
        """Nothing happens by the clock."""
        return None

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    def tick(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    def before_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    def after_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    def waiting(self, view: ClusterView) -> Sequence[Job]:
        """Return the jobs that the scheduler suspended; those that a person did wait for that person."""
        return [
            job
            for job in view.active
            if job.state is JobState.SUSPENDED and job.suspended_by is SuspendedBy.POLICY and not job.held
        ]

    def turn(self, job: Job, view: ClusterView) -> Iterator[GangOrder]:
        """Let `job` go on, if need be once others have made way on its vnodes."""
        site, now = site_of(view), view.now
        if not admission.can_resume(job, view, now, site):
            yield from self._preempt(job, view)
            if not admission.can_resume(job, view, now, site):
                return
        room = Room(view.cluster, site.settings.restrict_res_to_release_on_suspend, view.active)
        room.charge(job, times=-1)
        yield GangOrder(
            verb=GangVerb.RESUME, job=job, allocation=room.resumed(job), why="its vnodes have room again"
        )

    def _preempt(self, job: Job, view: ClusterView) -> Iterator[GangOrder]:
        site, now = site_of(view), view.now
        found = candidates(job, view, now, site)
        if not found.jobs:
            return
        choice = search(_OwnVnodes(job, view), found, view, now, site)
        if isinstance(choice, Blocked):
            return
        victims = [found.jobs[at] for at in choice.victims]
        letters = {victim.id: actions.letter_and_refusals(victim, now, site)[0] for victim in victims}
        if not all(letters.values()):
            return
        for victim in victims:
            mode = MODES[letters[victim.id]]
            stops = mode is PreemptMode.SUSPEND
            yield GangOrder(
                verb=GangVerb.SUSPEND if stops else GangVerb.PREEMPT,
                job=victim,
                mode=mode,
                because_of=job,
                why=f"in the way of the suspended job {job.id}, which outranks it",
            )


class _OwnVnodes:
    """An attempt of a suspended job: it goes on where it was, or not at all. See `makeway.model.Attempt`."""

    def __init__(self, job: Job, view: ClusterView) -> None:
        self.job = job
        self._view = view
        self._site = site_of(view)
        self._released = self._site.settings.restrict_res_to_release_on_suspend
        self._room = Room(view.cluster, self._released, view.active)
        self._gone: list[Job] = []

    def fresh(self) -> Attempt:
        """Return an attempt with nothing removed."""
        return _OwnVnodes(self.job, self._view)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Return None: it is not only about vnodes."""
        return None

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if `job` were gone."""
        self._room.stop(job, wholly=mode.frees_all)
        self._gone.append(job)

    def probe(self) -> Placement | Blocked:
        """Say whether the job could go on."""
        job, view = self.job, self._view
        usage = usage_of(self._site, view)
        for other in self._gone:
            usage.add(other, -1)
        limit = next(admission.limits_hit(job, usage, self._site), None)
        for other in self._gone:
            usage.add(other)
        if limit is not None:
            return Blocked(reason=limit[0].text, resource=limit[0].resource)
        held = job.allocation
        if held is not None and self._room.could_resume(job, view.up & ~view.completing):
            return Placement(allocation=held)
        return Blocked(reason=Reason("vnodes", resource="ncpus").text, resource="ncpus")

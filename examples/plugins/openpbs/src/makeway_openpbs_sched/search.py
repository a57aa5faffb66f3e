"""Choose victims: take, cull by what blocks, let off from the back (sections 3.4 to 3.6)."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import (
    Allocation,
    Attempt,
    Blocked,
    Candidates,
    Choice,
    ClusterView,
    Job,
    Placement,
    PreemptMode,
    Seconds,
)
from makeway_openpbs_sched import admission
from makeway_openpbs_sched.limits import Usage, hit_hard
from makeway_openpbs_sched.reasons import Reason, helps, is_similar, reason_of
from makeway_openpbs_sched.room import Room
from makeway_openpbs_sched.settings import Version
from makeway_openpbs_sched.site import Site, running


class Search:
    """One search for one preemptor."""

    def __init__(
        self, attempt: Attempt, candidates: Candidates, view: ClusterView, now: Seconds, site: Site
    ) -> None:
        self._attempt = attempt
        self._job = attempt.job
        self._jobs = candidates.jobs
        self._view = view
        self._now = now
        self._site = site
        self._usage = Usage(running(view.active))
        self._taken: list[int] = []
        self._struck: set[int] = set()
        self._reasons: list[Reason] = []
        self._no_escalation = site.settings.version is not Version.V19_1

    def run(self) -> Choice | Blocked:
        """Return which jobs to take, and where the job then starts, or why none is touched."""
        found = self._attempt.probe()
        considered = 0
        while not isinstance(found, Placement):
            reason = reason_of(found.reason)
            if reason not in self._reasons:
                self._reasons.append(reason)
            at = self._next(reason)
            if at is None:
                return Blocked(detail=self._why_no_more(found.reason, reason))
            considered += 1
            if not self._take(at):
                continue
            found = self._attempt.probe()
        demoted = self._demotes_itself()
        if demoted:
            return Blocked(detail=demoted)
        placement = found
        victims = self._let_off(placement)
        if self._taken and not victims:
            # an inconsistency: better none than the wrong ones
            return Blocked(
                detail="all that were taken turned out needless, though it finds no room beside them"
            )
        return Choice(
            placement=placement,
            victims=tuple(victims),
            method="taken by value and start, then let off from the back",
            considered=considered,
        )

    # -------------------------------------------------------------------------------- taking
    def _next(self, reason: Reason) -> int | None:
        """Return the first candidate of the pool that may help with `reason`; None: there is none.

        Those before it were passed over for this reason before: the pool is sorted, and any that helped with it
        has been taken or struck off. Another reason begins again from the front.
        """
        oddities = self._site.settings.project_limit_by_user
        value = self._value(self._job)
        for at, job in enumerate(self._jobs):
            if at in self._taken or at in self._struck or not helps(reason, job, self._job, oddities):
                continue
            if self._value(job) < value:
                return at
        return None

    def _value(self, job: Job) -> int:
        return self._site.value(job, self._usage, self._now)

    def _take(self, at: int) -> bool:
        """Continue as if a candidate were gone; False: that would lift a victim above the preemptor (section 2.4)."""
        job = self._jobs[at]
        self._usage.add(job, -1)
        if self._no_escalation:
            value = self._value(self._job)
            if any(self._value(self._jobs[other]) > value for other in (*self._taken, at)):
                self._usage.add(job)
                self._struck.add(at)
                return False
        self._attempt.remove(job, self._credit(job))
        self._taken.append(at)
        return True

    def _credit(self, job: Job) -> PreemptMode:
        """Return a mode that frees as much as a search may count on (section 3.5 no. 4)."""
        return PreemptMode.REQUEUE if self._site.credits_all(job, self._now) else PreemptMode.SUSPEND

    def _demotes_itself(self) -> str:
        """Say how the preemptor would be preemptable at once, for it runs (section 2.4); empty: it would not."""
        before, level = self._level(self._job)
        self._usage.add(self._job)
        after, lower = self._level(self._job)
        if after >= before:
            return ""
        return (
            f"once started, its preemption value would fall from {before} ({level}) to {after} ({lower}), "
            "so no job makes way for it"
        )

    def _level(self, job: Job) -> tuple[int, str]:
        return self._site.value_and_level(job, self._usage, self._now)

    def _why_no_more(self, text: str, reason: Reason) -> str:
        """Say why no job is left that could help."""
        value, level = self._level(self._job)
        oddities = self._site.settings.project_limit_by_user
        risen: list[Job] = []
        lifted: list[Job] = []
        for at, job in enumerate(self._jobs):
            if at in self._taken or not helps(reason, job, self._job, oddities):
                continue
            (lifted if at in self._struck else risen).append(job)
        names = ", ".join(self._jobs[at].id for at in self._taken)
        if risen:
            theirs = " and ".join(dict.fromkeys("{} ({})".format(*self._level(job)) for job in risen))
            who = ", ".join(job.id for job in risen)
            return (
                f"once {names} has made way, {who} would have {theirs}, no longer below its {value} ({level})"
            )
        if lifted:
            who = ", ".join(job.id for job in lifted)
            return f"making way would lift {who} above its preemption value {value} ({level})"
        more = f" once {names} has made way" if names else ""
        return f"no job that may make way helps with: {text}{more}"

    # ---------------------------------------------------------------------------- letting off
    def _let_off(self, placement: Placement) -> list[int]:
        """Return those that have to go, in the order taken (section 3.6); the preemptor counts as running."""
        nodes = placement.allocation.nodes
        room = self._room(placement.allocation)
        victims = list(self._taken)
        for at in reversed(self._taken):
            job = self._jobs[at]
            similar = any(is_similar(reason, job, self._job, nodes) for reason in self._reasons)
            if not similar or self._fits_back(job, room):
                victims.remove(at)
        return victims

    def _room(self, placed: Allocation) -> Room:
        """Return what is free once all taken are gone and the preemptor is there."""
        released = self._site.settings.restrict_res_to_release_on_suspend
        room = Room(self._view.cluster, released, self._view.active)
        if self._job.allocation is not None:
            room.charge(self._job, times=-1)  # it was suspended, and kept something
        for at in self._taken:
            room.stop(self._jobs[at], wholly=self._credit(self._jobs[at]).frees_all)
        room.hold(placed)
        return room

    def _fits_back(self, job: Job, room: Room) -> bool:
        """Put a victim back beside the preemptor if it fits, on its own vnodes and under all hard limits."""
        held = job.allocation
        if held is None:
            return False
        kept = not self._credit(job).frees_all
        if kept:
            room.keep(held, -1)
        if room.fits(held) and not any(_broken(job, self._site, self._usage)):
            room.hold(held)
            self._usage.add(job)
            return True
        if kept:
            room.keep(held)
        return False


def _broken(job: Job, site: Site, usage: Usage) -> Iterator[bool]:
    queue = job.partition.name
    yield from (True for _ in hit_hard(job, site.server, "", usage))
    yield from (True for _ in hit_hard(job, site.queues[queue], queue, usage))


def search(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: Seconds, site: Site
) -> Choice | Blocked:
    """Search once; no job is touched unless the whole plan works."""
    if admission.incurable(attempt.job, now, site):
        return Blocked(detail="no preemption can cure what blocks it")
    return Search(attempt, candidates, view, now, site).run()

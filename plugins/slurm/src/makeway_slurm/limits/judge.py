"""Hold a pending job against all limits that hold for it, in their order (slurm-priority-and-limits 6.2)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.model import Blocked, ClusterView, Job
from makeway.partition_bounds import BOUNDS
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits import alone, jobs, tres, tres_minutes, wall_time
from makeway_slurm.limits.access import Door
from makeway_slurm.limits.answers import both
from makeway_slurm.limits.asked import Asked, Listed
from makeway_slurm.limits.attendance import Attendance
from makeway_slurm.limits.barred import barred
from makeway_slurm.limits.deny import Strictness, TooLarge
from makeway_slurm.limits.ending import Ending
from makeway_slurm.limits.given_time import GivenTime
from makeway_slurm.limits.headroom import Headroom
from makeway_slurm.limits.kinds import EACH, Kind
from makeway_slurm.limits.lifting import Lifting
from makeway_slurm.limits.limit_stop import held_up_by
from makeway_slurm.limits.listing import Listing
from makeway_slurm.limits.node_cap import node_cap
from makeway_slurm.limits.qos_limits import limits_of
from makeway_slurm.limits.requested import Requested
from makeway_slurm.limits.requests import Requests
from makeway_slurm.limits.room import Room
from makeway_slurm.limits.rulebook import RuleBook
from makeway_slurm.limits.settings import Settings
from makeway_slurm.limits.simple import Simple
from makeway_slurm.limits.submission import Submission
from makeway_slurm.limits.submits import Submits
from makeway_slurm.limits.usage_threshold import too_greedy

# Members of an Enum are bound once where they are asked for again and again: Python 3.11 looks them up by a detour.
_TRES, _JOBS, _RUN_MINUTES = Kind.TRES, Kind.JOBS, Kind.RUN_MINUTES
_USED_MINUTES, _USED_WALL = Kind.USED_MINUTES, Kind.USED_WALL


class Judge(Attendance):
    """The limits of one run, as a book that every call finds again (`ClusterView.book`)."""

    def __init__(self, view: ClusterView) -> None:
        settings = self._settings = view.settings(Settings)
        super().__init__(view, ends=not settings.safe)
        counts, usage = self._counts, self._usage
        qos = {each.name: each for each in view.cluster.qos}
        limits = {name: limits_of(each, view.cluster) for name, each in qos.items()}
        enforced = settings.enforce
        rules = self._rules = RuleBook(usage.tree if enforced else None, qos, limits if enforced else {})
        strictness, requested, whole_nodes = Strictness(qos), Requested(view), WholeNodes(view)
        listing = self.listing = Listing(rules, counts, usage)
        simple = Simple(view, counts, listing, whole_nodes)
        self.given_time = GivenTime(strictness, rules, counts, requested)
        self.requests = Requests(
            view, counts, listing, simple, requested, whole_nodes, self.given_time.of, self._remembered
        )
        self._known = self.requests.known
        self._lifting = Lifting(counts, allowed=settings.lift_by_preempting)
        self._plans_for_barred = view.rule("backfill_plans_for_barred_accounts")
        self.door = Door(view, settings, usage)
        there = self._elsewhere.any
        too_large = TooLarge(
            strictness, rules, counts, self.requests.anew, requested, whole_nodes, has_partition_qos=there
        )
        submits = Submits(rules, counts, self._elsewhere)
        self.submission = Submission(
            self.door, submits, too_large, strictness, counts, has_partition_qos=there
        )
        self.ending = Ending(view, rules, usage, counts, listing.entry_of)
        room = Room(counts, usage, self.ending)
        self.headroom = Headroom(view, self._known, simple.box, self.door, room.fits)

    def blocked(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the limit that keeps a pending job out; None: none does."""
        shut = self.door.shut(job, job.partition)
        if not shut:
            return self._by_limits(job, view)
        if shut in BOUNDS and len(job.partitions) > 1:
            found = self._by_limits(job, view)  # the reason, if nodes are not looked at for it
            if found is not None and found.before_nodes:
                return found
        planned_for = (
            self._plans_for_barred
            and self.door.bars_account_alone(job, job.partition)
            and self._by_limits(job, view) is None
        )
        return barred(shut, planned_for=planned_for)

    def _by_limits(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the limit of a QOS or an association that keeps a job out; None: none does."""
        asked = self._known(job)
        if not asked.open:
            return None
        self._usage.advance(view.now)
        self._counts.brought_up()
        is_quiet = asked.quiet is not asked.open and view.now < self.ending.quiet_until(asked.seat.group)
        held: Blocked | None = None
        for each, wanted in asked.quiet if is_quiet else asked.open:
            # Most limits are far away: that is seen at a glance.
            if each.kind is _TRES:
                if each.name == NODE:
                    if not job.required and each.holds.nodes.bit_count() + wanted <= each.most:
                        continue
                elif each.holds.tres.get(each.name, 0) + wanted <= each.most:
                    continue
            elif each.kind is _JOBS and each.holds.jobs < each.most:
                continue
            found = self.against(each, job, asked, view)
            if found is None:
                continue
            if self._settings.limit_stop:
                found = held_up_by(found, each, job, self._settings)
            if not found.depends_on_nodes:
                return found if held is None else attrs.evolve(held, counted=(), least_nodes=0)
            # It depends on the nodes that are chosen; those behind it have to let the job in, too.
            held = found if held is None else both(held, found)
        return held

    def against(self, listed: Listed, job: Job, asked: Asked, view: ClusterView) -> Blocked | None:
        """Hold a job against one limit."""
        rule, kind, entry, usage = listed.rule, listed.kind, listed.entry, self._usage
        if listed.alone:
            return alone.keeps_out(rule, job, asked)
        wanted = asked.counts.get(rule.name, 0)
        if kind is _TRES:
            return tres.held(listed, job, wanted, view, self._lifting)
        if kind is _JOBS:
            return jobs.running(listed, view, self._lifting)
        if kind is _USED_MINUTES:
            return tres_minutes.used_up(rule, asked, wanted, entry, usage, self._settings)
        if kind is _RUN_MINUTES:
            if rule.key in EACH:
                entry = usage.shared.get(listed.key)
            return tres_minutes.running(rule, asked, wanted, entry, usage)
        if kind is _USED_WALL:
            return wall_time.used_up(rule, asked, listed.entry, usage, self._settings)
        return too_greedy(rule, job, usage)

    def node_cap(self, job: Job) -> int | None:
        """Return to how many nodes limits cap a job before any are chosen; None: to no number."""
        return node_cap(self._rules.of(self._counts.seat(job).places))


def admitted(jobs: Sequence[Job], view: ClusterView) -> dict[str, Blocked]:
    """Return which of some pending jobs a limit keeps out."""
    judge = view.book(Judge)
    found = {}
    for job in jobs:
        blocked = judge.blocked(job, view)
        if blocked is not None:
            found[job.id] = blocked
    return found


__all__ = ["Judge", "admitted"]

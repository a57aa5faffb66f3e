"""Hold a pending job against all limits that hold for it, in their order (slurm-priority-and-limits 6.2)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from makeway.model import Blocked, ClusterView, Job
from makeway.partition_bounds import BOUNDS, CONFIG
from makeway_slurm.accounts.tres import NODE
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits import alone, jobs, tres, tres_minutes, wall_time
from makeway_slurm.limits.access import ACCOUNT, Door
from makeway_slurm.limits.answers import both
from makeway_slurm.limits.asked import Asked, Listed
from makeway_slurm.limits.barred import barred
from makeway_slurm.limits.counts import CountBook
from makeway_slurm.limits.ending import Ending
from makeway_slurm.limits.kinds import EACH, Kind
from makeway_slurm.limits.lifting import Lifting
from makeway_slurm.limits.limit_stop import held_up_by
from makeway_slurm.limits.settings import Settings
from makeway_slurm.limits.usage_threshold import too_greedy

# Members of an Enum are bound once where they are asked for again and again: Python 3.11 looks them up by a detour.
_TRES, _JOBS, _RUN_MINUTES = Kind.TRES, Kind.JOBS, Kind.RUN_MINUTES
_USED_MINUTES, _USED_WALL = Kind.USED_MINUTES, Kind.USED_WALL


class Waiting:
    """The pending jobs of one run."""

    def __init__(
        self,
        view: ClusterView,
        counts: CountBook,
        usage: UsageBook,
        ending: Ending,
        door: Door,
        asked_by: Callable[[Job], Asked],
    ) -> None:
        self._settings = view.settings(Settings)
        self._plans_for_barred = view.rule("backfill_plans_for_barred_accounts")
        self._counts = counts
        self._usage = usage
        self._ending = ending
        self._door = door
        self._asked_by = asked_by
        self._lifting = Lifting(counts, allowed=self._settings.lift_by_preempting)

    def blocked(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the limit that keeps a pending job out; None: none does."""
        shut = self._door.shut(job, job.partition)
        if not shut:
            return self._by_limits(job, view)
        if self._settings.part_limits != "NO" and shut not in BOUNDS:
            return barred(CONFIG, planned_for=False)  # as bounds do (recorded: part_any_bars)
        found = None
        if shut in BOUNDS and len(job.partitions) == 1:
            # What else keeps it out lets it wait though no node could run it (recorded: part_bounds_and_limits_24_11).
            also = self._door.names(job, job.partition) or self._limit_before_nodes(job, view)
            return attrs.evolve(barred(shut, planned_for=False), detail=also or shut)
        if shut not in BOUNDS or len(job.partitions) > 1:
            found = self._by_limits(job, view)
            if found is not None and found.before_nodes:
                # Nodes are not looked at for it (recorded: part_bars_and_limit, part_bars_qos_and_limit).
                return found
        planned_for = (
            self._plans_for_barred and found is None and self._door.bars_account_alone(job, job.partition)
        )
        if self._settings.accounts_as_config and shut.startswith(ACCOUNT):
            # One of several leaves the reason as it is (recorded: builtin_goes_on_with_partitions_24_11).
            several = len(job.partitions) > 1
            return attrs.evolve(
                barred(CONFIG, planned_for=planned_for),
                reason=job.reason if several and job.reason != "BadConstraints" else CONFIG,
                detail=shut,
                at_submission=True,
                at_submission_only=True,
                stays=not several,
            )
        return barred(shut, planned_for=planned_for)

    def _limit_before_nodes(self, job: Job, view: ClusterView) -> str:
        found = self._by_limits(job, view)
        return found.detail if found is not None and found.before_nodes else ""

    def _by_limits(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the limit of a QOS or an association that keeps a job out; None: none does."""
        asked = self._asked_by(job)
        if not asked.open:
            return None
        self._usage.advance(view.now)
        self._counts.brought_up()
        is_quiet = asked.quiet is not asked.open and view.now < self._ending.quiet_until(asked.seat.group)
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
                if held is None or (held.nodes_first and held.allows_fewest):
                    return found
                return attrs.evolve(held, counted=(), least_nodes=0)
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

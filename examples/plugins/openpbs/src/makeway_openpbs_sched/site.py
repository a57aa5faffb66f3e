"""Understand a site's settings once a run, and answer what the rules ask about jobs (section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from makeway.errors import ConfigError, Problem
from makeway.model import Cluster, ClusterView, Job, JobState, Seconds, SuspendedBy
from makeway_openpbs_sched import letters, levels, targets
from makeway_openpbs_sched.limits import Limits, Usage, limits_of, over_soft
from makeway_openpbs_sched.settings import (
    PATH,
    Gate,
    OverLimit,
    Percent,
    Settings,
    Version,
    WalltimeUsed,
)
from makeway_openpbs_sched.targets import Targets
from makeway_openpbs_sched.windows import is_open, windows_of

QRUN = "QRUN"
"""Flag of a job that an administrator starts by qrun."""


class Site:
    """One site; made of its settings and its cluster, and never changed."""

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        """Understand the settings, and the attributes of queues.

        :raises ConfigError: with all attributes of queues that cannot be understood.
        """
        self.settings = settings
        self.cluster = cluster
        self.levels = levels.levels_of(settings.preempt_prio)
        self.order = letters.order_of(settings.preempt_order)
        self.server: Limits = limits_of(settings.server)
        self.queues: dict[str, Limits] = {}
        self.priorities: dict[str, int] = {}
        problems: list[Problem] = []
        for queue in cluster.partitions:
            where = f"partition[{queue.index}].attributes"
            priority = queue.attributes.get("Priority", 0)
            if isinstance(priority, bool) or not isinstance(priority, int) or not -1024 <= priority <= 1023:
                text = f"got {priority!r}; allowed: a whole number from -1024 to 1023"
                problems.append(Problem(f"{where}.Priority", text))
                priority = 0
            self.priorities[queue.name] = priority
            try:
                self.queues[queue.name] = limits_of(queue.attributes)
            except ValueError as error:
                problems.append(Problem(where, str(error)))
        known = {
            *targets.KNOWN_RESOURCES,
            *cluster.licenses,
            *(n for node in cluster.nodes for n in node.gres),
        }
        self.resources = frozenset(known)
        for at, name in enumerate(settings.restrict_res_to_release_on_suspend):
            if name not in known:
                text = f"no resource {name!r}; allowed: {', '.join(sorted(known))}"
                problems.append(Problem(f"{PATH}.restrict_res_to_release_on_suspend[{at}]", text))
        if problems:
            raise ConfigError("config", problems)
        self.any_soft = any(limits.soft for limits in (self.server, *self.queues.values()))
        self.any_hard = any(limits.hard or limits.total for limits in (self.server, *self.queues.values()))
        self.express = frozenset(
            name for name, priority in self.priorities.items() if priority >= settings.preempt_queue_prio
        )
        self._prime = [window for text in settings.prime_time for window in windows_of(text)]
        self._fair_total = sum(each.usage for each in settings.fairshare.values())
        self._targets: dict[str, Targets] = {}
        self.usage_known: tuple[object, Usage] | None = None

    # ------------------------------------------------------------------------------- levels
    def statuses(self, job: Job, usage: Usage, now: Seconds) -> list[str]:
        """Return all statuses of `job` (section 1.4)."""
        found = []
        if job.partition.name in self.express:
            found.append(levels.EXPRESS)
        if self._starving(job, now):
            found.append(levels.STARVING)
        fair = self.settings.fairshare.get(job.user)
        if fair is not None and fair.usage > self._fair_total * fair.share:
            found.append(levels.FAIRSHARE)
        if self.any_soft:
            ahead = (
                self.settings.over_limit_resume is OverLimit.LOOK_AHEAD and job.state is JobState.SUSPENDED
            )
            if ahead:
                usage.add(job)
            queue = job.partition.name
            if over_soft(job, self.queues[queue], queue, usage):
                found.append(levels.QUEUE_SOFT)
            if over_soft(job, self.server, "", usage):
                found.append(levels.SERVER_SOFT)
            if ahead:
                usage.add(job, -1)
        return found

    def _starving(self, job: Job, now: Seconds) -> bool:
        settings = self.settings
        if settings.version is Version.V22_05 or not settings.help_starving_jobs or job.spec.reservation:
            return False
        until = job.started_at if job.started_at is not None else now
        return until - job.eligible_at > settings.max_starve

    def value(self, job: Job, usage: Usage, now: Seconds) -> int:
        """Return the preemption value of `job` (section 2.2)."""
        return self.value_and_level(job, usage, now)[0]

    def value_and_level(self, job: Job, usage: Usage, now: Seconds) -> tuple[int, str]:
        """Return the preemption value of `job`, and the level that gives it."""
        statuses = self.statuses(job, usage, now)
        if QRUN in job.spec.flags and not any(
            len(level.statuses) > 1 and level.statuses <= set(statuses) for level in self.levels.listed
        ):
            return levels.TOP, "qrun"
        return self.levels.value(statuses, self.priorities[job.partition.name])

    # -------------------------------------------------------------------------------- gate
    def beneath(self, preemptor: Job, value: int, values: Mapping[str, int]) -> bool:
        """Whether a search is made at all (section 2.5).

        :param values: id of each running job -> its value.
        """
        source = self.settings.gate is Gate.SOURCE
        several = preemptor.partition.name in self.express and len(self.express) > 1
        if not source or several:
            return any(other < value for other in values.values())
        ranks = {level.rank for level in self.levels.listed if level.rank < value}
        return any(other in ranks for other in values.values())

    # -------------------------------------------------------------------------------- time
    def clock(self, job: Job, now: Seconds) -> float | None:
        """Return the time by the site's clock, as if it were UTC; None: nothing says."""
        if job.spec.wall_submit is not None:
            return job.spec.wall_submit - job.spec.submit_at + now
        begin = self.settings.starts_at
        return None if begin is None else begin + now

    def is_on(self, job: Job, now: Seconds) -> tuple[bool, Seconds | None]:
        """Say whether preemption is on (section 1.2), and when that changes; None: it does not.

        :raises ConfigError: that depends on prime time, and nothing says what time it is.
        """
        settings = self.settings
        other = settings.preemptive_sched_non_prime
        if other is None or other is settings.preemptive_sched or not self._prime:
            return settings.preemptive_sched, None
        unix = self.clock(job, now)
        if unix is None:
            text = "the workload has no wall-clock times; say when the replay begins: start = 2026-03-02T00:00:00"
            raise ConfigError("config", [Problem(f"{PATH}.prime_time", text)])
        prime, left = is_open(self._prime, unix)
        return settings.preemptive_sched if prime else other, None if left is None else now + left

    def dedicated(self, job: Job, now: Seconds) -> Seconds | None:
        """Return when the dedicated time is over that `job` would run into; None: it would not."""
        length = job.time_limit - job.ran_until(now) if job.time_limit is not None else float("inf")
        for begin, end in sorted((span[0], span[1]) for span in self.settings.dedicated_time):
            if now < end and now + length > begin:
                return end
        return None

    # ----------------------------------------------------------------------------- letters
    def group(self, job: Job, now: Seconds) -> str:
        """Return the letters of `job` for its share of time left; empty: none."""
        single = self.settings.percent is Percent.SINGLE
        elapsed = self.settings.walltime_used is WalltimeUsed.ELAPSED
        left = None
        if self.order.percents:
            left = letters.percent_left(job, now, single=single, elapsed=elapsed)
        return self.order.group(left)

    def usable(self, job: Job, now: Seconds) -> str:
        """Return the letters of its group that are usable for `job` (section 3.3 d)."""
        return "".join(letter for letter in self.group(job, now) if _may(job, letter))

    def credits_all(self, job: Job, now: Seconds) -> bool:
        """Whether a search counts on everything that `job` holds (section 3.5 no. 4)."""
        if not self.settings.restrict_res_to_release_on_suspend:
            return True
        return not (self.group(job, now)[:1] == "S" and _may(job, "S"))

    # ----------------------------------------------------------------------------- targets
    def targets(self, job: Job) -> Targets | None:
        """Return the targets of `job`; None: all running jobs.

        :raises ValueError: they cannot be understood.
        """
        text = targets.asked_targets(job, self.settings.server)
        if text is None or not self.settings.preempt_targets_enable:
            return None
        if text not in self._targets:
            self._targets[text] = targets.targets_of(text, set(self.priorities), self.resources)
        return self._targets[text]


def _may(job: Job, letter: str) -> bool:
    """Whether a letter is usable for a job, as far as its own properties say (section 1.11)."""
    attributes = job.spec.attributes
    if letter == "S":
        return "eoe" not in attributes
    if letter == "C":
        return attributes.get("Checkpoint") != "n" and "eoe" not in attributes
    return job.requeueable if letter == "R" else True


def is_preempted(job: Job) -> bool:
    """Whether `job` had to make way and has not run since (section 4.4)."""
    if job.state is JobState.SUSPENDED:
        return job.suspended_by is SuspendedBy.POLICY
    return job.state is JobState.PENDING and job.preemptions > job.preemptions_before


def preempted_at(job: Job) -> Seconds:
    """Return when a preempted job had to make way."""
    return job.preempted_at[-1] if job.preempted_at else 0.0


def started(job: Job, now: Seconds) -> Seconds:
    """Return the start of the run in progress; a job that went on in this cycle counts as just started (3.5)."""
    if job.resumed_at == now:
        return now
    return job.started_at or 0.0


def usage_of(site: Site, view: ClusterView) -> Usage:
    """Count what running jobs use, as `view` shows them; nothing is counted where no soft limit asks."""
    if not (site.any_soft or site.any_hard):
        return Usage(())
    key = (view.version, view.now, tuple(job.id for job in view.made_way))
    if site.usage_known is None or site.usage_known[0] != key:
        site.usage_known = (key, Usage(running(view.active)))
    return site.usage_known[1]


def running(jobs: Iterable[Job]) -> list[Job]:
    """Return those that run."""
    return [job for job in jobs if job.state is JobState.RUNNING]


class _Memo:
    site: Site | None = None


def site_of(view: ClusterView) -> Site:
    """Return the site of a run; one is kept, known by the settings and the cluster that it was made of.

    :raises ConfigError: with all that cannot be understood.
    """
    settings = view.settings(Settings)
    known = _Memo.site
    if known is None or known.settings is not settings or known.cluster is not view.cluster:
        known = _Memo.site = Site(settings, view.cluster)
    return known

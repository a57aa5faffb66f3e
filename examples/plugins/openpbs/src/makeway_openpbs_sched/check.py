"""Find what OpenPBS would refuse, or does unexpectedly (sections 1 and 2.2)."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.errors import ConfigError, Finding
from makeway.model import Cluster
from makeway_openpbs_sched.limits import unknown_attribute
from makeway_openpbs_sched.settings import PATH, Settings
from makeway_openpbs_sched.site import Site
from makeway_openpbs_sched.targets import targets_of


def findings(cluster: Cluster, settings: Settings) -> list[Finding]:
    """Return all findings about a configuration whose single values are sound."""
    try:
        site = Site(settings, cluster)
    except ConfigError as error:
        return list(map(Finding.of, error.problems))
    return [*_queues(cluster), *_levels(site), *_order(site), *_targets(site), *_times(settings)]


_OF_QUEUE = ("Priority", "enabled", "started", "resources_default.preempt_targets")


def _queues(cluster: Cluster) -> Iterator[Finding]:
    for queue in cluster.partitions:
        for key in queue.attributes:
            message = unknown_attribute(key, _OF_QUEUE)
            if message:
                where = f"partition[{queue.index}].attributes"
                yield Finding(level="warning", where=where, message=message, section="openpbs 6.3")


def _warning(key: str, message: str, section: str) -> Finding:
    return Finding(level="warning", where=f"{PATH}.{key}", message=message, section=f"openpbs {section}")


def _levels(site: Site) -> Iterator[Finding]:
    if not site.levels.normal:
        text = "normal_jobs is not listed: a job that no level fits has value 0, the lowest"
        yield _warning("preempt_prio", text, "2.2")
    seen: set[frozenset[str]] = set()
    for level in site.levels.listed:
        if level.statuses in seen:
            yield _warning("preempt_prio", f"{level.text} is there twice; the first counts", "2.2")
        seen.add(level.statuses)
    for name in sorted(site.express):
        if site.priorities[name] >= 1000:
            at = next(queue.index for queue in site.cluster.partitions if queue.name == name)
            text = f"Priority {site.priorities[name]} lifts the jobs of {name} above the level before express_queue"
            yield Finding(
                level="warning",
                where=f"partition[{at}].attributes.Priority",
                message=text,
                section="openpbs 2.2",
            )


def _order(site: Site) -> Iterator[Finding]:
    order, settings = site.order, site.settings
    if order.trailing:
        text = f"it ends in a percent: jobs with {order.percents[-1]} % or less of their time left are never preempted"
        yield _warning("preempt_order", text, "1.5")
    if order.dead:
        yield _warning("preempt_order", "the first percent is 0: what follows is never used", "1.5")
    falling = sorted(set(order.percents), reverse=True) == list(order.percents)
    if not falling or max(order.percents, default=0) > 100:
        text = "its percents do not fall from 100: shares of time in no range use the first group"
        yield _warning("preempt_order", text, "1.5")
    on = settings.preemptive_sched or settings.preemptive_sched_non_prime
    if on and any("C" in group for group in order.groups) and not settings.checkpoint_abort:
        text = "the letter C always fails: checkpoint_abort says that the MoMs have no script for it"
        yield Finding(level="note", where=f"{PATH}.preempt_order", message=text, section="openpbs 1.11")


def _targets(site: Site) -> Iterator[Finding]:
    key = "resources_default.preempt_targets"
    holders = [(f"{PATH}.server", site.settings.server)]
    holders += [
        (f"partition[{queue.index}].attributes", queue.attributes) for queue in site.cluster.partitions
    ]
    for where, attributes in holders:
        text = attributes.get(key)
        if isinstance(text, str):
            try:
                targets_of(text, set(site.priorities), site.resources)
            except ValueError as error:
                yield Finding(
                    level="error", where=f"{where}.{key}", message=str(error), section="openpbs 1.7"
                )


def _times(settings: Settings) -> Iterator[Finding]:
    other = settings.preemptive_sched_non_prime
    if other is None or other is settings.preemptive_sched:
        return
    if not settings.prime_time:
        text = "no prime_time is said, so it is always prime time, and this is never used"
        yield _warning("preemptive_sched_non_prime", text, "1.2")
    elif settings.start is None:
        text = "prime time counts for workloads with wall-clock times only; 'start' says when another replay begins"
        yield Finding(level="note", where=f"{PATH}.prime_time", message=text, section="openpbs 1.2")

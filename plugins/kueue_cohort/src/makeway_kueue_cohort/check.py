"""Find what a site states that is not modelled, or hardly means what it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from makeway.errors import Finding, Level, nearest
from makeway.hostlist import expand_hostlist
from makeway.model import Cluster
from makeway_kueue_cohort.settings import NAME, Settings
from makeway_kueue_cohort.site import Sharing, Within

_PATH = f'policy.settings."{NAME}"'


def findings(config: Any, cluster: Cluster, settings: Settings) -> list[Finding]:
    """Return what is wrong or odd."""
    return [*_of_config(config, cluster, settings), *_of_queues(settings), *_of_flavors(cluster, settings)]


def _found(level: Level, where: str, message: str, section: str = "", *, always: bool = False) -> Finding:
    return Finding(level=level, where=where, message=message, section=section, always=always)


def _of_config(config: Any, cluster: Cluster, settings: Settings) -> Iterator[Finding]:
    if not settings.queue:
        yield _found("error", f"{_PATH}.queue", "no queue is described, so that no job can be admitted")
    if config.policy.preempt != NAME:
        return
    if config.scheduler.type != "greedy":
        text = f"{config.scheduler.type} tries jobs in its own order; Kueue's passes need greedy"
        yield _found("warning", "scheduler.type", text, "kueue 7.1", always=True)
    if config.policy.preempt_mode and "gang" in config.policy.preempt_mode:
        yield _found("warning", "policy.preempt_mode", "Kueue suspends no job; gang has no effect")
    known = [queue.name for queue in settings.queue] + list(settings.local_queues)
    if settings.queue_by == "partition":
        for at, partition in enumerate(cluster.partitions):
            if partition.name not in known:
                text = f"partition {partition.name} is no queue{nearest(partition.name, known)}"
                yield _found("warning", f"partition[{at}]", f"{text}; its jobs are refused")


def _of_queues(settings: Settings) -> Iterator[Finding]:
    cohorts = {cohort.name for cohort in settings.cohort}
    parents = {cohort.parent for cohort in settings.cohort}
    for at, queue in enumerate(settings.queue):
        where = f"{_PATH}.queue[{at}]"
        fair = settings.sharing is Sharing.FAIR
        if fair and queue.borrow != "Never":
            yield _found("note", f"{where}.borrow", "has no effect under fair sharing", "kueue 2.3")
        if queue.max_priority is not None and queue.borrow == "Never":
            yield _found("note", f"{where}.max_priority", "has no effect without borrow", "kueue 2.3")
        if queue.cohort is None and queue.reclaim is not Within.NEVER:
            yield _found("note", f"{where}.reclaim", "has no effect: it is in no cohort", "kueue 3.3")
        if not queue.quotas:
            yield _found("warning", where, f"queue {queue.name} has no quota; it admits no job")
        alone = [q for q in settings.queue if q.cohort == queue.cohort]
        named_only = queue.cohort is not None and queue.cohort not in cohorts | parents
        if named_only and len(alone) == 1:
            text = f"queue {queue.name} is alone in cohort {queue.cohort}, which has no quota"
            yield _found("note", f"{where}.cohort", f"{text}: there is no queue to borrow from", "kueue 1.4")


def _of_flavors(cluster: Cluster, settings: Settings) -> Iterator[Finding]:
    quotas = [*(queue.quotas for queue in settings.queue), *(cohort.quotas for cohort in settings.cohort)]
    used = {quota.flavor for several in quotas for quota in several}
    names = {node.name for node in cluster.nodes}
    for at, flavor in enumerate(settings.flavor):
        where = f"{_PATH}.flavor[{at}]"
        if flavor.name not in used:
            yield _found("note", where, f"no queue has quota of {flavor.name}{nearest(flavor.name, used)}")
        listed = expand_hostlist(flavor.nodes) if flavor.nodes is not None else names
        strangers = [name for name in listed if name not in names]
        if strangers:
            yield _found("error", f"{where}.nodes", f"there is no node {strangers[0]}")
        wanted = set(flavor.features)
        if not any(node.name in set(listed) and wanted <= node.features for node in cluster.nodes):
            yield _found("warning", where, f"no node is of flavor {flavor.name}; no job can use it")

"""Put partitions into ClusterQueues of a cohort, and say what has no equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from makeway import bitmap
from makeway.foreign import Common, Term, Translated, Translator, Way, has_tiers
from makeway.model import Cluster
from makeway_kueue_cohort.requests import TIER
from makeway_kueue_cohort.settings import NAME

if TYPE_CHECKING:
    from makeway.config import Config

_FLAVOR = "nodes"


def into(common: Common) -> Translated:
    """Make a ClusterQueue of each partition, with the nodes as quota of the highest tier that may use them."""
    config = common.config
    cluster = common.cluster
    terms: list[Term] = []
    left = (1 << len(cluster.nodes)) - 1
    queues, partitions = [], list(config.partition)
    for table in sorted(config.partition, key=lambda each: -each.priority_tier):
        own = next(each for each in cluster.partitions if each.name == table.name).nodes & left
        left &= ~own
        quotas = _quotas(cluster, own)
        queues.append(
            {
                "name": table.name,
                "cohort": "cluster",
                "quotas": quotas,
                "within_queue": "LowerPriority" if common.by_qos else "Never",
                "reclaim": "LowerPriority",
                "borrow": "LowerPriority",
            }
        )
        given = ", ".join(f"{quota['nominal']:g} {quota['resource']}" for quota in quotas)
        said = f"partition {table.name}: tier {table.priority_tier}"
        terms.append(Term(said, f"ClusterQueue {table.name} in cohort cluster, nominal {given}"))
    if common.by_qos:
        why = "any higher priority counts, whatever is listed"
        terms.append(
            Term("Preempt lists of QOS", "WorkloadPriorityClass, withinClusterQueue LowerPriority", why)
        )
    else:
        partitions = [
            attrs.evolve(table, attributes={**table.attributes, TIER: table.priority_tier})
            for table in partitions
        ]
        terms.append(Term("tiers", "priority of workloads, reclaimWithinCohort LowerPriority"))
        if any(qos.preempt for qos in config.qos):
            terms.append(Term("Preempt lists of QOS", "", "tiers decided, and decide"))
    terms += _without_equal(common)
    policy = attrs.evolve(config.policy, settings={**config.policy.settings, NAME: {"queue": queues}})
    return attrs.evolve(config, policy=policy, partition=tuple(partitions)), terms


def _quotas(cluster: Cluster, nodes: int) -> list[dict[str, Any]]:
    """Return the CPUs and counted resources of some nodes; what none of the nodes has is a quota of 0."""
    totals: dict[str, float] = {"cpu": 0}
    for node in cluster.nodes:
        for name in node.gres:
            totals.setdefault(name.partition(":")[0], 0)
    for index in bitmap.indices(nodes):
        node = cluster.nodes[index]
        totals["cpu"] += node.cpus
        for name, count in node.gres.items():
            totals[name.partition(":")[0]] += count
    return [{"flavor": _FLAVOR, "resource": name, "nominal": amount} for name, amount in totals.items()]


def _without_equal(common: Common) -> list[Term]:
    config, found = common.config, []
    modes = {common.mode(table) for table in config.partition} - {"requeue", "off"}
    if modes:
        found.append(Term(f"preempt_mode {', '.join(sorted(modes))}", "", "Kueue evicts: victims start anew"))
    graces = [(each.name, each.grace_time) for each in config.partition]
    graces += [(each.name, each.grace_time) for each in config.qos]
    for name, grace in graces:
        if grace:
            why = "terminationGracePeriodSeconds is one for all pods: grace_time of the policy's settings"
            found.append(Term(f"{name}: grace_time {grace:g} s", "", why))
    if config.policy.preemption.exempt_time:
        found.append(Term("exempt_time", "", "Kueue protects no job for a time"))
    return found


def out_of(config: Config) -> Translated:
    """Let queues that reclaim their quota stand above those of their cohort that have none; all else has no equal."""
    settings: Any = config.policy.settings[NAME]
    queues = {queue["name"]: queue for queue in settings.get("queue", ())}
    local = settings.get("local_queues", {})
    bare = {
        queue.get("cohort")
        for queue in queues.values()
        if queue.get("cohort") is not None and not _has_quota(queue)
    }
    said, terms, tables = has_tiers(config), [], []
    for table in config.partition:
        queue = queues.get(local.get(table.name, table.name), {})
        reclaims = queue.get("reclaim", "Never") != "Never" and queue.get("cohort") in bare
        if _has_quota(queue) and reclaims and not said:
            table = attrs.evolve(table, priority_tier=2)
            why = "other queues of the cohort have no quota"
            terms.append(Term(f"{table.name}: quota of its own, reclaimWithinCohort", "tier 2", why))
        tables.append(table)
    why = "tiers do not count how much a queue has lent"
    terms.append(Term("quota of queues that lend to one another", "", why))
    return attrs.evolve(config, partition=tuple(tables)), terms


def _has_quota(queue: Mapping[str, Any]) -> bool:
    return any(quota.get("nominal", 0) for quota in queue.get("quotas", ()))


def ways(config: Config, cluster: Cluster) -> list[Way]:
    """Say for which queues workloads are evicted: for their own, and for others if theirs borrows (section 2)."""
    del cluster
    settings: Any = config.policy.settings.get(NAME, {})
    found = []
    for queue in settings.get("queue", ()):
        name, cohort, within = queue["name"], queue.get("cohort"), queue.get("within_queue", "Never")
        if within != "Never":
            found.append(Way(f"ClusterQueue {name}", "requeued", name, f"withinClusterQueue {within}"))
        others = [
            each
            for each in settings["queue"]
            if each is not queue and cohort is not None and each.get("cohort") == cohort
        ]
        reclaiming = [each["name"] for each in others if each.get("reclaim", "Never") != "Never"]
        if reclaiming:
            why = "reclaimWithinCohort, while it borrows"
            found.append(Way(f"ClusterQueue {name}", "requeued", ", ".join(reclaiming), why))
    return found


TRANSLATOR = Translator(into=into, out_of=out_of, ways=ways)

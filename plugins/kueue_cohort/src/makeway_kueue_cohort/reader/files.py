"""Put a configuration together from manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from makeway.errors import ConfigError, Problem, nearest
from makeway.foreign import ForeignConfig, Source
from makeway_kueue_cohort.reader.documents import documents
from makeway_kueue_cohort.reader.machines import machines
from makeway_kueue_cohort.reader.objects import Site, read
from makeway_kueue_cohort.settings import NAME


def translate(source: Source) -> ForeignConfig:
    """Read all documents of a file.

    :raises ConfigError: with all problems.
    """
    site = Site(source.name)
    for table in documents(source.text, source.name):
        read(site, table)
    _names_that_are_there(site)
    if not site.queues and not site.problems:
        site.problems.append(Problem("", "there is no ClusterQueue in it"))
    if site.problems:
        raise ConfigError(source.name, site.problems)
    return _config(site)


def _names_that_are_there(site: Site) -> None:
    queues = [queue["name"] for queue in site.queues]
    for namespace, name, target in site.local_queues:
        if target not in queues:
            text = (
                f"LocalQueue {namespace}/{name}: there is no ClusterQueue {target!r}{nearest(target, queues)}"
            )
            site.problems.append(Problem("", text))
    for at, queue in enumerate(site.queues):
        for quota in queue.get("quotas", ()):
            flavor = quota["flavor"]
            if site.flavors and flavor not in site.flavors:
                line = site.lines[f"queue[{at}]"]
                text = f"there is no ResourceFlavor {flavor!r}{nearest(flavor, site.flavors)}"
                where = f"{site.place(line)}: ClusterQueue {queue['name']}"
                site.warnings.append(f"{where}: {text}; it stays inactive in Kueue")


def _config(site: Site) -> ForeignConfig:
    totals = _totals(site)
    local = _local_queues(site)
    nodes = machines(totals, site.flavors)
    several = any(quota.get("group") for queue in site.queues for quota in queue.get("quotas", ()))
    if several:
        site.warnings.append(
            "a queue has several resource groups: every job may use the made-up nodes of all flavors"
        )
    settings: dict[str, Any] = {
        **site.sharing,
        "local_queues": {name: target for name, target in local.items() if name != target},
        "queue": site.queues,
        "cohort": site.cohorts,
        "taints": site.taints,
        "flavor": [] if several else _flavors(totals, nodes),
    }
    names = list(dict.fromkeys([*local, *(queue["name"] for queue in site.queues)]))
    made = "; ".join(f"{node['name']}: {_described(node)}" for node in nodes)
    site.warnings.append(f"manifests name no nodes, so that quota alone decides; made up: {made}")
    tables: dict[str, Any] = {
        "node": nodes,
        "partition": [{"name": name} for name in names],
        "policy": {
            "select": "kueue/quota",
            "preempt": NAME,
            "preempt_mode": ["requeue"],
            "settings": {NAME: {key: value for key, value in settings.items() if value}},
        },
        "scheduler": {"type": "greedy", "clockwork": {"preset": "ideal", "keep_freed": False}},
    }
    if site.classes:
        tables["qos"] = [{"name": name, "priority": value} for name, value in site.classes.items()]
    return ForeignConfig(
        tables=tables,
        warnings=(*_not_modelled(site), *site.warnings),
        idle=site.listed(site.idle),
        places={f'policy.settings."{NAME}".{path}': site.place(line) for path, line in site.lines.items()},
    )


def _not_modelled(site: Site) -> Iterator[str]:
    for name, places in site.unmodelled.items():
        yield f"{places[0]}: not modelled, and it may matter: {name}"


def _totals(site: Site) -> dict[str, dict[str, float]]:
    """Return flavor -> resource -> nominal quota, over all queues and cohorts."""
    found: dict[str, dict[str, float]] = {}
    for each in (*site.queues, *site.cohorts):
        for quota in each.get("quotas", ()):
            amounts = found.setdefault(quota["flavor"], {})
            amounts[quota["resource"]] = amounts.get(quota["resource"], 0.0) + quota.get("nominal", 0.0)
    return found


def _flavors(totals: Mapping[str, Any], nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(nodes) < 2:
        return []
    return [{"name": flavor, "nodes": node["name"]} for flavor, node in zip(totals, nodes, strict=True)]


def _local_queues(site: Site) -> dict[str, str]:
    """Return LocalQueue -> ClusterQueue; with the namespace before the name where two have one name."""
    names = [name for _, name, _ in site.local_queues]
    found = {}
    for namespace, name, target in site.local_queues:
        targets = {each[2] for each in site.local_queues if each[1] == name}
        found[name if names.count(name) == 1 or len(targets) == 1 else f"{namespace}.{name}"] = target
    return found


def _described(node: Mapping[str, Any]) -> str:
    gres = "".join(f", {count} {name}" for name, count in node.get("gres", {}).items())
    return f"{node['cpus']} CPUs{gres} each"

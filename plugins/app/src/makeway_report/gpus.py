"""Count GPUs: whole ones by kind, thousandths of them, and shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from makeway.model import Allocation, Cluster, JobSpec, Node

GPU = "gpu"
PARTS: Mapping[str, float | None] = {"gpu_milli": 1000.0, "shard": None, "mps": None}
"""Counted resource that stands for a part of a GPU -> how many make one; None: as many as the node's GPUs share."""


def has_gpus(cluster: Cluster) -> bool:
    """Whether any node has GPUs."""
    return any(node.gres and of_node(node) for node in cluster.nodes)


def of_node(node: Node) -> float:
    """Return how many GPUs a node has: ``gpu``, or all its kinds together."""
    whole = _whole(node.gres)
    return whole if whole else node.gres.get("gpu_milli", 0) / 1000


def _whole(gres: Mapping[str, float]) -> float:
    """Return ``gpu``, which counts all its kinds; without it the sum of the kinds."""
    if GPU in gres:
        return gres[GPU]
    return sum(count for name, count in gres.items() if name.partition(":")[0] == GPU)


def parts_in_one(nodes: Sequence[Node]) -> dict[str, float]:
    """Return how many of each part make one GPU on these nodes; parts that none of them has are left out."""
    found = {}
    for name, fixed in PARTS.items():
        having = [node for node in nodes if node.gres.get(name)]
        gpus = sum(of_node(node) for node in having)
        if having and gpus:
            found[name] = fixed or sum(node.gres[name] for node in having) / gpus
    return found


def amount(gres: Mapping[str, float], parts: Mapping[str, float]) -> float:
    """Return counted resources as GPUs."""
    return _whole(gres) + sum(gres[name] / many for name, many in parts.items() if name in gres)


def wanted(spec: JobSpec, parts: Mapping[str, float]) -> float:
    """Return how many GPUs a job asks for, over all its nodes."""
    if not spec.gres and not spec.gres_total:
        return 0.0
    return amount(spec.gres, parts) * max(1, spec.min_nodes) + amount(spec.gres_total, parts)


def held(spec: JobSpec, allocation: Allocation, parts: Mapping[str, float]) -> tuple[float, ...]:
    """Return how many GPUs a job holds on each of its nodes.

    Where the selector does not count them, it holds what it asked for, in equal parts.
    """
    count = len(allocation.node_indices)
    if allocation.gres:
        return tuple(
            amount({name: amounts[at] for name, amounts in allocation.gres.items()}, parts)
            for at in range(count)
        )
    if not spec.gres and not spec.gres_total:
        return (0.0,) * count
    return (amount(spec.gres, parts) + amount(spec.gres_total, parts) / count,) * count


def models(gres: Mapping[str, float]) -> frozenset[str]:
    """Return the kinds of GPUs that are named: ``gpu:a100``."""
    return frozenset(name for name in gres if name.startswith(f"{GPU}:"))


@attrs.frozen
class Need:
    """What a job needs of one node to use any GPU of it."""

    gpus: float
    cpus: int
    models: frozenset[str]
    features: str


def need(spec: JobSpec, parts: Mapping[str, float], largest: float) -> Need | None:
    """Return the least that a job needs of one node; None: it asks for no GPUs.

    :param largest: GPUs of the largest node. What is asked for in all may lie on as many nodes as the job accepts,
        so that one node has to give only what the others cannot.
    """
    each, total = amount(spec.gres, parts), amount(spec.gres_total, parts)
    if not each and not total:
        return None
    cpus = spec.cpus_per_node
    if total:
        rest = total - (spec.max_nodes - 1) * largest if spec.max_nodes is not None else 0.0
        each = max(each, rest, min(1.0, total))
        if spec.max_nodes == 1:
            cpus = max(cpus, spec.cpus)
    return Need(each, cpus, models({**spec.gres, **spec.gres_total}), spec.features)

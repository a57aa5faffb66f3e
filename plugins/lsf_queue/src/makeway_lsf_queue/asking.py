"""Put RES_REQ of a job and of its queue into fields of the request, and say what of it has no effect (lsf 9.3).

A job's own is the attribute ``res_req``, as ``bsub -R`` has it. Fields that the job gives itself are left as they are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.model import Cluster, JobSpec, Partition
from makeway_lsf_queue.requirement import Requirement, alike_hosts, requirement, unknown
from makeway_lsf_queue.settings import NAME
from makeway_lsf_queue.values import WrongValueError

KEY = "res_req"
_NOTHING = Requirement()


@functools.lru_cache(maxsize=4096)
def together(queue: str, own: str) -> Requirement:
    """Return what a job asks for in its queue.

    :raises WrongValueError: either is no requirement.
    """
    asked = requirement(own) if own else _NOTHING
    return asked.beside(requirement(queue)) if queue else asked


def asked(spec: JobSpec, partition: Partition, cluster: Cluster) -> JobSpec:
    """Return a job with span, rusage and same as fields; what is wrong with them is said when it is admitted."""
    queue, own = partition.attributes.get("RES_REQ", ""), spec.attributes.get(KEY, "")
    if not queue and not own:
        return spec
    try:
        wanted = together(str(queue), str(own))
    except WrongValueError:
        return spec
    fields: dict[str, Any] = {}
    if spec.cpus > 1:
        fields |= _span(spec, wanted)
    if wanted.memory_mb and spec.memory_mb_per_node is None and spec.memory_mb_per_cpu is None:
        fields["memory_mb_per_node"] = wanted.memory_mb
    if wanted.same and not spec.features and (alike := _alike(wanted, partition, cluster)):
        fields["features"] = alike
    given = spec.attributes.get("rusage", {})
    if wanted.amounts and isinstance(given, Mapping):
        fields["attributes"] = {**spec.attributes, "rusage": {**wanted.amounts, **given}}
    return attrs.evolve(spec, **fields) if fields else spec


def _span(spec: JobSpec, wanted: Requirement) -> dict[str, Any]:
    if spec.min_nodes > 1 or spec.max_nodes is not None or spec.tasks_per_node is not None:
        return {}
    if wanted.one_host:
        return {"max_nodes": 1}
    if wanted.tile is None:
        return {}
    tasks = spec.cpus if spec.tasks is None else spec.tasks
    hosts = math.ceil(tasks / wanted.tile)
    on_each = min(tasks, wanted.tile)
    return {"tasks": tasks, "tasks_per_node": on_each, "min_nodes": hosts, "max_nodes": hosts}


def wrong_span(spec: JobSpec, wanted: Requirement) -> str:
    """Return what of a job contradicts its span; empty: nothing does."""
    if spec.cpus < 2:
        return ""
    if wanted.one_host and spec.max_nodes != 1:
        return "span[hosts=1], which the number of its hosts contradicts"
    tasks = spec.cpus if spec.tasks is None else spec.tasks
    if wanted.tile is not None and spec.tasks_per_node != min(tasks, wanted.tile):
        return f"span[ptile={wanted.tile}], which the number of its hosts or of its tasks on each contradicts"
    return ""


def _alike(wanted: Requirement, partition: Partition, cluster: Cluster) -> str:
    hosts = [cluster.nodes[index].features for index in bitmap.indices(partition.nodes)]
    return alike_hosts(wanted.same, hosts)[0]


# ------------------------------------------------------------------------------- what has no effect
def unheard(cluster: Cluster, settings: Mapping[str, Any]) -> Callable[[JobSpec], Sequence[str]]:
    """Return what says of a job which parts of its own RES_REQ have no effect under a configuration."""
    hosts = [node.features for node in cluster.nodes]
    resources = frozenset(settings.get(NAME, {}).get("resources", ()))

    @functools.lru_cache(maxsize=4096)
    def idle(text: str) -> tuple[str, ...]:
        try:
            wanted = requirement(text)
        except WrongValueError:
            return ()  # the job is refused
        return tuple(
            f"{KEY}: {each:.100} has no effect here" for each in idle_parts(wanted, hosts, resources)
        )

    def said(spec: JobSpec) -> Sequence[str]:
        text = spec.attributes.get(KEY)
        if text is None:
            return ()
        tile = _tile(str(text))
        if tile is None or spec.cpus % tile == 0 or spec.cpus < tile:
            return idle(str(text))
        more = (
            f"{KEY}: span[ptile={tile}] gives the last host a whole tile, though fewer slots are left for it"
        )
        return (*idle(str(text)), more)

    return said


@functools.lru_cache(maxsize=4096)
def _tile(text: str) -> int | None:
    try:
        return requirement(text).tile
    except WrongValueError:
        return None


def idle_parts(
    wanted: Requirement, hosts: Sequence[Collection[str]], resources: Collection[str]
) -> list[str]:
    """Return the parts of a requirement that have no effect, as they were written.

    :param hosts: the words that each host has as features.
    :param resources: the shared resources that the configuration has.
    """
    words = frozenset(word for each in hosts for word in each)
    _, apart = alike_hosts(wanted.same, hosts)
    return [
        *(f"select of {name}" for name in unknown(wanted.names, words)),
        *wanted.idle,
        *(f"same[{name}]" for name in apart),
        *(f"rusage[{name}={amount:g}]" for name, amount in wanted.amounts.items() if name not in resources),
    ]

"""Turn the options for GPUs of one ``sbatch`` call into counts on each node, in all and for each task.

What sbatch 22.05.8 refuses is recorded in cons_gpus_per_node and cons_gpus_tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Fields = dict[str, Any]


class RefusedError(ValueError):
    """sbatch would refuse the options, so that there is no job."""


def gpu_fields(options: Mapping[str, Any], fields: Mapping[str, Any]) -> Fields:
    """Return the fields of JobSpec that the options for counted resources set.

    :param fields: those that follow from the number of nodes and tasks; `tasks` may still be missing.
    :raises RefusedError: sbatch would not submit the job.
    """
    found: Fields = {}
    on_node = [options[name] for name in ("gres", "gpus_per_node") if name in options]
    if "gpus_per_socket" in options:
        sockets = fields.get("sockets_per_node")
        if not sockets:
            raise RefusedError("--gpus-per-socket needs --sockets-per-node")
        on_node.append(_times(options["gpus_per_socket"], sockets))
        found["gres_per_socket"] = dict(options["gpus_per_socket"])
    total: Mapping[str, int] = options.get("gres_total", {})
    if any(0 < count < fields.get("min_nodes", 1) for count in total.values()):
        raise RefusedError("--gpus: fewer than nodes")
    if "gpus_per_task" in options:
        each = options["gpus_per_task"]
        found = _for_tasks(each, {**fields, **options}, total)
        on_node += found.pop("on_node", [])
        total = found.get("gres_total", {})
    if on_node:
        found["gres"] = _added(on_node)
    if "gpus_per_node" in options and total:
        found |= _on_each(
            options["gpus_per_node"], options.get("gpus_per_task"), total, {**fields, **options}
        )
    return found


def _for_tasks(each: Mapping[str, int], known: Mapping[str, Any], total: Mapping[str, int]) -> Fields:
    """Return what ``--gpus-per-task`` comes to.

    :param total: what ``--gpus`` asks for: it gives the number of tasks where nothing else does.
    """
    tasks: int | None = known.get("tasks")
    name = next(iter(each))
    if tasks is None and name in total:
        tasks = max(1, total[name] // each[name])
    if tasks is None and "nodes" in known:
        tasks = known["min_nodes"]
    if tasks is None:
        if (per_node := known.get("tasks_per_node")) is None:
            raise RefusedError("--gpus-per-task needs --gpus or --ntasks")
        return {"on_node": [_times(each, per_node)]}
    found: Fields = {"tasks": tasks}
    if known.get("max_nodes") == 1:
        return found | {"on_node": [_times(each, tasks)], "gres_total": {}}
    return found | {"gres_total": _times(each, tasks), "gres_per_task": dict(each)}


def _on_each(
    on_node: Mapping[str, int],
    for_task: Mapping[str, int] | None,
    total: Mapping[str, int],
    known: Mapping[str, Any],
) -> Fields:
    """Return how many nodes, and tasks on each, GPUs in all and on each node come to: then they count on each node."""
    name = next(iter(on_node))
    found: Fields = {"gres_total": {}, "gres_per_task": {}}
    if "nodes" not in known:
        found["min_nodes"] = max(1, -(-total.get(name, 0) // on_node[name]))
        found["max_nodes"] = found["min_nodes"]
    if for_task is not None and for_task.get(name) and "tasks_per_node" not in known:
        found["tasks_per_node"] = max(1, on_node[name] // for_task[name])
    return found


def _times(counts: Mapping[str, int], many: int) -> dict[str, int]:
    return {name: count * many for name, count in counts.items()}


def _added(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for table in tables:
        for name, count in table.items():
            total[name] = total.get(name, 0) + count
    return total

"""Make up nodes for the flavors of a site whose manifests name none.

Kueue looks at quota and at no nodes. So each flavor gets as many machines as its quota amounts to, of a usual size;
what jobs get is up to quota alone (`kueue/quota`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_PIECES = 8
"""Accelerators of a machine."""
_CORES = 64
_MOST = 10_000
_MB = 1024 * 1024


def machines(
    totals: Mapping[str, Mapping[str, float]], labels: Mapping[str, list[str]]
) -> list[dict[str, Any]]:
    """Return node tables, one for each flavor.

    :param totals: flavor -> resource -> nominal quota over all queues and cohorts.
    :param labels: flavor -> the features of its nodes.
    """
    return [_of_flavor(flavor, amounts, labels.get(flavor, [])) for flavor, amounts in totals.items()]


def _of_flavor(flavor: str, amounts: Mapping[str, float], labels: list[str]) -> dict[str, Any]:
    pieces = {
        name.rpartition("/")[2]: amount
        for name, amount in amounts.items()
        if "/" in name or name in ("gpu", "gpus")
    }
    cores = amounts.get("cpu", 0.0)
    count = math.ceil(
        max([*(amount / _PIECES for amount in pieces.values()), 0 if pieces else cores / _CORES, 1])
    )
    count = min(count, _MOST)
    # No quota of CPUs: a core for each piece, so that the work of pods that ask for none has a measure.
    cpus = math.ceil((cores or max(pieces.values(), default=0.0)) / count)
    node: dict[str, Any] = {"name": hosts(flavor, count), "cpus": max(1, cpus)}
    if "memory" in amounts:
        node["memory_mb"] = max(1, math.ceil(amounts["memory"] / count / _MB))
    gres = {name: math.ceil(amount / count) for name, amount in pieces.items() if amount}
    if gres:
        node["gres"] = gres
    if labels:
        node["features"] = labels
    return node


def hosts(flavor: str, count: int) -> str:
    """Return the host list of a flavor's machines."""
    stem = re.sub(r"[^A-Za-z0-9.-]", "-", flavor)
    return f"{stem}-1" if count == 1 else f"{stem}-[1-{count}]"

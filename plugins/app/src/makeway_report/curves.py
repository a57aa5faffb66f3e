"""Distribution functions of waits and slowdowns, per group of jobs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BOUND = 10.0
"""Run times below count as so many seconds in slowdowns."""
MOST_GROUPS = 5
"""Groups with a curve of their own; the others share one."""
_POINTS = 160

Curve = tuple[str, int, list[float]]
"""Group, number of jobs, and the values at equal steps from the least to the most."""


class Curves:
    """Collects one figure of all jobs, by partition, QOS and user."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, array[float]]] = {}

    def add(self, value: float, groups: Mapping[str, str]) -> None:
        """Take the figure of one job.

        :param groups: kind of group -> the job's group.
        """
        for kind, group in groups.items():
            self._values.setdefault(kind, {}).setdefault(group, array("d")).append(value)

    def shown(self, first: Mapping[str, Sequence[str]]) -> dict[str, list[Curve]]:
        """Return the curves by kind of group.

        :param first: kind of group -> names in the order in which they are to be shown; else the largest first.
        """
        made = {}
        for kind, groups in self._values.items():
            order = sorted(groups, key=lambda name: (-len(groups[name]), name))
            kept = order[:MOST_GROUPS] if len(order) > MOST_GROUPS + 1 else order
            named = list(first.get(kind, ()))
            kept.sort(key=lambda name: named.index(name) if name in named else len(named))
            made[kind] = [_curve(name, groups[name]) for name in kept]
            if len(kept) < len(order):
                others = array("d")
                for name in order[MOST_GROUPS:]:
                    others.extend(groups[name])
                made[kind].append(_curve("others", others))
        return made


def _curve(name: str, values: Iterable[float]) -> Curve:
    listed = sorted(values)
    steps = min(_POINTS, len(listed) - 1)
    if not steps:
        return name, len(listed), [round(listed[0], 3)]
    last = len(listed) - 1
    return name, len(listed), [round(listed[at * last // steps], 3) for at in range(steps + 1)]


def slowdown(submit: float, end: float, run: float) -> float:
    """Return the bounded slowdown of a job that has ended."""
    return max(1.0, (end - submit) / max(run, BOUND))


def as_json(curves: Mapping[str, Sequence[Curve]]) -> dict[str, Any]:
    """Return curves in the page's shape."""
    return {
        kind: [{"name": name, "jobs": jobs, "at": at} for name, jobs, at in listed]
        for kind, listed in curves.items()
    }

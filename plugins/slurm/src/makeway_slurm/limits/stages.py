"""Put the limits that hold for a job in the order in which Slurm looks at them (slurm-priority-and-limits 6.2)."""

from __future__ import annotations

from makeway_slurm.limits.asked import Listed
from makeway_slurm.limits.kinds import Kind
from makeway_slurm.limits.node_cap import caps_nodes

BEFORE_NODES = frozenset((Kind.JOBS, Kind.USED_WALL, Kind.WALL, Kind.LEAST_FACTOR))
"""Limits that are looked at before nodes are chosen (stage A)."""
_CAPS = {"pa": 0, "": 1, "pu": 2}
"""Which of several limits on nodes comes first, by what it counts; the others last."""


def in_order(held: tuple[tuple[Listed, int], ...]) -> tuple[tuple[Listed, int], ...]:
    """Put limits on nodes that a job exceeds by itself before all others of stage B: they cap its nodes.

    The least of them is the reason, of a QOS before that of an association (recorded: limit_node_cap_which).
    """
    return tuple(sorted(held, key=_place))


def _place(pair: tuple[Listed, int]) -> tuple[int, ...]:
    listed, wanted = pair
    if listed.kind in BEFORE_NODES:
        return (0,)
    if not caps_nodes(listed.rule, wanted):
        return (2,)
    return 1, listed.most, not isinstance(listed.rule.whose, str), _CAPS.get(listed.rule.key, len(_CAPS))

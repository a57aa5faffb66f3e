"""Read SelectTypeParameters (slurm-gang-and-select 4.6)."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from makeway.model import Partition


class Unit(enum.Enum):
    """What is handed out."""

    CPU = "cpu"
    """CPUs; a core is still never split between jobs."""
    CORE = "core"
    """Cores; CPUs are rounded up to full ones."""
    SOCKET = "socket"
    """Whole sockets."""


_UNITS = {
    "CR_CPU": Unit.CPU,
    "CR_CPU_MEMORY": Unit.CPU,
    "CR_CORE": Unit.CORE,
    "CR_CORE_MEMORY": Unit.CORE,
    "CR_SOCKET": Unit.SOCKET,
    "CR_SOCKET_MEMORY": Unit.SOCKET,
}
_DEFAULT = ("CR_CORE_MEMORY",)
_OF_PARTITIONS = frozenset(("CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY"))


@attrs.frozen(kw_only=True)
class Parameters:
    """What the words of SelectTypeParameters come to."""

    unit: Unit = Unit.CORE
    memory: bool = True
    """Memory is handed out too."""
    least_loaded: bool = False
    one_task_per_core: bool = False
    block: bool = False
    """Cores are taken socket by socket and not in turn."""


def read_parameters(words: Sequence[str]) -> Parameters:
    """Return the meaning of `words`; nothing at all means CR_Core_Memory, the default of the newest release.

    CR_Pack_Nodes is about the tasks of steps; jobs are packed anyway. Words about GRES are passed over.
    """
    known = {word.upper() for word in words} or set(_DEFAULT)
    unit = next((unit for word, unit in _UNITS.items() if word in known), Unit.CORE)
    return Parameters(
        unit=unit,
        memory=any(word.endswith("_MEMORY") for word in known),
        least_loaded="CR_LLN" in known,
        one_task_per_core="CR_ONE_TASK_PER_CORE" in known,
        block=unit is Unit.CPU or "CR_CORE_DEFAULT_DIST_BLOCK" in known,
    )


def in_partition(cluster_wide: Parameters, partition: Partition) -> Parameters:
    """Return the parameters in `partition`: its own unit and memory, if it may say so (0.3 no. 7)."""
    own = {word.upper() for word in partition.select_parameters} & _OF_PARTITIONS
    changed = cluster_wide
    if own and cluster_wide.unit is not Unit.CPU:
        other = read_parameters(sorted(own))
        changed = attrs.evolve(cluster_wide, unit=other.unit, memory=other.memory)
    if partition.lln and not changed.least_loaded:
        changed = attrs.evolve(changed, least_loaded=True)
    return changed

"""Count what jobs ask for and hold in Slurm's TRES: cpu, mem (MB), node, billing, gres/..., license/...

Section numbers are those of slurm-priority-and-limits.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from makeway import bitmap
from makeway.errors import nearest
from makeway.model import Cluster, Job, Node, Partition
from makeway.usage import used_by
from makeway_slurm_rules.memory import memory_request

CPU, MEM, NODE, BILLING = "cpu", "mem", "node", "billing"
ALWAYS = (CPU, MEM, "energy", NODE, BILLING, "fs/disk", "vmem", "pages")
"""What Slurm counts at every site, in the order in which it prints them."""
_NAMED = ("gres", "license", "bb", "fs", "ic")
"""Kinds of TRES of which a site names those that it has, as in gres/gpu."""
_UNIT = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)([KMGTP]?)", re.IGNORECASE)
_OFF = ("-1", "")

Counts = Mapping[str, float]


def parse_counts(text: str) -> dict[str, int]:
    """Read ``cpu=4,mem=10G,gres/gpu=2``; memory in MB; -1 takes a limit away.

    :raises ValueError: it is something else.
    """
    found: dict[str, int] = {}
    for name, number in _pairs(text):
        if number in _OFF:
            continue
        match = _NUMBER.fullmatch(number)
        if match is None or "." in match[1] or match[1].startswith("-"):
            raise ValueError(f"got {text!r:.60}; expected counts such as cpu=4,mem=10G")
        scale = _UNIT[match[2].upper()] if name == MEM else _scale(match[2])
        found[name] = int(int(match[1]) * scale)
    return found


def parse_weights(text: str) -> dict[str, float]:
    """Read ``CPU=1.0,Mem=2.0G``: a weight of memory is per MB then; 2.0G means 2 for each GB.

    :raises ValueError: it is something else.
    """
    found: dict[str, float] = {}
    for name, number in _pairs(text):
        match = _NUMBER.fullmatch(number)
        if match is None:
            raise ValueError(f"got {text!r:.60}; expected weights such as CPU=1.0,Mem=0.25G")
        scale = _UNIT[match[2].upper()] if name == MEM else _scale(match[2])
        found[name] = float(match[1]) / (scale if match[2] else 1.0)
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for word in filter(None, (each.strip() for each in text.split(","))):
        name, equals, number = word.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"got {text!r:.60}; expected name=number, separated by commas")
        pairs.append((_known(name.strip()), number.strip()))
    return pairs


def _known(given: str) -> str:
    """Return the name of a TRES in small letters; slurmctld does not start with weights of one that is not known."""
    name = given.lower()
    kind, slash, rest = name.partition("/")
    if (
        name in ALWAYS or (slash and rest and kind in _NAMED) or name.isdigit()
    ):  # an id: sacctmgr knows no name for it
        return name
    allowed = [*ALWAYS, "gres/NAME", "license/NAME"]
    raise ValueError(f"no TRES named {given!r:.60}; allowed: {', '.join(allowed)}{nearest(name, allowed)}")


def _scale(unit: str) -> float:
    """Return what a unit means where nothing is measured in bytes."""
    return {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[unit.upper()]


def totals(partition: Partition, cluster: Cluster) -> dict[str, int]:
    """Return how much of everything the nodes of a partition have."""
    return _totals([cluster.nodes[at] for at in bitmap.indices(partition.nodes)], cluster)


def of_cluster(cluster: Cluster) -> dict[str, int]:
    """Return how much of everything there is."""
    return _totals(cluster.nodes, cluster)


def _totals(nodes: Sequence[Node], cluster: Cluster) -> dict[str, int]:
    found = {
        CPU: sum(node.cpus for node in nodes),
        MEM: sum(node.usable_memory_mb for node in nodes),
        NODE: len(nodes),
    }
    for node in nodes:
        for name, count in node.gres.items():
            found[f"gres/{name}"] = found.get(f"gres/{name}", 0) + count
    for name, count in cluster.licenses.items():
        found[f"license/{name}"] = count
    return found


def requested(
    job: Job, partition: Partition, cluster: Cluster, there: Counts | None = None
) -> dict[str, int]:
    """Return what a pending job asks for, were it to run in `partition` (1.3).

    :param there: `totals` of the partition, where they are at hand.
    """
    spec, size = job.spec, job.size
    memory = memory_request(spec, partition, cluster)
    if memory.per_cpu is not None:
        mem = memory.per_cpu * spec.cpus
    elif memory.per_node:
        mem = memory.per_node * size
    else:
        nodes = partition.nodes.bit_count()
        all_memory = (there if there is not None else totals(partition, cluster))[MEM]
        mem = int(all_memory * size // nodes) if nodes else 0
    found = {CPU: spec.cpus, MEM: mem, NODE: size}
    for name, count in spec.gres.items():
        found[f"gres/{name}"] = count * size
    for name, count in spec.gres_total.items():
        found[f"gres/{name}"] = count
    for name, count in spec.licenses.items():
        found[f"license/{name}"] = count
    found[BILLING] = int(billable(found, partition))
    return found


def held(job: Job, cluster: Cluster) -> dict[str, int]:
    """Return what an active job holds."""
    usage = used_by(job, cluster)
    found = {CPU: usage.cpus, MEM: usage.memory_mb, NODE: usage.nodes}
    found |= {f"gres/{name}": count for name, count in usage.gres.items()}
    found |= {f"license/{name}": count for name, count in usage.licenses.items()}
    found[BILLING] = int(billable(found, job.partition))
    return found


class Holder:
    """Tells quickly which jobs of a cluster hold the same."""

    def __init__(self, cluster: Cluster) -> None:
        sizes = {node.cpus for node in cluster.nodes}
        self._cpus = sizes.pop() if len(sizes) == 1 else None
        """Of each node; None: nodes differ."""

    def key(self, job: Job) -> tuple[int, ...] | None:
        """Return what is the same for jobs that hold the same in the same partition; None: it is not known."""
        place = job.allocation
        if place is None or place.gres or place.licenses:
            return None
        nodes, cpus, memory = len(place.node_indices), place.cpus, place.memory_mb
        if cpus is not None:
            count = sum(cpus)
        elif self._cpus is not None:
            count = nodes * self._cpus
        else:
            return None
        return count, nodes, sum(memory) if memory is not None else 0, job.partition.index


def billable(counts: Counts, partition: Partition, flags: frozenset[str] = frozenset()) -> float:
    """Return what a job is charged for each second (2.1 no. 1); not truncated.

    :param flags: MAX_TRES, MAX_TRES_GRES.
    """
    text = partition.attributes.get("TRESBillingWeights")
    if not text:
        return float(counts.get(CPU, 0))
    weights = parse_weights(str(text))
    parts = {name: counts.get(name, 0) * weight for name, weight in weights.items()}
    if "MAX_TRES_GRES" in flags:
        gres = sum(part for name, part in parts.items() if name.startswith("gres/"))
        rest = sum(part for name, part in parts.items() if not (_of_node(name) or name.startswith("gres/")))
        return max([0.0, *(part for name, part in parts.items() if _of_node(name))]) + gres + rest
    if "MAX_TRES" in flags:
        inside = [part for name, part in parts.items() if _of_node(name) or name.startswith("gres/")]
        beside = sum(part for name, part in parts.items() if not (_of_node(name) or name.startswith("gres/")))
        return max([0.0, *inside]) + beside
    return sum(parts.values())


def _of_node(name: str) -> bool:
    return name in (CPU, MEM, NODE)

"""Say what keeps a job from ever running in a partition: for people, in the terms of its request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.hostlist import fold_hostlist
from makeway.model import Job, Node, Partition, Seconds

Condition = tuple[str, NodeBits]
"""What a job wants of each of its nodes, as ``9 gpu``, and the nodes that have it."""


def node_bounds(job: Job, partition: Partition) -> tuple[int, int | None]:
    """Return the fewest and most nodes that a partition allows a job; flags of the job's QOS lift single bounds."""
    flags: frozenset[str] = job.qos.flags if job.qos is not None else frozenset()
    least = 0 if "PartitionMinNodes" in flags else partition.min_nodes
    return least, None if "PartitionMaxNodes" in flags else partition.max_nodes


def least_of(most: Iterable[int | None], job: Job, min_nodes: int) -> int | None:
    """Return the least of what bounds the nodes of a job, its `node_cap` included; None: nothing does.

    :param min_nodes: fewest nodes that it needs.
    """
    cap = job.spec.node_cap
    bounds = [each for each in most if each is not None]
    if cap is not None and cap >= min_nodes:
        bounds.append(cap)
    return min(bounds, default=None)


def obstacle(
    wanted: int,
    partition: Partition,
    conditions: Iterable[Condition],
    excluded: NodeBits = 0,
    up: NodeBits | None = None,
) -> str:
    """Say of which nodes the partition has too few; empty: each condition, and all together, can be met.

    A condition that is enough by itself is named alone, else those up to the one that is one too many.

    :param wanted: fewest nodes that the job needs.
    :param excluded: nodes that it does not want.
    :param up: nodes that are in service; None: all.
    """
    nodes = partition.nodes & ~excluded
    beside = " beside those it excludes" if partition.nodes & excluded else ""
    if up is not None and nodes & ~up:
        nodes &= up
        beside += " in service"
    if nodes.bit_count() < wanted:
        return _short(wanted, [], partition, nodes, beside)
    listed = list(conditions)
    for text, having in listed:
        if (nodes & having).bit_count() < wanted:
            return _short(wanted, [text], partition, nodes & having, beside)
    texts: list[str] = []
    for text, having in listed:
        if nodes & ~having:
            texts.append(text)
        nodes &= having
        if nodes.bit_count() < wanted:
            return _short(wanted, texts, partition, nodes, beside)
    return ""


def of_features(expression: str, choices: Iterable[Alternatives], every: NodeBits) -> Iterator[Condition]:
    """Yield what a feature expression asks of nodes, where it asks the same of all of them.

    :param every: all nodes.
    """
    if expression:
        having: NodeBits = 0
        for choice in choices:
            having |= choice.among(every)
        yield f"features {expression!r}", having


def _short(wanted: int, texts: Sequence[str], partition: Partition, nodes: NodeBits, beside: str) -> str:
    what = f" with {listed(texts)}" if texts else ""
    have = nodes.bit_count() or "none"
    return f"needs {counted(wanted, 'node')}{what}; partition {partition.name} has {have}{beside}"


def listed(words: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def in_all(
    job: Job,
    serving: NodeBits,
    nodes: Sequence[Node],
    cpus: Sequence[int],
    min_cpus: int,
    max_nodes: int | None,
) -> str:
    """Say why the nodes that could serve do not do together, though there are enough of them.

    :param serving: nodes of the partition that meet all that is asked of a node.
    :param cpus: CPUs of each node that count for the job, by node index.
    :param max_nodes: most nodes that it may have; None: any number.
    """
    where = f"partition {job.partition.name}"
    missing = job.required & ~serving
    if missing:
        names = fold_hostlist([nodes[index].name for index in bitmap.indices(missing)])
        return f"asks for {names}, where it cannot run in {where}"
    largest = sorted((cpus[index] for index in bitmap.indices(serving)), reverse=True)[:max_nodes]
    few = max_nodes is not None and max_nodes < serving.bit_count()
    if sum(largest) < min_cpus:
        on = f" on at most {counted(len(largest), 'node')}" if few else ""
        return f"needs {counted(min_cpus, 'CPU')}{on}; {where} gives at most {sum(largest):,}"
    for name, wanted in job.spec.gres_total.items():
        have = sum(nodes[index].gres.get(name, 0) for index in bitmap.indices(serving))
        if have < wanted:
            return f"needs {wanted:,} {name} in all; {where} has {have:,}"
    several = "" if not job.spec.contiguous else " that follow one another"
    return (
        f"needs {counted(job.size, 'node')}{several} and {counted(min_cpus, 'CPU')}; "
        f"no choice among {counted(serving.bit_count(), 'node')} of {where} meets the whole request"
    )


def length(seconds: Seconds) -> str:
    """Return a length of time as Slurm writes limits: 0:30:00, 2-00:00:00."""
    days, rest = divmod(round(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    shown = f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}" if days else shown


def counted(number: float, word: str) -> str:
    """Return ``1 node``, ``2 nodes``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"

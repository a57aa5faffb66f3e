"""Decide which queues may preempt which, and in which order queues are taken from (lsf 2.2, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway.errors import Problem, nearest
from makeway_lsf_queue.preemption_line import PreemptionLine
from makeway_lsf_queue.settings import Settings
from makeway_lsf_queue.site import Queue, Rank


def targets_of(
    queues: Mapping[str, Queue], settings: Settings, oddities: list[Problem]
) -> Mapping[str, Mapping[str, Rank]]:
    lines = {name: _known(queue, queues, settings, oddities) for name, queue in queues.items()}
    exclusive = settings.preemptable_list == "exclusive"
    return {
        a.name: {
            b.name: _rank(b, lines[a.name])
            for b in queues.values()
            if can_preempt(a, b, lines[a.name], lines[b.name], exclusive=exclusive)
        }
        for a in queues.values()
    }


def can_preempt(a: Queue, b: Queue, of_a: PreemptionLine, of_b: PreemptionLine, *, exclusive: bool) -> bool:
    """Whether jobs of `a` may take jobs of `b` (2.2).

    :param exclusive: whether PREEMPTABLE with a list keeps out even PREEMPTIVE queues that are not on it.
    """
    if a.name == b.name or a.priority <= b.priority:
        return False
    forward = of_a.preemptive and (of_a.targets is None or b.name in of_a.targets)
    backward = of_b.preemptable and (of_b.by is None or a.name in of_b.by)
    kept_out = exclusive and of_b.preemptable and of_b.by is not None and a.name not in of_b.by
    return (forward and not kept_out) or backward


def why_not(a: Queue, b: Queue, settings: Settings) -> str:
    """Say which rule keeps jobs of `a` from taking jobs of `b` (2.2), for people; empty: none does."""
    if can_preempt(a, b, a.line, b.line, exclusive=settings.preemptable_list == "exclusive"):
        return ""
    if a.name == b.name:
        return "jobs of one queue never preempt each other"
    if a.priority <= b.priority:
        return f"its PRIORITY {b.priority} is not lower than {a.priority}"
    forward = a.line.preemptive and (a.line.targets is None or b.name in a.line.targets)
    if b.line.preemptable and b.line.by is not None:
        but = " (preemptable_list = 'exclusive': PREEMPTIVE does not help)" if forward else ""
        return f"PREEMPTABLE of {b.name} lists {' '.join(b.line.by) or 'none'}, not {a.name}{but}"
    if a.line.preemptive and a.line.targets is not None:
        return f"PREEMPTIVE of {a.name} lists {' '.join(a.line.targets) or 'none'}, not {b.name}"
    return f"{a.name} is not PREEMPTIVE, and {b.name} is not PREEMPTABLE"


def _rank(b: Queue, line: PreemptionLine) -> Rank:
    number = (line.targets or {}).get(b.name)
    return (number is None, -(number or 0), b.priority, b.index)


def _known(
    queue: Queue, queues: Mapping[str, Queue], settings: Settings, oddities: list[Problem]
) -> PreemptionLine:
    """Return the line without names that mean nothing, and say so."""
    line, where = queue.line, f"partition[{queue.index}].attributes.PREEMPTION"
    unknown = [name for name in (*(line.targets or ()), *(line.by or ())) if name not in queues]
    for name in unknown:
        oddities.append(
            Problem(where, f"names the queue {name!r}, which does not exist{nearest(name, queues)}")
        )
    if unknown and settings.unknown_queue == "disable":
        return PreemptionLine()
    for name in line.targets or ():
        if name in queues and queues[name].priority >= queue.priority:
            text = f"lists {name!r}, whose priority is not lower; it can never be preempted from here"
            oddities.append(Problem(where, text))
    for name in line.by or ():
        if name in queues and queues[name].priority <= queue.priority:
            text = f"lists {name!r}, whose priority is not higher; it can never preempt from here"
            oddities.append(Problem(where, text))
    targets = None if line.targets is None else {n: p for n, p in line.targets.items() if n in queues}
    by = None if line.by is None else tuple(name for name in line.by if name in queues)
    return attrs.evolve(line, targets=targets, by=by)

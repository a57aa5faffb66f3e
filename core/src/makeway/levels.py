"""Count jobs per node in bitmaps, at a cost that does not grow with the number of nodes."""

from __future__ import annotations

from makeway.bitmap import NodeBits


class Levels:
    """Count jobs per node in bitmaps: level *k* holds the nodes with more than *k* jobs."""

    __slots__ = ("over",)

    def __init__(self) -> None:
        self.over: list[NodeBits] = [0]

    def add(self, nodes: NodeBits) -> None:
        """Count one more job on each of `nodes`."""
        over = self.over
        first = over[0]
        over[0] = first | nodes
        nodes &= first
        at = 1
        while nodes:
            if at == len(over):
                over.append(nodes)
                return
            both = over[at] & nodes
            over[at] |= nodes
            nodes = both
            at += 1

    def remove(self, nodes: NodeBits) -> None:
        """Count one job less on each of `nodes`."""
        over = self.over
        at = len(over) - 1
        if not at:
            over[0] &= ~nodes
            return
        while nodes and at >= 0:
            taken = over[at] & nodes
            if taken:
                over[at] ^= taken
                nodes ^= taken
            at -= 1
        while len(over) > 1 and not over[-1]:
            over.pop()

    def above(self, count: int) -> NodeBits:
        """Return the nodes with more than `count` jobs."""
        return self.over[count] if count < len(self.over) else 0

    def copy(self) -> Levels:
        """Return an independent copy."""
        twin = Levels()
        twin.over = list(self.over)
        return twin

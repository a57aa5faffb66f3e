"""Count jobs per node where only "any or none" is asked, however many of them there are."""

from __future__ import annotations

from makeway.bitmap import NodeBits


class Tally:
    """Count jobs per node in binary: bitmap *k* holds the nodes whose count has the digit of 2**k.

    Counting one job more or less carries to the next bitmap for ever fewer nodes. The cost hardly grows with the jobs
    on a node; `makeway.levels` goes through one level for each of them.
    """

    __slots__ = ("any", "digits", "odd")

    def __init__(self) -> None:
        self.any: NodeBits = 0
        """The nodes with one job or more."""
        self.odd: NodeBits = 0
        """The nodes with an odd number of jobs."""
        self.digits: list[NodeBits] = []
        """The digits from the second one on."""

    def add(self, nodes: NodeBits) -> None:
        """Count one more job on each of `nodes`."""
        odd = self.odd
        self.odd = odd ^ nodes
        self.any |= nodes
        carried = odd & nodes
        if carried:
            self._carry(carried)

    def remove(self, nodes: NodeBits) -> None:
        """Count one job less on each of `nodes`; each has one or more."""
        odd = self.odd
        self.odd = self.any = odd ^ nodes
        if self.digits:
            self._borrow(nodes & ~odd)

    def _carry(self, nodes: NodeBits) -> None:
        digits = self.digits
        for at, digit in enumerate(digits):
            digits[at] = digit ^ nodes
            nodes &= digit
            if not nodes:
                return
        digits.append(nodes)

    def _borrow(self, nodes: NodeBits) -> None:
        digits = self.digits
        for at, digit in enumerate(digits):
            if not nodes:
                break
            digits[at] = digit ^ nodes
            nodes &= ~digit
        left = self.odd
        for digit in digits:
            left |= digit
        self.any = left

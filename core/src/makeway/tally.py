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
        digits = self.digits
        self.odd = odd = self.odd ^ nodes
        if not digits:
            self.any = odd
            return
        borrowed = nodes & odd  # their numbers were even
        if borrowed:
            for at, digit in enumerate(digits):
                digits[at] = digit ^ borrowed
                borrowed &= ~digit
                if not borrowed:
                    break
        gone = nodes & ~odd  # those of the others that have no digit left
        for digit in digits:
            if not gone:
                return
            gone &= ~digit
        self.any &= ~gone

    def _carry(self, nodes: NodeBits) -> None:
        digits = self.digits
        for at, digit in enumerate(digits):
            digits[at] = digit ^ nodes
            nodes &= digit
            if not nodes:
                return
        digits.append(nodes)

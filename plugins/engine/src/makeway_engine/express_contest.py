"""Make passes of `builtin` and `greedy` over plain jobs that are named one by one, whose priorities were put off.

`Strict` and `Greedy` say what a pass comes to. Only those whom `Contest` names are given a priority.
"""

from __future__ import annotations

from collections.abc import Callable

from makeway.bitmap import NodeBits
from makeway.model import Job, Seconds
from makeway_engine.express_gate import LetIn
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.ledger import Ledger
from makeway_engine.schedulers.contest import Contest
from makeway_engine.schedulers.futile import NO_ROOM
from makeway_engine.transitions import Transitions


class ContestPasses:
    """Such passes of one run, while nothing unusual is under way."""

    def __init__(
        self,
        contest: Contest,
        ledger: Ledger,
        transitions: Transitions,
        moves: ExpressMoves,
        wanted_by: Callable[[Job], int | None],
        let_in_until: LetIn,
        passed: Callable[[], None],
    ) -> None:
        """Be ready for the first pass.

        :param wanted_by: says how many nodes a job wants that waits; None: it is not plain.
        :param let_in_until: says up to when limits surely let a job in.
        :param passed: is called when a pass is over.
        """
        self.contest = contest
        self._ledger = ledger
        self._transitions = transitions
        self._moves = moves
        self._wanted_by = wanted_by
        self._let_in_until = let_in_until
        self._passed = passed

    def run(self, now: Seconds) -> bool:
        """Make a pass; False: it has to go the plain way, from where it stands by now."""
        contest, ledger, moves = self.contest, self._ledger, self._moves
        closed: set[int] = set()
        withdrawn: NodeBits = 0
        contest.begin()
        sure = True
        while (entry := contest.next(closed, moves.idle.bit_count())) is not None:
            _, job, partition = entry
            wanted = self._wanted_by(job)
            if wanted is None or partition.nodes & withdrawn or self._let_in_until(job) <= now:
                sure = False
                break
            found = moves.find(job, partition, wanted)
            if found is not None:
                moves.start(job, found, now, entry)
                continue
            ledger.wait_for(job, NO_ROOM)
            if contest.strict:
                closed.add(partition.index)
                withdrawn |= partition.nodes
        contest.end()
        if sure and contest.is_sure:
            ledger.searches = 0
            self._transitions.left_nodes = False
            self._passed()
        return sure and contest.is_sure


__all__ = ["ContestPasses"]

"""Keep those in line who may be displaced, and let the selector draw as many of them as it looks at.

A search is given all candidates, though the first few mostly decide. Where the policy says of each active job where
it stands among them (`makeway.hookspecs.Steady`), they are kept in that order from one search to the next. A selector
that draws them one by one (`makeway.model.DisplacingSelector`) then says who goes. That counts for jobs that no limit
is about, where nobody takes note of attempts, and while no running job refuses to share its nodes: these would have
to be added to the nodes where all candidates are gone. `Order` and `Search` say what all others come to, and
`tests/test_in_line.py` holds one to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import cast

from makeway.bitmap import NodeBits
from makeway.hookspecs import Steady
from makeway.model import Candidates, Choice, DisplacingSelector, Job, PreemptMode, Selector
from makeway.registry import Policies
from makeway_engine.ledger import Ledger
from makeway_engine.placing.order import Order
from makeway_engine.placing.question import Room
from makeway_engine.rulings import Rulings

_HOOK = "makeway_selector"
_SOME = 64
"""So many who have left may stand in a line before it is looked through."""


class InLine:
    """The lines of one run, by the kind of preemptors for whom others stand in them."""

    def __init__(
        self,
        ledger: Ledger,
        selector: Selector,
        policies: Policies,
        order: Order,
        rulings: Rulings,
        *,
        plain: bool,
    ) -> None:
        """Be there for one run.

        :param plain: whether a job has all nodes that are open to it, and nobody takes note of attempts.
        """
        self._ledger = ledger
        self._policies = policies
        self._limited = rulings.limited
        self._kind_of = order.kind_of if order.selector_decides and plain else None
        self._who_goes = (
            cast(DisplacingSelector, selector).who_goes if hasattr(selector, "who_goes") else None
        )
        partitions = ledger.cluster.partitions
        self._spanning = {
            each.index for each in partitions if not any(other.nodes & ~each.nodes for other in partitions)
        }
        """Partitions that have all nodes of all partitions, by index."""
        self._lines: dict[Steady, _Line] = {}

    def search(self, job: Job, nodes: NodeBits) -> tuple[Choice, Candidates, Room] | None:
        """Return who goes for `job` on `nodes`, with those who were drawn; None: `Search` has to say.

        :raises PolicyError: the selector answers what it may not answer.
        """
        ledger, who_goes = self._ledger, self._who_goes
        if (
            self._kind_of is None
            or who_goes is None
            or job.partition.index not in self._spanning
            or job.spec.het_id is not None
            or job.required
            or ledger.exclusive
            or ledger.heterogeneous
            or self._limited(job)
        ):
            return None
        kind = self._kind_of(job)
        if not isinstance(kind, Steady) or kind.goes is None:
            return None
        line = self._lines.get(kind)
        if line is None:
            line = self._lines[kind] = _Line(ledger.jobs_active.by_id, kind.goes)
        drawn: dict[int, int] = {}
        jobs: list[Job] = []
        modes: list[PreemptMode] = []
        try:
            found = who_goes(job, nodes, line.drawn(drawn, jobs, modes), ledger)
        except Exception as error:
            raise self._policies.blame(_HOOK, job, error) from error
        if found is None:
            return None
        placement, victims = found
        at = [drawn.get(id(victim), -1) for victim in victims]
        if -1 in at or len(set(at)) < len(at):
            raise self._policies.fault(_HOOK, job, "lets somebody go who is no candidate, or somebody twice")
        choice = Choice(placement=placement, victims=tuple(at), method="drawn in order", considered=len(jobs))
        room = Room(placement.allocation.nodes, victims, [modes[each] for each in at], ())
        return choice, Candidates(jobs=tuple(jobs), modes=tuple(modes)), room


class _Line:
    """The candidates of one kind of preemptors, in order."""

    def __init__(self, active: dict[str, Job], goes: Callable[[Job], tuple[int, PreemptMode] | None]) -> None:
        """Begin with nobody.

        :param active: the active jobs by id, as they started.
        """
        self._active = active
        self._goes = goes
        self._seen: dict[int, int] = {}
        """Which start of each job was looked at, by place in the job table; of those who have left, too."""
        self._line: list[tuple[int, int, int, Job, PreemptMode]] = []
        """With number, place in the job table and start of each; some have left."""

    def drawn(self, places: dict[int, int], jobs: list[Job], modes: list[PreemptMode]) -> Iterator[Job]:
        """Yield those who stand in line.

        :param places: gets the place of each in `jobs` and `modes`, by identity.
        """
        self._let_in()
        line, active, at = self._line, self._active, 0
        while at < len(line):
            _, _, starts, job, mode = line[at]
            if active.get(job.id) is not job or job.starts != starts:
                del line[at]
                continue
            at += 1
            places[id(job)] = len(jobs)
            jobs.append(job)
            modes.append(mode)
            yield job

    def _let_in(self) -> None:
        """Let those into the line who have started since; they come last of all who are active."""
        active, seen, line, goes = self._active, self._seen, self._line, self._goes
        if len(seen) > 2 * len(active) + _SOME:
            seen.clear()
            line.clear()
        for job in reversed(active.values()):
            starts = job.starts
            if seen.get(job.index) == starts:
                break
            seen[job.index] = starts
            place = goes(job)
            if place is not None:
                bisect.insort(line, (place[0], job.index, starts, job, place[1]))


__all__ = ["InLine"]

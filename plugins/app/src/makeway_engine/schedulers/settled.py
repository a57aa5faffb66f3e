"""Remember that a pass in strict order came to nothing but waiting, so that the next one need not be made.

A job that waits for room closes its partition. While nothing is taken or given back, and no policy wants to be asked
again, it waits on; so do all that come behind it. Where a policy orders the queue anew for each pass, it is not
known beforehand what comes behind. Its ranks may end in mid-run, as soon as a job comes about which they do not say
all. `Strict` says what a pass comes to without this, and `tests/test_settled.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import Job
from makeway_engine.entries import Entry
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.futile import NO_ROOM
from makeway_engine.schedulers.lanes import BEHIND, wait_behind


class Settled:
    """Which job closed which partition in the last pass, as long as that says all. Listens to the queue."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._placer = placer = attempts.placer
        self._limited = placer.rulings.limited
        policies = attempts.policies
        others = map(policies.limits_say, ("node_sets", "reservations", "marks"))
        self._applies = (
            placer.order.selector_decides
            and placer.transitions.gang is None
            and not (placer.telling.notes or any(others))
        )
        """Whether all that decides about a job that is about no limit changes with the ledger, or wakes a pass."""
        self._passing = False
        self._heads: dict[int, Entry] = {}
        """The entry that closed a partition, by its index."""
        self._at = (-1, -1)
        """Versions of the ledger by which the first of them waits."""
        self._up: NodeBits = 0
        """Nodes that were in service then."""
        self._doubtful = True
        """Whether anything else may come of another pass."""
        attempts.queue.listeners.join(self)

    # ------------------------------------------------------------------------------ in a pass
    def begin(self) -> None:
        """A pass begins."""
        self._heads.clear()
        self._doubtful = not self._applies or self._attempts.custom_order
        self._passing = True

    def doubt(self) -> None:
        """Something came of the pass that may come out otherwise the next time."""
        self._doubtful = True

    def closed_by(self, entry: Entry) -> None:
        """A job that found no room closes its partition."""
        job, order = entry[1], self._placer.order
        candidates_known = not self._placer.preemption or (
            order.kind_of is not None and order.kind_of(job) is not None
        )
        if self._limited(job) or not candidates_known or len(job.partitions) > 1:
            self._doubtful = True
        if not self._heads:  # what starts behind it in this pass may be displaced by it later
            self._at = self._ledger.version, self._ledger.freed
        self._heads[entry[2].index] = entry

    def end(self) -> None:
        """A pass has looked at all entries."""
        self._up = self._ledger.up
        self._passing = self._attempts.again = False

    # --------------------------------------------------------------------------- the next one
    def lets_wait(self, arrivals: Sequence[Entry]) -> bool:
        """Let those wait that came since the last pass, if that is all that another one would come to."""
        ledger, heads = self._ledger, self._heads
        if self._doubtful or self._attempts.again or self._placer.forgives or self._asks_again():
            return False
        if self._at != (ledger.version, ledger.freed) and not self.all_wait_on():
            return False
        for entry in arrivals:
            head = heads.get(entry[2].index)
            if head is None or entry <= head or entry[1].spec.het_id is not None:
                return False
        for _, job, _ in arrivals:
            wait_behind(ledger, job)
        return True

    def all_wait_on(self) -> bool:
        """Whether a glance says of all that closed a partition that they wait on, whatever was taken or given back."""
        ledger, placer, up = self._ledger, self._placer, self._ledger.up
        if (
            up != self._up
            or ledger.completing
            or ledger.anyone_exclusive
            or placer.beyond
            or placer.kept.claims
        ):
            return False
        for _, job, partition in self._heads.values():
            if (
                job.reason != NO_ROOM
                or job.spec.licenses
                or job.required
                or job.partition is not partition
                or placer.glance.among((job,))
            ):
                return False
            if placer.preemption and not placer.order.names_none(job):
                return False
        self._at = ledger.version, ledger.freed
        return True

    def holds(self) -> bool:
        """Whether the last pass came to nothing but waiting, and nothing was taken or given back since."""
        ledger = self._ledger
        return bool(
            self._heads
            and not (self._doubtful or self._attempts.again or self._placer.forgives or self._asks_again())
            and self._at == (ledger.version, ledger.freed)
        )

    def _asks_again(self) -> bool:
        """Whether others may be displaced by now that could not before: between full passes none says `again` then."""
        return self._placer.making_way.has_come(self._ledger.now)

    # ------------------------------------------------------------------------ listening to the queue
    def came(self, entry: Entry) -> None:
        """An entry was added: it is among the arrivals."""

    def left(self, job: Job) -> None:
        """The entries of a job were taken out."""
        for head in self._heads.values():
            if head[1] is job:
                self._doubtful = True

    def reordered(self) -> None:
        """All entries may stand elsewhere."""
        self._doubtful = True

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before."""
        if not self._passing and job.reason != BEHIND:
            self._doubtful = True

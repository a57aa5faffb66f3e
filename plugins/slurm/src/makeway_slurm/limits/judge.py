"""Put together what limits need to know of one run."""

from __future__ import annotations

from makeway.model import ClusterView, Job
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits.access import Door
from makeway_slurm.limits.attendance import Attendance
from makeway_slurm.limits.deny import Strictness, TooLarge
from makeway_slurm.limits.ending import Ending
from makeway_slurm.limits.given_time import GivenTime
from makeway_slurm.limits.listing import Listing
from makeway_slurm.limits.node_cap import node_cap
from makeway_slurm.limits.qos_limits import limits_of
from makeway_slurm.limits.requested import Requested
from makeway_slurm.limits.requests import Requests
from makeway_slurm.limits.rulebook import RuleBook
from makeway_slurm.limits.settings import Settings
from makeway_slurm.limits.submission import Submission
from makeway_slurm.limits.submits import Submits
from makeway_slurm.limits.waiting import Waiting


class Judge(Attendance):
    """The limits of one run, as a book that every call finds again (`ClusterView.book`)."""

    def __init__(self, view: ClusterView) -> None:
        settings = view.settings(Settings)
        super().__init__(view, ends=not settings.safe)
        counts, usage = self._counts, self._usage
        qos = {each.name: each for each in view.cluster.qos}
        limits = {name: limits_of(each, view.cluster) for name, each in qos.items()}
        enforced = settings.enforce
        rules = self._rules = RuleBook(usage.tree if enforced else None, qos, limits if enforced else {})
        strictness, requested, whole_nodes = Strictness(qos), Requested(view), WholeNodes(view)
        listing = self.listing = Listing(rules, counts, usage)
        self.given_time = GivenTime(strictness, rules, counts, requested)
        self.requests = Requests(
            view, counts, listing, requested, whole_nodes, self.given_time.of, self._remembered
        )
        door = Door(view, settings, usage)
        there = self._elsewhere.any
        too_large = TooLarge(
            strictness, rules, counts, self.requests.anew, requested, whole_nodes, has_partition_qos=there
        )
        submits = Submits(rules, counts, self._elsewhere)
        self.submission = Submission(door, submits, too_large, strictness, counts, has_partition_qos=there)
        self.ending = Ending(view, rules, usage, counts, listing.entry_of)
        self.waiting = Waiting(view, counts, usage, self.ending, door, self.requests.known)

    def node_cap(self, job: Job) -> int | None:
        """Return to how many nodes limits cap a job before any are chosen; None: to no number."""
        return node_cap(self._rules.of(self._counts.seat(job).places))

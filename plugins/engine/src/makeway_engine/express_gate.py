"""Let limits have their say about plain jobs, and ask them only where they do not surely let a job in.

`makeway.hookspecs.sure_by` marks who can say so. `Rulings` and `Placer` say what a limit comes to;
`tests/test_express.py` holds one way to the other.
"""

from __future__ import annotations

from collections.abc import Callable

from makeway import licences
from makeway.model import Job, Partition, Seconds
from makeway_engine.parts import Parts
from makeway_engine.placing import Outcome, Question

LetIn = Callable[[Job | None], Seconds]


class Gate:
    """The limits of one run, as jobs meet them on the short way."""

    def __init__(self, parts: Parts, let_in_until: LetIn) -> None:
        """Be ready for the first job.

        :param let_in_until: says up to when limits surely let a job in.
        """
        self.let_in_until = let_in_until
        self.taken = parts.submission.taken
        """Says which jobs are surely taken at their submission; None: all are."""
        self._others = [about for about in parts.placer.rulings.others if about is not licences.wants]
        self.limited = self._is_about if self._others else None
        """Says about which jobs others have a say, who have to be asked; None: about those alone that want licences."""
        self._policies = parts.policies
        self._submission = parts.submission
        self._placer = parts.placer
        self._ledger = parts.ledger

    def _is_about(self, job: Job) -> bool:
        for about in self._others:  # noqa: SIM110  # a generator takes twice as long
            if about(job):
                return True
        return False

    def refuse(self, job: Job) -> None:
        """Refuse a job that was submitted, if somebody wants that."""
        problem = self._policies.refusals((job,), self._ledger).get(job.id, "")
        if problem:
            self._submission.reject(job, problem)
        else:
            self._submission.name_limit(job)

    def stops(self, job: Job, partition: Partition, now: Seconds) -> Outcome | None:
        """Let a job wait that a limit keeps out where it is tried, and say what that comes to; None: none does."""
        if self.let_in_until(job) > now:
            return None
        return self._placer.stopped(Question(job, partition, self._ledger.all_nodes))


def gate_of(parts: Parts) -> Gate | None:
    """Return the gate of a run; None: limits are about some jobs only, or nobody can say who is surely let in."""
    policies, let_in_until = parts.policies, parts.placer.rulings.let_in_until
    accepts = policies.implements("makeway_accept")
    limits_all = any(call.about is None for call in policies.calls("makeway_admit"))
    if let_in_until is None or (accepts and parts.submission.taken is None):
        return None
    return (
        Gate(parts, let_in_until) if limits_all or accepts or policies.implements("makeway_overdue") else None
    )


__all__ = ["Gate", "LetIn", "gate_of"]

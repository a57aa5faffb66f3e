"""Say what policies rule about single jobs: how they make way, which are protected, which limit keeps one out.

A ledger is made with its rulings, and asks them on behalf of its readers (`makeway.model.ClusterView`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import attrs

from makeway.model import Blocked, ClusterView, Job, PreemptMode, Protection
from makeway.registry import Policies
from makeway_engine.ledger import Ledger
from makeway_engine.view_without import ViewWithout


@attrs.define(eq=False)
class Ahead:
    """What was tried before in this pass and has to wait; empty where the scheduler does not keep that."""

    jobs: Sequence[Job] = ()


class Rulings:
    """What policies say of jobs as the books stand, and what they have to know beside the books."""

    def __init__(self, policies: Policies, ahead: Ahead) -> None:
        """Ask `policies`.

        :param ahead: what stands before the job that is tried, as the scheduler says.
        """
        self._policies = policies
        self.limited: Callable[[Job], bool] = lambda job: True
        """Whether limits are about a job at all: if not, they are not asked."""
        self._vetoing = policies.implements("makeway_protect")
        self._ahead = ahead
        self.stubborn: dict[str, Protection] = {}
        """Jobs that could not be suspended, and until when that is not tried again; kept by what worlds report."""

    @property
    def before(self) -> Sequence[Job]:
        """Jobs that were tried in this pass and have to wait."""
        return self._ahead.jobs

    @property
    def any_protected(self) -> bool:
        """Whether any job may be protected from another."""
        return self._vetoing or bool(self.stubborn)

    def modes(self, jobs: Sequence[Job], ledger: Ledger) -> Sequence[PreemptMode]:
        """Return how each of `jobs` would make way."""
        return self._policies.modes(jobs, ledger)

    def protected(self, preemptor: Job, jobs: Sequence[Job], ledger: Ledger) -> Mapping[str, Protection]:
        """Return which of `jobs` vetoes keep from `preemptor`, and which cannot be suspended at present."""
        found = self._policies.protected(preemptor, jobs, ledger) if self._vetoing else {}
        return {**found, **self._spared(jobs, ledger)} if self.stubborn else found

    def _spared(self, jobs: Sequence[Job], ledger: Ledger) -> Mapping[str, Protection]:
        """Return which of `jobs` may not be displaced by suspension, since that has just failed."""
        return {
            job.id: self.stubborn[job.id]
            for job, mode in zip(jobs, self.modes(jobs, ledger), strict=True)
            if job.id in self.stubborn and mode is PreemptMode.SUSPEND
        }

    def bind(self, ledger: Ledger) -> None:
        """Find out which plugins know for sure, before the first job comes."""
        self.limited = self._policies.limited()

    def kept_out(
        self, job: Job, ledger: Ledger, without: Sequence[tuple[Job, PreemptMode]] = ()
    ) -> Blocked | None:
        """Return the limit that keeps `job` out once these have made way; None: none does."""
        if not self.limited(job):
            return None
        view = cast(ClusterView, ViewWithout(ledger, without)) if without else ledger
        return self._policies.admit(job, view)

    def kept_out_in(self, view: ClusterView, job: Job) -> Blocked | None:
        """Return the same of the cluster as a view shows it."""
        return self._policies.admit(job, view) if self.limited(job) else None

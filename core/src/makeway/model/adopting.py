"""Define what selectors and arbiters have that go on exactly where others stood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from makeway.model.answers import GangOrder
from makeway.model.jobs import Allocation, Job
from makeway.model.parts import Gang, Selector
from makeway.model.views import ClusterView


class AdoptingSelector(Selector, Protocol):
    """A selector whose books say more than the jobs that run; for those that shall go on exactly as they would have.

    A selector without these methods is told of the starts in order, and then of the suspensions.
    """

    def save(self) -> Mapping[str, Any]:
        """Return what the jobs do not tell, in values that JSON has; empty: nothing. Changes nothing."""

    def recast(self, job: Job, allocation: Allocation, view: ClusterView) -> Allocation:
        """Return what a job holds in this selector's terms: another one placed it, or a person wrote it down.

        Called before `restore`, for each active job that was not placed by a selector of the same plugin.
        """

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Fill the books of a new selector.

        :param active: running and suspended jobs, in the order in which they started.
        :param memory: what a selector of the same plugin handed over under the same configuration, perhaps some seconds
            before; None: there is none, and the jobs have to do.
        """


class AdoptingGang(Gang, Protocol):
    """An arbiter that remembers more than the jobs show: whose turn is next, which job waits for which.

    An arbiter without these methods is told of the starts in order, those that run before those that are suspended.
    The one that takes over has to hand over the same again, and to say the same `next_tick`. It is asked for that
    before orders of the step are carried out.
    """

    def save(self) -> Mapping[str, Any]:
        """Return what the jobs do not tell, in values that JSON has; empty: nothing. Changes nothing."""

    def restore(
        self,
        active: Sequence[Job],
        leaving: Sequence[Job],
        memory: Mapping[str, Any] | None,
        view: ClusterView,
    ) -> Iterable[GangOrder]:
        """Fill the rows of a new arbiter.

        :param active: running and suspended jobs, in the order in which they started.
        :param leaving: jobs that have ended or been killed and still hold their nodes: `ended` is called once they
            have left.
        :param memory: what an arbiter of the same plugin handed over, perhaps some seconds before and under other
            settings; None: there is none, and the jobs have to do.
        :returns: what has to be done right now so that jobs are as the arbiter wants them; mostly nothing.
        """

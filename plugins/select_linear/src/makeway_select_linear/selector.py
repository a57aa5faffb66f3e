"""Find whole nodes for a job, now or later (slurm-gang-and-select 4.1.4, 4.2)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Forecast, Job, PreemptMode
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.forecast import forecast, forecast_around, forecast_key, nodes_of
from makeway_select_linear.nodes import LinearNodes


class LinearSelector(LinearNodes):
    """The selector of one run. See `makeway.model.Selector`."""

    shares_whole_nodes = True
    gives_whole_nodes = True

    def __init__(self, view: ClusterView) -> None:
        super().__init__(view)
        self.takes_completing_required = view.rule("linear_takes_completing_required")

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> LinearAttempt:
        """Begin an attempt."""
        if self.spares_off:
            nodes &= ~nodes_of(self.spared(job, view))
        return LinearAttempt(self, job, nodes, view)

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start; ends beyond the limits count as "now"."""
        if self.spares_off and (spared := self.spared(job, view)):
            return forecast_around(self, job, nodes, view, removable, spared)
        return forecast(self, job, nodes, view, removable)

    def forecast_key(self, job: Job, view: ClusterView) -> Hashable | None:
        """Return what tells jobs apart for `forecast`; None: not known (see `ForecastingSelector`)."""
        return forecast_key(self, job, view)

    def spared(self, job: Job, view: ClusterView) -> Sequence[Job]:
        """Return the jobs that `job` may not be laid over: gang would stop them although they are OFF (4.4.6)."""
        tier = job.partition.priority_tier
        return [
            other
            for other in view.active
            if other.partition.priority_tier < tier and view.mode_of(other) is PreemptMode.OFF
        ]

"""Find processors for a job, now or later."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Forecast, Job, Placement, PreemptMode
from makeway_moab_qos.tasks.attempt import TaskAttempt
from makeway_moab_qos.tasks.nodes import TaskNodes
from makeway_moab_qos.tasks.promises import Promises


class TaskSelector(TaskNodes):
    """The selector of one run. See `makeway.model.Selector`."""

    ignores_time_limits = True
    """Where nothing is promised; elsewhere kinds of jobs hold for a pass (`makeway_moab_qos.turns`)."""
    only_fills_up = True

    def __init__(self, view: ClusterView) -> None:
        super().__init__(view)
        self.promises = Promises(self)

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> TaskAttempt:
        """Begin an attempt."""
        return TaskAttempt(self, job, nodes, view, self.promises)

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start."""
        attempt = TaskAttempt(self, job, nodes, view)
        found = attempt.probe()
        if isinstance(found, Placement):
            return Forecast(at=view.now, nodes=found.allocation.nodes)
        if removable:
            for other, mode in removable:
                attempt.remove(other, mode)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=view.now, nodes=found.allocation.nodes, preempts=True)
        for end, _, other in view.releases():
            attempt.remove(other, PreemptMode.CANCEL)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=max(end, view.now), nodes=found.allocation.nodes)
        return None

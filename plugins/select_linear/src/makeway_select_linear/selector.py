"""Find whole nodes for a job, now or later (spec slurm-gang-and-select 4.1.4, 4.2)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Forecast, Job, Placement, PreemptMode
from makeway_select_linear.attempt import IDLE, SMALL, LinearAttempt, remembered, whole_nodes
from makeway_select_linear.best_fit import tightest
from makeway_select_linear.forecast import forecast, forecast_around, forecast_key, nodes_of
from makeway_select_linear.nodes import LinearNodes, shape_of
from makeway_select_linear.request import Request


class LinearSelector(LinearNodes):
    """The selector of one run. See `makeway.model.Selector`."""

    shares_whole_nodes = True
    gives_whole_nodes = True

    def __init__(self, view: ClusterView) -> None:
        super().__init__(view)
        self._wanted: dict[tuple[object, ...], int | None] = {}
        """How many nodes jobs take that are nothing but a number of nodes, by what they ask for."""
        self.counts_ahead = not view.rule("linear_forecast_tolerates_one")
        self.takes_completing_required = view.rule("linear_takes_completing_required")

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> LinearAttempt:
        """Begin an attempt."""
        if self.spares_off:
            nodes &= ~nodes_of(self.spared(job, view))
        return LinearAttempt(self, job, nodes, view)

    # ----------------------------------------------------------------- jobs that are a number of nodes
    def wants(self, job: Job) -> int | None:
        """Return how many idle nodes a job takes, whichever; None: which ones matters (`CountingSelector`)."""
        if job.required or job.excluded or job.spec.features:
            return None
        key = shape_of(job)
        known = self._wanted
        if key in known:
            return known[key]
        if len(known) > 100_000:
            known.clear()
        wanted = known[key] = self._count(job, self.request(job))
        return wanted

    def _count(self, job: Job, request: Request) -> int | None:
        counts = (
            self.plain
            and not self.spares_off
            and request.limit == 1
            and request.cpus_per_node <= 1
            and not request.too_small
            and self.possible(job, self.view) is None
        )
        return request.alike if counts else None

    def idle(self, nodes: NodeBits) -> NodeBits | None:
        """Return the nodes on which nobody runs; None: jobs share some."""
        books = self.books
        busy = books.running.over[0]
        return nodes & ~busy if busy == books.exclusive.over[0] else None

    def place(self, idle: NodeBits, wanted: int) -> Placement | None:
        """Return where a job starts that wants so many idle nodes; None: there are too few."""
        if not bitmap.has(idle, wanted):
            return None
        nodes = tightest(idle, wanted)
        if nodes.bit_length() <= SMALL:
            return remembered(nodes, False, IDLE)
        return whole_nodes(nodes, False, IDLE)

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

    def forecast_key(self, job: Job, view: ClusterView) -> tuple[Hashable, int] | None:
        """Return what makes jobs start no earlier than others; None: not known (see `ForecastingSelector`)."""
        return forecast_key(self, job, view)

    def spared(self, job: Job, view: ClusterView) -> Sequence[Job]:
        """Return the jobs that `job` may not be laid over: gang would stop them although they are OFF (4.4.6)."""
        tier = job.partition.priority_tier
        return [
            other
            for other in view.active
            if other.partition.priority_tier < tier and view.mode_of(other) is PreemptMode.OFF
        ]

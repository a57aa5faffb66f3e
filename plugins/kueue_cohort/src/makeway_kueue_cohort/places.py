"""Give jobs nodes by quota alone, as Kueue admits them (``kueue/quota``).

Kueue looks at no nodes: what has quota is admitted. This selector does the same: a job gets the first nodes of its
flavors, as many as it asks for, whatever else is there. It shares all that it holds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs

from makeway import bitmap, licences
from makeway.bitmap import NodeBits
from makeway.hookspecs import hookimpl
from makeway.licences import LicenceLimits
from makeway.model import (
    Allocation,
    Blocked,
    ClusterView,
    Cover,
    Forecast,
    Job,
    Limits,
    Placement,
    PreemptMode,
    Selector,
)
from makeway_kueue_cohort import requests

_MOST_KNOWN = 1000
"""How many placements are remembered."""


@attrs.define(eq=False)
class QuotaAttempt:
    """One job. See `makeway.model.Attempt`."""

    job: Job
    nodes: NodeBits
    view: ClusterView
    known: dict[Hashable, Placement]
    """What was found for others that asked for the same."""

    def probe(self) -> Placement | Blocked:
        """Place the job on the first nodes that it may have."""
        spec, usable = self.job.spec, self.nodes & ~self.job.excluded
        if spec.licenses:  # which of them it gets depends on what is free
            return self._found(usable)
        asked = (*spec.gres.items(), None, *spec.gres_total.items(), spec.cpus, spec.min_nodes, self.job.size)
        request = (usable, self.job.required, asked)
        found = self.known.get(request)
        if found is not None:
            return found
        placement = self._found(usable)
        if isinstance(placement, Placement):
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[request] = placement
        return placement

    def _found(self, usable: NodeBits) -> Placement | Blocked:
        size = max(1, self.job.size)
        rest = size - self.job.required.bit_count()
        nodes = self.job.required | bitmap.first_n(usable & ~self.job.required, max(0, rest))
        if self.job.required & ~usable or nodes.bit_count() < size:
            return Blocked(wanted=size, available=usable.bit_count(), detail="its flavors have too few nodes")
        return Placement(allocation=self._allocation(nodes), why="quota")

    def _allocation(self, nodes: NodeBits) -> Allocation:
        indices = tuple(bitmap.indices(nodes))
        pieces = requests.pieces(self.job.spec)
        return Allocation(
            nodes=nodes,
            node_indices=indices,
            cpus=spread(self.job.spec.cpus, len(indices)),
            cores=(0,) * len(indices),
            gres={name: spread(round(count), len(indices)) for name, count in pieces.items()},
            licenses=licences.taken_by(self.job, self.view.licenses_free),
            shared=True,
        )

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Do nothing: no job stands in another's way."""

    def fresh(self) -> QuotaAttempt:
        """Return another attempt."""
        return self

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Offer no description."""
        del jobs, modes
        return None


def spread(amount: int, parts: int) -> tuple[int, ...]:
    """Return an amount in nearly equal parts, larger ones first."""
    each, more = divmod(amount, parts)
    return (each + 1,) * more + (each,) * (parts - more)


class ByQuota:
    """The selector of one run; it keeps no books. See `makeway.model.Selector`."""

    def __init__(self) -> None:
        """Begin a run."""
        self._known: dict[Hashable, Placement] = {}

    def placed(self, job: Job) -> None:
        """Ignore it."""

    def released(self, job: Job) -> None:
        """Ignore it."""

    def suspended(self, job: Job) -> None:
        """Ignore it."""

    def resumed(self, job: Job) -> None:
        """Ignore it."""

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Return those of `jobs` that ask for no more nodes than there are."""
        count = nodes.bit_count()
        return [job for job in jobs if job.size <= count]

    def equivalence_key(self, job: Job) -> Hashable:
        """Return which nodes it may not have: of all others the first do."""
        return job.excluded

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> QuotaAttempt:
        """Begin an attempt."""
        return QuotaAttempt(job, nodes, view, self._known)

    def forecast(
        self, job: Job, nodes: NodeBits, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]]
    ) -> Forecast | None:
        """Say when `job` could start: now, as far as nodes are concerned."""
        del removable
        found = self.attempt(job, nodes, view).probe()
        return Forecast(at=view.now, nodes=found.allocation.nodes) if isinstance(found, Placement) else None

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        found = self.attempt(job, job.partition.nodes, view).probe()
        return (
            attrs.evolve(found, reason="BadConstraints", never=True) if isinstance(found, Blocked) else None
        )


@hookimpl
def makeway_selector() -> Selector:
    """Build the selector."""
    return ByQuota()


@hookimpl
def makeway_limits() -> Limits:
    """Keep out jobs whose licences are not there (slurm-preemption 1.11)."""
    return LicenceLimits()

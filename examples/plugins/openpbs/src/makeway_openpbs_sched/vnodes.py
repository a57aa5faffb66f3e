"""Place chunks on vnodes (``openpbs/vnodes``): first vnode first, as many chunks on each as fit.

A chunk sits whole on one vnode. Suspended jobs have given their vnodes back, all or in part
(`makeway_openpbs_sched.room`). A job that was checkpointed starts again on the vnodes that it had (section
4.2). When a job does not fit, the answer names the resource that is short, for the search goes by it (3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.features import alternatives
from makeway.hookspecs import hookimpl
from makeway.model import (
    Allocation,
    Blocked,
    ClusterView,
    Cover,
    Forecast,
    Job,
    Placement,
    PreemptMode,
    Selector,
)
from makeway.settings import structure, unstructure
from makeway.state import Held, allocation_of, held_of
from makeway_openpbs_sched.reasons import Reason
from makeway_openpbs_sched.requests import request_of
from makeway_openpbs_sched.room import Room
from makeway_openpbs_sched.settings import Settings

__makeway_vendor__ = "openpbs"


@hookimpl
def makeway_selector(view: ClusterView) -> Selector:
    """Build the selector."""
    return VnodeSelector(view)


class VnodeSelector:
    """The selector of one run. See `makeway.model.Selector`."""

    def __init__(self, view: ClusterView) -> None:
        self.cluster = view.cluster
        self.given_back = view.settings(Settings).restrict_res_to_release_on_suspend
        self.suspension_frees_memory = not self.given_back or "mem" in self.given_back
        self._saved: dict[str, Allocation] = {}
        """What checkpointed jobs held, until they start again."""
        self._room: tuple[int, Room] | None = None

    # ----------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Forget where a checkpointed job was; all else is read off the view."""
        self._saved.pop(job.id, None)

    def released(self, job: Job) -> None:
        """Remember where a checkpointed job was."""
        if job.marked_saved and job.allocation is not None:
            self._saved[job.id] = job.allocation

    def suspended(self, job: Job) -> None:
        """Nothing."""

    def resumed(self, job: Job) -> None:
        """Nothing."""

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return where checkpointed jobs were; all else is read off the view."""
        saved = {job_id: unstructure(held_of(self.cluster, held)) for job_id, held in self._saved.items()}
        return {"saved": saved} if saved else {}

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Remember the same places."""
        saved = memory["saved"] if memory else {}
        self._saved = {
            job_id: allocation_of(self.cluster, structure(plain, Held, "memory"))
            for job_id, plain in saved.items()
            if view.job(job_id) is not None
        }

    # ----------------------------------------------------------------------------- asking
    def saved(self, job: Job) -> Allocation | None:
        """Return what a checkpointed job has to have again; None: it may go anywhere."""
        return self._saved.get(job.id)

    def room(self, view: ClusterView) -> Room:
        """Return what is free now; not to be changed."""
        if self._room is None or self._room[0] != view.version:
            self._room = (view.version, Room(self.cluster, self.given_back, view.active))
        return self._room[1]

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Return all: an attempt is cheap."""
        return jobs if nodes else ()

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> VnodeAttempt:
        """Begin an attempt."""
        return VnodeAttempt(self, job, nodes, view)

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start: now, now without `removable`, or as running jobs reach their limits."""
        attempt = self.attempt(job, nodes, view)
        found = attempt.probe()
        if isinstance(found, Placement):
            return Forecast(at=view.now, nodes=found.allocation.nodes)
        if removable:
            for other, mode in removable:
                attempt.remove(other, mode)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=view.now, nodes=found.allocation.nodes, preempts=True)
            attempt = attempt.fresh()
        for end, _, other in view.releases():
            attempt.remove(other, PreemptMode.CANCEL)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=max(end, view.now), nodes=found.allocation.nodes)
        return None

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run on the empty cluster; None: it could."""
        empty = VnodeAttempt(self, job, job.partition.nodes, view, Room(self.cluster, self.given_back))
        found = empty.place()
        if isinstance(found, Placement):
            return None
        asked = request_of(job)
        chunk = ", ".join(f"{name}={amount:g}" for name, amount in {**asked.per_vnode, **asked.chunk}.items())
        vnodes = f" on {asked.vnodes} vnodes" if asked.vnodes > 1 else ""
        detail = f"the empty cluster has no room for {asked.chunks} x ({chunk}){vnodes}: {found.reason}"
        return attrs.evolve(found, never=True, detail=detail)


class VnodeAttempt:
    """One job against the vnodes. See `makeway.model.Attempt`."""

    def __init__(
        self, selector: VnodeSelector, job: Job, nodes: NodeBits, view: ClusterView, room: Room | None = None
    ) -> None:
        self.job = job
        self._selector = selector
        self._nodes = nodes
        self._view = view
        self._room = room if room is not None else selector.room(view)
        self._own = room is not None
        self._request = request_of(job)

    def fresh(self) -> VnodeAttempt:
        """Return an attempt for the same job with nothing removed."""
        return VnodeAttempt(self._selector, self.job, self._nodes, self._view)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Return None: it is not only about vnodes."""
        del jobs, modes
        return None

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if `job` were gone."""
        if not self._own:
            self._room, self._own = self._room.copy(), True
        if mode is not PreemptMode.OFF:
            self._room.stop(job, wholly=mode.frees_all)

    def probe(self) -> Placement | Blocked:
        """Place the job, or say what is short."""
        found = self.place()
        if isinstance(found, Blocked) and not found.never:
            never = self._selector.possible(self.job, self._view)
            return never if never is not None else found
        return found

    def place(self) -> Placement | Blocked:
        """Place the job; without asking whether it could ever run."""
        job, room = self.job, self._room
        for name, count in job.spec.licenses.items():
            if room.licences(name) < count:
                reason = Reason("resource", scope="server", resource=name)
                return _short(reason, "licences", count, room.licences(name))
        saved = self._selector.saved(job)
        if saved is not None:
            return self._again(saved)
        nodes = self._matching()
        if nodes.bit_count() < self._request.vnodes:
            return _short(Reason("other"), "vnodes", self._request.vnodes, nodes.bit_count())
        where = self._spread(nodes, self._wanted())
        if where is not None:
            return Placement(allocation=self._allocation(where), why="free vnodes")
        if job.required:
            return _short(Reason("named"), "vnodes", job.required.bit_count(), 0)
        return self._shortage(nodes)

    def _again(self, saved: Allocation) -> Placement | Blocked:
        if saved.nodes & ~self._nodes or not self._room.fits(saved):
            return _short(Reason("vnodes", resource="ncpus"), "vnodes", len(saved.node_indices), 0)
        where = dict(zip(saved.node_indices, saved.cpus or (), strict=True))
        cores = tuple(self._room.cores(index, self._cores(index, count)) for index, count in where.items())
        again = attrs.evolve(saved, cores=cores)
        return Placement(allocation=again, why="the vnodes of its checkpoint")

    # ------------------------------------------------------------------------------- pieces
    def _matching(self) -> NodeBits:
        """Return the vnodes that are named, and have what is asked for that is not counted."""
        job = self.job
        nodes = self._nodes & ~job.excluded
        if job.required:
            nodes &= job.required
        if job.spec.features:
            nodes &= alternatives(job.spec.features, self._selector.cluster)[-1].nodes
        return nodes

    def _wanted(self) -> list[str]:
        asked = self._request
        return list(dict.fromkeys([*asked.chunk, *asked.per_vnode]))

    def _spread(self, nodes: NodeBits, counted: Sequence[str]) -> dict[int, int] | None:
        """Return vnode -> chunks, looking at some resources only; None: they do not fit."""
        asked = self._request
        left, found = asked.chunks, dict[int, int]()
        for index in bitmap.indices(nodes):
            fits = self._fitting(index, counted)
            if asked.most_per_vnode is not None:
                fits = min(fits, asked.most_per_vnode)
            use = min(fits, left - max(0, asked.vnodes - len(found) - 1))
            if use > 0:
                found[index] = use
                left -= use
            if not left:
                break
        return found if not left and len(found) >= asked.vnodes else None

    def _fitting(self, index: int, counted: Sequence[str]) -> int:
        """Return how many chunks fit on a vnode."""
        asked, room = self._request, self._room
        if room.exclusive(index) or (asked.whole and room.runs(index)):
            return 0
        free = room.free(index)
        fits = asked.chunks
        for name in counted:
            spare = free.get(name, 0.0) - asked.per_vnode.get(name, 0.0)
            if spare < 0:
                return 0
            each = asked.chunk.get(name, 0.0)
            if each:
                fits = min(fits, int(spare // each))
        return fits

    def _shortage(self, nodes: NodeBits) -> Blocked:
        """Say which resource is short: the first with which the job would not fit."""
        wanted = self._wanted()
        counted: list[str] = []
        for name in wanted:
            counted.append(name)
            if self._spread(nodes, counted) is None:
                break
        name = counted[-1]
        asked = self._request
        total = asked.chunk.get(name, 0.0) * asked.chunks + asked.per_vnode.get(name, 0.0) * asked.vnodes
        free = sum(max(0.0, self._room.free(index).get(name, 0.0)) for index in bitmap.indices(nodes))
        return _short(Reason("vnodes", resource=name), name, total, free)

    def _cores(self, index: int, cpus: int) -> int:
        node = self._selector.cluster.nodes[index]
        return -(-cpus * node.cores // node.cpus)

    def _allocation(self, where: Mapping[int, int]) -> Allocation:
        asked, job, nodes = self._request, self.job, self._selector.cluster.nodes
        indices = tuple(sorted(where))
        per_chunk = int(asked.chunk["ncpus"])
        whole = asked.whole
        cpus = tuple(nodes[index].cpus if whole else where[index] * per_chunk for index in indices)
        memory = None
        if "mem" in asked.chunk or "mem" in asked.per_vnode:
            memory = tuple(
                int(asked.per_vnode.get("mem", 0) + where[index] * asked.chunk.get("mem", 0))
                for index in indices
            )
        return Allocation(
            nodes=bitmap.of(indices),
            node_indices=indices,
            cpus=cpus,
            cores=tuple(
                self._room.cores(index, self._cores(index, count))
                for index, count in zip(indices, cpus, strict=True)
            ),
            memory_mb=memory,
            gres={name: (count,) * len(indices) for name, count in job.spec.gres.items()},
            licenses=dict(job.spec.licenses),
            shared=not whole,
        )


def _short(reason: Reason, resource: str, wanted: float, available: float) -> Blocked:
    detail = f"{wanted:g} wanted, {available:g} free"
    return Blocked(
        reason=reason.text, resource=resource, wanted=wanted, available=max(0.0, available), detail=detail
    )

"""Answer at once for a plain job of one node: which node, which cores, in one go.

`makeway_select_cons_tres.attempt` comes to the same step by step, and answers for all others;
`tests/test_plain_jobs.py` holds one to the other.
"""

from __future__ import annotations

from makeway.bitmap import CoreBits, NodeBits
from makeway.model import NOTHING, AllocationDraft, Blocked, ClusterView, Job, Placement, allotted
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.idle import Wish
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.known import Known
from makeway_select_cons_tres.request import MARKS
from makeway_select_cons_tres.steps import IDLE

_MOST_PLACES = 4096


class Prompt:
    """Places single jobs against the books as they are."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._kind_of = known.kind_of
        self._places: dict[tuple[Kind, int, CoreBits], Placement] = {}
        """What jobs of a kind get of a node with these idle cores."""
        self._blocked: dict[Kind, Blocked] = {}

    def place(self, job: Job, nodes: NodeBits, view: ClusterView) -> Placement | Blocked:
        """Return what an attempt for `job` on `nodes` would say with nobody removed."""
        met = self._kind_of.get(job.id)
        if met is not None and met[0] is job.spec and met[1] is job.partition:
            kind = met[2]
        else:
            kind = self._known.kind(job)
        wish: Wish | None = kind.place_wish
        if wish is None or job.spec.licenses:
            return ConsAttempt(self._known, job, nodes, view).probe()
        books = self._known.books
        if books.touched:
            books.sync()
        index = self._known.idle.first(wish, nodes, books.reserved_nodes)
        if index < 0:
            return self._known.possible(job, view) or self._no_room(kind, job, nodes, view)
        found = self.on(kind, index, books.layout.full[index] & ~books.busy[index])
        return ConsAttempt(self._known, job, nodes, view).probe() if found is None else found

    def on(self, kind: Kind, index: int, free: CoreBits) -> Placement | None:
        """Return a place on a node that has what jobs of a kind want; None: its cores do not serve after all.

        :param kind: one whose `place_wish` is known.
        :param free: the idle cores of the node.
        """
        key = kind, index, free
        found = self._places.get(key)
        if found is not None:
            return found
        assert kind.cpus_on_one_node is not None
        picked = kind.picker.pick(index, free, kind.cpus_on_one_node)
        if picked is None:
            return None
        cpus, cores = picked
        layout, request = self._known.layout, kind.request
        memory = request.memory_per_node
        held = AllocationDraft(  # in the order of its fields
            1 << index,
            (index,),
            (cpus,),
            None if cores == layout.full[index] else (cores,),
            (memory,) if layout.track_memory and memory else None,
            NOTHING,
            NOTHING,
            NOTHING,
            request.shares,
            MARKS[request.mark, request.sharing],
        )
        place = Placement(allocation=allotted(held), why=IDLE)
        if len(self._places) >= _MOST_PLACES:
            self._places.clear()
        self._places[key] = place
        return place

    def _no_room(self, kind: Kind, job: Job, nodes: NodeBits, view: ClusterView) -> Blocked:
        """Return what is said where no node serves: the same for all jobs of a kind."""
        found = self._blocked.get(kind)
        if found is None:
            found = self._blocked[kind] = ConsAttempt(self._known, job, nodes, view).without_room()
        return found


__all__ = ["Prompt"]

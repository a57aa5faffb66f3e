"""What is kept on the shelves is what a look at every node would find."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makeway import bitmap
from makeway.model import Allocation, Cluster, Node
from makeway_select_gpu_pack import rooms as rooms_module
from makeway_select_gpu_pack import shelves as shelves_module
from makeway_select_gpu_pack.offers import offer_of
from makeway_select_gpu_pack.packing import pack
from makeway_select_gpu_pack.rooms import Rooms
from makeway_select_gpu_pack.shelves import Shelves
from makeway_select_gpu_pack.wish import Wish

MACHINES = (
    *((f"a{at}", 4, {"gpu": 2}) for at in range(3)),
    *((f"b{at}", 8, {"gpu": 2, "gpu_milli": 2000}) for at in range(3)),
    ("c", 8, {}),
)
CLUSTER = Cluster(
    nodes=tuple(
        Node(name=name, index=at, cpus=cpus, gres=gres) for at, (name, cpus, gres) in enumerate(MACHINES)
    )
)
ALL = bitmap.full(len(CLUSTER.nodes))


def wish(**fields: Any) -> Wish:
    """Return a request of one task on one node, but for `fields`."""
    asked: dict[str, Any] = {
        "tasks": 1,
        "cpus_per_task": 1,
        "tasks_per_node": None,
        "min_nodes": 1,
        "max_nodes": None,
        "cpus_on_node": 0,
        "memory_on_node": 0,
        "all_memory": False,
        "memory_per_cpu": 0,
        "on_node": {},
        "in_all": {},
        "per_task": {},
        "whole": False,
        "required": 0,
        "excluded": 0,
    }
    return Wish(**asked | fields)


WISHES = (
    wish(on_node={"gpu": 1}),
    wish(on_node={"gpu_milli": 300}),
    wish(on_node={"gpu_milli": 700}),
    wish(tasks=3, cpus_per_task=2),
    wish(in_all={"gpu": 3}),
    wish(tasks=2, in_all={"gpu": 2}, per_task={"gpu": 1}),
    wish(whole=True),
)

STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "go", "look", "without"]), st.integers(0, 20), st.integers(1, ALL)),
    max_size=30,
)


def plain(asked: Wish, rooms: Rooms, nodes: int) -> list[Any]:
    """Look at every node."""
    found = [offer_of(asked, rooms[index], index) for index in bitmap.indices(nodes)]
    return sorted(offer for offer in found if offer is not None)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(steps=STEPS)
def test_shelves_hold_what_the_nodes_offer(steps: list[tuple[str, int, int]]) -> None:
    """Also once requests are forgotten and the log of changes is cut, and in a copy without some jobs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelves_module, "_MOST_OFFERS", 3 * len(CLUSTER.nodes))
        patch.setattr(rooms_module, "_LONGEST_LOG", 5)
        rooms = Rooms(CLUSTER)
        shelves = Shelves(rooms)
        here: list[Allocation] = []
        for step, number, nodes in steps:
            asked = WISHES[number % len(WISHES)]
            if step == "come":
                found = pack(asked, ALL, rooms, shelves, CLUSTER)
                if found is not None:
                    rooms.add(found)
                    here.append(found)
            elif step == "go" and here:
                rooms.remove(here.pop(number % len(here)))
            elif step == "without" and here:
                less = rooms.copy()
                for gone in here[number % len(here) :]:
                    less.remove(gone)
                assert list(shelves.offers(asked, less, nodes)) == plain(asked, less, nodes)
            assert list(shelves.offers(asked, rooms, nodes)) == plain(asked, rooms, nodes)
        for gone in here:
            rooms.remove(gone)
        assert all(rooms[index].slots == Rooms(CLUSTER)[index].slots for index in range(len(CLUSTER.nodes)))
        assert rooms.free_cpus == sum(each.cpus for each in CLUSTER.nodes)


@settings(max_examples=200, deadline=None)
@given(numbers=st.lists(st.integers(0, len(WISHES) - 1), max_size=25))
def test_nothing_is_given_twice(numbers: list[int]) -> None:
    """Cores, counts, and of each GPU a whole or up to 1,000 thousandths."""
    rooms = Rooms(CLUSTER)
    shelves = Shelves(rooms)
    held: list[Allocation] = []
    for number in numbers:
        found = pack(WISHES[number], ALL, rooms, shelves, CLUSTER)
        if found is not None:
            rooms.add(found)
            held.append(found)
    for index, machine in enumerate(CLUSTER.nodes):
        here = [(each, each.node_indices.index(index)) for each in held if each.nodes >> index & 1]
        cpus = [each.cpus[at] for each, at in here if each.cpus is not None]
        assert len(cpus) == len(here)
        assert sum(cpus) <= machine.cpus
        for name in machine.gres:
            assert sum(each.gres[name][at] for each, at in here if name in each.gres) <= machine.gres[name]
        used = [0] * machine.gres.get("gpu", 0)
        for each, at in here:
            for name, bits in each.devices.items():
                for gpu in bitmap.indices(bits[at]):
                    count = each.gres[name][at]
                    used[gpu] += 1000 if name == "gpu" else min(count, 1000)
        assert all(count <= 1000 for count in used)

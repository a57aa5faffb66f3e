"""Hold books without some jobs, which are kept in step, to taking these jobs out of a copy."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from makeway import bitmap
from makeway.model import Allocation, PreemptMode
from makeway_select_cons_tres import books as books_module
from makeway_select_cons_tres.absent import Absent, _alike
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.parameters import Unit
from makeway_select_cons_tres.request import MARKS, RESERVED, NodeNeed
from makeway_select_cons_tres.table import TableKey
from makeway_testing.builders import build_cluster, config, node

KEY = TableKey(NodeNeed(unit=Unit.CORE))
PARTITIONS: dict[str, Any] = {"low": {"default": True}, "mid": {}, "high": {}}
VIEW: Any = SimpleNamespace(heterogeneous=False)


def _layout() -> Layout:
    machines = (node("n[1-4]", cpus=4, memory_mb=1000), node("n[5-7]", cpus=6, memory_mb=2000))
    cluster = build_cluster(config(machines, {"partitions": PARTITIONS}))
    return Layout(cluster, extra_row=False, track_memory=True)


def _allocation(chance: Random, layout: Layout) -> Allocation:
    indices = tuple(sorted(chance.sample(range(layout.size), chance.choice((1, 1, 2)))))
    cores = tuple(chance.randrange(1, layout.full[index] + 1) for index in indices)
    return Allocation(
        nodes=bitmap.of(indices),
        node_indices=indices,
        cpus=tuple(each.bit_count() for each in cores),
        cores=None if chance.random() < 0.1 else cores,
        memory_mb=tuple(chance.choice((0, 100)) for _ in indices),
        marks=chance.choice(tuple(MARKS.values())),
    )


def _job(chance: Random, layout: Layout, at: int) -> Any:
    partition = chance.choice(layout.cluster.partitions)
    return SimpleNamespace(
        id=str(at), partition=partition, allocation=_allocation(chance, layout), suspended_by=None
    )


def _shown(books: Books) -> list[object]:
    """Return all that attempts read."""
    books.sync()
    rows = {
        number: (part.rows[0].cores, part.rows[0].count)
        for number, part in sorted(books.parts.items())
        if part.rows[0].count
    }
    sets = (books.busy_nodes, books.charged_nodes, books.marked_nodes, books.reserved_nodes)
    lists = (books.busy, books.memory, books.marks, books.sharing)
    tables = (books.table(KEY).values, books.table(KEY).at_least(2), books.free_memory().values)
    return [rows, sets, lists, books.sharing_nodes, tables, sorted(books._overlaid), books.any_odd]


def _look_at_sets(books: Books) -> None:
    """Hold the sets of nodes to the lists that they follow from."""
    sets = (books.busy_nodes, books.charged_nodes, books.marked_nodes, books.sharing_nodes)
    for nodes, listed in zip(sets, (books.busy, books.memory, books.marks, books.sharing), strict=True):
        assert nodes == bitmap.of([index for index, each in enumerate(listed) if each])
    reserved = [index for index, mark in enumerate(books.marks) if mark >= RESERVED]
    assert books.reserved_nodes == bitmap.of(reserved)


@pytest.mark.parametrize("seed", range(3))
def test_sets_of_nodes_however_many_have_changed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are gone through once, of many each set is made by itself."""
    chance, layout = Random(seed), _layout()
    books, there = Books(layout), list[Any]()
    for at in range(300):
        monkeypatch.setattr(books_module, "_FEW", chance.choice((1, 64)))
        for _ in range(chance.randint(1, 5)):
            if there and chance.random() < len(there) / 12:
                books.remove(there.pop(chance.randrange(len(there))))
            else:
                there.append(_job(chance, layout, at))
                books.add(there[-1])
        books.sync()
        _look_at_sets(books)


@pytest.mark.parametrize("seed", range(5))
def test_what_two_lists_have_in_common(seed: int) -> None:
    """At the head, and of the rest at the end; nobody is counted twice."""
    chance = Random(seed)
    jobs: list[Any] = [SimpleNamespace(id=str(at)) for at in range(9)]
    for _ in range(400):
        one = [(job, False) for job in jobs if chance.random() < 0.8]
        other = [(job, chance.random() < 0.05) for job in jobs if chance.random() < 0.8]
        head, tail = _alike(one, other)
        at = 0
        while at < min(len(one), len(other)) and one[at] == other[at]:
            at += 1
        assert head == at
        at = 0
        while at < min(len(one), len(other)) - head and one[-1 - at] == other[-1 - at]:
            at += 1
        assert tail == at


def test_who_is_absent_by_how_he_makes_way() -> None:
    """Whoever is suspended gives his cores back alone; who does not make way stays."""
    jobs: list[Any] = [SimpleNamespace(id=str(at)) for at in range(3)]
    absent = Absent(Books(_layout()), plain=True)
    stops, goes, stays = PreemptMode.SUSPEND, PreemptMode.REQUEUE, PreemptMode.OFF
    assert list(absent.named(tuple(zip(jobs, (stops, stops, stops), strict=True)))) == [
        (job, False) for job in jobs
    ]
    mixed = absent.named(tuple(zip(jobs, (stops, goes, stays), strict=True)))
    assert list(mixed) == [(jobs[0], False), (jobs[1], True)]
    assert list(absent.named(())) == []


@pytest.mark.parametrize("seed", range(12))
def test_the_same_as_a_copy(seed: int) -> None:
    """Whoever comes, goes, or holds other cores, alone on these or over others; whoever asks."""
    chance = Random(seed)
    layout = _layout()
    books = Books(layout)
    absent = Absent(books, plain=True)
    there: list[Any] = []
    seen = Counter[str]()
    last: list[tuple[Any, bool]] = []
    for at in range(900):
        if there and chance.random() < len(there) / 14:
            books.remove(there.pop(chance.randrange(len(there))))
        elif there and chance.random() < 0.2:
            job = chance.choice(there)
            books.remove(job)
            job.allocation = _allocation(chance, layout)
            books.add(job)
        else:
            there.append(_job(chance, layout, at))
            books.add(there[-1])
        seen["overlaid"] += bool(books._overlaid)
        seen["rowless"] += bool(books._rowless)
        assert absent.applies(VIEW)
        if chance.random() < 0.4:  # a search asks about more and more of the same, then about fewer
            size = chance.randint(0, len(there))
            going = [(job, wholly) for job, wholly in last if job in there][:size]
            known = [job for job, _ in going]
            going += [(job, False) for job in there[: chance.randint(0, 3)] if job not in known]
        else:
            going = [(job, chance.random() < 0.3) for job in there if chance.random() < 0.6]
        last = going
        if chance.random() < 0.3:
            continue
        twin = books.copy()
        for job, wholly in going:
            twin.take_out(job, wholly=wholly)
        preemptor: Any = SimpleNamespace(partition=chance.choice(layout.cluster.partitions))
        found = absent.without(preemptor, going)
        assert _shown(found) == _shown(twin)
        for each in (found, books):
            _look_at_sets(each)
        if chance.random() < 0.2 and going:  # who begins with these books may go on without others
            more = found.copy()
            rest = [job for job in there if all(job is not each for each, _ in going)]
            for job in rest[:2]:
                more.take_out(job, wholly=True)
                twin.take_out(job, wholly=True)
            assert _shown(more) == _shown(twin)
        seen["eras"] = books.era
    assert min(seen.values()) > 0
    assert len(seen) == 3


def test_not_where_more_counts() -> None:
    """Counted resources, jobs that a person stopped, jobs of several components, and several rows."""
    books = Books(_layout())
    assert not Absent(books, plain=False).applies(VIEW)
    absent = Absent(books, plain=True)
    heterogeneous: Any = SimpleNamespace(heterogeneous=True)
    assert not absent.applies(heterogeneous)
    books._stopped.add("1")
    assert not absent.applies(VIEW)
    books._stopped.clear()
    books.gres["gpu"] = [0] * 7
    assert not absent.applies(VIEW)


def test_more_and_more_of_the_same() -> None:
    """Who comes behind those who were absent before is added, and taken back; one who is named twice counts once."""
    chance = Random(7)
    layout = _layout()
    books = Books(layout)
    absent = Absent(books, plain=True)
    there = [_job(chance, layout, at) for at in range(12)]
    for job in there:
        books.add(job)
    preemptor: Any = SimpleNamespace(partition=layout.cluster.partitions[0])
    sizes = (1, 3, 12, 5, 5, 0, 8)
    for at, size in enumerate(sizes):
        if at == 4:  # meanwhile one of them has come to hold something else
            books.remove(there[2])
            there[2].allocation = _allocation(chance, layout)
            books.add(there[2])
        twin = books.copy()
        for job in there[:size]:
            twin.take_out(job, wholly=False)
        going = [(job, False) for job in there[:size]]
        assert _shown(absent.without(preemptor, going)) == _shown(twin)
        if going:
            assert _shown(absent.without(preemptor, [*going, going[0]])) == _shown(twin)


def test_who_was_named_lately() -> None:
    """The same tuple names the same jobs; a list may be another one by now."""
    absent = Absent(Books(_layout()), plain=True)
    jobs: list[Any] = [SimpleNamespace(id=str(at)) for at in range(3)]
    modes = (PreemptMode.SUSPEND, PreemptMode.REQUEUE, PreemptMode.OFF)
    pairs = list(zip(jobs, modes, strict=True))
    named = tuple(pairs)
    found = absent.named(named)
    assert list(found) == [(jobs[0], False), (jobs[1], True)]
    assert absent.named(named) is found
    assert absent.named(pairs) == found
    pairs.pop(0)
    assert list(absent.named(pairs)) == [(jobs[1], True)]
    for _ in range(9):
        absent.named(tuple(pairs))
    assert absent.named(named) == found

"""The books against plain counting: which nodes hold more than so many jobs in all."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from makeway import bitmap
from makeway.model import Allocation, Job, SuspendedBy
from makeway_select_linear.books import Books
from makeway_testing import builders

NODES = 5
CLUSTER = builders.build_cluster(builders.config(builders.cluster(NODES)))


def running_on(name: str, nodes: int) -> Job:
    indices = tuple(bitmap.indices(nodes))
    return builders.job(name, allocation=Allocation(nodes=nodes, node_indices=indices, shared=True))


@given(st.lists(st.tuples(st.integers(1, (1 << NODES) - 1), st.booleans()), max_size=8))
def test_nodes_with_more_than_so_many_jobs(jobs: list[tuple[int, bool]]) -> None:
    books = Books(CLUSTER, track_memory=False)
    counts = [0] * NODES
    for number, (nodes, stopped) in enumerate(jobs):
        job = running_on(str(number), nodes)
        books.add(job)
        if stopped:
            books.suspend(attrs.evolve(job, suspended_by=SuspendedBy.ADMIN))
        for index in bitmap.indices(nodes):
            counts[index] += 1
    for most in range(len(jobs) + 1):
        assert books.above(most) == bitmap.of([i for i, count in enumerate(counts) if count > most])


@given(st.lists(st.integers(1, (1 << NODES) - 1), max_size=6), st.data())
def test_books_are_empty_once_all_have_left(sets: list[int], data: st.DataObject) -> None:
    books = Books(CLUSTER, track_memory=False, forgets_resumed=data.draw(st.booleans()))
    jobs = [running_on(str(number), nodes) for number, nodes in enumerate(sets)]
    for job in jobs:
        books.add(job)
    for job in jobs:
        what = data.draw(st.sampled_from(["runs on", "is stopped", "is stopped and resumed"]))
        stopped = attrs.evolve(job, suspended_by=SuspendedBy.ADMIN)
        if what != "runs on":
            books.suspend(stopped)
        if what == "is stopped and resumed":
            books.resume(stopped)
        books.remove(stopped if what == "is stopped" else job)
    assert not books.above(0)
    assert not books.running.over[0]
    assert not books.forgotten


def resumed(books: Books, name: str, nodes: int) -> Job:
    """Return a job that a person suspended and resumed."""
    job = running_on(name, nodes)
    books.add(job)
    stopped = attrs.evolve(job, suspended_by=SuspendedBy.ADMIN)
    books.suspend(stopped)
    books.resume(stopped)
    return job


def test_a_resumed_sharer_counts_nowhere_if_books_forget_it() -> None:
    """Recorded: linear_resumed_sharer_limit, where two others of OverSubscribe=YES:2 start beside it."""
    for forgets, count in ((True, 0), (False, 1)):
        books = Books(CLUSTER, track_memory=False, forgets_resumed=forgets)
        job = resumed(books, "1", 0b11)
        assert books.running.over[0].bit_count() == 2 * count
        assert books.counts_job(job) is not forgets
        stopped = attrs.evolve(job, suspended_by=SuspendedBy.ADMIN)
        books.suspend(stopped)  # once more: nothing is taken off twice
        books.add(running_on("2", 0b01))
        books.resume(stopped)
        assert bitmap.of([0]) == books.running.above(count)


def test_who_was_forgotten_is_handed_over() -> None:
    books = Books(CLUSTER, track_memory=False, forgets_resumed=True)
    job, other = resumed(books, "1", 0b11), running_on("2", 0b01)
    books.add(other)
    told = books.save([job, other], Books(CLUSTER, track_memory=False, forgets_resumed=True))
    heir = Books(CLUSTER, track_memory=False, forgets_resumed=True)
    heir.restore([job, other], told)
    assert heir.forgotten == books.forgotten == {"1"}
    assert heir.running.over == books.running.over == [0b01]


def test_memory_is_charged_where_it_is_tracked() -> None:
    """Without CR_Memory no job's memory counts, whatever a job asked for, though GPUs are charged."""
    nodes = builders.build_cluster(builders.config(builders.cluster(NODES, gres={"gpu": 1})))
    job = builders.job(
        "1", allocation=Allocation(nodes=0b1, node_indices=(0,), memory_mb=(1000,), shared=True)
    )
    tracked, plain = Books(nodes, track_memory=True), Books(nodes, track_memory=False)
    for books in (tracked, plain):
        books.add(job)
    assert (tracked.memory[0], tracked.used_memory) == (1000, 0b1)
    assert plain.used_memory == 0


def test_all_memory_of_nodes_is_charged_at_the_resume_and_stays() -> None:
    """slurm-gang-and-select 4.2.6: 300 MB of 1,000 become 0, then 1,000. Recorded: linear_resumed_memory."""
    for overcharges, then, left in ((True, 1000, 700), (False, 300, 0)):
        cluster = builders.build_cluster(builders.config(builders.cluster(1, memory_mb=1000)))
        books = Books(cluster, track_memory=True, overcharges_resumed=overcharges)
        held = Allocation(nodes=1, node_indices=(0,), memory_mb=(300,))
        job = builders.job("1", allocation=held)
        books.add(job)
        stopped = attrs.evolve(job, suspended_by=SuspendedBy.ADMIN)
        books.suspend(stopped)
        assert (books.memory, books.used_memory) == ([0], 0)
        books.resume(stopped)
        assert (books.memory, books.used_memory) == ([then], 1)
        books.remove(job)
        assert (books.memory, books.used_memory) == ([left], int(left > 0))

"""Hold ``search/least_disruption`` against brute force, on problems without any selector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import makeway_search_least_disruption as search
from makeway import bitmap
from makeway.errors import ConfigError
from makeway.model import (
    Allocation,
    Blocked,
    Candidates,
    Choice,
    Cluster,
    ClusterView,
    Cover,
    Job,
    JobSpec,
    JobState,
    Node,
    Partition,
    Placement,
    PreemptMode,
)
from makeway.settings import structure
from makeway_search_least_disruption.combine import combine
from makeway_search_least_disruption.counting import at_least, good_choice
from makeway_search_least_disruption.effort import Effort, OutOfEffortError
from makeway_search_least_disruption.parts import Menu, Pile, parts_of
from makeway_search_least_disruption.price import prices, work
from makeway_search_least_disruption.probing import Prober, by_probing

PLENTY = 10**7
NOW = 100.0


# ------------------------------------------------------------------------------------- builders
def job(
    index: int,
    nodes: Sequence[int],
    *,
    ran: float = 10.0,
    checkpointed: float = 0.0,
    cpus: tuple[int, ...] | None = None,
) -> Job:
    """Return a job that runs on `nodes`."""
    partition = Partition(name="low")
    indices = tuple(sorted(nodes))
    return Job(
        spec=JobSpec(id=str(index)), id=str(index), index=index, user="u", account=None,
        partitions=(partition,), partition=partition, qos=None, submit_at=0.0, eligible_at=0.0,
        time_limit=None, priority=1, requeueable=True, size=len(indices), state=JobState.RUNNING,
        started_at=NOW - ran, resumed_at=NOW - ran, checkpointed=checkpointed,
        allocation=Allocation(nodes=bitmap.of(indices), node_indices=indices, cpus=cpus),
    )  # fmt: skip


def view(nodes: int = 64, cpus: int = 1) -> ClusterView:
    """Return a cluster of like nodes; only what a search asks of it."""
    listed = tuple(Node(name=f"n{at}", index=at, cpus=cpus) for at in range(nodes))
    fake = SimpleNamespace(
        cluster=Cluster(nodes=listed),
        now=NOW,
        components=lambda job: (job,),
        settings=lambda cls: cls(),
    )
    return cast(ClusterView, fake)


@attrs.define
class CountingAttempt:
    """Wants nodes; a node is free once all that are on it have been removed."""

    nodes: int
    wanted: int
    on: Mapping[int, frozenset[int]]
    """Node -> indices of the jobs on it, candidates or not."""
    covers: bool = True
    fits_on: Callable[[frozenset[int]], bool] = lambda free: True
    """A further condition on the free nodes."""
    gone: set[int] = attrs.Factory(set)
    probes: list[int] = attrs.Factory(list)

    @property
    def job(self) -> Job:
        """The pending job."""
        return job(999, range(self.wanted))

    def fresh(self) -> CountingAttempt:
        """Return one with nothing removed."""
        return attrs.evolve(self, gone=set(), probes=self.probes)

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take a job away."""
        del mode
        self.gone.add(job.index)

    def probe(self) -> Placement | Blocked:
        """Take the free nodes with the lowest indices."""
        self.probes.append(1)
        free = [at for at in range(self.nodes) if self.on.get(at, frozenset()) <= self.gone]
        if len(free) < self.wanted or not self.fits_on(frozenset(free)):
            return Blocked(wanted=self.wanted, available=len(free))
        taken = tuple(free[-self.wanted :])
        return Placement(allocation=Allocation(nodes=bitmap.of(taken), node_indices=taken))

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Describe it as a count."""
        if not self.covers:
            return None
        able = {
            j.index: at
            for at, (j, mode) in enumerate(zip(jobs, modes, strict=True))
            if mode is not PreemptMode.OFF
        }
        blockers = {
            node: tuple(sorted(able[index] for index in here))
            for node, here in self.on.items()
            if here and here <= able.keys()
        }
        busy = sum(bool(here) for here in self.on.values())
        return Cover(wanted=self.wanted, free=self.nodes - busy, blockers=blockers)


def attempt_over(
    jobs: Sequence[Job], wanted: int, nodes: int, others: Sequence[Job] = (), **more: Any
) -> CountingAttempt:
    """Return the attempt of a job of `wanted` nodes on a cluster that runs `jobs` and `others`."""
    on = {at: frozenset(j.index for j in (*jobs, *others) if j.nodes >> at & 1) for at in range(nodes)}
    return CountingAttempt(nodes, wanted, on, **more)


def choose(
    attempt: CountingAttempt,
    jobs: Sequence[Job],
    *,
    modes: Sequence[PreemptMode] | None = None,
    effort: int = PLENTY,
    cpus: int = 1,
) -> Choice | None:
    """Run the search."""
    candidates = Candidates(jobs=tuple(jobs), modes=tuple(modes or [PreemptMode.REQUEUE] * len(jobs)))
    seen = view(attempt.nodes, cpus)
    return search.least_disruption(attempt, candidates, seen, NOW, effort)


def victims(choice: Choice | None, jobs: Sequence[Job]) -> list[int]:
    """Return the indices of the victims, in order."""
    assert choice is not None
    return [jobs[at].index for at in choice.victims]


def best_by_force(blockers: Mapping[int, Sequence[int]], price: Sequence[int], need: int) -> Any:
    """Return the fewest victims and the least price over all choices; None if there is none."""
    able = sorted({at for group in blockers.values() for at in group})
    for size in range(len(able) + 1):
        fitting = [
            sum(price[at] for at in taken)
            for taken in combinations(able, size)
            if sum(set(taken).issuperset(group) for group in blockers.values()) >= need
        ]
        if fitting:
            return size, min(fitting)
    return None


# ---------------------------------------------------------------------------------------- rules
def test_one_large_victim_rather_than_two_small_ones() -> None:
    """Slurm's own example: to start on 8 nodes, candidates of 2, 4 and 8."""
    jobs = [job(1, range(2)), job(2, range(2, 6)), job(3, range(6, 14), ran=90)]
    choice = choose(attempt_over(jobs, 8, 14), jobs)
    assert victims(choice, jobs) == [3]
    assert choice is not None
    assert choice.method == "fewest victims, proved"


def test_least_work_among_equally_few() -> None:
    """The youngest goes; CPUs count as well as time."""
    jobs = [job(1, [0], ran=50), job(2, [1], ran=20), job(3, [2, 3], ran=12), job(4, [4], ran=60)]
    assert victims(choose(attempt_over(jobs, 1, 5), jobs), jobs) == [2]


def test_small_jobs_are_not_taken_where_larger_ones_are_needed() -> None:
    """Two victims have to free five nodes: the cheap job of one node is no use."""
    jobs = [
        job(1, [0], ran=1),
        job(2, [1, 2], ran=50),
        job(3, [3, 4, 5], ran=40),
        job(4, [6, 7, 8], ran=30),
    ]
    assert victims(choose(attempt_over(jobs, 5, 9), jobs), jobs) == [4, 2]


def test_work_saved_by_a_checkpoint_is_not_lost() -> None:
    """A long run with a recent checkpoint is cheaper than a short one without."""
    jobs = [job(1, [0], ran=20), job(2, [1], ran=95, checkpointed=90)]
    assert victims(choose(attempt_over(jobs, 1, 2), jobs), jobs) == [2]
    assert work(jobs[1], view(), NOW) == 5_000_000


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        pytest.param(None, 2 * 4 * 10_000_000, id="whole nodes: all their CPUs"),
        pytest.param((1, 3), 4 * 10_000_000, id="the CPUs charged"),
    ],
)
def test_work_is_time_and_cpus(cpus: tuple[int, ...] | None, expected: int) -> None:
    """In CPU-microseconds."""
    assert work(job(1, [0, 1], cpus=cpus), view(cpus=4), NOW) == expected


def test_the_work_of_a_heterogeneous_job_is_that_of_all_its_components() -> None:
    """Ten seconds on one CPU and on three; a job by itself counts alone, whatever stands beside it."""
    parts = [job(1, [0]), job(2, [1, 2, 3])]
    there: Any = view()
    there.components = lambda _: parts
    assert work(parts[0], there, NOW) == 10_000_000
    parts = [attrs.evolve(each, spec=attrs.evolve(each.spec, het_id="h")) for each in parts]
    assert work(parts[0], there, NOW) == 40_000_000


def test_ties_go_to_the_job_submitted_last() -> None:
    """However the candidates are listed."""
    jobs = [job(index, [index]) for index in range(4)]
    for listed in (jobs, jobs[::-1]):
        assert sorted(victims(choose(attempt_over(jobs, 2, 4), listed), listed)) == [2, 3]


def test_cheapest_victim_is_told_first() -> None:
    """Whatever the order of the candidates."""
    jobs = [job(1, [0], ran=30), job(2, [1], ran=10), job(3, [2], ran=20)]
    assert victims(choose(attempt_over(jobs, 3, 3), jobs), jobs) == [2, 3, 1]


def test_two_on_one_node_both_leave() -> None:
    """Two sharers of a node are dearer than one job that has its node alone."""
    jobs = [job(1, [0], ran=1), job(2, [0], ran=1), job(3, [1], ran=99)]
    assert victims(choose(attempt_over(jobs, 1, 2), jobs), jobs) == [3]
    assert sorted(victims(choose(attempt_over(jobs, 2, 2), jobs), jobs)) == [1, 2, 3]


def test_no_job_is_taken_if_nothing_helps() -> None:
    """A job that is no candidate sits on the node that is missing."""
    jobs = [job(1, [0]), job(2, [1])]
    others = [job(7, [1])]
    assert choose(attempt_over(jobs, 2, 2, others), jobs) is None
    assert choose(attempt_over(jobs, 2, 2, others, covers=False), jobs) is None


def test_a_job_that_fits_takes_no_other() -> None:
    """Enough is free."""
    jobs = [job(1, [0])]
    for covers in (True, False):
        assert victims(choose(attempt_over(jobs, 1, 2, covers=covers), jobs), jobs) == []


def test_one_that_does_not_make_way_is_no_victim() -> None:
    """Mode OFF: nothing would be done to the job."""
    jobs = [job(1, [0], ran=1), job(2, [1], ran=50)]
    modes = [PreemptMode.OFF, PreemptMode.REQUEUE]
    for covers in (True, False):
        attempt = attempt_over(jobs, 1, 2, covers=covers)
        assert victims(choose(attempt, jobs, modes=modes), jobs) == [2]


def test_a_cover_that_left_something_out_is_not_trusted() -> None:
    """The cover counts nodes; the job also wants node 0, which only probes tell."""
    jobs = [job(1, [0], ran=50), job(2, [1], ran=1)]
    attempt = attempt_over(jobs, 1, 2, fits_on=lambda free: 0 in free)
    assert victims(choose(attempt, jobs), jobs) == [1]


def test_the_hook_reads_its_settings() -> None:
    """And passes on what the engine gives it."""
    jobs = [job(1, [0])]
    candidates = Candidates(jobs=tuple(jobs), modes=(PreemptMode.REQUEUE,))
    found = search.makeway_search(attempt_over(jobs, 1, 1), candidates, view(), NOW)
    assert victims(found, jobs) == [1]
    assert search.makeway_settings() is search.Settings


def test_settings_are_strict() -> None:
    """A negative effort is an error with its path."""
    with pytest.raises(ConfigError, match="effort"):
        structure({"effort": -1}, search.Settings, "config")


# ---------------------------------------------------------------------------------- exactness
Blockers = dict[int, tuple[int, ...]]


@st.composite
def covers(draw: st.DrawFn, jobs: int = 7, nodes: int = 9) -> tuple[Blockers, list[int], int]:
    """Draw blockers, prices, and a number of nodes to be freed."""
    number = draw(st.integers(1, jobs))
    most = draw(st.integers(1, 3))
    group = st.lists(st.integers(0, number - 1), min_size=1, max_size=most, unique=True)
    listed = draw(st.lists(group, min_size=1, max_size=nodes))
    price = draw(st.lists(st.integers(0, 12), min_size=number, max_size=number))
    need = draw(st.integers(1, len(listed)))
    return {node: tuple(sorted(g)) for node, g in enumerate(listed)}, price, need


def solve(blockers: Blockers, price: Sequence[int], need: int, effort: Effort) -> list[int]:
    """Take apart and combine, as the search does."""
    groups = Counter(blockers.values())
    good = good_choice(groups, price, need)
    parts = parts_of(groups, price, need, len(good), effort)
    best = combine(parts, need, effort)
    assert best is not None
    return best


def assert_best(blockers: Blockers, price: Sequence[int], need: int) -> None:
    """Compare with all choices."""
    best = solve(blockers, price, need, Effort(PLENTY))
    assert len(set(best)) == len(best)
    left = set(best)
    assert sum(left.issuperset(group) for group in blockers.values()) >= need
    found = (len(best), sum(price[at] for at in best))
    assert found == best_by_force(blockers, price, need)


@pytest.mark.slow
@given(covers())
@settings(max_examples=600, deadline=None)
def test_entangled_choices_are_the_best(case: tuple[Blockers, list[int], int]) -> None:
    """Fewest victims and least price, as all subsets together say."""
    assert_best(*case)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 30)), min_size=1, max_size=9), st.data())
@settings(max_examples=600, deadline=None)
def test_choices_among_jobs_that_stand_alone_are_the_best(
    jobs: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Sizes and prices of all kinds."""
    blockers: Blockers = {}
    for at, (size, _) in enumerate(jobs):
        for _ in range(size):
            blockers[len(blockers)] = (at,)
    need = data.draw(st.integers(1, len(blockers)))
    assert_best(blockers, [price for _, price in jobs], need)


@pytest.mark.slow
@given(covers())
@settings(max_examples=300, deadline=None)
def test_the_quick_choice_is_minimal_and_the_bound_holds(
    case: tuple[Blockers, list[int], int],
) -> None:
    """None in it can be given back."""
    blockers, price, need = case
    groups = Counter(blockers.values())
    good = good_choice(groups, price, need)

    def freed(taken: set[int]) -> int:
        return sum(taken.issuperset(group) for group in blockers.values())

    assert freed(set(good)) >= need
    assert all(freed(set(good) - {at}) < need for at in good)
    assert at_least(groups, need) <= best_by_force(blockers, price, need)[0] <= len(good)


@pytest.mark.slow
@given(covers(jobs=6, nodes=7), st.integers(0, 3), st.data())
@settings(max_examples=250, deadline=None)
def test_counting_and_probing_agree(
    case: tuple[Blockers, list[int], int], free: int, data: st.DataObject
) -> None:
    """Both ways take equally many victims and equally much work, and need every one of them."""
    blockers, runs, need = case
    held: dict[int, list[int]] = {at: [] for at in range(len(runs))}
    for node, group in blockers.items():
        for at in group:
            held[at].append(node)
    jobs = [job(at, nodes, ran=1.0 + runs[at]) for at, nodes in held.items() if nodes]
    jobs = data.draw(st.permutations(jobs))
    nodes = len(blockers) + free
    counted, probed = (
        choose(attempt_over(jobs, need + free, nodes, covers=covers), jobs) for covers in (True, False)
    )
    assert counted is not None
    assert probed is not None
    assert counted.method == probed.method == "fewest victims, proved"
    price = prices(jobs, view(), NOW)
    costs = [sum(price[at] for at in choice.victims) for choice in (counted, probed)]
    assert len(counted.victims) == len(probed.victims)
    assert costs[0] == costs[1]
    for choice in (counted, probed):
        assert_minimal(attempt_over(jobs, need + free, nodes), choice, jobs)


def assert_minimal(attempt: CountingAttempt, choice: Choice, jobs: Sequence[Job]) -> None:
    """Putting back any single victim makes the placement impossible; all lie on nodes it takes."""
    for back in choice.victims:
        trial = attempt.fresh()
        for at in choice.victims:
            if at != back:
                trial.remove(jobs[at], PreemptMode.REQUEUE)
        assert isinstance(trial.probe(), Blocked)
        assert jobs[back].nodes & choice.placement.allocation.nodes


def test_shapes_are_searched_by_probing() -> None:
    """Three nodes in a row, in any place: the cheapest victims are no neighbours."""
    jobs = [job(at, [at], ran=ran) for at, ran in enumerate([9, 1, 8, 7, 2, 9])]

    def in_a_row(free: frozenset[int]) -> bool:
        return any({at, at + 1, at + 2} <= free for at in range(6))

    attempt = attempt_over(jobs, 3, 6, covers=False, fits_on=in_a_row)
    assert victims(choose(attempt, jobs), jobs) == [1, 3, 2]


# ----------------------------------------------------------------------------------- the limit
def chain(length: int) -> tuple[Blockers, list[int]]:
    """Return jobs that share a node with each neighbour."""
    return {at: (at, at + 1) for at in range(length)}, [1 + at % 7 for at in range(length + 1)]


def tangle(jobs: int, nodes: int, seed: int = 1) -> tuple[Blockers, list[int]]:
    """Return jobs of which any two may share a node."""
    rng = Random(seed)
    blockers = {at: tuple(sorted(rng.sample(range(jobs), 2))) for at in range(nodes)}
    return blockers, [rng.randint(1, 99) for _ in range(jobs)]


def test_a_long_chain_is_no_trouble() -> None:
    """Only few nodes are open at a time."""
    blockers, price = chain(60)
    assert len(solve(blockers, price, 10, Effort(PLENTY))) == 11


def test_out_of_effort_is_an_error_inside() -> None:
    """A tangle of 60 jobs is too much for a few steps."""
    blockers, price = tangle(60, 120)
    with pytest.raises(OutOfEffortError):
        solve(blockers, price, 40, Effort(1000))


def test_the_limit_is_admitted_and_the_choice_still_minimal() -> None:
    """What is returned then is a choice from which none can be given back."""
    blockers, runs = tangle(60, 120)
    held: dict[int, list[int]] = {at: [] for at in range(60)}
    for node, group in blockers.items():
        for at in group:
            held[at].append(node)
    jobs = [job(at, nodes, ran=runs[at]) for at, nodes in held.items() if nodes]
    for covers in (True, False):
        attempt = attempt_over(jobs, 40, 120, covers=covers)
        choice = choose(attempt, jobs, effort=2000)
        assert choice is not None
        assert choice.method == "not proved fewest (effort limit)"
        assert_minimal(attempt, choice, jobs)


def test_a_count_may_be_proved_where_the_work_is_not() -> None:
    """No single victim does, which is soon known; which two neighbours are cheapest is not."""
    jobs = [job(at, [at], ran=ran) for at, ran in enumerate([9, 1, 9, 2, 9, 3, 9, 4, 8, 8])]

    def neighbours(free: frozenset[int]) -> bool:
        return any({at, at + 1} <= free for at in range(9))

    attempt = attempt_over(jobs, 2, 10, covers=False, fits_on=neighbours)
    methods = [choose(attempt, jobs, effort=steps) for steps in (5, 60, PLENTY)]
    assert [choice.method for choice in methods if choice is not None] == [
        "not proved fewest (effort limit)",
        "fewest victims, proved; least work not proved (effort limit)",
        "fewest victims, proved",
    ]


def test_probing_counts_its_steps() -> None:
    """The exact phase takes no more removals and probes than the limit says."""
    jobs = [job(at, [at], ran=1 + at % 3) for at in range(14)]
    candidates = Candidates(jobs=tuple(jobs), modes=(PreemptMode.REQUEUE,) * 14)
    spent = []
    for limit in (0, 3000):
        attempt = attempt_over(jobs, 7, 14, covers=False)
        prober = Prober(attempt, candidates)
        found = by_probing(prober, range(14), prices(jobs, view(), NOW), Effort(limit))
        assert found is not None
        assert not found.complete
        spent.append(len(attempt.probes))
    assert spent[1] - spent[0] <= 3000


# ---------------------------------------------------------------------------------------- parts
def test_alike_components_make_one_pile() -> None:
    """Singles of one size, and pairs of one kind."""
    blockers: Blockers = {0: (0,), 1: (1,), 2: (2, 3), 3: (4, 5), 4: (6,), 5: (6,)}
    parts = parts_of(Counter(blockers.values()), [5, 3, 1, 1, 2, 2, 9], 6, 7, Effort(PLENTY))
    piles = [part for part in parts if isinstance(part, Pile)]
    assert len(piles) == len(parts) == 3
    assert [pile.options for pile in piles] == [
        [(0, 0, 0), (1, 1, 3), (2, 2, 8)],
        [(0, 0, 0), (1, 2, 9)],
        [(0, 0, 0), (2, 1, 2), (4, 2, 6)],
    ]
    assert piles[0].jobs(1) == [1]


def test_a_component_with_a_choice_is_a_menu() -> None:
    """Options that another one beats are left out."""
    blockers: Blockers = {0: (0, 1), 1: (1, 2), 2: (2,)}
    (part,) = parts_of(Counter(blockers.values()), [1, 1, 1], 3, 3, Effort(PLENTY))
    assert isinstance(part, Menu)
    assert part.options == [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3)]
    assert [part.jobs(at) for at in range(4)] == [[], [2], [1, 2], [0, 1, 2]]


def test_shuffled_candidates_change_nothing() -> None:
    """Same victims in the same order, however the policy lists them."""
    rng = Random(3)
    jobs = [job(at, rng.sample(range(30), rng.randint(1, 4)), ran=rng.randint(1, 3)) for at in range(25)]
    answers = set()
    for _ in range(6):
        rng.shuffle(jobs)
        answers.add(tuple(victims(choose(attempt_over(jobs, 9, 30), jobs), jobs)))
    assert len(answers) == 1

"""What a glance tells of who lacks quota: the search finds nobody, and runs decide the same without it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from makeway_kueue_cohort import decide, lacks, rounds
from makeway_kueue_cohort.books import Books, fits
from makeway_kueue_cohort.flavors import PodSet
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.site import Cohort, Group, Preemption, Queue, Quota, Sharing, Site, Within
from makeway_kueue_cohort.yard import Yard

Make = Callable[..., Any]
PAIR = ("default", "cpu")


def random_site(dice: random.Random, sharing: Sharing) -> Site:
    """Return a few queues with all sorts of policies, in one cohort or in a tree of three."""
    tree = dice.random() < 0.5
    cohorts = [
        Cohort(name="left", parent="top", quotas={PAIR: random_quota(dice)}),
        Cohort(name="right", parent="top"),
    ]
    queues = [
        Queue(
            name=name,
            cohort=dice.choice(["left", "right", "top"])
            if tree
            else dice.choice(["top", "top", "top", None]),
            quotas={PAIR: random_quota(dice)},
            groups=(Group(resources=("cpu",), flavors=("default",)),),
            preemption=Preemption(
                within_queue=dice.choice([Within.NEVER, Within.LOWER, Within.LOWER_OR_NEWER]),
                reclaim=dice.choice(list(Within)),
                borrow=dice.random() < 0.2,
            ),
            weight=Fraction(dice.choice([0, 1, 1, 3])),
        )
        for name in "abcd"
    ]
    return Site(
        queues=queues, cohorts=cohorts if tree else (), sharing=sharing, entitlement=dice.random() < 0.7
    )


def random_quota(dice: random.Random) -> Quota:
    """Return a quota, half of them with a limit."""
    limits: dict[str, Any] = {}
    if dice.random() < 0.3:
        limits["borrowing_limit"] = dice.randrange(4) * 1000
    if dice.random() < 0.3:
        limits["lending_limit"] = dice.randrange(4) * 1000
    return Quota(nominal=dice.randrange(6) * 1000, **limits)


@pytest.mark.parametrize("sharing", list(Sharing))
def test_who_lacks_quota_finds_nobody(sharing: Sharing) -> None:
    """On 1,500 random books: no room and no victims, neither for this request nor for a larger one."""
    dice = random.Random(1)
    said = Counter[bool]()
    for _ in range(1500):
        books = Books(random_site(dice, sharing))
        held: dict[str, list[Workload]] = {name: [] for name in books.queues}
        for at in range(dice.randrange(12)):
            node = books.queues[dice.choice("abcd")]
            each = Workload(
                name=str(at),
                queue=node,
                uses={PAIR: dice.choice([1000, 1000, 2000, 4000])},
                priority=dice.randrange(3),
                created=float(dice.randrange(9)),
                admitted=float(at),
                uid=f"{at:03d}",
            )
            if fits(node, each.uses):
                books.add(node, each.uses)
                held[node.name].append(each)
        node, amount, priority = (
            books.queues[dice.choice("abcd")],
            dice.randrange(1, 6) * 1000,
            dice.randrange(3),
        )
        counts = Counter(each.priority for each in held[node.name])
        hopeless = lacks.hopeless(node, PAIR, amount, priority, counts, books)
        said[hopeless] += 1
        if not hopeless:
            continue
        for asked in (amount, amount + 1000):
            new = Workload(
                name="new", queue=node, uses={PAIR: asked}, priority=priority, created=4.0, uid="999"
            )
            assert not fits(node, new.uses)
            assert decide.victims(new, (PAIR,), held, books) == ()
    assert said[True] > 100
    assert said[False] > 100


def test_only_a_single_pair_is_judged() -> None:
    """A request for two resources, or one of two flavors, has to be searched for."""
    both = Queue(
        name="a",
        quotas={PAIR: Quota(nominal=4000), ("default", "memory"): Quota(nominal=4000)},
        groups=(Group(resources=("cpu", "memory"), flavors=("default",)),),
    )
    flavors = Queue(
        name="b",
        quotas={PAIR: Quota(nominal=4000), ("spot", "cpu"): Quota(nominal=4000)},
        groups=(Group(resources=("cpu",), flavors=("default", "spot")),),
    )
    nodes = Books(Site(queues=[both, flavors])).queues
    assert lacks.single(nodes["a"], PodSet("job", 1, {"cpu": 2000})) == (PAIR, 2000)
    assert lacks.single(nodes["a"], PodSet("job", 1, {"cpu": 2000, "memory": 1000})) is None
    assert lacks.single(nodes["a"], PodSet("job", 1, {"cpu": 5000})) is None  # never
    assert lacks.single(nodes["b"], PodSet("job", 1, {"cpu": 2000})) is None


def jobs_table(dice: random.Random, count: int) -> str:
    """Return jobs of four queues, several at the same second."""
    lines = ["job partition submit cpus run_time priority"]
    for at in range(count):
        cpus, run_time = dice.choice([1, 1, 2, 2, 4]), dice.randrange(10, 80)
        where = dice.choice("cd" if at < 20 else "aabcd")  # who comes first borrows
        lines.append(f"j{at} {where} {at // 3} {cpus} {run_time} {dice.choice([1, 1, 1, 5])}")
    return "\n".join(lines)


@pytest.mark.parametrize("sharing", ["classic", "fair"])
@pytest.mark.parametrize("seed", range(4))
def test_runs_decide_the_same(
    seed: int, sharing: str, play: Make, site: Make, queue: Make, quota: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain way tries every head whenever quota is given back: same starts, same victims, fewer attempts."""
    dice = random.Random(seed)
    table = jobs_table(dice, 60)
    policies: dict[str, Any] = {"within_queue": dice.choice(["Never", "LowerPriority"])}
    config = site(
        queue("a", quota(6), **policies),
        queue("b", quota(2), **policies),
        queue("c", quota(0), **policies),
        queue("d", quota(4), reclaim=dice.choice(["Any", "LowerPriority"]), **policies),
        sharing=sharing,
    )
    quick = play(table, config)
    monkeypatch.setattr(lacks, "hopeless", lambda *_: False)
    monkeypatch.setattr(lacks, "reach", lambda *_: lacks.UNBOUNDED)
    monkeypatch.setattr(lacks, "fair_reach", lambda *_, **__: lacks.UNBOUNDED)
    plain = play(table, config)
    names = [f"j{at}" for at in range(60)]
    assert [quick.starts(name) for name in names] == [plain.starts(name) for name in names]
    taken = [
        [(p.victim, p.preemptor, p.why, p.at) for p in run.run.recorder.preemptions] for run in (quick, plain)
    ]
    assert taken[0] == taken[1]
    assert taken[0]


def decided(run: Any, names: list[str]) -> list[Any]:
    """Return when jobs started, and who had to leave for whom."""
    taken = [(p.victim, p.preemptor, p.why, p.at) for p in run.run.recorder.preemptions]
    assert taken
    return [[run.starts(name) for name in names], taken]


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["classic", "fair"])
@pytest.mark.parametrize("seed", range(8))
def test_who_is_silent_is_passed_over(
    seed: int, sharing: str, play: Make, site: Make, queue: Make, quota: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All silent heads of a queue at once, or pass by pass: everybody else is tried in the same pass (7.1)."""
    dice = random.Random(seed)
    lines = ["job partition submit cpus run_time priority"]
    for at in range(150):
        cpus, run_time = dice.choice([1, 1, 2, 3, 4, 6]), dice.randrange(5, 60)
        where = dice.choice("cd" if at < 30 else "aabcde")
        lines.append(f"j{at} {where} {at // 5} {cpus} {run_time} {dice.choice([1, 1, 5])}")
    within = {"within_queue": dice.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])}
    limits = {"lending_limit": 4} if dice.random() < 0.5 else {}
    config = site(
        queue("a", quota(6, **limits), **within),
        queue("b", quota(2, borrowing_limit=5), **within),
        queue("c", quota(0), **within),
        queue("d", quota(5), strategy=dice.choice(["StrictFIFO", "BestEffortFIFO"]), **within),
        queue("e", quota(1), **within),
        sharing=sharing,
    )
    names = [f"j{at}" for at in range(150)]
    at_once = decided(play("\n".join(lines), config), names)
    monkeypatch.setattr(rounds, "_steady_trees", lambda _: set())
    monkeypatch.setattr(rounds, "_calm_trees", lambda _: set())
    assert decided(play("\n".join(lines), config), names) == at_once


def test_ended_jobs_are_forgotten(
    play: Make, site: Make, queue: Make, quota: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a job asked for is kept no longer than the job: a year of jobs needs the memory of those that are there."""
    yards = []
    begin = Yard.__init__

    def noted(self: Yard, view: Any) -> None:
        begin(self, view)
        yards.append(self)

    monkeypatch.setattr(Yard, "__init__", noted)
    play(
        "job partition submit cpus run_time\nj1 a 0 1 10\nj2 a 0 1 10\nj3 a 5 1 10\nj4 a 30 1 9",
        site(queue("a", quota(2))),
    )
    (yard,) = yards
    assert set(yard._asking) <= {"j4"}  # the run ends with it

"""Hold ``search/least_disruption`` with select/linear against an integer program, and against
Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs
import pytest

from makeway import bitmap
from makeway.config import Config, build_cluster, parse_toml
from makeway.model import (
    Allocation,
    Attempt,
    Candidates,
    Choice,
    Cover,
    Job,
    JobSpec,
    Placement,
    PreemptMode,
)
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_app.replay import replay
from makeway_engine.engine import Engine
from makeway_search_least_disruption import PROVED, least_disruption
from makeway_search_least_disruption.price import prices, work
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.search import two_passes
from makeway_select_linear.selector import LinearSelector

highspy = pytest.importorskip("highspy")

EFFORT = 10**7
NOW = 1000.0

SLURMS_EXAMPLE = """
[[node]]
name = "n[1-5]"
cpus = 2
[[partition]]
name = "active"
default = true
priority_tier = 1
oversubscribe = "FORCE:1"
[[partition]]
name = "hipri"
priority_tier = 2
oversubscribe = "FORCE:1"
[policy]
select = "select/linear"
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
"""
LEAST = 'search = "search/least_disruption"\n'


# -------------------------------------------------------------- the example of Slurm's own page
def example(policy: str, starts: Sequence[float]) -> dict[str, list[tuple[str, float, float, str]]]:
    """Replay jobs 17 to 20 of the page and return each one's intervals."""
    config = parse_toml(SLURMS_EXAMPLE + policy, "example.toml")
    jobs = [
        JobSpec(id=str(17 + at), submit_at=start, min_nodes=1, tasks=2, run_time=60.0)
        for at, start in enumerate(starts)
    ]
    jobs.append(JobSpec(id="20", submit_at=13.0, partitions=("hipri",), min_nodes=3, tasks=6, run_time=20.0))
    run = replay(config, jobs).summary()
    return {
        name: [
            (each["state"], each["start"], each["end"], each["nodes"])
            for each in job["intervals"]
            if each["state"] in ("RUNNING", "SUSPENDED")
        ]
        for name, job in run["jobs"].items()
    }


@pytest.mark.parametrize(
    "starts",
    [
        pytest.param((0.0, 0.0, 1.0), id="19 is the youngest, as on the page"),
        pytest.param((0.0, 0.0, 0.0), id="all of one age: the last one submitted"),
    ],
)
def test_the_ideal_placement_of_slurms_page(starts: Sequence[float]) -> None:
    """Job 20 on n[3-5], jobs 17 and 18 running on (seeds: Slurm's page, future ideas)."""
    run = example(LEAST, starts)
    assert run["17"] == [("RUNNING", 0.0, 60.0, "n1")]
    assert run["18"] == [("RUNNING", 0.0, 60.0, "n2")]
    assert run["20"] == [("RUNNING", 13.0, 33.0, "n[3-5]")]
    assert run["19"] == [
        ("RUNNING", starts[2], 13.0, "n3"),
        ("SUSPENDED", 13.0, 33.0, "n3"),
        ("RUNNING", 33.0, 80.0 + starts[2], "n3"),
    ]


# --------------------------------------------------------------------------- random small clusters
@attrs.frozen
class Case:
    """A blocked attempt."""

    engine: Engine
    attempt: Attempt
    candidates: Candidates

    @property
    def price(self) -> list[int]:
        """Return what each candidate costs."""
        return prices(self.candidates.jobs, self.engine.ledger, NOW)

    def choose(self, effort: int = EFFORT) -> Choice | None:
        """Run the search."""
        return least_disruption(self.attempt, self.candidates, self.engine.ledger, NOW, effort)

    def fits(self, gone: Sequence[int]) -> bool:
        """Ask the selector."""
        trial = self.attempt.fresh()
        for at in gone:
            trial.remove(self.candidates.jobs[at], self.candidates.modes[at])
        return isinstance(trial.probe(), Placement)

    def work(self, choice: Choice) -> int:
        """Return the work at stake."""
        return sum(work(self.candidates.jobs[at], self.engine.ledger, NOW) for at in choice.victims)


class Uncovered:
    """An attempt whose selector has nothing to say but by probing."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.job = attempt.job
        self.probe = attempt.probe
        self.remove = attempt.remove

    def fresh(self) -> Attempt:
        """Return one with nothing removed."""
        return Uncovered(self._attempt.fresh())

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Say nothing."""
        del jobs, modes
        return None


def config_of(size: int, cpus: int = 4) -> Config:
    """Return `size` like nodes, and two tiers that requeue."""
    return parse_toml(
        f"""
        [[node]]
        name = "n[1-{size}]"
        cpus = {cpus}
        [[partition]]
        name = "low"
        default = true
        oversubscribe = "FORCE:3"
        [[partition]]
        name = "high"
        priority_tier = 2
        [policy]
        preempt = "preempt/partition_prio"
        preempt_mode = ["requeue"]
        """,
        "random.toml",
    )


def random_case(seed: int, size: int, jobs: int, *, widest: int, sharers: int) -> Case:
    """Return jobs on a cluster, up to `sharers` on a node, and one that wants in."""
    rng = Random(seed)
    config = config_of(size)
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    room = dict.fromkeys(range(size), sharers)
    for number in range(jobs):
        left = [at for at in room if room[at]]
        if not left:
            break
        held = sorted(rng.sample(left, min(len(left), rng.randint(1, widest))))
        engine.ledger.now = float(rng.randint(0, 40) * 20)
        start(engine, JobSpec(id=str(number)), held, shared=sharers > 1)
        for at in held:
            room[at] -= 1
    engine.ledger.now = NOW
    listed = list(engine.ledger.active)
    rng.shuffle(listed)
    free = engine.ledger.idle.bit_count()
    wanted = rng.randint(min(size, free + 1), size)
    engine.submit(JobSpec(id="P", partitions=("high",), min_nodes=wanted))
    selector = engine.selector
    assert isinstance(selector, LinearSelector)
    attempt = selector.attempt(engine.ledger.jobs["P"], engine.ledger.all_nodes, engine.ledger)
    modes = (PreemptMode.REQUEUE,) * len(listed)
    return Case(engine, attempt, Candidates(jobs=tuple(listed), modes=modes))


def start(engine: Engine, spec: JobSpec, held: Sequence[int], *, shared: bool) -> None:
    """Put a job on certain nodes."""
    engine.submit(spec)
    job = engine.ledger.jobs[spec.id]
    allocation = Allocation(nodes=bitmap.of(held), node_indices=tuple(held), shared=shared)
    engine.queue.remove(job)
    engine.ledger.start(job, allocation)
    engine.selector.placed(job)


def program(case: Case) -> tuple[int, int] | None:
    """Return the fewest victims and then the least work, by two integer programs.

    x: a candidate leaves; y: a node is freed, which all that hold it allow. The program is made
    from the allocations, not from what the selector says.
    """
    jobs = case.candidates.jobs
    units = [work(job, case.engine.ledger, NOW) // 1_000_000 for job in jobs]
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 0.0)
    leaves = [model.addBinary() for _ in jobs]
    freed = []
    for node in range(len(case.engine.ledger.cluster.nodes)):
        freed.append(model.addBinary())
        for at, job in enumerate(jobs):
            if job.nodes >> node & 1:
                model.addConstr(freed[-1] <= leaves[at])
    model.addConstr(sum(freed) >= case.attempt.job.size)
    model.minimize(sum(leaves))
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    fewest = round(model.getObjectiveValue())
    model.addConstr(sum(leaves) == fewest)
    model.minimize(sum(unit * leave for unit, leave in zip(units, leaves, strict=True)))
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return fewest, round(model.getObjectiveValue()) * 1_000_000


SHAPES = [
    pytest.param({"size": 12, "jobs": 10, "widest": 1, "sharers": 1}, id="one node each"),
    pytest.param({"size": 30, "jobs": 14, "widest": 5, "sharers": 1}, id="standing alone"),
    pytest.param({"size": 16, "jobs": 12, "widest": 3, "sharers": 2}, id="two share"),
    pytest.param({"size": 12, "jobs": 14, "widest": 4, "sharers": 3}, id="three share"),
    pytest.param({"size": 60, "jobs": 40, "widest": 6, "sharers": 1}, id="larger"),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block", range(4))
def test_as_few_victims_and_as_little_work_as_an_integer_program(shape: dict[str, int], block: int) -> None:
    """HiGHS proves both figures; every victim is needed, and all lie under the placement."""
    for seed in range(block * 10, block * 10 + 10):
        case = random_case(seed, **shape)
        expected = program(case)
        choice = case.choose()
        if expected is None:
            assert choice is None
            continue
        assert choice is not None
        assert choice.method == PROVED
        assert (len(choice.victims), case.work(choice)) == expected, f"seed {seed}"
        assert_needed(case, choice)
        assert_on_victims_alone(case, choice)


def assert_needed(case: Case, choice: Choice) -> None:
    """No victim may be put back."""
    assert case.fits(choice.victims)
    for back in choice.victims:
        assert not case.fits([at for at in choice.victims if at != back])


def assert_on_victims_alone(case: Case, choice: Choice) -> None:
    """The placement touches every victim and no other job."""
    nodes = choice.placement.allocation.nodes
    victims = {case.candidates.jobs[at].id for at in choice.victims}
    assert {job.id for job in case.engine.ledger.active if job.nodes & nodes} == victims
    costs = [case.price[at] for at in choice.victims]
    assert costs == sorted(costs)


@pytest.mark.parametrize("seed", range(40))
def test_counting_and_probing_agree(seed: int) -> None:
    """The same figures with a cover and without."""
    case = random_case(seed, 9, 7, widest=3, sharers=1 + seed % 3)
    counted = case.choose()
    probed = attrs.evolve(case, attempt=Uncovered(case.attempt)).choose()
    if counted is None or probed is None:
        assert counted is probed is None
        return
    assert counted.method == probed.method == PROVED
    assert len(counted.victims) == len(probed.victims)
    assert sum(case.price[at] for at in counted.victims) == sum(case.price[at] for at in probed.victims)


def slurms_choice(case: Case) -> Choice | None:
    """Search as select/linear does by itself."""
    attempt = case.attempt.fresh()
    assert isinstance(attempt, LinearAttempt)
    return two_passes(attempt, case.candidates)


@pytest.mark.parametrize("shape", SHAPES)
def test_never_more_victims_than_slurms_two_passes(shape: dict[str, int]) -> None:
    """And fewer in some cases.

    Where jobs share nodes the two passes name a job only if some node was usable right after its
    removal, so that the first of two sharers is left out and the victims alone make no room (
    slurm-preemption 5.1.3): such choices are no match.
    """
    fewer = 0
    for seed in range(100, 140):
        case = random_case(seed, **shape)
        ours, slurms = case.choose(), slurms_choice(case)
        assert (ours is None) == (slurms is None)
        if ours is not None and slurms is not None and case.fits(slurms.victims):
            assert len(ours.victims) <= len(slurms.victims)
            fewer += len(ours.victims) < len(slurms.victims)
    assert fewer or shape["widest"] == 1 or shape["sharers"] > 1


def test_a_job_of_many_nodes_among_jobs_of_all_sizes() -> None:
    """Large enough that no enumeration would end; the integer program agrees."""
    case = random_case(7, 1500, 300, widest=9, sharers=1)
    choice = case.choose(effort=200_000)
    assert choice is not None
    assert choice.method == PROVED
    assert (len(choice.victims), case.work(choice)) == program(case)


def test_a_licence_that_is_missing_is_not_made_up_for() -> None:
    """The cover counts nodes only; the probe knows better, and no job is displaced in vain."""
    config = config_of(2)
    cluster = attrs.evolve(config.cluster, licenses={"matlab": 1})
    config = attrs.evolve(config, cluster=cluster)
    policy = attrs.evolve(config.policy, search="search/least_disruption")
    jobs = [
        JobSpec(id="1", min_nodes=2, run_time=50.0, licenses={"matlab": 1}),
        JobSpec(
            id="2",
            submit_at=10.0,
            partitions=("high",),
            run_time=10.0,
            licenses={"matlab": 1},
        ),
    ]
    run = replay(attrs.evolve(config, policy=policy), jobs).summary()
    assert run["preemptions"] == []
    assert run["jobs"]["2"]["intervals"][-1]["start"] == 50.0

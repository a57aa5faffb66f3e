"""The greedy scheduler, limits that take part in the search, and what an arbiter may order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest

from makeway.errors import PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import (
    Allocation,
    Attempt,
    Blocked,
    Candidates,
    Choice,
    ClusterView,
    Gang,
    GangOrder,
    GangVerb,
    Job,
    JobSpec,
    JobState,
    Limits,
    Placement,
    PreemptMode,
)
from makeway_testing import TableRun, cluster, node, one_node, replay_table, tiers

GREEDY: dict[str, Any] = {"scheduler": "greedy", "partitions": tiers(low=1, hi=2)}


# ------------------------------------------------------------------------------------- greedy
def test_greedy_lets_no_job_wait_for_another() -> None:
    """A job that needs two nodes waits; a later one that needs one starts."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        a    low             0      1        50
        b    low             1      2        10
        c    low             2      1       100
        """,
        cluster=cluster(2),
        config=GREEDY,
    )
    assert run.starts("c") == (2.0,)
    assert run.starts("b") == (102.0,)


def test_greedy_tries_new_jobs_alone_when_nothing_came_free() -> None:
    """Its answers are those of a full pass: no job is forgotten when something comes free."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        a    low             0      1        20
        b    low             1      1         5
        c    hi              2      1         5
        d    low             3      1         5
        """,
        cluster=one_node(),
        config=GREEDY,
    )
    assert [run.starts(job) for job in "cbd"] == [(20.0,), (25.0,), (30.0,)]


# ---------------------------------------------------------------- limits and the search
class OneRunning(Limits):
    """One running job per user; a suspended job does not count. Victims are taken one by one."""

    def __init__(self, liftable: bool) -> None:
        self.liftable = liftable

    @hookimpl
    def makeway_gang(self, view: ClusterView) -> Gang:
        """Build an arbiter that resumes them."""
        return Patient(lambda job: GangOrder(verb=GangVerb.RESUME, job=job))

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Count running jobs per user."""
        running = {other.user for other in view.active if other.state is JobState.RUNNING}
        return Blocked(reason="OnePerUser", liftable=self.liftable) if job.user in running else None

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
        """Name all of lower tiers."""
        below = tuple(
            job for job in active if job.partition.priority_tier < preemptor.partition.priority_tier
        )
        return Candidates(jobs=below, modes=(PreemptMode.SUSPEND,) * len(below), reason="Whatever")

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | None:
        """Take the first one that is enough by itself."""
        for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes, strict=True)):
            alone = attempt.fresh()
            alone.remove(job, mode)
            found = alone.probe()
            if isinstance(found, Placement):
                return Choice(placement=found, victims=(at,))
        return None


LIMITED = """
job  partition  submit  nodes  run_time  user
v    low             0      1        50  other
a    low             0      1        50  me
h    hi              5      1        10  me
"""


@pytest.mark.parametrize("liftable", [True, False])
def test_victims_are_sought_against_the_limit(liftable: bool) -> None:
    """A free node is no help; the user's own job makes way if the limit says that this may lift it."""
    run = replay_table(
        LIMITED,
        cluster=cluster(3),
        config=GREEDY | {"preempt": "mine"},
        plugins={"mine": OneRunning(liftable)},
        until=6,
    )
    assert run.victims == (("a",) if liftable else ())
    assert run.state("h") is (JobState.RUNNING if liftable else JobState.PENDING)
    if not liftable:
        assert run.reason("h") == "OnePerUser"


# ------------------------------------------------------------------------------ the arbiter
class Patient:
    """Orders whatever it was made with when a pass is over."""

    next_tick: float | None = None

    def __init__(self, order: Any) -> None:
        self._order = order

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    ended = held = started

    def tick(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        return ()

    before_pass = tick

    def after_pass(self, view: ClusterView) -> Iterator[GangOrder]:
        """Give the order for every suspended job, one at a time."""
        for job in view.active:
            if job.state is JobState.SUSPENDED and view.now >= 20:
                yield self._order(job)


class Stopping(OneRunning):
    """The same policy with an arbiter of one's own."""

    def __init__(self, order: Any) -> None:
        super().__init__(liftable=True)
        self._order = order

    @hookimpl
    def makeway_gang(self, view: ClusterView) -> Gang:
        """Build it."""
        return Patient(self._order)


def _stopped(order: Any, **more: Any) -> TableRun:
    jobs = """
    job  partition  submit  nodes  run_time  user
    a    low             0      1        50  me
    h    hi              5      1        10  me
    x    low            20      1         1  you
    """
    return replay_table(
        jobs,
        cluster=cluster(2),
        config=GREEDY | {"preempt": "mine"},
        plugins={"mine": Stopping(order)},
        checked=False,
        **more,
    )


def test_after_pass_resumes() -> None:
    """The order is carried out when the pass is over."""
    run = _stopped(lambda job: GangOrder(verb=GangVerb.RESUME, job=job))
    assert "20 a resume" in run.timeline
    assert run.history("a").job.stopped == 15.0


def test_move_on_requeues_without_counting() -> None:
    """One preemption, and one restart from the beginning."""
    run = _stopped(lambda job: GangOrder(verb=GangVerb.MOVE_ON, job=job))
    assert run.victims == ("a",)
    job = run.history("a").job
    assert run.history("a").ended_at == 70.0, "from the beginning again"
    assert (job.restarts, job.preemptions, job.preemptions_before) == (1, 1, 1)


def test_a_move_to_other_nodes_is_refused() -> None:
    """Resuming elsewhere is not resuming."""
    other = Allocation(nodes=2, node_indices=(1,))
    with pytest.raises(PolicyError, match="moved a job"):
        _stopped(lambda job: GangOrder(verb=GangVerb.RESUME, job=job, allocation=other))


def test_other_cores_of_the_same_nodes() -> None:
    """What a resumed job holds may be rearranged."""

    def rearranged(job: Job) -> GangOrder:
        assert job.allocation is not None
        return GangOrder(verb=GangVerb.RESUME, job=job, allocation=attrs.evolve(job.allocation, cores=(2,)))

    held = _stopped(rearranged, until=30).history("a").job.allocation
    assert held is not None
    assert held.cores == (2,)


# ------------------------------------------------------------------- nodes that are kept
class FirstWaiting(Limits):
    """The first job that waits keeps what is idle."""

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> int:
        """Close it to all behind."""
        return before[0].partition.nodes & view.idle if before else 0


@pytest.mark.parametrize(
    "submit",
    [
        pytest.param((0, 1, 1), id="behind it in one pass"),
        pytest.param((0, 1, 2), id="new, in a pass for new jobs alone"),
    ],
)
def test_what_is_kept_for_one_that_waits_is_closed_to_those_behind(submit: tuple[int, ...]) -> None:
    """`wide` waits for `long` until 30; `narrow` has to leave the idle node alone until `wide` is over."""
    run = replay_table(
        """
        job     submit  nodes  run_time
        long    {}      1      30
        wide    {}      2      5
        narrow  {}      1      5
        """.format(*submit),
        cluster=cluster(2),
        config={"scheduler": "greedy", "plugins": ["keeper"]},
        plugins={"keeper": FirstWaiting()},
    )
    assert [run.starts(job) for job in ("wide", "narrow")] == [(30.0,), (35.0,)]


# ------------------------------------------------------------------- when priorities are due
class Stuck:
    """Says that all priorities are due, and the same moment again once they have been worked out."""

    next_at = 5.0

    def fresh(self, jobs: Sequence[Job], occasion: object, view: ClusterView) -> list[int]:
        """Return 1 for each."""
        return [1] * len(jobs)

    def again(self, jobs: Sequence[Job], view: ClusterView) -> dict[str, int]:
        """Return 1 for each."""
        return {job.id: 1 for job in jobs}


class GivesStuck:
    """Builds it."""

    @hookimpl
    def makeway_priority(self, view: ClusterView) -> Stuck:
        """Build it."""
        return Stuck()


def test_a_prioritizer_that_is_due_for_ever_is_named() -> None:
    """Its moment has to lie ahead once it has been asked; else the run would never go on."""
    with pytest.raises(
        PolicyError, match=r"its next_at is 5\.0 after it was asked at 5; allowed: a later instant"
    ):
        replay_table(
            """
            job  submit  nodes  run_time
            a    0       1      20
            b    1       1      20
            """,
            cluster=one_node(),
            config={"priority": "stuck/priority"},
            plugins={"stuck/priority": GivesStuck()},
        )


# ------------------------------------------------------------------- limits of components
@pytest.mark.parametrize(("unlicensed", "start"), [(True, 1.0), (False, 12.0)])
def test_components_look_at_licences_one_by_one(unlicensed: bool, start: float) -> None:
    """Two of four are free while `a` runs, until 12: enough for each component, but not for both."""
    parts = [
        JobSpec(id=f"h+{at}", run_time=5.0, submit_at=1.0, het_id="h", het_offset=at, licenses={"lic": 2})
        for at in (0, 1)
    ]
    run = replay_table(
        [JobSpec(id="a", run_time=12.0, time_limit=12.0, licenses={"lic": 2}), *parts],
        cluster=cluster(4),
        config={
            "scheduler": "backfill",
            "licenses": {"lic": 4},
            "rules": {"het_starts_without_licences": unlicensed},
        },
    )
    assert (run.starts("h+0"), run.starts("h+1")) == ((start,), (start,))


@pytest.mark.parametrize(("last", "start"), [(True, 0.0), (False, 8.0)])
def test_a_job_behind_components_takes_licences_first(last: bool, start: float) -> None:
    """`h` takes both licences; `c` behind it takes one in the same pass, unless `h` starts at its own turn."""
    parts = [
        JobSpec(id=f"h+{at}", run_time=8.0, time_limit=8.0, het_id="h", het_offset=at, licenses={"lic": 1})
        for at in (0, 1)
    ]
    run = replay_table(
        [*parts, JobSpec(id="c", run_time=4.0, time_limit=4.0, licenses={"lic": 1})],
        cluster=cluster(4),
        config={
            "scheduler": "backfill",
            "licenses": {"lic": 2},
            "clockwork": {"pass_on_submit": False},
            "rules": {"het_starts_last": last},
        },
    )
    assert (run.starts("h+0"), run.starts("h+1")) == ((0.0,), (0.0,))
    assert run.starts("c") == (start,)


def test_a_licence_does_not_lift_the_limit_of_a_component() -> None:
    """The licence is there, but `a` of the same user runs until 50: both components wait for that."""
    jobs = [
        JobSpec(id="a", user="me", run_time=50.0),
        *(
            JobSpec(
                id=f"h+{at}",
                user=user,
                submit_at=5.0,
                run_time=10.0,
                het_id="h",
                het_offset=at,
                licenses={"lic": 1},
            )
            for at, user in enumerate(("me", "you"))
        ),
    ]
    run = replay_table(
        jobs,
        cluster=cluster(3),
        config={"scheduler": "backfill", "preempt": "mine", "licenses": {"lic": 2}},
        plugins={"mine": OneRunning(liftable=False)},
    )
    assert run.starts("h+0") == run.starts("h+1")
    assert run.starts("h+0")[0] >= 50.0


class Barred(OneRunning):
    """The first node is closed to all of tier 2."""

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> int:
        """Close it."""
        return 0b1 if job.partition.priority_tier > 1 else 0


def test_who_sits_on_a_closed_node_is_of_no_use() -> None:
    """A search of one's own takes the first victim that is enough: `a` on the closed n1 is not, `b` is."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time  user
        a    low             0      1        50  x
        b    low             0      1        50  y
        h    hi              5      1        10  z
        """,
        cluster=cluster(2),
        config=GREEDY | {"preempt": "mine"},
        plugins={"mine": Barred(liftable=True)},
        until=6,
    )
    assert run.victims == ("b",)
    assert run.state("h") is JobState.RUNNING


def test_no_job_makes_way_for_the_alternative_that_is_free() -> None:
    """5.0 no. 6, where any alternative may preempt: `v` has a node with b, but so has n3, which is free."""
    run = replay_table(
        """
        job  partition  submit  tasks  run_time  user  required_nodes  features
        v    low             0      4        50  x     n1              -
        w    hi              0      4        50  y     n2              -
        h    hi              5      4        10  z     -               [a|b]
        """,
        cluster=cluster([node("n1", features=["b"]), node("n2", features=["a"]), node("n3", features=["b"])]),
        config=GREEDY
        | {
            "preempt": "mine",
            "select": "select/cons_tres",
            "select_parameters": "CR_Core",
            "rules": {"last_alternative_preempts": False},
        },
        plugins={"mine": OneRunning(liftable=True)},
        until=6,
    )
    assert run.victims == ()
    allocation = run.history("h").job.allocation
    assert allocation is not None
    assert run.engine.recorder.node_list(allocation.nodes) == "n3"

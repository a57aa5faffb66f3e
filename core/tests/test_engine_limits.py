"""The greedy scheduler, limits that take part in the search, and what an arbiter may order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    JobState,
    Placement,
    PreemptMode,
)
from makeway_testing import TableRun, cluster, one_node, replay_table, tiers

GREEDY: dict[str, Any] = {"scheduler": "greedy", "partitions": tiers(low=1, hi=2)}


# ------------------------------------------------------------------------------------- greedy
def test_greedy_lets_nobody_wait_for_another() -> None:
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
    """Its answers are those of a full pass: nobody is forgotten when something comes free."""
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
class OneRunning:
    """One running job per user; whoever is suspended does not count. Victims are taken one by one."""

    def __init__(self, liftable: bool) -> None:
        self.liftable = liftable

    @hookimpl
    def makeway_admit(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Blocked]:
        """Count running jobs per user."""
        running = {job.user for job in view.active if job.state is JobState.RUNNING}
        return {
            job.id: Blocked(reason="OnePerUser", liftable=self.liftable)
            for job in jobs
            if job.user in running
        }

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

"""The checker finds what may never happen, and says which rule, when, and whose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from makeway.errors import InvariantError
from makeway.hookspecs import based_on, hookimpl
from makeway.model import (
    Candidates,
    ClusterView,
    GangOrder,
    GangVerb,
    Job,
    PreemptBasis,
    PreemptMode,
)
from makeway_testing import (
    TableRun,
    check_conservation,
    check_invariants,
    one_node,
    replay_table,
    tiers,
)

TWO = """
    job  submit  nodes  run_time
    a         0      1       100
    b        10      1       100
"""
TIERS: dict[str, Any] = {"preempt": "preempt/partition_prio", "partitions": tiers(low=1, hi=2)}


class Lazy:
    """A gang arbiter that stops no job, or stops and forgets."""

    def __init__(self, *, suspends: bool) -> None:
        self.suspends = suspends
        self.next_tick: float | None = None

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Stop the newcomer, or let both run."""
        if not self.suspends or len(view.active) < 2:
            return ()
        self.next_tick = view.now + 10.0
        return [GangOrder(verb=GangVerb.SUSPEND, job=job)]

    def tick(self, view: ClusterView) -> Sequence[GangOrder]:
        """Do nothing, again and again."""
        self.next_tick = view.now + 10.0
        return ()

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Forget what waits."""
        return ()

    held = ended

    def before_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Do nothing."""
        return ()

    after_pass = before_pass


class LazyPlugin:
    """Offers it."""

    def __init__(self, *, suspends: bool) -> None:
        self.suspends = suspends

    @hookimpl
    def makeway_gang(self) -> Lazy:
        """Build it."""
        return Lazy(suspends=self.suspends)


class Anybody:
    """A preempt policy that knows no tiers."""

    @hookimpl
    @based_on(PreemptBasis.PARTITION)
    def makeway_preempt_candidates(self, active: Sequence[Job]) -> Candidates:
        """Name all, and claim to go by partitions."""
        return Candidates(jobs=tuple(active), modes=(PreemptMode.CANCEL,) * len(active))


def broken(call: Callable[[], object]) -> str:
    """Return what the checker says."""
    with pytest.raises(InvariantError) as caught:
        call()
    return str(caught.value)


def shared(plugin: Any) -> TableRun:
    """Replay two jobs of one node under a gang arbiter of the test."""
    return replay_table(
        TWO,
        config={"partitions": {"batch": {"oversubscribe": "FORCE:2"}}, "gang": "x/lazy"},
        plugins={"x/lazy": plugin},
        until=500.0,
    )


def test_rule_1_two_active_jobs_on_one_core() -> None:
    """An arbiter that stops no job."""
    found = broken(lambda: shared(LazyPlugin(suspends=False)))
    assert found == "rule 1, cores, at 10 s: two active jobs on one core (jobs a, b)"


def test_rule_5_suspended_in_vain() -> None:
    """An arbiter that forgets what it stopped."""
    found = broken(lambda: shared(LazyPlugin(suspends=True)))
    assert found.startswith("rule 5, suspended in vain")
    assert found.endswith("since 100 s (jobs b)")


def test_rule_2_memory() -> None:
    """What excused select/linear is no excuse once the rule is off."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  memory_mb
        low   low             0      1       100        700
        high  hi             10      1       100        500
        """,
        cluster=one_node(memory_mb=1000),
        config=TIERS | {"preempt_mode": "suspend,gang", "select_parameters": "CR_Memory"},
        until=20.0,
    )
    (excused,) = check_invariants(run.engine)
    assert excused.excuse == "suspension frees memory"
    run.engine.ledger._rules = {
        **run.engine.ledger._rules,
        "linear_suspend_frees_memory": False,
    }
    found = broken(lambda: check_invariants(run.engine))
    assert found.startswith("rule 2, memory, at 10 s: 1200 MB on n1, which has 1000 MB")


def test_rule_3_a_job_is_lost() -> None:
    """It waits in no queue any more."""
    run = replay_table(TWO, config={}, until=20.0)
    run.engine.queue.remove(run.engine.ledger.jobs["b"])
    found = broken(lambda: check_invariants(run.engine))
    assert "rule 3, no job is lost, at 10 s: 2 jobs in the table, but 0 wait" in found


def test_rule_3_a_node_that_no_job_holds() -> None:
    """The books say busy, but no job is there."""
    run = replay_table(TWO, config={}, until=20.0)
    run.engine.ledger.held_tally.add(1)
    run.engine.ledger.held_tally.remove(1)
    check_invariants(run.engine)
    active = run.engine.ledger.jobs_active
    for job in active.in_order:
        active.remove(job)
    assert "rule 3" in broken(lambda: check_invariants(run.engine))


def test_rule_4_a_victim_that_is_not_allowed() -> None:
    """Read from the preemptions, whatever the plugin says."""
    found = broken(
        lambda: replay_table(
            """
            job   partition  submit  nodes  run_time
            high  hi              0      1       100
            low   low            10      1       100
            """,
            config=TIERS | {"preempt_mode": "cancel"},
            plugins={"preempt/partition_prio": Anybody()},
        )
    )
    assert found == ("rule 4, allowed victims, at 10 s: its tier 2 is not below 1 (jobs high, low)")


def test_rule_6_work_that_was_not_counted() -> None:
    """Run time less losses is the work done."""
    run = replay_table(TWO, config={})
    check_conservation(run.run, run.specs)
    run.history("a").worked = 99.0
    found = broken(lambda: check_conservation(run.run, run.specs))
    assert found.startswith("rule 6, work is counted")
    assert found.endswith("ran 100 s, lost 0 s, worked 99 s (jobs a)")


@pytest.mark.parametrize(
    ("sharing", "fine"),
    [
        pytest.param("FORCE:2", True, id="two rows of each partition: yes"),
        pytest.param("NO", False, id="a partition that shares nothing: no"),
    ],
)
def test_rows_are_counted_by_partition(sharing: str, fine: bool) -> None:
    """With cons_tres FORCE:n counts the jobs of one partition on a core, not of all (slurm-gang-and-select 4.5)."""
    run = replay_table(
        """
        job  partition  submit  nodes  run_time
        j1   a               0      1        20
        j2   a               5      1        20
        j3   b              10      1        20
        """,
        cluster=one_node(cpus=1),
        config={
            "partitions": {"a": {"oversubscribe": "FORCE:2"}, "b": {"oversubscribe": sharing}},
            "select": "select/cons_tres",
            "select_parameters": "CR_Core",
        },
        until=12.0,
    )
    assert run.starts("j3") == ((10.0,) if fine else ())

"""What holds for all clusters, policies and workloads; Hypothesis draws small ones.

More examples, and others each time: ``MAKEWAY_EXAMPLES=5000 pytest tests/test_properties.py``. What was
found is kept as a table in ``plugins/app/tests/engine/test_found.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from makeway.config import Config
from makeway.hookspecs import hookimpl
from makeway.model import JobState
from makeway_slurm.gang_timeslice.rows import GangPartition
from makeway_testing import cluster, one_node, replay_table
from makeway_testing.strategies import (
    POLICIES,
    SCHEDULERS,
    STRICT_RULES,
    TIMESLICE,
    Scenario,
    instants,
    scenarios,
)

MANY = os.environ.get("MAKEWAY_EXAMPLES")


def examples(count: int) -> hypothesis_settings:
    """Return how hard to try; the same examples each time unless told how many."""
    return hypothesis_settings(
        max_examples=int(MANY or count),
        derandomize=MANY is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# ------------------------------------------------------------------------------ nothing forbidden
@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=" ".join)
def test_nothing_forbidden_happens(policy: tuple[str, str]) -> None:
    """All invariants hold after every step, whatever the scheduler."""

    @examples(60)
    @given(scenarios((policy,)))
    def holds(scenario: Scenario) -> None:
        scenario.replay()

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_nothing_forbidden_happens_when_people_interfere(scheduler: str) -> None:
    """Suspends, resumes, holds, requeues, and nodes that fail at any instant."""

    @examples(80)
    @given(scenarios(schedulers=(scheduler,), with_commands=True))
    def holds(scenario: Scenario) -> None:
        scenario.replay()

    holds()


@pytest.mark.slow
@examples(80)
@given(scenarios(most_jobs=14))
def test_without_the_defects_of_slurm_few_excuses_are_left(scenario: Scenario) -> None:
    """What remains are oversubscription, equal tiers, and victims that gang is about to kill."""
    run = scenario.with_settings(rules=STRICT_RULES).replay()
    allowed = {"oversubscribed", "equal tiers", "waits to be killed"}
    assert {one.excuse for one in run.checker.excused} <= allowed


@pytest.mark.slow
@examples(80)
@given(scenarios())
def test_every_job_ends_or_says_why_not(scenario: Scenario) -> None:
    """No job starves: what still waits in the end can never run, or waits for such a job."""
    run = scenario.replay()
    for spec in scenario.specs:
        if not run.state(spec.id).ended:
            assert run.state(spec.id) is JobState.PENDING
            assert run.reason(spec.id) in ("BadConstraints", "Dependency", "ReqNodeNotAvail")


# ------------------------------------------------------------------------ same input, same output
def fingerprint(scenario: Scenario, **more: Any) -> str:
    """Return everything that a run says, as text."""
    run = scenario.replay(**more)
    return run.record + json.dumps(run.run.summary())


@pytest.mark.slow
@examples(60)
@given(scenarios(with_commands=True))
def test_same_input_same_record(scenario: Scenario) -> None:
    """Byte for byte."""
    assert fingerprint(scenario) == fingerprint(scenario)


def tables_of(scenario: Scenario) -> Mapping[str, Any]:
    """Return the settings of a drawn scenario, which are no configuration yet."""
    assert not isinstance(scenario.settings, Config)
    return scenario.settings


def shuffled(table: Mapping[str, Any], order: Callable[[list[str]], list[str]]) -> dict[str, Any]:
    """Return `table` with its keys, and those of tables in it, in another order."""
    found = {}
    for key in order(sorted(table)):
        value = table[key]
        # Partitions are a list in the file: their order means something.
        if isinstance(value, dict) and key != "partitions":
            value = shuffled(value, order)
        elif key == "partitions":
            value = {name: shuffled(one, order) for name, one in value.items()}
        found[key] = value
    return found


@pytest.mark.slow
@examples(60)
@given(scenarios(), st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(scenario: Scenario, chance: Any) -> None:
    """Neither that of tables nor that of keys."""

    def order(keys: list[str]) -> list[str]:
        return list(chance.sample(keys, len(keys)))

    other = Scenario(
        machine=scenario.machine,
        settings=shuffled(tables_of(scenario), order),
        specs=scenario.specs,
    )
    assert fingerprint(other) == fingerprint(scenario)


class Shy:
    """Protects the jobs of one user."""

    def __init__(self, user: str) -> None:
        self.user = user

    @hookimpl
    def makeway_protect(self, candidates: Any) -> dict[str, str]:
        """Protect."""
        return {job.id: f"belongs to {self.user}" for job in candidates if job.user == self.user}


@pytest.mark.slow
@examples(40)
@given(scenarios([policy for policy in POLICIES if policy[0] != "preempt/none"]))
def test_the_order_of_vetoes_changes_nothing(scenario: Scenario) -> None:
    """Vetoes are joined."""
    plugins = {"x/ann": Shy("ann"), "x/bob": Shy("bob")}
    one = scenario.with_settings(protect=("x/ann", "x/bob"))
    other = scenario.with_settings(protect=("x/bob", "x/ann"))
    assert fingerprint(one, plugins=plugins) == fingerprint(other, plugins=plugins)


_DIGEST = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from test_properties import busy_week
print(hashlib.sha256(busy_week().encode()).hexdigest())
"""


def busy_week() -> str:
    """Return the record of a run in which much happens."""
    users = ("ann", "bob", "cyd", "dan", "eve")
    rows = [
        f"j{at} {'hi' if at % 3 == 0 else 'low'} {users[at % 5]} {at * 7} {1 + at % 4} {20 + at * 13 % 90}"
        for at in range(80)
    ]
    text = "job partition user submit nodes run_time\n" + "\n".join(rows)
    config = {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "suspend,gang",
        "timeslice": 10,
        "partitions": {
            "low": {"oversubscribe": "FORCE:3", "preempt_mode": "requeue"},
            "hi": {"oversubscribe": "FORCE:2", "priority_tier": 2},
        },
        "clockwork": {"requeue_delay": 5.0},
    }
    return replay_table(text, cluster=cluster(6), config=config).record


@pytest.mark.slow
def test_hash_order_changes_nothing() -> None:
    """Sets and dicts of strings are walked in another order in another process."""
    here = hashlib.sha256(busy_week().encode()).hexdigest()
    script = _DIGEST.format(folder=os.path.dirname(__file__))
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


# ------------------------------------------------------------------------------------------ turns
@pytest.mark.slow
@examples(60)
@given(
    st.lists(instants(40), min_size=2, max_size=6),
    st.sampled_from((20.0, 60.0, 100.0)),
    st.sampled_from((1.0, 4.0, 10.0)),
)
def test_equal_jobs_wait_at_most_for_each_others_turn(
    submissions: list[float], run_time: float, first_tick: float
) -> None:
    """n equal jobs: n - 1 slices, and one more in which the first holder is promoted (slurm-gang-and-select 3.3)."""
    count = len(submissions)
    rows = [f"j{at} {submit} 1 {run_time}" for at, submit in enumerate(sorted(submissions))]
    run = replay_table(
        "job submit nodes run_time\n" + "\n".join(rows),
        cluster=one_node(),
        config={
            "preempt_mode": "gang",
            "timeslice": TIMESLICE,
            "partitions": {"batch": {"oversubscribe": f"FORCE:{count}"}},
            "clockwork": {"first_tick": first_tick},
        },
    )
    for at in range(count):
        history = run.history(f"j{at}")
        waits = [end - start for state, start, end, _, _ in history.intervals if state.value == "SUSPENDED"]
        assert max(waits, default=0.0) <= count * TIMESLICE
        assert history.final_state is JobState.COMPLETED


@pytest.mark.slow
@examples(40)
@given(scenarios([("preempt/partition_prio", "suspend,gang")]))
def test_suspension_costs_no_work(scenario: Scenario) -> None:
    """Where every partition suspends, nothing is thrown away."""
    partitions = {
        name: {**table, "preempt_mode": "suspend"}
        for name, table in tables_of(scenario)["partitions"].items()
    }
    run = scenario.with_settings(
        partitions=partitions,
        enforce_time_limits=False,
        rules={"linear_suspend_keeps_deadline": False},
    ).replay()
    assert run.run.recorder.metrics.core_seconds_lost == 0.0


@pytest.mark.slow
@examples(150)
@given(scenarios([("preempt/partition_prio", "suspend,gang"), ("preempt/qos", "suspend,gang")], most_jobs=12))
def test_rows_kept_up_to_date_are_rows_put_together_anew(scenario: Scenario) -> None:
    """The arbiter leaves rows alone that an update would not change: nothing shows it."""
    kept = scenario.replay().timeline
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GangPartition, "quiet", property(lambda partition: False))
        assert scenario.replay().timeline == kept


@pytest.mark.slow
def test_two_tiers_meet_everywhere() -> None:
    """The strategies do what they are for: the fixed examples hold preemptions of every kind."""
    words: set[str] = set()

    @examples(300)
    @given(scenarios(most_jobs=14))
    def gather(scenario: Scenario) -> None:
        words.update(line.split()[2] for line in scenario.replay().timeline)

    gather()
    assert words >= {"start", "suspend", "resume", "requeue", "preempted", "complete", "timeout"}

"""The kit finds policies that lose what they remember when another engine takes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from makeway.hookspecs import hookimpl
from makeway.model import Candidates, ClusterView, Job, Limits, PreemptMode
from makeway_testing.contracts import ContractError, PreemptPolicyContract


class Losses:
    """What each user's jobs have lost so far: seconds of running."""

    def __init__(self, view: ClusterView) -> None:
        self.lost: dict[str, float] = {}

    def started(self, job: Job, view: ClusterView) -> None:
        """Nothing is lost by that."""

    def left(self, job: Job, view: ClusterView) -> None:
        """A job that was told to make way, and so does not end by itself."""
        if job.preempt_at is not None:
            self.lost[job.user] = self.lost.get(job.user, 0.0) + job.ran_until(view.now)


class Budget:
    """Displaces jobs of lower tiers whose users have lost less than so many seconds."""

    def __init__(self, budget: float) -> None:
        self._budget = budget

    @hookimpl
    def makeway_preempt_candidates(
        self, preemptor: Job, active: Sequence[Job], view: ClusterView
    ) -> Candidates:
        lost = view.book(Losses).lost
        tier = preemptor.partition.priority_tier
        jobs = tuple(
            job
            for job in active
            if job.partition.priority_tier < tier and lost.get(job.user, 0.0) < self._budget
        )
        return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs))


class HandedOver(Budget, Limits):
    """The same, which the next engine goes on with."""

    @hookimpl
    def makeway_limits(self) -> Limits:
        return self

    def save(self, view: ClusterView) -> Mapping[str, Any]:
        return {"lost": dict(view.book(Losses).lost)}

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        view.book(Losses).lost.update(memory["lost"])


def contract(policy: Any) -> PreemptPolicyContract:
    class Kept(PreemptPolicyContract):
        plugin = "preempt/budget"
        module = policy
        examples = 10
        trials = 20
        modes: ClassVar[Sequence[str]] = ("requeue",)

    return Kept()


@pytest.mark.slow
@pytest.mark.parametrize("budget", [10.0, 100.0, 1000.0])
def test_what_is_forgotten_is_found(budget: float) -> None:
    """Whatever the scale of what the policy counts."""
    with pytest.raises(ContractError, match=r"taken over|took over|adoption|hands over"):
        contract(Budget(budget)).test_another_engine_goes_on_alike()


@pytest.mark.slow
def test_what_is_handed_over_is_not() -> None:
    contract(HandedOver(100.0)).test_another_engine_goes_on_alike()


def test_a_condition_that_is_a_closure_has_the_same_answer_twice() -> None:
    """Functions are compared by what they say of each candidate."""

    class Quota:
        def __init__(self, *, steady: bool) -> None:
            self._steady = steady
            self._asked = 0

        @hookimpl
        def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
            tier = preemptor.partition.priority_tier
            jobs = tuple(job for job in active if job.partition.priority_tier < tier)
            self._asked += 1
            most = 1 if self._steady else self._asked % 2

            def allowed(job: Job, taken: Sequence[Job]) -> bool:
                return len(taken) < most

            return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs), allowed_after=allowed)

    contract(Quota(steady=True)).test_same_arguments_same_answer()
    with pytest.raises(ContractError, match=r"asked twice|asked again"):
        contract(Quota(steady=False)).test_same_arguments_same_answer()

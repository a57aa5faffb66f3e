"""The contract of policies of priorities: what is tried first, and when that is worked out anew."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from hypothesis.strategies import SearchStrategy

from makeway.model import ClusterView, Job
from makeway.priorities import Occasion, Prioritizer
from makeway_engine.priorities import HIGHEST
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.failures import BreachError
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended

_HOOK = "makeway_priority"
Rule = Callable[[str, Any, Sequence[Job], Prioritizer, ClusterView], str | None]
"""Method, its answer, the jobs, the policy, the view -> what is wrong, or nothing."""


class PriorityContract(DecisionContract):
    """What every plugin under ``policy.priority`` promises."""

    hook = _HOOK
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    policies: ClassVar[Sequence[tuple[str, str]]] = (("preempt/none", "off"), (lower_tiers.NAME, "requeue"))
    """Preempt plugin and cluster-wide mode of the random runs."""

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "priority"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters and up to eight jobs that wait for one another."""
        return contended(self.policies)

    # ------------------------------------------------------------------------------- answers
    def test_priorities_are_in_range(self) -> None:
        """A priority is a whole number from 1 to 4294967295; one for each partition where a job has several."""

        def rule(
            method: str, answer: Any, jobs: Sequence[Job], prioritizer: Prioritizer, view: ClusterView
        ) -> str | None:
            values = list(answer.values() if isinstance(answer, Mapping) else answer)
            for each in values:
                several = list(each.values()) if isinstance(each, Mapping) else [each]
                if each is not None and not all(type(one) is int and 1 <= one <= HIGHEST for one in several):
                    return f"{method}() gave the priority {each!r:.60}; allowed: 1 to {HIGHEST}"
            return None

        self.answered(rule)

    def test_it_answers_for_the_jobs_it_is_given(self) -> None:
        """`fresh` has one answer for each job, in order; `again` names jobs that are pending or active."""

        def rule(
            method: str, answer: Any, jobs: Sequence[Job], prioritizer: Prioritizer, view: ClusterView
        ) -> str | None:
            if method == "fresh":
                found = len(answer)
                return None if found == len(jobs) else f"fresh() had {found} answers for {len(jobs)} jobs"
            strangers = [job_id for job_id in answer if view.job(job_id) is None]
            return f"again() named job {strangers[0]!r}, which is not there" if strangers else None

        self.answered(rule)

    def test_its_clock_goes_on(self) -> None:
        """After `again` the next instant lies later, if there is one, and is a finite number."""

        def rule(
            method: str, answer: Any, jobs: Sequence[Job], prioritizer: Prioritizer, view: ClusterView
        ) -> str | None:
            at = prioritizer.next_at
            if at is None or (method == "fresh" and math.isfinite(at)):
                return None
            if not math.isfinite(at) or at <= view.now:
                return f"after {method}() at {view.now:g} s the next time is at {at:g} s"
            return None

        self.answered(rule)

    def test_what_it_hands_over_is_json(self) -> None:
        """What it hands over is what JSON has, and one that took it over hands over the same."""

        def rule(
            method: str, answer: Any, jobs: Sequence[Job], prioritizer: Prioritizer, view: ClusterView
        ) -> str | None:
            save = getattr(prioritizer, "save", None)
            if save is None:
                return None
            memory = save()
            try:
                again = json.loads(json.dumps(memory, allow_nan=False))
            except (TypeError, ValueError) as error:
                return f"it handed over what JSON does not have: {error}"
            return None if again == memory else "what it handed over is not the same after a way through JSON"

        self.answered(rule)

    def answered(self, rule: Rule) -> None:
        """Hold a rule about what the policy answers; the docstring of the calling test says what it is."""

        def replace(hook: str, answer: Any) -> Any:
            return _Shown(answer, rule) if hook == _HOOK and answer is not None else answer

        def played(scenario: Scenario) -> None:
            self.play(scenario, replace=replace)

        self.hold(played)


class _Shown:
    """A policy of priorities whose answers are looked at before they count."""

    def __init__(self, inner: Prioritizer, rule: Rule) -> None:
        self._inner = inner
        self._rule = rule

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def fresh(self, jobs: Sequence[Job], occasion: Occasion, view: ClusterView) -> Any:
        """Look at the answer for single jobs."""
        return self._seen("fresh", self._inner.fresh(jobs, occasion, view), jobs, view)

    def again(self, jobs: Sequence[Job], view: ClusterView) -> Any:
        """Look at the answer for all jobs."""
        return self._seen("again", self._inner.again(jobs, view), jobs, view)

    def _seen(self, method: str, answer: Any, jobs: Sequence[Job], view: ClusterView) -> Any:
        wrong = self._rule(method, answer, jobs, self._inner, view)
        if wrong is not None:
            raise BreachError(wrong, hook=_HOOK)
        return answer

"""The contract of plans: plugins that say how victims make way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hypothesis.strategies import SearchStrategy

from makeway.model import Plan, PreemptMode
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended, waves
from makeway_testing.watching import Call, plain, short

_HOOK = "makeway_preempt_action"


class ActionContract(DecisionContract):
    """What every plugin promises that plans how victims make way; ``policy.plugins`` names it."""

    hook = _HOOK
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    preempt: ClassVar[str] = lower_tiers.NAME
    """Policy whose victims are planned for; unless another is named, lower tiers may be displaced."""
    modes: ClassVar[Sequence[str]] = ("requeue", "cancel", "suspend,gang")

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "plugins"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters, several tiers, and up to eight jobs."""
        return contended([(self.preempt, mode) for mode in self.modes])

    def remembering(self) -> SearchStrategy[Scenario]:
        """Draw urgent jobs that come one after the other."""
        return waves([(self.preempt, mode) for mode in self.modes])

    def test_one_plan_for_each_victim(self) -> None:
        """The answer is one Plan for each victim, in their order, or None for "each in its mode, at once"."""

        def check(call: Call) -> str | None:
            answer, victims = call.answer, call.arguments["victims"]
            if answer is None:
                return None
            if not isinstance(answer, Sequence) or not all(isinstance(each, Plan) for each in answer):
                return f"it returned {type(answer).__name__} {short(answer)}; allowed: one Plan per victim"
            if [plan.job for plan in answer] != list(victims):
                planned = [plan.job for plan in answer]
                return f"it has {len(victims)} victims {short(victims)}, and plans {short(planned)}"
            return None

        self.every(_HOOK, check)

    def test_none_frees_less_than_was_counted_on(self) -> None:
        """Where a mode that frees all was counted on, the plan has such a mode too, or fails."""

        def check(call: Call) -> str | None:
            for plan, mode in zip(call.answer or (), call.arguments["modes"], strict=False):
                if mode.frees_all and not plan.mode.frees_all and not plan.fails:
                    return f"{plan.job} was to leave by {mode.value}; its plan says {plan.mode.value}"
            return None

        self.every(_HOOK, check)

    def test_each_victim_by_itself(self) -> None:
        """What a victim is told does not depend on what else makes way."""

        def check(call: Call) -> str | None:
            given = call.arguments
            both = list(zip(given["victims"], given["modes"], given["reasons"], strict=True))
            for plan, (job, mode, reason) in zip(call.answer or (), both, strict=False):
                alone = call.ask(victims=(job,), modes=(mode,), reasons=(reason,))
                if plain(alone) != plain([plan]):
                    return f"beside others {job} is told {short(plan)}, and alone {short(alone)}"
            return None

        if not self.by_itself:
            self.skip("the plugin does not promise it")
        self.every(_HOOK, check)

    by_itself: ClassVar[bool] = True
    """Whether what a victim is told depends on no other; say False where it is meant to."""

    def test_random_runs_ask_for_plans(self) -> None:
        """The random runs put the plugin to the test: it was asked, and planned something."""

        def something(call: Call) -> bool:
            modes: Sequence[PreemptMode] = call.arguments["modes"]
            planned = zip(call.answer or (), modes, strict=False)
            return any(plan.grace_time or plan.farewell or plan.mode is not mode for plan, mode in planned)

        self.put_to_the_test(_HOOK, something, "planned more than the mode")

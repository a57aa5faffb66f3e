"""The contract of vetoes: plugins that protect jobs, and say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hypothesis.strategies import SearchStrategy

from makeway.model import Protection
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended, waves
from makeway_testing.watching import Call, plain, short

_HOOK = "makeway_protect"


class ProtectContract(DecisionContract):
    """What every plugin under ``policy.protect`` promises."""

    hook = _HOOK
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    preempt: ClassVar[str] = lower_tiers.NAME
    """Policy whose candidates are protected; unless another is named, lower tiers may be displaced."""
    modes: ClassVar[Sequence[str]] = ("requeue", "cancel", "suspend,gang")

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "protect"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters, several tiers, and up to eight jobs."""
        return contended([(self.preempt, mode) for mode in self.modes])

    def remembering(self) -> SearchStrategy[Scenario]:
        """Draw urgent jobs that come one after the other."""
        return waves([(self.preempt, mode) for mode in self.modes])

    def test_reasons_by_job_id(self) -> None:
        """The answer maps job ids to reasons; None or an empty one protects no job."""

        def check(call: Call) -> str | None:
            answer = call.answer
            if answer is None:
                return None
            if not isinstance(answer, Mapping) or not all(isinstance(key, str) for key in answer):
                return f"it returned {type(answer).__name__} {short(answer)}; allowed: job id -> reason"
            return None

        self.every(_HOOK, check)

    def test_only_candidates_are_protected(self) -> None:
        """What is protected is one of the candidates."""

        def check(call: Call) -> str | None:
            known = {job.id for job in call.arguments["candidates"]}
            strangers = [key for key in _protected(call.answer) if key not in known]
            if not strangers:
                return None
            return f"it protects {plain(strangers[0])}, which is none of the candidates {sorted(known)}"

        self.every(_HOOK, check)

    def test_every_veto_has_a_reason(self) -> None:
        """Every veto has a reason in words."""

        def check(call: Call) -> str | None:
            for job_id, given in _protected(call.answer).items():
                reason = given.reason if isinstance(given, Protection) else given
                if not isinstance(reason, str) or not reason.strip():
                    return f"the reason for {job_id} is {reason!r}; allowed: words that people can read"
            return None

        self.every(_HOOK, check)

    def test_the_end_of_a_veto_lies_ahead(self) -> None:
        """A veto that says when it ends by itself ends later than now."""

        def check(call: Call) -> str | None:
            now = call.arguments["view"].now
            for job_id, given in _protected(call.answer).items():
                until = given.until if isinstance(given, Protection) else None
                if until is not None and not until > now:
                    return f"that of {job_id} ended at {until:g} s; it is {now:g} s"
            return None

        self.every(_HOOK, check)

    def test_order_of_candidates(self) -> None:
        """What is protected does not depend on the order in which the candidates are listed."""

        def check(call: Call) -> str | None:
            jobs = tuple(call.arguments["candidates"])
            for other in (jobs[::-1], jobs[1:] + jobs[:1]):
                mine, its = plain(call.answer) or {}, plain(call.ask(candidates=other)) or {}
                if mine != its:
                    return f"of {short(jobs)} it protects {short(mine)}, of {short(other)} {short(its)}"
            return None

        self.every(_HOOK, check)

    def test_random_runs_protect_a_job(self) -> None:
        """The random runs put the veto to the test: it was asked, and protected a job."""
        self.put_to_the_test(_HOOK, lambda call: bool(_protected(call.answer)), "protected a job")


def _protected(answer: Any) -> Mapping[Any, Any]:
    return answer if isinstance(answer, Mapping) else {}

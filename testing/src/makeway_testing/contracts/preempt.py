"""The contract of preempt policies: what may be displaced, how, and with what notice."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from hypothesis.strategies import SearchStrategy

from makeway.model import Candidates, Job, Plan, PreemptMode
from makeway.record import Preemption
from makeway_engine.engine import Engine
from makeway_testing.contracts.base import PatientChecker
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.contracts.needless import needless
from makeway_testing.invariants import InvariantChecker
from makeway_testing.strategies import Scenario, contended, waves
from makeway_testing.watching import Call, plain, short

_HOOK = "makeway_preempt_candidates"


class PreemptPolicyContract(DecisionContract):
    """What every plugin under ``policy.preempt`` promises.

    ::

        class TestContract(PreemptPolicyContract):
            __test__ = True
            plugin = "preempt/youngest"
    """

    hook = _HOOK
    modes: ClassVar[Sequence[str]] = ("requeue", "cancel", "suspend,gang")
    """Cluster-wide modes that random runs have."""
    by_qos: ClassVar[bool] = False
    """Whether the policy looks at QOS: random runs then have some that may preempt one another."""
    settles_ties: ClassVar[bool] = False
    """Whether the policy orders all candidates itself: the order of `active` then does not show in its answer."""
    minimal: ClassVar[bool] = False
    """Whether the policy's own search promises that no victim is needless."""

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "preempt"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw one to five nodes, one to three partitions of several tiers, and up to eight jobs."""
        return contended([(self.plugin, mode) for mode in self.modes], with_qos=self.by_qos)

    def remembering(self) -> SearchStrategy[Scenario]:
        """Draw urgent jobs that come one after the other."""
        return waves([(self.plugin, mode) for mode in self.modes], with_qos=self.by_qos)

    # ---------------------------------------------------------------------------- candidates
    def test_candidates_or_none(self) -> None:
        """The answer is Candidates, empty ones if no job may be displaced, or None for "no opinion"."""

        def check(call: Call) -> str | None:
            if call.answer is None or isinstance(call.answer, Candidates):
                return None
            return (
                f"it returned {type(call.answer).__name__} {short(call.answer)}; allowed: Candidates or None"
            )

        self.every(_HOOK, check)

    def test_candidates_are_active(self) -> None:
        """Every candidate is one of `active`: none that waits, has ended, or is unknown."""

        def check(call: Call) -> str | None:
            known = {id(job) for job in _active(call)}
            strangers = [job for job in _named(call) if id(job) not in known]
            if not strangers:
                return None
            job = strangers[0]
            state = f", which is {job.state.value}" if isinstance(job, Job) else ""
            return f"it named {plain(job)}{state} and is not one of {short(_active(call))}"

        self.every(_HOOK, check)

    def test_no_candidate_twice(self) -> None:
        """No candidate is named twice."""

        def check(call: Call) -> str | None:
            ids = [id(job) for job in _named(call)]
            twice = [job for at, job in enumerate(_named(call)) if id(job) in ids[:at]]
            return f"it named {plain(twice[0])} twice: {short(_named(call))}" if twice else None

        self.every(_HOOK, check)

    def test_one_mode_per_candidate(self) -> None:
        """Every candidate has one mode, which is a PreemptMode and does something."""

        def check(call: Call) -> str | None:
            answer = call.answer
            if not isinstance(answer, Candidates):
                return None
            if len(answer.jobs) != len(answer.modes):
                return f"{len(answer.jobs)} candidates, but {len(answer.modes)} modes: {short(answer.modes)}"
            pairs: list[tuple[Any, Any]] = list(zip(answer.jobs, answer.modes, strict=True))
            for job, mode in pairs:
                if not isinstance(mode, PreemptMode) or mode is PreemptMode.OFF:
                    return (
                        f"the mode of {plain(job)} is {mode!r}; allowed: suspend, checkpoint, requeue, cancel"
                    )
            return None

        self.every(_HOOK, check)

    def test_protection_has_a_reason(self) -> None:
        """What is listed as protected is no candidate, and has a reason in words."""

        def check(call: Call) -> str | None:
            answer = call.answer
            if not isinstance(answer, Candidates):
                return None
            named = {job.id for job in _named(call)}
            protected: Mapping[str, Any] = answer.protected
            for job_id, reason in protected.items():
                if not isinstance(reason, str) or not reason.strip():
                    return f"{job_id} is protected without a reason: {reason!r}"
                if job_id in named:
                    return f"{job_id} is a candidate and protected at once"
            return None

        self.every(_HOOK, check)

    def test_asks_again_later(self) -> None:
        """`ask_again_at` lies ahead of `now`."""

        def check(call: Call) -> str | None:
            now: float = call.arguments["now"]
            at = getattr(call.answer, "ask_again_at", None)
            if at is None or (math.isfinite(at) and at > now):
                return None
            return f"at {now:g} s it wants to be asked again at {at:g} s"

        self.every(_HOOK, check)

    def test_one_kind_has_the_same_candidates(self) -> None:
        """Pending jobs of one kind (`alike_by`) in one partition have the same candidates."""

        def check(call: Call) -> str | None:
            preemptor: Job = call.arguments["preemptor"]
            kind_of = _kinds(call)
            kind = None if kind_of is None else kind_of(preemptor)
            if kind_of is None or kind is None:
                return None
            mine = _modes(call.answer)
            for job in call.arguments["view"].pending:
                alike = job is not preemptor and job.partitions == preemptor.partitions[:1]
                if alike and kind_of(job) == kind:
                    its = _modes(call.ask(preemptor=job))
                    if its != mine:
                        return (
                            f"{short(kind)} is its kind and that of {job.id}: {short(mine)}, and {short(its)}"
                        )
            return None

        self.every(_HOOK, check)

    def test_order_of_active_jobs(self) -> None:
        """What may be displaced does not depend on the order in which `active` lists the jobs."""
        ties = self.settles_ties

        def check(call: Call) -> str | None:
            active = tuple(_active(call))
            for other in (active[::-1], active[1:] + active[:1]):
                answer = call.ask(active=other)
                mine, its = _ids(call.answer), _ids(answer)
                if (mine != its) if ties else (sorted(mine) != sorted(its)):
                    return f"of {short(active)} it named {mine}, of {short(other)} {its}"
            return None

        self.every(_HOOK, check)

    def test_random_runs_displace_a_job(self) -> None:
        """The random runs put the policy to the test: it was asked, and named a job."""
        self.put_to_the_test(_HOOK, lambda call: bool(_named(call)), "named a candidate")

    # -------------------------------------------------------------------------- modes and plans
    def test_one_mode_per_job(self) -> None:
        """``makeway_preempt_mode`` answers with one PreemptMode per job, in order."""

        def check(call: Call) -> str | None:
            answer, jobs = call.answer, call.arguments["jobs"]
            if answer is None:
                return None
            if len(answer) != len(jobs) or not all(isinstance(mode, PreemptMode) for mode in answer):
                return f"for {short(jobs)} it returned {short(answer)}"
            return None

        self.every("makeway_preempt_mode", check)

    def test_one_plan_per_victim(self) -> None:
        """``makeway_preempt_action`` plans how each victim makes way, in order, with times that make sense."""

        def check(call: Call) -> str | None:
            answer, victims = call.answer, call.arguments["victims"]
            if answer is None:
                return None
            if [plain(getattr(plan, "job", plan)) for plan in answer] != [job.id for job in victims]:
                return f"for {short(victims)} it planned {short(answer)}"
            for plan in answer:
                if not isinstance(plan, Plan) or not isinstance(plan.mode, PreemptMode):
                    return f"it returned {short(plan)}; allowed: a Plan"
                times = (plan.grace_time, plan.hold_down)
                if not all(math.isfinite(one) and one >= 0 for one in times):
                    return f"the plan for {plan.job.id} has a time below zero or without end: {times}"
            return None

        self.every("makeway_preempt_action", check)

    # --------------------------------------------------------------------------------- whole runs
    def checker(self, calls: Sequence[Call]) -> InvariantChecker:
        """Return a checker that allows as victims only those that the policy named."""

        def objection(engine: Engine, entry: Preemption, victim: Job) -> str:
            if engine.gang is not None or entry.preemptor is None:
                return ""  # an arbiter stops what is in a shadow, and asks no policy
            named = [call for call in calls if call.hook == _HOOK and _is_about(call, entry.preemptor)]
            if not named or any(victim in _named(call) for call in named):
                return ""
            return f"{self.plugin} never let {entry.preemptor} displace it"

        return PatientChecker(allowed=objection)

    def test_no_needless_victim(self) -> None:
        """No victim of a search that promises it is needless: put back, any single one makes the job not fit."""
        if not self.minimal:
            self.skip("it does not claim to be minimal")
        self.every("makeway_search", needless)


def _active(call: Call) -> Sequence[Job]:
    found: Sequence[Job] = call.arguments["active"]
    return found


def _kinds(call: Call) -> Callable[[Job], Hashable | None] | None:
    """Return what tells kinds of preemptors apart; None: the hook is not marked."""
    kinds = call.mark("makeway_kinds")
    found: Callable[[Job], Hashable | None] | None = None if kinds is None else kinds(call.arguments["view"])
    return found


def _modes(answer: Any) -> list[tuple[str, Any]]:
    """Return the candidates of an answer, each with its mode."""
    if not isinstance(answer, Candidates):
        return []
    return [(plain(job), plain(mode)) for job, mode in zip(answer.jobs, answer.modes, strict=False)]


def _named(call: Call) -> Sequence[Any]:
    return call.answer.jobs if isinstance(call.answer, Candidates) else ()


def _ids(answer: object) -> list[str]:
    return [job.id for job in answer.jobs] if isinstance(answer, Candidates) else []


def _is_about(call: Call, preemptor: str) -> bool:
    about = call.about
    return about is None or about.id == preemptor

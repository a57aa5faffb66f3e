"""The contract of gang arbiters: which jobs are active on shared resources, and which come back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from makeway.errors import InvariantError
from makeway.model import ClusterView, Gang, GangOrder, GangVerb, Job, JobState, Seconds, SuspendedBy
from makeway_testing import builders
from makeway_testing.contracts.base import PatientChecker, any_victim
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.failures import BreachError
from makeway_testing.invariants import InvariantChecker
from makeway_testing.policies import lower_tiers
from makeway_testing.scenario import TableRun
from makeway_testing.strategies import Scenario, contended, instants
from makeway_testing.watching import Call, short

_HOOK = "makeway_gang"
_TINY = 1e-6
Rule = Callable[[str, Sequence[GangOrder], Gang, ClusterView], str | None]
"""Method, its orders, the arbiter, the view -> what is wrong, or nothing."""


class GangContract(DecisionContract):
    """What every plugin under ``policy.gang`` promises."""

    hook = _HOOK
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    policies: ClassVar[Sequence[tuple[str, str]]] = (
        ("preempt/none", "gang"),
        (lower_tiers.NAME, "suspend,gang"),
        (lower_tiers.NAME, "requeue,gang"),
    )
    """Preempt plugin and cluster-wide mode of the random runs."""
    timeslice: ClassVar[Seconds | None] = 30.0
    """Length of a turn, as `settings` make it; None: jobs do not take turns, and may only be resumed."""
    slack: ClassVar[int] = 0
    """How many slices a job may wait beyond n - 1, by a rule of the arbiter's own."""

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "gang"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters whose partitions share nodes, and up to eight jobs."""
        return contended(self.policies, sharing=("NO", "FORCE:1", "FORCE:2", "FORCE:3", "FORCE:4")).map(
            self._with_rules
        )

    def _with_rules(self, scenario: Scenario) -> Scenario:
        """Leave out what Slurm does against the invariants: that is the affair of its own arbiter."""
        return scenario.with_settings(rules=self.config.get("rules", {}))

    def checker(self, calls: Sequence[Call]) -> InvariantChecker:
        """Return a checker that waits for a turn before it calls a job forgotten."""
        del calls
        return PatientChecker(allowed=any_victim, patience=self.timeslice)

    # ------------------------------------------------------------------------------- orders
    def test_orders_fit_the_jobs(self) -> None:
        """Only running jobs are suspended, only jobs that the policy suspended are resumed, none of them twice.

        Orders for a job that is leaving its nodes are void: an arbiter hears of its end once they are clean.
        """
        self.ordered(lambda method, orders, gang, view: _misfit(orders))

    def test_the_next_tick_lies_ahead(self) -> None:
        """`next_tick` is never in the past, and after a tick it is later than that."""

        def rule(method: str, orders: Sequence[GangOrder], gang: Gang, view: ClusterView) -> str | None:
            at = gang.next_tick
            if at is None:
                return None
            if not math.isfinite(at) or at < view.now - _TINY or (method == "tick" and at <= view.now):
                return f"after {method}() at {view.now:g} s the next tick is at {at:g} s"
            return None

        self.ordered(rule)

    def test_suspended_jobs_resume(self) -> None:
        """What was suspended is resumed, at the next turn at the latest, once all that it needs is free."""

        def rule(scenario: Scenario) -> None:
            try:
                self.play(scenario)
            except InvariantError as error:
                if str(error).startswith("rule 5,"):
                    raise BreachError(str(error), hook=_HOOK) from None

        self.hold(rule)

    def test_random_runs_stop_a_job(self) -> None:
        """The random runs put the arbiter to the test: it stopped a job, or resumed one where none takes turns."""
        seen: list[GangOrder] = []

        def rule(method: str, orders: Sequence[GangOrder], gang: Gang, view: ClusterView) -> str | None:
            seen.extend(orders)
            return None

        self.ordered(rule, times=4)
        acted = {GangVerb.SUSPEND, GangVerb.PREEMPT}
        if self.timeslice is None:
            acted.add(GangVerb.RESUME)
        if not any(order.verb in acted for order in seen):
            self.fail(f"it gave {len(seen)} orders and stopped no job; override scenarios()", hook=_HOOK)

    def ordered(self, rule: Rule, *, times: int = 1) -> None:
        """Hold a rule about what the arbiter orders; the docstring of the calling test says what it is."""

        def replace(hook: str, answer: Any) -> Any:
            return _Shown(answer, rule) if hook == _HOOK and answer is not None else answer

        def played(scenario: Scenario) -> None:
            self.play(scenario, replace=replace)

        self.hold(played, times=times)

    # -------------------------------------------------------------------------------- fairness
    def test_equal_jobs_take_turns(self) -> None:
        """Of n equal jobs on one node none waits longer than n - 1 timeslices at a stretch, and all complete."""
        if self.timeslice is None:
            self.skip("jobs take no turns")
        length, slack = self.timeslice, self.slack

        def rule(scenario: Scenario) -> None:
            run = self.play(scenario)
            most = (len(scenario.specs) - 1 + slack) * length
            for spec in scenario.specs:
                waited = max(_stops(run, spec.id), default=0.0)
                if waited > most + _TINY:
                    found = f"{spec.id} waited {waited:g} s; {len(scenario.specs)} jobs, {length:g} s a turn"
                    raise BreachError(f"{found}: at most {most:g} s", hook=_HOOK, job=spec.id)
                state = run.state(spec.id)
                if state is not JobState.COMPLETED:
                    raise BreachError(f"in the end {spec.id} is {state.value}", hook=_HOOK, job=spec.id)

        self.hold(rule, self.equal_jobs(length))

    def test_some_job_always_runs(self) -> None:
        """Turns cost no time: equal jobs on one node end when the last would have ended one after another."""
        if self.timeslice is None:
            self.skip("jobs take no turns")

        def rule(scenario: Scenario) -> None:
            run = self.play(scenario)
            busy = 0.0
            for spec in scenario.specs:
                busy = max(busy, spec.submit_at) + (spec.run_time or 0.0)
            if run.run.ended_at > busy + _TINY and run.run.recorder.metrics.ended == len(scenario.specs):
                found = f"all work was done at {run.run.ended_at:g} s; one after another it takes {busy:g} s"
                raise BreachError(found, hook=_HOOK)

        self.hold(rule, self.equal_jobs(self.timeslice))

    def equal_jobs(self, length: Seconds) -> SearchStrategy[Scenario]:
        """Draw two to six equal jobs that share one node."""
        submissions = st.lists(instants(40), min_size=2, max_size=6).map(sorted)
        return st.builds(
            lambda at, turns: self._with_plugin(_equal(at, turns * length)),
            submissions,
            st.sampled_from((0.5, 1.0, 2.0, 3.5)),
        )


def _equal(submissions: Sequence[Seconds], run_time: Seconds) -> Scenario:
    rows = [f"j{at} {submit:g} 1 {run_time:g}" for at, submit in enumerate(submissions, 1)]
    return Scenario(
        machine=builders.one_node(),
        settings={
            "preempt_mode": "gang",
            "partitions": {"batch": {"oversubscribe": f"FORCE:{len(submissions)}"}},
        },
        specs=tuple(builders.jobs("job submit nodes run_time\n" + "\n".join(rows))),
    )


def _stops(run: TableRun, job: str) -> list[Seconds]:
    return [
        end - start for state, start, end, _, _ in run.history(job).intervals if state is JobState.SUSPENDED
    ]


class _Shown:
    """An arbiter whose orders are looked at before they are carried out."""

    def __init__(self, inner: Gang, rule: Rule) -> None:
        self._inner = inner
        self._rule = rule

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if name == "turn":  # only those of `makeway.model.QueuedGang` have it
            return lambda job, view: self._one_by_one("turn", inner(job, view), view)
        return inner

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        return self._looked("started", self._inner.started(job, view), view, job)

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        return self._looked("ended", self._inner.ended(job, view), view, job)

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        return self._looked("held", self._inner.held(job, view), view, job)

    def tick(self, view: ClusterView) -> Iterable[GangOrder]:
        return self._one_by_one("tick", self._inner.tick(view), view)

    def before_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        return self._one_by_one("before_pass", self._inner.before_pass(view), view)

    def after_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        method = getattr(self._inner, "after_pass", None)
        return () if method is None else self._one_by_one("after_pass", method(view), view)

    def _one_by_one(self, method: str, orders: Iterable[GangOrder], view: ClusterView) -> Iterator[GangOrder]:
        for order in orders:
            self._looked(method, (order,), view)
            yield order

    def _looked(
        self, method: str, orders: Iterable[GangOrder], view: ClusterView, about: Job | None = None
    ) -> Sequence[GangOrder]:
        listed = tuple(orders)
        found = self._rule(method, listed, self._inner, view)
        if found:
            job = about.id if about is not None else ""
            raise BreachError(found, hook=f"{_HOOK} ({method})", job=job, at=view.now)
        return listed


def _misfit(orders: Sequence[Any]) -> str | None:
    """Say what is wrong with orders that are carried out one after another."""
    states: dict[str, JobState] = {}
    for order in orders:
        if not isinstance(order, GangOrder):
            return f"it ordered {short(order)}; allowed: a GangOrder"
        job = order.job
        state = states.get(job.id, job.state)
        if state is JobState.COMPLETING:
            continue
        if order.verb is GangVerb.SUSPEND:
            if state is not JobState.RUNNING:
                return f"it suspends {job.id}, which is {state.value}"
            states[job.id] = JobState.SUSPENDED
        elif order.verb is GangVerb.RESUME:
            if state is not JobState.SUSPENDED:
                return f"it resumes {job.id}, which is {state.value}"
            if job.suspended_by is SuspendedBy.ADMIN:
                return f"it resumes {job.id}, which a person suspended"
            states[job.id] = JobState.RUNNING
        elif not state.active:
            return f"it orders {order.verb.value} for {job.id}, which is {state.value}"
    return None

"""What a plan may ask in each mode (the table of `makeway.model.Plan`), and what signals do to simulated jobs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from makeway.errors import PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Candidates,
    Choice,
    ClusterView,
    Gang,
    GangOrder,
    GangVerb,
    Job,
    JobSpec,
    Limits,
    Placement,
    Plan,
    PreemptMode,
    Signal,
)
from makeway_testing import TableRun, one_node, replay_table
from makeway_testing.builders import jobs as job_specs

USR1 = Signal(name="USR1", steps_only=False)
SUSPEND, REQUEUE, CANCEL = PreemptMode.SUSPEND, PreemptMode.REQUEUE, PreemptMode.CANCEL
TWO = """
    job   partition  submit  cpus  run_time
    low   low             0     4        60
    high  hi             10     4        20
"""


class Planned:
    """Plans the same for each victim."""

    def __init__(self, mode: PreemptMode | None, **more: Any) -> None:
        self.mode = mode
        self.more = more

    @hookimpl
    def makeway_preempt_action(self, victims: Sequence[Job], modes: Sequence[PreemptMode]) -> list[Plan]:
        return [
            Plan(job=job, mode=self.mode or mode, **self.more)
            for job, mode in zip(victims, modes, strict=True)
        ]


class Arbiter:
    """Resumes what was suspended as soon as the others have gone; takes no turns by itself."""

    next_tick = None

    def __init__(self, orders: Sequence[tuple[GangVerb, PreemptMode]] = ()) -> None:
        self._orders = orders

    def started(self, job: Job, view: ClusterView) -> list[GangOrder]:
        others = [each for each in view.active if each is not job]
        return [GangOrder(verb=verb, job=other, mode=mode) for verb, mode in self._orders for other in others]

    def ended(self, job: Job, view: ClusterView) -> list[GangOrder]:
        return [GangOrder(verb=GangVerb.RESUME, job=each) for each in view.active]

    def held(self, job: Job, view: ClusterView) -> list[GangOrder]:
        return []

    def tick(self, view: ClusterView) -> list[GangOrder]:
        return []

    before_pass = after_pass = tick


class WithArbiter:
    """Offers an arbiter."""

    def __init__(self, gang: Gang) -> None:
        self._gang = gang

    @hookimpl
    def makeway_gang(self) -> Gang:
        return self._gang


class Lower:
    """Names the jobs of lower tiers, all by one mode."""

    def __init__(self, mode: PreemptMode) -> None:
        self._mode = mode

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
        tier = preemptor.partition.priority_tier
        jobs = tuple(job for job in active if job.partition.priority_tier < tier)
        return Candidates(jobs=jobs, modes=(self._mode,) * len(jobs))


def played(
    mode: str,
    plan: Planned | None,
    gang: str | None = None,
    jobs: str | Sequence[JobSpec] = TWO,
    preempt: PreemptMode | None = None,
    until: float | None = None,
    **plugins: Any,
) -> TableRun:
    shares = {"oversubscribe": "FORCE:1"}
    given = {
        **({} if plan is None else {"action/mine": plan}),
        **({} if preempt is None else {"preempt/mine": Lower(preempt)}),
        **{f"{name}/mine": plugin for name, plugin in plugins.items()},
    }
    config: dict[str, Any] = {
        "partitions": {"low": shares, "hi": {"priority_tier": 2, **shares}},
        "preempt": "preempt/partition_prio" if preempt is None else "preempt/mine",
        "preempt_mode": mode,
        "plugins": [name for name in given if not name.startswith("preempt")],
    }
    if gang is not None:
        config["gang"] = gang
    return replay_table(jobs, cluster=one_node(cpus=4), config=config, plugins=given, until=until)


SLICED = "gang/timeslice"


@pytest.mark.parametrize("signal", [USR1, Signal(name="USR1")], ids=["all", "steps"])
@pytest.mark.parametrize(
    ("mode", "gang"),
    [("requeue", None), ("requeue", SLICED), ("requeue,gang", None), ("suspend,gang", None)],
)
def test_a_signal_then_a_wait_then_a_requeue(mode: str, gang: str | None, signal: Signal) -> None:
    """A signal at 10, 20 s of grace, and the requeue at 30: by hand, whatever arbitrates."""
    run = played(mode, Planned(REQUEUE, notice=(signal,), grace_time=20.0), gang)
    assert run.signals == (f"10 low USR1{'' if signal.steps_only else ' all'}",)
    assert run.timeline == (
        "0 low start",
        "10 low notice for high",
        "30 low requeue",
        "30 high start",
        "50 high complete",
        "50 low start",
        "110 low complete",
    )


REFUSED = [
    pytest.param("suspend,gang", None, {"notice": (USR1,), "grace_time": 20.0}, "notice", id="gang stops"),
    pytest.param("suspend,gang", None, {"grace_time": 20.0}, "grace_time", id="gang stops at once"),
    pytest.param("suspend,gang", None, {"farewell": (USR1,)}, "farewell", id="gang says no farewell"),
    pytest.param("suspend,gang", None, {"hold_down": 5.0}, "hold_down", id="gang holds no job down"),
    pytest.param("suspend,gang", None, {"stop_signal": "TSTP"}, "stop_signal", id="gang has its signal"),
    pytest.param("requeue,gang", None, {}, "requeue, which frees more", id="a requeue was counted on"),
    pytest.param("requeue", SLICED, {}, "requeue, which frees more", id="so it was beside an arbiter"),
    pytest.param("requeue", None, {}, "requeue, which frees more", id="so it was without one"),
    pytest.param("cancel", None, {}, "cancel, which frees more", id="a cancel was counted on"),
]


@pytest.mark.parametrize(("mode", "gang", "more", "named"), REFUSED)
def test_what_no_suspension_can_do_is_refused_by_name(
    mode: str, gang: str | None, more: dict[str, Any], named: str
) -> None:
    """Never done in another way."""
    with pytest.raises(PolicyError, match=named) as caught:
        played(mode, Planned(SUSPEND, **more), gang)
    text = str(caught.value)
    assert text.startswith("plugin 'action/mine', hook makeway_preempt_action for job low: planned ")
    assert "; allowed: " in text


@pytest.mark.parametrize(
    ("mode", "more", "named"),
    [
        pytest.param(REQUEUE, {"notice": (USR1,)}, "notice without a grace_time", id="notice"),
        pytest.param(REQUEUE, {"hold_down": 5.0}, "hold_down with the mode requeue", id="hold_down"),
        pytest.param(CANCEL, {"stop_signal": "TSTP"}, "stop_signal with the mode cancel", id="stop_signal"),
        pytest.param(PreemptMode.OFF, {}, "the mode off", id="off"),
    ],
)
def test_what_no_end_can_do_is_refused_by_name(mode: PreemptMode, more: dict[str, Any], named: str) -> None:
    with pytest.raises(PolicyError, match=f"planned {'a ' if 'without' in named else ''}{named}.*allowed: "):
        played("requeue", Planned(mode, **more))


def test_no_job_is_stopped_that_nothing_resumes() -> None:
    """Whether or not anything plans."""
    for plan in (Planned(None), None):
        with pytest.raises(
            PolicyError, match=r"planned the mode suspend, but no plugin lets it go on; allowed: "
        ):
            played("suspend", plan, preempt=SUSPEND)


@pytest.mark.parametrize("more", [{}, {"farewell": (USR1,)}, {"stop_signal": "TSTP"}])
def test_a_suspension_by_plan(more: dict[str, Any]) -> None:
    """The plan stops it; the arbiter resumes it when the preemptor has gone."""
    run = played("suspend", Planned(SUSPEND, **more), preempt=SUSPEND, arbiter=WithArbiter(Arbiter()))
    assert run.signals == (("10 low USR1 all",) if "farewell" in more else ())
    assert run.timeline == (
        "0 low start",
        "10 low suspend for high",
        "10 high start",
        "30 high complete",
        "30 low resume",
        "80 low complete",
    )


def test_an_arbiter_preempts_by_a_mode_that_frees_all() -> None:
    """Said without a mode, the order would be to suspend."""
    odd = WithArbiter(Arbiter([(GangVerb.PREEMPT, SUSPEND)]))
    with pytest.raises(
        PolicyError, match="ordered preempt by the mode suspend; allowed: checkpoint, requeue, cancel"
    ):
        played("suspend", None, preempt=SUSPEND, arbiter=odd)


def test_a_search_takes_no_job_whose_mode_is_off() -> None:
    class All:
        @hookimpl
        def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | None:
            attempt.remove(candidates.jobs[0], REQUEUE)
            found = attempt.probe()
            return Choice(placement=found, victims=(0,)) if isinstance(found, Placement) else None

    with pytest.raises(PolicyError, match="chose low, whose mode is off; allowed: "):
        played("requeue", None, preempt=PreemptMode.OFF, search=All())


LATE = """
    job   partition  submit  cpus  run_time  time_limit
    low   low             0     4       100          30
"""


def test_grace_time_beyond_a_time_limit() -> None:
    """At its limit of 30 s the job is told, and is requeued 20 s later; then the same again, by hand."""

    class Late(Limits):
        @hookimpl
        def makeway_limits(self) -> Limits:
            return self

        def past_time_limit(self, job: Job, view: ClusterView) -> Plan | None:
            if job.restarts:
                return None
            return Plan(job=job, mode=REQUEUE, notice=(USR1,), grace_time=20.0)

    run = played("requeue", None, jobs=LATE, preempt=REQUEUE, late=Late())
    assert run.signals == ("30 low USR1 all",)
    assert run.timeline == (
        "0 low start",
        "30 low notice",
        "50 low requeue",
        "50 low start",
        "80 low timeout",
    )


@pytest.mark.parametrize("plan", [{"mode": PreemptMode.OFF}, {"mode": REQUEUE, "fails": True}])
def test_no_job_stays_beyond_a_time_limit(plan: dict[str, Any]) -> None:
    class Late(Limits):
        @hookimpl
        def makeway_limits(self) -> Limits:
            return self

        def past_time_limit(self, job: Job, view: ClusterView) -> Plan:
            return Plan(job=job, **plan)

    with pytest.raises(PolicyError, match=r"hook makeway_limits for job low: planned .*; allowed: "):
        played("requeue", None, jobs=LATE, late=Late())


@pytest.mark.parametrize(
    ("column", "signal", "ends"),
    [
        ("", "USR1", 30.0),
        ("", "HUP", 30.0),
        ("", "TERM", 10.0),
        ("", "KILL", 10.0),
        ("{'USR1': 'ignore'}", "USR1", 30.0),
        ("{'USR1': 'exit'}", "USR1", 10.0),
        ("{'USR1': 'die'}", "USR1", 10.0),
        ("{'USR1': 'die'}", "USR2", 30.0),
    ],
)
def test_only_some_signals_end_a_simulated_job(column: str, signal: str, ends: float) -> None:
    """TERM and KILL do, and whatever `on_signal` names."""
    low = job_specs(TWO)
    if column:
        low[0] = attrs.evolve(low[0], on_signal=ast.literal_eval(column))
    notice = (Signal(name=signal, steps_only=False),)
    run = played("cancel", Planned(CANCEL, notice=notice, grace_time=20.0), jobs=low)
    assert run.history("low").ended_at == ends


def test_a_job_that_has_not_ended_counts_as_preempted() -> None:
    """One preemption is one of one job, whether or not that job ends within the replay."""
    for until in (40.0, None):
        run = played("requeue", None, until=until)
        metrics = run.run.recorder.metrics
        assert (metrics.preemptions, metrics.jobs_preempted) == (1, 1)

"""Check the parts of answers at the border: what they may be, and the error that says so."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from makeway.model import Candidates, Choice, Job, Placement, Plan, PreemptMode, Signal
from makeway.registry.asking import Asker, shown


class Stops(enum.Enum):
    """What stops victims in a run, and lets them go on."""

    NONE = "none"
    """There is no arbiter: what was stopped would be stopped for ever."""
    PLANS = "plans"
    """Plans stop them, and the arbiter lets them go on."""
    ARBITER = "arbiter"
    """The arbiter does both (``gang`` is among the preempt modes)."""


class Border:
    """The checks of one run's answers; each blames the plugin that gave the answer."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._active: Sequence[Job] = ()
        self._all_active: frozenset[Job] = frozenset()
        """The active jobs that were there last; the same tuple holds the same jobs."""

    def _refuse(self, hook: str, job: Job | None, message: str) -> NoReturn:
        raise self._asker.fault(hook, job, message)

    def candidates(self, preemptor: Job, answer: Any, active: Sequence[Job]) -> Candidates:
        """Return an answer that names candidates."""
        found = self._named(preemptor, answer)
        if not found.jobs:
            return found
        if active is not self._active or type(active) is not tuple:
            self._active, self._all_active = active, frozenset(active)
        if not self._all_active.issuperset(found.jobs):
            job = next(job for job in found.jobs if job not in self._all_active)
            self._refuse_stranger(preemptor, job)
        return found

    def _refuse_stranger(self, preemptor: Job, job: object) -> NoReturn:
        text = f"named {shown(job)}, which is not among the active jobs"
        self._refuse("makeway_preempt_candidates", preemptor, text)

    def _named(self, preemptor: Job, answer: Any) -> Candidates:
        """Return an answer that names candidates, whichever these are."""
        hook = "makeway_preempt_candidates"
        if not isinstance(answer, Candidates):
            self._refuse(hook, preemptor, f"returned {shown(answer)}; allowed: Candidates")
        self.sequences(hook, preemptor, jobs=answer.jobs, modes=answer.modes)
        self.instant(hook, preemptor, answer.ask_again_at)
        if answer.reasons:
            self.reasons(hook, preemptor, answer.reasons, len(answer.jobs), "jobs")
        condition: object = answer.allowed_after
        if condition is not None and not callable(condition):
            text = f"gave {shown(condition)} as allowed_after; allowed: a function, or None"
            self._refuse(hook, preemptor, text)
        if len(answer.jobs) != len(answer.modes):
            self._refuse(hook, preemptor, f"{len(answer.jobs)} jobs but {len(answer.modes)} modes")
        if not answer.jobs:
            return answer
        if set(map(type, answer.modes)) != {PreemptMode}:
            wrong = next(mode for mode in answer.modes if type(mode) is not PreemptMode)
            self._refuse(hook, preemptor, f"named the mode {shown(wrong)}; allowed: a PreemptMode")
        try:
            several = set(answer.jobs)
        except Exception:  # whatever cannot be hashed is no job
            named: Sequence[object] = answer.jobs
            self._refuse_stranger(preemptor, next(each for each in named if not isinstance(each, Job)))
        if len(several) < len(answer.jobs):
            twice = next(job for at, job in enumerate(answer.jobs) if job in answer.jobs[:at])
            self._refuse(hook, preemptor, f"named job {twice} twice")
        return answer

    def choice(self, job: Job, answer: Any, candidates: Candidates) -> Choice:
        """Return the answer of a search."""
        hook = "makeway_search"
        placement: object = getattr(answer, "placement", None)
        if not isinstance(answer, Choice) or not isinstance(placement, Placement):
            self._refuse(
                hook, job, f"returned {shown(answer)}; allowed: a Choice with a placement, or Blocked"
            )
        self.sequences(hook, job, victims=answer.victims, modes=answer.modes)
        size = len(candidates.jobs)
        for at in answer.victims:
            position: object = at
            if not isinstance(position, int) or not 0 <= position < size:
                self._refuse(hook, job, f"chose candidate number {shown(at)} of {size}")
        if len(set(answer.victims)) < len(answer.victims):
            self._refuse(hook, job, "chose a candidate twice")
        if answer.modes and len(answer.modes) != len(answer.victims):
            self._refuse(hook, job, f"{len(answer.victims)} victims but {len(answer.modes)} modes")
        if not all(isinstance(mode, PreemptMode) for mode in answer.modes):
            self._refuse(hook, job, f"chose the modes {shown(answer.modes)}; allowed: PreemptMode")
        for at, mode in zip(
            answer.victims, answer.modes or [candidates.modes[at] for at in answer.victims], strict=True
        ):
            if mode is PreemptMode.OFF:
                text = f"chose {candidates.jobs[at]}, whose mode is off; allowed: candidates that make way"
                self._refuse(hook, job, text)
        if answer.reasons:
            self.reasons(hook, job, answer.reasons, len(answer.victims), "victims")
        choice: Choice = answer
        return choice

    def reasons(self, hook: str, job: Job, reasons: object, wanted: int, of: str) -> None:
        """See that there is one text for each of so many jobs."""
        self.sequences(hook, job, reasons=reasons)
        assert isinstance(reasons, tuple | list)
        if len(reasons) != wanted or not all(isinstance(each, str) for each in reasons):
            self._refuse(
                hook, job, f"{wanted} {of} but the reasons {shown(reasons)}; allowed: one text for each"
            )

    def plan(self, hook: str, plan: Plan, asked: PreemptMode | None, stops: Stops) -> None:
        """See that a plan can be carried out, as the table of `makeway.model.Plan` says.

        :param asked: the mode that its candidate came with; None: none was asked for.
        :param stops: what stops jobs in this run, and lets them go on.
        """
        mode: object = plan.mode
        if not isinstance(mode, PreemptMode):
            self._refuse(hook, plan.job, f"planned the mode {shown(mode)}; allowed: a PreemptMode")
        for name, value in (
            ("grace_time", plan.grace_time),
            ("hold_down", plan.hold_down),
            ("within", plan.within),
        ):
            if not is_duration(value):
                self._refuse(
                    hook, plan.job, f"planned a {name} of {shown(value)}; allowed: 0 or more seconds"
                )
        self.sequences(hook, plan.job, notice=plan.notice, farewell=plan.farewell)
        for signal in (*plan.notice, *plan.farewell):
            if not isinstance(signal, Signal):
                self._refuse(hook, plan.job, f"planned to send {shown(signal)}; allowed: a Signal")
        if not plan.fails:
            self.feasible(hook, plan, asked, stops)

    def feasible(self, hook: str, plan: Plan, asked: PreemptMode | None, stops: Stops) -> None:
        """See that a plan asks for nothing that its mode leaves undone."""
        wrong = _undone(plan, asked, stops)
        if wrong:
            self._refuse(hook, plan.job, f"planned {wrong}")

    def sequences(self, hook: str, job: Job, **values: object) -> None:
        """See that values are sequences."""
        for name, value in values.items():
            if not isinstance(value, tuple | list):
                self._refuse(hook, job, f"gave {shown(value)} as {name}; allowed: a tuple")

    def instant(self, hook: str, job: Job | None, at: object) -> None:
        """See that a plugin wants to be asked again at an instant, if at all."""
        if at is not None and (not isinstance(at, int | float) or at != at):
            text = f"wants to be asked again at {shown(at)}; allowed: seconds since the start, or None"
            self._refuse(hook, job, text)


_TIMED = ("notice", "grace_time")
_STEPS = (*_TIMED, "farewell", "hold_down", "stop_signal")
"""What a plan may say beside its mode."""


def _undone(plan: Plan, asked: PreemptMode | None, stops: Stops) -> str:
    """Say what a plan asks for that would not be done, and what is allowed; empty: nothing."""
    mode = plan.mode
    if mode is PreemptMode.OFF:
        return "the mode off, which leaves it where it is; allowed: fails=True, or another mode"
    if mode is not PreemptMode.SUSPEND:
        if plan.notice and not plan.grace_time:
            return "a notice without a grace_time; allowed: both, or signals as farewell"
        odd = [name for name in ("hold_down", "stop_signal") if getattr(plan, name)]
        return f"{odd[0]} with the mode {mode.value}; allowed: with the mode suspend" if odd else ""
    if asked is not None and asked is not PreemptMode.SUSPEND:
        return (
            f"the mode suspend, where its candidate has {asked.value}, which frees more; "
            "allowed: checkpoint, requeue, cancel"
        )
    if stops is Stops.NONE:
        return "the mode suspend, but no plugin lets it go on; allowed: another mode, or policy.gang names an arbiter"
    odd = [name for name in _STEPS if getattr(plan, name)]
    if odd and stops is Stops.ARBITER:
        return f"{odd[0]} with the mode suspend, where the arbiter stops it (gang is a mode); allowed: the mode alone"
    if odd and odd[0] in _TIMED:
        return f"{odd[0]} with the mode suspend, which stops it at once; allowed: farewell, or another mode"
    return ""


def is_table(answer: object, of: type[Any]) -> bool:
    """Whether an answer maps ids of jobs to values of a type."""
    if type(answer) is not dict and not isinstance(answer, Mapping):
        return False
    return not answer or all(isinstance(key, str) and isinstance(value, of) for key, value in answer.items())


def is_json(answer: object) -> bool:
    try:
        json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def is_duration(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < float("inf")

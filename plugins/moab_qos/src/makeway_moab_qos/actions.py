"""Choose how a victim makes way: PREEMPTPOLICY, and escalation toward the more disruptive (moab 5).

Escalation is decided for each victim by itself, so that one preemption may mix methods. Maui does not
escalate: a method that it has not, or that cannot be carried out, fails, and the preemptor waits (Q1,
section 17).
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

import attrs

from makeway.clockwork import Clockwork
from makeway.model import ClusterView, Job, Plan, PreemptMode, Signal
from makeway_moab_qos.capabilities import checkpoints, supports
from makeway_moab_qos.credentials import flags, settings_of
from makeway_moab_qos.settings import Settings

LADDER = (PreemptMode.SUSPEND, PreemptMode.CHECKPOINT, PreemptMode.REQUEUE, PreemptMode.CANCEL)
"""From the least to the most disruptive."""
_NEEDS = {PreemptMode.SUSPEND: "SUSPENDABLE", PreemptMode.REQUEUE: "RESTARTABLE"}


@attrs.frozen
class Method:
    """How one victim would make way."""

    mode: PreemptMode
    why: str
    fails: bool = False
    """Under Maui: the request would come to nothing."""


def asked_mode(settings: Settings) -> PreemptMode:
    """Return the rung that PREEMPTPOLICY names."""
    try:
        return PreemptMode(settings.preempt_policy.lower())
    except ValueError:
        return PreemptMode.REQUEUE


def method(job: Job, view: ClusterView, start: PreemptMode | None = None) -> Method:
    """Return the first rung, from `start` on, that can be used for `job` (section 5.2).

    :param start: None: the one that PREEMPTPOLICY names.
    """
    settings = settings_of(view)
    if settings.maui:
        return _in_maui(job, view, settings)
    asked = start or asked_mode(settings)
    skipped: list[str] = []
    for mode in LADDER[LADDER.index(asked) :]:
        lack = lacks(mode, job, view, skipped_suspend=mode is not asked_mode(settings))
        if not lack:
            break
        skipped.append(f"{mode.value} -> next: {lack}")
    why = f"PREEMPTPOLICY {settings.preempt_policy}"
    if skipped:
        why += f"; {asked.value} -> {mode.value}: {lacks(asked, job, view, skipped_suspend=False)}"
    return Method(mode, why)


def lacks(mode: PreemptMode, job: Job, view: ClusterView, *, skipped_suspend: bool) -> str:
    """Say why a rung cannot be used for `job`; empty: it can (section 5.3)."""
    settings = settings_of(view)
    if mode is PreemptMode.CANCEL:
        return ""
    if not supports(settings, mode.value):
        return f"the resource manager cannot {mode.value}"
    own = flags(job, view)
    if mode is PreemptMode.CHECKPOINT:
        if skipped_suspend and not settings.choices.checkpoint_on_the_way:
            return "a job that cannot be suspended is requeued or cancelled (checkpoint_on_the_way)"
        if skipped_suspend and not checkpoints(settings):
            return "no resource manager is known to checkpoint"
        if settings.choices.checkpoint_requires == "restartable" and "RESTARTABLE" not in own:
            return "not RESTARTABLE"
        return ""
    need = _NEEDS[mode]
    return "" if need in own else f"not {need}"


def by_flags(own: frozenset[str], settings: Settings) -> Method:
    """Return how jobs with some flags make way, as far as flags say it."""
    asked, mode = asked_mode(settings), PreemptMode.CANCEL
    if settings.maui:
        if asked is PreemptMode.REQUEUE and "RESTARTABLE" not in own:
            return Method(PreemptMode.CANCEL, "not RESTARTABLE")
        return Method(asked, f"PREEMPTPOLICY {settings.preempt_policy}")
    lacking = []
    for mode in LADDER[LADDER.index(asked) :]:
        need = _NEEDS.get(mode, "")
        if mode is PreemptMode.CHECKPOINT and mode is not asked and not checkpoints(settings):
            continue
        if mode is not PreemptMode.CANCEL and not supports(settings, mode.value):
            lacking.append(f"the resource manager cannot {mode.value}")
        elif need and need not in own:
            lacking.append(f"not {need}")
        else:
            break
    return Method(mode, "; ".join((f"PREEMPTPOLICY {settings.preempt_policy}", *lacking)))


def _in_maui(job: Job, view: ClusterView, settings: Settings) -> Method:
    policy = settings.preempt_policy
    if policy == "SUSPEND":
        return Method(PreemptMode.SUSPEND, "PREEMPTPOLICY SUSPEND")
    if policy == "REQUEUE":
        if "RESTARTABLE" in flags(job, view):
            return Method(PreemptMode.REQUEUE, "PREEMPTPOLICY REQUEUE")
        return Method(PreemptMode.CANCEL, "PREEMPTPOLICY REQUEUE; not RESTARTABLE")
    if policy == "CHECKPOINT":
        return Method(
            PreemptMode.CHECKPOINT, "PREEMPTPOLICY CHECKPOINT: there is nothing to restart from", True
        )
    return Method(PreemptMode.CANCEL, f"PREEMPTPOLICY {policy} is unknown to Maui, so nothing happens", True)


def next_rung(job: Job, mode: PreemptMode, view: ClusterView) -> PreemptMode:
    """Return how `job` makes way if `mode` does not free enough."""
    at = LADDER.index(mode)
    return method(job, view, LADDER[min(at + 1, len(LADDER) - 1)]).mode


# ------------------------------------------------------------------------------------------ plans
def plans(victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView) -> list[Plan]:
    """Return how each victim makes way; for the hook."""
    return [_plan(job, mode, view) for job, mode in zip(victims, modes, strict=True)]


def _plan(job: Job, mode: PreemptMode, view: ClusterView) -> Plan:
    settings = settings_of(view)
    chosen = method(job, view)
    asked = mode in (chosen.mode, job.way(chosen.mode))
    why = chosen.why if asked else f"{chosen.why}; {mode.value}: more has to be freed"
    if mode is PreemptMode.SUSPEND:
        word = next((rm.suspend_sig for rm in settings.rm if is_signal(rm.suspend_sig)), "")
        stop = signal_name(word) if word else ""
        return Plan(
            job=job,
            mode=mode,
            why=f"{why}; SUSPENDSIG {stop}" if stop else why,
            hold_down=settings.hold_down,
            stop_signal=stop,
            fails=chosen.fails,
        )
    if mode is PreemptMode.CHECKPOINT and not chosen.fails:
        return _checkpoint(job, view, settings, why)
    return Plan(job=job, mode=mode, why=why, fails=chosen.fails)


def _checkpoint(job: Job, view: ClusterView, settings: Settings, why: str) -> Plan:
    """Checkpoint and terminate; one that would take longer than CHECKPOINTTIMEOUT ends in a cancel (U12)."""
    timeout = max((rm.checkpoint_timeout for rm in settings.rm), default=0.0)
    word = next((rm.checkpoint_sig for rm in settings.rm if is_signal(rm.checkpoint_sig)), "")
    notice = (Signal(name=signal_name(word), steps_only=False),) if word else ()
    if timeout and view.settings(Clockwork).checkpoint_time > timeout:
        why += f"; not written within CHECKPOINTTIMEOUT ({timeout:g} s)"
        return Plan(job=job, mode=PreemptMode.CANCEL, why=why, grace_time=timeout)
    return Plan(job=job, mode=PreemptMode.CHECKPOINT, why=why, farewell=notice, within=timeout)


def signal_name(text: str) -> str:
    """Return a signal's name: ``SIGTSTP``, ``TSTP`` and ``20`` all mean TSTP."""
    word = text.upper().removeprefix("SIG")
    return _NUMBERS.get(word, word)


SIGNALS = tuple(each.name.removeprefix("SIG") for each in signal.Signals)
"""Names of signals."""


def is_signal(text: str) -> bool:
    """Whether a word is the name or the number of a signal."""
    return signal_name(text) in SIGNALS or (text.isdecimal() and 0 < int(text) <= max(signal.Signals))


_NUMBERS = {
    "1": "HUP",
    "2": "INT",
    "3": "QUIT",
    "9": "KILL",
    "10": "USR1",
    "12": "USR2",
    "15": "TERM",
    "18": "CONT",
    "19": "STOP",
    "20": "TSTP",
    "23": "STOP",
    "24": "TSTP",
}


def past_time_limit(job: Job, view: ClusterView) -> Plan | None:
    """Return how a job over its limit leaves (WCVIOLATIONACTION); None: it is cancelled.

    A suspended job would be over its limit still, so the next rung is taken in place of SUSPEND.
    """
    settings = settings_of(view)
    if settings.wc_violation_action != "PREEMPT":
        return None
    chosen = method(job, view)
    mode = chosen.mode
    if mode is PreemptMode.SUSPEND:
        mode = next_rung(job, mode, view) if not settings.maui else PreemptMode.REQUEUE
    why = f"over its wallclock limit; WCVIOLATIONACTION PREEMPT; {chosen.why}"
    return None if chosen.fails else Plan(job=job, mode=mode, why=why)
